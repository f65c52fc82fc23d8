"""Facts and previews: of the rows on screen and of the key under the cursor."""
