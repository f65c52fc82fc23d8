"""Found keys: the list of the keys that a query finds, during the search and afterwards."""
