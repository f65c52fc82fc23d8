"""Two columns of lines beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rtui.tui.ink import Line, gap, line_width


def beside_each_other(first: Sequence[Line], second: Sequence[Line], cells: int) -> list[Line]:
    """Join the lines of two columns, the second from cell `cells` on."""
    pairs = zip_longest(first, second, fillvalue=())
    return [(*one, gap(cells - line_width(one)), *other) for one, other in pairs]
