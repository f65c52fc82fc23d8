"""Searches for keys: by a server, or among the rows that an analysis has kept."""
