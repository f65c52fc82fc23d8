"""The widget that shows found keys: column titles over rows of which only those in view are ever made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis.report.document import KeyRecord
from rtui.analysis.report.tables.table import Cell, Column, Table, cell_text
from rtui.keyspace.text.display import SafeText
from rtui.tui.find.commands import FIND_COMMANDS
from rtui.tui.find.found_rows import COLUMNS, SORTS, FoundRows, cell
from rtui.tui.find.marking import Marker, marked_spans
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.layout import TERMINAL, display
from rtui.tui.kit.line_view import LinePanel, RowsView, set_content_height
from rtui.tui.kit.styled_text import Line, cut_middle, gap, line_width, width_of
from rtui.tui.kit.table_rows import MARGIN, NAME_LIMIT, Order, TableLayout, header_line, layout_table, table_line

MEASURED_ROWS: Final = 100
"""The texts of this many rows decide how wide the columns are."""


def cell_texts(cells: Sequence[Cell], columns: Sequence[Column]) -> tuple[SafeText, ...]:
    """Return the cells of a row as this terminal shows them."""
    return tuple(
        display(one, limit=NAME_LIMIT)
        if isinstance(one, bytes) and column.id == "key"
        else cell_text(one, column, TERMINAL)
        for one, column in zip(cells, columns, strict=True)
    )


def whole_name(name: bytes) -> SafeText:
    """Return the text of a name, or of its beginning, as long as a row shows at most."""
    return display(name, limit=NAME_LIMIT)


class FoundBody(RowsView, can_focus=True):
    """The rows."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FIND_COMMANDS, Owner.FOUND)
    DEFAULT_CSS = """
    FoundBody { height: 1fr; }
    """

    class Moved(Message):
        """The cursor has moved."""

    class Clicked(Message):
        """A row was clicked twice."""

    def __init__(self, rows: FoundRows, clock: Callable[[], float] = time.time, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.clock = clock
        self.table_layout = TableLayout()
        self.use(rows)

    def use(self, rows: FoundRows) -> None:
        """Show the rows of another search."""
        self.rows = rows
        self.cursor_line = rows.cursor_line
        self._marker = Marker(rows.search.query)
        self.table = Table("", "", tuple(COLUMNS[name].column for name in rows.columns), ())
        self._widths = [0] * len(rows.columns)
        """Of the widest texts in the first `_measured` rows."""
        self._measured = 0

    @property
    def record(self) -> KeyRecord | None:
        """The key under the cursor."""
        return self.rows.record(self.cursor_line) if 0 <= self.cursor_line < len(self.rows) else None

    def line_at(self, number: int) -> Line | None:
        """Return the row of a key."""
        if not 0 <= number < len(self.rows):
            return None
        record, now_s = self.rows.record(number), self.clock()
        cells = [cell(name, record, now_s) for name in self.rows.columns]
        line = table_line(cells, cell_texts(cells, self.table.columns), self.table, self.table_layout)
        name_at = next((at for at, shown in enumerate(self.table_layout.columns) if shown.index == 0), None)
        if name_at is None:
            return line
        width = self.table_layout.columns[name_at].cells
        shown = cut_middle(whole_name(record.key), width)
        name = marked_spans(record.key, shown, self._marker, whole_name)
        return (gap(MARGIN), *name, gap(width - line_width(name)), *line[2:])

    def fit_columns(self) -> None:
        """Make the columns as wide as the first rows need."""
        now_s, widths = self.clock(), self._widths
        while self._measured < min(len(self.rows), MEASURED_ROWS):
            record = self.rows.record(self._measured)
            cells = [cell(name, record, now_s) for name in self.rows.columns]
            texts = cell_texts(cells, self.table.columns)
            widths = [max(width, width_of(text)) for width, text in zip(widths, texts, strict=True)]
            self._measured += 1
        self._widths = widths
        if not len(self.rows):
            widths = [column.width for column in self.table.columns]
        width, sort = self.scrollable_content_region.width, self.rows.sort
        self.table_layout = layout_table(self.table, width, sort and SORTS[sort].column.id, widths)

    def measure_again(self) -> None:
        """Make columns no narrower than what they were, and wide enough for other first rows."""
        self._measured = 0

    def follow(self) -> None:
        """Show what has been found since."""
        self.rows.follow()
        set_content_height(self, len(self.rows))
        if self.cursor_line >= len(self.rows):
            self.cursor_line = self.rows.cursor_line = max(0, len(self.rows) - 1)
        self.repaint_changes()

    def move_to(self, line: int) -> None:
        """Put the cursor on a line and scroll it into view."""
        line = max(0, min(line, len(self.rows) - 1))
        self.rows.cursor_line = line
        self.put_cursor(line)
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Go to the key under the mouse; a second click opens it."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < len(self.rows):
            self.move_to(line)
            if event.chain == 2:
                self.post_message(self.Clicked())


class FoundView(Vertical):
    """The rows under their titles; sorts them."""

    BLANK = True

    class Sorted(Message):
        """The rows have another order."""

    def __init__(self, rows: FoundRows, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._header = LinePanel(id="found-header")
        self.body = FoundBody(rows, id="found-body")

    def compose(self) -> ComposeResult:
        """Put the titles over the rows."""
        yield self._header
        yield self.body

    @property
    def rows(self) -> FoundRows:
        """The rows that are shown."""
        return self.body.rows

    def show(self, rows: FoundRows) -> None:
        """Show the rows of another search, or of this one with other columns, where they were left."""
        self.body.use(rows)
        self.body.follow()
        self.fit()
        self.body.scroll_top_to(rows.top_line)
        self.body.refresh()

    def fit(self) -> None:
        """Fit columns and titles to the width."""
        self.body.fit_columns()
        rows, table = self.rows, self.body.table
        order = None if rows.sort is None else Order(SORTS[rows.sort].column.id, self._is_upward(rows))
        self._header.show([header_line(table, self.body.table_layout, order)])
        self.body.refresh()

    @staticmethod
    def _is_upward(rows: FoundRows) -> bool:
        """Whether a number that is sorted by grows downwards, or a text the other way."""
        assert rows.sort is not None  # noqa: S101 - only then
        column = SORTS[rows.sort].column
        return column.numeric is not rows.is_descending

    def on_resize(self) -> None:
        """Fit columns and titles to the new width."""
        self.call_after_refresh(self.fit)

    def follow(self) -> None:
        """Show what has been found since; the first rows decide how wide the columns are."""
        before = len(self.rows)
        self.body.follow()
        if before < MEASURED_ROWS and len(self.rows) != before:
            self.fit()

    def sort_by(self, name: str | None, *, is_reversed: bool = False) -> None:
        """Sort by a column; the cursor stays with its key."""
        self.rows.sort, self.rows.is_reversed = name, is_reversed
        self.fit()
        self._begin_sorting()

    def sort_at_end(self) -> None:
        """Sort what was found after the user had sorted, once no more keys come."""
        if not self.rows.is_in_order:
            self._begin_sorting()

    def _begin_sorting(self) -> None:
        self.run_worker(self._sort(self.rows), group="sort", exclusive=True, exit_on_error=False, description="sort")

    async def _sort(self, rows: FoundRows) -> None:
        key = self.body.record.key if self.body.record is not None and self.body.cursor_line else None
        lines, line = await asyncio.to_thread(rows.sorted_lines, key)
        if rows is not self.rows:
            return
        screen_line = self.body.cursor_line - self.body.scroll_offset.y
        rows.arrange(lines)
        self.body.measure_again()
        self.fit()
        if key is not None and 0 <= screen_line < self.body.size.height:
            self.body.scroll_top_to(line - screen_line)
        self.body.move_to(line)
        self.body.refresh()
        self.post_message(self.Sorted())

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose title was clicked, or the other way."""
        index = self.body.table_layout.column_at(event.x) if event.widget is self._header else None
        if index is not None:
            name = self.rows.columns[index]
            self.sort_by(name, is_reversed=self.rows.sort == name and not self.rows.is_reversed)
