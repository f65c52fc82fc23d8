"""A row of a table and the line over it: which columns fit, and what stands in them."""

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
"""Blank cells at the left end, where marks stand."""

MIN_NAME_CELLS: Final = 24
"""The column that takes what is left keeps this width."""

GOOD_NAME_CELLS: Final = 34
"""Up to this width it gets what its texts need; other columns go before."""

MIN_MIX_CELLS: Final = 12
"""A column of names with their figures is cut down to this width, so that the largest of them still shows."""

MAX_NAME_CELLS: Final = 64
"""Beyond this the other columns do not move away from it any further."""

BAR_CELLS: Final = 10
"""Width of the bar that a share has beside it where there is room."""

TYPE_COLUMNS: Final = frozenset({"type", "kind"})
"""Columns whose names are types."""

MARK: Final = literal("▸")
"""Stands before a row that stands out."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column on the screen."""

    index: int
    """Which of the table's columns it is."""
    cells: int
    is_right: bool
    has_bar: bool = False


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How a row of a given width is divided."""

    places: tuple[Place, ...] = ()

    def column_at(self, x: int) -> int | None:
        """Return the index of the table's column at a cell of the screen."""
        start = MARGIN
        for place in self.places:
            end = start + place.cells + (BAR_CELLS + 1 if place.has_bar else 0)
            if start <= x < end + GAP_CELLS:
                return place.index
            start = end + GAP_CELLS
        return None


def layout_table(table: Table, width: int, sort: str | None = None, wants: Sequence[int] = ()) -> TableLayout:
    """Divide `width` cells among as many columns as fit: first come those at the left and the one sorted by.

    `wants` are the widths of the widest texts seen; a column whose texts need more than its own width gets it.
    """
    columns = table.columns
    sizes = [max(wanted, _header_cells(column)) for column, wanted in zip(columns, _wants(columns, wants), strict=True)]
    flexible = next((at for at, column in enumerate(columns) if not column.width), 0)
    least = max(MIN_NAME_CELLS, min(sizes[flexible], GOOD_NAME_CELLS, width - 2 * MARGIN))
    room = width - 2 * MARGIN - least
    kept = {flexible}
    ranked = sorted(range(len(columns)), key=lambda at: columns[at].id != sort)
    for at in ranked:
        if at in kept:
            continue
        if sizes[at] + GAP_CELLS <= room:
            kept.add(at)
            room -= sizes[at] + GAP_CELLS
        elif columns[at].unit is Unit.MIX and room - GAP_CELLS >= MIN_MIX_CELLS:
            kept.add(at)
            sizes[at], room = room - GAP_CELLS, 0
        elif columns[at].id != sort:
            break
    more = max(0, min(room, min(sizes[flexible], MAX_NAME_CELLS) - least))
    name_cells, spare = least + more, room - more
    bar = next((at for at in sorted(kept) if columns[at].unit is Unit.SHARE), None) if spare > BAR_CELLS else None
    return TableLayout(
        tuple(
            Place(at, name_cells if at == flexible else sizes[at], columns[at].numeric, at == bar)
            for at in sorted(kept)
        )
    )


def _wants(columns: Sequence[Column], wants: Sequence[int]) -> list[int]:
    """Return how wide each column should be, by its own word or by its texts; a number is never cut."""
    if not wants:
        return [column.width for column in columns]
    return [
        min(wanted, column.width + 3) if column.width and not column.numeric else wanted
        for column, wanted in zip(columns, wants, strict=True)
    ]


def _header_cells(column: Column) -> int:
    """Return the width of a title with the sign of sorting behind it."""
    return width_of(column.title) + (2 if column.numeric else 0)


def header_line(table: Table, plan: TableLayout, order: Order | None) -> Line:
    """Return the titles of the columns; the one that orders the rows is marked."""
    sort, upward = order or Order("")
    spans: list[Span] = [gap(MARGIN)]
    for number, place in enumerate(plan.places):
        column = table.columns[place.index]
        is_sorted = column.id == sort
        downward = column.numeric is not upward
        title = SafeText(column.title)
        text = SafeText(f"{title} {'↓' if downward else '↑'}") if is_sorted else title
        role = Role.ACCENT if is_sorted else Role.MUTED
        if number:
            spans.append(gap(GAP_CELLS))
        spans.append(Span((right if place.is_right else left)(text, place.cells), role))
        if place.has_bar:
            spans.append(gap(BAR_CELLS + 1))
    return tuple(spans)


def table_line(
    cells: Sequence[Cell], texts: Sequence[SafeText], table: Table, plan: TableLayout, *, is_marked: bool = False
) -> Line:
    """Return one row; `is_marked` makes it stand out by a sign and by its ink."""
    spans: list[Span] = [Span(MARK, Role.WARN) if is_marked else gap(MARGIN)]
    for number, place in enumerate(plan.places):
        cell, text, column = cells[place.index], texts[place.index], table.columns[place.index]
        if number:
            spans.append(gap(GAP_CELLS))
        spans.append(Span(_fitted(text, place, column), _role(cell, column, is_marked=is_marked, is_first=not number)))
        if place.has_bar:
            spans += _bar(cell)
    return tuple(spans)


def _fitted(text: SafeText, place: Place, column: Column) -> SafeText:
    """Return a text in exactly the cells of its place."""
    if place.is_right:
        return right(text, place.cells)
    if column.unit is Unit.NAME:
        return left(cut_middle(text, place.cells), place.cells)
    return left(cut(text, place.cells), place.cells)


def _role(cell: Cell, column: Column, *, is_marked: bool, is_first: bool) -> Role:
    """Return how a cell looks: by what it is, and by how far it can be trusted."""
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


def _bar(cell: Cell) -> tuple[Span, ...]:
    """Return a share as a bar."""
    value = cell.value if isinstance(cell, Estimate | AtLeast) else cell
    if not isinstance(value, int | float):
        return (gap(BAR_CELLS + 1),)
    filled, blank = fmt.bar(value, BAR_CELLS)
    return gap(1), Span(filled, Role.BAR), Span(blank, Role.TRACK)
