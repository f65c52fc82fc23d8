"""The findings as a table, for screens and files; also with what became of each since an earlier report."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rtui.analysis.findings.comparison import FindingChange, FindingFate, FindingsComparison
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.report.tables.changes import change_cell, change_column
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit

COLUMNS = (
    Column("severity", "", Unit.TEXT, 5, "How much it matters: a warning or an error"),
    Column("finding", "finding", Unit.TEXT, 0),
    Column("memory", "bytes", Unit.BYTES, 9, "Of the keys that it is about"),
    Column("keys", "keys", Unit.KEYS, 9),
    Column("rule", "rule", Unit.TEXT, 18),
)


def findings_table(found: Found) -> Table:
    """Return a row for each finding, most costly first; what it is about is told by its rule and place."""
    return Table(
        "findings",
        "What is wrong",
        COLUMNS,
        tuple(map(_row, found.findings)),
        found.identities,
        note=found.remarks,
        tells_by_subject=True,
    )


def _row(one: Finding) -> Row:
    memory, keys = (None if figure is None else figure.cell for figure in (one.memory, one.keys))
    return one.severity.value, one.title, memory, keys, one.rule


MOST_GONE: Final = 20
"""Findings that are gone which are listed, the most costly ones."""

_SINCE: Final = Column("since", "since", Unit.TEXT, 5, "What became of it since the earlier report")

_WORDS: Final = {
    FindingFate.NEW: "new",
    FindingFate.MAYBE_NEW: "new?",
    FindingFate.GREW: "grew",
    FindingFate.SHRANK: "less",
    FindingFate.MAYBE_GONE: "gone?",
    FindingFate.GONE: "gone",
}
"""What is said of a finding; nothing where it is as before, or that can't be told."""


def gone(compared: FindingsComparison) -> dict[str, Finding]:
    """Return the most costly findings that only the earlier report has, by what tells them from others."""
    fates = (FindingFate.GONE, FindingFate.MAYBE_GONE)
    found = [(name, one.finding) for name, one in compared.changes.items() if one.fate in fates]
    return dict(found[:MOST_GONE])


def compared_table(found: Found, compared: FindingsComparison) -> Table:
    """Return the findings with how their bytes and keys have changed, then those that are gone."""
    table, changes = findings_table(found), compared.changes
    names = found.identities
    rows = [_compared_row(row, changes.get(name)) for row, name in zip(table.rows, names, strict=True)]
    went = gone(compared)
    rows += [_gone_row(changes[name]) for name in went]
    columns = []
    for column in COLUMNS:
        columns.append(column)
        if column.id == "severity":
            columns.append(_SINCE)
        elif column.id in ("memory", "keys"):
            columns.append(change_column(column))
    return replace(table, columns=tuple(columns), rows=tuple(rows), subjects=(*names, *went))


def _compared_row(row: Row, change: FindingChange | None) -> Row:
    severity, title, memory, keys, rule = row
    if change is None:
        return severity, "", title, memory, None, keys, None, rule
    word = _WORDS.get(change.fate, "")
    return severity, word, title, memory, change_cell(change.memory), keys, change_cell(change.keys), rule


def _gone_row(change: FindingChange) -> Row:
    one, is_certain = change.finding, change.fate is FindingFate.GONE
    now: Cell = 0 if is_certain else None
    changed: list[Cell] = [change_cell(figure) if is_certain else None for figure in (change.memory, change.keys)]
    return one.severity.value, _WORDS[change.fate], one.title, now, changed[0], now, changed[1], one.rule
