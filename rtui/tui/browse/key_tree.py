"""The tree: a view that paints the rows on the screen, however many there are, with actions for keyboard and mouse.

It moves its cursor itself, and posts messages for everything else. `TreeRows` is the base of the tree of names and of
the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import Row, RowKind, VisibleRows
from rtui.keyspace.slices import Slices
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import ALL_COLUMNS, NOTHING_MORE, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.browse.row_facts import RowFactsCache, RowWeights
from rtui.tui.browse.tree_lines import TreeTotals, indent_cells, name_cells, row_line
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.line_view import RowsView, set_content_height
from rtui.tui.kit.styled_text import Line, flashing

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.tui.browse.tree_figures import TreeFigures

KEPT_LINES: Final = 512
KEPT_LINE_BYTES: Final = 4096
"""The lines of keys with longer names, in bytes, are made for each painting instead of kept."""


NOWHERE: Final = -1
"""The line of the cursor while its row is not listed."""

MOST_MARKED: Final = 100


RowT = TypeVar("RowT")


class TreeModel(Protocol[RowT]):
    """The visible rows of a tree by number."""

    def __len__(self) -> int: ...
    def row(self, index: int, /) -> RowT: ...
    def index_of(self, row: RowT, /) -> int | None: ...
    def parent_row(self, row: RowT, /) -> RowT | None: ...
    def end_sibling(self, row: RowT, /, *, last: bool) -> RowT: ...


class TreeRows(RowsView, Generic[RowT]):
    """Rows that open and close; the cursor belongs to a row, not to a line, and stays with it.

    It takes keys before these bubble, and the characters of a name while one is typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BROWSE_COMMANDS, Owner.TREE)

    @dataclass
    class Jumping(Message):
        """The beginning of a name that the user is typing, None when that has ended."""

        typed: str | None

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row or on none, or the row has new figures."""

        row: Any

    class Chosen(Message):
        """The user wants to go into the row under the cursor."""

    def __init__(self, rows: TreeModel[RowT], *, id: str, sort_step: Callable[[int], object]) -> None:
        """`sort_step` sorts by the order so many places further in the list; it reverses the rows for 0."""
        super().__init__(id=id)
        self.rows, self._sort_step = rows, sort_step
        self.cursor: RowT | None = None
        self.is_touched = False
        """Whether the user has moved or opened anything since this was reset, so that rows must keep their places.

        Set as it happens, not in the handler of a message, before which the end of a scan may sort the rows.
        """
        self.columns = ALL_COLUMNS
        self.row_layout: RowLayout = lay_out_row(0)

    _typed: str | None = None

    def action_jump(self) -> None:
        self._type("")

    def _type(self, typed: str | None) -> None:
        """Look for a name that begins so; None ends typing."""
        self._typed = typed
        self.post_message(self.Jumping(typed))

    async def on_key(self, event: events.Key) -> None:
        """Run the action of a key; while a name is being typed, take its characters until another key ends that.

        The action is run at once. Otherwise the key would bubble to the application first, one iteration of the event
        loop for each ancestor, and while a scan runs each iteration takes a while.
        """
        if self._typed is None:
            for binding in self._bindings.key_to_bindings.get(event.key, ()):
                await self.run_action(binding.action)
                event.stop()
                event.prevent_default()
            return
        if event.key == "backspace":
            self._type(self._typed[:-1])
        elif event.is_printable and event.character is not None:
            self._type(self._typed + event.character)
        else:
            self._type(None)
            if event.key not in {"escape", "enter"}:
                return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        if self._typed is not None:
            self._type(None)

    def choose_columns(self, columns: frozenset[TreeColumn]) -> None:
        self.columns = columns
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()
        if self.cursor is not None:
            self.put_cursor(self.cursor_line)

    def _lay_out(self) -> None:
        raise NotImplementedError

    def report_cursor(self) -> None:
        """Post `Highlighted` in the context of this widget: one that a parent's handler sends ends at the parent."""
        self.call_later(lambda: self.post_message(self.Highlighted(self.cursor)))

    def _index(self, row: RowT | None) -> int | None:
        return None if row is None else self.rows.index_of(row)

    def move_to_row(self, row: RowT | None) -> None:
        """Put the cursor on a row, if it is listed; one that is far away comes to the middle of the view."""
        line = self._index(row)
        if line is not None:
            top, height = self.scroll_offset.y, self.size.height
            if not top - height <= line < top + 2 * height:
                self.scroll_top_to(line - height // 2)
            self.move_to(line)

    @property
    def _is_open(self) -> bool:
        raise NotImplementedError

    def _open(self, *, below: bool = False) -> None:
        """Open the row under the cursor, or with `below` everything under it."""
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def _sign_cells(self, row: RowT) -> int | None:
        """Return the column of the sign of a row that can be opened."""
        raise NotImplementedError

    def action_sort_step(self, step: int) -> None:
        self._sort_step(step)

    def action_sort_reverse(self) -> None:
        self._sort_step(0)

    def action_parent(self) -> None:
        if self.cursor is not None:
            self.move_to_row(self.rows.parent_row(self.cursor))

    def action_first_sibling(self) -> None:
        if self.cursor is not None:
            self.move_to_row(self.rows.end_sibling(self.cursor, last=False))

    def action_last_sibling(self) -> None:
        if self.cursor is not None:
            self.move_to_row(self.rows.end_sibling(self.cursor, last=True))

    def action_enter(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Chosen())

    def action_open_close(self) -> None:
        if self._is_open:
            self._close()
        else:
            self._open()

    def action_expand(self) -> None:
        """Open the row under the cursor; go to the first one below when it is open."""
        if self._is_open:
            self.action_cursor_down()
        else:
            self._open()

    def action_collapse(self) -> None:
        """Close the row under the cursor; go to its parent when it is closed."""
        if self._is_open:
            self._close()
        else:
            self.action_parent()

    def action_expand_all(self) -> None:
        self._open(below=True)

    def on_click(self, event: events.Click) -> None:
        """Go to the row under the mouse; its sign opens or closes it, a second click is Enter."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < self.virtual_size.height:
            self.move_to(line)
            if event.x == self._sign_cells(self.rows.row(line)):
                self.action_open_close()
            elif event.chain == 2:
                self.action_enter()


class KeyTree(TreeRows[Row], can_focus=True):
    """A window on `VisibleRows`."""

    rows: VisibleRows

    class MarksChanged(Message):
        """Other keys are marked."""

    class ViewChanged(Message):
        """Other rows are in view, or the same ones in another layout."""

    def __init__(
        self,
        rows: VisibleRows,
        facts: RowFactsCache,
        weights: RowWeights,
        *,
        sort_step: Callable[[int], object],
        open_node: Callable[[Namespace, bool], object],
    ) -> None:
        """`facts` is looked up at each repaint; `weights` are the sort weights of keys.

        `open_node` opens a namespace, or if its second argument is true everything under it.
        """
        super().__init__(rows, id="tree", sort_step=sort_step)
        self._open_node = open_node
        self.awaits_cursor = False
        """Whether the row of the cursor, of an earlier scan, is expected to come back; until then it is on no line."""
        self.placed_at: int | None = None
        """The line of the screen where the cursor's row was before another scan, and stays when rows are sorted."""
        self.totals = TreeTotals(complete=False)
        self.figures: TreeFigures | None = None
        """The figures of an analysis for the namespaces of these rows; None without an analysis."""
        self.node_of_slot: Sequence[SafeText] = ()
        """Of a cluster by slot the node that serves it; empty for one server."""
        self._facts = facts
        self._weights = weights
        self._longest = 0
        """Cells of the longest name seen in these rows, with its indent: columns are removed for it once, for good."""
        self._rows_reported: list[Row] = []
        self.flashing: frozenset[bytes] = frozenset()
        """Keys whose rows are highlighted, since they have just changed."""
        self.marked: dict[bytes, None] = {}
        """Keys that the user has marked, whether they are listed or not, in the order in which that was done."""
        self._key_lines: dict[Row, tuple[RowFacts | None, RowLayout, Line]] = {}

    @property
    def rows_in_view(self) -> list[Row]:
        return self.rows.window(self.scroll_offset.y, self.size.height)

    def show(self, rows: VisibleRows, cursor: Row | None = None) -> None:
        rows.refresh()  # what has come while others were shown: later it would move the cursor
        self.rows = rows
        self._longest = 0
        self.cursor, self.cursor_line = None, 0
        self._painted.clear()
        self._recount()
        self._lay_out()
        line = self._index(cursor) or 0
        self.scroll_top_to(line - self.size.height // 2)
        self.move_to(line)
        if self.cursor is None:
            self.post_message(self.Highlighted(None))
        self.refresh()

    def show_figures(self, figures: TreeFigures | None) -> None:
        is_other_layout = (figures is None) is not (self.figures is None)
        self.figures = figures
        self._show_more(is_other_layout=is_other_layout)

    def show_nodes(self, node_of_slot: Sequence[SafeText]) -> None:
        is_other_layout = bool(node_of_slot) is not bool(self.node_of_slot)
        self.node_of_slot = node_of_slot
        self._show_more(is_other_layout=is_other_layout)

    def _show_more(self, *, is_other_layout: bool) -> None:
        self._key_lines.clear()
        if is_other_layout:
            self._lay_out()
        else:
            self.repaint_changes()

    @contextmanager
    def keeping_position(self) -> Iterator[None]:
        """Change rows within this context: the row of the cursor, or the top one, keeps its position on the screen."""
        anchor, line = self._anchor()
        yield
        self._hold(anchor, line)

    def holding(self, sorting: Slices[None]) -> Slices[None]:
        """Sort rows; at the end the row of the cursor, or the top one, keeps its position, while untouched the first.

        They are where they were until the last slice.
        """
        while True:
            anchor, line = self._anchor()
            if next(sorting, self) is self:
                break
            yield
        is_scrolled = self.scroll_offset.y > 0 and self.placed_at is None and not self.awaits_cursor
        self.is_touched = self.is_touched or is_scrolled
        self.rearranged()
        if self.is_touched:
            self._hold(anchor, line)

    def _anchor(self) -> tuple[Row | None, int]:
        top = self.scroll_offset.y
        line = self.cursor_line - top
        if self.cursor is not None and 0 <= line < self.size.height:
            return self.cursor, line
        return (self.rows.row(min(top, len(self.rows) - 1)) if len(self.rows) else None), 0

    def _hold(self, anchor: Row | None, line: int) -> None:
        """Show rows that have changed, with one of them on a line of the screen."""
        self.rows.refresh()
        self._recount()
        number = self._index(anchor)
        if number is not None and number - line != self.scroll_offset.y:
            self.scroll_top_to(number - line)
        found = self._index(self.cursor)
        if found is not None:
            before, self.cursor = self.cursor, self.rows.row(found)
            self.cursor_line = found
            if self.cursor != before and self.cursor.kind is RowKind.NAMESPACE:
                self.report_cursor()  # it has become a chain, or has parted
        elif self.awaits_cursor:
            self.cursor_line = NOWHERE
        else:
            self.move_to(self._nearest(self.cursor))
        self._make_room()
        self.repaint_changes()

    def rearranged(self) -> None:
        """After the rows were sorted, go with the cursor's row to its new place, while untouched to the first row."""
        self._recount()
        self._lay_out()
        is_placed = self.placed_at is not None and not self.is_touched
        line = self._index(self.cursor) if self.is_touched or is_placed else 0
        if line is not None and self.placed_at is not None and is_placed:
            self.place(line, self.placed_at)
        elif not self.awaits_cursor:
            self.move_to(self.cursor_line if line is None else line)
        self.repaint_changes()

    def place(self, line: int, screen_line: int) -> None:
        """Put the cursor on a row by its number, and that on a line of the screen, without a user's doing."""
        is_touched = self.is_touched
        self.scroll_top_to(line - screen_line)
        self.move_to(line)
        self.is_touched, self.placed_at = is_touched, screen_line

    def move_to(self, line: int) -> None:
        if not len(self.rows):
            if self.cursor is not None:
                self.cursor, self.cursor_line = None, 0
                self.post_message(self.Highlighted(None))
            return
        line = max(0, min(line, len(self.rows) - 1))
        before, self.cursor = self.cursor, self.rows.row(line)
        self.awaits_cursor = False
        self.put_cursor(line)
        if self.cursor != before:
            self.is_touched = self.is_touched or line > 0
            self.post_message(self.Highlighted(self.cursor))

    @property
    def cursor_place(self) -> tuple[bool, bytes] | None:
        """Whether the row under the cursor is a key, and its name or the prefix of its keys; None without rows."""
        return None if self.cursor is None else (self.cursor.kind is RowKind.KEY, self.cursor.key())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._make_room()
            self.post_message(self.ViewChanged())

    def line_at(self, number: int) -> Line | None:
        """Return the line of a row, None if it does not exist; the line of a key is cached until its facts change."""
        if not 0 <= number < len(self.rows):
            return None
        row = self.rows.row(number)
        if row.kind is RowKind.NAMESPACE:
            is_open = self.rows.is_expanded(row.namespace)
            return row_line(row, self.row_layout, self.totals, is_open=is_open, figures=self.figures)
        facts = self._facts.get(row.key())
        is_flashing = bool(self.flashing) and row.key() in self.flashing
        is_marked = bool(self.marked) and row.key() in self.marked
        known = self._key_lines.get(row)
        if known is not None and known[0] is facts and known[1] is self.row_layout and not (is_flashing or is_marked):
            return known[2]
        idle_s = self._weights.idle_s(row.namespace, row.name) if self.rows.sort_order is Sort.IDLE else None
        line = row_line(
            *(row, self.row_layout, self.totals),
            facts=facts,
            figures=self.figures,
            idle_s=idle_s,
            is_marked=is_marked,
            node=self.node_of_slot[key_slot(row.key())] if self.node_of_slot else NOTHING_MORE,
        )
        if is_flashing:
            return flashing(line)
        if is_marked:
            return line
        if len(self._key_lines) >= KEPT_LINES:
            self._key_lines.clear()
        if len(row.name) <= KEPT_LINE_BYTES:
            self._key_lines[row] = facts, self.row_layout, line
        return line

    def repaint_changes(self) -> None:
        """Repaint lines that have changed, and post `ViewChanged` when other rows are in view."""
        super().repaint_changes()
        rows = self.rows_in_view
        if rows != self._rows_reported:
            self._rows_reported = rows
            self.post_message(self.ViewChanged())

    def _nearest(self, row: Row | None) -> int:
        """Return the line of the innermost visible namespace that holds a row which is not visible any more.

        Without such a namespace it is the line where the cursor is, or the first line while the tree is untouched.
        """
        node = None if row is None else row.namespace
        while node is not None:
            line = self.rows.index_of(self.rows.row_of(node))
            if line is not None:
                return line
            node = node.parent
        return self.cursor_line if self.is_touched else 0

    def _recount(self) -> None:
        if len(self.rows) != self.virtual_size.height:
            set_content_height(self, len(self.rows))
            self.post_message(self.ViewChanged())

    def _make_room(self) -> None:
        """Make room for a name in view that is longer than all before it."""
        longest = max(map(name_cells, self.rows_in_view), default=0)
        if longest > self._longest:
            self._longest = longest
            if longest > self.row_layout.name_cells:
                self._lay_out()

    def _lay_out(self) -> None:
        width, is_analysed = self.scrollable_content_region.width - MARGIN, self.figures is not None
        sort = self.rows.sort_order
        self.row_layout = lay_out_row(
            *(width, self.columns, self._longest),
            is_analysed=is_analysed,
            is_cluster=bool(self.node_of_slot),
            sort=sort,
        )
        self.refresh()
        self.post_message(self.ViewChanged())

    # actions

    def action_enter(self) -> None:
        if self.cursor is not None and self.cursor.kind is RowKind.KEY:
            self.post_message(self.Chosen())
        else:
            self.action_open_close()

    def action_open_close(self) -> None:
        if self.cursor is not None and self.cursor.kind is RowKind.KEY:
            self._mark(self.cursor.key())
        else:
            super().action_open_close()

    def action_expand(self) -> None:
        if self.cursor is not None and self.cursor.kind is RowKind.KEY:
            self.post_message(self.Chosen())
        else:
            super().action_expand()

    def _mark(self, key: bytes) -> None:
        if key in self.marked:
            del self.marked[key]
        elif len(self.marked) < MOST_MARKED:
            self.marked[key] = None
        else:
            self.notify(f"{MOST_MARKED} keys are marked, the maximum.", markup=False)
        self.repaint_changes()
        self.post_message(self.MarksChanged())

    def unmark_all(self) -> None:
        self.marked.clear()
        self.repaint_changes()
        self.post_message(self.MarksChanged())

    @property
    def _node_at_cursor(self) -> Namespace | None:
        row = self.cursor
        return row.namespace if row is not None and row.kind is RowKind.NAMESPACE else None

    @property
    def _is_open(self) -> bool:
        node = self._node_at_cursor
        return node is not None and self.rows.is_expanded(node)

    def _open(self, *, below: bool = False) -> None:
        if (node := self._node_at_cursor) is not None:
            self._open_node(node, below)

    def _close(self) -> None:
        if (node := self._node_at_cursor) is not None:
            with self.keeping_position():
                self.rows.collapse(node)

    def _sign_cells(self, row: Row) -> int | None:
        return indent_cells(row.depth, self.row_layout.name_cells) if row.kind is RowKind.NAMESPACE else None
