"""What is wrong with a keyspace: rules that read a report, and what they find."""
