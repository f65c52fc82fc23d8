"""Tables with the change since an earlier report, in a column beside each figure that can be compared.

The cells of such a column are numbers, below 0 for a decrease, so it is sorted and written like any. A figure has
changed if the intervals of both reports do not overlap (`readings.py`); the difference of an estimate has an interval
itself, and the one to a partial report is a lower bound.

Namespaces are looked up by their path, so that keys that one report counts in a pattern or among others are not taken
for new. Rows of other tables are matched with rows of the same subject in the earlier table; rows that are moments,
such as when many keys expire, are not compared. A row that the earlier table does not have has no change: a list of the
largest keys does not tell about keys outside of it.

At the end is the table of all namespaces that differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Final

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.comparison import Fate, NamespaceChange, compare
from rtui.analysis.report.document import CoverageKind, Report, Step
from rtui.analysis.report.readings import (
    Direction,
    FigureChange,
    Reading,
    Readings,
    ReportNamespace,
    ReportSide,
    Sides,
    below,
    reading,
    share_reading,
)
from rtui.analysis.report.tables.cells import KEYS
from rtui.analysis.report.tables.table import UNCLEAR, AtLeast, Cell, Column, OnDemand, Path, Paths, Row, Table, Unit
from rtui.analysis.report.tables.totals import NAMESPACE, namespace_cell

COMPARED: Final = frozenset({
    "keys", "memory", "share_of_keys", "share_of_memory", "no_ttl_share", "no_ttl_keys", "no_ttl_memory",
    "share_of_type", "length",
})  # fmt: skip
"""Columns that get one with changes; means and quantiles have an error of their own."""

_OF_NAMESPACE: Final = {"keys": "keys", "memory": "memory", "no_ttl_share": "no_ttl"}
"""The figures of a namespace that `readings.py` has, by column."""

_MOMENTS: Final = frozenset({"start"})
"""Columns of tables whose rows are moments of one report, such as when many keys expire."""

_TITLE: Final = "▲▼"


class ComparedReports:
    """Two reports, of which the later one is shown."""

    def __init__(self, before: Report, after: Report) -> None:
        self.before, self.after = before, after
        self._is_partial = CoverageKind.PARTIAL in {before.head.coverage.kind, after.head.coverage.kind}
        scopes = before.head.scope, after.head.scope
        depths = [scope.depth for scope in scopes if scope.depth is not None]
        self._levels = min(depths, default=math.inf) if scopes[0].separators == scopes[1].separators else 0
        sides = (
            ReportNamespace(side := ReportSide(report), report.summary.root, side.read(report.summary.root))
            for report in (before, after)
        )
        self._pairs: dict[Path, Sides] = {(): (next(sides), next(sides))}
        self._apart: dict[Path, tuple[frozenset[Step], frozenset[Step]]] = {}

    def namespace(self, path: Path) -> tuple[Readings, Readings] | None:
        """Return the readings of a namespace in both reports; None below the levels that can be compared."""
        if len(path) > self._levels:
            return None
        before, after = self._pair(path)
        return before.readings, after.readings

    def table(self, now: Table, before: Table) -> Table:
        """Return the table of the later report with columns of changes; `before` is the same of the earlier one."""
        if any(column.id in _MOMENTS for column in now.columns):
            return now
        compared = [at for at, column in enumerate(now.columns) if column.id in COMPARED]
        old_at = {column.id: at for at, column in enumerate(before.columns)}
        line_of = _finder(before)
        columns: list[Column] = []
        for column in now.columns:
            columns.append(column)
            if column.id in COMPARED:
                columns.append(change_column(column))

        def row(at: int) -> Row:
            cells, found = now.rows[at], None
            line = line_of(_identity(now, at))
            old = None if line is None else before.rows[line]
            subject = now.subject(at)
            if now.tells_by_subject and isinstance(subject, tuple):
                found = self.namespace(subject)
            made: list[Cell] = []
            for place, cell in enumerate(cells):
                made.append(cell)
                if place in compared:
                    name = now.columns[place].id
                    if found is not None and name in _OF_NAMESPACE:
                        pair = [getattr(one, _OF_NAMESPACE[name]) for one in found]
                        change = FigureChange(pair[0], pair[1])
                    else:
                        was = None if old is None or name not in old_at else old[old_at[name]]
                        unit = now.columns[place].unit
                        change = FigureChange(self._reading(was, unit), self._reading(cell, unit))
                    made.append(change_cell(change))
            return tuple(made)

        return replace(now, columns=tuple(columns), rows=OnDemand(len(now.rows), row))

    def _pair(self, path: Path) -> Sides:
        pair = self._pairs.get(path)
        if pair is None:
            above, name = path[:-1], path[-1]
            parents = self._pair(above)
            if above not in self._apart:
                one, other = (set(side.children) for side in parents)
                self._apart[above] = frozenset(one - other), frozenset(other - one)
            pair = self._pairs[path] = below(parents, name, self._apart[above])
        return pair

    def _reading(self, cell: Cell, unit: Unit) -> Reading | None:
        """Return a cell as a reading; None without a number. A share in a partial pass may have any value."""
        if isinstance(cell, AtLeast):
            return reading(cell.value, at_least=True)
        if isinstance(cell, int | float | Estimate):
            return share_reading(cell, of_seen=self._is_partial) if unit is Unit.SHARE else reading(cell)
        return None


def change_cell(change: FigureChange) -> Cell:
    """Return a change as a cell: a signed number, `UNCLEAR`, or None where a report does not have the figure."""
    direction, difference = change.direction, change.difference()
    if direction is Direction.UNKNOWN or difference is None or change.before is None or change.after is None:
        return None
    if direction is Direction.UNCLEAR:
        return UNCLEAR
    low, high = float(difference.low), float(difference.high)
    if low == high:
        return int(low) if low.is_integer() else low
    if math.isinf(high):
        return AtLeast(low)
    if math.isinf(low):
        return AtLeast(high)
    return Estimate(low, float(change.after.value) - float(change.before.value), high)


def total_change(before: Report, after: Report, column: str) -> Cell:
    found = ComparedReports(before, after).namespace(())
    if found is None:
        return None
    return change_cell(FigureChange(getattr(found[0], column), getattr(found[1], column)))


def change_column(column: Column) -> Column:
    about = "More (▲) or less (▼) than in the earlier report"
    return replace(column, id=f"{column.id}_change", title=_TITLE, about=about, is_change=True)


def _finder(table: Table) -> Callable[[Any], int | None]:
    """Return a function from an identity to its row; None if no row, or more than one, has it.

    Tables of namespaces may have thousands of rows, of which a screen shows few: theirs are found one by one.
    """
    if table.tells_by_subject and isinstance(table.subjects, Paths):
        return table.subjects.line
    found: dict[Hashable, int] = {}
    several: set[Hashable] = {None}
    for at in range(len(table.rows)):
        identity = _identity(table, at)
        if identity in found:
            several.add(identity)
        found[identity] = at
    return {identity: at for identity, at in found.items() if identity not in several}.get


def _identity(table: Table, at: int) -> Hashable:
    """Return the identity of a row in either report: its subject, else its names."""
    if table.tells_by_subject:
        return table.subject(at)
    row, subject = table.rows[at], table.subject(at)
    names = [place for place, column in enumerate(table.columns) if column.unit is Unit.NAME]
    if subject is not None:
        names = [place for place in names if table.columns[place].id != "encoding"]
    elif not names:
        names = [place for place, column in enumerate(table.columns) if column.unit is Unit.TEXT][:1]
    cells = tuple(cell for place in names if isinstance(cell := row[place], bytes | str))
    return (subject, cells) if cells or subject is not None else None


LISTED: Final = (Fate.CAME, Fate.WENT, Fate.GREW, Fate.SHRANK, Fate.SHIFTED)
_FATE: Final = Column("fate", "what", Unit.TEXT, 21, "Change since the earlier report")
_MEMORY: Final = Column("memory", "memory", Unit.BYTES, 8, "Memory of its keys")
_NO_TTL: Final = Column("no_ttl_share", "no TTL", Unit.SHARE, 6, "Share of keys without TTL")


def differences(before: Report, after: Report) -> Table:
    comparison = compare(before, after)
    changes = [change for change in comparison.root.outlined() if change.path]
    listed = sorted((one for one in changes if one.fate in LISTED), key=weight, reverse=True)
    counted = {fate: sum(one.fate is fate for one in changes) for fate in Fate if fate not in LISTED}
    rest = ", ".join(f"{fate}: {number:,}" for fate, number in counted.items() if number)
    notes = (*comparison.notes, *([f"Not listed: {rest}."] if rest else []))
    return Table(
        "differences",
        "Differences",
        (NAMESPACE, _FATE, KEYS, change_column(KEYS), _MEMORY, change_column(_MEMORY), change_column(_NO_TTL)),
        tuple(map(_row, listed)),
        tuple(tuple(node.step for node in one.path) for one in listed),
        " ".join(notes),
        tells_by_subject=True,
    )


def weight(change: NamespaceChange) -> list[float]:
    """Return the least change that is certain, in bytes, keys and share of keys without TTL."""
    found = (change.memory.difference(), change.keys.difference(), change.no_ttl.difference())
    return [0.0 if one is None else float(max(one.low, -one.high, 0)) for one in found]


def fate_of(row: Row) -> Fate:
    return Fate(str(row[1]))


def _row(change: NamespaceChange) -> Row:
    keys, memory = change.keys, change.memory
    figures = (_now(keys.after), change_cell(keys), _now(memory.after), change_cell(memory), change_cell(change.no_ttl))
    return (namespace_cell(change.path), change.fate.value, *figures)


def _now(found: Reading | None) -> Cell:
    """Return a number of the later report; of a namespace that it may have missed, none."""
    if found is None or (not found.is_present and found.high):
        return None
    return AtLeast(found.value) if math.isinf(found.high) else found.figure
