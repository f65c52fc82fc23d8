"""The line that goes to anything by name."""
