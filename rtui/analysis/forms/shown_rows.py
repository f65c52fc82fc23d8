"""How much of each table people are shown in a file that is read from top to bottom."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rtui.analysis.report import Report
from rtui.analysis.tables.every import tables
from rtui.analysis.tables.table import Table

ROWS: Final = 20
"""Rows of a table, unless it says otherwise: a list is read from its top, and JSON has all of it."""

_OWN_ROWS: Final = {"namespaces": 60}


def shown_tables(report: Report, rows: int = ROWS) -> list[Table]:
    """Return the tables that have rows, each cut to the first, with a note of how many there are more."""
    return [_cut(table, _OWN_ROWS.get(table.id, rows)) for table in tables(report) if table.rows]


def _cut(table: Table, rows: int) -> Table:
    """Return the table with so many rows at most."""
    more = len(table.rows) - rows
    if more <= 0:
        return table
    note = f"{table.note} " if table.note else ""
    note += f"The first {rows:,} of {len(table.rows):,}."
    return replace(table, rows=table.rows[:rows], subjects=table.subjects[:rows], note=note)
