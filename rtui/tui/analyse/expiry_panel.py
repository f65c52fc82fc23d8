"""The Expiry panel: which keys never expire, when the others do, where many expire at once, and how long keys live.

The timeline is that of the namespace under the cursor: columns of equal time that begin at round times in UTC, their
axis, and the cliffs among them. `axis_for` chooses the length of a column for a time range and a width; a column may
take several cells, so the axis maps cells to columns. `_parts` lays out the panel once, for painting and for clicks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from heapq import nlargest
from itertools import groupby
from operator import itemgetter
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import noun
from rtui.analysis.query import behind
from rtui.analysis.query.behind import Behind
from rtui.analysis.report.document import CoverageKind, Node, NodeKind, Report
from rtui.analysis.report.members import DAY_S, HOUR_S, MINUTE_S, TTL_EDGES_S, Figure, Timeline
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.keys import about_to_expire, cliffs, expiry, no_ttl
from rtui.analysis.report.tables.table import Subject, label
from rtui.analysis.report.tables.totals import spans, ttl_histogram
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import AnalysePanel, PanelState, PanelTable, panel_command, unfound
from rtui.tui.kit.chart_lines import (
    HorizontalBar,
    bar_lines,
    beside_each_other,
    inset,
    keys_text,
    share_text,
    share_within,
    size_text,
    standing,
    without,
)
from rtui.tui.kit.layout import MARGIN, LinePart, display, display_text, fitted, tab
from rtui.tui.kit.panel_screen import following
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, left, line_width, literal, right, width_of
from rtui.tui.kit.table_rows import ColumnOrder

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
    """The range of the timeline: its name on the screen, and seconds from now, 0 for up to the last expiry."""

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
    """Return the axis of a width in cells, up to the last expiry; columns begin at round times."""
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
    """Return `height` lines of bars with their scale, the bars of cliffs highlighted, and the axis below.

    The axis has the times, and at the right the number of keys that expire later.
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
            LinePart(0, (Span(SafeText(f"{start}–{_time_text(cliff.end_s, '%H:%M')}"), Role.STRONG),)),
            LinePart(0, (Span(keys),)),
            LinePart(1, (Span(SafeText(f"{share_text(cliff.share)} of it"), Role.WARN),)),
        ]
        if cliff.memory_bytes is not None:
            pieces.append(LinePart(2, (Span(size_text(cliff.memory_bytes, coverage)),)))
        expected = SafeText(f"{fmt.written(cliff.expected_keys, fmt.short_count)} expected")
        pieces.append(LinePart(3, (Span(expected, Role.MUTED),)))
        more = _beside_mark(GUTTER_CELLS + axis.cell_of(cliff.start_s), pieces, width)
        if len(lines) + len(more) <= max(1, height):
            lines += more
    none = SafeText(f"{unfound(report, 'No expiry cliffs')}.")
    return lines or [(gap(GUTTER_CELLS), Span(none, Role.FAINT))]


def _beside_mark(at: int, pieces: Sequence[LinePart], width: int) -> list[Line]:
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


HISTOGRAMS_FROM: Final = 19
"""Lines of the chart from which on it has the histograms."""

HEAD_LINES: Final = 2
"""The headline and the time ranges."""

NO_TIMELINE_LINES: Final = 3
"""The text in place of a timeline."""

HISTOGRAM_HEAD_LINES: Final = 2
"""A blank line and the titles of the histograms."""

HISTOGRAM_GAP: Final = 4
"""Blank cells between the histograms."""

TTL_NAMES: Final = tuple(map(SafeText, spans(TTL_EDGES_S)))


@dataclass(frozen=True, slots=True)
class ExpiryState(PanelState):
    """The user's choices in the panel."""

    time_range: TimeRange = TimeRange.HOUR


