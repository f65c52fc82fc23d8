"""Analyses of a keyspace: begun from a screen or a command, their passes over the keys, and reports that are kept."""
