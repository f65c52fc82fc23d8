"""The inspection of every key of a keyspace: the commands sent about a key, their cost, and replies turned into
columns."""
