"""The Types panel and the Big keys panel.

How many keys of each type, how long, in which encodings, and the sizes that the server counts; the largest keys of all
types or of one, by bytes or by length, marked by thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark, noun
from rtui.analysis.query import behind
from rtui.analysis.query.behind import Behind
from rtui.analysis.report.document import ColumnState, EncodingReport, Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.keys import SizeMeasure, above_thresholds, big_keys, longer_keys, looked_at
from rtui.analysis.report.tables.table import Table
from rtui.analysis.report.tables.totals import encodings, frequency_histogram, idle_histogram, keysizes, types
from rtui.analysis.report.thresholds import DEFAULT_PRESET, Preset, preset, preset_names
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import AnalysePanel, PanelState, PanelTable, panel_command, sample_note, unfound
from rtui.tui.kit.chart_lines import (
    HorizontalBar,
    bar_lines,
    beside_each_other,
    inset,
    keys_text,
    paragraph,
    share_text,
    size_text,
    standing,
)
from rtui.tui.kit.layout import MARGIN, display, display_text
from rtui.tui.kit.panel_screen import following
from rtui.tui.kit.styled_text import Line, Role, Span, gap, joined, left, line_width, literal, type_role, width_of
from rtui.tui.kit.table_rows import ColumnOrder

NAME_CELLS: Final = 14
"""Longer names of types and encodings are cut."""

SIDE_CELLS: Final = 108
"""From this width on encodings stand beside the types."""

LENGTHS_CELLS: Final = 60
"""From this width on lengths are shown."""

HISTOGRAM_LINES: Final = 4
HISTOGRAM_BAR_CELLS: Final = 3
HISTOGRAM_GAP: Final = 3
"""Of the server's histograms: their height, the width of their bars at least, and the blank cells between two."""


class TypesPanel(AnalysePanel[PanelState]):
    """Bars of types and encodings; tables of them, of the server's own sizes, and of idle times and counters."""

    id = "types"
    title = literal("Types")
    key = "7"
    help = "Show keys, memory, lengths and encodings of each type."
    words = "type object encoding"

    def tables(self, report: Report, _state: PanelState) -> tuple[PanelTable, ...]:
        stats = report.summary.root.stats
        tables = [
            PanelTable("types", literal("types"), partial(types, report), order=ColumnOrder("keys")),
            PanelTable("encodings", literal("encodings"), partial(encodings, report), needs=("encoding",)),
        ]
        if report.keysizes:
            tables.append(PanelTable("keysizes", literal("key sizes (INFO keysizes)"), partial(keysizes, report)))
        if stats.idle is not None:
            tables.append(PanelTable("idle", literal("idle time"), partial(idle_histogram, report)))
        if stats.frequency is not None:
            tables.append(PanelTable("frequency", literal("access counters"), partial(frequency_histogram, report)))
        return tuple(tables)

    def chart(self, report: Report, _state: PanelState, size: Size) -> list[Line]:
        """Return bars of types and encodings, then missing columns, and with room the server's histograms."""
        width, missing = size.width - 2, _missing_lines(report, size.width - 2)
        if not report.summary.types and not report.keysizes:
            return inset([(Span(literal("There are no keys."), Role.MUTED),), *missing], size)
        if width >= SIDE_CELLS:
            first = (width - 4) * 3 // 5
            lines = beside_each_other(_type_lines(report, first), _encoding_lines(report, width - 4 - first), first + 4)
        else:
            lines = _type_lines(report, width)
            more = _encoding_lines(report, width)
            if len(lines) + len(more) + 1 + len(missing) <= size.height:
                lines += [(), *more]
        lines += missing
        histograms = _histogram_lines(report, width)
        if histograms and len(lines) + HISTOGRAM_LINES + 4 <= size.height:
            lines += [(), *histograms]
        return inset(lines, size)

    def behind(self, report: Report, _state: PanelState, size: Size, x: int, y: int) -> Behind | None:
        """Return the query for the keys of the type or encoding whose line this is."""

        types, encoded, width = report.summary.types, _encodings_in_order(report), size.width - 2 * MARGIN
        at, found = y - 1, None
        if width >= SIDE_CELLS:
            is_second = x - MARGIN >= (width - 4) * 3 // 5 + 4
        else:
            lines = len(types) + len(encoded) + 3 + len(_missing_lines(report, width))
            is_second = at > len(types) and bool(encoded) and lines <= size.height
            at -= len(types) + 2 if is_second else 0
        if is_second and 0 <= at < len(encoded):
            found = behind.encoding_keys(encoded[at].key_type, encoded[at].encoding)
        elif not is_second and 0 <= at < len(types):
            found = behind.type_keys(types[at].name)
        return None if found is None else behind.within_report(report, found)


