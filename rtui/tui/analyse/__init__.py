"""TODO analyse."""
