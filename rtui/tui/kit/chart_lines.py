"""The lines that the charts of several panels share: placing, figures as text, horizontal and vertical bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import isinf
from typing import Final, NamedTuple

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import COVERAGE_MARKS
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import MARGIN, TERMINAL, bar, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, left, line_width, literal, right, width_of


def beside_each_other(first: Sequence[Line], second: Sequence[Line], cells: int) -> list[Line]:
    """Join the lines of two columns, the second from cell `cells` on."""
    pairs = zip_longest((clip(one, cells - 1) for one in first), second, fillvalue=())
    return [(*one, gap(cells - line_width(one)), *other) for one, other in pairs]


def inset(lines: Sequence[Line], size: Size) -> list[Line]:
    """Return the lines cut to the size of a chart, one cell further in, where all lines of the screen begin."""
    return [(gap(MARGIN), *clip(line, size.width - 2 * MARGIN)) for line in lines[: size.height]]


def paragraph(text: SafeText, width: int, role: Role) -> list[Line]:
    """Break a text into lines without the margin that prose has elsewhere."""
    return [line[1:] for line in prose(text, width + 2 * MARGIN, role)]


def labelled(word: str, lines: Sequence[Line], cells: int) -> list[Line]:
    """Return lines with a word of at most `cells` cells before the first one."""
    return [(Span(left(SafeText("" if at else word), cells), Role.MUTED), *line) for at, line in enumerate(lines)]


SHORT_FROM: Final = 1_000_000
"""Counts from here on are shortened beside a bar."""


def keys_text(figure: Figure | None, coverage: CoverageKind) -> SafeText:
    """Return a count of keys: `114,000`, `≥ 114,000`, `≈ 114k (112–116k)`; estimates claim few digits."""
    if figure is None:
        return fmt.NOTHING
    mark = COVERAGE_MARKS[coverage]
    if isinstance(figure, Estimate) or mark is Mark.ABOUT or figure >= SHORT_FROM:
        return fmt.written(figure, fmt.short_count, mark)
    return fmt.count(round(figure), mark)


def size_text(figure: Figure | None, coverage: CoverageKind) -> SafeText:
    """Return a sum of bytes: `260 MiB`, `≥ 260 MiB`, `≈ 260 MiB (240–330 MiB)`."""
    return fmt.NOTHING if figure is None else fmt.written(figure, fmt.size, COVERAGE_MARKS[coverage])


def share_text(figure: Figure | None) -> SafeText:
    """Return a share: `38%`, `≈38% (33–44%)`; never a lower bound, since more keys may lower it."""
    return fmt.NOTHING if figure is None else fmt.written(figure, fmt.share)


def without(total: Figure, part: Figure) -> Figure:
    """Return a number of keys less a part of them, at least 0."""
    if not isinstance(total, Estimate) and not isinstance(part, Estimate):
        return max(0, total - part)
    whole, less = as_estimate(total), as_estimate(part)
    low, value, high = whole.low - less.high, whole.value - less.value, whole.high - less.low
    return Estimate(max(0.0, low), max(0.0, value), max(0.0, high))


def share_within(part: Figure, total: Figure) -> Figure:
    """Return a part as a share of the total, with an interval if either is an estimate."""
    value = min(1.0, plain(part) / max(1.0, plain(total)))
    if not isinstance(total, Estimate) and not isinstance(part, Estimate):
        return value
    known, whole = as_estimate(part), as_estimate(total)
    low = 0.0 if isinf(whole.high) else known.low / max(1.0, whole.high)
    high = 1.0 if isinf(known.high) else known.high / max(1.0, whole.low)
    return Estimate(min(low, value), value, min(1.0, max(high, value)))


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
    """As many for each of the bars that stand together."""
    value: float | None
    """The value that the bar's length represents; None for no bar."""
    name_role: Role = Role.TEXT
    role: Role = Role.BAR


def bar_lines(
    bars: Sequence[HorizontalBar],
    width: int,
    *,
    whole: float | None = None,
    name_cells: int | None = None,
    cap: int = 48,
) -> list[Line]:
    """Return a line for each bar; a bar takes the width left by names and figures, at most `cap` cells.

    A full bar stands for `whole`, or for the largest value. Figures that do not fit are left out, the rightmost first.
    """
    if not bars:
        return []
    cells = [max(map(width_of, column)) for column in zip(*(one.figures for one in bars), strict=True)]
    figures = sum(cells) + 2 * len(cells)
    longest = max(width_of(one.name) for one in bars)
    names = min(longest, name_cells or longest, width - figures - MIN_BAR_CELLS - 2)
    names = max(names, min(longest, MIN_LABEL_CELLS))
    bar_cells = min(cap, width - names - figures - 2)
    most = max(one.value or 0.0 for one in bars) if whole is None else whole
    lines: list[Line] = []
    for one in bars:
        spans = [Span(left(cut_middle(one.name, names), names), one.name_role)]
        cells_left = width - names
        for at, (text, size) in enumerate(zip(one.figures, cells, strict=True)):
            if cells_left < size + 2:
                break
            spans += (gap(2), Span(right(text, size), Role.MUTED if at else Role.TEXT))
            cells_left -= size + 2
        if one.value is not None and bar_cells >= MIN_BAR_CELLS and cells_left >= bar_cells + 2:
            filled, blank = bar(one.value / most if most else 0.0, bar_cells)
            if not filled and one.value > 0:
                filled, blank = SLIVER, SafeText(blank[1:])
            spans += (gap(2), Span(filled, one.role), Span(blank))
        lines.append(tuple(spans))
    return lines


EIGHTHS: Final = "▁▂▃▄▅▆▇█"
ASCII_EIGHTHS: Final = "_.:-=+*#"
"""Vertical bars of one to eight eighths of a cell."""


def standing(values: Sequence[float], height: int, most: float | None = None) -> list[SafeText]:
    """Return vertical bars, one cell wide each, as `height` lines of text from the top.

    `most`, or the largest value, fills the height; a positive value has an eighth of a cell at least.
    """
    ramp = ASCII_EIGHTHS if TERMINAL.ascii_only else EIGHTHS
    whole = max([*values, 0.0]) if most is None else most
    full = height * len(ramp)
    eighths = [max(1, min(full, round(value / whole * full))) if value > 0 else 0 for value in values]
    return [
        SafeText("".join(ramp[min(reach, len(ramp)) - 1] if (reach := one - below) > 0 else " " for one in eighths))
        for below in range(full - len(ramp), -1, -len(ramp))
    ]
