"""Bars: lying ones beside figures, and standing ones for what goes on in time or from bin to bin."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from rtui.keyspace.display import SafeText
from rtui.tui import format as fmt
from rtui.tui.ink import Line, Role, Span, cut_middle, gap, left, own, right, width_of
from rtui.tui.shown import in_ascii

EIGHTHS: Final = "▁▂▃▄▅▆▇█"
"""Standing bars of one to eight eighths of a cell."""

PLAIN_EIGHTHS: Final = "_.:-=+*#"
"""The same for terminals that draw nothing but ASCII."""

MIN_LABEL_CELLS: Final = 8
"""A name beside a bar keeps at least this much; the bar goes before it gets narrower."""

MIN_BAR_CELLS: Final = 4
"""A shorter bar says nothing."""


SLIVER: Final = own("▏")
"""The thinnest bar."""


class Bar(NamedTuple):
    """A lying bar: a name, what is written, and how much of the width is filled."""

    name: SafeText
    figures: tuple[SafeText, ...]
    """What stands between name and bar, each in a column of its own."""
    fraction: float | None
    """0 … 1, None for no bar at all."""
    name_role: Role = Role.TEXT
    role: Role = Role.BAR


def bar_lines(bars: Sequence[Bar], width: int, *, name_cells: int | None = None, cap: int = 48) -> list[Line]:
    """Return one line a bar, names and figures in columns; a bar takes what is left, at most `cap` cells."""
    if not bars:
        return []
    columns = max(len(one.figures) for one in bars)
    cells = [
        max((width_of(one.figures[at]) for one in bars if at < len(one.figures)), default=0) for at in range(columns)
    ]
    figures = sum(cells) + 2 * columns
    longest = max(width_of(one.name) for one in bars)
    fewest = min(longest, MIN_LABEL_CELLS)
    names = max(min(longest, name_cells or longest, width - figures - MIN_BAR_CELLS - 2), fewest)
    room = min(cap, width - names - figures - 2)
    return [_bar_line(one, cells, names, room, width) for one in bars]


def _bar_line(one: Bar, cells: Sequence[int], names: int, room: int, width: int) -> Line:
    """Return one bar with its name cut in the middle where it is too long."""
    spans = [Span(left(cut_middle(one.name, names), names), one.name_role)]
    left_over = width - names
    for at, size in enumerate(cells):
        if left_over < size + 2:
            break
        text = one.figures[at] if at < len(one.figures) else SafeText("")
        spans += (gap(2), Span(right(text, size), Role.TEXT if at == 0 else Role.MUTED))
        left_over -= size + 2
    if room >= MIN_BAR_CELLS and one.fraction is not None and left_over >= room + 2:
        spans += (gap(2), *_lying(one.fraction, room, one.role))
    return tuple(spans)


def _lying(fraction: float, cells: int, role: Role) -> Line:
    """Return a bar in `cells` cells; what is little but not nothing keeps a sliver."""
    filled, blank = fmt.bar(fraction, cells)
    if not filled and fraction > 0:
        filled, blank = SLIVER, SafeText(blank[1:])
    return Span(filled, role), Span(blank)


def standing(values: Sequence[float], height: int) -> list[SafeText]:
    """Return `height` lines of text with a bar of one cell's width for each value, the highest line first.

    The largest value is as high as there is room; what is little but not nothing keeps an eighth of a cell.
    """
    ramp = PLAIN_EIGHTHS if in_ascii() else EIGHTHS
    most = max([*values, 0.0])
    steps = [_steps(value, most, height * len(ramp)) for value in values]
    rows = range(height - 1, -1, -1)
    return [SafeText("".join(_cell(step - row * len(ramp), ramp) for step in steps)) for row in rows]


def _steps(value: float, most: float, steps: int) -> int:
    """Return how many eighths a bar is high."""
    if value <= 0 or most <= 0:
        return 0
    return max(1, min(steps, round(value / most * steps)))


def _cell(step: int, ramp: str) -> str:
    """Return what a bar shows in a cell that it reaches `step` eighths into."""
    return " " if step <= 0 else ramp[min(step, len(ramp)) - 1]


def in_runs(text: SafeText, roles: Sequence[Role]) -> Line:
    """Return a text of one cell a character as spans, each as long as the role stays the same."""
    pairs = zip(text, roles, strict=True)
    return tuple(
        Span(SafeText("".join(character for character, _ in run)), role)
        for role, run in groupby(pairs, key=lambda pair: pair[1])
    )
