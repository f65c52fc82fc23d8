"""TODO scan."""
