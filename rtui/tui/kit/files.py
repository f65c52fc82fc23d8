"""Files that a screen writes: tables, names of keys, other texts; a notice says what was written or why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from textual.screen import Screen

from rtui.analysis.formats import TABLE_FORMATS
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.server.files import atomic_file, reason_of
from rtui.tui.kit.layout import display_text

SUFFIXES: Final = tuple(TABLE_FORMATS)
"""Endings of the files that `write_table` writes."""


class FileError(Exception):
    """What cannot be written to a file; the reason is safe to show."""

    def __init__(self, reason: str) -> None:
        self.reason: SafeText = display_text(reason)
        super().__init__(self.reason)


def write_table(table: Table, name: str) -> SafeText:
    """Write a table to a file, in the format that the ending of its name says; return a text such as `9 rows to a.csv`.

    A file of this name is replaced as a whole, by one that only its owner may read. Raises FileError.
    """
    path = Path(name).expanduser()
    make = TABLE_FORMATS.get(path.suffix.lower())
    if make is None:
        raise FileError(f"The name must end in {', '.join(SUFFIXES)}.")
    write_text(path, lambda: make(table))
    return display_text(f"{counted(len(table.rows), 'row')} to {path}")


def write_names(names: Sequence[str], name: str) -> SafeText:
    """Write names of keys to a file, a line each, as `write_table` does; each is printable or quoted."""
    path = Path(name).expanduser()
    write_text(path, lambda: "".join(f"{one}\n" for one in names))
    return display_text(f"{counted(len(names), 'name')} to {path}")


def write_samples(lines: Sequence[str], name: str) -> SafeText:
    """Write samples of servers to a file, as `write_table` does; the first line is the header."""
    path = Path(name).expanduser()
    write_text(path, lambda: "".join(lines))
    return display_text(f"{counted(len(lines) - 1, 'sample')} to {path}")


def write_text(path: Path, make: Callable[[], str]) -> None:
    """Write a text to a file, replaced as a whole, that only its owner may read. Raises FileError."""
    try:
        data = make().encode()
        with atomic_file(path) as file:
            file.write(data)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {reason_of(error)}") from None


async def write_file(screen: Screen[Any], write: Callable[[], SafeText]) -> None:
    """Write a file in a thread, and say in a notice what was written or why not.

    `write` returns what it has written, or raises FileError.
    """
    try:
        written = await asyncio.to_thread(write)
    except FileError as error:
        screen.notify(error.reason, title="Not written", severity="error", markup=False)
    else:
        screen.notify(written, title="Written", markup=False, timeout=4)
