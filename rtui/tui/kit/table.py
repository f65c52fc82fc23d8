"""The widgets that show a table of a report: its rows with a cursor that stays with its row, and column titles."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.worker import Worker

from rtui.analysis.report.tables.table import Subject, Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.choice import SortScreen, sort_commands
from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand, bindings, move_commands
from rtui.tui.kit.command_screen import drive
from rtui.tui.kit.line_view import LinePanel, OpenRows, set_content_height
from rtui.tui.kit.styled_text import Line, flashing, literal, width_of
from rtui.tui.kit.table_rows import (
    MEASURED_ROWS,
    ColumnOrder,
    TableLayout,
    TableRows,
    TableState,
    has_changed,
    header_line,
    layout_table,
    table_line,
)

EMPTY: Final = Table("", "", (), ())
KEPT_LINES: Final = 1000

IsMarked = Callable[[Table, int], bool]


MOVE_COMMANDS: Final = (
    *move_commands(Owner.TABLE),
    ScreenCommand("open", ("enter", "right", "l"), "Open",
        "Zoom into a namespace, go to a key in the tree, or list the keys of the row.",
        Group.TABLE, Owner.TABLE, when=(Condition.ON_ENTRY,), footer=1),
)  # fmt: skip

SORT_COMMANDS: Final = sort_commands(Group.TABLE, Owner.TABLE, footer=7, when=(Condition.HAS_ROWS,))


class TableBody(OpenRows, can_focus=True):
    """The rows; the cursor belongs to the subject of a row, not to a line, and stays with it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings((*MOVE_COMMANDS, *SORT_COMMANDS), Owner.TABLE)
    DEFAULT_CSS = """
    TableBody { height: 1fr; }
    """

    class Highlighted(Message):
        """The cursor has moved, or the row under it has changed."""

    def __init__(self, table: ReportTable) -> None:
        super().__init__(id="table-body")
        self._table = table
        self.rows = TableRows(EMPTY, TableState())
        self.column_layout = TableLayout()
        self.is_marked: IsMarked | None = None
        self.marks_changes = False
        """Whether rows stand out in which something has changed."""
        self._lines: dict[int, Line] = {}
        """Lines of rows that have been shown, as long as rows and columns are the same."""
        self._lines_of = self.rows, self.column_layout

    @property
    def subject(self) -> Subject:
        return self.rows.subject(self.cursor_line) if len(self.rows) else None

    @property
    def texts(self) -> tuple[SafeText, ...]:
        """The texts of the row under the cursor; empty if there is no row."""
        return self.rows.texts(self.cursor_line) if len(self.rows) else ()

    def show(self, rows: TableRows) -> None:
        """Show other rows: the cursor goes to its row of this table, else to the top.

        Before the first rows the user may have moved the cursor already; then it stays on that line.
        """
        early_line = self.cursor_line if self.rows.table is EMPTY else 0
        self.rows = rows
        set_content_height(self, len(rows))
        line = rows.line_of(rows.state.cursor_row)
        if line is None and early_line and len(rows):
            line = min(early_line, len(rows) - 1)
            rows.state.has_moved = True
        self.scroll_top_to((line or 0) - self.size.height // 2)
        self.cursor_line = -1
        self.move_to(line or 0, by_user=False)
        self.refresh()

    def update_rows(self, rows: TableRows) -> None:
        """Show newer rows of the same table; the cursor's row stays on its line of the screen once the user moved."""
        offset = self.cursor_line - self.scroll_offset.y
        is_in_view = 0 <= offset < self.size.height
        self.rows = rows
        set_content_height(self, len(rows))
        line = rows.line_of(rows.state.cursor_row)
        if line is not None and is_in_view and rows.state.has_moved:
            self.scroll_top_to(line - offset)
        if line is None or not (rows.state.has_moved or self.cursor_line > 0):
            line = min(self.cursor_line, len(rows) - 1)
        self.move_to(line, by_user=False)
        self.repaint_changes()

    def move_to(self, line: int, *, by_user: bool = True) -> None:
        """Put the cursor on a line and scroll it into view; before there are rows the line is only remembered."""
        state = self.rows.state
        if not len(self.rows):
            self.cursor_line = max(0, line) if self.rows.table is EMPTY else 0
            self.post_message(self.Highlighted())
            return
        line = max(0, min(line, len(self.rows) - 1))
        state.cursor_row = self.rows.identity(line)
        state.has_moved = state.has_moved or by_user
        self.put_cursor(line)
        self.post_message(self.Highlighted())

    def line_at(self, number: int) -> Line | None:
        rows = self.rows
        if not 0 <= number < len(rows):
            return None
        is_new = self._lines_of[0] is not rows or self._lines_of[1] is not self.column_layout
        if is_new or len(self._lines) > KEPT_LINES:
            self._lines_of = rows, self.column_layout
            self._lines.clear()
        line = self._lines.get(number)
        if line is None:
            is_marked = self.is_marked is not None and self.is_marked(rows.table, rows.index(number))
            cells, texts = rows.cells(number), rows.texts(number)
            line = self._lines[number] = table_line(cells, texts, rows.table, self.column_layout, is_marked=is_marked)
        return flashing(line) if self.marks_changes and has_changed(rows.table, rows.cells(number)) else line

    def on_resize(self) -> None:
        self._table.fit()

    def action_sort(self) -> None:
        self._table.choose_sort()

    def action_sort_step(self, step: int) -> None:
        self._table.sort_step(step)

    def action_sort_reverse(self) -> None:
        self._table.sort_step(0)


AT_ONCE_ROWS: Final = 500
"""Larger tables are sorted, filtered and searched for the cursor's row in slices; rows stay as they were meanwhile."""


class ReportTable(Vertical):
    """A table: column titles over its rows. It is given tables and their states, and sorts and filters itself."""

    BLANK = True

    class Arranged(Message):
        """Rows that were sorted or filtered in slices are shown."""

    class Sorted(Message):
        """The user has sorted the rows another way."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._header = LinePanel(id="table-header")
        self.body = TableBody(self)
        self._key: object = None
        self._state = TableState()
        self._arranging: Worker[None] | None = None
        self._made: ColumnOrder | None = None

    def compose(self) -> ComposeResult:
        yield self._header
        yield self.body

    @property
    def rows(self) -> TableRows:
        return self.body.rows

    def show(
        self,
        key: object,
        table: Table,
        state: TableState,
        is_marked: IsMarked | None = None,
        *,
        made: ColumnOrder | None = None,
        holds_order: bool = False,
    ) -> None:
        """Show a table; the same `key` as before marks the same table with newer figures.

        `made` is the order of its rows as made; `holds_order` keeps rows in their places once the user has moved.
        """
        is_same = key == self._key
        self._key, self.body.is_marked, self._made, self._state = key, is_marked, made, state
        holds = is_same and holds_order and state.has_moved
        if not is_same and _is_long_work(table, state):
            self._show_rows(TableRows(table, TableState()), is_same=False)
        self._arrange(table, state, is_same=is_same, holds=holds)

    def flash(self, *, is_on: bool) -> None:
        if self.body.marks_changes is not is_on:
            self.body.marks_changes = is_on
            self.body.repaint_changes()

    def filter(self, text: str) -> None:
        self._state.filter_text = text
        self._rearrange()

    @property
    def _sorts(self) -> list[str | None]:
        """The orders of rows: None for the order in which the table is made, or a column."""
        return [None, *(column.id for column in self.rows.table.columns)]

    def _sort_by(self, name: str | None, *, is_reversed: bool) -> None:
        self._state.sort, self._state.is_reversed = name, is_reversed
        self._rearrange()
        self.post_message(self.Sorted())

    def sort_step(self, step: int) -> None:
        """Sort by the column `step` places further; reverse the order for 0."""
        state, names = self._state, self._sorts
        at = names.index(state.sort) if state.sort in names else 0
        if step:
            self._sort_by(names[(at + step) % len(names)], is_reversed=False)
        else:
            self._sort_by(state.sort, is_reversed=not state.is_reversed)

    def choose_sort(self) -> None:
        state, names = self._state, self._sorts

        def chosen(choice: int | None) -> None:
            if choice is not None and state is self._state:
                name = names[choice]
                self._sort_by(name, is_reversed=name == state.sort and state.is_reversed)

        titles = [literal("default order"), *(SafeText(column.title) for column in self.rows.table.columns)]
        if len(self.rows):
            self.app.push_screen(SortScreen(titles, names.index(state.sort) if state.sort in names else 0), chosen)

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose title was clicked, or the other way when the rows are in its order already."""
        index = self.body.column_layout.column_at(event.x) if event.widget is self._header else None
        if index is not None:
            order, name = self._order(), self.rows.table.columns[index].id
            self._sort_by(name, is_reversed=order is not None and order.column == name and not order.upward)

    def _rearrange(self) -> None:
        self._arrange(self.rows.table, self._state)

    def _arrange(self, table: Table, state: TableState, *, is_same: bool = False, holds: bool = False) -> None:
        """Show the rows sorted and filtered, at once if that is quick."""
        if self._arranging is not None:
            self._arranging.cancel()
        if _is_long_work(table, state):
            work = TableRows.in_slices(table, state, self.rows, holds=holds)

            async def arrange() -> None:
                self._show_rows(await drive(work), is_same=is_same)
                self.post_message(self.Arranged())

            self._arranging = self.run_worker(arrange, exit_on_error=False, description="sorting and filtering")
        else:
            self._show_rows(TableRows(table, state, self.rows.order if holds else None), is_same=is_same)

    def _show_rows(self, rows: TableRows, *, is_same: bool) -> None:
        self._fit_columns(rows)
        show = self.body.update_rows if is_same else self.body.show
        show(rows)
        self._show_header()

    def fit(self) -> None:
        self._fit_columns(self.rows)
        self._show_header()
        self.body.refresh()

    def _fit_columns(self, rows: TableRows) -> None:
        measured = [rows.texts(line) for line in range(min(len(rows), MEASURED_ROWS))]
        widths = [max(map(width_of, texts)) for texts in zip(*measured, strict=True)]
        width = self.body.scrollable_content_region.width
        self.body.column_layout = layout_table(rows.table, width, self._state.sort, widths)

    def _show_header(self) -> None:
        self._header.show([header_line(self.rows.table, self.body.column_layout, self._order())])

    def _order(self) -> ColumnOrder | None:
        state, made = self._state, self._made
        if state.sort is not None:
            return ColumnOrder(state.sort, state.is_reversed)
        return None if made is None else ColumnOrder(made.column, made.upward is not state.is_reversed)


def _is_long_work(table: Table, state: TableState) -> bool:
    """Whether to put the rows of a table into a state is too much to be done at once."""
    is_plain = not state.filter_text and state.sort is None and state.cursor_row is None
    return len(table.rows) > AT_ONCE_ROWS and not is_plain
