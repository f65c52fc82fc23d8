"""A table of an analysis: a line of titles that sorts, over rows that keep their places while the numbers change."""

from __future__ import annotations

from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical

from rtui.analysis.tables.table import Table
from rtui.tui.ink import width_of
from rtui.tui.lines.table_row import TablePlan, header_line, plan_table
from rtui.tui.table_rows import Look, Order, TableRows
from rtui.tui.widgets.line_panel import LinePanel
from rtui.tui.widgets.table_body import Marked, TableBody

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
        look: Look,
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
        held = self.rows.order if is_same and holds_order and look.is_touched else None
        rows = TableRows(table, look, held)
        self._replan(rows)
        if is_same:
            self.body.take_up(rows, is_marked)
        else:
            self.body.show(rows, is_marked)
        self._say_header()

    def filter(self, needle: str) -> None:
        """Show only the rows with a text in them; all for an empty one."""
        self.rows.look.needle = needle
        self._arrange()

    @on(TableBody.SortRequested)
    def _sort(self, event: TableBody.SortRequested) -> None:
        event.stop()
        table, look = self.rows.table, self.rows.look
        if event.other_way:
            look.is_reversed = not look.is_reversed
        elif event.column is not None:
            self._sort_by(event.column)
        elif table.columns:
            names = [None, *(column.id for column in table.columns)]
            at = names.index(look.sort) if look.sort in names else 0
            look.sort, look.is_reversed = names[(at + 1) % len(names)], False
        self._arrange()

    def _sort_by(self, index: int) -> None:
        """Sort by a column, or the other way when it is the one that orders already."""
        look, order = self.rows.look, self._order()
        name = self.rows.table.columns[index].id
        look.is_reversed = order is not None and order.column == name and not order.upward
        look.sort = name

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
        rows = TableRows(self.rows.table, self.rows.look)
        self._replan(rows)
        self.body.show(rows, self._is_marked)
        self._say_header()

    def _replan(self, rows: TableRows) -> None:
        measured = [rows.texts(line) for line in range(min(len(rows), MEASURED_ROWS))]
        wants = [max(map(width_of, texts)) for texts in zip(*measured, strict=True)]
        width = self.body.scrollable_content_region.width
        self.body.plan = plan_table(rows.table, width, rows.look.sort, wants) if rows.table.columns else TablePlan()

    def _say_header(self) -> None:
        self._header.show([header_line(self.rows.table, self.body.plan, self._order())])

    def _order(self) -> Order | None:
        """Return what orders the rows: what the user chose, else what they came in."""
        look, made = self.rows.look, self._made
        if look.sort is not None:
            return Order(look.sort, look.is_reversed)
        return None if made is None else Order(made.column, made.upward is not look.is_reversed)