class ExpiryPanel(AnalysePanel[ExpiryState]):
    """The timeline of the namespace under the cursor; tables of cliffs, of lifetimes, and of keys that never expire."""

    id = "expiry"
    title = literal("Expiry")
    key = "5"
    help = "Show when keys expire, which expire all at once, and which never do."
    words = "ttl expire volatile persist"
    initial = ExpiryState()
    max_lines = 25
    commands = (
        panel_command(
            lambda _report, state, _size: replace(state, time_range=following(list(TimeRange), state.time_range)),
            "time_range", "z", "Time range", "Choose the time range: the next hour, day, week, or all.",
            footer=10,
        ),
    )  # fmt: skip

    def tables(self, report: Report, _state: ExpiryState) -> tuple[PanelTable, ...]:
        needs, by_no_ttl = ("ttl",), ColumnOrder("no_ttl_keys")
        return (
            PanelTable("cliffs", literal("cliffs"), partial(cliffs, report), order=ColumnOrder("keys"), needs=needs,
                       empty=unfound(report, "No expiry cliffs")),
            PanelTable("about_to_expire", literal("big or hot, expiring soon"), partial(about_to_expire, report),
                       order=ColumnOrder("expires_at", upward=True), needs=needs, top=literal("big or hot"),
                       empty=unfound(report, "No big or hot key expires soon")),
            PanelTable("expiry", literal("namespaces"), partial(expiry, report), order=by_no_ttl, needs=needs),
            PanelTable("no_ttl", literal("without TTL"), partial(no_ttl, report), order=by_no_ttl, needs=needs,
                       empty=unfound(report, "All keys have a TTL")),
            PanelTable("ttl_histogram", literal("TTL"), partial(ttl_histogram, report), needs=needs),
        )  # fmt: skip

    def chart(self, report: Report, state: ExpiryState, size: Size) -> list[Line]:
        """Return figures, the timeline nearest to the namespace under the cursor, cliffs, and with room two histograms.

        With a timeline all lines are taken whatever the time range, so that the table does not move.
        """
        parts, width = _parts(report, state, size), size.width - 2 * MARGIN
        lines = [_headline(report, width), ranges_line(parts.timeline, state.time_range, width)]
        if parts.timeline is None or parts.axis is None:
            lines += [(), (Span(literal("No key seen so far has a TTL."), Role.MUTED),), ()]
        else:
            lines += timeline_lines(report, parts.timeline, parts.axis, width, parts.bars_height)
            lines += parts.cliff_lines
        if parts.has_histograms:
            first = _ttl_lines(report, parts.half)
            second = _no_ttl_lines(report, parts.half, len(first) - 1)
            lines += [(), *beside_each_other(first, second, parts.half + HISTOGRAM_GAP)]
        return inset([*lines, *([()] * (size.height - len(lines)) if report.summary.expiry.timelines else ())], size)

    def clicked(self, report: Report, state: ExpiryState, size: Size, x: int, y: int) -> ExpiryState | None:
        timeline, width = nearest(report.summary.expiry.timelines, state.subject), size.width - 2 * MARGIN
        end, names = MARGIN, iter(TimeRange)
        for span in ranges_line(timeline, state.time_range, width) if y == 1 else ():
            end += line_width((span,))
            time_range = next(names) if span.role in (Role.TAB, Role.TAB_ON) else None
            if x < end:
                return None if time_range is None else replace(state, time_range=time_range)
        return None

    def behind(self, report: Report, state: ExpiryState, size: Size, x: int, y: int) -> Behind | None:
        """Return the query for the keys of a column of the timeline, or of a bar of the histograms."""

        parts, cell, root = _parts(report, state, size), x - MARGIN, report.summary.root
        found: Behind | None = None
        row, bar = y - HEAD_LINES, y - HEAD_LINES - parts.timeline_lines - HISTOGRAM_HEAD_LINES
        if parts.timeline is not None and parts.axis is not None and 0 <= row < parts.bars_height:
            times, of = parts.axis.times_at(cell - GUTTER_CELLS), behind.timeline_keys(parts.timeline, root)
            found = None if times is None or of is None else behind.expiring(*times, of)
        elif parts.has_histograms and bar >= 0 and 0 <= cell < parts.half:
            bins = len(root.stats.ttl or ())
            if bar < bins:
                found = behind.ttl_bin(bar, report.head.made_at_s)
            elif bar == bins > 0 and root.stats.no_ttl_keys is not None:
                found = behind.without_ttl()
        elif parts.has_histograms and bar >= 0 and cell >= parts.half + HISTOGRAM_GAP:
            paths = _most_without_ttl(report, len(_ttl_lines(report, parts.half)) - 1)
            found = behind.without_ttl(behind.keys_of((root, *paths[bar]))) if bar < len(paths) else None
        return None if found is None else behind.within_report(report, found)

    def charted(self, report: Report, state: ExpiryState) -> ExpiryState:
        """Return the state with the namespace of the timeline in place of the row under the cursor."""
        timeline = nearest(report.summary.expiry.timelines, state.subject)
        depth = 0 if timeline is None else len(timeline.path)
        subject = state.subject[:depth] if isinstance(state.subject, tuple) and depth else None
        return replace(state, subject=subject)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of the chart that fit, from top to bottom below the headline and the time ranges."""

    timeline: Timeline | None
    """The timeline; None if no key expires."""
    axis: Axis | None
    bars_height: int
    cliff_lines: list[Line]
    has_histograms: bool
    half: int

    @property
    def timeline_lines(self) -> int:
        return NO_TIMELINE_LINES if self.timeline is None else self.bars_height + 1 + len(self.cliff_lines)


def _parts(report: Report, state: ExpiryState, size: Size) -> _Parts:
    width, timeline = size.width - 2 * MARGIN, nearest(report.summary.expiry.timelines, state.subject)
    half, has_histograms = (width - HISTOGRAM_GAP) // 2, size.height >= HISTOGRAMS_FROM
    if timeline is None or not timeline.bins:
        return _Parts(None, None, 0, [], has_histograms, half)
    histogram_lines = 0
    if has_histograms:
        first = len(_ttl_lines(report, half))
        histogram_lines = 1 + max(first, len(_no_ttl_lines(report, half, first - 1)))
    axis = axis_for(state.time_range, timeline.end_s, report.head.made_at_s, width - GUTTER_CELLS)
    height = size.height - HEAD_LINES - histogram_lines
    below = cliff_lines(report, axis, width, min(MAX_CLIFF_LINES, height - MIN_BARS_LINES - 1))
    bars_height = max(MIN_BARS_LINES, min(MAX_BARS_LINES, height - len(below) - 1))
    return _Parts(timeline, axis, bars_height, below, has_histograms, half)


def _headline(report: Report, width: int) -> Line:
    """Return how many keys never expire, how many do, and when the first one does."""
    coverage, stats = report.head.coverage.kind, report.summary.root.stats
    if not plain(stats.keys):
        return (Span(literal("There are no keys."), Role.MUTED),)
    column = report.head.columns.get("ttl")
    if stats.no_ttl_share is None:
        why = display_text(column.reason) if column is not None and column.reason else literal("no reason given")
        return Span(literal("TTLs are not known: "), Role.WARN), Span(why, Role.MUTED)
    pieces = [LinePart(0, (Span(literal("without TTL "), Role.MUTED), Span(share_text(stats.no_ttl_share), Role.STRONG),
                        Span(literal(" of keys"), Role.MUTED)))]  # fmt: skip
    if stats.no_ttl_memory_bytes is not None and stats.memory_bytes:
        part = share_text(share_within(stats.no_ttl_memory_bytes, stats.memory_bytes))
        pieces.append(LinePart(1, (Span(part, Role.STRONG), Span(literal(" of memory"), Role.MUTED))))
    if stats.ttl is not None:
        is_estimate = any(isinstance(one, Estimate) for one in stats.ttl)
        expiring: Figure = round(sum(map(plain, stats.ttl)))
        if is_estimate:
            expiring = without(stats.keys, stats.no_ttl_keys or 0)
        verb = literal(" key expires") if fmt.noun(expiring, "key") == "key" else literal(" keys expire")
        pieces.append(LinePart(2, (Span(keys_text(expiring, coverage), Role.STRONG), Span(verb, Role.MUTED))))
    if stats.soonest_expiry_s is not None:
        away_s = stats.soonest_expiry_s - report.head.made_at_s
        first = fmt.duration(round(away_s * fmt.SECOND_MS)) if away_s >= 1 else literal("within a second")
        before = literal("the first in ") if away_s >= 1 else literal("the first ")
        pieces.append(LinePart(3, (Span(before, Role.MUTED), Span(first))))
    return fitted(pieces, width)


def _ttl_lines(report: Report, width: int) -> list[Line]:
    """Return the histogram of times to live, with the keys that have none."""
    stats, coverage = report.summary.root.stats, report.head.coverage.kind
    head: Line = (Span(literal("TTL of all keys"), Role.ACCENT),)
    if stats.ttl is None:
        return [head, (Span(fmt.NOTHING, Role.MUTED),)]
    is_known = len(stats.ttl) == len(TTL_EDGES_S) + 1
    rows = [(name, keys, Role.BAR) for name, keys in zip(TTL_NAMES, stats.ttl, strict=True)] if is_known else []
    if stats.no_ttl_keys is not None:
        rows.append((literal("no TTL"), stats.no_ttl_keys, Role.WARN))
    bars = [
        HorizontalBar(name, (keys_text(keys, coverage),), plain(keys), Role.MUTED, role) for name, keys, role in rows
    ]  # fmt: skip
    return [head, *bar_lines(bars, width)]


def _no_ttl_lines(report: Report, width: int, height: int) -> list[Line]:
    """Return the namespaces with most keys without TTL."""
    coverage = report.head.coverage.kind
    found: list[tuple[SafeText, Node]] = []
    for path in _most_without_ttl(report, height):
        is_other = any(one.kind is NodeKind.OTHER for one in path)
        found.append((literal("(other)") if is_other else display(label(path), limit=LABEL_CELLS), path[-1]))
    head: Line = (Span(literal("most keys without TTL"), Role.ACCENT),)
    if not found:
        return [head, (Span(literal("none: all keys seen have a TTL"), Role.MUTED),)]
    bars = [
        HorizontalBar(
            name, (keys_text(node.stats.no_ttl_keys, coverage), share_text(node.stats.no_ttl_share)),
            plain(node.stats.no_ttl_share or 0.0),
        )
        for name, node in found
    ]  # fmt: skip
    return [head, *bar_lines(bars, width, whole=1.0, name_cells=24)]


def _most_without_ttl(report: Report, count: int) -> list[tuple[Node, ...]]:
    """Return the paths with most keys without TTL: of the first level, split where they have several parts."""
    parts = [
        (node,) if part is node else (node, part)
        for node in report.summary.root.children
        for part in (node.children if len(node.children) > 1 else (node,))
    ]
    weighed = [(plain(path[-1].stats.no_ttl_keys or 0), path) for path in parts]
    return [path for keys, path in nlargest(count, weighed, key=itemgetter(0)) if keys > 0]
