"""The tree: a view that paints the rows on the screen, however many there are, with actions for keyboard and mouse.

It moves its cursor itself, and posts messages for everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message

from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows.rows import Row, RowKind, VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.tui.browse.columns import ALL_COLUMNS, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.browse.tree_lines import KnownFacts, Totals, name_cells, row_line, sign_cells
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.line_view import RowsView, set_content_height
from rtui.tui.kit.styled_text import Line

KEPT_LINES: Final = 512
"""The lines of so many rows of keys are kept for scrolling."""

KEPT_NAME_BYTES: Final = 4096
"""The lines of keys with longer names, in bytes, are made for each painting instead of kept."""


class TreeView(RowsView, can_focus=True):
    """A window on `VisibleRows`; the cursor belongs to a row, not to a line, and stays with it."""

    class Highlighted(Message):
        """The cursor is on another row, or on none."""

        def __init__(self, row: Row | None) -> None:
            super().__init__()
            self.row = row

    class ViewChanged(Message):
        """Other rows are in view, or the same ones in another layout."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: VisibleRows | None = None
        self._totals = Totals(0, complete=False)
        self._facts: KnownFacts = {}
        self._columns = ALL_COLUMNS
        self._row_layout = lay_out_row(0)
        self._longest = 0
        """Cells of the longest name seen in these rows, with its indent: columns are removed for it once, for good."""
        self._cursor: Row | None = None
        self._rows_reported: list[Row] = []
        """The rows in view at the last `ViewChanged`."""
        self._key_lines: dict[Row, tuple[RowFacts | None, RowLayout, Line]] = {}

    @property
    def rows(self) -> VisibleRows | None:
        """The rows that can be scrolled to."""
        return self._rows

    @property
    def cursor(self) -> Row | None:
        """The row under the cursor."""
        return self._cursor

    @property
    def row_layout(self) -> RowLayout:
        """How rows are divided just now."""
        return self._row_layout

    @property
    def rows_in_view(self) -> list[Row]:
        """The rows on screen."""
        if self._rows is None:
            return []
        return self._rows.window(self.scroll_offset.y, self.size.height)

    def show(self, rows: VisibleRows, facts: KnownFacts, cursor: Row | None = None) -> None:
        """Show these rows, with the cursor on one of them or on the first; `facts` is looked into at each repaint."""
        rows.refresh()  # what has come while others were shown: later it would move the cursor
        self._rows, self._facts = rows, facts
        self._longest = 0
        self._cursor, self._cursor_line = None, 0
        self._painted.clear()
        self._recount()
        self._update_row_layout()
        line = self._index(cursor)
        self.scroll_to(y=max(0, (line or 0) - self.size.height // 2), animate=False, force=True, immediate=True)
        self.move_to(0 if line is None else line)
        if self._cursor is None:
            self.post_message(self.Highlighted(None))
        self.refresh()

    def choose_columns(self, columns: frozenset[TreeColumn]) -> None:
        """Show these columns, as far as they fit."""
        self._columns = columns
        self._update_row_layout()

    def set_totals(self, totals: Totals) -> None:
        """Take these figures as the whole that shares are parts of."""
        self._totals = totals

    @contextmanager
    def keeping_position(self) -> Iterator[None]:
        """Change rows within this context: the row of the cursor, or the top one, keeps its position on the screen."""
        anchor, line = self._anchor()
        yield
        if self._rows is not None:
            self._rows.refresh()
            self._restore_position(anchor, line)

    def rearranged(self, *, to_first: bool = False) -> None:
        """After the rows were sorted, go with the cursor's row to its new place, or to the first row."""
        self._recount()
        line = 0 if to_first else self._index(self._cursor)
        self.move_to(self._cursor_line if line is None else line)
        self.repaint_changes()

    def move_to(self, line: int) -> None:
        """Put the cursor on a row by its number and bring it into view."""
        rows = self._rows
        if rows is None or len(rows) == 0:
            if self._cursor is not None:
                self._cursor, self._cursor_line = None, 0
                self.post_message(self.Highlighted(None))
            return
        line = max(0, min(line, len(rows) - 1))
        before, self._cursor_line = self._cursor_line, line
        row = rows.row(line)
        moved = row != self._cursor
        self._cursor = row
        self.refresh_line(before)
        self.refresh_line(line)
        self.scroll_to_region(Region(0, line, 1, 1), animate=False, force=True, x_axis=False, immediate=True)
        if moved:
            self.post_message(self.Highlighted(row))

    def move_to_row(self, row: Row) -> bool:
        """Put the cursor on a row, if it is listed; one that is far away comes to the middle of the view."""
        line = self._index(row)
        if line is None:
            return False
        top, height = self.scroll_offset.y, self.size.height
        if not top - height <= line < top + 2 * height:
            self.scroll_to(y=max(0, line - height // 2), animate=False, force=True, immediate=True)
        self.move_to(line)
        return True

    def is_sign(self, line: int, x: int) -> bool:
        """Say whether column `x` of a row is its sign for open or closed."""
        row = None if self._rows is None else self._rows.row(line)
        return row is not None and row.kind is RowKind.NAMESPACE and sign_cells(row, self._row_layout.name_cells) == x

    def on_resize(self) -> None:
        """Divide the rows for the new width."""
        self._update_row_layout()
        if self._cursor is not None:
            self.scroll_to_region(
                Region(0, self._cursor_line, 1, 1), animate=False, force=True, x_axis=False, immediate=True
            )

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Say that other rows are in view."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._make_room()
            self.post_message(self.ViewChanged())

    @property
    def lines_in_view(self) -> list[Line]:
        """The lines of the rows on the screen."""
        return list(map(self._line_of, self.rows_in_view))

    def line_at(self, number: int) -> Line | None:
        """Return the line of a row, None where there is no such row."""
        rows = self._rows
        return None if rows is None or not 0 <= number < len(rows) else self._line_of(rows.row(number))

    def repaint_changes(self) -> None:
        """Repaint lines that have changed, and post `ViewChanged` when other rows are in view."""
        super().repaint_changes()
        rows = self.rows_in_view
        if rows != self._rows_reported:
            self._rows_reported = rows
            self.post_message(self.ViewChanged())

    def _line_of(self, row: Row) -> Line:
        """Return the line of a row."""
        if row.kind is RowKind.KEY:
            return self._key_line(row)
        is_open = self._rows is not None and self._rows.is_expanded(row.namespace)
        return row_line(row, self._row_layout, self._totals, is_open=is_open, facts=self._facts)

    def _key_line(self, row: Row) -> Line:
        """Return the line of a key, kept until its facts or the columns change."""
        if len(row.name) > KEPT_NAME_BYTES:
            return row_line(row, self._row_layout, self._totals, is_open=False, facts=self._facts)
        facts = self._facts.get(row.key())
        known = self._key_lines.get(row)
        if known is not None and known[0] is facts and known[1] is self._row_layout:
            return known[2]
        if len(self._key_lines) >= KEPT_LINES:
            self._key_lines.clear()
        line = row_line(row, self._row_layout, self._totals, is_open=False, facts=self._facts)
        self._key_lines[row] = facts, self._row_layout, line
        return line

    def _index(self, row: Row | None) -> int | None:
        """Return the number of a row, None when it is not visible."""
        return None if row is None or self._rows is None else self._rows.index_of(row)

    def _anchor(self) -> tuple[Row | None, int]:
        """Return the row that must keep its place and its line in the view: the cursor's, or the top one."""
        rows, top = self._rows, self.scroll_offset.y
        if rows is None or len(rows) == 0:
            return None, 0
        if self._cursor is not None and top <= self._cursor_line < top + self.size.height:
            return self._cursor, self._cursor_line - top
        return rows.row(min(top, len(rows) - 1)), 0

    def _restore_position(self, anchor: Row | None, line: int) -> None:
        """After rows came or went, put the anchor back on its line of the view and the cursor on its row."""
        self._recount()
        number = self._index(anchor)
        top = self.scroll_offset.y
        if number is not None and number - line != top:
            self.scroll_to(y=max(0, number - line), animate=False, force=True, immediate=True)
        found = self._index(self._cursor)
        if found is not None and self._rows is not None:
            self._cursor_line, self._cursor = found, self._rows.row(found)
        else:
            self.move_to(self._cursor_line if self._cursor is None else self._nearest(self._cursor))
        self._make_room()
        self.repaint_changes()

    def _nearest(self, row: Row) -> int:
        """Return the number of the innermost visible namespace that holds a row which is not visible any more."""
        node: Namespace | None = row.namespace
        while node is not None and self._rows is not None:
            line = self._rows.index_of(self._rows.row_of(node))
            if line is not None:
                return line
            node = node.parent
        return self._cursor_line

    def _recount(self) -> None:
        """Set how many rows can be scrolled over."""
        count = 0 if self._rows is None else len(self._rows)
        if count != self.virtual_size.height:
            set_content_height(self, count)
            self.post_message(self.ViewChanged())

    def _make_room(self) -> None:
        """Make room for a name in view that is longer than all before it."""
        longest = max(map(name_cells, self.rows_in_view), default=0)
        if longest > self._longest:
            self._longest = longest
            if longest > self._row_layout.name_cells:
                self._update_row_layout()

    def _update_row_layout(self) -> None:
        """Lay the rows out again."""
        self._row_layout = lay_out_row(self.scrollable_content_region.width - MARGIN, self._columns, self._longest)
        self.refresh()
        self.post_message(self.ViewChanged())


class KeyTree(TreeView):
    """A tree with actions for the keyboard and the mouse."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BROWSE_COMMANDS, Owner.TREE)

    class Chosen(Message):
        """The user wants to go into the details of a row."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class OpenRequested(Message):
        """A namespace is to be opened, or with `below` everything under it."""

        def __init__(self, node: Namespace, *, below: bool = False) -> None:
            super().__init__()
            self.node = node
            self.below = below

    class SortRequested(Message):
        """The rows are to be sorted: the other way, or as they were meant to be with `again`."""

        def __init__(self, *, again: bool = False) -> None:
            super().__init__()
            self.again = again

    class Jumping(Message):
        """The beginning of a name that the user is typing, None when that has ended."""

        def __init__(self, typed: str | None) -> None:
            super().__init__()
            self.typed = typed

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._typed: str | None = None

    def action_cursor_up(self) -> None:
        """Move to the row above."""
        self.move_to(self.cursor_line - 1)

    def action_cursor_down(self) -> None:
        """Move to the row below."""
        self.move_to(self.cursor_line + 1)

    def action_page_up(self) -> None:
        """Move up by a screenful."""
        self.move_to(self.cursor_line - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Move down by a screenful."""
        self.move_to(self.cursor_line + max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Move to the first row."""
        self.move_to(0)

    def action_last(self) -> None:
        """Move to the last row."""
        self.move_to(self.virtual_size.height - 1)

    def action_parent(self) -> None:
        """Move to the namespace that holds this row."""
        if self.rows is not None and self.cursor is not None:
            parent = self.rows.parent_row(self.cursor)
            if parent is not None:
                self.move_to_row(parent)

    def action_first_sibling(self) -> None:
        """Move to the first row of this namespace."""
        if self.rows is not None and self.cursor is not None:
            self.move_to_row(self.rows.end_sibling(self.cursor, last=False))

    def action_last_sibling(self) -> None:
        """Move to the last row of this namespace."""
        if self.rows is not None and self.cursor is not None:
            self.move_to_row(self.rows.end_sibling(self.cursor, last=True))

    def action_enter(self) -> None:
        """Open or close a namespace, or go into the details of a key."""
        if self.cursor is not None:
            if self.cursor.kind is RowKind.KEY:
                self.post_message(self.Chosen(self.cursor))
            else:
                self.action_open_close()

    def action_open_close(self) -> None:
        """Open or close the namespace under the cursor."""
        node = self._node_at_cursor()
        if node is not None and self._is_open(node):
            self.close(node)
        elif node is not None:
            self.post_message(self.OpenRequested(node))

    def action_expand(self) -> None:
        """Open the namespace under the cursor; go to its first row when it is open."""
        node = self._node_at_cursor()
        if node is not None and self._is_open(node):
            self.action_cursor_down()
        elif node is not None:
            self.post_message(self.OpenRequested(node))

    def action_collapse(self) -> None:
        """Close the namespace under the cursor; go to its parent when it is closed."""
        node = self._node_at_cursor()
        if node is not None and self._is_open(node):
            self.close(node)
        else:
            self.action_parent()

    def close(self, node: Namespace) -> None:
        """Hide the children of a namespace."""
        if self.rows is not None:
            with self.keeping_position():
                self.rows.collapse(node)

    def action_expand_all(self) -> None:
        """Open everything below the namespace under the cursor."""
        node = self._node_at_cursor()
        if node is not None:
            self.post_message(self.OpenRequested(node, below=True))

    def action_sort(self) -> None:
        """Sort the other way."""
        self.post_message(self.SortRequested())

    def action_sort_again(self) -> None:
        """Sort the same way again."""
        self.post_message(self.SortRequested(again=True))

    def action_jump(self) -> None:
        """Take the next characters as the beginning of a name."""
        self._type("")

    async def on_key(self, event: events.Key) -> None:
        """While a name is being typed, take its characters; any other key ends that and does what it always does."""
        if self._typed is None:
            await self._act_at_once(event)
            return
        if event.key == "backspace":
            self._type(self._typed[:-1])
        elif event.is_printable and event.character is not None:
            self._type(self._typed + event.character)
        else:
            self.end_jump()
            if event.key not in {"escape", "enter"}:
                return
        event.stop()
        event.prevent_default()

    async def _act_at_once(self, event: events.Key) -> None:
        """Run the action of a key of the tree at once.

        Otherwise the key would bubble to the application first, one iteration of the event loop for each ancestor, and
        while a scan runs each iteration takes a while.
        """
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            await self.run_action(binding.action)
            event.stop()
            event.prevent_default()

    def end_jump(self) -> None:
        """Stop taking characters as the beginning of a name."""
        if self._typed is not None:
            self._typed = None
            self.post_message(self.Jumping(None))

    def on_blur(self) -> None:
        """Without the keyboard nothing is typed here."""
        self.end_jump()

    def on_click(self, event: events.Click) -> None:
        """Go to the row under the mouse; its sign or a second click opens it."""
        line = event.y + self.scroll_offset.y
        if not 0 <= line < self.virtual_size.height:
            return
        self.move_to(line)
        if event.chain == 2 or self.is_sign(line, event.x):
            self.action_enter()

    def _type(self, typed: str) -> None:
        """Take up what was typed so far."""
        self._typed = typed
        self.post_message(self.Jumping(typed))

    def _node_at_cursor(self) -> Namespace | None:
        """Return the namespace under the cursor, None when a key is."""
        row = self.cursor
        return row.namespace if row is not None and row.kind is RowKind.NAMESPACE else None

    def _is_open(self, node: Namespace) -> bool:
        """Say whether the children of a namespace are listed."""
        return self.rows is not None and self.rows.is_expanded(node)
