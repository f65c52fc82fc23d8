"""One table as the text of a file: CSV and JSON with raw values for programs, Markdown as people read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from rtui.analysis.estimate import Estimate
from rtui.analysis.facts import NoTtl, Unknown
from rtui.analysis.forms.csv_form import field_name, table_csv
from rtui.analysis.forms.markdown_form import table_markdown
from rtui.analysis.tables.table import AtLeast, Cell, Table
from rtui.keyspace.display import quoted


def table_json(table: Table) -> str:
    r"""Return a list of records; names are quoted as redis-cli reads them, unknown values are null."""
    records = [
        {field_name(column): _json_cell(cell) for cell, column in zip(row, table.columns, strict=True)}
        for row in table.rows
    ]
    return json.dumps(records, indent=1) + "\n"


FORMS: Final[dict[str, Callable[[Table], str]]] = {".csv": table_csv, ".md": table_markdown, ".json": table_json}
"""By the ending of a file."""


def _json_cell(cell: Cell) -> Any:
    """Return a cell as JSON has it: a number, a text, null for what is not known; an inexact number is a record."""
    if isinstance(cell, bytes):
        return quoted(cell)
    if isinstance(cell, Estimate):
        return {"value": cell.value, "low": cell.low, "high": cell.high if isfinite(cell.high) else None}
    if isinstance(cell, AtLeast):
        return {"value": cell.value, "at_least": True}
    if isinstance(cell, tuple):
        return {quoted(name): _json_cell(figure) for name, figure in cell}
    unknown = isinstance(cell, Unknown)
    return None if unknown else "never" if isinstance(cell, NoTtl) else cell
