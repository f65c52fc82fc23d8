"""The namespace store: all keys seen so far as a tree of namespaces, whose names are kept as packed bytes."""