def _type_lines(report: Report, width: int) -> list[Line]:
    """Return the keys, bytes and lengths of each type; bars show bytes, else keys."""
    coverage, types = report.head.coverage.kind, report.summary.types
    has_memory = any(one.stats.memory_bytes is not None for one in types)
    memory = report.head.columns.get("memory")
    is_denied = memory is not None and memory.state is ColumnState.DENIED
    bars = []
    for one in types:
        size, lengths = size_text(one.stats.memory_bytes, coverage), literal("length unknown")
        if is_denied and one.stats.memory_bytes is None:
            size = literal("denied")
        if one.length is not None:
            spell = fmt.size if one.unit == "bytes" else fmt.short_count
            between = [spell(plain(figure), _mark(figure)) for figure in (one.length.p50, one.length.p99)]
            may_lack = one.name in report.summary.big.length_not_asked
            lengths = joined([*between, spell(one.length.max, Mark.AT_LEAST if may_lack else Mark.EXACT)])
            if one.unit != "bytes":
                lengths = SafeText(f"{lengths} {display_text(one.unit, limit=12)}")
        figures = (keys_text(one.stats.keys, coverage), size, lengths)
        name, role = display(one.name, limit=NAME_CELLS) or literal("(no name)"), type_role(one.name)
        weight = plain((one.stats.memory_bytes or 0) if has_memory else one.stats.keys)
        bars.append(HorizontalBar(name, figures if width >= LENGTHS_CELLS else figures[:2], weight, role, role))
    columns = "keys, memory, length p50 · p99 · max" if width >= LENGTHS_CELLS else "keys, memory"
    note = SafeText(f"  {columns}; bars show {'memory' if has_memory else 'keys'}")
    head: Line = (Span(literal("types"), Role.ACCENT), Span(note, Role.MUTED))
    return [head, *bar_lines(bars, width, name_cells=NAME_CELLS, cap=32)]


def _mark(figure: Figure) -> Mark:
    """Return the mark of a figure whose interval has no room here; the table has it."""
    return Mark.ABOUT if isinstance(figure, Estimate) and figure.low < figure.high else Mark.EXACT


def _encoding_lines(report: Report, width: int) -> list[Line]:
    """Return the encodings of each type with their shares of it, in the order of the types; nothing without any."""
    found = report.summary.encodings
    if not found:
        return []
    note = Span(literal("  share of the type, 95 %"), Role.MUTED)
    bars = []
    for one in _encodings_in_order(report):
        name = joined((display(one.key_type, limit=NAME_CELLS), display(one.encoding, limit=NAME_CELLS)), " ")
        role = type_role(one.key_type)
        bars.append(HorizontalBar(name, (share_text(one.share),), plain(one.share), role, role))
    lines = bar_lines(bars, width, whole=1.0, name_cells=NAME_CELLS * 2, cap=20)
    return [(Span(literal("encodings"), Role.ACCENT), note), *lines]


def _encodings_in_order(report: Report) -> list[EncodingReport]:
    """Return the encodings of each type in the order of the types, the largest share first."""
    order = {one.name: at for at, one in enumerate(report.summary.types)}
    found = report.summary.encodings
    return sorted(found, key=lambda one: (order.get(one.key_type, len(order)), -plain(one.share)))


def _missing_lines(report: Report, width: int) -> list[Line]:
    """Return why types, memory, lengths or encodings are missing, or not of all keys."""
    lines: list[Line] = []
    for name in ("type", "memory", "length", "encoding"):
        column = report.head.columns.get(name)
        if column is None or not column.reason or column.state is ColumnState.COMPLETE:
            continue
        role = Role.WARN if column.state is ColumnState.DENIED else Role.MUTED
        state = "" if column.state is ColumnState.SOME else f" {column.state.value}"
        text = display_text(f"{name}{state}: {column.reason}")
        lines += paragraph(text, width, role)[:2]
    return [(), *lines] if lines else []


def _histogram_lines(report: Report, width: int) -> list[Line]:
    """Return as many of the server's own histograms side by side as fit; empty if none fits.

    Each has its name, bars, and below them the lower bound of each bin, a power of two.
    """
    rows: list[Line] = [()] * (HISTOGRAM_LINES + 2)
    used = 0
    for one in report.keysizes:
        bins = [(low, keys) for low, keys in one.bins if low >= 0]
        name = display_text(one.name.removeprefix("distrib_"), limit=24)
        total = sum(keys for _, keys in bins)
        measure = "by memory" if "string" in one.name else "by elements"
        labels = [fmt.power_of_two(low) for low, _ in bins]
        bin_cells = max([HISTOGRAM_BAR_CELLS, *map(width_of, labels)]) + 1
        bars = standing([keys for _, keys in bins], HISTOGRAM_LINES)
        block: list[Line] = [
            (Span(name), Span(SafeText(f"  {fmt.short_count(total)} {noun(total, 'key')}, {measure}"), Role.MUTED)),
            *((Span(SafeText("".join(f"{mark * (bin_cells - 1)} " for mark in bar)), Role.BAR),) for bar in bars),
            (Span(SafeText("".join(left(label, bin_cells) for label in labels)), Role.MUTED),),
        ]
        cells = max(map(line_width, block))
        if used + cells > width:
            break
        used += cells + HISTOGRAM_GAP
        rows = [
            (*row, *line, gap(cells + HISTOGRAM_GAP - line_width(line))) for row, line in zip(rows, block, strict=True)
        ]
    head: Line = (
        Span(literal("key sizes by the server"), Role.ACCENT),
        Span(literal("  exact, of all keys: INFO keysizes"), Role.MUTED),
    )
    return [head, *rows] if used else []


