"""A keyspace as a table: one row a key, sums of rows, patterns of names, queries."""
