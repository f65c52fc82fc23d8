"""The report of an analysis, what is read out of it, and the comparison of two."""
