"""Writes what a table shows to a file: whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rtui.analysis.tables.table import Table
from rtui.analysis.words import counted
from rtui.keyspace.display import SafeText
from rtui.server.whole_file import whole_file
from rtui.tui.shown import display_text
from rtui.tui.table_forms import FORMS

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
        with whole_file(path) as file:
            file.write(data)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TableFileError(f"{path}: {why}") from None
    return display_text(f"{counted(len(table.rows), 'row')} to {path}")
