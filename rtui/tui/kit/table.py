"""The rows of a table of an analysis: the cursor stays with its row while the numbers change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Region
from textual.message import Message

from rtui.analysis.report.tables.table import Subject, Table
from rtui.tui.kit.command import Command, Condition, Group, Owner, bindings
from rtui.tui.kit.line_view import LinePanel, set_content_height
from rtui.tui.kit.rows_view import RowsView
from rtui.tui.kit.styled_text import Line, width_of
from rtui.tui.kit.table_lines import TableLayout, header_line, layout_table, table_line
from rtui.tui.kit.table_rows import Order, TableRows, TableState

EMPTY: Final = Table("", "", (), ())
"""Shown before there is anything."""

Marked = Callable[[Table, int], bool]
"""Whether a row of a table, by its place in it, stands out."""


_command = partial(Command, group=Group.TABLE, owner=Owner.TABLE)

MOVE_COMMANDS: Final = (
    _command("row_up", ("up", "k"), "Row above", "Move to the row above."),
    _command("row_down", ("down", "j"), "Row below", "Move to the row below."),
    _command("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful."),
    _command("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful."),
    _command("first", ("home", "g"), "First row", "Move to the first row."),
    _command("last", ("end", "G"), "Last row", "Move to the last row."),
    _command(
        "open", ("enter", "right", "l"), "Open", "Zoom into a namespace, or go to a key in the tree.",
        when=(Condition.ON_ENTRY,), footer=1,
    ),
)  # fmt: skip

SORT_COMMANDS: Final = (
    _command("sort", ("s",), "Sort", "Sort by the next column.", when=(Condition.HAS_ROWS,), footer=7),
    _command(
        "sort_reverse", ("S",), "Sort reverse", "Sort the other way; during a pass, put what has moved into its place."
    ),
)


class TableBody(RowsView, can_focus=True):
    """The rows; the cursor belongs to what a row is about, not to a line, and stays with it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings((*MOVE_COMMANDS, *SORT_COMMANDS), Owner.TABLE)
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
        self.rows = TableRows(EMPTY, TableState())
        self.plan = TableLayout()
        self._is_marked: Marked | None = None

    @property
    def subject(self) -> Subject:
        """What the row under the cursor is about."""
        return self.rows.subject(self._cursor_line) if len(self.rows) else None

    def show(self, rows: TableRows, is_marked: Marked | None) -> None:
        """Show these rows from the top, or with the cursor's row in view."""
        wanted = self._cursor_line if self.rows.table is EMPTY else 0
        self._take(rows, is_marked)
        line = rows.line_of(rows.state.cursor_row)
        if line is None and wanted and len(rows):
            line = min(wanted, len(rows) - 1)
            rows.state.has_moved = True
        self.scroll_to(y=max(0, (line or 0) - self.size.height // 2), animate=False, force=True, immediate=True)
        self._cursor_line = -1
        self.move_to(0 if line is None else line, by_hand=False)
        self.refresh()

    def take_up(self, rows: TableRows, is_marked: Marked | None) -> None:
        """Show the same table with other numbers; the row under the cursor keeps its line on the screen."""
        offset = self._cursor_line - self.scroll_offset.y
        is_in_view = 0 <= offset < self.size.height
        self._take(rows, is_marked)
        line = rows.line_of(rows.state.cursor_row)
        if line is not None and is_in_view and rows.state.has_moved:
            self.scroll_to(y=max(0, line - offset), animate=False, force=True, immediate=True)
        keeps = rows.state.has_moved or self._cursor_line > 0
        self.move_to(line if line is not None and keeps else min(self._cursor_line, len(rows) - 1), by_hand=False)
        self.repaint_changes()

    def _take(self, rows: TableRows, is_marked: Marked | None) -> None:
        self.rows, self._is_marked = rows, is_marked
        set_content_height(self, len(rows))

    def move_to(self, line: int, *, by_hand: bool = True) -> None:
        """Put the cursor on a line and bring it into view; `by_hand` says that the user did it.

        Before there are any rows the line is remembered: the first ones are shown with the cursor there.
        """
        state = self.rows.state
        if not len(self.rows):
            self._cursor_line = max(0, line) if self.rows.table is EMPTY else 0
            self.post_message(self.Highlighted())
            return
        line = max(0, min(line, len(self.rows) - 1))
        before, self._cursor_line = self._cursor_line, line
        state.cursor_row = self.rows.identity(line)
        state.has_moved = state.has_moved or by_hand
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


MEASURED_ROWS: Final = 200
"""So many rows say how wide the columns have to be."""


class ReportTable(Vertical):
    """Titles over rows. Which rows there are, and how they are looked at, is given; the rest is its own work."""

    BLANK = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._header = LinePanel(id="table-header")
        self.body = TableBody(id="table-body")
        self._key: object = None
        self._is_marked: Marked | None = None
        self._made: Order | None = None

    def compose(self) -> ComposeResult:
        """Put the titles over the rows."""
        yield self._header
        yield self.body

    @property
    def rows(self) -> TableRows:
        """The rows as they are shown."""
        return self.body.rows

    def show(
        self,
        key: object,
        table: Table,
        state: TableState,
        is_marked: Marked | None = None,
        *,
        made: Order | None = None,
        holds_order: bool = False,
    ) -> None:
        """Show a table; with the same `key` as before it is the same one with other numbers.

        `made` is the order in which it comes; `holds_order` leaves rows in their places that the user has moved among.
        """
        is_same = key == self._key
        self._key, self._is_marked, self._made = key, is_marked, made
        held = self.rows.order if is_same and holds_order and state.has_moved else None
        rows = TableRows(table, state, held)
        self._replan(rows)
        if is_same:
            self.body.take_up(rows, is_marked)
        else:
            self.body.show(rows, is_marked)
        self._say_header()

    def filter(self, text: str) -> None:
        """Show only the rows with a text in them; all for an empty one."""
        self.rows.state.filter_text = text
        self._arrange()

    @on(TableBody.SortRequested)
    def _sort(self, event: TableBody.SortRequested) -> None:
        event.stop()
        table, state = self.rows.table, self.rows.state
        if event.other_way:
            state.is_reversed = not state.is_reversed
        elif event.column is not None:
            self._sort_by(event.column)
        elif table.columns:
            names = [None, *(column.id for column in table.columns)]
            at = names.index(state.sort) if state.sort in names else 0
            state.sort, state.is_reversed = names[(at + 1) % len(names)], False
        self._arrange()

    def _sort_by(self, index: int) -> None:
        """Sort by a column, or the other way when it is the one that orders already."""
        state, order = self.rows.state, self._order()
        name = self.rows.table.columns[index].id
        state.is_reversed = order is not None and order.column == name and not order.upward
        state.sort = name

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose title was clicked."""
        if event.widget is self._header:
            column = self.body.plan.column_at(event.x)
            if column is not None:
                self.body.post_message(TableBody.SortRequested(column))

    @on(TableBody.Resized)
    def _resized(self, event: TableBody.Resized) -> None:
        event.stop()
        self._replan(self.rows)
        self._say_header()
        self.body.refresh()

    def _arrange(self) -> None:
        """Show the rows in another order, or others of them; the cursor stays with its row and comes into view."""
        rows = TableRows(self.rows.table, self.rows.state)
        self._replan(rows)
        self.body.show(rows, self._is_marked)
        self._say_header()

    def _replan(self, rows: TableRows) -> None:
        measured = [rows.texts(line) for line in range(min(len(rows), MEASURED_ROWS))]
        wants = [max(map(width_of, texts)) for texts in zip(*measured, strict=True)]
        width = self.body.scrollable_content_region.width
        self.body.plan = (
            layout_table(rows.table, width, rows.state.sort, wants) if rows.table.columns else TableLayout()
        )

    def _say_header(self) -> None:
        self._header.show([header_line(self.rows.table, self.body.plan, self._order())])

    def _order(self) -> Order | None:
        """Return what orders the rows: what the user chose, else what they came in."""
        state, made = self.rows.state, self._made
        if state.sort is not None:
            return Order(state.sort, state.is_reversed)
        return None if made is None else Order(made.column, made.upward is not state.is_reversed)
