"""A batch of inspected keys: what an inspection hands to the aggregates, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtui.analysis.report.document import KeyRecord


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

    def record(self, index: int, asked_at_s: float) -> KeyRecord:
        """Return all that the batch says about one of its keys."""

        def value(column: Sequence[int] | None) -> int | None:
            return None if column is None else column[index]

        return KeyRecord(
            key=self.keys[index],
            kind=self.key_type,
            memory_bytes=value(self.memory_bytes),
            length=value(self.lengths),
            ttl_ms=value(self.ttl_ms),
            idle_s=value(self.idle_s),
            frequency=value(self.frequency),
            asked_at_s=asked_at_s,
            note=self.note,
        )
