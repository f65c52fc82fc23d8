"""Where the lines of a chart stand: two columns beside each other, in from the edge, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from rtui.tui.ink import Line, clip, gap, line_width
from rtui.tui.lines.facts_grid import MARGIN

TABLE_LINES: Final = 12
"""A table keeps at least so many lines under a chart."""

LOW_TABLE_LINES: Final = 9
"""And so many on a screen of 24."""

HIGH_ROOM: Final = 26
"""Lines that chart and table share from which on it is not such a screen."""


def beside_each_other(first: Sequence[Line], second: Sequence[Line], cells: int) -> list[Line]:
    """Join the lines of two columns, the second from cell `cells` on, one cell beside the first."""
    pairs = zip_longest((clip(one, cells - 1) for one in first), second, fillvalue=())
    return [(*one, gap(cells - line_width(one)), *other) for one, other in pairs]


def inset(lines: Sequence[Line]) -> list[Line]:
    """Return the lines one cell further in, where everything else of the screen begins."""
    return [(gap(MARGIN), *line) for line in lines]


def chart_lines(wanted: int, room: int) -> int:
    """Return how many lines a chart gets of the room that it shares with a table."""
    return max(0, min(wanted, room - (TABLE_LINES if room >= HIGH_ROOM else LOW_TABLE_LINES)))
