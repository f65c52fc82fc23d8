"""A keyspace cut into ranges of positions that are scanned side by side, each key delivered once.

Over a slow link one SCAN after the other leaves the server idle, so the positions of cursor.py are cut into ranges, of
which each has a SCAN under way: 8, or up to 64 where there are many keys or the link is long. Of eight, range 0 begins
with the cursor of position 0, range 1 with that of 2^61, and so on. A reply moves its range to the position of the
cursor that it carries; a range is done when that is at its end or beyond.

A page consists of whole buckets, so the last page of range 0 may run beyond 2^61, into keys that range 1 has
delivered from its first page. Therefore range 1 remembers the keys of its first pages until range 0 has
ended, and they are left out of range 0's last page. Had range 1 not begun yet, it begins where range 0 has ended. Had
range 0's page run farther than range 1 has come, its keys are left out of the pages of range 1 that follow.

While the table grows or shrinks, a page may also hold keys from before its cursor. Such repeats are noticed by hashes
of names and set `repeats_possible`; see `Ranges`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtui.server.engine import _ranges
from rtui.server.scan.cursor import POSITION_END, Dialect, covered_share

Slots: TypeAlias = Sequence[tuple[int, int]]
"""Slots that a cluster node owns, as inclusive pairs."""

Range: TypeAlias = _ranges.CompiledRange
"""One span under way: its borders, how far it is, and the cursor to send next."""

HEAD_KEYS: Final = 2 * 1000
"""Keys remembered from the beginning of a range until all ranges before it have ended: more than a page, the most that
those can run over by."""

HEAD_BYTES: Final = 4 << 20
"""Most bytes of the names of these keys together, and likewise of a tail's; less for each with more than LARGE_HEADS
ranges, so that the total stays the same."""

LARGE_HEADS: Final = 8
"""Ranges whose heads may all be as large as HEAD_BYTES."""

EARLY_KEYS: Final = 64 * 1000
"""Most remembered keys that pages delivered from before their ranges; beyond, repeats are possible."""

RECENT_KEYS: Final = 2 * 1000
"""Keys remembered from the last pages of a range, roughly; at least its last page."""

PATIENCE: Final = 24
"""Replies in a row whose cursors are too short for the table before it counts as smaller: by chance once in 2^24."""

_DIALECTS: Final = (Dialect.STANDALONE, Dialect.SLOTTED, Dialect.OPAQUE)
"""In the order of their numbers in the engine."""


class CursorOrderError(Exception):
    """A cursor went backwards or has more than 64 bits: the server does not count as Redis and Valkey do."""


@dataclass(frozen=True, slots=True)
class CursorSpan:
    """Positions from `start` up to but without `end`."""

    start: int = 0
    end: int = POSITION_END


class Ranges(_ranges.CompiledRanges):
    """The ranges of one node in the order in which they are begun.

    A page begins with a whole bucket: the one that its cursor points into. If the table has fewer buckets than the
    cursor has bits, since it became smaller or a range begins in the middle of a bucket, that bucket begins before the
    cursor, and the page holds keys from before it. Keys that the range before delivers later are compared with them, on
    every page: after the table has grown, none runs over the border any more. Keys delivered before are recognised
    among the keys of the last pages. Either sets `repeats_possible`.

    A repeat stays unnoticed only if the table is small for one page between two others, and every repeated key of that
    page is older than those remembered. A server shrinks a table that is less than an eighth full, and lets it grow
    when it is full: all of the last RECENT_KEYS keys would have to be deleted, and several times as many keys as are
    left added, between three pages. A longer change shows in the length of the cursors, by which `table` follows its
    size.
    """

    def __init__(
        self,
        dialect: Dialect,
        spans: Iterable[CursorSpan] = (CursorSpan(),),
        *,
        slots: Slots | None = None,
        first_cursor: int = 0,
        first_keys: Sequence[bytes] = (),
    ) -> None:
        """`spans` must not overlap; `slots` are the slots that a cluster node owns.

        `first_keys` were already delivered, from before the first span. An opaque dialect takes one span, the whole
        keyspace, and the cursor to begin with; ValueError for others.
        """
        ordered = list(spans)
        if not dialect.is_ordered and ordered != [CursorSpan()]:
            raise ValueError("an opaque cursor can't be cut into ranges")
        self.dialect = dialect
        self.slots = slots
        super().__init__(
            _DIALECTS.index(dialect),
            [(span.start, span.end) for span in ordered],
            first_cursor=first_cursor,
            first_keys=first_keys,
            head_keys=HEAD_KEYS,
            head_bytes=HEAD_BYTES * LARGE_HEADS // max(LARGE_HEADS, len(ordered)),
            early_keys=EARLY_KEYS,
            recent_keys=RECENT_KEYS,
            patience=PATIENCE,
            order_error=CursorOrderError,
        )

    def fraction(self) -> float | None:
        """The share of the keyspace that has been visited, 0 … 1; None where cursors have no position."""
        if not self.dialect.is_ordered:
            return None
        left = sum([covered_share(span.start, span.end, self.slots) for span in self.remaining()])
        return max(0.0, min(1.0, 1.0 - left))

    def remaining(self) -> list[CursorSpan]:
        return [CursorSpan(position, end) for position, end in self.unvisited()]
