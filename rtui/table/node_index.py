"""Finds nodes of a tree by parent and hash of the name, and counts their different names by hashes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rtui.table.segments import mixed

_PARENT: Final = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_OF_A_NODE: Final = 4


class NodeIndex:
    """A hash table with open addressing: a node stands where its hash says, or in the next free slot."""

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64]
        """By slot; 0 for an empty one."""
        self._nodes: NDArray[np.int32]
        self.rebuild(np.empty(0, np.uint64), np.empty(0, np.int32))

    def __len__(self) -> int:
        return self._count

    def rebuild(self, hashes: NDArray[np.uint64], nodes: NDArray[np.int32]) -> None:
        """Hold these nodes only, under these hashes of parent and name."""
        bits = max(10, int(_SLOTS_OF_A_NODE * len(nodes)).bit_length())
        self._bits, self._count = np.uint64(64 - bits), len(nodes)
        order = np.argsort(hashes)
        hashes, nodes = hashes[order], nodes[order]
        at = np.arange(len(nodes))
        slots = np.maximum.accumulate((hashes >> self._bits).astype(np.int64) - at) + at
        size = (1 << bits) + len(nodes) + 1
        self._hashes, self._nodes = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
        self._hashes[slots], self._nodes[slots] = hashes, nodes

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the node of each hash, -1 if there is none."""
        slots = (hashes >> self._bits).astype(np.int64)
        held = self._hashes[slots]
        found = self._nodes[slots]
        others = np.flatnonzero((held != hashes) & (held != 0))
        found[held == 0] = -1
        while len(others):
            slots[others] += 1
            held = self._hashes[slots[others]]
            is_here, is_free = held == hashes[others], held == 0
            found[others] = np.where(is_here, self._nodes[slots[others]], -1)
            others = others[~is_here & ~is_free]
        return found

    def add(self, hashes: NDArray[np.uint64], nodes: NDArray[np.int32] | int) -> None:
        """Hold more nodes, which are not held; each hash is there once."""
        nodes = np.broadcast_to(np.int32(nodes), hashes.shape)
        slots, left = (hashes >> self._bits).astype(np.int64), np.arange(len(hashes))
        is_many = 2 * (self._count + len(hashes)) > len(self._hashes)
        while len(left):
            # The last slot stays free: there every search ends.
            if is_many or slots[left].max() >= len(self._hashes) - 1:
                is_held = self._hashes != 0
                self.rebuild(
                    np.concatenate((self._hashes[is_held], hashes[left])),
                    np.concatenate((self._nodes[is_held], nodes[left])),
                )
                return
            free = left[self._hashes[slots[left]] == 0]
            self._hashes[slots[free]] = hashes[free]  # of those that want the same slot, one has it then
            is_held = self._hashes[slots[left]] == hashes[left]
            held, left = left[is_held], left[~is_held]
            self._nodes[slots[held]] = nodes[held]
            self._count += len(held)
            slots[left] += 1


def below(parents: NDArray[np.int32], names: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of nodes by their parents and the hashes of their names; never 0."""
    return mixed(names + parents.astype(np.uint64) * _PARENT) | np.uint64(1)


MOST_HASHES: Final = 256
"""Hashes that are kept of a pattern: see `rtui.table.folding`, which counts by them."""

MOST_WAITING: Final = 262_144
"""Hashes that wait to be ordered."""

_BITS: Final = np.uint64(32)

RANGE: Final = 1 << 32
"""Hashes are below this; the last bit says that a name looks like a code rather than a word."""


class DistinctNames:
    """The smallest hashes of names by node (KMV), in two arrays, whatever the order of adding and merging."""

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
