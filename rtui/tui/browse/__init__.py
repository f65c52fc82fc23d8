"""TODO browse."""