TYPE_LIMIT: Final = 16
"""Characters of a type's name in the title of its table."""


@dataclass(frozen=True, slots=True)
class BigKeysState(PanelState):
    """The user's choices in the panel."""

    by_length: bool = False
    preset: str | None = None
    """Name of the thresholds that mark rows, None for the report's own."""


LONGER: Final = "There may be longer keys"
"""The warning of a list by length that may lack keys, since not all were asked; the table's note says more."""


class BigKeysPanel(AnalysePanel[BigKeysState]):
    """A table for all types and one for each type."""

    id = "big"
    title = literal("Big keys")
    key = "3"
    help = "Show the biggest keys, overall and of each type."
    words = "bigkeys memkeys largest"
    is_ranking = True
    initial = BigKeysState()
    commands = (
        panel_command(
            lambda _report, state, _size: replace(state, by_length=not state.by_length, table_id="", subject=None),
            "measure", "M", "Measure", "Rank the biggest keys by memory or by length.", footer=10,
        ),
        panel_command(
            lambda report, state, _size: replace(
                state, preset=following(preset_names(), preset_name(report, state))
            ),
            "preset", "T", "Limits", "Choose the big-key thresholds: those of various clouds and tools.",
            footer=10,
        ),
    )  # fmt: skip

    def tables(self, report: Report, state: BigKeysState) -> tuple[PanelTable, ...]:
        big = report.summary.big
        by_type = big.by_type_length if state.by_length else big.by_type_memory
        by: SizeMeasure = "length" if state.by_length else "memory"
        name = preset_name(report, state)
        thresholds = preset(name)
        sampled = looked_at(report)
        note: Line = (
            Span(literal("the longest") if state.by_length else literal("the largest by memory")),
            Span(literal(" · ! above thresholds of "), Role.MUTED),
            Span(SafeText(name), Role.ACCENT),
            Span(SafeText(f": {thresholds.title}"), Role.MUTED),
        )
        lists = [
            PanelTable(
                f"big {by} {'' if key_type is None else key_type!r}",
                literal("all types") if key_type is None else display(key_type, limit=TYPE_LIMIT),
                partial(big_keys, report, by, key_type),
                partial(_is_big, thresholds),
                (*sample_note(sampled or (LONGER if state.by_length and longer_keys(report, key_type) else "")), *note),
                ColumnOrder(by),
                needs=(by,),
                top=literal("longest" if state.by_length else "largest"),
            )
            for key_type in (None, *by_type)
        ]
        return *lists, _above(report, sampled)


def _above(report: Report, sampled: str) -> PanelTable:
    """Return the list of how many keys are above the thresholds that they were counted by."""
    name = report.head.scope.preset
    thresholds = preset(name if name in preset_names() else DEFAULT_PRESET)

    def limits(key_type: bytes) -> tuple[int | None, int | None]:
        found = thresholds.limits(key_type)
        return found.length, found.memory_bytes

    note = (*sample_note(sampled), Span(literal("big-key thresholds of "), Role.MUTED))
    return PanelTable(
        "big thresholds",
        literal("above thresholds"),
        partial(above_thresholds, report, limits),
        note=(*note, Span(display_text(name, limit=TYPE_LIMIT), Role.ACCENT)),
        order=ColumnOrder("keys"),
        empty=unfound(report, "No key is above the thresholds"),
    )


def preset_name(report: Report, state: BigKeysState) -> str:
    """Return the name of the thresholds in use: the chosen ones, else the report's, else the default."""
    name = state.preset or report.head.scope.preset
    return name if name in preset_names() else DEFAULT_PRESET


def _is_big(thresholds: Preset, table: Table, row: int) -> bool:
    key_type, memory, length = (table.rows[row][table.column(name)] for name in ("type", "memory", "length"))
    return thresholds.is_big(
        key_type if isinstance(key_type, bytes) else None,
        memory if isinstance(memory, int) else None,
        length if isinstance(length, int) else None,
    )
