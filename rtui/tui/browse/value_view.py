"""The body of the details: the rows of a value or of a namespace, with a cursor if any has an item.

A row is a line, and the item in it that can be copied, opened or written. Without items the lines are scrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.binding import BindingType

from rtui.keyspace.slices import Slicer, Slices
from rtui.server.facts.preview.page import Meaning, Offer, PreviewCell, PreviewColumn, PreviewRow, Unread
from rtui.tui.browse.commands import VALUE_COMMANDS
from rtui.tui.kit.bars import InputLine
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.line_view import RowsView, set_content_height
from rtui.tui.kit.styled_text import Line, Role, Span, flashing, literal
from rtui.values import ValueNode

if TYPE_CHECKING:
    from rtui.analysis.query.behind import Behind


class ItemKind(Enum):
    """The kinds of items in rows."""

    ELEMENT = "element"
    """A field, item, member, entry or element of the value."""
    SIDE = "side"
    """A row of a table beside the value, such as a consumer group."""
    TEXT = "text"
    HEX = "hex"
    NODE = "node"
    KEY = "key"
    """A key of a namespace; the bytes are its name."""
    NAMESPACE = "namespace"
    """A namespace in another one; the bytes are its prefix."""
    PATTERN = "pattern"
    """The keys of a pattern."""
    OFFER = "offer"
    """Elements that may be large, and are read only if the user says so."""
    BY_SIZE = "keys by memory"
    """All keys of a namespace, largest first; the bytes are its prefix."""


ELSEWHERE: Final = frozenset({ItemKind.KEY, ItemKind.NAMESPACE, ItemKind.PATTERN, ItemKind.BY_SIZE})
"""The kinds of items that are opened outside the body of the details."""


@dataclass(frozen=True, slots=True)
class RowItem:
    """The item that a row shows: an element, a key, a node of a decoded value."""

    kind: ItemKind
    data: bytes | None = None
    """The bytes that it shows, which are copied; None if they were not read, and for nodes with children."""
    columns: tuple[PreviewColumn, ...] = ()
    cells: PreviewRow = ()
    """Of an element its whole row, the id of an entry in each of its rows."""
    node: ValueNode | None = field(default=None, compare=False)
    path: tuple[int, ...] = ()
    """Where the node is in its tree."""
    subject: bytes | None = None
    """For a row of a table beside the value, the owner of its item: the group of a consumer."""
    offer: Offer | None = None
    is_part: bool = False
    """Whether the bytes are part of a line that continues before or after the read ones."""
    behind: Behind | None = None

    def cell(self, meaning: Meaning) -> PreviewCell:
        for column, cell in zip(self.columns, self.cells, strict=False):
            if column.meaning is meaning:
                return cell
        return None

    @property
    def name(self) -> bytes | None:
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
        return self.node is not None and bool(self.node.children)


class ValueRow:
    """A line, and its item; None for a title, a note or a blank line, where the cursor does not rest."""

    __slots__ = ("_item", "_line", "column_ends")

    def __init__(
        self,
        line: Line | Callable[[], Line],
        item: RowItem | Callable[[], RowItem] | None = None,
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
        if callable(self._line):
            self._line = self._line()
        return self._line

    @property
    def item(self) -> RowItem | None:
        if callable(self._item):
            self._item = self._item()
        return self._item

    @property
    def is_item(self) -> bool:
        return self._item is not None

    def column_at(self, x: int) -> int | None:
        return next((at for at, end in enumerate(self.column_ends) if x < end), None)


def plain_rows(*lines: Line) -> list[ValueRow]:
    """Return lines where the cursor does not rest."""
    return [ValueRow(line) for line in lines]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """By which column the rows of a page are sorted."""

    column: int
    is_reversed: bool = False


def element_of(columns: Sequence[PreviewColumn], row: PreviewRow, entry: PreviewCell = None) -> RowItem:
    """Return the item of a row of the value; `entry` is the stream id in an earlier row of its entry."""
    cells = row if entry is None else (entry, *row[1:])
    item = RowItem(ItemKind.ELEMENT, columns=tuple(columns), cells=cells)
    value = item.cell(Meaning.VALUE) if has_values(columns) else item.cell(Meaning.NAME)
    return RowItem(ItemKind.ELEMENT, value if isinstance(value, bytes) else None, item.columns, cells)


def has_values(columns: Sequence[PreviewColumn]) -> bool:
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


MakeRows = Callable[[int], Sequence[ValueRow]]
"""Returns the rows of the view for its width."""

NOWHERE: Final = -1
"""The line of the cursor while no row has an item."""


class ValueView(RowsView, can_focus=True):
    """Shows rows; the cursor rests on rows with an item and skips the others."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(VALUE_COMMANDS, Owner.ROWS)
    DEFAULT_CSS = """
    ValueView { height: 1fr; }
    """

    def __init__(
        self,
        on_move: Callable[[], object] = lambda: None,
        on_open: Callable[[], object] = lambda: None,
        on_title: Callable[[int], object] = lambda column: None,
    ) -> None:
        """They are called when the cursor has moved, and for clicks that open a row or sort by a column."""
        super().__init__(id="detail-body")
        self._on_move, self._on_open, self._on_title = on_move, on_open, on_title
        self.rows: tuple[ValueRow, ...] = ()
        self.cursor_line = NOWHERE
        self.marks_changes = False
        """Whether rows that are new or changed since the same value was last shown are marked."""
        self._changed: frozenset[RowItem] = frozenset()
        self._make: MakeRows | None = None

    @property
    def lines(self) -> list[Line]:
        return [row.line for row in self.rows]

    @property
    def item(self) -> RowItem | None:
        return self.rows[self.cursor_line].item if 0 <= self.cursor_line < len(self.rows) else None

    def show(self, make: MakeRows, *, is_same: bool) -> None:
        """Show the rows that `make` returns for the width, now and after each resize.

        Where they are more or newer ones of the same value, the cursor stays on its item; else it goes to the first.
        """
        self._make = make
        before, line, top = self.item, self.cursor_line, self.scroll_offset.y
        known = self._items() if self.marks_changes and is_same else frozenset()
        if not self._make_rows():
            self.rows = self.rows if is_same else ()  # of something else: begin at the top once there is room
            return
        changed = self._items() - known if known else frozenset()
        self._changed = changed or (self._changed if is_same else frozenset())
        if not is_same:
            self.scroll_top_to(0)
            self.cursor_line = NOWHERE
            self._put(self._next_item(0, 1), scroll=False)
        elif before is not None:
            nearest = self._nearest_of(before, line)
            self._put(nearest, scroll=abs(nearest - top) > self.size.height)
        else:
            self._put(self._nearest(max(0, line)) if line >= 0 else self._next_item(0, 1), scroll=False)
        self.refresh()

    def _items(self) -> frozenset[RowItem]:
        return frozenset(row.item for row in self.rows if row.item is not None)

    def settle(self) -> None:
        if self._changed:
            self._changed = frozenset()
            self.repaint_changes()

    def _make_rows(self) -> bool:
        """Make the rows for the width of now; return False before there is one."""
        width = self.scrollable_content_region.width
        if not width or self._make is None:
            return False
        self.rows = tuple(self._make(width))
        set_content_height(self, len(self.rows))
        return True

    def on_resize(self) -> None:
        if self._make is not None:
            self.show(self._make, is_same=bool(self.rows))

    def line_at(self, number: int) -> Line | None:
        if not 0 <= number < len(self.rows):
            return None
        row = self.rows[number]
        return flashing(row.line) if row.item is not None and row.item in self._changed else row.line

    def _next_item(self, line: int, step: int) -> int:
        """Return the first line with an item from this line on, NOWHERE if there is none."""
        while 0 <= line < len(self.rows):
            if self.rows[line].is_item:
                return line
            line += step
        return NOWHERE

    def _nearest(self, line: int) -> int:
        line = max(0, min(line, len(self.rows) - 1))
        after = self._next_item(line, 1)
        return after if after != NOWHERE else self._next_item(line, -1)

    def _nearest_of(self, item: RowItem, line: int) -> int:
        """Return the line of this item nearest to a line; if it has none, the nearest line with any item."""
        after, before = range(line, len(self.rows)), range(min(line, len(self.rows)) - 1, -1, -1)
        for pair in zip_longest(after, before):
            for at in pair:
                if at is not None and self.rows[at].item == item:
                    return at
        return self._nearest(line)

    def _put(self, line: int, *, scroll: bool = True) -> None:
        if line == NOWHERE:
            self.cursor_line = NOWHERE
        elif scroll:
            self.put_cursor(line)
        else:
            before, self.cursor_line = self.cursor_line, line
            self.refresh_line(before)
            self.refresh_line(line)
        self._on_move()

    def move_to(self, line: int) -> None:
        """Put the cursor on a line, or on the next line with an item in the same direction.

        If there is none, the view scrolls on, so that text above and below the items can be read.
        """
        if self.cursor_line == NOWHERE:
            self.scroll_top_to(line)
            return
        step = 1 if line >= self.cursor_line else -1
        clamped = max(0, min(line, len(self.rows) - 1))
        found = self._next_item(clamped, step)
        if found in (NOWHERE, self.cursor_line):
            found = self._next_item(clamped, -step)
            self.scroll_top_to(len(self.rows) - self.size.height if step > 0 else 0)
            if found not in (NOWHERE, self.cursor_line):
                self._put(found, scroll=False)
            return
        self._put(found)
        if step < 0 and self._next_item(found - 1, -1) == NOWHERE and found < self.size.height:
            self.scroll_top_to(0)

    def move_by(self, lines: int) -> None:
        """Move the cursor, or scroll if no row has an item."""
        if self.cursor_line == NOWHERE:
            self.scroll_relative(y=lines, animate=False, force=True, immediate=True)
        else:
            super().move_by(lines)

    def find_text(self, text: str) -> Slices[bool]:
        """Go in slices to the next row with this text, from the top again after the last; return whether there is one.

        It may be given up after any slice, and must be where the rows are replaced.
        """
        needle, slicer = text.casefold(), Slicer()
        start = self.cursor_line + 1
        for at in chain(range(start, len(self.rows)), range(start)):
            row = self.rows[at]
            if row.is_item and needle in "".join(span.text for span in row.line).casefold():
                self._put(at)
                return True
            yield from slicer.pause()
        return False

    def on_click(self, event: events.Click) -> None:
        """Go to the row under the mouse, which a second click opens; sort by the column whose title is there."""
        line = event.y + self.scroll_offset.y
        if not 0 <= line < len(self.rows):
            return
        column = self.rows[line].column_at(event.x)
        if column is not None:
            self._on_title(column)
        elif self.rows[line].item is not None:
            self._put(line)
            if event.chain == 2 or (self.item is not None and self.item.kind is ItemKind.BY_SIZE):
                self._on_open()


class PromptPurpose(StrEnum):
    """The purpose of a text that is typed."""

    FIND = "find"
    GO_TO = "go to"
    WRITE = "export to"


_VERBS: Final = {
    PromptPurpose.FIND: literal(" finds it, n finds the next"),
    PromptPurpose.GO_TO: literal(" goes there"),
    PromptPurpose.WRITE: literal(" saves the file"),
}


def prompt_hint(purpose: PromptPurpose) -> Line:
    return (
        Span(literal(" enter"), Role.ACCENT),
        Span(_VERBS[purpose], Role.MUTED),
        Span(literal("  esc"), Role.ACCENT),
        Span(literal(" goes back"), Role.MUTED),
    )


class ValuePrompt(InputLine):
    """A line below the value; hidden until it is wanted."""

    DEFAULT_CSS = """
    ValuePrompt { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    ValuePrompt:focus { border: none; }
    ValuePrompt.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="value-prompt", compact=True, select_on_focus=False, max_length=4096)
        self.cursor_blink = False
        self.purpose = PromptPurpose.FIND

    def ask(self, purpose: PromptPurpose, hint: str, value: str = "") -> None:
        self.purpose, self.placeholder = purpose, hint
        self.open(value)
