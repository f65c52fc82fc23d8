"""Bounded pages of a value: `read` chooses the reader of the type, the other modules are the readers."""
