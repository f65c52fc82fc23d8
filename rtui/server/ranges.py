"""A keyspace cut into ranges of positions that are scanned side by side, each key delivered once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtui.server.cursor import POSITION_END, Dialect, covered

Slots: TypeAlias = Sequence[tuple[int, int]]
"""Slots that a cluster node owns, as inclusive pairs."""

HEAD_KEYS: Final = 4 * 1000
"""Keys of a range's beginning that are remembered until all ranges before it have ended: more than a page, which
is what they can run over by."""

HEAD_BYTES: Final = 4 << 20
"""The names of these keys have so many bytes together at most, and likewise those of a tail."""

RECENT_KEYS: Final = 2 * 1000
"""About so many keys of a range's last pages are remembered, and at least its last page ..."""

RECENT_BYTES: Final = 1 << 20
"""... unless their names have more bytes together."""


class CursorOrderError(Exception):
    """A cursor went backwards or has more than 64 bits: the server does not count as Redis and Valkey do."""


@dataclass(frozen=True, slots=True)
class Span:
    """Positions from `start` up to but without `end`."""

    start: int = 0
    end: int = POSITION_END


class Range:
    """One span under way: the cursor to send next and what its seam with the range before needs."""

    __slots__ = (
        "_recent",
        "_recent_bytes",
        "_recent_keys",
        "cursor",
        "end",
        "head",
        "head_bytes",
        "head_end",
        "is_done",
        "is_started",
        "position",
        "start",
        "tail",
        "tail_end",
    )

    def __init__(self, span: Span, cursor: int, *, has_seam: bool) -> None:
        self.start = span.start
        self.end = span.end
        self.position = span.start
        self.cursor = cursor
        self.is_started = False
        self.is_done = False
        self.head: set[bytes] | None = set() if has_seam else None
        """Keys returned between `start` and `head_end`, while a range before is still under way."""
        self.head_end = span.start
        self.head_bytes = 0
        self._recent: deque[tuple[int, Sequence[bytes], int]] = deque()
        self._recent_bytes = 0
        self._recent_keys = 0
        self.tail: set[bytes] = set()
        """Keys that ranges before delivered from beyond their ends, to be left out up to `tail_end`."""
        self.tail_end = span.start

    def remember(self, keys: Sequence[bytes], reached: int) -> None:
        """Keep the keys of a page that went up to `reached` while the head is still growing."""
        if self.head is not None and self.head_end == self.position and len(self.head) < HEAD_KEYS:
            self.head_bytes += sum(map(len, keys))
            if self.head_bytes <= HEAD_BYTES:
                self.head.update(keys)
                self.head_end = reached

    def remember_recent(self, keys: Sequence[bytes], reached: int) -> None:
        """Keep the keys of the last pages, the last of which went up to `reached`."""
        size = sum(map(len, keys))
        if size > RECENT_BYTES:
            keys, size = (), 0
        self._recent.append((reached, keys, size))
        self._recent_keys += len(keys)
        self._recent_bytes += size
        while len(self._recent) > 1 and (self._recent_keys > RECENT_KEYS or self._recent_bytes > RECENT_BYTES):
            _, keys, size = self._recent.popleft()
            self._recent_keys -= len(keys)
            self._recent_bytes -= size

    def has_had(self, keys: set[bytes], since: int) -> bool:
        """Whether one of these is among the keys of the last pages that went beyond the position `since`."""
        return any(not keys.isdisjoint(page) for reached, page, _ in self._recent if reached > since)


