"""The servers behind a target: one server, the nodes of a cluster, or the servers of a Sentinel's service."""
