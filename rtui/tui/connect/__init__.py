"""TODO connect."""
