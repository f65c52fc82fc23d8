"""The spread of sizes by group: how many, their sum and extremes, exact, and counts in buckets for quantiles to 1 %."""

from __future__ import annotations

from typing import Final

import numpy as np

from rtui.analysis.report.figures import LOWS
from rtui.table.sums import NONE, Chunk, Dense, Flags, Sparse, Tree, Whole, carried

BUCKET_BITS: Final = 11
"""There are fewer than 2^11 buckets."""

_LOWS: Final = np.array(LOWS, np.int64)
_SMALL: Final = 1 << 15
_BUCKETS_OF_SMALL: Final = (np.searchsorted(_LOWS, np.arange(_SMALL), side="right") - 1).astype(np.int64)


def size_buckets(sizes: Whole) -> Whole:
    """Return the bucket of each size; of a negative one, which only a server at fault says, that of 0."""
    if len(sizes) and sizes.max() < _SMALL and sizes.min() >= 0:
        return _BUCKETS_OF_SMALL[sizes]
    found = np.searchsorted(_LOWS, np.maximum(sizes, 0), side="right") - 1
    return found.astype(np.int64, copy=False)


class Spreads:
    """Sizes by group."""

    def __init__(self) -> None:
        self.sums = Dense(3)
        """By group: how many sizes, and both halves of their sum."""
        self.greatest = Dense(2, np.maximum, empty=NONE)
        """By group: the largest size, and the smallest times -1."""
        self.buckets = Sparse(BUCKET_BITS)
        """Sizes by group and bucket."""

    def add(self, chunk: Chunk, sizes: Whole, rows: Flags) -> None:
        """Add the sizes of some rows of a chunk."""
        counts = chunk.count(rows)
        self.sums.add(chunk.used, np.column_stack((counts, chunk.halves(sizes, rows))))
        carried(self.sums.rows[:, 1:])
        extremes = chunk.greatest(sizes, rows), chunk.greatest(-sizes, rows)
        self.greatest.add(chunk.used, np.column_stack(extremes))
        self.buckets.add(*chunk.sparse(size_buckets(sizes), rows))

    def taken(self, to: Whole) -> Spreads:
        """Return the same under other numbers: group i becomes `to[i]`, several may become one."""
        made = Spreads()
        made.sums, made.greatest = self.sums.taken(to), self.greatest.taken(to)
        carried(made.sums.rows[:, 1:])
        made.buckets = self.buckets.taken(to)
        return made

    def add_up(self, tree: Tree) -> None:
        """Add the sizes of each group, which is a node of a tree, to its parent's."""
        self.sums.add_up(tree)
        carried(self.sums.rows[:, 1:])
        self.greatest.add_up(tree)
        self.buckets.add_up(tree)

    def merge(self, other: Spreads) -> None:
        """Add the sizes of another table, whose groups have the same numbers."""
        self.sums.merge(other.sums)
        carried(self.sums.rows[:, 1:])
        self.greatest.merge(other.greatest)
        self.buckets.merge(other.buckets)
