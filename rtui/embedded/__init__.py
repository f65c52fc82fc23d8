"""Servers that rtui starts for itself and that end with it: for the demo, and to read dumps."""
