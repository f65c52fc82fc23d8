"""A keyspace cut into ranges of positions that are scanned side by side, each key delivered once.

Over a slow link one SCAN after the other leaves the server idle, so the positions of cursor.py are cut into ranges, of
which each has a SCAN under way: 8, or up to 64 where there are many keys or the link is long. Of eight, range 0 begins
with the cursor of position 0, range 1 with that of 2^61, and so on. A reply moves its range to the position of the
cursor that it carries; a range is done when that is at its end or beyond.

A page consists of whole buckets, so the last page of range 0 may run beyond 2^61, into keys that range 1 has
delivered from its first page. Therefore range 1 remembers the keys of its first pages (`head`) until range 0 has
ended, and they are left out of range 0's last page. Had range 1 not begun yet, it begins where range 0 has ended. Had
range 0's page run farther than range 1 has come, its keys are left out of the pages of range 1 that follow (`tail`).

While the table grows or shrinks, a page may also hold keys from before its cursor. Such repeats are noticed by hashes
of names and set `repeats_possible`; see `Ranges`.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtui.server.scan.cursor import POSITION_END, Dialect, TableWatch, covered_share

Slots: TypeAlias = Sequence[tuple[int, int]]
"""Slots that a cluster node owns, as inclusive pairs."""

HEAD_KEYS: Final = 2 * 1000
"""Keys of a range's beginning that are remembered until all ranges before it have ended: more than a page, which
is what they can run over by."""

HEAD_BYTES: Final = 4 << 20
"""The names of these keys have so many bytes together at most, and likewise those of a tail; less where there are more
than LARGE_HEADS ranges, so that all of them together have no more."""

LARGE_HEADS: Final = 8
"""Ranges whose heads may all be as large as HEAD_BYTES."""

EARLY_KEYS: Final = 64 * 1000
"""So many keys at most are remembered that pages delivered from before their ranges; beyond, repeats are possible."""

RECENT_KEYS: Final = 2 * 1000
"""About so many keys of a range's last pages are remembered, and at least its last page."""

SHORT_BYTES: Final = 100
"""Of pages whose names are this long on average, or shorter, the names are remembered, of others their hashes."""

Hashes: TypeAlias = "array[int]"
"""Hashes of names, by which a repeat is noticed however long the names are; never enough to leave a key out."""


def head_bytes(ranges: int) -> int:
    """Return how many bytes of names the head of one of so many ranges may have."""
    return HEAD_BYTES * LARGE_HEADS // max(LARGE_HEADS, ranges)


class CursorOrderError(Exception):
    """A cursor went backwards or has more than 64 bits: the server does not count as Redis and Valkey do."""


@dataclass(frozen=True, slots=True)
class CursorSpan:
    """Positions from `start` up to but without `end`."""

    start: int = 0
    end: int = POSITION_END


class Range:
    """One span under way: the cursor to send next, and keys by which repeats at its borders are recognised."""

    def __init__(self, span: CursorSpan, cursor: int, *, has_border: bool, most_bytes: int = HEAD_BYTES) -> None:
        """`most_bytes` is how many bytes the names of its head may have, and those of its tail."""
        self.start = span.start
        self.own_start = span.start
        """From where on its own pages alone have delivered: a page of a range before may have run over its start."""
        self.end = span.end
        self.position = span.start
        self.cursor = cursor
        self.is_started = False
        self.is_done = False
        self.head: set[bytes] | None = set() if has_border else None
        """Keys returned between `start` and `head_end`, while a range before is still under way."""
        self.head_end = span.start
        self.head_bytes = 0
        self.most_bytes = most_bytes
        self._recent: deque[tuple[int, tuple[bytes, ...] | Hashes]] = deque()
        self._recent_keys = 0
        self.tail: set[bytes] = set()
        """Keys that ranges before delivered from beyond their ends, to be left out up to `tail_end`."""
        self.tail_end = span.start

    def remember(self, keys: Sequence[bytes], reached: int) -> None:
        """Keep the keys of a page that went up to `reached` while the head is still growing."""
        if self.head is not None and self.head_end == self.position and len(self.head) < HEAD_KEYS:
            self.head_bytes += sum(map(len, keys))
            if self.head_bytes <= self.most_bytes:
                self.head.update(keys)
                self.head_end = reached

    def remember_recent(self, keys: Sequence[bytes], reached: int) -> None:
        """Keep what the last pages held, the last of which went up to `reached`."""
        if not keys:
            return
        is_short = sum(map(len, keys)) <= SHORT_BYTES * len(keys)
        self._recent.append((reached, tuple(keys) if is_short else hashes_of(keys)))
        self._recent_keys += len(keys)
        while len(self._recent) > 1 and self._recent_keys > RECENT_KEYS:
            self._recent_keys -= len(self._recent.popleft()[1])

    def has_had(self, keys: frozenset[bytes], since: int) -> bool:
        """Whether one of these is among the keys of the last pages that went beyond the position `since`."""
        for reached, page in reversed(self._recent):
            if reached <= since:
                break
            if not (set(map(hash, keys)).isdisjoint(page) if isinstance(page, array) else keys.isdisjoint(page)):
                return True
        return False


