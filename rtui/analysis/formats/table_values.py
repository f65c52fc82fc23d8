"""Tables as CSV and JSON, for spreadsheets and programs: raw numbers, with their units in the names.

The report itself is one table, a row for each namespace at every level, depth 0 for all keys. For any table:

* `memory_bytes`, `ttl_s`, `share_of_keys` (0 … 1), `soonest_expiry_epoch_s`: numbers without rounding. What is not
  known is an empty field, and a key that does not expire has `no TTL`.
* Where a column holds estimates, `…_low` and `…_high` beside it are their 95 % intervals; in a list of types each
  number has its own: `string 12.5 (10.0–15.0)`.
* Where a column holds numbers of which only a lower bound is known, `…_at_least` beside it is 1 for those.
* A name is shown safely, and beside it, as `…_quoted`, byte for byte as `redis-cli --quoted-input` reads it.
* A text that a spreadsheet would take for a formula has an apostrophe before it.

JSON is a list of records with the same names: what is not known is null, an estimate `{"value", "low", "high"}`, a
lower bound `{"value", "at_least": true}`. A name is text, null where it is no UTF-8; beside it is `…_quoted` as in CSV.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from io import StringIO
from math import isfinite
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Unknown
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.namespaces import namespace_figures
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.text.display import display, quoted

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula."""

_UNITS: Final = {Unit.BYTES: "bytes", Unit.DURATION: "s", Unit.TIME: "epoch_s"}


def write_csv(report: Report) -> str:
    """Return the namespaces at every level."""
    return table_csv(namespace_figures(report))


def table_csv(table: Table) -> str:
    """Return one table; lines end as RFC 4180 has it."""
    out = StringIO()
    writer = csv.writer(out)
    columns = [_Fields(column, [row[at] for row in table.rows]) for at, column in enumerate(table.columns)]
    writer.writerow([name for fields in columns for name in fields.names()])
    for at in range(len(table.rows)):
        writer.writerow([text for fields in columns for text in fields.texts(at)])
    return out.getvalue()


def field_name(column: Column) -> str:
    """Return the name of a column with its unit: `memory_bytes`, `ttl_s`."""
    unit = _UNITS.get(column.unit)
    return guarded(column.id if unit is None or column.id.endswith(f"_{unit}") else f"{column.id}_{unit}")


def guarded(text: str) -> str:
    """Return a text that no spreadsheet carries out."""
    return f"'{text}" if text.startswith(FORMULA) else text


class _Fields:
    """The fields that one column becomes."""

    def __init__(self, column: Column, cells: Sequence[Cell]) -> None:
        self._name = field_name(column)
        self._cells = cells
        self._has_quoted = column.unit is Unit.NAME
        self._has_interval = any(isinstance(cell, Estimate) for cell in cells)
        self._has_bounds = any(isinstance(cell, AtLeast) for cell in cells)

    def names(self) -> Iterator[str]:
        """Yield the headers."""
        yield self._name
        if self._has_quoted:
            yield f"{self._name}_quoted"
        if self._has_interval:
            yield f"{self._name}_low"
            yield f"{self._name}_high"
        if self._has_bounds:
            yield f"{self._name}_at_least"

    def texts(self, at: int) -> Iterator[str]:
        """Yield the fields of one row."""
        cell = self._cells[at]
        yield _text(cell)
        if self._has_quoted:
            yield quoted(cell) if isinstance(cell, bytes) else ""
        if self._has_interval:
            bounds = (cell.low, cell.high) if isinstance(cell, Estimate) else ()
            yield from (_number(bound) for bound in bounds or (None, None))
        if self._has_bounds:
            yield "1" if isinstance(cell, AtLeast) else ""


def _text(cell: Cell) -> str:
    if isinstance(cell, bytes):
        return guarded(display(cell))
    if isinstance(cell, str):
        return guarded(cell)
    if isinstance(cell, tuple):
        return guarded("; ".join(f"{display(name, limit=64)} {_with_interval(figure)}" for name, figure in cell))
    if cell is None or isinstance(cell, Unknown):
        return ""
    if isinstance(cell, NoTtl):
        return str(cell.value)
    return _number(cell.value if isinstance(cell, Estimate | AtLeast) else cell)


def _with_interval(figure: Figure) -> str:
    """Return a number as it is, an estimate with its interval: `12.5 (10.0–15.0)`."""
    if not isinstance(figure, Estimate):
        return _number(figure)
    return f"{_number(figure.value)} ({_number(figure.low)}–{_number(figure.high) or humanize.UNBOUNDED})"


def _number(value: float | None) -> str:
    """Return a number without rounding; nothing for one that is not known."""
    return "" if value is None or not isfinite(value) else repr(value)


def table_json(table: Table) -> str:
    """Return a list of records, one for each row."""
    return json.dumps([_record(table.columns, row) for row in table.rows], indent=1) + "\n"


def _record(columns: Sequence[Column], row: Sequence[Cell]) -> dict[str, Any]:
    """Return one row; a column of names takes two members, whatever is in it."""
    record: dict[str, Any] = {}
    for cell, column in zip(row, columns, strict=True):
        name = field_name(column)
        record[name] = _utf8(cell) if isinstance(cell, bytes) else _json_value(cell)
        if column.unit is Unit.NAME or isinstance(cell, bytes):
            record[f"{name}_quoted"] = quoted(cell) if isinstance(cell, bytes) else None
    return record


def _json_value(cell: Cell) -> Any:
    """Return a cell as JSON has it: a number, a text, null for what is not known; an inexact number is a record."""
    if isinstance(cell, Estimate):
        return {"value": cell.value, "low": cell.low, "high": cell.high if isfinite(cell.high) else None}
    if isinstance(cell, AtLeast):
        return {"value": cell.value, "at_least": True}
    if isinstance(cell, tuple):
        return {_utf8(name) or quoted(name): _json_value(figure) for name, figure in cell}
    if isinstance(cell, Unknown):
        return None
    return "never" if isinstance(cell, NoTtl) else cell


def _utf8(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None
