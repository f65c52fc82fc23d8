"""The report of an analysis, tables and figures made from it, and the comparison of two."""
