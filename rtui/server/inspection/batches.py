"""Batches of keys with their known facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InspectedBatch:
    """Keys of one type; each column is parallel to `keys`, or None if the fact is unknown for all of them.

    Keys that lack a fact come in a batch of their own, so no column has gaps.
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
    """A note for the reader about these keys, such as why their memory was not asked for; a safe sentence."""
    is_sampled: bool = True
    """Whether these keys stand for others: all keys do where all are asked the same, else those chosen at random.

    Facts that are asked of a sample are known of other keys only where those were chosen by other facts.
    """
    asked_at_s: float | None = None
    """When the first answers about them came, in seconds since the epoch; None before that."""
    encodings: Sequence[bytes] | None = None
