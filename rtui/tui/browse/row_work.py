"""The work on the rows of the tree: opening and sorting them, and opening again what was open.

That may take longer than a frame. The first slice is done at once, so that small work needs no iteration of the event
loop, and the rest in a worker between other things.

`Reopening` opens namespaces again after a scan has begun anew with an empty store. They are opened as soon as they have
a key, and the cursor comes back when its row is there: a key may be among the last that the scan lists. Each try looks
for all rows still missing, so there is one whenever the keyspace has grown by a quarter, and one at the end.

`KeyRanking` sorts the keys of open namespaces by a fact that has to be asked of each first. A few are asked at once;
for many the user sees the cost first. Progress stands in the header; Escape ends it, and the keys stay in the order of
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from textual.worker import Worker

from rtui.analysis import humanize as fmt
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import ALL_BELOW_ROWS, Row, RowKind, VisibleRows
from rtui.keyspace.slices import Slices, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.columns import SORTS, sort_names
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.row_facts import MOST_WEIGHED, RowWeights, ShownRows
from rtui.tui.kit.choice import ChoiceScreen, SortScreen
from rtui.tui.kit.command_screen import Work, drive
from rtui.tui.kit.styled_text import literal

if TYPE_CHECKING:
    from rtui.server.search.run import KeyWeights

GROWTH: Final = 1.25
"""Growth of the keys since the last try that makes another one worth while."""


class Reopening:
    """Opens namespaces again, and finds the row of the cursor again."""

    def __init__(self, rows: VisibleRows, prefixes: Iterable[bytes], cursor: Row | None, line: int) -> None:
        """`cursor` was the row under the cursor in the emptied store; `line` was its line on the screen."""
        self.rows = rows
        self.line = line
        self.is_over = False
        """Whether all rows are open again, or the scan has ended without some of them."""
        self.waiting = list(prefixes)
        """The prefixes of the namespaces that are not listed yet."""
        self._name = None if cursor is None else cursor.key()
        self._is_key = cursor is not None and cursor.kind is RowKind.KEY
        self._is_trying = False
        self._tried_keys = 0

    def begins(self, *, complete: bool) -> bool:
        """Return whether to try now, and begin if so; `complete` is whether the scan has listed all names."""
        keys = self.rows.store.keys
        is_worth_while = complete or keys < self._tried_keys or keys > self._tried_keys * GROWTH
        if self._is_trying or self.is_over or not is_worth_while:
            return False
        self._is_trying, self._tried_keys = True, keys
        return True

    def work(self, *, complete: bool) -> Slices[Row | None]:
        """Open the namespaces listed by now, in slices; return the row of the cursor once it is listed.

        At the end of the scan, if that row is missing, it is the row of its innermost listed namespace.
        """
        rows = self.rows
        for prefix in list(self.waiting):
            row = yield from rows.reveal_namespace(prefix)
            if row is not None:
                self.waiting.remove(prefix)
                if not rows.store.needs_scan(row.namespace):
                    yield from rows.expand(row.namespace)
        found = None
        if self._name is not None:
            found = yield from (rows.reveal(self._name) if self._is_key else rows.reveal_namespace(self._name))
            if found is None and complete:
                found = yield from _around(rows, self._name)
        if found is not None:
            self._name = None
        self.is_over = complete or (self._name is None and not self.waiting)
        self._is_trying = False
        return found


def _around(rows: VisibleRows, name: bytes) -> Slices[Row | None]:
    """Return the row of the innermost namespace that a name is in, if there is one."""
    found, prefix = None, b""
    for segment, separator in rows.store.separators.segments(rows.store.swapped([name])[0]):
        prefix += segment + separator
        row = (yield from rows.reveal_namespace(prefix)) if separator else None
        if row is None:
            break
        found = row
    return found


ASKED_SORTS: Final = frozenset({Sort.MEMORY, Sort.MEAN, Sort.TTL, Sort.IDLE, Sort.TYPE})
"""Orders of keys that need something asked of each of them."""

FEW_KEYS: Final = 5_000
"""Keys that are asked without a question at most: half a second of a gentle pace."""


class KeyRanking:
    """Fetches the facts by which keys are sorted, one namespace after the other."""

    def __init__(
        self,
        session: BrowsingSession,
        weights: RowWeights,
        spawn: Callable[[Work], Worker[None]],
        on_arranged: Callable[[], None],
    ) -> None:
        """`spawn` starts workers; `on_arranged` is called when the keys of a namespace have been sorted."""
        self._session = session
        self._weights = weights
        self._spawn = spawn
        self._on_arranged = on_arranged
        self._worker: Worker[None] | None = None
        self._asking: KeyWeights | None = None

    @property
    def is_under_way(self) -> bool:
        return self._worker is not None and not self._worker.is_finished

    @property
    def note(self) -> SafeText:
        if not self.is_under_way or self._asking is None:
            return literal("")
        return SafeText(f"read {fmt.count(len(self._asking.weights))} of {fmt.keys(self._asking.of)}, esc stops")

    def is_free(self, rows: VisibleRows) -> bool:
        return rows.sort_order in ASKED_SORTS and self._session.knows_column(rows.sort_order)

    def missing(self, rows: VisibleRows) -> list[Namespace]:
        sort = rows.sort_order
        if sort not in ASKED_SORTS:
            return []
        return [node for node in rows.with_keys() if not self._weights.knows(node, sort)]

    def begin(self, rows: VisibleRows, nodes: Sequence[Namespace], *, asks_server: bool = False) -> None:
        """Fetch the facts of the keys of these namespaces and sort them; rows of an analysis save the fetch.

        A ranking under way is cancelled.
        """
        self.stop()
        if nodes:
            self._worker = self._spawn(partial(self._rank, rows, nodes, rows.sort_order, asks_server))

    def stop(self) -> bool:
        """End it; returns whether anything was under way."""
        was_under_way, worker, self._worker = self.is_under_way, self._worker, None
        if worker is not None:
            worker.cancel()
        return was_under_way

    async def _rank(self, rows: VisibleRows, nodes: Sequence[Namespace], sort: Sort, asks_server: bool) -> None:
        for node in nodes:
            asking = self._asking = self._session.key_column(node, sort, asks_server=asks_server)
            await asking.run()
            if asking.failure is not None:
                raise RtuiError("Keys are not sorted", asking.failure)
            self._weights.put(node, sort, asking.weights)
            if rows.sort_order is sort:
                await drive(rows.arrange(node))
                self._on_arranged()


def too_many(keys: int) -> SafeText:
    return SafeText(
        f"{fmt.keys(keys)} exceed the limit of {fmt.count(MOST_WEIGHED)} keys to read. They stay sorted by name."
    )


_DONE: Final = object()


class RowWork:
    """Opens and sorts the rows of a tree."""

    def __init__(
        self,
        session: BrowsingSession,
        names: ShownRows,
        weights: RowWeights,
        tree: KeyTree,
        *,
        show_header: Callable[[], None],
        show_sort: Callable[[Sort, bool], bool],
    ) -> None:
        """`weights` are the sort weights of the rows of `names` and `tree`.

        `show_header` shows the header of the current rows. `show_sort` is called with a new order, and whether it is
        reversed; it returns whether the rows of names are shown, whose keys may have to be asked for it.
        """
        self.names, self.key_tree = names, tree
        self.ranking = KeyRanking(session, weights, self.spawn, self._keys_arranged)
        self._session, self._weights = session, weights
        self._show_header, self._show_sort = show_header, show_sort
        self._sorted_at_end: WeakKeyDictionary[VisibleRows, tuple[Namespace, int]] = WeakKeyDictionary()
        """By rows that were sorted at the end of a scan the root of their store, and its last revision seen."""
        self._sorts = 0
        self._reopening: Reopening | None = None

    @property
    def is_sorting(self) -> bool:
        return self._sorts > 0

    def open(self, node: Namespace, *, below: bool) -> None:
        self.key_tree.is_touched = True
        rows = self.names.rows
        if not self._is_current(node):
            return
        if rows.store.needs_scan(node):

            async def scan_and_open() -> None:
                await self._session.open_namespace(node)
                if self._is_current(node) and not self.names.rows.store.needs_scan(node):
                    self._begin(self.names.rows.expand(node))

            self.spawn(scan_and_open)
        else:
            self._begin(rows.expand_all(node, most_rows=ALL_BELOW_ROWS) if below else rows.expand(node))

    def _begin(self, work: Slices[Any]) -> None:
        def listed() -> None:
            self.refresh_rows()
            self._rank_opened()

        with self.key_tree.keeping_position():
            self._go_through(work, listed)

    def _is_current(self, node: Namespace) -> bool:
        """Return whether a namespace belongs to the rows that are shown, not to an earlier scan."""
        self.refresh_rows()
        return node.root is self.names.rows.store.root

    def refresh_rows(self) -> None:
        self._remember_open()
        with self.key_tree.keeping_position():
            pass

    def sort_step(self, step: int) -> None:
        """Sort by the order `step` places further in the list; reverse the rows for 0."""
        sorts, now = list(SORTS), self.names.rows.sort_order
        if step:
            self.sort_by(sorts[(sorts.index(now) + step) % len(sorts)])
        else:
            self._reverse()

    def sort_by_title(self, sort: Sort) -> None:
        if sort is self.names.rows.sort_order:
            self._reverse()
        elif len(self.key_tree.rows):
            self.sort_by(sort)

    def choose_sort(self) -> None:
        sorts = list(SORTS)

        def chosen(choice: int | None) -> None:
            if choice is not None:
                rows, sort = self.names.rows, sorts[choice]
                is_again = sort is rows.sort_order
                self.sort_by(sort, is_reversed=is_again and rows.is_reversed, asks_server=is_again)

        names = sort_names(is_analysed=self.key_tree.figures is not None)
        self.key_tree.app.push_screen(SortScreen(names, sorts.index(self.names.rows.sort_order)), chosen)

    def _reverse(self) -> None:
        rows = self.names.rows
        self._sort_as(rows.sort_order, is_reversed=not rows.is_reversed)

    def sort_by(self, sort: Sort, *, is_reversed: bool = False, asks_server: bool = False) -> None:
        """Sort the rows by a figure of the analysis, or by a fact fetched again for the keys.

        If many keys have to be fetched, the user is asked first.
        """
        self._weights.forget()
        self._sort_as(sort, is_reversed=is_reversed, asks_server=asks_server)

    def _sort_as(self, sort: Sort, *, is_reversed: bool, asks_server: bool = False) -> None:
        self.key_tree.is_touched = True
        self.ranking.stop()
        self._go_through(self.names.rows.sort(sort, is_reversed=is_reversed), self._keys_arranged)
        if not self._show_sort(sort, is_reversed):
            return
        rows = self.names.rows
        nodes = self.ranking.missing(rows)
        keys = sum(node.key_total for node in nodes)
        if keys > MOST_WEIGHED:
            self.key_tree.notify(too_many(keys), title="Keys are not sorted", markup=False)
        elif keys <= FEW_KEYS or (not asks_server and self.ranking.is_free(rows)):
            self.ranking.begin(rows, nodes, asks_server=asks_server)
        else:
            self._ask_before(rows, nodes, keys)

    def _ask_before(self, rows: VisibleRows, nodes: Sequence[Namespace], keys: int) -> None:
        from rtui.server.search.run import cost_sentence  # noqa: PLC0415 - when it is wanted, with all that finds keys

        sort = rows.sort_order

        def chosen(choice: int | None) -> None:
            if choice == 0 and rows is self.names.rows and rows.sort_order is sort:
                self.ranking.begin(rows, nodes, asks_server=True)

        cost = cost_sentence(keys, sort, self._session.control.pace)
        title = SafeText(f"Sort {fmt.keys(keys)} by {SORTS[sort][0]}")
        answers = [SafeText(f"Read {cost}"), literal("Keep sorting by name")]
        self.key_tree.app.push_screen(ChoiceScreen(title, answers), chosen)

    def _remember_open(self) -> None:
        """Remember the open namespaces and the cursor if the store has been emptied since."""
        rows, tree = self.names.rows, self.key_tree
        closed, cursor, before = rows.take_closed(), tree.cursor, self._reopening
        is_lost = cursor is not None and cursor.namespace.root is not rows.store.root and not tree.awaits_cursor
        if not closed and not is_lost:
            return
        if before is not None and before.rows is rows:
            closed += before.waiting
            if tree.awaits_cursor:
                before.waiting = closed
                return
        self._reopening = Reopening(rows, closed, cursor, tree.cursor_line - tree.scroll_offset.y)
        tree.awaits_cursor = is_lost

    def reopen(self) -> None:
        """Reopen namespaces, and go back to the row of the cursor, as far as they are listed by now."""
        reopening, tree = self._reopening, self.key_tree
        complete = self._session.status.progress.state.is_over
        if reopening is None or reopening.rows is not self.names.rows or not reopening.begins(complete=complete):
            return

        async def go_on() -> None:
            row = await drive(reopening.work(complete=complete))
            if reopening is not self._reopening or reopening.rows is not self.names.rows:
                return
            if row is not None and tree.awaits_cursor:
                self.refresh_rows()
                tree.place(reopening.rows.index_of(row) or 0, reopening.line)
            if reopening.is_over:
                self._reopening, tree.awaits_cursor = None, False
                with tree.keeping_position():
                    pass  # a row that has not come back is not waited for any longer
            else:
                self.refresh_rows()
                self.reopen()

        self.spawn(go_on)

    def _rank_opened(self) -> None:
        """Sort the keys of a namespace that was opened as the others, if they are few."""
        rows = self.names.rows
        self._show_header()
        nodes = self.ranking.missing(rows)
        most = MOST_WEIGHED if self.ranking.is_free(rows) else FEW_KEYS
        if nodes and not self.ranking.is_under_way and sum(node.key_total for node in nodes) <= most:
            self.ranking.begin(rows, nodes)

    def _keys_arranged(self) -> None:
        self.key_tree.rearranged()
        self._show_header()

    def sort_untouched(self) -> None:
        """Sort again, unless the user has been here, or comes before that is done: then rows keep their places."""
        tree = self.key_tree
        self._remember_open()
        if not tree.is_touched:
            rows = self.names.rows
            work = rows.sort(rows.sort_order, is_reversed=rows.is_reversed)
            self._go_through(only_while(lambda: not tree.is_touched, work), self._keys_arranged)

    def sort_at_end(self) -> None:
        """Sort all rows once the scan has ended, newly opened ones too, and again if keys are numbered anew."""
        rows, store = self.names.rows, self.names.rows.store
        before = self._sorted_at_end.pop(rows, None)
        if not self._session.status.progress.state.is_over or self.names.is_searching:
            return
        now = self._sorted_at_end[rows] = store.root, store.revision
        is_sorted = before is not None and before[0] is store.root
        if is_sorted and (before != now or self.is_sorting or rows.is_in_order):
            return
        self._remember_open()
        work = self.key_tree.holding(rows.sort(rows.sort_order, is_reversed=rows.is_reversed))
        self._go_through(work, self._rank_opened)

    def _go_through(self, work: Slices[Any], then: Callable[[], None]) -> None:
        """List or sort: do the first slice now and the rest in a worker, then call `then`."""

        async def finish() -> None:
            self._sorts += 1
            self._show_header()
            try:
                await drive(work)
            finally:
                self._sorts -= 1
            then()

        if next(work, _DONE) is _DONE:
            then()
        else:
            self.spawn(finish)

    def spawn(self, work: Work) -> Worker[None]:
        return self.key_tree.run_worker(work, group="rows", exit_on_error=False, description="tree")
