"""What a set of keys adds up to, in bounded memory: keys, bytes, life left, idleness. Tallies add up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import add, mul, sub
from typing import Final

from rtui.analysis.aggregate.expiry_bins import ExpiryBins, ExpiryScale
from rtui.analysis.aggregate.sample_bytes import MOST_LARGE, largest_of
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.report.document import FREQUENCY_EDGES, IDLE_EDGES_S, TTL_EDGES_S

_TTL_EDGES_MS: Final = (0, *(edge * 1000 for edge in TTL_EDGES_S))
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Facts of keys, column by column, all of one length; None where a fact is known of none of them."""

    ttl_ms: Sequence[int] | None = None
    """What is left of the life, negative for keys that do not expire."""
    memory_bytes: Sequence[int] | None = None
    idle_s: Sequence[int] | None = None
    frequency: Sequence[int] | None = None
    asked_at_ms: Sequence[int] = ()
    """When each key was asked, in milliseconds since the epoch; needed where there is a life left."""


class Life:
    """What is left of the life of keys."""

    __slots__ = (
        "_scale",
        "bins",
        "expiries",
        "known",
        "no_ttl_keys",
        "no_ttl_largest",
        "no_ttl_memory_bytes",
        "no_ttl_squares",
        "soonest_ms",
    )

    def __init__(self, scale: ExpiryScale) -> None:
        self.known = 0
        """Keys whose life is known."""
        self.no_ttl_keys = 0
        self.no_ttl_memory_bytes = 0
        """Bytes of those without end, as far as their memory is known."""
        self.no_ttl_squares = 0
        """The sum of the squares of these bytes."""
        self.no_ttl_largest: tuple[float, ...] = ()
        """The largest of them, descending, MOST_LARGE at most."""
        self.soonest_ms: int | None = None
        """When the first of them expires, in milliseconds since the epoch."""
        self.bins = [0] * (len(TTL_EDGES_S) + 1)
        """Keys that expire, by TTL_EDGES_S."""
        self.expiries: ExpiryBins | None = None
        """Keys that expire, by when; None where none does."""
        self._scale = scale

    def add(self, ttl_ms: Sequence[int], memory_bytes: Sequence[int] | None, asked_at_ms: Sequence[int]) -> None:
        """Take up the life left of keys; columns as in `Columns`."""
        no_ttl, *bins = histogram(ttl_ms, _TTL_EDGES_MS)
        self.known += len(ttl_ms)
        self.no_ttl_keys += no_ttl
        if no_ttl and memory_bytes is not None:
            lasting = memory_bytes
            if no_ttl < len(ttl_ms):
                lasting = list(compress(memory_bytes, map((0).__gt__, ttl_ms)))
            self.no_ttl_memory_bytes += sum(lasting)
            self.no_ttl_squares += sum(map(mul, lasting, lasting))
            if len(self.no_ttl_largest) < MOST_LARGE or max(lasting) > self.no_ttl_largest[-1]:
                self.no_ttl_largest = largest_of((*self.no_ttl_largest, *lasting))
        if no_ttl == len(ttl_ms):
            return
        if no_ttl:
            expiring = list(map((0).__le__, ttl_ms))
            ttl_ms = list(compress(ttl_ms, expiring))
            asked_at_ms = list(compress(asked_at_ms, expiring))
            memory_bytes = None if memory_bytes is None else list(compress(memory_bytes, expiring))
        moments = list(map(add, ttl_ms, asked_at_ms))
        self.bins = list(map(add, self.bins, bins))
        self.soonest_ms = _least(self.soonest_ms, min(moments))
        self.expiries = self.expiries or ExpiryBins(self._scale)
        self.expiries.add([moment // _MINUTE_MS for moment in moments], memory_bytes)

    def merge(self, other: Life, *, expiries: bool = True) -> None:
        """Take up what another one has, when keys expire only if asked to."""
        self.known += other.known
        self.no_ttl_keys += other.no_ttl_keys
        self.no_ttl_memory_bytes += other.no_ttl_memory_bytes
        self.no_ttl_squares += other.no_ttl_squares
        self.no_ttl_largest = largest_of((*self.no_ttl_largest, *other.no_ttl_largest))
        if other.known > other.no_ttl_keys:
            self.bins = list(map(add, self.bins, other.bins))
            self.soonest_ms = _least(self.soonest_ms, other.soonest_ms)
        if expiries and other.expiries is not None:
            self.expiries = self.expiries or ExpiryBins(self._scale)
            self.expiries.merge(other.expiries)


class Tally:
    """All that is kept of a set of keys; each part is None as long as no key came with its fact."""

    __slots__ = ("_scale", "frequency", "idle", "keys", "life", "memory")

    def __init__(self, scale: ExpiryScale) -> None:
        self._scale = scale
        self.keys = 0
        self.memory: Sketch | None = None
        """Bytes of the keys whose memory is known."""
        self.life: Life | None = None
        self.idle: list[int] | None = None
        """Keys by IDLE_EDGES_S."""
        self.frequency: list[int] | None = None
        """Keys by FREQUENCY_EDGES."""

    def add(self, keys: int, columns: Columns) -> None:
        """Take up so many keys; every column that is there has as many values."""
        self.keys += keys
        if columns.memory_bytes is not None:
            self.memory = self.memory or Sketch()
            self.memory.add(columns.memory_bytes)
        if columns.ttl_ms is not None:
            self.life = self.life or Life(self._scale)
            self.life.add(columns.ttl_ms, columns.memory_bytes, columns.asked_at_ms)
        if columns.idle_s is not None:
            self.idle = added(self.idle, histogram(columns.idle_s, IDLE_EDGES_S))
        if columns.frequency is not None:
            self.frequency = added(self.frequency, histogram(columns.frequency, FREQUENCY_EDGES))

    def merge(self, other: Tally, *, expiries: bool = True) -> None:
        """Take up what another one has, when keys expire only if asked to; the other stays as it is."""
        self.keys += other.keys
        if other.memory is not None:
            self.memory = self.memory or Sketch()
            self.memory.merge(other.memory)
        if other.life is not None:
            self.life = self.life or Life(self._scale)
            self.life.merge(other.life, expiries=expiries)
        self.idle = added(self.idle, other.idle)
        self.frequency = added(self.frequency, other.frequency)


def histogram(values: Sequence[int], edges: Sequence[int]) -> list[int]:
    """Count values by ascending edges, one bin more than there are: bin i holds what is below edge i."""
    ordered = sorted(values)
    ends = list(map(bisect_left, repeat(ordered), edges))
    return list(map(sub, [*ends, len(ordered)], [0, *ends]))


def added(mine: list[int] | None, more: list[int] | None) -> list[int] | None:
    """The sum of two histograms, of which either may not be there."""
    if mine is None or more is None:
        return mine if more is None else list(more)
    return list(map(add, mine, more))


def _least(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
