"""The Types panel: how many keys of each type, how long, in which encodings, and the sizes that the server counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import noun
from rtui.analysis.report.document import ColumnState, CoverageKind, KeySizes, Report, TypeReport
from rtui.analysis.report.tables.table import written
from rtui.analysis.report.tables.types import encodings, frequency_histogram, idle_histogram, keysizes, types
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.chart_lines import (
    HorizontalBar,
    bar_lines,
    beside_each_other,
    chart_lines,
    coverage_of,
    inset,
    keys_text,
    share_text,
    size_text,
    standing,
    value_of,
)
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable
from rtui.tui.kit.format import display, display_text
from rtui.tui.kit.layout import prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, joined, left, line_width, literal, type_role, width_of
from rtui.tui.kit.table_rows import Order

NAME_CELLS: Final = 14
"""Longer names of types and encodings are cut."""

SIDE_CELLS: Final = 108
"""From this width on encodings stand beside the types."""

LENGTHS_CELLS: Final = 60
"""From this width on lengths are shown."""

HISTOGRAM_LINES: Final = 4
"""Height of the server's histograms."""

HISTOGRAM_BAR_CELLS: Final = 3
"""Width of their bars at least."""

HISTOGRAM_GAP: Final = 3
"""Blank cells between them."""


class TypesPanel(Panel[PanelState]):
    """Bars of types and encodings; tables of them, of the server's own sizes, and of idle times and counters."""

    id = "types"
    title = literal("Types")
    key = "6"
    help = "Show how much there is of each type, how long and in which encodings."

    def tables(self, report: Report, _state: PanelState) -> tuple[PanelTable, ...]:
        """Return the tables; those of figures that the report does not have are left out."""
        stats = report.summary.root.stats
        tables = [
            PanelTable("types", literal("types"), partial(types, report), order=Order("keys")),
            PanelTable("encodings", literal("encodings"), partial(encodings, report), needs=("encoding",)),
        ]
        if report.keysizes:
            tables.append(PanelTable("keysizes", literal("sizes by the server"), partial(keysizes, report)))
        if stats.idle is not None:
            tables.append(PanelTable("idle", literal("idle time"), partial(idle_histogram, report)))
        if stats.frequency is not None:
            tables.append(PanelTable("frequency", literal("access counters"), partial(frequency_histogram, report)))
        return tuple(tables)

    def chart_height(self, report: Report, _state: PanelState, space: Size) -> int:
        """Return how many lines the chart takes."""
        return len(types_lines(report, space.width - 2, chart_lines(space.height, space.height)))

    def chart(self, report: Report, _state: PanelState, size: Size) -> list[Line]:
        """Return bars of types and encodings, and where there is room the server's histograms."""
        return inset(types_lines(report, size.width - 2, size.height))


def types_lines(report: Report, width: int, height: int) -> list[Line]:
    """Return the chart in at most `height` lines: types, encodings, missing columns, then the server's histograms."""
    types, missing = report.summary.types, _missing_lines(report, width)
    if not types and not report.keysizes:
        return [clip(line, width) for line in [(Span(literal("There are no keys."), Role.MUTED),), *missing][:height]]
    if width >= SIDE_CELLS:
        first = (width - 4) * 3 // 5
        lines = beside_each_other(_type_lines(report, first), _encoding_lines(report, width - 4 - first), first + 4)
    else:
        lines = _type_lines(report, width)
        more = _encoding_lines(report, width)
        if len(lines) + len(more) + 1 + len(missing) <= height:
            lines += [(), *more]
    lines += missing
    histograms = _histogram_lines(report.keysizes, width)
    if histograms and len(lines) + HISTOGRAM_LINES + 4 <= height:
        lines += [(), *histograms]
    return [clip(line, width) for line in lines[:height]]


