"""The table of what differs between two reports: namespaces that came, went, grew or shrank, the largest change first.

It lists what `rtui diff` lists: nothing below a namespace that came or went as a whole, and of a chain of levels with
the same keys the last one. Each row is about the namespace in the later report, or in the earlier one if it went.
"""

from __future__ import annotations

import math
from typing import Final

from rtui.analysis.report.comparison import Fate, NamespaceChange, compare
from rtui.analysis.report.document import Report
from rtui.analysis.report.readings import Reading
from rtui.analysis.report.tables.cells import KEYS
from rtui.analysis.report.tables.changes import change_cell, change_column
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Row, Table, Unit
from rtui.analysis.report.tables.totals import NAMESPACE, namespace_cell

LISTED: Final = (Fate.CAME, Fate.WENT, Fate.GREW, Fate.SHRANK, Fate.SHIFTED)
"""What a namespace must have done to be listed; the others are counted."""

_FATE: Final = Column("fate", "what", Unit.TEXT, 21, "What became of it since the earlier report")
_MEMORY: Final = Column("memory", "bytes", Unit.BYTES, 8, "Memory of its keys")
_NO_TTL: Final = Column("no_ttl_share", "no TTL", Unit.SHARE, 6, "Share of its keys that never expire")


def differences(before: Report, after: Report) -> Table:
    """Return a row for each namespace that differs; in time linear in the namespaces of both reports."""
    comparison = compare(before, after)
    changes = [change for change in comparison.root.outlined() if change.path]
    listed = sorted((one for one in changes if one.fate in LISTED), key=weight, reverse=True)
    counted = {fate: sum(one.fate is fate for one in changes) for fate in Fate if fate not in LISTED}
    rest = ", ".join(f"{fate}: {number:,}" for fate, number in counted.items() if number)
    notes = (*comparison.notes, *([f"Not listed: {rest}."] if rest else []))
    return Table(
        "differences",
        "What differs",
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
    """Return what became of the namespace of a row."""
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
