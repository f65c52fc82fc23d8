"""TODO help."""
