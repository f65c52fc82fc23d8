"""What keys add up to, and batches of keys with what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.report.document import KeyRecord


class StringLengths(NamedTuple):
    """What the lengths of some strings add up to: of those whose length stands for that of others."""

    keys: int
    sum: int
    """Of their lengths."""
    long_keys: int
    """Of more than MOST_SHORT bytes."""
    tiny_keys: int
    """Of at most MOST_TINY bytes."""
    tiny_ttl: tuple[int, ...]
    """Those of them whose time to live is known, by TTL_EDGES_MS."""


@dataclass(frozen=True, slots=True)
class TtlTally:
    """Times to live of a set of keys."""

    known_keys: int
    """Keys whose time to live is known."""
    no_ttl_keys: int
    no_ttl_memory_bytes: int
    """Bytes of the keys that do not expire, as far as their memory is known."""
    no_ttl_squares: int
    """The sum of the squares of these sizes."""
    no_ttl_largest: tuple[float, ...]
    """The largest of these sizes, descending, at most MOST_LARGE of them."""
    bins: tuple[int, ...]
    """Keys that expire, by TTL_EDGES_S."""
    soonest_ms: int | None
    """When the first key expires, in milliseconds since the epoch."""
    range_ms: tuple[int, int] | None
    """The shortest and the longest of what was left of the life of keys that expire, when they were asked."""


@dataclass(frozen=True, slots=True)
class Tally:
    """All that is kept of a set of keys; each part is None as long as its fact is not known of any key."""

    keys: int = 0
    memory: Sketch | None = None
    """Bytes of the keys whose memory is known."""
    ttl: TtlTally | None = None
    idle: tuple[int, ...] | None = None
    """Keys by IDLE_EDGES_S."""
    frequency: tuple[int, ...] | None = None
    """Keys by FREQUENCY_EDGES."""
    strings: StringLengths | None = None
    """The lengths of strings."""


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
