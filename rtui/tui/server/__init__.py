"""The screen of the clients and commands of a server."""
