"""The Expiry panel: which keys never expire, when the others do, where many expire at once, and how long keys live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import noun
from rtui.analysis.report.document import Cliff, CoverageKind, Node, NodeKind, Report, Timeline
from rtui.analysis.report.members import DAY_S, TTL_EDGES_S, Figure
from rtui.analysis.report.tables.expiry import (
    about_to_expire,
    cliffs,
    expiry,
    no_ttl,
    timeline_columns,
    timeline_end_s,
    ttl_histogram,
)
from rtui.analysis.report.tables.table import label, noun_of, written
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.chart_lines import (
    HorizontalBar,
    bar_lines,
    beside_each_other,
    chart_lines,
    coverage_of,
    in_runs,
    inset,
    keys_text,
    share_text,
    share_within,
    size_text,
    standing,
    value_of,
    without,
)
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable, panel_command
from rtui.tui.analyse.time_axis import Axis, TimeRange, axis_for, clock, day_and_clock, ticks, zone_name
from rtui.tui.kit.format import display, display_text
from rtui.tui.kit.layout import Piece, fitted
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, left, line_width, literal, right, width_of
from rtui.tui.kit.table_rows import Order

GUTTER_CELLS: Final = 7
"""Cells of the scale at the left of the timeline."""

TICK_CELLS: Final = 12
"""Times along the axis are at least this far apart."""

MAX_CLIFF_LINES: Final = 4
"""Lines that name cliffs under the timeline; the table has all of them."""

MIN_BARS_LINES: Final = 3
"""Lines of the timeline's bars at least."""

MAX_BARS_LINES: Final = 8
"""Lines of the timeline's bars at most."""

MAX_LINES: Final = 25
"""Lines of the chart at most."""

LABEL_CELLS: Final = 40
"""Longer names of namespaces are cut."""

TTL_NAMES: Final = tuple(
    map(SafeText, ("< 1 min", "< 10 min", "< 1 h", "< 1 day", "< 7 days", "< 30 days", "< 1 year", "≥ 1 year"))
)
"""Names of the bins of the TTL histogram, one more than there are edges."""


@dataclass(frozen=True, slots=True)
class ExpiryState(PanelState):
    """What the user has chosen in the panel."""

    time_range: TimeRange = TimeRange.HOUR


def _next_time_range(_report: Report, state: ExpiryState, _size: Size) -> ExpiryState:
    ranges = list(TimeRange)
    return replace(state, time_range=ranges[(ranges.index(state.time_range) + 1) % len(ranges)])


class ExpiryPanel(Panel[ExpiryState]):
    """The timeline of the namespace under the cursor; tables of cliffs, of lifetimes, and of keys that never expire."""

    id = "expiry"
    title = literal("Expiry")
    key = "4"
    help = "Show what expires when, what expires all at once, and what never does."
    initial = ExpiryState()
    commands = (
        panel_command(
            _next_time_range,
            "time_range", "o", "Time range", "Show the next hour, day, week, or all times at which keys expire.",
            footer=4,
        ),
    )  # fmt: skip

    def tables(self, report: Report, _state: ExpiryState) -> tuple[PanelTable, ...]:
        """Return cliffs, important keys that expire soon, namespaces, keys without TTL, and the TTL histogram."""
        needs, by_no_ttl = ("ttl",), Order("no_ttl_keys")
        return (
            PanelTable("cliffs", literal("cliffs"), partial(cliffs, report), order=Order("keys"), needs=needs,
                       empty=literal("No cliffs: no minutes stand out from those around them")),
            PanelTable("about_to_expire", literal("big or hot, soon gone"), partial(about_to_expire, report),
                       order=Order("expires_at", upward=True), needs=needs, top=literal("big or hot"),
                       empty=literal("None of the big and hot keys expires soon")),
            PanelTable("expiry", literal("namespaces"), partial(expiry, report), order=by_no_ttl, needs=needs),
            PanelTable("no_ttl", literal("without TTL"), partial(no_ttl, report), order=by_no_ttl, needs=needs,
                       empty=literal("Every key that was seen expires")),
            PanelTable("ttl_histogram", literal("time to live"), partial(ttl_histogram, report), needs=needs),
        )  # fmt: skip

    def chart_height(self, report: Report, state: ExpiryState, space: Size) -> int:
        """Return how many lines the chart takes: the same for every time range, so that the table does not move."""
        height = chart_lines(MAX_LINES, space.height)
        return height if report.summary.expiry.timelines else len(self.chart(report, state, Size(space.width, height)))

    def chart(self, report: Report, state: ExpiryState, size: Size) -> list[Line]:
        """Return the chart with the timeline nearest to the namespace under the cursor, in UTC as in the tables."""
        names = tuple(step.name for step in state.subject) if isinstance(state.subject, tuple) else ()
        timelines = report.summary.expiry.timelines
        near = [at for at, one in enumerate(timelines) if names[: len(one.path)] == one.path]
        view = TimelineView(state.time_range, max(near, key=lambda at: len(timelines[at].path), default=0))
        return inset(expiry_lines(report, size.width - 2, size.height, view))


