"""The rows of a table as they are shown: sorted, filtered, each found again by what it is, and written to a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from rtui.analysis.formats import TABLE_FORMATS
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.cell_text import EMPTY_NAME, cell_text
from rtui.analysis.report.tables.table import Cell, Column, Subject, Table, Unit
from rtui.keyspace.text.display import SafeText
from rtui.server.files import atomic_file
from rtui.tui.kit.format import display, display_text

NAME_LIMIT: Final = 200
"""Characters of a name or a text in a cell at most."""


class Order(NamedTuple):
    """The column by which a table is sorted."""

    column: str
    """The id of the column."""
    upward: bool = False
    """Whether it is the other way than usual for the column: smallest number first, last name first."""


@dataclass(slots=True)
class TableState:
    """How a table is sorted and filtered and where its cursor is; it outlives the table, which is often made anew."""

    sort: str | None = None
    """The id of the column by which the user sorted the rows, None for the order in which the table was made."""
    is_reversed: bool = False
    """Whether the rows are in reverse: smallest number first, last name first."""
    filter_text: str = ""
    """Only rows with this text in a name or text of theirs are shown."""
    cursor_row: Hashable = None
    """The identity of the row under the cursor."""
    has_moved: bool = False
    """Whether the user has moved the cursor, so that rows have to keep their places."""


class TableRows:
    """One table in one state. A row has an index in the table, a line on the screen, and an identity.

    The identity, what the row is about and its names, finds a row again in a newer table of the same kind.
    """

    def __init__(self, table: Table, state: TableState, held: list[Hashable] | None = None) -> None:
        """`held` are identities of rows that keep this order; other rows come after them."""
        self.table = table
        self.state = state
        self._texts: dict[int, tuple[SafeText, ...]] = {}
        self._identities = _identities(table)
        self._shown = self._sorted()
        if held is not None:
            indices = {self._identities[index]: index for index in self._shown}
            old = [indices.pop(identity) for identity in held if identity in indices]
            self._shown = [*old, *indices.values()]
        self._lines = {self._identities[index]: line for line, index in enumerate(self._shown)}

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def order(self) -> list[Hashable]:
        """The identities of the rows, from the first line on."""
        return [self._identities[index] for index in self._shown]

    def index(self, line: int) -> int:
        """Return the index in the table of the row on a line."""
        return self._shown[line]

    def identity(self, line: int) -> Hashable:
        """Return the identity of the row on a line."""
        return self._identities[self._shown[line]]

    def line_of(self, identity: Hashable) -> int | None:
        """Return the line of a row, None where it is not shown."""
        return None if identity is None else self._lines.get(identity)

    def subject(self, line: int) -> Subject:
        """Return what the row on a line is about."""
        return self.table.subject(self._shown[line])

    def cells(self, line: int) -> tuple[Cell, ...]:
        """Return the cells of the row on a line."""
        return self.table.rows[self._shown[line]]

    def texts(self, line: int) -> tuple[SafeText, ...]:
        """Return the texts of the row on a line."""
        return self._texts_of(self._shown[line])

    def shown(self) -> Table:
        """Return a table of the rows that are shown, in their order."""
        return self.table.picked(self._shown)

    def _texts_of(self, index: int) -> tuple[SafeText, ...]:
        texts = self._texts.get(index)
        if texts is None:
            row = zip(self.table.rows[index], self.table.columns, strict=True)
            texts = self._texts[index] = tuple(_cell_text(cell, column) for cell, column in row)
        return texts

    def _sorted(self) -> list[int]:
        """Return the indices of the rows that the filter keeps, in the order of the state."""
        columns, state, rows = self.table.columns, self.state, list(range(len(self.table.rows)))
        wanted = state.filter_text.casefold()
        if wanted:
            names = [at for at, column in enumerate(columns) if not column.numeric]
            rows = [row for row in rows if any(wanted in self._texts_of(row)[at].casefold() for at in names)]
        by = next((at for at, column in enumerate(columns) if column.id == state.sort), None)
        if by is None:
            return rows[::-1] if state.is_reversed else rows
        return self.table.sorted_rows(rows, by, descending=columns[by].numeric is not state.is_reversed)


def _identities(table: Table) -> list[Hashable]:
    """Return the identity of each row; of several equal ones all but the first get a number."""
    named = [at for at, column in enumerate(table.columns) if column.unit in (Unit.NAME, Unit.TEXT, Unit.TIME)]
    count: Counter[Hashable] = Counter()
    identities: list[Hashable] = []
    for index, row in enumerate(table.rows):
        identity = (table.subject(index), tuple(row[at] for at in named if isinstance(row[at], Hashable)))
        identities.append((identity, count[identity]) if count[identity] else identity)
        count[identity] += 1
    return identities


def _cell_text(cell: Cell, column: Column) -> SafeText:
    """Return a cell as this terminal shows it."""
    if isinstance(cell, bytes):
        return display(cell, limit=NAME_LIMIT) if cell else EMPTY_NAME
    if isinstance(cell, str):
        return display_text(cell, limit=NAME_LIMIT)
    return cell_text(cell, column)


SUFFIXES: Final = tuple(TABLE_FORMATS)
"""Endings of the files that `write_table` writes."""


class TableFileError(Exception):
    """A table that cannot be written to a file; the reason is safe to show."""

    def __init__(self, reason: str) -> None:
        self.reason: SafeText = display_text(reason)
        super().__init__(self.reason)


def write_table(table: Table, name: str) -> SafeText:
    """Write a table to a file, in the format that the ending of its name says; return a text such as `9 rows to a.csv`.

    A file of this name is replaced as a whole, by one that only its owner may read. Raises TableFileError.
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
