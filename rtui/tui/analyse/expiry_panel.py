"""The Expiry panel: which keys never expire, when the others do, where many expire at once, and how long keys live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import noun
from rtui.analysis.report.document import Cliff, CoverageKind, ExpiryReport, Node, NodeKind, Report, Stats, Timeline
from rtui.analysis.report.members import DAY_S, TTL_EDGES_S, Figure
from rtui.analysis.report.tables.cell_text import noun_of, written
from rtui.analysis.report.tables.expiry import about_to_expire, cliffs, expiry, no_ttl, ttl_histogram
from rtui.analysis.report.timeline import columns, end_s
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.chart_lines import (
    Bar,
    bar_lines,
    beside_each_other,
    chart_lines,
    in_runs,
    inset,
    keys_text,
    kind_of,
    share_text,
    share_within,
    size_text,
    standing,
    value_of,
    without,
)
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable, panel_command
from rtui.tui.analyse.time_axis import Axis, TimeRange, axis_for, clock, day_and_clock, ticks, zone_name
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import display, display_text
from rtui.tui.kit.layout import Piece, fitted
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, joined, left, line_width, literal, right, width_of
from rtui.tui.kit.table_rows import Order

GUTTER_CELLS: Final = 7
"""The scale at the left of the timeline."""

TICK_CELLS: Final = 12
"""Times along the axis are at least so far apart."""

MAX_CLIFF_LINES: Final = 4
"""So many lines name cliffs under the timeline; the table has all of them."""

LOW_LINES: Final = 3
"""A timeline is at least so high."""

MAX_LINES: Final = 25
"""The chart is never higher."""

HIGH_LINES: Final = 8
"""And at most so high."""

LABEL_CELLS: Final = 40
"""A namespace is cut beyond this."""

LIVES: Final = (
    literal("< 1 min"), literal("< 10 min"), literal("< 1 h"), literal("< 1 day"),
    literal("< 7 days"), literal("< 30 days"), literal("< 1 year"),
    literal("≥ 1 year"),
)  # fmt: skip
"""What the bins of the TTL histogram are called, one more than there are edges."""


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
        """Return the timeline nearest to the namespace under the cursor, in UTC as in the tables."""
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
    """Return the panel in at most `height` lines: figures, timeline, cliffs, and with room the two histograms."""
    below = _histograms(report, width) if height >= LOW_LINES + 16 else []
    lines = [_headline(report, width), _choice(report, view, width)]
    lines += _timeline(report, width, height - len(lines) - len(below), view)
    return [clip(line, width) for line in [*lines, *below][:height]]


def _headline(report: Report, width: int) -> Line:
    """Say how much never expires, how much does and from when on."""
    kind, stats = kind_of(report), report.summary.root.stats
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
        expiring = _expiring(stats)
        verb = literal(" key expires") if noun_of(expiring, "key") == "key" else literal(" keys expire")
        pieces.append(Piece(2, (Span(keys_text(expiring, kind), Role.STRONG), Span(verb, Role.MUTED))))
    if stats.soonest_expiry_s is not None:
        away_s = stats.soonest_expiry_s - report.head.made_at_s
        first = fmt.duration(round(away_s * fmt.SECOND_MS)) if away_s >= 1 else literal("within a second")
        before = literal("the first in ") if away_s >= 1 else literal("the first ")
        pieces.append(Piece(3, (Span(before, Role.MUTED), Span(first))))
    return fitted(pieces, width)


def _expiring(stats: Stats) -> Figure:
    """Return how many keys expire."""
    seen = sum(value_of(one) for one in stats.ttl or ())
    is_estimate = any(isinstance(one, Estimate) for one in stats.ttl or ())
    return without(stats.keys, stats.no_ttl_keys or 0) if is_estimate else round(seen)


def _choice(report: Report, view: TimelineView, width: int) -> Line:
    """Return which keys and how far ahead, the chosen ones in brackets."""
    shown = timeline_of(report.summary.expiry, view)
    label = literal("all keys") if shown is None else display_text(shown.label, limit=LABEL_CELLS)
    spans: list[Span] = []
    for time_range in TimeRange:
        chosen = time_range is view.time_range
        text = SafeText(f"[{time_range.title}]" if chosen else f" {time_range.title} ")
        spans.append(Span(text, Role.TAB_ON if chosen else Role.TAB))
    zone = (Span(literal("  times are "), Role.FAINT), Span(zone_name(report.head.made_at_s, view.zone), Role.MUTED))
    head = (Span(literal("coming expiries of "), Role.MUTED), Span(label, Role.ACCENT), gap(2))
    line = (*head, *spans)
    room = width - line_width(line) - line_width(zone)
    return (*line, gap(room), *zone) if room >= 0 else line


def timeline_of(expiry: ExpiryReport, view: TimelineView) -> Timeline | None:
    """Return the chosen timeline, the first where there is none such, None where there are none at all."""
    if not expiry.timelines:
        return None
    return expiry.timelines[view.timeline if view.timeline < len(expiry.timelines) else 0]


def _timeline(report: Report, width: int, height: int, view: TimelineView) -> list[Line]:
    """Return the bars over the axis, and the cliffs below it."""
    shown = timeline_of(report.summary.expiry, view)
    if shown is None or not shown.bins:
        return [(), (Span(literal("Nothing that was seen expires."), Role.MUTED),), ()]
    axis = axis_for(view.time_range, shown.bins, report.head.made_at_s, width - GUTTER_CELLS, view.zone)
    cliffs = _cliffs(report, axis, width, view, max(1, height - LOW_LINES - 1))
    bars = max(LOW_LINES, min(HIGH_LINES, height - len(cliffs) - 1))
    values = [value_of(one.keys) for one in columns(shown, axis.start_s, axis.end_s, axis.columns)]
    rest = columns(shown, axis.end_s, end_s(shown), 1)
    beyond = rest[0].keys if rest else 0
    return [
        *_bars(values, axis, bars, report),
        _axis_line(axis, view.zone, beyond, width, kind_of(report)),
        *cliffs,
    ]


def _bars(values: Sequence[float], axis: Axis, height: int, report: Report) -> list[Line]:
    """Return the bars with their scale; those of cliffs stand out."""
    most, kind = max(values, default=0.0), kind_of(report)
    top = keys_text(round(most), CoverageKind.EXACT if kind is CoverageKind.PARTIAL else kind)
    scale = right(top if width_of(top) < GUTTER_CELLS else fmt.short_count(most), GUTTER_CELLS - 1)
    roles = [Role.BAR] * axis.columns
    for cliff in report.summary.expiry.cliffs:
        for at in range(axis.columns):
            start_s = axis.start_s + at * axis.step_s
            if start_s < cliff.end_s and cliff.start_s < start_s + axis.step_s:
                roles[at] = Role.WARN
    by_cell = [axis.column_of(cell) for cell in range(axis.cells)]
    lines: list[Line] = []
    for row, text in enumerate(standing([values[at] for at in by_cell], height)):
        mark = scale if row == 0 else left(literal(""), GUTTER_CELLS - 1)
        lines.append((Span(mark, Role.FAINT), gap(1), *in_runs(text, [roles[at] for at in by_cell])))
    return lines


def _axis_line(axis: Axis, zone: tzinfo | None, beyond: Figure, width: int, kind: CoverageKind) -> Line:
    """Return the times under the bars, and at the end how many keys expire later."""
    counted = beyond if isinstance(beyond, Estimate) else round(beyond)
    later = SafeText(f"{keys_text(counted, kind)} later →" if value_of(beyond) >= 1 else "")
    room, text = width - GUTTER_CELLS - width_of(later), ""
    for cell, label in ticks(axis, zone, TICK_CELLS):
        if max(len(text), cell) + len(label) + 1 > room:
            break
        text = f"{text:<{cell}}{label}" if len(text) < cell or not cell else text
    return gap(GUTTER_CELLS), Span(SafeText(f"{text:<{max(0, room)}}"), Role.MUTED), Span(later, Role.FAINT)


def _cliffs(report: Report, axis: Axis, width: int, view: TimelineView, room: int) -> list[Line]:
    """Say the greatest cliffs within the axis, each with a mark under its column and the words beside it."""
    lines: list[Line] = []
    for cliff in report.summary.expiry.cliffs:
        if axis.start_s <= cliff.start_s < axis.end_s:
            at = GUTTER_CELLS + axis.cell_of(cliff.start_s)
            said = _beside(at, cliff_pieces(cliff, kind_of(report), view.zone, axis), width)
            if len(lines) + len(said) <= min(MAX_CLIFF_LINES, room):
                lines += said
    if lines:
        return lines
    what = literal("No cliffs: nothing here stands out from the minutes around it.")
    return [(gap(GUTTER_CELLS), Span(what, Role.FAINT))]


def _beside(at: int, pieces: Sequence[Piece], width: int) -> list[Line]:
    """Put words behind a mark in column `at`, or before it; where they fit on neither side below it."""
    mark = Span(literal("▲"), Role.WARN)
    for kept in (pieces, pieces[:-1]):
        words = clip(fitted(kept, width), width)
        size = line_width(words)
        if at + 2 + size <= width:
            return [(gap(at), mark, gap(1), *words)]
        if size + 1 <= at:
            return [(gap(at - 1 - size), *words, gap(1), mark)]
    return [(gap(at), mark), (gap(min(at, width - size)), *words)]


def cliff_pieces(cliff: Cliff, kind: CoverageKind, zone: tzinfo | None, axis: Axis) -> list[Piece]:
    """Say a cliff: when, how many keys of which namespace, how much of it, how many bytes."""
    same_day = axis.end_s - axis.start_s <= 2 * DAY_S
    start = clock(cliff.start_s, zone) if same_day else day_and_clock(cliff.start_s, zone)
    when = SafeText(f"{start}–{clock(cliff.end_s, zone)}")
    keys = joined(
        (
            keys_text(cliff.keys, kind),
            SafeText(f"{noun(value_of(cliff.keys), 'key')} of"),
            display_text(cliff.label, limit=LABEL_CELLS),
        ),
        " ",
    )
    pieces = [
        Piece(0, (Span(when, Role.STRONG),)),
        Piece(0, (Span(keys),)),
        Piece(1, (Span(SafeText(f"{share_text(cliff.share)} of it"), Role.WARN),)),
    ]
    if cliff.memory_bytes is not None:
        pieces.append(Piece(2, (Span(size_text(cliff.memory_bytes, kind)),)))
    expected = SafeText(f"{written(cliff.expected_keys, fmt.short_count)} expected")
    return [*pieces, Piece(3, (Span(expected, Role.MUTED),))]


def _histograms(report: Report, width: int) -> list[Line]:
    """Return how long keys have to live, and where those are that live forever, side by side."""
    half = (width - 4) // 2
    first = [_title(literal("time to live of all keys")), *_lives(report, half)]
    second = [_title(literal("most keys without TTL")), *_without(report, half, len(first) - 1)]
    return [(), *beside_each_other(first, second, half + 4)]


def _title(text: SafeText) -> Line:
    return (Span(text, Role.ACCENT),)


def _lives(report: Report, width: int) -> list[Line]:
    """Return the histogram of times to live by magnitude, and what has none."""
    stats, kind = report.summary.root.stats, kind_of(report)
    if stats.ttl is None:
        return [(Span(fmt.NOTHING, Role.MUTED),)]
    rows = [*zip(LIVES, stats.ttl, strict=True)] if len(stats.ttl) == len(TTL_EDGES_S) + 1 else []
    if stats.no_ttl_keys is not None:
        rows.append((literal("no TTL"), stats.no_ttl_keys))
    most = max((value_of(keys) for _, keys in rows), default=0.0)
    return bar_lines(
        [
            Bar(name, (keys_text(keys, kind),), value_of(keys) / most if most else 0.0, Role.MUTED,
                Role.WARN if name == "no TTL" else Role.BAR)
            for name, keys in rows
        ],
        width,
    )  # fmt: skip


def _without(report: Report, width: int, most: int) -> list[Line]:
    """Return the namespaces of the first levels that hold most keys without TTL, with the share that they are."""
    kind = kind_of(report)
    found = sorted(_namespaces(report.summary.root), key=lambda pair: -value_of(pair[1].stats.no_ttl_keys or 0))
    shown = [(name, node) for name, node in found if value_of(node.stats.no_ttl_keys or 0) > 0][:most]
    if not shown:
        return [(Span(literal("none: every key that was seen expires"), Role.MUTED),)]
    return bar_lines(
        [
            Bar(name, (keys_text(node.stats.no_ttl_keys, kind), share_text(node.stats.no_ttl_share)),
                value_of(node.stats.no_ttl_share or 0.0))
            for name, node in shown
        ],
        width,
        name_cells=24,
    )  # fmt: skip


def _namespaces(root: Node) -> list[tuple[SafeText, Node]]:
    """Return the namespaces of the first level, each split once where it has several parts."""
    found = []
    for node in root.children:
        parts = node.children if len(node.children) > 1 else (node,)
        for part in parts:
            path = (node,) if part is node else (node, part)
            name = b"".join(one.name + one.separator for one in path)
            is_other = any(one.kind is NodeKind.OTHER for one in path)
            found.append((literal("(other)") if is_other else display(name, limit=LABEL_CELLS), part))
    return found
