"""The left half of the screen: the tree under its header, or why it is empty, and the work on its rows.

Opening, sorting and searching rows may take longer than a frame. Their first slice is done at once, so that small work
needs no iteration of the event loop, and the rest in a worker between other things.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.worker import Worker

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import ALL_BELOW_ROWS, Row, VisibleRows
from rtui.keyspace.slices import Slices
from rtui.keyspace.store.filtered import FilteredStore
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import FACT_COLUMNS, SORTS, sort_at
from rtui.tui.browse.crumbs import Crumb, path_around, title_of
from rtui.tui.browse.key_ranking import FEW_KEYS, KeyRanking, too_many
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.row_facts import RowFactsCache
from rtui.tui.browse.row_weights import MOST_WEIGHED, RowWeights
from rtui.tui.browse.session import Session
from rtui.tui.browse.tree_lines import Totals, header_line, notice_lines
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.command_screen import Work, drive
from rtui.tui.kit.layout import MARGIN, ago, display
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.styled_text import literal

FEW_ROWS: Final = 200
"""Up to so many matches are opened at once."""


class NameFilter:
    """The rows that are shown; those of the whole keyspace stay as they are while filtered ones are shown."""

    def __init__(self, store: NamespaceStore, sort: Sort, weights: RowWeights) -> None:
        self._weights = weights
        self.all_rows = self._rows_of(store, sort)
        self._before: tuple[VisibleRows, Row | None] | None = None
        self._filtered: FilteredStore | None = None
        self.rows = self.all_rows
        self.needle: bytes | None = None
        self.cursor: Row | None = None
        self.is_searching = False

    def use(self, store: NamespaceStore, cursor: Row | None) -> bool:
        """Show the rows of another store; True if it is the one before, whose rows are as they were left.

        `cursor` is where the rows that were shown so far are left.
        """
        before, self._before = self._before, (self.all_rows, cursor)
        is_back = before is not None and before[0].store is store
        if before is not None and is_back:
            (self.all_rows, self.cursor), self._before = before, None
        else:
            sort = self.all_rows.sort_order
            self.all_rows, self.cursor = self._rows_of(store, sort), None
        self._filtered, self.needle, self.rows, self.is_searching = None, None, self.all_rows, False
        return is_back

    @property
    def revision(self) -> int:
        """Grows with each name that is found."""
        return 0 if self._filtered is None else self._filtered.revision

    @property
    def not_searched(self) -> int:
        """Keys whose names were dropped for the memory budget, so that nobody knows whether they match."""
        return 0 if self._filtered is None else self._filtered.not_searched

    def choose(self, needle: bytes, cursor: Row | None) -> None:
        """Show the rows with these bytes in their names, all of them for none; `cursor` is where to come back to."""
        if self.needle is None:
            self.cursor = cursor
        self._filtered, self.needle, self.rows, self.is_searching = None, None, self.all_rows, False
        if needle:
            self._filtered = FilteredStore(self.all_rows.store, needle, ignore_case=needle == needle.lower())
            self.rows = self._rows_of(self._filtered, self.all_rows.sort_order)
            self.needle, self.is_searching = needle, True

    def _rows_of(self, store: NamespaceStore, sort: Sort) -> VisibleRows:
        return VisibleRows(store, sort=sort, weigher=self._weights, joins_chains=True)

    async def work(self) -> None:
        """Search all names that are loaded; later ones are matched as they come."""
        filtered = self._filtered
        if filtered is not None:
            await drive(filtered.work())
            if filtered is self._filtered:
                self.is_searching = False
                await drive(self.rows.sort(self.rows.sort_order))
                if filtered.keys <= FEW_ROWS:
                    await drive(self.rows.expand_all(filtered.root, most_rows=FEW_ROWS))


FACTS_REST_S = 0.1
"""Rows must be in view for so long before their facts are fetched."""

_DONE: Final = object()


class TreePane(Vertical):
    """Shows the rows of a session's store, or of the names in it that a text is in."""

    BLANK = True

    class FactsWanted(Message):
        """These keys are in view, and their facts are not known or may not hold any more."""

        def __init__(self, keys: list[bytes]) -> None:
            super().__init__()
            self.keys = keys

    class Sorted(Message):
        """The user has chosen what rows are sorted by."""

        def __init__(self, sort: Sort) -> None:
            super().__init__()
            self.sort = sort

    def __init__(self, session: Session, sort: Sort = Sort.COUNT, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._weights = RowWeights()
        self.names = NameFilter(session.store, sort, self._weights)
        self._facts = RowFactsCache(session.clock)
        self.key_tree = KeyTree(self.names.rows, self._facts, self._weights, id="tree")
        self.ranking = KeyRanking(session, self._weights, self._spawn, self._keys_arranged)
        self._header = LinePanel(id="tree-header")
        self._notice = LinePanel(id="notice")
        self._session = session
        self._crumbs: list[Crumb] = []
        """The path in the header, as it is shown."""
        self._is_touched = False
        """Whether the user has moved or opened anything, so that rows must keep their places."""
        self._shown_age = literal("")
        """How old the figures of an analysis were said to be."""
        self._facts_timer: Timer | None = None
        self._search: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        """Put the header over the tree."""
        yield self._header
        yield self.key_tree
        yield self._notice

    # which rows are shown

    def follow_store(self) -> bool:
        """Show the rows of the session's store if it is another one: a filter's, or that of all keys as it was left."""
        if self._session.store is self.names.all_rows.store:
            return False
        if self.names.use(self._session.store, self.key_tree.cursor):
            self._is_touched = True
        else:
            self.reset_for_scan()
        self.show_rows()
        return True

    def filter_names(self, needle: bytes) -> None:
        """Show the rows with these bytes in their names; all rows for none."""
        self.names.choose(needle, self.key_tree.cursor)
        self.show_rows()

    def show_rows(self) -> None:
        """Show the rows of the keyspace, or of what its names are filtered by."""
        self.key_tree.workers.cancel_node(self.key_tree)
        self.key_tree.show(self.names.rows, None if self.names.needle is not None else self.names.cursor)
        self._show_header()

    def totals(self) -> Totals:
        """Return what the figures of the rows are measured against."""
        status, names = self._session.status, self.names
        total = None if names.needle is not None else status.total
        return Totals(
            names.rows.store.keys,
            complete=status.complete and not names.is_searching and not names.not_searched,
            expected_keys=float(total) if isinstance(total, int) else None if total is None else total.value,
            is_part=names.needle is not None or status.match is not None or status.key_type is not None,
            is_outdated=status.outdated is not None,
            figures=self.key_tree.figures,
            analysis_note=self._age_note(),
        )

    def update_rows(self) -> None:
        """Show the rows that have come into the store since; if there are none, why."""
        self.key_tree.totals = self.totals()
        self._refresh_rows()
        is_empty = len(self.key_tree.rows) == 0
        self.set_class(is_empty, "-empty")
        if is_empty:
            status, needle, not_searched = self._session.status, self.names.needle, self.names.not_searched
            self._notice.set_content(lambda width: notice_lines(status, needle, width, not_searched=not_searched))

    def show_figures(self) -> bool:
        """Show in the rows what the latest analysis knows of them, as long as it is about these keys.

        Returns whether that, or how old it is, has changed.
        """
        status, found, before = self._session.status, self._session.analysed, self.key_tree.figures
        figures = None
        if found is not None and self.names.needle is None:
            from rtui.tui.browse.tree_figures import TreeFigures  # noqa: PLC0415 - with all that adds up

            report, scope = found.report, found.report.head.scope
            is_same = (scope.match, scope.key_type) == (status.match, status.key_type)
            if is_same and {*scope.separators} == {*self._session.store.separators.values}:
                is_current = found.outdated is None and status.outdated is None
                is_known = before is not None and before.report is report and before.is_current is is_current
                figures = before if is_known else TreeFigures(report, is_current=is_current)
        if figures is not before:
            self._weights.figures = figures
            self.key_tree.show_figures(figures)
        self._show_header()
        shown = self._age_note()
        has_changed = figures is not before or shown != self._shown_age
        self._shown_age = shown
        return has_changed

    def reset_for_scan(self) -> None:
        """Forget facts and places of rows: another scan begins."""
        self._is_touched = False
        self.ranking.stop()
        self._weights.forget()
        self._facts.forget()
        self._want_facts()

    def _show_header(self) -> None:
        needle = self.names.needle
        order, layout = self.names.rows.sort_order, self.key_tree.row_layout
        path = path_around(self.key_tree.cursor, self.names.rows)
        self._crumbs = []
        if needle is not None:
            title = SafeText(f"Names with {display(needle, limit=40)}")
        elif path:
            title, self._crumbs = title_of(path, layout.name_cells - 2 * MARGIN)
        else:
            separators = b" ".join(self._session.store.separators.values)
            title = SafeText(f"Namespaces split at {display(separators)}")
        note = self._age_note()
        if self.ranking.is_under_way:
            note = self.ranking.note
        elif self.ranking.missing(self.names.rows):
            note = literal("keys by name, S asks them")
        line = header_line(layout, order, title, is_filter=needle is not None, note=note)
        if not line[0].text.startswith(f" {title}"):
            self._crumbs = []
        self._header.show([line])

    def _age_note(self) -> SafeText:
        """Return how old the figures of the analysis are that the columns show."""
        found, figures = self._session.analysed, self.key_tree.figures
        if found is None or figures is None:
            return SafeText("")
        if not figures.is_current:
            return literal("analysis outdated")
        if found.age_s is None:
            return literal("analysis under way")
        age = ago(found.age_s)
        return SafeText(f"analysed {age}") if age else SafeText("")

    # the facts of rows

    def put_facts(self, found: Sequence[RowFacts]) -> None:
        """Show the facts of listed keys."""
        self._facts.put(found)
        self.key_tree.repaint_changes()

    def flash(self, keys: frozenset[bytes]) -> None:
        """Mark the rows of these keys, which have just changed, and no others."""
        if keys != self.key_tree.flashing:
            self.key_tree.flashing = keys
            self.key_tree.repaint_changes()

    def refresh_expired(self) -> None:
        """Fetch again the facts of keys in view whose time to live has run out, and of those that are in doubt."""
        self._fetch(self._facts.due_again(self.key_tree.rows_in_view))

    def invalidate_facts(self) -> None:
        """Fetch the facts in view again, and others once they are in view; known ones are shown until then."""
        self._facts.invalidate()
        self._want_facts()

    def _want_facts(self) -> None:
        """Fetch the facts of keys in view that are unknown or old."""
        self._fetch(self._facts.missing(self.key_tree.rows_in_view))

    def _fetch(self, keys: list[bytes]) -> None:
        """Have the facts of these keys fetched, if a column shows any."""
        if keys and any(field.key in FACT_COLUMNS for field in self.key_tree.row_layout.fields):
            self.post_message(self.FactsWanted(keys))

    @on(KeyTree.ViewChanged)
    def _view_changed(self, event: KeyTree.ViewChanged) -> None:
        event.stop()
        self._show_header()
        if self._facts_timer is not None:
            self._facts_timer.stop()
        self._facts_timer = self.set_timer(FACTS_REST_S, self._want_facts)

    # opening, sorting and searching

    @on(KeyTree.Highlighted)
    def _cursor_moved(self) -> None:
        self._is_touched = self._is_touched or self.key_tree.cursor_line > 0
        self._show_header()

    @on(KeyTree.OpenRequested)
    def _open(self, event: KeyTree.OpenRequested) -> None:
        """List the children of a namespace, or everything below it."""
        event.stop()
        self._is_touched = True
        rows, node = self.names.rows, event.node
        if not self._is_current(node):
            return
        if rows.store.needs_scan(node):
            self._spawn(partial(self._scan_and_open, node))
        else:
            self._begin(rows.expand_all(node, most_rows=ALL_BELOW_ROWS) if event.below else rows.expand(node))

    async def _scan_and_open(self, node: Namespace) -> None:
        """Scan the names of a namespace of which only the count was kept, then list its children."""
        await self._session.open_namespace(node)
        if self._is_current(node) and not self.names.rows.store.needs_scan(node):
            self._begin(self.names.rows.expand(node))

    def _begin(self, work: Slices[Any]) -> None:
        """Do the first slice now and the rest in a worker."""

        async def finish() -> None:
            await drive(work)
            self._refresh_rows()
            self._rank_opened()

        with self.key_tree.keeping_position():
            has_more = next(work, _DONE) is not _DONE
        if has_more:
            self._spawn(finish)
        else:
            self._rank_opened()

    def _is_current(self, node: Namespace) -> bool:
        """Return whether a namespace belongs to the rows that are shown, not to those of an earlier scan."""
        self._refresh_rows()
        return node.root is self.names.rows.store.root

    def _refresh_rows(self) -> None:
        """Show rows that have come or gone in the store."""
        with self.key_tree.keeping_position():
            pass

    @on(KeyTree.SortRequested)
    def _sort_requested(self, event: KeyTree.SortRequested) -> None:
        event.stop()
        sorts = list(SORTS)
        now = sorts.index(self.names.rows.sort_order)
        self.sort_by(sorts[(now + event.step) % len(sorts)])

    @on(events.Click, "#tree-header")
    def _header_clicked(self, event: events.Click) -> None:
        event.stop()
        crumb = next((one for one in self._crumbs if one.start <= event.x < one.end), None)
        if crumb is not None:
            self.key_tree.call_later(self.key_tree.move_to_row, self.names.rows.row_of(crumb.node))
            return
        sort = sort_at(self.key_tree.row_layout, event.x)
        if sort is not None and len(self.key_tree.rows):
            self.sort_by(sort)

    def sort_by(self, sort: Sort) -> None:
        """Sort the rows by something; ask the keys for it where need be, after a question if they are many."""
        self._is_touched = True
        self._weights.forget()
        self.ranking.stop()
        self._sort(sort)
        self._show_header()
        self.post_message(self.Sorted(sort))
        rows = self.names.rows
        nodes = self.ranking.missing(rows)
        keys = sum(node.key_total for node in nodes)
        if keys > MOST_WEIGHED:
            self.notify(too_many(keys), title="Keys are not sorted", markup=False)
        elif keys > FEW_KEYS:
            self._ask_before(rows, nodes, keys)
        else:
            self.ranking.begin(rows, nodes)

    def _ask_before(self, rows: VisibleRows, nodes: Sequence[Namespace], keys: int) -> None:
        """Say what it costs to sort so many keys, and begin if that is wanted."""
        from rtui.server.key_column import cost_sentence  # noqa: PLC0415 - when it is wanted, with all that finds keys

        sort = rows.sort_order

        def chosen(choice: int | None) -> None:
            if choice == 0 and rows is self.names.rows and rows.sort_order is sort:
                self.ranking.begin(rows, nodes)

        cost = cost_sentence(keys, sort, self._session.control.pace)
        title = SafeText(f"Sort {fmt.keys(keys)} by {SORTS[sort][0]}")
        self.app.push_screen(ChoiceScreen(title, [SafeText(f"Ask {cost}"), literal("Leave keys by name")]), chosen)

    def _rank_opened(self) -> None:
        """Sort the keys of a namespace that was opened as the others, if they are few."""
        rows = self.names.rows
        nodes = self.ranking.missing(rows)
        if nodes and not self.ranking.is_under_way and sum(node.key_total for node in nodes) <= FEW_KEYS:
            self.ranking.begin(rows, nodes)

    def _keys_arranged(self) -> None:
        """Go with the cursor's row to its place among sorted keys."""
        self.key_tree.rearranged()
        self._show_header()

    def sort_untouched(self) -> None:
        """Sort again, unless the user has been here: then rows keep their places."""
        if not self._is_touched:
            self._sort(self.names.rows.sort_order, to_first=True)

    def _sort(self, order: Sort, *, to_first: bool = False) -> None:
        """Sort all rows; they move together, and the cursor stays with its row or goes `to_first`."""
        work = self.names.rows.sort(order)

        async def finish() -> None:
            await drive(work)
            self.key_tree.rearranged(to_first=to_first)

        if next(work, _DONE) is _DONE:
            self.key_tree.rearranged(to_first=to_first)
        else:
            self._spawn(finish)

    @on(KeyTree.Jumping)
    def _jump(self, event: KeyTree.Jumping) -> None:
        """Go to the first row beside the cursor's that begins with what was typed."""
        row = self.key_tree.cursor
        if row is not None and event.typed:
            self._go_to(self.names.rows.find_sibling(row, event.typed.encode(), ignore_case=True))

    def reveal(self, key: bytes) -> None:
        """Open what a key lies in and go to it."""
        self._go_to(self.names.rows.reveal(key))

    def reveal_namespace(self, prefix: bytes) -> None:
        """Open what a namespace lies in and go to it."""
        self._go_to(self.names.rows.reveal_namespace(prefix))

    def _go_to(self, search: Slices[Row | None]) -> None:
        """Go to the row that a search finds; a search that is under way ends."""

        async def finish() -> None:
            row = await drive(search)
            if row is not None:
                self._refresh_rows()
                self.key_tree.move_to_row(row)

        if self._search is not None:
            self._search.cancel()
        self._search = self._spawn(finish)

    def _spawn(self, work: Work) -> Worker[None]:
        return self.key_tree.run_worker(work, group="rows", exit_on_error=False, description="tree")
