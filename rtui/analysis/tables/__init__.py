"""Tables of a report, made once for the terminal and for every file."""
