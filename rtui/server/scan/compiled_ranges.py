"""Ranges scanned side by side, compiled: what `Ranges` do, without Python for each page.

Import it only where the compiled engine was built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rtui.server.engine import _ranges
from rtui.server.scan.cursor import PATIENCE, Dialect
from rtui.server.scan.ranges import (
    EARLY_KEYS,
    HEAD_KEYS,
    RECENT_KEYS,
    CursorOrderError,
    CursorSpan,
    Slots,
    checked_spans,
    head_bytes,
    visited_share,
)

_DIALECTS: Final = (Dialect.STANDALONE, Dialect.SLOTTED, Dialect.OPAQUE)
"""In the order of their numbers in the engine."""


class CompiledRanges(_ranges.CompiledRanges):
    """The ranges of one node, with the interface of `Ranges`."""

    def __init__(
        self,
        dialect: Dialect,
        spans: Iterable[CursorSpan] = (CursorSpan(),),
        *,
        slots: Slots | None = None,
        first_cursor: int = 0,
        first_keys: Sequence[bytes] = (),
    ) -> None:
        """Take the same as `Ranges`."""
        ordered = checked_spans(dialect, spans)
        self.dialect = dialect
        self.slots = slots
        super().__init__(
            _DIALECTS.index(dialect),
            [(span.start, span.end) for span in ordered],
            first_cursor=first_cursor,
            first_keys=first_keys,
            head_keys=HEAD_KEYS,
            head_bytes=head_bytes(len(ordered)),
            early_keys=EARLY_KEYS,
            recent_keys=RECENT_KEYS,
            patience=PATIENCE,
            order_error=CursorOrderError,
        )

    def fraction(self) -> float | None:
        """The share of the keyspace that has been visited, 0 … 1; None where cursors have no position."""
        return visited_share(self.dialect, self.slots, self.remaining())

    def remaining(self) -> list[CursorSpan]:
        """The spans that have not been visited, in order."""
        return [CursorSpan(position, end) for position, end in self.unvisited()]
