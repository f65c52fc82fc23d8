"""Where the lines of a chart stand: two columns beside each other, in from the edge, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, zip_longest
from math import isinf
from typing import Final, NamedTuple

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import highest, lowest
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import Mark, is_ascii_only
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, left, line_width, literal, right, width_of

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


SHORT_FROM = 1_000_000
"""Counts from here on are shortened where they stand beside a bar."""


def value_of(figure: Figure) -> float:
    """Return the figure itself, for an estimate the middle of its interval."""
    return figure.value if isinstance(figure, Estimate) else float(figure)


def mark_of(figure: Figure, kind: CoverageKind) -> Mark:
    """Say how far a count or a sum can be trusted."""
    if isinstance(figure, Estimate):
        return Mark.ABOUT
    return {
        CoverageKind.EXACT: Mark.EXACT,
        CoverageKind.PARTIAL: Mark.AT_LEAST,
        CoverageKind.ESTIMATE: Mark.ABOUT,
    }[kind]


def keys_text(figure: Figure | None, kind: CoverageKind) -> SafeText:
    """Return a count of keys: `114,000`, `≥ 114,000`, `≈ 114k (112–116k)`; estimates claim few digits."""
    if figure is None:
        return fmt.NOTHING
    if isinstance(figure, Estimate):
        return fmt.estimated(figure, fmt.short_count)
    mark = mark_of(figure, kind)
    if mark is Mark.ABOUT or value_of(figure) >= SHORT_FROM:
        return fmt.short_count(value_of(figure), mark)
    return fmt.count(round(value_of(figure)), mark)


def size_text(figure: Figure | None, kind: CoverageKind) -> SafeText:
    """Return a sum of bytes: `260 MiB`, `≥ 260 MiB`, `≈ 260 MiB (240–330 MiB)`."""
    if isinstance(figure, Estimate):
        return fmt.estimated(figure, fmt.size)
    return fmt.NOTHING if figure is None else fmt.size(figure, mark_of(figure, kind))


def share_text(figure: Figure | None) -> SafeText:
    """Return a share: `38%`, `≈38% (33–44%)`; one of what a broken-off pass has seen is no lower bound."""
    if figure is None:
        return fmt.NOTHING
    return fmt.estimated(figure, fmt.share) if isinstance(figure, Estimate) else fmt.share(figure)


def without(whole: Figure, part: Figure) -> Figure:
    """Return what is left of a number of keys."""
    if not isinstance(whole, Estimate) and not isinstance(part, Estimate):
        return max(0, whole - part)
    low, high = lowest(whole) - highest(part), highest(whole) - lowest(part)
    return Estimate(max(0.0, low), max(0.0, value_of(whole) - value_of(part)), max(0.0, high))


def share_within(part: Figure, whole: Figure) -> Figure:
    """Return a part of something as a share of it, by the ends of both where they are estimates."""
    value = min(1.0, value_of(part) / max(1.0, value_of(whole)))
    if not isinstance(whole, Estimate) and not isinstance(part, Estimate):
        return value
    low = 0.0 if isinf(highest(whole)) else lowest(part) / max(1.0, highest(whole))
    high = 1.0 if isinf(highest(part)) else highest(part) / max(1.0, lowest(whole))
    return Estimate(min(low, value), value, min(1.0, max(high, value)))


def kind_of(report: Report) -> CoverageKind:
    """Return how much of the keyspace a report rests on."""
    return report.head.coverage.kind


EIGHTHS: Final = "▁▂▃▄▅▆▇█"
"""Standing bars of one to eight eighths of a cell."""

PLAIN_EIGHTHS: Final = "_.:-=+*#"
"""The same for terminals that draw nothing but ASCII."""

MIN_LABEL_CELLS: Final = 8
"""A name beside a bar keeps at least this much; the bar goes before it gets narrower."""

MIN_BAR_CELLS: Final = 4
"""A shorter bar says nothing."""


SLIVER: Final = literal("▏")
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
    ramp = PLAIN_EIGHTHS if is_ascii_only() else EIGHTHS
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
