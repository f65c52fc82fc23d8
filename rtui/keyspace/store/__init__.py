"""TODO store."""
