"""The command log: what was sent to the server."""
