"""The schema in the place of a tree of names: a view of its rows, with the same commands as the tree of names.

`TreeSchema` shows and hides it, in step with reports, names, filters and sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rtui.analysis import humanize as fmt
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.columns import ALL_COLUMNS, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.browse.key_tree import KeyTree, TreeRows
from rtui.tui.browse.row_facts import ShownRows
from rtui.tui.browse.tree_lines import TreeTotals, indent_cells
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.command_screen import Work
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.line_view import set_content_height
from rtui.tui.kit.styled_text import Line, literal

if TYPE_CHECKING:
    from textual.worker import Worker

    from rtui.analysis.report.document import Step
    from rtui.tui.browse.schema import Level, Schema, SchemaRows, SchemaSource

NO_LEVELS: Final[list[Level]] = []


class SchemaView(TreeRows, can_focus=True):
    """Shows the rows of a schema; the cursor stays on its level when another report comes."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BROWSE_COMMANDS, Owner.TREE)

    class Highlighted(Message):
        """The cursor is on another level or on none, or the level has new figures."""

    class Chosen(Message):
        """The user wants to see the keys of the level under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model: SchemaRows | None = None
        """The rows; None before the schema is shown for the first time."""
        self.cursor: Level | None = None
        self.is_touched = False
        """Whether the user has been here, so that rows must keep their places."""
        self.is_outdated = False
        """Whether the names are of an earlier scan."""
        self.columns = ALL_COLUMNS
        self.row_layout: RowLayout = lay_out_row(0)

    @property
    def rows(self) -> list[Level]:
        return NO_LEVELS if self.model is None else self.model.rows

    def show(self, model: SchemaRows, schema: Schema | None, room: int, *, keeps_places: bool) -> None:
        """Show the levels of a report, None for nothing yet; open levels stay open, and the cursor stays where it was.

        The levels of the first report are opened up to `room` rows. With `keeps_places` known levels stay in their
        order.
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
        from rtui.tui.browse.level_lines import lay_out_levels, level_cells  # noqa: PLC0415 - there by now

        longest = max(map(level_cells, model.rows), default=0)
        is_analysed, width = not model.schema.is_of_names, self.scrollable_content_region.width - MARGIN
        self.row_layout = lay_out_levels(width, self.columns, longest, is_analysed=is_analysed, sort=model.sort_order)
        self.refresh()

    def on_resize(self) -> None:
        self._lay_out()
        if self.cursor is not None:
            self.put_cursor(self.cursor_line)

    def line_at(self, number: int) -> Line | None:
        """Return the line of a row, None if there is no such row."""
        model = self.model
        if model is None or model.schema is None or not 0 <= number < len(model.rows):
            return None
        from rtui.tui.browse.level_lines import level_line  # noqa: PLC0415 - there by now

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
        if self.cursor is not None and self.cursor.depth > 0:
            self._go_to(self.cursor.parent)

    def action_first_sibling(self) -> None:
        if self.model is not None and self.cursor is not None:
            self._go_to(self.model.end_sibling(self.cursor, last=False))

    def action_last_sibling(self) -> None:
        if self.model is not None and self.cursor is not None:
            self._go_to(self.model.end_sibling(self.cursor, last=True))

    def action_enter(self) -> None:
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
        """Close the level under the cursor; go to its parent when it is closed."""
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
        """Go to the first sibling of the level under the cursor that begins with the typed text."""
        if self.model is not None and self.cursor is not None and typed:
            self._go_to(self.model.find_sibling(self.cursor, typed.encode()))

    def sort(self, order: Sort, *, is_reversed: bool) -> None:
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


