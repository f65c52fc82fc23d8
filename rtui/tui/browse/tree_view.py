"""A view of the tree: paints the rows on the screen, however many there are, and keeps their positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from textual.geometry import Region
from textual.message import Message

from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows.rows import Row, RowKind, VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.tui.browse.columns import ALL_COLUMNS, Column, RowLayout, lay_out_row
from rtui.tui.browse.tree_lines import KnownFacts, Totals, name_cells, row_line, sign_cells
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.line_view import set_content_height
from rtui.tui.kit.rows_view import RowsView
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

    def choose_columns(self, columns: frozenset[Column]) -> None:
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
