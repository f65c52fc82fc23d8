"""A server to scan: how to reach it, how it counts its cursors, and what of it is to be scanned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rtui.server.cursor import Dialect, pieces
from rtui.server.lane_source import BulkSource
from rtui.server.pace import MAX_COUNT, MAX_WIDTH
from rtui.server.ranges import Ranges, Slots, Span
from rtui.server.rider import Rider

CUT_FROM: Final = MAX_WIDTH * MAX_COUNT
"""Keys from which on a keyspace is cut into ranges; below, a page would reach over a whole one."""


@dataclass(frozen=True, slots=True)
class ScanNode:
    """A server to scan: how to reach it, how it counts, and what of it (None: everything)."""

    source: BulkSource
    dialect: Dialect = Dialect.STANDALONE
    spans: tuple[Span, ...] | None = None
    first_cursor: int = 0
    """Where to begin: the cursor of a first page that somebody else has taken; not with `spans`."""
    slots: Slots | None = None
    size: int | None = None
    """About how many keys there are, if known: a small keyspace is not cut."""
    run_id: str | None = None
    """The run of the server that `spans` or `first_cursor` come from, None if they come from nowhere."""
    rider: Rider | None = None
    """What asks about the keys that this node delivers, in the same writes."""

    def whole(self, dialect: Dialect) -> ScanNode:
        """The same node from its beginning."""
        return ScanNode(self.source, dialect, slots=self.slots, size=self.size, rider=self.rider)

    def ranges(self) -> Ranges:
        """The ranges to scan, cut to go side by side where the order of cursors allows it."""
        if not self.dialect.is_ordered:
            return Ranges(self.dialect, first_cursor=self.first_cursor)
        if self.spans is not None:
            return Ranges(self.dialect, self.spans, slots=self.slots)
        if self.dialect is Dialect.SLOTTED:
            return Ranges(self.dialect, [Span(self.dialect.position(self.first_cursor))], slots=self.slots)
        begin = self.dialect.position(self.first_cursor)
        width = MAX_WIDTH if self.size is None or self.size >= CUT_FROM else 1
        cut = [(max(begin, start), end) for start, end in pieces(width) if end > begin]
        return Ranges(self.dialect, [Span(start, end) for start, end in cut])
