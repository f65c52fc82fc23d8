"""The rows of a table of an analysis: the cursor stays with its row while the numbers change."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message

from rtui.analysis.tables.table import Subject, Table
from rtui.tui.commands import Scope, bindings
from rtui.tui.ink import Line
from rtui.tui.lines.table_row import TablePlan, table_line
from rtui.tui.table_rows import Look, TableRows
from rtui.tui.widgets.content_size import set_content_height
from rtui.tui.widgets.rows_view import RowsView

EMPTY: Final = Table("", "", (), ())
"""Shown before there is anything."""

Marked = Callable[[Table, int], bool]
"""Whether a row of a table, by its place in it, stands out."""


class TableBody(RowsView, can_focus=True):
    """The rows; the cursor belongs to what a row is about, not to a line, and stays with it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.TABLE)]
    DEFAULT_CSS = """
    TableBody { height: 1fr; }
    """

    class Highlighted(Message):
        """The cursor is on another row, or on none."""

    class Opened(Message):
        """The user wants to go into the row under the cursor."""

    class SortRequested(Message):
        """The rows are to be sorted: by a column, by the next one where none is named, or the other way."""

        def __init__(self, column: int | None = None, *, other_way: bool = False) -> None:
            super().__init__()
            self.column = column
            self.other_way = other_way

    class Resized(Message):
        """There is more or less room for columns."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows = TableRows(EMPTY, Look())
        self.plan = TablePlan()
        self._is_marked: Marked | None = None

    @property
    def subject(self) -> Subject:
        """What the row under the cursor is about."""
        return self.rows.subject(self._cursor_line) if len(self.rows) else None

    def show(self, rows: TableRows, is_marked: Marked | None) -> None:
        """Show these rows from the top, or with the row of the look under the cursor in view."""
        wanted = self._cursor_line if self.rows.table is EMPTY else 0
        self._take(rows, is_marked)
        line = rows.line_of(rows.look.identity)
        if line is None and wanted and len(rows):
            line = min(wanted, len(rows) - 1)
            rows.look.is_touched = True
        self.scroll_to(y=max(0, (line or 0) - self.size.height // 2), animate=False, force=True, immediate=True)
        self._cursor_line = -1
        self.move_to(0 if line is None else line, by_hand=False)
        self.refresh()

    def take_up(self, rows: TableRows, is_marked: Marked | None) -> None:
        """Show the same table with other numbers; the row under the cursor keeps its line on the screen."""
        offset = self._cursor_line - self.scroll_offset.y
        is_in_view = 0 <= offset < self.size.height
        self._take(rows, is_marked)
        line = rows.line_of(rows.look.identity)
        if line is not None and is_in_view and rows.look.is_touched:
            self.scroll_to(y=max(0, line - offset), animate=False, force=True, immediate=True)
        keeps = rows.look.is_touched or self._cursor_line > 0
        self.move_to(line if line is not None and keeps else min(self._cursor_line, len(rows) - 1), by_hand=False)
        self.repaint_changes()

    def _take(self, rows: TableRows, is_marked: Marked | None) -> None:
        self.rows, self._is_marked = rows, is_marked
        set_content_height(self, len(rows))

    def move_to(self, line: int, *, by_hand: bool = True) -> None:
        """Put the cursor on a line and bring it into view; `by_hand` says that the user did it.

        Before there are any rows the line is remembered: the first ones are shown with the cursor there.
        """
        look = self.rows.look
        if not len(self.rows):
            self._cursor_line = max(0, line) if self.rows.table is EMPTY else 0
            self.post_message(self.Highlighted())
            return
        line = max(0, min(line, len(self.rows) - 1))
        before, self._cursor_line = self._cursor_line, line
        look.identity = self.rows.identity(line)
        look.is_touched = look.is_touched or by_hand
        self.refresh_line(before)
        self.refresh_line(line)
        self.scroll_to_region(Region(0, line, 1, 1), animate=False, force=True, x_axis=False, immediate=True)
        self.post_message(self.Highlighted())

    @property
    def lines_in_view(self) -> list[Line]:
        """What the rows on the screen say."""
        top = self.scroll_offset.y
        return [self._line(number) for number in range(top, min(top + self.size.height, len(self.rows)))]

    def line_at(self, number: int) -> Line | None:
        """Return what a row says, None where there is no such row."""
        return self._line(number) if 0 <= number < len(self.rows) else None

    def _line(self, number: int) -> Line:
        rows = self.rows
        is_marked = self._is_marked is not None and self._is_marked(rows.table, rows.place(number))
        return table_line(rows.cells(number), rows.texts(number), rows.table, self.plan, is_marked=is_marked)

    def on_resize(self) -> None:
        """Divide the rows for the new width."""
        self.post_message(self.Resized())

    def action_row_up(self) -> None:
        """Move to the row above."""
        self.move_to(self._cursor_line - 1)

    def action_row_down(self) -> None:
        """Move to the row below."""
        self.move_to(self._cursor_line + 1)

    def action_page_up(self) -> None:
        """Move up by a screenful."""
        self.move_to(self._cursor_line - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Move down by a screenful."""
        self.move_to(self._cursor_line + max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Move to the first row."""
        self.move_to(0)

    def action_last(self) -> None:
        """Move to the last row."""
        self.move_to(len(self.rows) - 1)

    def action_open(self) -> None:
        """Go into the row under the cursor."""
        self.post_message(self.Opened())

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.post_message(self.SortRequested())

    def action_sort_reverse(self) -> None:
        """Sort the other way."""
        self.post_message(self.SortRequested(other_way=True))

    def on_click(self, event: events.Click) -> None:
        """Go to the row under the mouse; a second click opens it."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < len(self.rows):
            self.move_to(line)
            if event.chain == 2:
                self.action_open()
