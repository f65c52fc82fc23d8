"""A keyspace as it is browsed: the session, its passes over the names, and its state."""
