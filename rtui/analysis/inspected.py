"""What a pass hands on: keys of one type and what was learnt of each, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NO_EXPIRY: int = -1
"""The time to live of a key that does not expire, as PTTL says it."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """A batch of keys of one type; each column is parallel to `keys`, or None where the fact is known of none of them.

    Keys of which something is missing that others have come in a batch of their own, so that no column has holes.
    """

    kind: bytes | None
    """The type as the server names it; None where it may not be asked."""
    keys: Sequence[bytes]
    ttl_ms: Sequence[int] | None = None
    """What is left of the life in milliseconds, NO_EXPIRY for keys that do not expire."""
    memory_bytes: Sequence[int] | None = None
    """MEMORY USAGE with its default samples."""
    idle_s: Sequence[int] | None = None
    frequency: Sequence[int] | None = None
    """The LFU counter, 0 … 255."""
    lengths: Sequence[int] | None = None
    """Bytes of a string, else the number of elements."""
    note: str = ""
    """What one has to know of these keys, such as why their memory was not asked; a safe sentence."""
