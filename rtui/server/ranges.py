"""A keyspace cut into ranges of positions that are scanned side by side, each key delivered once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtui.server.cursor import POSITION_END, Dialect, covered

Slots: TypeAlias = Sequence[tuple[int, int]]
"""Slots that a cluster node owns, as inclusive pairs."""

HEAD_KEYS: Final = 4 * 1000
"""Keys of a range's beginning that are remembered until all ranges before it have ended: more than a page, which
is what they can run over by."""


class CursorOrderError(Exception):
    """A cursor went backwards or has more than 64 bits: the server does not count as Redis and Valkey do."""


@dataclass(frozen=True, slots=True)
class Span:
    """Positions from `start` up to but without `end`."""

    start: int = 0
    end: int = POSITION_END


class Range:
    """One span under way: the cursor to send next and what its seam with the range before needs."""

    __slots__ = ("cursor", "end", "head", "head_end", "is_done", "is_started", "position", "start", "tail", "tail_end")

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
        self.tail: set[bytes] = set()
        """Keys that ranges before delivered from beyond their ends, to be left out up to `tail_end`."""
        self.tail_end = span.start

    def remember(self, keys: Sequence[bytes], reached: int) -> None:
        """Keep the keys of a page that went up to `reached` while the head is still growing."""
        if self.head is not None and self.head_end == self.position and len(self.head) < HEAD_KEYS:
            self.head.update(keys)
            self.head_end = reached


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
        return fresh

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
            follower.tail.update(page)
            follower.tail_end = max(follower.tail_end, reached)
        return [key for key in page if key not in head]

    def _cursor_at(self, position: int) -> int:
        return self.dialect.cursor(position) if self.dialect.is_ordered else self._first_cursor
