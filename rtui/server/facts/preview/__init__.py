"""Bounded pages of a value: their parts (`page`), and the readers of each family of types."""
