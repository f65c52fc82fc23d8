"""The namespace store: all keys seen so far as a tree of namespaces, in about 25 bytes a key besides their names."""
