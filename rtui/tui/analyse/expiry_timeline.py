"""The timeline of expiries: columns of equal time that begin at round times, their axis, and the cliffs among them.

All times are UTC. `axis_for` chooses the length of a column for a time range and the cells there are; a column may take
several cells, so what stands in a cell is asked of the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import groupby
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import noun
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import DAY_S, HOUR_S, MINUTE_S, Figure, Timeline
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import Subject
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import unfound
from rtui.tui.kit.chart_lines import keys_text, share_text, size_text, standing
from rtui.tui.kit.layout import Piece, display_text, fitted, tab
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, left, line_width, literal, right, width_of

LABEL_CELLS: Final = 40
"""Longer names of namespaces are cut."""

GUTTER_CELLS: Final = 7
"""Cells of the scale at the left of the timeline."""

TICK_CELLS: Final = 12
"""Times along the axis are at least this far apart."""

MAX_CLIFF_LINES: Final = 4
"""Lines that name cliffs under the timeline; the table has all of them."""

MIN_BARS_LINES: Final = 3
MAX_BARS_LINES: Final = 8
_STEPS_S: Final = (
    *(MINUTE_S * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(HOUR_S * hours for hours in (1, 2, 3, 6, 12)),
    *(DAY_S * days for days in (1, 2, 7, 14, 28, 91, 182, 364, 3640, 36_400, 364_000)),
)
"""Lengths of a column: divisors of an hour or a day, or whole days, so that columns begin at round times."""

_TICKS_S: Final = (*_STEPS_S, 3_640_000 * DAY_S)


class TimeRange(Enum):
    """How far ahead the timeline reaches: its name on the screen, and the seconds, 0 for up to the last expiry."""

    HOUR = literal("next hour"), HOUR_S
    DAY = literal("next day"), DAY_S
    WEEK = literal("next week"), 7 * DAY_S
    ALL = literal("all"), 0

    def __init__(self, title: SafeText, reach_s: int) -> None:
        self.title = title
        self.reach_s = reach_s


def nearest(timelines: Sequence[Timeline], subject: Subject) -> Timeline | None:
    """Return the timeline of the innermost namespace that a row belongs to, else the first one; None for none."""
    names = tuple(step.name for step in subject) if isinstance(subject, tuple) else ()
    near = [one for one in timelines if names[: len(one.path)] == one.path]
    return max(near, key=lambda one: len(one.path), default=timelines[0] if timelines else None)


@dataclass(frozen=True, slots=True)
class Axis:
    """Columns of equal time, spread over the cells of a line."""

    start_s: float
    """Seconds since the epoch."""
    step_s: int
    columns: int
    cells: int
    """At least as many as columns."""

    @property
    def end_s(self) -> float:
        """The end of the last column, in seconds since the epoch."""
        return self.start_s + self.step_s * self.columns

    def cell_of(self, moment_s: float) -> int:
        """Return the first cell of the column of a moment; it may lie outside of the axis."""
        column = int((moment_s - self.start_s) // self.step_s)
        return -(-column * self.cells // self.columns)

    def times_at(self, cell: int) -> tuple[float, float] | None:
        """Return when the column in a cell begins and ends, in seconds since the epoch; None outside of the axis."""
        if not 0 <= cell < self.cells:
            return None
        start_s = self.start_s + cell * self.columns // self.cells * self.step_s
        return start_s, start_s + self.step_s


def axis_for(time_range: TimeRange, last_s: float, now_s: float, cells: int) -> Axis:
    """Return the axis for so many cells, given when the last key expires; columns begin at round times."""
    reach = time_range.reach_s or max(last_s - now_s, float(HOUR_S))
    step = next((step for step in _STEPS_S if reach / step + 1 <= cells), _STEPS_S[-1])
    start = now_s // step * step
    count = max(1, min(cells, int(-(-(now_s + reach - start) // step))))
    return Axis(start, step, count, cells)


def ticks(axis: Axis, cells_apart: int) -> list[tuple[int, SafeText]]:
    """Return (cell, text) of round moments along the axis, at least `cells_apart` apart.

    The text is `14:30`, at midnight and for days `22 Sep`, for years `Sep 2031`.
    """
    apart = axis.step_s * axis.columns * cells_apart / axis.cells
    step = next((step for step in _TICKS_S if step >= apart), _TICKS_S[-1])
    found = []
    for number in range(axis.cells // cells_apart + 2):
        moment = -(-axis.start_s // step) * step + step * number
        if moment < axis.end_s:
            form = "%H:%M" if moment % DAY_S and step < DAY_S else "%d %b"
            found.append((axis.cell_of(moment), _time_text(moment, "%b %Y" if step >= 364 * DAY_S else form)))
    return found


def _time_text(moment_s: float, form: str) -> SafeText:
    """Return a moment in a form of `strftime`."""
    try:
        return SafeText(datetime.fromtimestamp(moment_s, UTC).strftime(form))
    except (OverflowError, ValueError, OSError):
        return literal("far future")


def ranges_line(timeline: Timeline | None, chosen: TimeRange, width: int) -> Line:
    """Return whose expiries are shown, the time ranges with the chosen one in brackets, and the zone of the times."""
    name = literal("all keys") if timeline is None else display_text(timeline.label, limit=LABEL_CELLS)
    line: list[Span] = [Span(literal("coming expiries of "), Role.MUTED), Span(name, Role.ACCENT), gap(2)]
    line += (tab(time_range.title, is_chosen=time_range is chosen) for time_range in TimeRange)
    zone = (Span(literal("  times are "), Role.FAINT), Span(literal("UTC"), Role.MUTED))
    space = width - line_width(line) - line_width(zone)
    return (*line, gap(space), *zone) if space >= 0 else tuple(line)


def timeline_lines(report: Report, timeline: Timeline, axis: Axis, width: int, height: int) -> list[Line]:
    """Return `height` lines of bars with their scale, those of cliffs highlighted, and the axis below.

    The axis has the times, and at the right how many keys expire later.
    """
    coverage = report.head.coverage.kind
    values = [plain(one.keys) for one in timeline.columns(axis.start_s, axis.end_s, axis.columns)]
    most = max(values, default=0.0)
    top = keys_text(round(most), CoverageKind.EXACT if coverage is CoverageKind.PARTIAL else coverage)
    scale = right(top if width_of(top) < GUTTER_CELLS else fmt.short_count(most), GUTTER_CELLS - 1)
    starts = [axis.start_s + at * axis.step_s for at in range(axis.columns)]
    cliffs = report.summary.expiry.cliffs
    roles = [Role.WARN if any(one.meets(at, at + axis.step_s) for one in cliffs) else Role.BAR for at in starts]
    column_of_cell = [cell * axis.columns // axis.cells for cell in range(axis.cells)]
    lines: list[Line] = []
    for row, bars in enumerate(standing([values[at] for at in column_of_cell], height)):
        number = left(literal(""), GUTTER_CELLS - 1) if row else scale
        line = [Span(number, Role.FAINT), gap(1)]
        runs = groupby(zip(bars, column_of_cell, strict=True), key=lambda pair: roles[pair[1]])
        line += (Span(SafeText("".join(character for character, _ in run)), role) for role, run in runs)
        lines.append(tuple(line))
    beyond = timeline.columns(axis.end_s, timeline.end_s, 1)
    later: Figure = beyond[0].keys if beyond else 0
    keys = later if isinstance(later, Estimate) else round(later)
    note = SafeText(f"{keys_text(keys, coverage)} later →" if plain(later) >= 1 else "")
    space, text = width - GUTTER_CELLS - width_of(note), ""
    for cell, time in ticks(axis, TICK_CELLS):
        if max(len(text), cell) + len(time) + 1 > space:
            break
        text = f"{text:<{cell}}{time}" if len(text) < cell or not cell else text
    times = Span(SafeText(f"{text:<{max(0, space)}}"), Role.MUTED)
    return [*lines, (gap(GUTTER_CELLS), times, Span(note, Role.FAINT))]


def cliff_lines(report: Report, axis: Axis, width: int, height: int) -> list[Line]:
    """Return the greatest cliffs within the axis, each with a mark under its column; one line at least.

    Of each: when, how many keys of which namespace, the share of it, the bytes, and how many keys would be usual.
    """
    lines: list[Line] = []
    coverage, is_within_days = report.head.coverage.kind, axis.end_s - axis.start_s <= 2 * DAY_S
    for cliff in report.summary.expiry.cliffs:
        if not axis.start_s <= cliff.start_s < axis.end_s:
            continue
        start = _time_text(cliff.start_s, "%H:%M" if is_within_days else "%d %b %H:%M")
        name = display_text(cliff.label, limit=LABEL_CELLS)
        keys = SafeText(f"{keys_text(cliff.keys, coverage)} {noun(plain(cliff.keys), 'key')} of {name}")
        pieces = [
            Piece(0, (Span(SafeText(f"{start}–{_time_text(cliff.end_s, '%H:%M')}"), Role.STRONG),)),
            Piece(0, (Span(keys),)),
            Piece(1, (Span(SafeText(f"{share_text(cliff.share)} of it"), Role.WARN),)),
        ]
        if cliff.memory_bytes is not None:
            pieces.append(Piece(2, (Span(size_text(cliff.memory_bytes, coverage)),)))
        expected = SafeText(f"{fmt.written(cliff.expected_keys, fmt.short_count)} expected")
        pieces.append(Piece(3, (Span(expected, Role.MUTED),)))
        more = _beside_mark(GUTTER_CELLS + axis.cell_of(cliff.start_s), pieces, width)
        if len(lines) + len(more) <= max(1, height):
            lines += more
    none = SafeText(f"{unfound(report, 'No cliffs: nothing here stands out from the minutes around it')}.")
    return lines or [(gap(GUTTER_CELLS), Span(none, Role.FAINT))]


def _beside_mark(at: int, pieces: Sequence[Piece], width: int) -> list[Line]:
    """Place text behind a mark in column `at`, else before it, else below it; it may lose its last piece for that."""
    mark = Span(literal("▲"), Role.WARN)
    for kept in (pieces, pieces[:-1]):
        text = clip(fitted(kept, width), width)
        cells = line_width(text)
        if at + 2 + cells <= width:
            return [(gap(at), mark, gap(1), *text)]
        if cells + 1 <= at:
            return [(gap(at - 1 - cells), *text, gap(1), mark)]
    return [(gap(at), mark), (gap(min(at, width - cells)), *text)]
