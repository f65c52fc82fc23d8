"""How many different names the patterns of a table stand for: the smallest hashes of each (KMV), all in two arrays."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_HASHES: Final = 256
"""Hashes that are kept of a pattern: see `rtui.table.folding`, which counts by them."""

MOST_WAITING: Final = 262_144
"""Hashes that wait to be ordered."""

_BITS: Final = np.uint64(32)

RANGE: Final = 1 << 32
"""Hashes are below this; the last bit says that a name looks like a code rather than a word."""


class DistinctNames:
    """The smallest hashes of names by node; the result does not depend on the order of adding and merging."""

    def __init__(self) -> None:
        self._held: NDArray[np.uint64] = np.empty(0, np.uint64)
        """Node and hash in one number, ordered."""
        self._waiting: list[NDArray[np.uint64]] = []
        self._limits: NDArray[np.uint32] = np.empty(0, np.uint32)
        """By node: larger hashes are not kept."""

    @property
    def nodes(self) -> NDArray[np.int32]:
        return (self._kept() >> _BITS).astype(np.int32)

    @property
    def hashes(self) -> NDArray[np.uint32]:
        return (self._kept() & np.uint64(RANGE - 1)).astype(np.uint32)

    def add(self, nodes: NDArray[np.int32], hashes: NDArray[np.uint32]) -> None:
        """Count names, one row each, repeats among them."""
        if not len(nodes):
            return
        if len(self._limits) <= (last := int(nodes.max())):
            more = np.full(last + 1 - len(self._limits), RANGE - 1, np.uint32)
            self._limits = np.concatenate((self._limits, more))
        is_small = hashes <= self._limits[nodes]
        self._waiting.append(nodes[is_small].astype(np.uint64) << _BITS | hashes[is_small])
        if sum(map(len, self._waiting)) > MOST_WAITING:
            self._kept()

    def move(self, into: NDArray[np.int32]) -> None:
        """Give the names of each node to another one, by the old ids."""
        nodes, hashes = into[self.nodes], self.hashes
        self.__init__()  # type: ignore[misc]
        self.add(nodes, hashes)

    def of(self, node: int) -> NDArray[np.uint32]:
        """Return the smallest hashes of the names of a node, at most MOST_HASHES, in order."""
        first, end = np.searchsorted(self._kept(), np.array([node, node + 1], np.uint64) << _BITS)
        return (self._held[first:end] & np.uint64(RANGE - 1)).astype(np.uint32)

    def _kept(self) -> NDArray[np.uint64]:
        """Merge the waiting hashes, and return all hashes kept."""
        if any(map(len, self._waiting)):
            ordered = np.sort(np.concatenate((self._held, *self._waiting)))
            ordered = ordered[np.append(True, ordered[1:] != ordered[:-1])]
            nodes = (ordered >> _BITS).astype(np.int32)
            starts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
            sizes = np.append(starts[1:], len(nodes)) - starts
            self._held = ordered[np.arange(len(nodes)) - np.repeat(starts, sizes) < MOST_HASHES]
            full = starts[sizes >= MOST_HASHES]
            self._limits[nodes[full]] = (ordered[full + MOST_HASHES - 1] & np.uint64(RANGE - 1)).astype(np.uint32)
        self._waiting.clear()
        return self._held
