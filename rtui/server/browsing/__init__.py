"""A keyspace being browsed: the session, its passes over the names, and its state."""
