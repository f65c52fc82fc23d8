"""The left half of the screen: the tree under its header, or why it is empty."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer

from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import ALL_COLUMNS, FACT_COLUMNS, Column
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.row_facts import RowFactsCache
from rtui.tui.browse.tree_lines import Whole, header_line
from rtui.tui.browse.tree_work import TreeWork
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import literal

FACTS_REST_S = 0.1
"""Rows must be in view for so long before their facts are asked for."""


class TreePane(Vertical):
    """Shows the rows of one store; opening, sorting and searching them is its own work."""

    BLANK = True

    class FactsWanted(Message):
        """These keys are in view, and nothing is known of them or what is known may not hold any more."""

        def __init__(self, keys: list[bytes]) -> None:
            super().__init__()
            self.keys = keys

    def __init__(
        self,
        scan_again: Callable[[Namespace], Awaitable[None]],
        clock: Callable[[], float],
        *,
        id: str | None = None,
    ) -> None:
        """`scan_again` fetches the names of a namespace of which only the count was kept.

        `clock` gives seconds since the epoch.
        """
        super().__init__(id=id)
        self.key_tree = KeyTree(id="tree")
        self._header = LinePanel(id="tree-header")
        self._notice = LinePanel(id="notice")
        self._facts = RowFactsCache(clock)
        self._scan_again = scan_again
        self._work: TreeWork | None = None
        self._title = literal("Namespaces")
        self._title_is_filter = False
        self._columns = ALL_COLUMNS
        self._is_touched = False
        self._facts_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Put the header over the tree."""
        yield self._header
        yield self.key_tree
        yield self._notice

    @property
    def columns(self) -> frozenset[Column]:
        """What is shown beside names, as far as it fits."""
        return self._columns

    def show(self, rows: VisibleRows, title: SafeText, *, is_filter: bool = False, cursor: Row | None = None) -> None:
        """Show these rows, with the cursor on one of them or on the first."""
        if self._work is not None:
            self._work.stop()
        self._work = TreeWork(rows, self.key_tree, self._scan_again)
        self._title, self._title_is_filter = title, is_filter
        self.key_tree.show(rows, self._facts, cursor)
        self._say_header()

    def take_up(self, whole: Whole) -> None:
        """Take up what the store has got since, and measure shares against `whole`."""
        self.key_tree.set_totals(whole)
        with self.key_tree.keeping_position():
            pass

    def explain(self, make: MakeLines) -> None:
        """Say why there are no rows, in place of the tree, if there are none."""
        is_empty = self.key_tree.rows is None or len(self.key_tree.rows) == 0
        self.set_class(is_empty, "-empty")
        if is_empty:
            self._notice.set_content(make)

    def sort_untouched(self) -> None:
        """Sort once more, unless the user has been here: then rows keep their places."""
        if not self._is_touched and self._work is not None:
            self._work.sort(self._work.rows.sort_order, to_first=True)

    def reveal(self, key: bytes) -> None:
        """Open what a key lies in and go to it."""
        if self._work is not None:
            self._work.reveal(key)

    def choose_columns(self, columns: frozenset[Column]) -> None:
        """Show these columns, as far as they fit."""
        self._columns = columns
        self.key_tree.choose_columns(columns)

    def put_facts(self, found: Sequence[RowFacts]) -> None:
        """Show the facts of listed keys."""
        self._facts.put(found)
        self.key_tree.repaint_changes()

    def tick(self) -> None:
        """Repaint the rows in view whose time to live has run down."""
        self.key_tree.repaint_changes()

    def ask_again(self) -> None:
        """Ask again for the keys in view whose time to live has run out, and for those in doubt."""
        self._ask(self._facts.due_again(self.key_tree.rows_in_view))

    def invalidate_facts(self) -> None:
        """Ask again for the facts in view, and for others once they are; what is known is shown until then."""
        self._facts.doubt()
        self._want_facts()

    def keep_order(self) -> None:
        """Leave rows in their places, as the user has them."""
        self._is_touched = True

    def reset_for_scan(self) -> None:
        """Another scan begins: nothing that is known holds, and no row has a place that it must keep."""
        self._is_touched = False
        self._facts.forget()
        self._want_facts()

    @on(KeyTree.Highlighted)
    def _cursor_moved(self) -> None:
        self._is_touched = self._is_touched or self.key_tree.cursor_line > 0

    @on(KeyTree.OpenRequested)
    def _open(self, event: KeyTree.OpenRequested) -> None:
        event.stop()
        self._is_touched = True
        if self._work is not None:
            self._work.open(event.node, below=event.below)

    @on(KeyTree.SortRequested)
    def _sort(self, event: KeyTree.SortRequested) -> None:
        event.stop()
        if self._work is not None:
            order = self._work.rows.sort_order
            if not event.again:
                order = Sort.NAME if order is Sort.COUNT else Sort.COUNT
            self._work.sort(order)
            self._say_header()

    @on(KeyTree.Jumping)
    def _jump(self, event: KeyTree.Jumping) -> None:
        if self._work is not None and event.typed:
            self._work.jump(event.typed)

    @on(KeyTree.ViewChanged)
    def _view_changed(self, event: KeyTree.ViewChanged) -> None:
        event.stop()
        self._say_header()
        if self._facts_timer is not None:
            self._facts_timer.stop()
        self._facts_timer = self.set_timer(FACTS_REST_S, self._want_facts)

    def _want_facts(self) -> None:
        """Ask for the facts of the keys in view that are not known yet, or have been known for long."""
        self._ask(self._facts.missing(self.key_tree.rows_in_view))

    def _ask(self, keys: list[bytes]) -> None:
        """Ask for the facts of these keys, if they are shown at all."""
        if keys and any(place.key in FACT_COLUMNS for place in self.key_tree.plan.places):
            self.post_message(self.FactsWanted(keys))

    def _say_header(self) -> None:
        order = Sort.COUNT if self._work is None else self._work.rows.sort_order
        self._header.show([header_line(self.key_tree.plan, order, self._title, is_filter=self._title_is_filter)])
