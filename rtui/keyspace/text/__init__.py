"""TODO text."""