@dataclass(frozen=True, slots=True)
class TimelineView:
    """Which timeline is drawn, and how."""

    time_range: TimeRange = TimeRange.HOUR
    timeline: int = 0
    """Index among the report's timelines; the first is that of all keys."""
    zone: tzinfo = UTC
    """The zone of all times shown."""


def expiry_lines(report: Report, width: int, height: int, view: TimelineView) -> list[Line]:
    """Return the chart in at most `height` lines: figures, timeline, cliffs, and with room two histograms."""
    timelines = report.summary.expiry.timelines
    timeline = timelines[view.timeline if view.timeline < len(timelines) else 0] if timelines else None
    histograms = _histograms(report, width) if height >= MIN_BARS_LINES + 16 else []
    lines = [_headline(report, width), _ranges_line(report, timeline, view, width)]
    if timeline is None or not timeline.bins:
        lines += [(), (Span(literal("Nothing that was seen expires."), Role.MUTED),), ()]
    else:
        lines += _timeline_lines(report, timeline, width, height - len(lines) - len(histograms), view)
    return [clip(line, width) for line in [*lines, *histograms][:height]]


def _headline(report: Report, width: int) -> Line:
    """Return how many keys never expire, how many do, and when the first one does."""
    coverage, stats = coverage_of(report), report.summary.root.stats
    if not value_of(stats.keys):
        return (Span(literal("There are no keys."), Role.MUTED),)
    column = report.head.columns.get("ttl")
    if stats.no_ttl_share is None:
        why = display_text(column.reason) if column is not None and column.reason else literal("no reason is given")
        return Span(literal("Times to live are not known: "), Role.WARN), Span(why, Role.MUTED)
    pieces = [Piece(0, (Span(literal("without TTL "), Role.MUTED), Span(share_text(stats.no_ttl_share), Role.STRONG),
                        Span(literal(" of keys"), Role.MUTED)))]  # fmt: skip
    if stats.no_ttl_memory_bytes is not None and stats.memory_bytes:
        part = share_text(share_within(stats.no_ttl_memory_bytes, stats.memory_bytes))
        pieces.append(Piece(1, (Span(part, Role.STRONG), Span(literal(" of bytes"), Role.MUTED))))
    if stats.ttl is not None:
        is_estimate = any(isinstance(one, Estimate) for one in stats.ttl)
        expiring: Figure = round(sum(map(value_of, stats.ttl)))
        if is_estimate:
            expiring = without(stats.keys, stats.no_ttl_keys or 0)
        verb = literal(" key expires") if noun_of(expiring, "key") == "key" else literal(" keys expire")
        pieces.append(Piece(2, (Span(keys_text(expiring, coverage), Role.STRONG), Span(verb, Role.MUTED))))
    if stats.soonest_expiry_s is not None:
        away_s = stats.soonest_expiry_s - report.head.made_at_s
        first = fmt.duration(round(away_s * fmt.SECOND_MS)) if away_s >= 1 else literal("within a second")
        before = literal("the first in ") if away_s >= 1 else literal("the first ")
        pieces.append(Piece(3, (Span(before, Role.MUTED), Span(first))))
    return fitted(pieces, width)


