"""Tables in another order, or only those of their rows that hold a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Unknown
from rtui.analysis.report.tables.cell_text import cell_text
from rtui.analysis.report.tables.table import AtLeast, Cell, Table

SortKey = tuple[float, str, bytes]
"""Compares cells of one column: numbers by value, texts without regard to case, names by their bytes."""


def sort_key(cell: Cell) -> SortKey | None:
    """Return what a cell is sorted by; None for what is not known, which stands last in either direction."""
    if cell is None or isinstance(cell, Unknown):
        return None
    if isinstance(cell, bytes):
        return 0.0, "", cell
    if isinstance(cell, str):
        return 0.0, cell.casefold(), b""
    if isinstance(cell, tuple):
        return (0.0, "", cell[0][0]) if cell else None
    return _number(cell), "", b""


def _number(cell: float | Estimate | AtLeast | NoTtl) -> float:
    """Return the number in a cell; what has no end is beyond all."""
    if isinstance(cell, NoTtl):
        return inf
    return cell.value if isinstance(cell, Estimate | AtLeast) else cell


def sorted_by(table: Table, column_id: str, *, descending: bool) -> Table:
    """Return the table with its rows by one column; equal ones keep their order. KeyError for no such column."""
    index = table.column(column_id)
    keyed = [(sort_key(row[index]), position) for position, row in enumerate(table.rows)]
    known = sorted(((key, at) for key, at in keyed if key is not None), key=lambda pair: pair[0], reverse=descending)
    return _picked(table, (*(at for _, at in known), *(at for key, at in keyed if key is None)))


def filtered(table: Table, text: str) -> Table:
    """Return the rows in which a text occurs as it is shown, in any column and any case."""
    wanted = text.casefold()
    return _picked(table, (at for at, row in enumerate(table.rows) if wanted in filter_text(table, row)))


def filter_text(table: Table, row: tuple[Cell, ...]) -> str:
    """Return what a filter looks through: the row as it is shown, without case."""
    return "\n".join(cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True)).casefold()


def _picked(table: Table, positions: Iterable[int]) -> Table:
    """Return the table with some of its rows, each with what it is about."""
    kept = tuple(positions)
    subjects = tuple(table.subjects[at] for at in kept) if table.subjects else ()
    return replace(table, rows=tuple(table.rows[at] for at in kept), subjects=subjects)
