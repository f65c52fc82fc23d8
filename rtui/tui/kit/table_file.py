"""Writing the table on the screen to a file, in the format that the ending of its name says."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rtui.analysis.formats import TABLE_FORMATS
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.server.files import atomic_file
from rtui.tui.kit.format import display_text

SUFFIXES: Final = tuple(TABLE_FORMATS)
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
    write = TABLE_FORMATS.get(path.suffix.lower())
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
