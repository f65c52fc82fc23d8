"""The lines of a table: which columns fit into a width, the line of their titles, and the line of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Reason, Unknown
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit import format as fmt
from rtui.tui.kit.styled_text import Line, Role, Span, cut, cut_middle, gap, left, literal, right, type_role, width_of
from rtui.tui.kit.table_rows import Order

GAP_CELLS: Final = 2
"""Blank cells before each column but the first."""

MARGIN: Final = 1
"""Cells at the left of a row, for its mark."""

MIN_NAME_CELLS: Final = 24
"""The flexible column keeps this width."""

GOOD_NAME_CELLS: Final = 34
"""Up to this width it gets what its texts need before other columns get theirs."""

MIN_MIX_CELLS: Final = 12
"""A column of names with figures, largest first, may be cut down to this width."""

MAX_NAME_CELLS: Final = 64
"""It gets no wider, so that the other columns stay near."""

BAR_CELLS: Final = 10
"""Width of the bar beside a share, where it fits."""

TYPE_COLUMNS: Final = frozenset({"type", "kind"})
"""Columns whose names are types."""

MARK: Final = literal("▸")
"""Stands before a marked row."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a table on the screen."""

    index: int
    """Its index in the table."""
    cells: int
    is_right: bool
    has_bar: bool = False


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns that fit into a width."""

    columns: tuple[ShownColumn, ...] = ()

    def column_at(self, x: int) -> int | None:
        """Return the index of the table's column at a cell of the screen."""
        start = MARGIN
        for shown in self.columns:
            end = start + shown.cells + (BAR_CELLS + 1 if shown.has_bar else 0)
            if start <= x < end + GAP_CELLS:
                return shown.index
            start = end + GAP_CELLS
        return None


def layout_table(table: Table, width: int, sort: str | None = None, text_widths: Sequence[int] = ()) -> TableLayout:
    """Return the columns that fit into `width` cells: the flexible one, the one that is sorted by, then from the left.

    The flexible column is the first one without a width of its own; it gets what the others leave. `text_widths` are
    those of the widest text seen in each column. Numbers are never cut, so their columns take what their texts need.
    """
    columns = table.columns
    if not columns:
        return TableLayout()
    sizes = [
        max(_text_cells(column, widest), width_of(column.title) + (2 if column.numeric else 0))
        for column, widest in zip(columns, text_widths or [column.width for column in columns], strict=True)
    ]
    flexible = next((at for at, column in enumerate(columns) if not column.width), 0)
    least = max(MIN_NAME_CELLS, min(sizes[flexible], GOOD_NAME_CELLS, width - 2 * MARGIN))
    space = width - 2 * MARGIN - least
    kept = {flexible}
    for at in sorted(range(len(columns)), key=lambda at: columns[at].id != sort):
        if at in kept:
            continue
        if sizes[at] + GAP_CELLS <= space:
            kept.add(at)
            space -= sizes[at] + GAP_CELLS
        elif columns[at].unit is Unit.MIX and space - GAP_CELLS >= MIN_MIX_CELLS:
            kept.add(at)
            sizes[at], space = space - GAP_CELLS, 0
        elif columns[at].id != sort:
            break
    more = max(0, min(space, min(sizes[flexible], MAX_NAME_CELLS) - least))
    sizes[flexible] = least + more
    shares = [at for at in sorted(kept) if columns[at].unit is Unit.SHARE]
    bar = shares[0] if shares and space - more > BAR_CELLS else None
    return TableLayout(tuple(ShownColumn(at, sizes[at], columns[at].numeric, at == bar) for at in sorted(kept)))


def _text_cells(column: Column, widest: int) -> int:
    """Return the width that the texts of a column get: names and texts little more than the column asks for."""
    return min(widest, column.width + 3) if column.width and not column.numeric else widest


def header_line(table: Table, layout: TableLayout, order: Order | None) -> Line:
    """Return the titles of the columns; the one that orders the rows is marked."""
    spans: list[Span] = [gap(MARGIN)]
    for number, shown in enumerate(layout.columns):
        column = table.columns[shown.index]
        title, role = SafeText(column.title), Role.MUTED
        if order is not None and column.id == order.column:
            title = SafeText(f"{title} {'↓' if column.numeric is not order.upward else '↑'}")
            role = Role.ACCENT
        if number:
            spans.append(gap(GAP_CELLS))
        spans.append(Span((right if shown.is_right else left)(title, shown.cells), role))
        if shown.has_bar:
            spans.append(gap(BAR_CELLS + 1))
    return tuple(spans)


def table_line(
    cells: Sequence[Cell], texts: Sequence[SafeText], table: Table, layout: TableLayout, *, is_marked: bool = False
) -> Line:
    """Return one row; `is_marked` highlights it by a sign and by its colour."""
    spans: list[Span] = [Span(MARK, Role.WARN) if is_marked else gap(MARGIN)]
    for number, shown in enumerate(layout.columns):
        cell, text, column = cells[shown.index], texts[shown.index], table.columns[shown.index]
        if number:
            spans.append(gap(GAP_CELLS))
        if shown.is_right:
            fitted = right(text, shown.cells)
        else:
            fitted = left((cut_middle if column.unit is Unit.NAME else cut)(text, shown.cells), shown.cells)
        spans.append(Span(fitted, _role(cell, column, is_marked=is_marked, is_first=not number)))
        if shown.has_bar:
            spans += _bar(cell)
    return tuple(spans)


def _role(cell: Cell, column: Column, *, is_marked: bool, is_first: bool) -> Role:
    """Return the role of a cell: by what it is, and by how far it can be trusted."""
    if cell is None or isinstance(cell, NoTtl):
        return Role.FAINT
    if isinstance(cell, Unknown):
        return Role.WARN if cell.reason in (Reason.DENIED, Reason.FAILED) else Role.FAINT
    if isinstance(cell, bytes) and column.id in TYPE_COLUMNS:
        return type_role(cell)
    if is_first:
        return Role.STRONG if is_marked else Role.TEXT
    if isinstance(cell, Estimate | AtLeast) or not column.numeric or column.unit is Unit.SHARE:
        return Role.MUTED
    return Role.TEXT


def _bar(cell: Cell) -> Line:
    """Return a share as a bar."""
    value = cell.value if isinstance(cell, Estimate | AtLeast) else cell
    if not isinstance(value, int | float):
        return (gap(BAR_CELLS + 1),)
    filled, blank = fmt.bar(value, BAR_CELLS)
    return gap(1), Span(filled, Role.BAR), Span(blank, Role.TRACK)
