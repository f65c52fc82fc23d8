"""The result of a statement of SQL in files and pipes.

Columns have the names that the statement gives them. Numbers are written in full; unknown is an empty field, or null,
and so is infinity, such as 1/0. Moments are UTC, as in ISO 8601. Texts keep every character in JSON, and are made safe
to show in all other formats.

The end says whether this is the whole result over all keys, as for found keys (`found_keys`): members of the JSON
object, in lines of JSON an object without a column, in CSV a row with `coverage` and `notes`, in Markdown a paragraph.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from math import isfinite
from typing import Any, Final

from rtui.analysis.formats.csv_and_json import csv_text, guarded
from rtui.analysis.formats.text import escaped, table_markdown, table_text
from rtui.analysis.humanize import counted
from rtui.analysis.report.document import CoverageKind
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText, display_text

FORMATS: Final = ("text", "csv", "json", "jsonl", "md")

LONGEST_TEXT: Final = 1 << 20

_NUMBERED: Final = frozenset({"slot", "database"})
"""Columns whose numbers count nothing."""

END: Final = ("coverage", "notes")


@dataclass(frozen=True, slots=True)
class StatementRows:
    """The rows of a result."""

    statement: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    """Texts, numbers, truth, days and moments; None for unknown."""
    is_cut: bool = False
    """Whether there are more rows."""
    notes: tuple[SafeText, ...] = ()

    @property
    def coverage(self) -> CoverageKind:
        return CoverageKind.PARTIAL if self.is_cut or self.notes else CoverageKind.EXACT

    @property
    def table(self) -> Table:
        """The result as a table for people."""
        columns = []
        for at, name in enumerate(self.columns):
            known = next((row[at] for row in self.rows if row[at] is not None), None)
            is_number = isinstance(known, int | float) and not isinstance(known, bool)
            unit = Unit.TEXT if not is_number else Unit.NUMBER if name in _NUMBERED else Unit.COUNT
            columns.append(Column(name, display_text(name, limit=80), unit))
        return Table("sql", self.title, tuple(columns), tuple(tuple(map(_cell, row)) for row in self.rows))

    @property
    def title(self) -> SafeText:
        return SafeText(f"{'≥ ' if self.is_cut else ''}{counted(len(self.rows), 'row')}" if self.rows else "No rows")

    def end(self) -> dict[str, Any]:
        return {
            "listed": len(self.rows), "more": self.is_cut, "coverage": self.coverage.value, "notes": list(self.notes),
        }  # fmt: skip


def written_rows(result: StatementRows, form: str, **text_options: Any) -> Iterator[str]:
    """Yield the text of a result in one of FORMATS, in pieces."""
    match form:
        case "csv":
            head = [[*map(guarded, result.columns), *END]]
            yield csv_text(chain(head, ([*map(_csv, row), "", ""] for row in result.rows)))
            last: list[object] = ["" for _ in result.columns]
            yield csv_text([[*last, result.coverage.value, " ".join(result.notes)]])
        case "json":
            yield f'{{\n  "format": "rtui sql",\n  "statement": {json.dumps(result.statement)},\n'
            yield f'  "columns": {json.dumps(result.columns)},\n  "rows": ['
            commas = chain(("\n",), iter(lambda: ",\n", ""))
            yield from (f"{comma}    {line}" for comma, line in zip(commas, _objects(result), strict=False))
            yield f"\n  ],\n  {json.dumps(result.end())[1:-1]}\n}}\n"
        case "jsonl":
            yield from (f"{line}\n" for line in _objects(result))
            yield f"{json.dumps(result.end())}\n"
        case "md":
            yield table_markdown(result.table)
            yield from (f"\n{escaped(note)}\n" for note in result.notes)
        case _:
            yield table_text(result.table, **({"width": None} | text_options))


def _objects(result: StatementRows) -> Iterable[str]:
    for row in result.rows:
        yield json.dumps(dict(zip(result.columns, map(_plain, row), strict=True)))


def _plain(value: Any) -> str | int | float | None:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    return value.isoformat() if isinstance(value, date) else value


def _csv(value: Any) -> str | int | float:
    plain = _plain(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, str):
        return guarded(display_text(plain, limit=LONGEST_TEXT))
    return "" if plain is None else plain


def _cell(value: Any) -> Cell:
    plain = _plain(value)
    if isinstance(plain, bool):
        return SafeText(str(plain).lower())
    if isinstance(plain, str):
        return display_text(plain, limit=LONGEST_TEXT)
    return plain
