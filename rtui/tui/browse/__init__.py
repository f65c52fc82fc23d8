"""The tree of namespaces beside the details of the key or namespace under its cursor."""
