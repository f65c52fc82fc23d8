"""Bounded pages of a value: what a preview consists of (`page`), and the readers of each family of types."""
