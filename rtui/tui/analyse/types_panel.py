"""The Types panel: how many keys of each type, how long, in which encodings, and the sizes that the server counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis.humanize import noun
from rtui.analysis.report.document import ColumnState, CoverageKind, EncodingReport, KeySizes, Report, TypeReport
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cell_text import written
from rtui.analysis.report.tables.types import encodings, frequency_histogram, idle_histogram, keysizes, types
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.chart_lines import (
    Bar,
    bar_lines,
    beside_each_other,
    chart_lines,
    inset,
    keys_text,
    kind_of,
    share_text,
    size_text,
    standing,
    value_of,
)
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import display, display_text
from rtui.tui.kit.layout import prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, joined, left, line_width, literal, type_role, width_of
from rtui.tui.kit.table_rows import Order

NAME_CELLS: Final = 14
"""A type or an encoding is cut beyond this."""

SIDE_CELLS: Final = 108
"""From this width on encodings stand beside the types."""

LENGTHS_CELLS: Final = 60
"""From this width on lengths are told too."""

SIZE_LINES: Final = 4
"""A histogram of the server is so high."""

SIZE_CELLS: Final = 3
"""Each of its bars is so wide."""

_REASONED: Final = (ColumnState.DENIED, ColumnState.UNSUPPORTED, ColumnState.NOT_ASKED)
"""States for which the panel says why a figure is missing."""


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
    """Return the panel in at most `height` lines: types, their lengths, encodings, then the server's histograms."""
    types, notes = report.summary.types, _notes(report, width)
    if not types and not report.keysizes:
        return [clip(line, width) for line in [(Span(literal("There are no keys."), Role.MUTED),), *notes][:height]]
    if width >= SIDE_CELLS:
        first = (width - 4) * 3 // 5
        lines = beside_each_other(_types(report, first), _encodings(report, width - 4 - first, len(types)), first + 4)
    else:
        lines = _types(report, width)
        encodings = _encodings(report, width, len(types))
        if len(lines) + len(encodings) + 1 + len(notes) <= height:
            lines += [(), *encodings]
    lines += notes
    sizes = _sizes(report.keysizes, width)
    if sizes and len(lines) + SIZE_LINES + 4 <= height:
        lines += [(), *sizes]
    return [clip(line, width) for line in lines[:height]]


def _types(report: Report, width: int) -> list[Line]:
    """Return a bar for each type: keys, bytes, lengths; bars are bytes, or keys where those are unknown."""
    kind, types = kind_of(report), report.summary.types
    has_memory = any(one.stats.memory_bytes is not None for one in types)
    measure = literal("bytes") if has_memory else literal("keys")
    most = max((_weight(one, has_memory=has_memory) for one in types), default=0.0)
    denied = _is_denied(report, "memory")
    bars = [
        Bar(
            display(one.name, limit=NAME_CELLS) if one.name else literal("(no name)"),
            (
                keys_text(one.stats.keys, kind),
                literal("denied")
                if denied and one.stats.memory_bytes is None
                else size_text(one.stats.memory_bytes, kind),
                *((_lengths(one),) if width >= LENGTHS_CELLS else ()),
            ),
            _weight(one, has_memory=has_memory) / most if most else 0.0,
            type_role(one.name),
            type_role(one.name),
        )
        for one in types
    ]
    columns = literal("keys, bytes, length p50 · p99 · max") if width >= LENGTHS_CELLS else literal("keys, bytes")
    head: Line = (
        Span(literal("types"), Role.ACCENT),
        Span(SafeText(f"  {columns}; bars show {measure}"), Role.MUTED),
    )
    return [head, *bar_lines(bars, width, name_cells=NAME_CELLS, cap=32)]


def _weight(one: TypeReport, *, has_memory: bool) -> float:
    return value_of((one.stats.memory_bytes or 0) if has_memory else one.stats.keys)


def _lengths(one: TypeReport) -> SafeText:
    """Say how long keys of a type are: `7 · 54 · 360 fields`."""
    spread = one.length
    if spread is None:
        return literal("length unknown")
    texts = [_length(spread.p50, one.unit), _length(spread.p99, one.unit), _length(spread.max, one.unit)]
    unit = "" if one.unit == "bytes" else f" {display_text(one.unit, limit=12)}"
    return SafeText(f"{joined(texts)}{unit}")


def _length(figure: Figure, unit: str) -> SafeText:
    if unit == "bytes":
        return size_text(figure, CoverageKind.EXACT)
    return written(figure, fmt.short_count)


def _encodings(report: Report, width: int, types: int) -> list[Line]:
    """Return the encodings of each type with their shares; a share of a sample has its interval beside it."""
    found = report.summary.encodings
    if not found:
        return []
    head: Line = (Span(literal("encodings"), Role.ACCENT), Span(literal("  share of the type, 95 %"), Role.MUTED))
    order = {one.name: at for at, one in enumerate(report.summary.types)}
    rows = sorted(found, key=lambda one: (order.get(one.kind, types), -value_of(one.share)))
    return [head, *bar_lines([_encoding(one) for one in rows], width, name_cells=NAME_CELLS * 2, cap=20)]


def _encoding(one: EncodingReport) -> Bar:
    name = joined((display(one.kind, limit=NAME_CELLS), display(one.encoding, limit=NAME_CELLS)), " ")
    return Bar(
        name, (share_text(one.share),), value_of(one.share), type_role(one.kind),
        type_role(one.kind),
    )  # fmt: skip


def _is_denied(report: Report, fact: str) -> bool:
    column = report.head.columns.get(fact)
    return column is not None and column.state is ColumnState.DENIED


def _notes(report: Report, width: int) -> list[Line]:
    """Say why memory, lengths or encodings are missing or not of all keys."""
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


def _sizes(found: Sequence[KeySizes], width: int) -> list[Line]:
    """Return as many of the server's own histograms as stand beside each other; each says what it counts."""
    head: Line = (
        Span(literal("sizes as the server counts them"), Role.ACCENT),
        Span(literal("  exact, of all keys: INFO keysizes"), Role.MUTED),
    )
    blocks: list[list[Line]] = []
    used = 0
    for one in found:
        block = _size_block(one)
        cells = max(map(line_width, block))
        if used + cells > width:
            break
        blocks.append([(*line, gap(cells + 3 - line_width(line))) for line in block])
        used += cells + 3
    if not blocks:
        return []
    return [head, *(tuple(span for line in row for span in line) for row in zip(*blocks, strict=True))]


def _size_block(one: KeySizes) -> list[Line]:
    """Return one histogram: its name, bars, and the lower bound of each bin, a power of two."""
    bins = [(low, keys) for low, keys in one.bins if low >= 0]
    is_bytes = "string" in one.name
    name = display_text(one.name.removeprefix("distrib_"), limit=24)
    total = sum(keys for _, keys in bins)
    labels = [fmt.power_of_two(low) for low, _ in bins]
    cells = max([SIZE_CELLS, *(width_of(label) for label in labels)]) + 1
    rows = standing([keys for _, keys in bins], SIZE_LINES)
    measure = "by bytes" if is_bytes else "by elements"
    lines: list[Line] = [
        (Span(name), Span(SafeText(f"  {fmt.short_count(total)} {noun(total, 'key')}, {measure}"), Role.MUTED))
    ]
    lines += [(Span(SafeText("".join(f"{mark * (cells - 1)} " for mark in row)), Role.BAR),) for row in rows]
    axis = "".join(left(label, cells) for label in labels)
    return [*lines, (Span(SafeText(axis), Role.MUTED),)]
