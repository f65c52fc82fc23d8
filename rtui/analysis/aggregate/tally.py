"""What a set of keys adds up to in bounded memory: keys, bytes, times to live, idle times. Tallies can be merged.

Counting key by key would cost several Python calls each. So rows wait in lists, one for each pattern, type and
combination of known facts, and are counted many at a time: a list holds `ttl, memory, ttl, memory, …`, so a column is
a slice of it, and sums, extremes and histograms are made of whole columns by functions of the standard library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import add, mul, sub
from typing import Final

from rtui.analysis.aggregate.expiry_bins import ExpiryBins, ExpiryScale
from rtui.analysis.aggregate.figures import MOST_LARGE, largest_of
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.string_lengths import TTL_EDGES_MS, StringLengths, lengths_of
from rtui.analysis.report.document import KeyRecord
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, TTL_EDGES_S
from rtui.keyspace.types import STRING

_MINUTE_MS: Final = 60_000


class TtlTally:
    """Times to live of a set of keys, and when those that expire do so."""

    def __init__(self, scale: ExpiryScale) -> None:
        self.known_keys = 0
        """Keys whose time to live is known."""
        self.no_ttl_keys = 0
        self.no_ttl_memory_bytes = 0
        """Bytes of the keys that do not expire, as far as their memory is known."""
        self.no_ttl_squares = 0
        """The sum of the squares of these sizes."""
        self.no_ttl_largest: tuple[float, ...] = ()
        """The largest of these sizes, descending, at most MOST_LARGE of them."""
        self.expiring_largest = 0
        """The largest size of a key that expires, as far as it is known."""
        self.soonest_ms: int | None = None
        """When the first key expires, in milliseconds since the epoch."""
        self.range_ms: tuple[int, int] | None = None
        """The shortest and the longest of what was left of the life of keys that expire, when they were asked."""
        self.bins = [0] * (len(TTL_EDGES_S) + 1)
        """Keys that expire, by TTL_EDGES_S."""
        self.expiries: ExpiryBins | None = None
        """Keys by the time at which they expire; None where none does."""
        self._scale = scale

    def add(self, ttl_ms: Sequence[int], memory_bytes: Sequence[int] | None, asked_at_ms: Sequence[int]) -> None:
        """Count keys; columns as in `Tally.add`."""
        no_ttl, *bins = histogram(ttl_ms, TTL_EDGES_MS)
        self.known_keys += len(ttl_ms)
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
        if memory_bytes is not None:
            self.expiring_largest = max(self.expiring_largest, *memory_bytes)
        self.range_ms = _widest(self.range_ms, (min(ttl_ms), max(ttl_ms)))
        moments_ms = list(map(add, ttl_ms, asked_at_ms))
        soonest_ms = min(moments_ms)
        self.bins = list(map(add, self.bins, bins))
        self.soonest_ms = soonest_ms if self.soonest_ms is None else min(self.soonest_ms, soonest_ms)
        self.expiries = self.expiries or ExpiryBins(self._scale)
        self.expiries.add([moment // _MINUTE_MS for moment in moments_ms], memory_bytes)

    def merge(self, other: TtlTally, *, expiries: bool) -> None:
        """Add another tally, with the times of expiry only where `expiries` is true."""
        self.known_keys += other.known_keys
        self.no_ttl_keys += other.no_ttl_keys
        self.no_ttl_memory_bytes += other.no_ttl_memory_bytes
        self.no_ttl_squares += other.no_ttl_squares
        self.no_ttl_largest = largest_of((*self.no_ttl_largest, *other.no_ttl_largest))
        self.expiring_largest = max(self.expiring_largest, other.expiring_largest)
        self.range_ms = _widest(self.range_ms, other.range_ms)
        if other.soonest_ms is not None:
            self.bins = list(map(add, self.bins, other.bins))
            self.soonest_ms = other.soonest_ms if self.soonest_ms is None else min(self.soonest_ms, other.soonest_ms)
        if expiries and other.expiries is not None:
            self.expiries = self.expiries or ExpiryBins(self._scale)
            self.expiries.merge(other.expiries)


class Tally:
    """All that is kept of a set of keys; each part is None as long as its fact is not known of any key."""

    __slots__ = ("_scale", "frequency", "idle", "keys", "memory", "strings", "ttl")

    def __init__(self, scale: ExpiryScale) -> None:
        self._scale = scale
        self.keys = 0
        self.memory: Sketch | None = None
        """Bytes of the keys whose memory is known."""
        self.ttl: TtlTally | None = None
        self.idle: list[int] | None = None
        """Keys by IDLE_EDGES_S."""
        self.frequency: list[int] | None = None
        """Keys by FREQUENCY_EDGES."""
        self.strings: StringLengths | None = None
        """The lengths of strings."""

    def add(
        self,
        keys: int,
        *,
        ttl_ms: Sequence[int] | None = None,
        memory_bytes: Sequence[int] | None = None,
        idle_s: Sequence[int] | None = None,
        frequency: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
        asked_at_ms: Sequence[int] = (),
    ) -> None:
        """Count keys; every column has a value for each of them, or is None where the fact is not known.

        `lengths` are of strings. `ttl_ms` is negative for keys that do not expire; `asked_at_ms` is when each key was
        asked, in milliseconds
        since the epoch, and needed with `ttl_ms` only.
        """
        self.keys += keys
        if memory_bytes is not None:
            self.memory = self.memory or Sketch()
            self.memory.add(memory_bytes)
        if ttl_ms is not None:
            self.ttl = self.ttl or TtlTally(self._scale)
            self.ttl.add(ttl_ms, memory_bytes, asked_at_ms)
        if idle_s is not None:
            self.idle = _added(self.idle, histogram(idle_s, IDLE_EDGES_S))
        if frequency is not None:
            self.frequency = _added(self.frequency, histogram(frequency, FREQUENCY_EDGES))
        if lengths:
            self.strings = lengths_of(lengths, ttl_ms).joined(self.strings)

    @property
    def expiring(self) -> int:
        """Keys that expire."""
        return 0 if self.ttl is None or self.ttl.expiries is None else self.ttl.expiries.total

    def merge(self, other: Tally, *, expiries: bool = True) -> None:
        """Add another tally, which stays as it is; the times of expiry only where `expiries` is true."""
        self.keys += other.keys
        if other.memory is not None:
            self.memory = self.memory or Sketch()
            self.memory.merge(other.memory)
        if other.ttl is not None:
            self.ttl = self.ttl or TtlTally(self._scale)
            self.ttl.merge(other.ttl, expiries=expiries)
        self.idle = _added(self.idle, other.idle)
        self.frequency = _added(self.frequency, other.frequency)
        if other.strings is not None:
            self.strings = other.strings.joined(self.strings)


def histogram(values: Sequence[int], edges: Sequence[int]) -> list[int]:
    """Count values by ascending edges, one bin more than there are edges: bin i holds what is below edge i."""
    ordered = sorted(values)
    ends = list(map(bisect_left, repeat(ordered), edges))
    return list(map(sub, [*ends, len(ordered)], [0, *ends]))


def _widest(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the range that holds two others, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return min(one[0], other[0]), max(one[1], other[1])


def _added(one: list[int] | None, other: list[int] | None) -> list[int] | None:
    """Return the sum of two histograms, either of which may be missing."""
    if one is None or other is None:
        return one if other is None else list(other)
    return list(map(add, one, other))


@dataclass(frozen=True, slots=True)
class InspectedBatch:
    """Keys of one type; each column is parallel to `keys`, or None where the fact is not known of any of them.

    Keys that lack a fact which others have come in a batch of their own, so no column has gaps.
    """

    key_type: bytes | None
    """The type as the server names it; None where the user may not ask for it."""
    keys: Sequence[bytes]
    ttl_ms: Sequence[int] | None = None
    """Time to live in milliseconds, NO_EXPIRY for keys that do not expire."""
    memory_bytes: Sequence[int] | None = None
    """MEMORY USAGE with its default number of samples."""
    idle_s: Sequence[int] | None = None
    frequency: Sequence[int] | None = None
    """The LFU counter, 0 … 255."""
    lengths: Sequence[int] | None = None
    """Bytes of a string, else the number of elements."""
    note: str = ""
    """What a reader has to know about these keys, such as why their memory was not asked for; a safe sentence."""
    is_sampled: bool = True
    """Whether these keys stand for others: all keys do where all are asked the same, else those chosen at random.

    Facts that are asked of a sample are known of other keys only where those were chosen by other facts.
    """
    asked_at_s: float | None = None
    """When the first answers about them came, in seconds since the epoch; None before that."""
    encodings: Sequence[bytes] | None = None

    @property
    def string_lengths(self) -> Sequence[int] | None:
        """The lengths, where these keys are strings that stand for others."""
        return self.lengths if self.is_sampled and self.key_type == STRING.name else None

    def record(self, index: int, asked_at_s: float) -> KeyRecord:
        """Return all that the batch says about one of its keys."""

        def value(column: Sequence[int] | None) -> int | None:
            return None if column is None else column[index]

        return KeyRecord(
            key=self.keys[index],
            key_type=self.key_type,
            memory_bytes=value(self.memory_bytes),
            length=value(self.lengths),
            ttl_ms=value(self.ttl_ms),
            idle_s=value(self.idle_s),
            frequency=value(self.frequency),
            asked_at_s=asked_at_s,
            note=self.note,
        )
