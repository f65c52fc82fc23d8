"""Recorded sessions: writing commands, replies and input to a file, and replaying them from it."""
