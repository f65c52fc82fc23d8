"""The schema in the place of a tree of names: its rows, with the same commands as the tree of names.

A report replaces the previous one while an analysis or a scan goes on. Levels of the same path are the same for the
user: open levels stay open, and once the user has been there rows keep their places, with new ones behind them.

There are some thousands of levels at most, so that rows are a plain list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize as fmt
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.key_tree import KeyTree, TreeRows
from rtui.tui.browse.row_facts import ShownRows
from rtui.tui.browse.tree_lines import TreeTotals, indent_cells
from rtui.tui.kit.command_screen import Work
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.line_view import set_content_height
from rtui.tui.kit.styled_text import Line, literal

if TYPE_CHECKING:
    from textual.worker import Worker

    from rtui.analysis.report.document import Step
    from rtui.tui.browse.schema import Level, Schema, SchemaSource

FIRST_ROWS: Final = 18
"""The number of rows up to which levels are open at first: it fits a terminal of 24 lines."""


class SchemaRows:
    """The rows of a schema: which levels are open, their order, and which of both a new report keeps."""

    def __init__(self, sort: Sort, *, is_reversed: bool = False) -> None:
        self.schema: Schema | None = None
        """None before there is a report."""
        self.rows: list[Level] = []
        self.sort_order = sort
        self.is_reversed = is_reversed

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, index: int) -> Level:
        return self.rows[index]

    def show(self, schema: Schema | None, *, keeps_places: bool = False, room: int = FIRST_ROWS) -> None:
        """Show the levels of another report, open as they were; with `keeps_places` in their order, too.

        Levels of the first report are opened as far as their rows fit into `room`.
        """
        before, self.schema = self.schema, schema
        if schema is not None:
            self._list(schema.root)
            if before is not None and before.root.below:
                self._take_over(before.root, schema.root, keeps_places=keeps_places)
            else:
                self._open_first(schema, room)
        self._flatten()

    def _take_over(self, before: Level, now: Level, *, keeps_places: bool) -> None:
        """Open the levels that were open, and put known ones before new ones in the order in which they were."""
        pairs = [(before, now)]
        while pairs:
            old, new = pairs.pop()
            if old.below:
                self._list(new)
                new.is_open = old.is_open
            places = {one.node.step: at for at, one in enumerate(old.below)}
            if keeps_places:
                new.below.sort(key=lambda one: places.get(one.node.step, len(places)))
            pairs += [(old.below[places[one.node.step]], one) for one in new.below if one.node.step in places]

    def _open_first(self, schema: Schema, room: int) -> None:
        """Open the levels with the most keys first, as far as their rows fit into `room`."""
        rows = len(schema.root.below)
        waiting = [(-schema.keys(one).value, one.path, one) for one in schema.root.below]
        heapify(waiting)
        while waiting:
            level = heappop(waiting)[2]
            more = len(level.node.children)
            if more and rows + more <= room:
                rows += more
                self._list(level)
                for one in level.below:
                    heappush(waiting, (-schema.keys(one).value, one.path, one))

    def _list(self, level: Level) -> None:
        schema = self.schema
        if schema is None or not level.node.children:
            return
        level.is_open = True
        if not level.below:
            level.below = schema.sorted(schema.below(level), self.sort_order, is_reversed=self.is_reversed)

    def _flatten(self) -> None:
        self.rows = []
        waiting = [] if self.schema is None else self.schema.root.below[::-1]
        while waiting:
            level = waiting.pop()
            self.rows.append(level)
            if level.is_open:
                waiting += level.below[::-1]

    def open(self, level: Level, *, below: bool = False) -> None:
        """List the levels below a level, of an only child too; with `below` all that is below it."""
        waiting = [level]
        while waiting:
            one = waiting.pop()
            self._list(one)
            waiting += one.below if below or len(one.below) == 1 else []
        self._flatten()

    def close(self, level: Level) -> None:
        """Hide the levels below a level; which of them are open is kept for the next time."""
        level.is_open = False
        self._flatten()

    def sort(self, order: Sort, *, is_reversed: bool = False) -> None:
        self.sort_order, self.is_reversed = order, is_reversed
        waiting = [] if self.schema is None else [self.schema.root]
        while waiting and self.schema is not None:
            level = waiting.pop()
            level.below = self.schema.sorted(level.below, order, is_reversed=is_reversed)
            waiting += level.below
        self._flatten()

    def index_of(self, level: Level) -> int:
        """Return the number of the row of a level, of the innermost visible ancestor if it is hidden, else 0."""
        return next((self.rows.index(one) for one in level.upwards() if one in self.rows), 0)

    def reveal(self, path: Sequence[Step]) -> Level | None:
        """Open the ancestors of a level and return it, or the innermost known level of its path; None if none is."""
        level, found = None if self.schema is None else self.schema.root, None
        for step in path:
            if level is None:
                break
            self._list(level)
            level = next((one for one in level.below if one.node.step == step), None)
            found = level or found
        self._flatten()
        return found

    def parent_row(self, level: Level) -> Level | None:
        return level.parent if level.depth > 0 else None

    def end_sibling(self, level: Level, *, last: bool) -> Level:
        return level if level.parent is None else level.parent.below[-1 if last else 0]

    def find_sibling(self, level: Level, prefix: bytes) -> Level | None:
        """Return the level beside this one, from it on and around, whose name begins so in any case; None without."""
        beside = [] if level.parent is None else level.parent.below
        start = beside.index(level) if level in beside else 0
        lowered = prefix.lower()
        return next((one for one in beside[start:] + beside[:start] if one.node.name.lower().startswith(lowered)), None)


class SchemaView(TreeRows["Level"], can_focus=True):
    """Shows the schema of the keys in the tree, in step with reports, names, filters and sorting."""

    rows: SchemaRows

    def __init__(
        self,
        session: BrowsingSession,
        names: ShownRows,
        tree: KeyTree,
        *,
        run: Callable[[Work], Worker[None]],
        totals: Callable[[], TreeTotals],
        on_change: Callable[[], object],
        sort_step: Callable[[int], object],
    ) -> None:
        """`run` starts a worker and cancels the previous one; `on_change` is called when other levels are shown."""
        super().__init__(SchemaRows(names.rows.sort_order), id="schema", sort_step=sort_step)
        self.is_shown = False
        self._is_outdated = False
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
        if self.cursor is None or self.rows.schema is None:
            return None
        place = self.rows.schema.prefix(self.cursor)
        return place if any(place) else None

    def show(self, wanted: Sequence[Step] | Row | None) -> None:
        """Show the schema, with the cursor on the level of a path, or on that of a row of the tree."""
        from rtui.tui.browse.schema import SchemaSource  # noqa: PLC0415 - with all that adds up

        names = self._names.rows
        if self._source is None:
            refuse = partial(self.notify, title="No schema", severity="warning", markup=False)
            self._source = SchemaSource(self._run, self.follow, refuse)
        self.is_shown = True
        self.columns = self._tree.columns
        self.sort(names.sort_order, is_reversed=names.is_reversed)
        self._wanted = wanted
        self.follow()
        self.report_cursor()

    def hide(self) -> None:
        self.is_shown = False
        if self._source is not None:
            self._source.stop()

    def follow(self) -> None:
        """Show the levels of the latest report, or of the names that are held, if the schema is shown."""
        source = self._source
        if not self.is_shown or source is None:
            return
        totals, store = self._totals(), self._names.rows.store
        source.update(store, self._session.status, self._tree.figures, is_complete=totals.complete)
        is_other = source.schema is not self.rows.schema
        if is_other:
            self._replace(source.schema)
        if self._is_outdated is not totals.is_outdated:
            self._is_outdated = totals.is_outdated
            self.refresh()
        if self._wanted is not None and source.schema is not None:
            wanted, self._wanted = self._wanted, None
            if isinstance(wanted, Row):
                wanted = source.schema.path_of(wanted.key(), is_key=wanted.kind is RowKind.KEY)
            level = self.rows.reveal(wanted)
            self._rearranged()
            if level is not None:
                self._put(self.rows.index_of(level))
        if is_other or source.fraction is not None:
            self._on_change()

    def _replace(self, schema: Schema | None) -> None:
        """Show the levels of another report, None for nothing yet; open levels stay open, and the cursor stays.

        Rows keep their places once the user has been there, but for those of all names after a scan.
        """
        rows, before, line = self.rows, self.cursor, self.cursor_line - self.scroll_offset.y
        is_final = schema is not None and schema.is_of_names and self._session.status.progress.state.is_over
        stays_first = not self.is_touched and not self.cursor_line
        rows.show(schema, keeps_places=self.is_touched and not is_final, room=self._tree.screen.size.height - 4)
        self._show_rows()
        number = 0
        if before is not None and not stays_first:
            path = before.path
            shown = {level.path: at for at, level in enumerate(rows.rows) if level.depth < len(path)}
            number = next((shown[path[:end]] for end in range(len(path), 0, -1) if path[:end] in shown), 0)
        if 0 <= line < self.size.height:
            self.scroll_top_to(number - line)
        self._put(number)

    def title(self, note: SafeText, cells: int) -> SafeText:
        """Return the title over the rows; `note` is the age of an analysis's figures."""
        from rtui.tui.browse.level_lines import schema_title  # noqa: PLC0415 - there by now

        source, schema = self._source, None if self._source is None else self._source.schema
        if source is not None and source.fraction is not None:
            note = SafeText(f"{fmt.share(source.fraction)} of names read")
        elif schema is None or schema.is_of_names:
            note = literal("by names")
        return schema_title(self.cursor, self._names.needle, note, cells)

    def _rearranged(self) -> None:
        self._show_rows()
        if self.cursor is not None:
            self._put(self.rows.index_of(self.cursor))

    def _show_rows(self) -> None:
        if len(self.rows) != self.virtual_size.height:
            set_content_height(self, len(self.rows))
        self._lay_out()

    def _lay_out(self) -> None:
        if (schema := self.rows.schema) is not None:
            from rtui.tui.browse.level_lines import lay_out_levels, level_cells  # noqa: PLC0415 - there by now

            longest, width = max(map(level_cells, self.rows.rows), default=0), self.scrollable_content_region.width
            self.row_layout = lay_out_levels(
                *(width - MARGIN, self.columns, longest),
                is_analysed=not schema.is_of_names,
                sort=self.rows.sort_order,
            )
        self.refresh()

    def line_at(self, number: int) -> Line | None:
        schema, rows = self.rows.schema, self.rows.rows
        if schema is None or not 0 <= number < len(rows):
            return None
        from rtui.tui.browse.level_lines import level_line  # noqa: PLC0415 - there by now

        return level_line(rows[number], schema, self.row_layout, is_outdated=self._is_outdated)

    def move_to(self, line: int) -> None:
        self.is_touched = True
        self._put(line)

    def _put(self, line: int) -> None:
        before, rows = self.cursor, self.rows.rows
        self.cursor = rows[max(0, min(line, len(rows) - 1))] if rows else None
        self.put_cursor(max(0, min(line, len(rows) - 1)))
        if self.cursor is not before:
            self.report_cursor()

    @property
    def _is_open(self) -> bool:
        return self.cursor is not None and self.cursor.is_open

    def _open(self, *, below: bool = False) -> None:
        if self.cursor is not None:
            self.is_touched = True
            self.rows.open(self.cursor, below=below)
            self._rearranged()

    def _close(self) -> None:
        if self.cursor is not None:
            self.is_touched = True
            self.rows.close(self.cursor)
            self._rearranged()

    def _sign_cells(self, row: Level) -> int | None:
        return indent_cells(row.depth, self.row_layout.name_cells) if row.node.children else None

    def jump(self, typed: str) -> None:
        if self.cursor is not None and typed:
            self.move_to_row(self.rows.find_sibling(self.cursor, typed.encode()))

    def sort(self, order: Sort, *, is_reversed: bool) -> None:
        self.rows.sort(order, is_reversed=is_reversed)
        self._rearranged()
