"""Facts and previews: what is asked about the rows on screen and about the key under the cursor."""
