"""Widgets: each paints what it is given and reports what the user does; none knows another."""
