"""Takes rows out of a table: copies the one under the cursor, writes all of them to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from rtui.analysis.report.tables.table import Path, Subject
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.redis_cli import key_as_bytes, key_as_text
from rtui.tui.kit.copying import Copier, Copy
from rtui.tui.kit.styled_text import own
from rtui.tui.kit.table import ReportTable
from rtui.tui.kit.table_file import TableFileError, write_table


class RowDesk:
    """Carries out the commands that copy, and writes files."""

    def __init__(self, screen: Screen[Any], table: Callable[[], ReportTable]) -> None:
        self._screen = screen
        self._copier = Copier(screen)
        self._table = table

    def copy_row(self) -> None:
        """Copy the name of what the row is about, the row itself where it has none."""
        entries = self._entries()
        if entries:
            self._copier.copy(entries[0].text)

    def copy_menu(self) -> None:
        """Choose what to copy."""
        entries = self._entries()
        if entries:
            self._copier.choose(entries)

    def write(self, name: str) -> None:
        """Write what the table shows to a file, and say what came of it."""
        try:
            done = write_table(self._table().rows.shown(), name)
        except TableFileError as error:
            self._screen.notify(error.reason, title="Not written", severity="error", markup=False)
        else:
            self._screen.notify(done, title="Written", markup=False, timeout=4)

    def _entries(self) -> list[Copy]:
        """Return what can be copied of the row under the cursor."""
        body = self._table().body
        if not len(body.rows):
            return []
        texts = body.rows.texts(body.cursor_line)
        row = Copy(own("the row, its cells apart by tabs"), "\t".join(texts))
        name = name_of(body.subject)
        if name is None:
            return [row]
        entries = [
            Copy(own("name as text"), key_as_text(name)),
            Copy(own("name as escaped bytes"), key_as_bytes(name)),
            row,
        ]
        if isinstance(body.subject, tuple):
            entries.append(Copy(own("pattern of everything below"), key_as_text(prefix_pattern(name))))
        return entries


def name_of(subject: Subject) -> bytes | None:
    """Return the bytes that name what a row is about: a key, or how the keys of a namespace begin."""
    if isinstance(subject, bytes):
        return subject
    if isinstance(subject, tuple):
        return prefix_of(subject)
    return None


def prefix_of(path: Path) -> bytes:
    """Return how the keys of a namespace begin."""
    return b"".join(step.name + step.separator for step in path)
