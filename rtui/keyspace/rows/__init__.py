"""TODO rows."""