class Ranges:
    """The ranges of one node in the order in which they are to be taken up.

    A page ends with a whole bucket at or behind the end of its range, so the last page of a range may hold keys of the
    next one. Those are told apart by name: the next range's first keys are remembered, what they hold is left out.
    """

    def __init__(
        self,
        dialect: Dialect,
        spans: Iterable[Span] = (Span(),),
        *,
        slots: Slots | None = None,
        first_cursor: int = 0,
    ) -> None:
        """`spans` must not overlap; `slots` are what a cluster node owns.

        An opaque dialect takes one span, the whole, and the cursor to begin with.
        """
        ordered = list(spans)
        if not dialect.is_ordered and ordered != [Span()]:
            raise ValueError("an opaque cursor can't be cut into ranges")
        self._first_cursor = first_cursor
        self.dialect = dialect
        self.slots = slots
        self.repeats_possible = False
        """Whether a key may have been delivered twice, since what runs over a seam could not be told apart."""
        ends = {span.end for span in ordered}
        self._ranges = [Range(span, self._cursor_at(span.start), has_seam=span.start in ends) for span in ordered]
        self._at_start = {one.start: one for one in self._ranges}

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
        found = []
        for one in self._ranges:
            if not one.is_done:
                found.append(one)
                if len(found) == width:
                    break
        return found

    def fraction(self) -> float | None:
        """The share of the keyspace that has been gone through, 0 … 1; None where cursors say nothing."""
        if not self.dialect.is_ordered:
            return None
        left = sum(covered(one.position, one.end, self.slots) for one in self._ranges if not one.is_done)
        return max(0.0, min(1.0, 1.0 - left))

    def remaining(self) -> list[Span]:
        """What has not been gone through, in order."""
        return [Span(one.position, one.end) for one in self._ranges if not one.is_done]

    def arrived(self, one: Range, cursor: int, keys: list[bytes]) -> list[bytes]:
        """Move `one` on to the `cursor` its page came with; return those keys of the page that are delivered now.

        Raises CursorOrderError when the cursor does not move forward, or has more than 64 bits.
        """
        sent = one.cursor
        one.is_started = True
        one.cursor = cursor
        if not self.dialect.is_ordered:
            one.is_done = cursor == 0
            return keys
        if cursor >= POSITION_END:
            raise CursorOrderError
        reached = self.dialect.reached(cursor)
        if reached <= one.position:
            raise CursorOrderError
        before = one.position
        one.remember(keys, reached)
        fresh = keys
        if one.tail:
            tail = one.tail
            fresh = [key for key in keys if key not in tail]
            if reached >= one.tail_end:
                one.tail = set()
        one.position = reached
        if reached >= one.end:
            fresh = self._finish(one, reached, fresh)
        if cursor.bit_length() < sent.bit_length():
            self._look_for_repeats(one, before, cursor, fresh)
        one.remember_recent(keys, reached)
        return fresh

    def _look_for_repeats(self, one: Range, position: int, cursor: int, keys: list[bytes]) -> None:
        """See whether what a page from `position` delivers was delivered before, as when the table became smaller.

        A cursor of n bits comes from a table of at least 2^n buckets. Only a table that is smaller than the one that
        the cursor sent comes from can return keys again: those of the whole bucket that this cursor points into. Then
        the cursor of the reply is shorter than the one sent, which is so by chance, too, for every fourth page.
        """
        if self.dialect is not Dialect.STANDALONE or not keys:
            return
        bucket = POSITION_END >> cursor.bit_length()
        since = position // bucket * bucket
        ranges = [one] if since >= one.start else self._ranges
        names = set(keys)
        if any(other.has_had(names, since) for other in ranges):
            self.repeats_possible = True

    def _finish(self, one: Range, reached: int, page: list[bytes]) -> list[bytes]:
        """End a range whose last page went up to `reached`; return the page without what later ranges delivered."""
        one.is_done = True
        follower = self._at_start.get(one.end)
        while follower is not None and follower.start < reached:
            page = self._run_over(follower, min(reached, follower.end), page)
            follower = self._at_start.get(follower.end)
        self._drop_heads()
        return page

    def _drop_heads(self) -> None:
        """Forget the heads that nothing can run over into any more."""
        first = min((one.start for one in self._ranges if not one.is_done), default=POSITION_END)
        for one in self._ranges:
            if one.start <= first:
                one.head = None

    def _run_over(self, follower: Range, reached: int, page: list[bytes]) -> list[bytes]:
        """Settle what a page holds of a later range, up to the position `reached`."""
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
            if sum(map(len, page)) > HEAD_BYTES:
                self.repeats_possible = True
            else:
                follower.tail.update(page)
                follower.tail_end = max(follower.tail_end, reached)
        return [key for key in page if key not in head]

    def _cursor_at(self, position: int) -> int:
        return self.dialect.cursor(position) if self.dialect.is_ordered else self._first_cursor