def _type_lines(report: Report, width: int) -> list[Line]:
    """Return the keys, bytes and lengths of each type; bars show bytes, or keys where those are unknown."""
    coverage, types = coverage_of(report), report.summary.types
    has_memory = any(one.stats.memory_bytes is not None for one in types)
    weights = [value_of((one.stats.memory_bytes or 0) if has_memory else one.stats.keys) for one in types]
    most = max(weights, default=0.0)
    memory = report.head.columns.get("memory")
    is_denied = memory is not None and memory.state is ColumnState.DENIED
    bars = []
    for one, weight in zip(types, weights, strict=True):
        size = size_text(one.stats.memory_bytes, coverage)
        if is_denied and one.stats.memory_bytes is None:
            size = literal("denied")
        figures = [keys_text(one.stats.keys, coverage), size]
        if width >= LENGTHS_CELLS:
            figures.append(_lengths_text(one))
        name, role = display(one.name, limit=NAME_CELLS) or literal("(no name)"), type_role(one.name)
        bars.append(HorizontalBar(name, tuple(figures), weight / most if most else 0.0, role, role))
    lengths = ", length p50 · p99 · max" if width >= LENGTHS_CELLS else ""
    note = SafeText(f"  keys, bytes{lengths}; bars show {'bytes' if has_memory else 'keys'}")
    head: Line = (Span(literal("types"), Role.ACCENT), Span(note, Role.MUTED))
    return [head, *bar_lines(bars, width, name_cells=NAME_CELLS, cap=32)]


def _lengths_text(one: TypeReport) -> SafeText:
    """Return how long the keys of a type are: `7 · 54 · 360 fields`."""
    spread = one.length
    if spread is None:
        return literal("length unknown")
    figures = (spread.p50, spread.p99, spread.max)
    if one.unit == "bytes":
        return joined([size_text(figure, CoverageKind.EXACT) for figure in figures])
    lengths = joined([written(figure, fmt.short_count) for figure in figures])
    return SafeText(f"{lengths} {display_text(one.unit, limit=12)}")


def _encoding_lines(report: Report, width: int) -> list[Line]:
    """Return the encodings of each type with their shares of it, in the order of the types; nothing without any."""
    found = report.summary.encodings
    if not found:
        return []
    note = Span(literal("  share of the type, 95 %"), Role.MUTED)
    order = {one.name: at for at, one in enumerate(report.summary.types)}
    bars = []
    for one in sorted(found, key=lambda one: (order.get(one.kind, len(order)), -value_of(one.share))):
        name = joined((display(one.kind, limit=NAME_CELLS), display(one.encoding, limit=NAME_CELLS)), " ")
        role = type_role(one.kind)
        bars.append(HorizontalBar(name, (share_text(one.share),), value_of(one.share), role, role))
    return [(Span(literal("encodings"), Role.ACCENT), note), *bar_lines(bars, width, name_cells=NAME_CELLS * 2, cap=20)]


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
        lines += [line[1:] for line in prose(text, width + 2, role)][:2]
    return [(), *lines] if lines else []


def _histogram_lines(found: Sequence[KeySizes], width: int) -> list[Line]:
    """Return as many of the server's own histograms side by side as fit; nothing where none does."""
    head: Line = (
        Span(literal("sizes as the server counts them"), Role.ACCENT),
        Span(literal("  exact, of all keys: INFO keysizes"), Role.MUTED),
    )
    rows: list[Line] = [()] * (HISTOGRAM_LINES + 2)
    used = 0
    for one in found:
        block = _histogram(one)
        cells = max(map(line_width, block))
        if used + cells > width:
            break
        used += cells + HISTOGRAM_GAP
        rows = [
            (*row, *line, gap(cells + HISTOGRAM_GAP - line_width(line))) for row, line in zip(rows, block, strict=True)
        ]
    return [head, *rows] if used else []


def _histogram(one: KeySizes) -> list[Line]:
    """Return one histogram: its name, bars, and the lower bound of each bin, a power of two."""
    bins = [(low, keys) for low, keys in one.bins if low >= 0]
    name = display_text(one.name.removeprefix("distrib_"), limit=24)
    total = sum(keys for _, keys in bins)
    measure = "by bytes" if "string" in one.name else "by elements"
    labels = [fmt.power_of_two(low) for low, _ in bins]
    cells = max([HISTOGRAM_BAR_CELLS, *map(width_of, labels)]) + 1
    rows = standing([keys for _, keys in bins], HISTOGRAM_LINES)
    return [
        (Span(name), Span(SafeText(f"  {fmt.short_count(total)} {noun(total, 'key')}, {measure}"), Role.MUTED)),
        *((Span(SafeText("".join(f"{mark * (cells - 1)} " for mark in row)), Role.BAR),) for row in rows),
        (Span(SafeText("".join(left(label, cells) for label in labels)), Role.MUTED),),
    ]
