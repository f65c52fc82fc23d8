"""Results in files and pipes: found keys, the same for `rtui find` and for the list on the screen, and rows of SQL.

For found keys every format but text and raw has the columns `key` and `key_quoted`, then facts, named with their units:
`type`, `ttl_ms` (-1 without a TTL), `memory_bytes`, `length`, `encoding`, `idle_s`, `frequency`, `slot`. Numbers are
whole; an unknown one is empty, or null. `key` is text, in JSON null where the name is no UTF-8; `key_quoted` has every
byte, as `redis-cli --quoted-input` reads it. Text has a line for each key: facts where they are wanted, then the name,
made safe to show. Raw is bare names, a NUL behind each; names that hold one are left out and counted.

Columns of a statement have the names that it gives them. Numbers are written in full; unknown is an empty field, or
null, and so is infinity, such as 1/0. Moments are UTC, as in ISO 8601. Texts keep every character in JSON, and are made
safe to show in all other formats.

The end says whether these are all keys, or the result over all keys: members of the JSON object, in lines of JSON an
object without a key or column, in CSV a row of no key, or with `coverage` and `notes`, in Markdown a paragraph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from math import isfinite
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.formats.csv_and_json import csv_text, guarded, utf8_text
from rtui.analysis.formats.text import code, escaped, markdown_row, table_markdown, table_text
from rtui.analysis.humanize import counted
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import CoverageKind, KeyRecord
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import Display, SafeText, display, display_text, quoted

FOUND_FORMATS: Final = ("text", "json", "jsonl", "csv", "md", "raw")

SLOT: Final = "slot"
"""The column that is no fact: it follows from the name."""

_FACTS: Final = [fact for fact in Fact if fact not in (Fact.NAME, Fact.VALUE)]
FIELD_NAMES: Final = {**{fact.value: fact.field for fact in _FACTS}, "type": "type", SLOT: SLOT}
LONGEST_TEXT: Final = 1 << 20
"""Longer names and texts are shortened where they are only shown."""

_WIDTHS: Final = {"type": 9, "ttl": 8, "idle": 8, "freq": 4, "enc": 10, "size": 9, "len": 11, SLOT: 5}
"""Of the columns of text; a longer value pushes the name to the right."""

_FORMATS: Final[dict[str, Callable[[int], SafeText]]] = {
    "ttl": humanize.duration, "idle": humanize.seconds, "size": humanize.size, SLOT: lambda slot: SafeText(str(slot)),
}  # fmt: skip
"""How people read the numbers of columns; others are counts."""

_LEFT: Final = frozenset({"type", "enc"})
_TEXTS: Final = frozenset({"key", "key_quoted", "type", "encoding"})
_COVERAGE: Final = ("coverage", "notes")
"""The last columns of CSV: empty for keys, filled in the row after them."""


class FoundKeys:
    """Writes the keys of one search."""

    def __init__(
        self,
        send: Callable[[str | bytes], object],
        form: str,
        query: str,
        columns: Sequence[str],
        *,
        counts_only: bool = False,
        is_terminal: bool = False,
        shown: Display | None = None,
    ) -> None:
        """`send` writes; `columns` are of FIELD_NAMES; on a terminal text begins with their titles."""
        self._send, self._form, self._query, self._columns = send, form, query, columns
        self._counts_only, self.is_terminal = counts_only, is_terminal
        self._display = Display() if shown is None else shown
        self._names = ["key", "key_quoted", *(FIELD_NAMES[one] for one in columns)]
        self._is_begun = False
        self._written = self.left_out = 0

    def write(self, records: Sequence[KeyRecord]) -> None:
        if self._counts_only:
            return
        self._begin()
        match self._form:
            case "raw":
                count, records = len(records), [one for one in records if b"\0" not in one.key]
                self.left_out += count - len(records)
                text: str | bytes = b"".join(one.key + b"\0" for one in records)
            case "json":
                commas = (",\n" if self._written or at else "\n" for at in range(len(records)))
                text = "".join(f"{comma}    {self._json(one)}" for comma, one in zip(commas, records, strict=True))
            case "jsonl":
                text = "".join(f"{self._json(one)}\n" for one in records)
            case "csv":
                text = csv_text([[*self._row(one, guarded), "", ""] for one in records])
            case "md":
                text = "".join(f"{self._markdown(one)}\n" for one in records)
            case _:
                text = "".join(f"{self._line(one)}\n" for one in records)
        self._written += len(records)
        self._send(text)

    def end(self, count: int, *, is_exact: bool, notes: Sequence[SafeText]) -> None:
        """Write the end; unless `is_exact`, there are `count` keys at least."""
        is_whole = is_exact and (self._counts_only or self._written == count)
        coverage = [(CoverageKind.EXACT if is_whole else CoverageKind.PARTIAL).value, " ".join(notes)]
        counts = {"listed": self._written, "count": count if is_exact else None, "at_least": count}
        said = json.dumps({**counts, "complete": is_exact, "notes": list(notes)})
        if self._counts_only and self._form not in ("json", "jsonl"):
            self._send(f"{count}\n" if self._form != "csv" else csv_text([["count", *_COVERAGE], [count, *coverage]]))
            return
        self._begin()
        match self._form:
            case "csv":
                self._send(csv_text([["" for _ in self._names] + coverage]))
            case "json":
                closing = "" if self._counts_only else "\n  ],\n"
                self._send(f"{closing}  {said[1:-1]}\n}}\n")
            case "jsonl":
                self._send(f"{said}\n")
            case "md":
                self._send("".join(f"\n{escaped(note)}\n" for note in notes))

    def _begin(self) -> None:
        if self._is_begun:
            return
        self._is_begun = True
        match self._form:
            case "json":
                self._send(f'{{\n  "format": "rtui find", "query": {json.dumps(self._query)},\n')
                self._send("" if self._counts_only else '  "keys": [')
            case "csv":
                self._send(csv_text([[*self._names, *_COVERAGE]]))
            case "md":
                marks = [":--" if name in _TEXTS else "--:" for name in self._names]
                self._send(f"{markdown_row(self._names)}\n{markdown_row(marks)}\n")
            case "text" if self.is_terminal and self._columns:
                self._send(f"{_aligned(self._columns, list(map(SafeText, self._columns)))}{Fact.NAME.value}\n")

    def _line(self, record: KeyRecord) -> str:
        cells = [_shown(one, _value(one, record), self._display) for one in self._columns]
        return f"{_aligned(self._columns, cells)}{self._display.name(record.key, limit=LONGEST_TEXT)}"

    def _json(self, record: KeyRecord) -> str:
        values = {FIELD_NAMES[one]: _plain(_value(one, record)) for one in self._columns}
        return json.dumps({"key": utf8_text(record.key), "key_quoted": quoted(record.key), **values})

    def _row(self, record: KeyRecord, safe: Callable[[str], str]) -> list[str | int]:
        values = ["" if (value := _plain(_value(one, record))) is None else value for one in self._columns]
        texts = [safe(value) if isinstance(value, str) else value for value in values]
        return [safe(display(record.key, limit=LONGEST_TEXT)), quoted(record.key), *texts]

    def _markdown(self, record: KeyRecord) -> str:
        name, in_quotes, *values = map(str, self._row(record, str))
        return markdown_row([code(name) if name else "", code(in_quotes), *map(escaped, values)])


def _value(column: str, record: KeyRecord) -> bytes | int | None:
    found: bytes | int | None = key_slot(record.key) if column == SLOT else getattr(record, Fact(column).field)
    return found


def _plain(value: bytes | int | None) -> str | int | None:
    return display(value) if isinstance(value, bytes) else value


def _aligned(columns: Sequence[str], cells: Sequence[SafeText]) -> str:
    return "".join(
        f"{text:{'<' if one in _LEFT else '>'}{_WIDTHS[one]}}  " for one, text in zip(columns, cells, strict=True)
    )


def _shown(column: str, value: bytes | int | None, shown: Display) -> SafeText:
    if value is None:
        return humanize.NOTHING if not shown.ascii_only else SafeText("-")
    if isinstance(value, bytes):
        return shown.name(value)
    if column == "ttl" and value == NO_EXPIRY:
        return SafeText("no TTL")
    return _FORMATS.get(column, humanize.count)(value)


_NUMBERED: Final = frozenset({"slot", "database"})
"""Columns whose numbers count nothing."""


@dataclass(frozen=True, slots=True)
class StatementRows:
    """The rows of a result."""

    statement: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    """Texts, numbers, truth, days and moments; None for unknown."""
    is_cut: bool = False
    notes: tuple[SafeText, ...] = ()

    @property
    def coverage(self) -> CoverageKind:
        return CoverageKind.PARTIAL if self.is_cut or self.notes else CoverageKind.EXACT

    @property
    def table(self) -> Table:
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
    """Yield the text of a result in pieces, as text, csv, json, jsonl or md."""
    match form:
        case "csv":
            head = [[*map(guarded, result.columns), *_COVERAGE]]
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
        yield json.dumps(json_values(result.columns, row))


def json_values(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(columns, map(_json_value, row), strict=True))


def _json_value(value: Any) -> str | int | float | None:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    return value.isoformat() if isinstance(value, date) else value


def _csv(value: Any) -> str | int | float:
    plain = _json_value(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, str):
        return guarded(display_text(plain, limit=LONGEST_TEXT))
    return "" if plain is None else plain


def _cell(value: Any) -> Cell:
    plain = _json_value(value)
    if isinstance(plain, bool):
        return SafeText(str(plain).lower())
    if isinstance(plain, str):
        return display_text(plain, limit=LONGEST_TEXT)
    return plain
