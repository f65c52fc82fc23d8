"""Rules that read a report or samples of a server, and their findings."""
