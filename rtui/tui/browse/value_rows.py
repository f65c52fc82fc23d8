"""The rows of a value as they are shown: each a line, and what it stands for, to be copied, opened or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from rtui.server.facts.preview.page import Meaning, PreviewCell, PreviewColumn, PreviewRow
from rtui.tui.kit.styled_text import Line
from rtui.values import Node


class ItemKind(Enum):
    """What a row stands for."""

    ELEMENT = "element"
    """A field, item, member, entry or element of the value."""
    SIDE = "side"
    """A row of a table beside the value, such as a consumer group."""
    TEXT = "text"
    """A line of a string, or of a hex dump."""
    NODE = "node"
    """A node of a decoded tree."""


@dataclass(frozen=True, slots=True)
class Item:
    """What a row stands for."""

    kind: ItemKind
    data: bytes | None = None
    """The bytes that it shows, which are copied; None where they were not read."""
    columns: tuple[PreviewColumn, ...] = ()
    cells: PreviewRow = ()
    """Of an element its whole row, the id of an entry in each of its rows."""
    node: Node | None = field(default=None, compare=False)
    path: tuple[int, ...] = ()
    """Where the node is in its tree."""
    subject: bytes | None = None
    """Of a row of a table beside the value, what that is about: the group of a consumer."""

    def cell(self, meaning: Meaning) -> PreviewCell:
        """Return the first cell of this meaning, None where there is none."""
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
    def can_fold(self) -> bool:
        """Whether it is a node with others below it."""
        return self.node is not None and bool(self.node.children)


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A line, and what it stands for; None for a title, a note or a blank line, where the cursor does not rest."""

    line: Line
    item: Item | None = None


@dataclass(frozen=True, slots=True)
class RowOrder:
    """By which column the rows of a page are sorted."""

    column: int
    """The number of the column."""
    is_reversed: bool = False
    """Whether the greatest is first."""


def element_of(columns: Sequence[PreviewColumn], row: PreviewRow, entry: PreviewCell = None) -> Item:
    """Return what a row of the value stands for; `entry` is the id that stands in an earlier row of its entry."""
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
    """Return what a row is sorted by: numbers before bytes, and before what is not known."""
    cell = row[column] if column < len(row) else None
    if isinstance(cell, bytes):
        try:
            return (0, float(cell), cell)
        except ValueError:
            return (1, 0.0, cell)
    return (0, float(cell), b"") if isinstance(cell, int | float) else (2, 0.0, b"")
