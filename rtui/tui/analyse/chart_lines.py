"""What the charts of several panels share: placing lines, figures as text, and horizontal and vertical bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, zip_longest
from math import isinf
from typing import Final, NamedTuple

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import highest, lowest
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.format import TERMINAL, bar
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, left, line_width, literal, right, width_of

TABLE_LINES: Final = 12
"""Lines that a chart leaves to the table at least."""

LOW_TABLE_LINES: Final = 9
"""The same on a screen of 24 lines."""

HIGH_ROOM: Final = 26
"""Lines that chart and table share from which on the screen is a larger one."""


def beside_each_other(first: Sequence[Line], second: Sequence[Line], cells: int) -> list[Line]:
    """Join the lines of two columns, the second from cell `cells` on."""
    pairs = zip_longest((clip(one, cells - 1) for one in first), second, fillvalue=())
    return [(*one, gap(cells - line_width(one)), *other) for one, other in pairs]


def inset(lines: Sequence[Line]) -> list[Line]:
    """Return the lines one cell further in, where all lines of the screen begin."""
    return [(gap(MARGIN), *line) for line in lines]


def chart_lines(wanted: int, available: int) -> int:
    """Return how many lines a chart gets of those that it shares with a table."""
    return max(0, min(wanted, available - (TABLE_LINES if available >= HIGH_ROOM else LOW_TABLE_LINES)))


SHORT_FROM = 1_000_000
"""Counts from here on are shortened beside a bar."""

_MARKS: Final = {
    CoverageKind.EXACT: Mark.EXACT, CoverageKind.PARTIAL: Mark.AT_LEAST, CoverageKind.ESTIMATE: Mark.ABOUT,
}  # fmt: skip


def coverage_of(report: Report) -> CoverageKind:
    """Return how much of the keyspace a report rests on."""
    return report.head.coverage.kind


def value_of(figure: Figure) -> float:
    """Return a figure, of an estimate its middle."""
    return figure.value if isinstance(figure, Estimate) else float(figure)


def keys_text(figure: Figure | None, coverage: CoverageKind) -> SafeText:
    """Return a count of keys: `114,000`, `≥ 114,000`, `≈ 114k (112–116k)`; estimates claim few digits."""
    if figure is None:
        return fmt.NOTHING
    if isinstance(figure, Estimate):
        return fmt.estimated(figure, fmt.short_count)
    mark = _MARKS[coverage]
    if mark is Mark.ABOUT or figure >= SHORT_FROM:
        return fmt.short_count(figure, mark)
    return fmt.count(round(figure), mark)


def size_text(figure: Figure | None, coverage: CoverageKind) -> SafeText:
    """Return a sum of bytes: `260 MiB`, `≥ 260 MiB`, `≈ 260 MiB (240–330 MiB)`."""
    if isinstance(figure, Estimate):
        return fmt.estimated(figure, fmt.size)
    return fmt.NOTHING if figure is None else fmt.size(figure, _MARKS[coverage])


def share_text(figure: Figure | None) -> SafeText:
    """Return a share: `38%`, `≈38% (33–44%)`; never a lower bound, since more keys may lower it."""
    if figure is None:
        return fmt.NOTHING
    return fmt.estimated(figure, fmt.share) if isinstance(figure, Estimate) else fmt.share(figure)


def without(total: Figure, part: Figure) -> Figure:
    """Return a number of keys less a part of them, at least 0."""
    if not isinstance(total, Estimate) and not isinstance(part, Estimate):
        return max(0, total - part)
    low, high = lowest(total) - highest(part), highest(total) - lowest(part)
    return Estimate(max(0.0, low), max(0.0, value_of(total) - value_of(part)), max(0.0, high))


def share_within(part: Figure, total: Figure) -> Figure:
    """Return a part as a share of the total, with an interval where one of them is an estimate."""
    value = min(1.0, value_of(part) / max(1.0, value_of(total)))
    if not isinstance(total, Estimate) and not isinstance(part, Estimate):
        return value
    low = 0.0 if isinf(highest(total)) else lowest(part) / max(1.0, highest(total))
    high = 1.0 if isinf(highest(part)) else highest(part) / max(1.0, lowest(total))
    return Estimate(min(low, value), value, min(1.0, max(high, value)))


EIGHTHS: Final = "▁▂▃▄▅▆▇█"
"""Vertical bars of one to eight eighths of a cell."""

ASCII_EIGHTHS: Final = "_.:-=+*#"
"""The same in ASCII."""

MIN_LABEL_CELLS: Final = 8
"""A name beside a bar keeps this width; before that is cut further, the bar is left out."""

MIN_BAR_CELLS: Final = 4
"""Shorter bars are left out."""

SLIVER: Final = literal("▏")
"""The thinnest bar."""


class HorizontalBar(NamedTuple):
    """A name, figures in columns, and a bar."""

    name: SafeText
    figures: tuple[SafeText, ...]
    fraction: float | None
    """Filled part of the bar, 0 … 1; None for no bar."""
    name_role: Role = Role.TEXT
    role: Role = Role.BAR


def bar_lines(bars: Sequence[HorizontalBar], width: int, *, name_cells: int | None = None, cap: int = 48) -> list[Line]:
    """Return a line for each bar; a bar takes what names and figures leave, at most `cap` cells."""
    if not bars:
        return []
    columns = zip_longest(*(one.figures for one in bars), fillvalue=SafeText(""))
    cells = [max(map(width_of, column)) for column in columns]
    figures = sum(cells) + 2 * len(cells)
    longest = max(width_of(one.name) for one in bars)
    names = min(longest, name_cells or longest, width - figures - MIN_BAR_CELLS - 2)
    names = max(names, min(longest, MIN_LABEL_CELLS))
    bar_cells = min(cap, width - names - figures - 2)
    return [_bar_line(one, cells, names, bar_cells, width) for one in bars]


def _bar_line(one: HorizontalBar, cells: Sequence[int], names: int, bar_cells: int, width: int) -> Line:
    """Return one bar; figures that do not fit are left out, those at the right first."""
    spans = [Span(left(cut_middle(one.name, names), names), one.name_role)]
    cells_left = width - names
    for at, size in enumerate(cells):
        if cells_left < size + 2:
            break
        text = one.figures[at] if at < len(one.figures) else SafeText("")
        spans += (gap(2), Span(right(text, size), Role.TEXT if at == 0 else Role.MUTED))
        cells_left -= size + 2
    if one.fraction is not None and bar_cells >= MIN_BAR_CELLS and cells_left >= bar_cells + 2:
        filled, blank = bar(one.fraction, bar_cells)
        if not filled and one.fraction > 0:
            filled, blank = SLIVER, SafeText(blank[1:])
        spans += (gap(2), Span(filled, one.role), Span(blank))
    return tuple(spans)


def standing(values: Sequence[float], height: int) -> list[SafeText]:
    """Return vertical bars, one cell wide each, as `height` lines of text from the top.

    The largest value fills the height; a positive value has an eighth of a cell at least.
    """
    ramp = ASCII_EIGHTHS if TERMINAL.ascii_only else EIGHTHS
    most = max([*values, 0.0])
    full = height * len(ramp)
    eighths = [max(1, min(full, round(value / most * full))) if value > 0 else 0 for value in values]
    return [
        SafeText("".join(ramp[min(reach, len(ramp)) - 1] if (reach := one - below) > 0 else " " for one in eighths))
        for below in range(full - len(ramp), -1, -len(ramp))
    ]


def in_runs(text: SafeText, roles: Sequence[Role]) -> Line:
    """Return a text of one cell a character as spans, given the role of each character."""
    pairs = zip(text, roles, strict=True)
    return tuple(
        Span(SafeText("".join(character for character, _ in run)), role)
        for role, run in groupby(pairs, key=lambda pair: pair[1])
    )
