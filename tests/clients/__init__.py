"""Keyspaces that real libraries write: jobs, messages and cached values."""
