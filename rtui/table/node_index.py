"""Finds nodes of a tree by their parent and the hash of their name, of thousands of keys at once."""

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
