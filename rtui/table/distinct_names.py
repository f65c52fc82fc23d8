"""How many different names the patterns of a table stand for: the smallest hashes of each (KMV), all in two arrays."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_HASHES: Final = 256
"""Hashes that are kept of a pattern: see `rtui.analysis.aggregate.distinct`, which counts by them."""

RANGE: Final = 1 << 32
"""Hashes are below this; the last bit says that a name looks like a code rather than a word."""


class DistinctNames:
    """The smallest hashes of names by node; adding in any order and grouping comes to the same."""

    def __init__(self) -> None:
        self.nodes: NDArray[np.int32] = np.empty(0, np.int32)
        self.hashes: NDArray[np.uint32] = np.empty(0, np.uint32)
        """Parallel, ordered by node, then by hash."""
        self._limits: NDArray[np.uint32] = np.empty(0, np.uint32)
        """By node: larger hashes are not kept."""

    def add(self, nodes: NDArray[np.int32], hashes: NDArray[np.uint32]) -> None:
        """Count names, one row each, repeats among them."""
        if not len(nodes):
            return
        if len(self._limits) <= (last := int(nodes.max())):
            more = np.full(last + 1 - len(self._limits), RANGE - 1, np.uint32)
            self._limits = np.concatenate((self._limits, more))
        is_small = hashes <= self._limits[nodes]
        if is_small.any():
            both = (
                nodes[is_small].astype(np.uint64) << np.uint64(32) | hashes[is_small],
                self.nodes.astype(np.uint64) << np.uint64(32) | self.hashes,
            )
            self._keep(np.unique(np.concatenate(both)))

    def move(self, into: NDArray[np.int32]) -> None:
        """Give the names of each node to another one, by the old ids."""
        nodes, hashes = into[self.nodes], self.hashes
        self.nodes, self.hashes = np.empty(0, np.int32), np.empty(0, np.uint32)
        self._limits = np.empty(0, np.uint32)
        self.add(nodes, hashes)

    def of(self, node: int) -> NDArray[np.uint32]:
        """Return the smallest hashes of the names of a node, at most MOST_HASHES, in order."""
        first, end = np.searchsorted(self.nodes, (node, node + 1))
        return self.hashes[first:end]

    def _keep(self, ordered: NDArray[np.uint64]) -> None:
        nodes = (ordered >> np.uint64(32)).astype(np.int32)
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        sizes = np.diff(starts, append=len(nodes))
        is_kept = np.arange(len(nodes)) - np.repeat(starts, sizes) < MOST_HASHES
        self.nodes = nodes[is_kept]
        self.hashes = (ordered[is_kept] & np.uint64(RANGE - 1)).astype(np.uint32)
        full = starts[sizes >= MOST_HASHES]
        self._limits[nodes[full]] = ordered[full + MOST_HASHES - 1] & np.uint64(RANGE - 1)
