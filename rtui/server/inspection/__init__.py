"""The inspection of every key of a keyspace: what is asked, at which cost, and how the answers become columns."""
