"""The compiled counters of keys, optional, with the same results as the pure ones."""
