"""The visible rows of a store: the expanded part of its tree, sorted, numbered and searched, without a list of all."""
