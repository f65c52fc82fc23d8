"""The rows of a value or of a namespace: each a line, and the item in it that can be copied, opened or written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from rtui.server.facts.preview.page import Meaning, Offer, PreviewCell, PreviewColumn, PreviewRow, Unread
from rtui.tui.kit.styled_text import Line
from rtui.values import Node

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.analysis.query.behind import Behind


class ItemKind(Enum):
    """The kinds of items in rows."""

    ELEMENT = "element"
    """A field, item, member, entry or element of the value."""
    SIDE = "side"
    """A row of a table beside the value, such as a consumer group."""
    TEXT = "text"
    """A line of a text."""
    HEX = "hex"
    """A line of a hex dump."""
    NODE = "node"
    """A node of a decoded tree."""
    KEY = "key"
    """A key of a namespace; the bytes are its name."""
    NAMESPACE = "namespace"
    """A namespace in another one; the bytes are its prefix."""
    PATTERN = "pattern"
    """The keys of a pattern."""
    OFFER = "offer"
    """Elements that may be large, and are read only if the user says so."""
    BY_SIZE = "keys by size"
    """All keys of a namespace, largest first; the bytes are its prefix."""


ELSEWHERE: Final = frozenset({ItemKind.KEY, ItemKind.NAMESPACE, ItemKind.PATTERN, ItemKind.BY_SIZE})
"""The kinds of items that are opened outside the body of the details."""


@dataclass(frozen=True, slots=True)
class Item:
    """The item that a row shows: an element, a key, a node of a decoded value."""

    kind: ItemKind
    data: bytes | None = None
    """The bytes that it shows, which are copied; None if they were not read, and for nodes with children."""
    columns: tuple[PreviewColumn, ...] = ()
    cells: PreviewRow = ()
    """Of an element its whole row, the id of an entry in each of its rows."""
    node: Node | None = field(default=None, compare=False)
    path: tuple[int, ...] = ()
    """Where the node is in its tree."""
    subject: bytes | None = None
    """For a row of a table beside the value, the owner of its item: the group of a consumer."""
    offer: Offer | None = None
    is_part: bool = False
    """Whether the bytes are part of a line that continues before or after the read ones."""
    behind: Behind | None = None
    """The query for the keys that the row is about."""

    def cell(self, meaning: Meaning) -> PreviewCell:
        """Return the first cell of this meaning, None if there is none."""
        for column, cell in zip(self.columns, self.cells, strict=False):
            if column.meaning is meaning:
                return cell
        return None

    @property
    def name(self) -> bytes | None:
        """The name of a field, or a member."""
        found = self.cell(Meaning.NAME)
        return found if isinstance(found, bytes) else None

    @property
    def can_open(self) -> bool:
        """Whether there is more of it to be seen: decoded, unfolded, or in another place."""
        if self.kind in ELSEWHERE or self.kind is ItemKind.OFFER or self.can_fold:
            return True
        if self.kind is ItemKind.ELEMENT:
            value = self.cell(Meaning.VALUE)
            return bool(self.data) or (isinstance(value, Unread) and not value.was_read)
        return self.kind in (ItemKind.NODE, ItemKind.TEXT) and bool(self.data)

    @property
    def can_fold(self) -> bool:
        """Whether it is a node with others below it."""
        return self.node is not None and bool(self.node.children)


class ValueRow:
    """A line, and its item; None for a title, a note or a blank line, where the cursor does not rest."""

    __slots__ = ("_item", "_line", "column_ends")

    def __init__(
        self,
        line: Line | Callable[[], Line],
        item: Item | Callable[[], Item] | None = None,
        column_ends: tuple[int, ...] = (),
    ) -> None:
        """A line or an item may be a function that makes it on first use: most of a long value is never looked at.

        `column_ends` are the end cells of the columns, for the titles of a table: a click on a title sorts the rows.
        """
        self._line = line
        self._item = item
        self.column_ends = column_ends

    @property
    def line(self) -> Line:
        """The line, made on first use."""
        if callable(self._line):
            self._line = self._line()
        return self._line

    @property
    def item(self) -> Item | None:
        """The item of the row, made on first use; None if it has none."""
        if callable(self._item):
            self._item = self._item()
        return self._item

    @property
    def is_item(self) -> bool:
        """Whether the row has an item."""
        return self._item is not None

    def column_at(self, x: int) -> int | None:
        """Return the number of the column whose title is at a cell, None if there is none."""
        return next((at for at, end in enumerate(self.column_ends) if x < end), None)


def plain_rows(*lines: Line) -> list[ValueRow]:
    """Return lines where the cursor does not rest."""
    return [ValueRow(line) for line in lines]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """By which column the rows of a page are sorted."""

    column: int
    """The number of the column."""
    is_reversed: bool = False
    """Whether the greatest is first."""


def element_of(columns: Sequence[PreviewColumn], row: PreviewRow, entry: PreviewCell = None) -> Item:
    """Return the item of a row of the value; `entry` is the stream id in an earlier row of its entry."""
    cells = row if entry is None else (entry, *row[1:])
    item = Item(ItemKind.ELEMENT, columns=tuple(columns), cells=cells)
    value = item.cell(Meaning.VALUE) if has_values(columns) else item.cell(Meaning.NAME)
    return Item(ItemKind.ELEMENT, value if isinstance(value, bytes) else None, item.columns, cells)


def has_values(columns: Sequence[PreviewColumn]) -> bool:
    """Return whether a table has values beside names."""
    return any(column.meaning is Meaning.VALUE for column in columns)


def sorted_rows(rows: Sequence[PreviewRow], order: RowOrder | None) -> list[tuple[PreviewRow, PreviewCell]]:
    """Return rows in this order, each with the first cell of the entry that it belongs to.

    A row without an id belongs to the entry of a stream before it and stays below it. Without an order they stay as
    they came.
    """
    groups: list[list[PreviewRow]] = []
    for row in rows:
        if groups and row and row[0] is None and isinstance(groups[-1][0][0], bytes):
            groups[-1].append(row)
        else:
            groups.append([row])
    if order is not None:
        groups.sort(key=lambda group: _sort_key(group[0], order.column), reverse=order.is_reversed)
    return [(row, group[0][0] if group[0] else None) for group in groups for row in group]


def _sort_key(row: PreviewRow, column: int) -> tuple[int, float, bytes]:
    """Return the sort key of a row: numbers come before bytes, and both before unknown cells."""
    cell = row[column] if column < len(row) else None
    if isinstance(cell, bytes):
        try:
            return (0, float(cell), cell)
        except ValueError:
            return (1, 0.0, cell)
    return (0, float(cell), b"") if isinstance(cell, int | float) else (2, 0.0, b"")
