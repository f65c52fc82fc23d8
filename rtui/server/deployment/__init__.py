"""The servers behind a target: one, the nodes of a cluster, or those that a Sentinel names."""
