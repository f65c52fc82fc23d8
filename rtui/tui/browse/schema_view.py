"""The schema on the screen: a view of its rows, with the same commands as the tree of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rtui.keyspace.rows.ordering import Sort
from rtui.tui.browse.columns import ALL_COLUMNS, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.browse.tree_lines import indent_cells
from rtui.tui.browse.tree_rows import TreeRows
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.line_view import set_content_height
from rtui.tui.kit.styled_text import Line

if TYPE_CHECKING:  # they are imported with all that adds up
    from rtui.analysis.report.document import Step
    from rtui.tui.browse.schema import Level, Schema, SchemaRows

NO_LEVELS: Final[list[Level]] = []


class SchemaView(TreeRows, can_focus=True):
    """Shows the rows of a schema; the cursor stays on its level when another report comes."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BROWSE_COMMANDS, Owner.TREE)

    class Highlighted(Message):
        """The cursor is on another level, more is known of it, or there is none."""

    class Chosen(Message):
        """The user wants to see the keys of the level under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model: SchemaRows | None = None
        """The rows; None before the schema is shown for the first time."""
        self.cursor: Level | None = None
        """The level under the cursor."""
        self.is_touched = False
        """Whether the user has been here, so that rows must keep their places."""
        self.is_outdated = False
        """Whether the names are those of before."""
        self.columns = ALL_COLUMNS
        self.row_layout: RowLayout = lay_out_row(0)
        """How rows are divided just now."""

    @property
    def rows(self) -> list[Level]:
        """The visible levels."""
        return NO_LEVELS if self.model is None else self.model.rows

    def show(self, model: SchemaRows, schema: Schema | None, room: int, *, keeps_places: bool) -> None:
        """Show the levels of a report, None for nothing yet; what was open stays open, and the cursor where it was.

        Of the first report so many rows are shown at most. With `keeps_places` known levels stay in their order.
        """
        self.model = model
        before, line = self.cursor, self.cursor_line - self.scroll_offset.y
        stays_first = not self.is_touched and not self.cursor_line
        model.show(schema, keeps_places=keeps_places, room=room)
        self._show_rows()
        found = None if before is None or stays_first else self._innermost(before.path)
        number = 0 if found is None else model.index_of(found)
        if 0 <= line < self.size.height:
            self.scroll_top_to(number - line)
        self._put(number)

    def _innermost(self, path: tuple[Step, ...]) -> Level | None:
        """Return the visible level of a path, or the innermost one on it."""
        shown = {level.path: level for level in self.rows if level.depth < len(path)}
        found = (shown.get(path[:end]) for end in range(len(path), 0, -1))
        return next((level for level in found if level is not None), None)

    def choose_columns(self, columns: frozenset[TreeColumn]) -> None:
        """Show these columns, as far as they fit."""
        self.columns = columns
        self._lay_out()

    def rearranged(self) -> None:
        """After levels were sorted, opened or closed, show them; the cursor stays on its level."""
        self._show_rows()
        if self.model is not None and self.cursor is not None:
            self._put(self.model.index_of(self.cursor))

    def _show_rows(self) -> None:
        if len(self.rows) != self.virtual_size.height:
            set_content_height(self, len(self.rows))
        self._lay_out()

    def _lay_out(self) -> None:
        model = self.model
        if model is None or model.schema is None:
            self.refresh()
            return
        from rtui.tui.browse.schema_lines import lay_out_levels, level_cells  # noqa: PLC0415 - there by now

        longest = max(map(level_cells, model.rows), default=0)
        is_analysed, width = not model.schema.is_of_names, self.scrollable_content_region.width - MARGIN
        self.row_layout = lay_out_levels(width, self.columns, longest, is_analysed=is_analysed, sort=model.sort_order)
        self.refresh()

    def on_resize(self) -> None:
        """Divide the rows for the new width."""
        self._lay_out()
        if self.cursor is not None:
            self.put_cursor(self.cursor_line)

    def line_at(self, number: int) -> Line | None:
        """Return the line of a row, None where there is no such row."""
        model = self.model
        if model is None or model.schema is None or not 0 <= number < len(model.rows):
            return None
        from rtui.tui.browse.schema_lines import level_line  # noqa: PLC0415 - there by now

        return level_line(model.rows[number], model.schema, self.row_layout, is_outdated=self.is_outdated)

    # the cursor

    def move_to(self, line: int) -> None:
        """Put the cursor on a row by its number, or on the first or last one, and bring it into view."""
        self.is_touched = True
        self._put(line)

    def move_to_level(self, level: Level | None) -> None:
        """Put the cursor on a level, or on the innermost visible one that it is in."""
        if level is not None and self.model is not None:
            self.rearranged()
            self._put(self.model.index_of(level))

    def _go_to(self, level: Level | None) -> None:
        """Go to a level because the user wants to."""
        self.is_touched = True
        self.move_to_level(level)

    def _put(self, line: int) -> None:
        before, rows = self.cursor, self.rows
        self.cursor = rows[max(0, min(line, len(rows) - 1))] if rows else None
        self.put_cursor(max(0, min(line, len(rows) - 1)))
        if self.cursor is not before:
            self.report_cursor()

    def report_cursor(self) -> None:
        """Post `Highlighted` in the context of this widget: one that a parent's handler sends ends at the parent."""
        self.call_later(lambda: self.post_message(self.Highlighted()))

    # commands

    def action_parent(self) -> None:
        """Move to the level that holds this one."""
        if self.cursor is not None and self.cursor.depth > 0:
            self._go_to(self.cursor.parent)

    def action_first_sibling(self) -> None:
        """Move to the first level beside this one."""
        if self.model is not None and self.cursor is not None:
            self._go_to(self.model.end_sibling(self.cursor, last=False))

    def action_last_sibling(self) -> None:
        """Move to the last level beside this one."""
        if self.model is not None and self.cursor is not None:
            self._go_to(self.model.end_sibling(self.cursor, last=True))

    def action_enter(self) -> None:
        """List the keys of the level."""
        if self.cursor is not None:
            self.post_message(self.Chosen())

    def action_open_close(self) -> None:
        """Open or close the level under the cursor."""
        if self.cursor is not None and self.cursor.is_open:
            self._close(self.cursor)
        else:
            self._open()

    def action_expand(self) -> None:
        """Open the level under the cursor; go to the first one below when it is open."""
        if self.cursor is not None and self.cursor.is_open:
            self.action_cursor_down()
        else:
            self._open()

    def action_collapse(self) -> None:
        """Close the level under the cursor; go to the one that holds it when it is closed."""
        if self.cursor is not None and self.cursor.is_open:
            self._close(self.cursor)
        else:
            self.action_parent()

    def action_expand_all(self) -> None:
        """Open everything below the level under the cursor."""
        if self.model is not None and self.cursor is not None:
            self.is_touched = True
            self.model.open_all(self.cursor)
            self.rearranged()

    def _open(self) -> None:
        if self.model is not None and self.cursor is not None:
            self.is_touched = True
            self.model.open(self.cursor)
            self.rearranged()

    def _close(self, level: Level) -> None:
        if self.model is not None:
            self.is_touched = True
            self.model.close(level)
            self.rearranged()

    def jump(self, typed: str) -> None:
        """Go to the first level beside the cursor's that begins with what was typed."""
        if self.model is not None and self.cursor is not None and typed:
            self._go_to(self.model.find_sibling(self.cursor, typed.encode()))

    def sort(self, order: Sort, *, is_reversed: bool) -> None:
        """Sort the levels, each among those beside it."""
        if self.model is not None:
            self.model.sort(order, is_reversed=is_reversed)
            self.rearranged()

    def on_click(self, event: events.Click) -> None:
        """Go to the row under the mouse; its sign opens or closes it, a second click lists its keys."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < len(self.rows):
            self.move_to(line)
            level = self.rows[line]
            if level.node.children and event.x == indent_cells(level.depth, self.row_layout.name_cells):
                self.action_open_close()
            elif event.chain == 2:
                self.action_enter()
