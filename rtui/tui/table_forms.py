"""One table as the text of a file: CSV and JSON with raw values for programs, Markdown as people read it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any, Final

from rtui.analysis.estimate import Estimate
from rtui.analysis.facts import NoTtl, Unknown
from rtui.analysis.tables.cell_text import cell_text
from rtui.analysis.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.display import Display, quoted

_DISPLAY: Final = Display()
_FORMULA: Final = ("=", "+", "-", "@", "\t")
"""What a spreadsheet would take for a formula at the beginning of a text."""


def as_csv(table: Table) -> str:
    """Return the table with raw numbers; names are shown safely, and never as what a spreadsheet would carry out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field_name(column) for column in table.columns])
    for row in table.rows:
        writer.writerow([_csv_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)])
    return out.getvalue()


def as_markdown(table: Table) -> str:
    """Return the table as people read it."""
    lines = [
        "| " + " | ".join(_markdown(column.title) for column in table.columns) + " |",
        "|" + "|".join("--:" if column.numeric else "---" for column in table.columns) + "|",
    ]
    for row in table.rows:
        texts = (cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True))
        lines.append("| " + " | ".join(map(_markdown, texts)) + " |")
    return "\n".join(lines) + "\n"


def as_json(table: Table) -> str:
    r"""Return a list of records; names are quoted as redis-cli reads them, unknown values are null."""
    records = [
        {field_name(column): _json_cell(cell) for cell, column in zip(row, table.columns, strict=True)}
        for row in table.rows
    ]
    return json.dumps(records, indent=1) + "\n"


FORMS: Final[dict[str, Callable[[Table], str]]] = {".csv": as_csv, ".md": as_markdown, ".json": as_json}
"""By the ending of a file."""


def field_name(column: Column) -> str:
    """Return the name of a column with its unit: `memory_bytes`, `ttl_s`."""
    units = {Unit.BYTES: "bytes", Unit.DURATION: "s", Unit.TIME: "epoch_s"}
    unit = units.get(column.unit)
    return column.id if unit is None or column.id.endswith(unit) else f"{column.id}_{unit}"


def _csv_cell(cell: Cell, column: Column) -> str:
    value = _json_cell(cell)
    if isinstance(cell, bytes):
        text = str(_DISPLAY.name(cell, limit=len(cell) * 10 + 1))
    elif isinstance(cell, str | tuple):
        text = str(cell_text(cell, column))
    elif isinstance(value, dict):
        return str(value["value"])
    else:
        return "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _json_cell(cell: Cell) -> Any:
    """Return a cell as JSON has it: a number, a text, null for what is not known; an inexact number is a record."""
    if isinstance(cell, bytes):
        return quoted(cell)
    if isinstance(cell, Estimate):
        return {"value": cell.value, "low": cell.low, "high": cell.high}
    if isinstance(cell, AtLeast):
        return {"value": cell.value, "at_least": True}
    if isinstance(cell, tuple):
        return {quoted(name): _json_cell(figure) for name, figure in cell}
    unknown = isinstance(cell, Unknown)
    return None if unknown else "never" if isinstance(cell, NoTtl) else cell


def _markdown(text: str) -> str:
    """Return a text that Markdown takes for nothing but text."""
    return "".join(f"\\{character}" if character in "\\`*_{}[]<>()#+!|~&" else character for character in text)
