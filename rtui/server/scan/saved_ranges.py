"""Where all ranges of a scan stand, so that a later run goes on with each key delivered once.

Other than a savepoint, this has the names at the borders of ranges: a range that ends leaves out what the first pages
of the next one have delivered, and these are of the run before. Their bytes are bounded as those of `Range.head` are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from rtui.server.scan.cursor import POSITION_END, TableWatch
from rtui.server.scan.pace import MAX_WIDTH
from rtui.server.scan.ranges import CursorSpan, RangeState

_POSITIONS: Final = 6

Position: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{1,17}\Z")]
"""In hexadecimal: 2^64 is no number that a file can hold."""


class SavedRange(Struct, frozen=True, array_like=True):
    """One range, as `RangeState` has it."""

    positions: Annotated[tuple[Position, ...], Meta(min_length=_POSITIONS, max_length=_POSITIONS)]
    is_started: bool
    is_done: bool
    head: tuple[bytes, ...] | None
    head_bytes: int
    tail: tuple[bytes, ...]


class SavedRanges(Struct, frozen=True):
    """All ranges in the order in which they are scanned, and what is known of the table of keys."""

    ranges: Annotated[tuple[SavedRange, ...], Meta(min_length=1, max_length=MAX_WIDTH)]
    repeats_possible: bool
    table_bits: Annotated[int, Meta(ge=0, le=64)]
    table_has_shrunk: bool

    @classmethod
    def of(cls, states: Sequence[RangeState], repeats_possible: bool, table: TableWatch) -> SavedRanges:
        """Return what goes into a file."""
        ranges = [
            SavedRange(
                tuple([f"{one:x}" for one in positions]),
                is_started,
                is_done,
                None if head is None else tuple(head),
                head_bytes,
                tuple(tail),
            )
            for positions, is_started, is_done, head, head_bytes, tail in states
        ]
        return cls(tuple(ranges), repeats_possible, table.bits, table.has_shrunk)

    def states(self) -> list[RangeState]:
        """Return what `Ranges.restore` takes."""
        return [
            (
                tuple(int(position, 16) for position in one.positions),
                one.is_started,
                one.is_done,
                one.head,
                one.head_bytes,
                one.tail,
            )
            for one in self.ranges
        ]

    def spans(self) -> tuple[CursorSpan, ...]:
        """Return the ranges from their starts to their ends."""
        return tuple(CursorSpan(positions[0], positions[1]) for positions, *_ in self.states())

    @property
    def is_sound(self) -> bool:
        """Whether a scan can have saved this."""
        spans = self.spans()
        are_apart = all(one.end <= other.start for one, other in pairwise(spans))
        if not are_apart or not all(span.start < span.end <= POSITION_END for span in spans):
            return False
        return all(
            max(positions) <= POSITION_END and (is_done or positions[0] <= positions[2] < positions[1])
            for positions, _, is_done, *_ in self.states()
        )
