"""The health of a server, by its own figures and its list of clients."""
