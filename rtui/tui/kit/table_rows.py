"""The rows of a table as they are shown: sorted by any column, filtered by a text, each found again by what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from rtui.analysis.report.tables.cell_text import EMPTY_NAME, cell_text
from rtui.analysis.report.tables.table import Cell, Column, Subject, Table, Unit
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.format import display, display_text

NAME_LIMIT: Final = 200
"""Characters of a name that a cell holds at most."""


class Order(NamedTuple):
    """The order in which a table is made."""

    column: str
    """The id of the column whose values it follows."""
    upward: bool = False
    """Whether it goes the other way than one expects of such a column: numbers up, names down."""


@dataclass(slots=True)
class TableState:
    """How a table is sorted and filtered and where its cursor is; it outlives the table, which is often made anew."""

    sort: str | None = None
    """The id of the column that the rows are sorted by, None for the order in which the table was made."""
    is_reversed: bool = False
    """Whether they are sorted the other way than one expects first: numbers down, names up."""
    filter_text: str = ""
    """Only rows with this text in them are shown."""
    cursor_row: Hashable = None
    """The row under the cursor."""
    has_moved: bool = False
    """Whether the user has moved in it, so that rows must keep their places."""


class TableRows:
    """One table under one state. Rows are known by their place in the table or by their line on the screen."""

    def __init__(self, table: Table, state: TableState, held: list[Hashable] | None = None) -> None:
        """`held` are identities of rows that keep their order; those that are new come behind."""
        self.table = table
        self.state = state
        self._texts: dict[int, tuple[SafeText, ...]] = {}
        self._identities = _told_apart(self._identity(row) for row in range(len(table.rows)))
        self._places = self._sorted() if held is None else self._held(held)
        self._lines = {self._identities[place]: line for line, place in enumerate(self._places)}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def order(self) -> list[Hashable]:
        """The identities of the rows, from the first line on."""
        return [self._identities[place] for place in self._places]

    def index(self, line: int) -> int:
        """Return the index in the table of the row on a line."""
        return self._places[line]

    def identity(self, line: int) -> Hashable:
        """Return what tells the row on a line from all others of its table."""
        return self._identities[self._places[line]]

    def line_of(self, identity: Hashable) -> int | None:
        """Return where a row stands, None where it is not shown."""
        return None if identity is None else self._lines.get(identity)

    def subject(self, line: int) -> Subject:
        """Return what the row on a line is about."""
        return self.table.subject(self._places[line])

    def cells(self, line: int) -> tuple[Cell, ...]:
        """Return the cells of the row on a line."""
        return self.table.rows[self._places[line]]

    def texts(self, line: int) -> tuple[SafeText, ...]:
        """Return what the row on a line says."""
        return self._texts_at(self._places[line])

    def shown(self) -> Table:
        """Return the rows in the order in which they are shown as a table of their own."""
        return self.table.picked(self._places)

    def _identity(self, place: int) -> Hashable:
        subject = self.table.subject(place)
        names = tuple(
            cell
            for cell, column in zip(self.table.rows[place], self.table.columns, strict=True)
            if column.unit in (Unit.NAME, Unit.TEXT, Unit.TIME) and isinstance(cell, Hashable)
        )
        return subject, names

    def _texts_at(self, place: int) -> tuple[SafeText, ...]:
        texts = self._texts.get(place)
        if texts is None:
            row = zip(self.table.rows[place], self.table.columns, strict=True)
            texts = self._texts[place] = tuple(shown_cell(cell, column) for cell, column in row)
        return texts

    def _sorted(self) -> list[int]:
        """Return the places in the order of the state, without those that the filter hides."""
        places = [place for place in range(len(self.table.rows)) if self._matches(place)]
        index = next((at for at, column in enumerate(self.table.columns) if column.id == self.state.sort), None)
        if index is None:
            return places[::-1] if self.state.is_reversed else places
        downward = self.table.columns[index].numeric is not self.state.is_reversed
        return self.table.sorted_rows(places, index, descending=downward)

    def _held(self, order: list[Hashable]) -> list[int]:
        """Return the places with what was there before in its old order, and what is new behind it."""
        places = {self._identities[place]: place for place in self._sorted()}
        old = [places.pop(identity) for identity in order if identity in places]
        return old + list(places.values())

    def _matches(self, place: int) -> bool:
        """Whether a row has the text that is filtered by, in any name or text of it; capitals do not matter."""
        needle = self.state.filter_text.casefold()
        if not needle:
            return True
        texts = zip(self._texts_at(place), self.table.columns, strict=True)
        return any(needle in text.casefold() for text, column in texts if not column.numeric)


def _told_apart(identities: Iterable[Hashable]) -> list[Hashable]:
    """Return the identities, a second one of the same with its number."""
    seen: Counter[Hashable] = Counter()
    found: list[Hashable] = []
    for identity in identities:
        found.append((identity, seen[identity]) if seen[identity] else identity)
        seen[identity] += 1
    return found


def shown_cell(cell: Cell, column: Column) -> SafeText:
    """Return a cell as this terminal shows it."""
    if isinstance(cell, bytes):
        return display(cell, limit=NAME_LIMIT) if cell else EMPTY_NAME
    if isinstance(cell, str):
        return display_text(cell, limit=NAME_LIMIT)
    return cell_text(cell, column)
