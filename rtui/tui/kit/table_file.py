"""One table as the text of a file: CSV and JSON with raw values for programs, Markdown as people read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Unknown
from rtui.analysis.formats.csv import field_name, table_csv
from rtui.analysis.formats.markdown import table_markdown
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText, quoted
from rtui.server.files import atomic_file
from rtui.tui.kit.format import display_text


def table_json(table: Table) -> str:
    r"""Return a list of records; unknown values are null.

    Names are written as in a report: `"key"` is the text, null where the bytes are no UTF-8, and `"key_quoted"` all of
    them in double quotes and with `\xNN`, as `redis-cli --quoted-input` reads them.
    """
    return json.dumps([_record(table.columns, row) for row in table.rows], indent=1) + "\n"


def _record(columns: Sequence[Column], row: Sequence[Cell]) -> dict[str, Any]:
    """Return one row; a column of names takes two members, whatever is in it."""
    record: dict[str, Any] = {}
    for cell, column in zip(row, columns, strict=True):
        name = field_name(column)
        if isinstance(cell, bytes):
            record[name] = _utf8(cell)
            record[f"{name}_quoted"] = quoted(cell)
            continue
        record[name] = _json_cell(cell)
        if column.unit is Unit.NAME:
            record[f"{name}_quoted"] = None
    return record


FORMS: Final[dict[str, Callable[[Table], str]]] = {".csv": table_csv, ".md": table_markdown, ".json": table_json}
"""By the ending of a file."""


def _json_cell(cell: Cell) -> Any:
    """Return a cell as JSON has it: a number, a text, null for what is not known; an inexact number is a record."""
    if isinstance(cell, Estimate):
        return {"value": cell.value, "low": cell.low, "high": cell.high if isfinite(cell.high) else None}
    if isinstance(cell, AtLeast):
        return {"value": cell.value, "at_least": True}
    if isinstance(cell, tuple):
        return {_utf8(name) or quoted(name): _json_cell(figure) for name, figure in cell}
    unknown = isinstance(cell, Unknown)
    return None if unknown else "never" if isinstance(cell, NoTtl) else cell


def _utf8(name: bytes) -> str | None:
    """Return the text of a name; None where it is no UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


SUFFIXES: Final = tuple(FORMS)
"""The endings of files that can be written."""


class TableFileError(Exception):
    """A file that cannot be written; the reason is safe to show."""

    def __init__(self, reason: str) -> None:
        self.reason: SafeText = display_text(reason)
        super().__init__(self.reason)


def write_table(table: Table, name: str) -> SafeText:
    """Write a table to the file of this name, in the form that its ending says; returns what was written, in words.

    A file that is there is replaced as a whole, by one that only its owner may read. Raises TableFileError.
    """
    path = Path(name).expanduser()
    write = FORMS.get(path.suffix.lower())
    if write is None:
        raise TableFileError(f"The name must end in {', '.join(SUFFIXES)}.")
    try:
        data = write(table).encode()
        with atomic_file(path) as file:
            file.write(data)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TableFileError(f"{path}: {why}") from None
    return display_text(f"{counted(len(table.rows), 'row')} to {path}")
