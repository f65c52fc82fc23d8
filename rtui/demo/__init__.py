"""The embedded server and the sample keyspaces."""
