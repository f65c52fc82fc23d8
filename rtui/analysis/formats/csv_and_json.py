"""Tables as CSV and JSON, for spreadsheets and programs: raw numbers, with their units in the names.

The report itself is one table, a row for each namespace at every level, depth 0 for all keys. For any table:

* `memory_bytes`, `idle_s`, `share_of_keys` (0 … 1), `soonest_expiry_epoch_s`: numbers without rounding. What is not
  known is an empty field. `ttl_ms` is whole, -1 without a TTL, as of `rtui find`.
* In the report itself these fields are always there, after all others, and `coverage` before them.
* Where a column holds estimates, `…_low` and `…_high` beside it are their 95 % intervals; in a list of types each
  number has its own: `string 12.5 (10.0–15.0)`.
* Where a column holds numbers of which only a lower bound is known, `…_at_least` beside it is 1 for those.
* A name is shown safely, and beside it, as `…_quoted`, byte for byte as `redis-cli --quoted-input` reads it; types and
  encodings are words of the server.
* A text that a spreadsheet would take for a formula has an apostrophe before it.

JSON is a list of records with the same names: what is not known is null, an estimate `{"value", "low", "high"}`, a
lower bound `{"value", "at_least": true}`. A name is text, null where it is no UTF-8; beside it is `…_quoted` as in CSV.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from math import isfinite
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_EXPIRY, NoTtl, Unknown
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.analysis.report.tables.totals import namespace_figures
from rtui.keyspace.text.display import display, quoted

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")

_FIGURES: Final = frozenset({Unit.KEYS, Unit.COUNT, Unit.BYTES, Unit.SHARE, Unit.TIME})
"""Units of columns of which numbers may be estimates or lower bounds."""

_TTL: Final = "ttl"
_WORDS: Final = frozenset({"type", "encoding"})
"""The columns of names that are no names of keys."""

_UNITS: Final = {Unit.BYTES: "bytes", Unit.DURATION: "s", Unit.TIME: "epoch_s"}


def write_csv(report: Report) -> str:
    """Return the namespaces at every level; the fields are the same for every report.

    The last ones are `coverage`, as in JSON, and the bounds and marks of the numbers.
    """
    pairs = _pairs(namespace_figures(report))
    fields = [field for pair in pairs for field in _fields(*pair)]
    fields.append(("coverage", [report.head.coverage.kind.value] * len(pairs[0][1])))
    fields += [field for pair in pairs if pair[0].unit in _FIGURES for field in _bounds(*pair, is_fixed=True)]
    return _written(fields)


def table_csv(table: Table) -> str:
    return _written([field for pair in _pairs(table) for field in (*_fields(*pair), *_bounds(*pair))])


def _written(fields: Sequence[tuple[str, list[str]]]) -> str:
    return csv_text([[name for name, _ in fields], *zip(*(texts for _, texts in fields), strict=True)])


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV; lines end as RFC 4180 has it."""
    out = StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _pairs(table: Table) -> list[tuple[Column, Sequence[Cell]]]:
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    return [
        (column, [_in_unit(cell, column) for cell in cells])
        for column, cells in zip(table.columns, columns, strict=True)
    ]


def _in_unit(cell: Cell, column: Column) -> Cell:
    return round(cell * 1000) if column.id == _TTL and isinstance(cell, int | float) else cell


def _has_bytes(column: Column) -> bool:
    return column.unit is Unit.NAME and column.id not in _WORDS


def _fields(column: Column, cells: Sequence[Cell]) -> Iterator[tuple[str, list[str]]]:
    name = field_name(column)
    yield name, list(map(_text, cells))
    if _has_bytes(column):
        yield f"{name}_quoted", [quoted(cell) if isinstance(cell, bytes) else "" for cell in cells]


def _bounds(column: Column, cells: Sequence[Cell], *, is_fixed: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of intervals and lower bounds: all, or only the filled ones."""
    name = field_name(column)
    if is_fixed or any(isinstance(cell, Estimate) for cell in cells):
        yield f"{name}_low", [_number(cell.low) if isinstance(cell, Estimate) else "" for cell in cells]
        yield f"{name}_high", [_number(cell.high) if isinstance(cell, Estimate) else "" for cell in cells]
    if is_fixed or any(isinstance(cell, AtLeast) for cell in cells):
        yield f"{name}_at_least", ["1" if isinstance(cell, AtLeast) else "" for cell in cells]


def field_name(column: Column) -> str:
    """Return the name of a column with its unit: `memory_bytes`, `ttl_ms`."""
    unit = "ms" if column.id == _TTL else _UNITS.get(column.unit)
    return guarded(column.id if unit is None or column.id.endswith(f"_{unit}") else f"{column.id}_{unit}")


def guarded(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def _text(cell: Cell) -> str:
    if isinstance(cell, bytes):
        return guarded(display(cell))
    if isinstance(cell, str):
        return guarded(cell)
    if isinstance(cell, tuple):
        parts = []
        for name, figure in cell:
            bounds = ""
            if isinstance(figure, Estimate):
                bounds = f" ({_number(figure.low)}–{_number(figure.high) or humanize.UNBOUNDED})"
            parts.append(f"{display(name, limit=64)} {_text(figure)}{bounds}")
        return guarded("; ".join(parts))
    if cell is None or isinstance(cell, Unknown):
        return ""
    if isinstance(cell, NoTtl):
        return str(NO_EXPIRY)
    return _number(cell.value if isinstance(cell, Estimate | AtLeast) else cell)


def _number(value: float) -> str:
    return repr(value) if isfinite(value) else ""


def table_json(table: Table) -> str:
    return json.dumps(table_records(table), indent=1) + "\n"


def table_jsonl(table: Table) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in table_records(table))


def table_records(table: Table) -> list[dict[str, Any]]:
    return [_record(table.columns, row) for row in table.rows]


def _record(columns: Sequence[Column], row: Sequence[Cell]) -> dict[str, Any]:
    """Return one row; a column of names takes two members, whatever is in it."""
    record: dict[str, Any] = {}
    for given, column in zip(row, columns, strict=True):
        name = field_name(column)
        cell = _in_unit(given, column)
        if isinstance(cell, bytes):
            record[name] = display(cell) if column.id in _WORDS else utf8_text(cell)
        else:
            record[name] = cell_value(cell)
        if _has_bytes(column) or (isinstance(cell, bytes) and column.id not in _WORDS):
            record[f"{name}_quoted"] = quoted(cell) if isinstance(cell, bytes) else None
    return record


def cell_value(cell: Cell) -> Any:
    if isinstance(cell, Estimate):
        return {"value": cell.value, "low": cell.low, "high": cell.high if isfinite(cell.high) else None}
    if isinstance(cell, AtLeast):
        return {"value": cell.value, "at_least": True}
    if isinstance(cell, tuple):
        return {utf8_text(name) or quoted(name): cell_value(figure) for name, figure in cell}
    if isinstance(cell, Unknown):
        return None
    return NO_EXPIRY if isinstance(cell, NoTtl) else cell


def utf8_text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None
