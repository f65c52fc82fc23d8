"""The tree of namespaces, with the details of what is under its cursor."""