def _ranges_line(report: Report, timeline: Timeline | None, view: TimelineView, width: int) -> Line:
    """Return whose expiries are shown, the time ranges with the chosen one in brackets, and the zone of the times."""
    name = literal("all keys") if timeline is None else display_text(timeline.label, limit=LABEL_CELLS)
    line: list[Span] = [Span(literal("coming expiries of "), Role.MUTED), Span(name, Role.ACCENT), gap(2)]
    for time_range in TimeRange:
        is_chosen = time_range is view.time_range
        text = SafeText(f"[{time_range.title}]" if is_chosen else f" {time_range.title} ")
        line.append(Span(text, Role.TAB_ON if is_chosen else Role.TAB))
    zone = (Span(literal("  times are "), Role.FAINT), Span(zone_name(report.head.made_at_s, view.zone), Role.MUTED))
    space = width - line_width(tuple(line)) - line_width(zone)
    return (*line, gap(space), *zone) if space >= 0 else tuple(line)


def _timeline_lines(report: Report, timeline: Timeline, width: int, height: int, view: TimelineView) -> list[Line]:
    """Return the bars over their axis, and the cliffs below it."""
    axis = axis_for(view.time_range, timeline.bins, report.head.made_at_s, width - GUTTER_CELLS, view.zone)
    cliff_lines = _cliff_lines(report, axis, width, view.zone, min(MAX_CLIFF_LINES, height - MIN_BARS_LINES - 1))
    bars_height = max(MIN_BARS_LINES, min(MAX_BARS_LINES, height - len(cliff_lines) - 1))
    values = [value_of(one.keys) for one in timeline_columns(timeline, axis.start_s, axis.end_s, axis.columns)]
    later = timeline_columns(timeline, axis.end_s, timeline_end_s(timeline), 1)
    return [
        *_bar_lines(values, axis, bars_height, report),
        _axis_line(axis, view.zone, later[0].keys if later else 0, width, coverage_of(report)),
        *cliff_lines,
    ]


def _bar_lines(values: Sequence[float], axis: Axis, height: int, report: Report) -> list[Line]:
    """Return the bars with their scale; those of cliffs are highlighted."""
    most, coverage = max(values, default=0.0), coverage_of(report)
    top = keys_text(round(most), CoverageKind.EXACT if coverage is CoverageKind.PARTIAL else coverage)
    scale = right(top if width_of(top) < GUTTER_CELLS else fmt.short_count(most), GUTTER_CELLS - 1)
    roles = [Role.BAR] * axis.columns
    for cliff in report.summary.expiry.cliffs:
        for at in range(axis.columns):
            start_s = axis.start_s + at * axis.step_s
            if start_s < cliff.end_s and cliff.start_s < start_s + axis.step_s:
                roles[at] = Role.WARN
    column_of_cell = [axis.column_of(cell) for cell in range(axis.cells)]
    lines: list[Line] = []
    for row, text in enumerate(standing([values[at] for at in column_of_cell], height)):
        number = scale if row == 0 else left(literal(""), GUTTER_CELLS - 1)
        lines.append((Span(number, Role.FAINT), gap(1), *in_runs(text, [roles[at] for at in column_of_cell])))
    return lines


def _axis_line(axis: Axis, zone: tzinfo | None, later: Figure, width: int, coverage: CoverageKind) -> Line:
    """Return the times under the bars, and at the right how many keys expire later."""
    keys = later if isinstance(later, Estimate) else round(later)
    note = SafeText(f"{keys_text(keys, coverage)} later →" if value_of(later) >= 1 else "")
    space, text = width - GUTTER_CELLS - width_of(note), ""
    for cell, time in ticks(axis, zone, TICK_CELLS):
        if max(len(text), cell) + len(time) + 1 > space:
            break
        text = f"{text:<{cell}}{time}" if len(text) < cell or not cell else text
    return gap(GUTTER_CELLS), Span(SafeText(f"{text:<{max(0, space)}}"), Role.MUTED), Span(note, Role.FAINT)


def _cliff_lines(report: Report, axis: Axis, width: int, zone: tzinfo | None, height: int) -> list[Line]:
    """Return the greatest cliffs within the axis, each with a mark under its column; one line at least."""
    lines: list[Line] = []
    for cliff in report.summary.expiry.cliffs:
        if axis.start_s <= cliff.start_s < axis.end_s:
            at = GUTTER_CELLS + axis.cell_of(cliff.start_s)
            more = _beside_mark(at, cliff_pieces(cliff, coverage_of(report), zone, axis), width)
            if len(lines) + len(more) <= max(1, height):
                lines += more
    none = literal("No cliffs: nothing here stands out from the minutes around it.")
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


