"""A keyspace as a table: one row a key, what rows add up to, patterns of their names, questions to them."""