class TreeSchema:
    """Shows the schema of the keys in the tree."""

    def __init__(
        self,
        session: BrowsingSession,
        names: ShownRows,
        tree: KeyTree,
        *,
        run: Callable[[Work], Worker[None]],
        totals: Callable[[], TreeTotals],
        on_change: Callable[[], object],
    ) -> None:
        """`run` starts a worker and cancels the previous one; `on_change` is called when other levels are shown."""
        self.view = SchemaView(id="schema")
        self.is_shown = False
        self._session, self._names, self._tree = session, names, tree
        self._run, self._totals, self._on_change = run, totals, on_change
        self._source: SchemaSource | None = None
        self._wanted: Sequence[Step] | Row | None = None
        """Where the cursor is to be once the levels are known."""

    @property
    def is_reading(self) -> bool:
        return self.is_shown and self._source is not None and self._source.fraction is not None

    @property
    def place(self) -> tuple[bool, bytes] | None:
        """Whether the level under the cursor is one key, and its name or the prefix of its keys; None for neither."""
        level, model = self.view.cursor, self.view.model
        if level is None or model is None or model.schema is None:
            return None
        place = model.schema.prefix(level)
        return place if any(place) else None

    def show(self, wanted: Sequence[Step] | Row | None) -> None:
        """Show the schema, with the cursor on the level of a path, or on that of a row of the tree."""
        from rtui.tui.browse.schema import SchemaRows, SchemaSource  # noqa: PLC0415 - with all that adds up

        rows, view = self._names.rows, self.view
        if self._source is None:
            self._source = SchemaSource(self._run, self.follow, self._say_why_not)
        if view.model is None:
            view.model = SchemaRows(rows.sort_order, is_reversed=rows.is_reversed)
        self.is_shown = True
        view.columns = self._tree.columns
        view.sort(rows.sort_order, is_reversed=rows.is_reversed)
        self._wanted = wanted
        self.follow()
        view.report_cursor()

    def _say_why_not(self, reason: SafeText) -> None:
        self.view.notify(reason, title="No schema", severity="warning", markup=False)

    def hide(self) -> None:
        """Show it no more, and read no names for it."""
        self.is_shown = False
        if self._source is not None:
            self._source.stop()

    def follow(self) -> None:
        """Show the levels of the latest report, or of the names that are held, if the schema is shown."""
        source, view = self._source, self.view
        if not self.is_shown or source is None or view.model is None:
            return
        totals, store = self._totals(), self._names.rows.store
        source.update(store, self._session.status, self._tree.figures, is_complete=totals.complete)
        is_other = source.schema is not view.model.schema
        if is_other:
            is_of_names = source.schema is not None and source.schema.is_of_names
            is_final = is_of_names and self._session.status.progress.state.is_over
            room = self._tree.screen.size.height - 4
            view.show(view.model, source.schema, room, keeps_places=view.is_touched and not is_final)
        if view.is_outdated is not totals.is_outdated:
            view.is_outdated = totals.is_outdated
            view.refresh()
        if self._wanted is not None and source.schema is not None:
            wanted, self._wanted = self._wanted, None
            view.move_to_level(self._level_of(wanted))
        if is_other or source.fraction is not None:
            self._on_change()

    def _level_of(self, wanted: Sequence[Step] | Row) -> Level | None:
        """Open the ancestors of the level of a path, or of a row of the tree of names, and return the level."""
        model = self.view.model
        if model is None:
            return None
        if not isinstance(wanted, Row):
            return model.reveal(wanted)
        return model.reveal_names(wanted.key(), is_key=wanted.kind is RowKind.KEY)

    def title(self, note: SafeText, cells: int) -> SafeText:
        """Return the title over the rows; `note` is the age of an analysis's figures."""
        from rtui.tui.browse.level_lines import schema_title  # noqa: PLC0415 - there by now

        source, schema = self._source, None if self._source is None else self._source.schema
        if source is not None and source.fraction is not None:
            note = SafeText(f"{fmt.share(source.fraction)} of names read")
        elif schema is None or schema.is_of_names:
            note = literal("by names")
        return schema_title(self.view.cursor, self._names.needle, note, cells)