def cliff_pieces(cliff: Cliff, coverage: CoverageKind, zone: tzinfo | None, axis: Axis) -> list[Piece]:
    """Return what is known of a cliff: when, how many keys of which namespace, the share of it, the bytes."""
    is_within_days = axis.end_s - axis.start_s <= 2 * DAY_S
    start = clock(cliff.start_s, zone) if is_within_days else day_and_clock(cliff.start_s, zone)
    when = SafeText(f"{start}–{clock(cliff.end_s, zone)}")
    name = display_text(cliff.label, limit=LABEL_CELLS)
    keys = SafeText(f"{keys_text(cliff.keys, coverage)} {noun(value_of(cliff.keys), 'key')} of {name}")
    pieces = [
        Piece(0, (Span(when, Role.STRONG),)),
        Piece(0, (Span(keys),)),
        Piece(1, (Span(SafeText(f"{share_text(cliff.share)} of it"), Role.WARN),)),
    ]
    if cliff.memory_bytes is not None:
        pieces.append(Piece(2, (Span(size_text(cliff.memory_bytes, coverage)),)))
    expected = SafeText(f"{written(cliff.expected_keys, fmt.short_count)} expected")
    return [*pieces, Piece(3, (Span(expected, Role.MUTED),))]


def _histograms(report: Report, width: int) -> list[Line]:
    """Return the keys by time to live, and beside them the namespaces with most keys that never expire."""
    half = (width - 4) // 2
    first: list[Line] = [(Span(literal("time to live of all keys"), Role.ACCENT),), *_ttl_lines(report, half)]
    second: list[Line] = [
        (Span(literal("most keys without TTL"), Role.ACCENT),), *_no_ttl_lines(report, half, len(first) - 1),
    ]  # fmt: skip
    return [(), *beside_each_other(first, second, half + 4)]


def _ttl_lines(report: Report, width: int) -> list[Line]:
    """Return the histogram of times to live, with the keys that have none."""
    stats, coverage = report.summary.root.stats, coverage_of(report)
    if stats.ttl is None:
        return [(Span(fmt.NOTHING, Role.MUTED),)]
    rows = [(name, keys, Role.BAR) for name, keys in zip(TTL_NAMES, stats.ttl, strict=False)]
    if len(stats.ttl) != len(TTL_EDGES_S) + 1:
        rows = []
    if stats.no_ttl_keys is not None:
        rows.append((literal("no TTL"), stats.no_ttl_keys, Role.WARN))
    most = max((value_of(keys) for _, keys, _ in rows), default=0.0)
    return bar_lines(
        [
            HorizontalBar(name, (keys_text(keys, coverage),), value_of(keys) / most if most else 0.0, Role.MUTED, role)
            for name, keys, role in rows
        ],
        width,
    )


def _no_ttl_lines(report: Report, width: int, height: int) -> list[Line]:
    """Return the namespaces with most keys without TTL: of the first level, split where they have several parts."""
    coverage = coverage_of(report)
    found: list[tuple[float, SafeText, Node]] = []
    for node in report.summary.root.children:
        for part in node.children if len(node.children) > 1 else (node,):
            path = (node,) if part is node else (node, part)
            is_other = any(one.kind is NodeKind.OTHER for one in path)
            name = literal("(other)") if is_other else display(label(path), limit=LABEL_CELLS)
            found.append((value_of(part.stats.no_ttl_keys or 0), name, part))
    found = [one for one in sorted(found, key=lambda one: -one[0]) if one[0] > 0][:height]
    if not found:
        return [(Span(literal("none: every key that was seen expires"), Role.MUTED),)]
    bars = [
        HorizontalBar(
            name, (keys_text(node.stats.no_ttl_keys, coverage), share_text(node.stats.no_ttl_share)),
            value_of(node.stats.no_ttl_share or 0.0),
        )
        for _, name, node in found
    ]  # fmt: skip
    return bar_lines(bars, width, name_cells=24)