def hashes_of(keys: Iterable[bytes]) -> Hashes:
    """Return the hashes of names."""
    return array("q", map(hash, keys))


def checked_spans(dialect: Dialect, spans: Iterable[CursorSpan]) -> list[CursorSpan]:
    """Return spans that may be scanned side by side; ValueError for more than the whole where cursors have no order."""
    ordered = list(spans)
    if not dialect.is_ordered and ordered != [CursorSpan()]:
        raise ValueError("an opaque cursor can't be cut into ranges")
    return ordered


def visited_share(dialect: Dialect, slots: Slots | None, remaining: Iterable[CursorSpan]) -> float | None:
    """Return the share of the keyspace outside the remaining spans, 0 … 1; None where cursors have no position."""
    if not dialect.is_ordered:
        return None
    return max(0.0, min(1.0, 1.0 - sum(covered_share(span.start, span.end, slots) for span in remaining)))


class Ranges:
    """The ranges of one node in the order in which they are begun.

    A page begins with a whole bucket: the one that its cursor points into. Where the table has fewer buckets than the
    cursor has bits, since it became smaller or a range begins in the middle of a bucket, that bucket begins before the
    cursor, and the page holds keys from before it. What a range before delivers later is compared with them, on
    every page: after the table has grown, none runs over the border any more. What was delivered before is recognised
    among the keys of the last pages. Either sets `repeats_possible`.

    A repeat stays unnoticed only where the table is small for one page between two others, and every key that comes
    twice in that page is older than those remembered. A server shrinks a table that is less than an eighth full, and
    lets it grow when it is full: all of the last RECENT_KEYS keys would have to be deleted, and several times as many
    keys as are left added, between three pages. What lasts longer shows in the length of the cursors (TableWatch).
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
        """`spans` must not overlap; `slots` are what a cluster node owns.

        `first_keys` are what was delivered from before the first span already.

        An opaque dialect takes one span, the whole, and the cursor to begin with.
        """
        ordered = checked_spans(dialect, spans)
        self._first_cursor = first_cursor
        self.dialect = dialect
        self.slots = slots
        self.repeats_possible = False
        """Whether a key may have been delivered twice, since what runs over a border could not be recognised."""
        self.table = TableWatch()
        """The size of the one table that a standalone server has, by the cursors of its pages."""
        ends = {span.end for span in ordered}
        most_bytes = head_bytes(len(ordered))
        self._ranges = [
            Range(span, self._cursor_at(span.start), has_border=span.start in ends, most_bytes=most_bytes)
            for span in ordered
        ]
        self._at_start = {one.start: one for one in self._ranges}
        self._early: list[tuple[int, int, Hashes]] = []
        """What pages delivered that may be from between two positions before their own range, ahead of ranges there."""
        before = Range(CursorSpan(0, ordered[0].start if ordered else 0), 0, has_border=False)
        before.remember_recent(first_keys, before.end)
        self._sources = [before, *self._ranges] if first_keys else self._ranges
        """Whose pages a page may repeat."""

    @property
    def is_done(self) -> bool:
        """Whether every range has come to its end."""
        return all(one.is_done for one in self._ranges)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has been delivered yet."""
        return not any(one.is_started for one in self._ranges)

    def under_way(self, width: int) -> list[Range]:
        """The first `width` ranges that have not come to their end."""
        return [one for one in self._ranges if not one.is_done][:width]

    def fraction(self) -> float | None:
        """The share of the keyspace that has been visited, 0 … 1; None where cursors have no position."""
        return visited_share(self.dialect, self.slots, self.remaining())

    def remaining(self) -> list[CursorSpan]:
        """The spans that have not been visited, in order."""
        return [CursorSpan(one.position, one.end) for one in self._ranges if not one.is_done]

    def advance(self, one: Range, cursor: int, keys: list[bytes]) -> list[bytes]:
        """Move `one` on to the `cursor` its page came with; return those keys of the page that are delivered now.

        Raises CursorOrderError when the cursor does not move forward, or has more than 64 bits.
        """
        sent = one.cursor
        one.is_started = True
        one.cursor = cursor
        if not self.dialect.is_ordered:
            one.is_done = cursor == 0
            return keys
        reached = self.dialect.reached(cursor) if cursor < POSITION_END else 0
        if reached <= one.position:
            raise CursorOrderError
        if self.dialect is Dialect.STANDALONE:
            self.table.observe(cursor)
        first = one.position
        # A cursor of n bits comes from a table of at least 2^n buckets, and of two tables from the smaller one. So the
        # keys of a page begin at its position, unless its cursor is shorter than the one sent, which is so by chance,
        # too, for every fourth page. Then they may begin where a bucket of a table of 2^n buckets does.
        if self.dialect is Dialect.STANDALONE and cursor.bit_length() < sent.bit_length():
            bucket = POSITION_END >> cursor.bit_length()
            first = first // bucket * bucket
        one.remember(keys, reached)
        fresh = keys
        if one.tail:
            tail = one.tail
            fresh = [key for key in keys if key not in tail]
            if reached >= one.tail_end:
                one.tail = set()
        before, one.position = one.position, reached
        if reached >= one.end:
            fresh = self._finish(one, reached, fresh)
        if self._early or first < before:
            self._notice_repeats(one, first, before, fresh)
        if one.is_done:
            self._early = [early for early in self._early if self._is_under_way(early[0], early[1])]
        if keys and first < one.start and self._is_under_way(first, one.start):
            if sum(len(hashes) for _, _, hashes in self._early) + len(keys) > EARLY_KEYS:
                self.repeats_possible = True
            else:
                self._early.append((first, one.start, hashes_of(keys)))
        one.remember_recent(keys, reached)
        return fresh

    def _notice_repeats(self, one: Range, first: int, before: int, keys: list[bytes]) -> None:
        """Set `repeats_possible` if a page delivers what was delivered before.

        Its range went from `before` to its position with it; it may hold keys from `first` on.
        """
        if self._early:
            hashes = frozenset(map(hash, keys))
            self.repeats_possible |= any(
                first < end and begin < one.position and not hashes.isdisjoint(early)
                for begin, end, early in self._early
            )
        if first < before:
            sources, names = [one] if first >= one.own_start else self._sources, frozenset(keys)
            self.repeats_possible |= any(other.has_had(names, first) for other in sources)

    def _is_under_way(self, begin: int, end: int) -> bool:
        """Whether something between two positions has not been visited."""
        return any(not one.is_done and one.position < end and begin < one.end for one in self._ranges)

    def _finish(self, one: Range, reached: int, page: list[bytes]) -> list[bytes]:
        """End a range whose last page went up to `reached`; return the page without what later ranges delivered."""
        one.is_done = True
        follower = self._at_start.get(one.end)
        while follower is not None and follower.start < reached:
            page = self._settle_overrun(follower, min(reached, follower.end), page)
            follower = self._at_start.get(follower.end)
        first = min((one.start for one in self._ranges if not one.is_done), default=POSITION_END)
        for other in self._ranges:
            if other.start <= first:
                other.head = None  # nothing can run over into it any more
        return page

    def _settle_overrun(self, follower: Range, reached: int, page: list[bytes]) -> list[bytes]:
        """Return a page without the keys of a later range up to `reached` that this has delivered."""
        follower.own_start = max(follower.own_start, reached)
        if not follower.is_started:
            follower.position = follower.head_end = max(follower.position, reached)
            follower.is_done = follower.position >= follower.end
            if not follower.is_done:
                follower.cursor = self._cursor_at(follower.position)
            return page
        head = follower.head
        if head is None or (follower.head_end < reached and follower.head_end < follower.position):
            self.repeats_possible = True
            return page
        if follower.position < reached:
            if sum(map(len, page)) > follower.most_bytes:
                self.repeats_possible = True
            else:
                follower.tail.update(page)
                follower.tail_end = max(follower.tail_end, reached)
        return [key for key in page if key not in head]

    def _cursor_at(self, position: int) -> int:
        return self.dialect.cursor(position) if self.dialect.is_ordered else self._first_cursor
