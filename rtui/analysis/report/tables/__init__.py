"""The tables of a report, made once for the screen and for every file."""
