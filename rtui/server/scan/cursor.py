"""The position of a SCAN cursor: how far a scan is, and where another may begin.

Redis and Valkey visit the buckets of their hash table by incrementing the bucket number from its highest bit down. A
table of 8 buckets is visited in the order 0, 4, 2, 6, 1, 5, 3, 7, and the cursors returned are 4, 2, 6, 1, 5, 3, 7, 0.
Reverse the three bits of each, and they count: 1, 2, 3, … So the reversed cursor, as a number of 64 bits, is a
`position` that only grows from 0 to 2^64: cursor 2 (010) stands at 2^62, so a quarter has been visited. Positions do
not depend on the size of the table: they stay valid when it grows to 16 buckets. And a scan may begin at any of them:
at 2^63, which is the cursor 1, it returns the second half of the keys.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Final

from rtui.server.wire.identity import ServerIdentity

POSITION_END: Final = 1 << 64
"""One past the last position: the whole keyspace is the half-open range 0 … POSITION_END."""

SLOT_BITS: Final = 14
"""Low bits of a cursor that hold the slot, where a server keeps one table a slot (kvstore.c, Redis 7.4, Valkey 8.0)."""

_SLOT_SPAN: Final = POSITION_END >> SLOT_BITS
_SLOT_MASK: Final = (1 << SLOT_BITS) - 1
_REVERSED_BYTES: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))

_SLOTTED_SINCE: Final = {"redis": (7, 4), "valkey": (8, 0)}


def bitreverse64(value: int) -> int:
    """The 64 bits of `value` in opposite order; ValueError unless it is 0 … 2^64 - 1."""
    if not 0 <= value < POSITION_END:
        raise ValueError("not a number of 64 bits")
    return int.from_bytes(value.to_bytes(8, "little").translate(_REVERSED_BYTES), "big")


class Dialect(enum.Enum):
    """How a server counts its cursors (dict.c, `dictScan`; hashtable.c, `hashtableScan`)."""

    STANDALONE = "standalone"
    """One table: the whole cursor is a reversed bucket number."""

    SLOTTED = "slotted"
    """Cluster mode of newer servers, one table a slot: `table cursor << 14 | slot`, slots in ascending order."""

    OPAQUE = "opaque"
    """An unknown order of cursors: only 0 is known, as the end of the scan."""

    @property
    def is_ordered(self) -> bool:
        return self is not Dialect.OPAQUE

    def position(self, cursor: int) -> int:
        """The position of a cursor, 0 … 2^64 - 1; only for an ordered dialect, ValueError for more than 64 bits."""
        if self is Dialect.STANDALONE:
            return bitreverse64(cursor)
        if self is Dialect.SLOTTED and cursor < POSITION_END:
            return (cursor & _SLOT_MASK) * _SLOT_SPAN + (bitreverse64(cursor >> SLOT_BITS) >> SLOT_BITS)
        raise ValueError("an opaque cursor, or one of more than 64 bits, has no position")

    def cursor(self, position: int) -> int:
        """The cursor at `position`, 0 … 2^64 - 1; the opposite of `position`."""
        if self is Dialect.STANDALONE:
            return bitreverse64(position)
        if self is Dialect.SLOTTED:
            slot, within = divmod(position, _SLOT_SPAN)
            return bitreverse64(within << SLOT_BITS) << SLOT_BITS | slot
        raise ValueError("an opaque cursor has no position")

    def reached(self, cursor: int) -> int:
        """The position up to which a reply with this `cursor` has visited: 0 is the end."""
        return self.position(cursor) if cursor else POSITION_END


def dialect_of(server: ServerIdentity) -> Dialect:
    """How this server counts its cursors."""
    since = _SLOTTED_SINCE.get(server.product or "other")
    if since is None or server.cluster_enabled is None:
        return Dialect.OPAQUE
    if not server.cluster_enabled:
        return Dialect.STANDALONE
    if server.version is None:
        return Dialect.OPAQUE
    return Dialect.SLOTTED if server.version[:2] >= since else Dialect.STANDALONE


def covered_share(begin: int, end: int, slots: Sequence[tuple[int, int]] | None = None) -> float:
    """The share of the keyspace, 0 … 1, between two positions; of the owned `slots` (inclusive pairs) if given."""
    if slots is None:
        return (end - begin) / POSITION_END
    owned = sum(last - first + 1 for first, last in slots)
    overlap = sum(max(0, min(end, (last + 1) * _SLOT_SPAN) - max(begin, first * _SLOT_SPAN)) for first, last in slots)
    return overlap / (owned * _SLOT_SPAN) if owned else 1.0


def slots_between(begin: int, end: int) -> tuple[range, bool]:
    """Return the slots that positions of a slotted cursor lie in, and whether the first one has been begun before."""
    first, within = divmod(begin, _SLOT_SPAN)
    return range(first, -(-end // _SLOT_SPAN)), within > 0


def slot_span(first: int, last: int) -> tuple[int, int]:
    """Return the positions of slots where cursors go slot by slot, as a half-open range."""
    return first * _SLOT_SPAN, (last + 1) * _SLOT_SPAN


def equal_ranges(k: int) -> list[tuple[int, int]]:
    """The keyspace cut into `k` half-open ranges of positions; a power of two, so that cuts fall between buckets."""
    if k < 1 or k & (k - 1):
        raise ValueError(f"a keyspace is cut into a power of two of ranges, not {k}")
    width = POSITION_END // k
    return [(index * width, (index + 1) * width) for index in range(k)]


FIRST_KEYS: Final = 10
"""Keys at least that are remembered from the beginning of a scan, in whole pages."""


class BeginningWatch:
    """Notices that a server has begun a scan again by itself: the keys of its beginning come once more.

    Where cursors have no position nothing else tells. A server may list single keys twice, so half of them have to.
    """

    def __init__(self, first_keys: Iterable[bytes] = ()) -> None:
        self._first = set(map(hash, first_keys))
        self._again: set[int] = set()

    def observe(self, keys: Iterable[bytes]) -> bool:
        """Learn from the next page; return whether the scan has begun again."""
        page = set(map(hash, keys))
        self._again |= page & self._first
        if 2 * len(self._again) >= max(2, len(self._first)):
            return True
        if len(self._first) < FIRST_KEYS:
            self._first |= page
        return False
