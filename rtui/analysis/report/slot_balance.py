"""How evenly a figure lies over the 16,384 hash slots: the fullest slot, and what each node of a cluster would hold."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.estimates import binomial_tail
from rtui.keyspace.slots import SLOTS

UNLIKELY: Final = 0.01
"""A fullest slot that an even spread would show less often than this is not chance."""


@dataclass(frozen=True, slots=True)
class Skew:
    """How far the fullest slot is above an even spread."""

    slot: int
    """The slot with most keys, the lowest of several."""
    keys: int
    mean: float
    """Keys a slot, over all slots looked at."""
    chance: float
    """At most how probable it is that any slot of an even spread of so many keys is that full."""

    @property
    def ratio(self) -> float:
        """The fullest slot in means; 0 where there are no keys."""
        return self.keys / self.mean if self.mean else 0.0

    @property
    def is_chance(self) -> bool:
        """Whether an even spread explains it."""
        return self.chance >= UNLIKELY


def skew(keys: Sequence[int], owned: Sequence[tuple[int, int]] | None = None) -> Skew:
    """Hold the fullest of all 16,384 slots, or of the `owned` ones (inclusive pairs), against an even spread.

    Each key of an even spread falls into one of n slots by chance, so a slot holds a binomial number of them. The
    probability that the fullest holds so many is at most n times that of one slot (Bonferroni), and hardly less.
    """
    slots = range(SLOTS) if owned is None else [slot for first, last in owned for slot in range(first, last + 1)]
    if not slots:
        return Skew(0, 0, 0.0, 1.0)
    total = sum(keys[slot] for slot in slots)
    fullest = max(slots, key=lambda slot: (keys[slot], -slot))
    tail = binomial_tail(keys[fullest], total, 1 / len(slots))
    return Skew(fullest, keys[fullest], total / len(slots), min(1.0, len(slots) * tail))


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What one node of a cluster would hold."""

    first: int
    """Its first slot."""
    last: int
    """Its last slot, inclusive."""
    load: int
    """Sum over its slots of whatever was given: keys or bytes."""


def node_loads(loads: Sequence[int], nodes: int) -> tuple[NodeLoad, ...]:
    """Cut the 16,384 slots among n primaries just as `redis-cli --cluster create` does, and sum up each part.

    redis-cli counts in single precision (clusterManagerCommandCreate in redis-cli.c), and so does this.
    """
    if not 1 <= nodes <= SLOTS:
        raise ValueError(f"{nodes} nodes cannot share {SLOTS} slots")
    width = _single(SLOTS / nodes)
    cursor = 0.0
    first = 0
    found = []
    for node in range(nodes):
        last = math.floor(_single(_single(cursor + width) - 1) + 0.5)
        last = SLOTS - 1 if last >= SLOTS or node == nodes - 1 else max(last, first)
        found.append(NodeLoad(first, last, sum(loads[first : last + 1])))
        first = last + 1
        cursor = _single(cursor + width)
    return tuple(found)


def _single(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
