"""The screen that connects."""
