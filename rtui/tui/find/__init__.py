"""Found keys: the list of what a query finds, while it is searched and afterwards."""
