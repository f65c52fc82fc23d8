"""Work on the rows of the tree that may take longer than a frame: opening, sorting, searching, each in slices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from textual.worker import Worker

from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import ALL_BELOW_ROWS, Row, VisibleRows
from rtui.keyspace.slices import Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.kit.polling import Work, drive

_DONE: Final = object()


class TreeWork:
    """Drives work on the rows of one tree; the first slice is done at once, so small work needs no turn of the loop."""

    def __init__(self, rows: VisibleRows, tree: KeyTree, scan_again: Callable[[Namespace], Awaitable[None]]) -> None:
        self.rows = rows
        self._tree = tree
        self._scan_again = scan_again
        self._search: Worker[None] | None = None

    def open(self, node: Namespace, *, below: bool = False, most_rows: int = ALL_BELOW_ROWS) -> None:
        """List the children of a namespace, or everything below it up to so many rows."""
        if not self._is_of_now(node):
            return
        if self.rows.store.needs_scan(node):
            self._spawn(partial(self._scan_and_open, node))
        elif below:
            self._begin(self.rows.expand_all(node, most_rows=most_rows))
        else:
            self._begin(self.rows.expand(node))

    def sort(self, order: Sort, *, to_first: bool = False) -> None:
        """Sort all rows; they take their new places together, and the cursor stays with its row or goes `to_first`."""
        work = self.rows.sort(order)
        if next(work, _DONE) is _DONE:
            self._tree.rearranged(to_first=to_first)
        else:
            self._spawn(partial(self._finish_sorting, work, to_first=to_first))

    def jump(self, typed: str) -> None:
        """Go to the first row beside the cursor's that begins with what was typed."""
        row = self._tree.cursor
        if row is not None:
            self._spawn_search(partial(self._go, self.rows.find_sibling(row, typed.encode(), ignore_case=True)))

    def reveal(self, key: bytes) -> None:
        """Open what a key lies in and go to it."""
        self._spawn_search(partial(self._go, self.rows.reveal(key)))

    def stop(self) -> None:
        """Leave everything as it is."""
        self._tree.workers.cancel_node(self._tree)

    def _begin(self, work: Slices[Any]) -> None:
        """Do the first slice now and the rest between other things."""
        with self._tree.keeping_position():
            has_more = next(work, _DONE) is not _DONE
        if has_more:
            self._spawn(partial(self._finish, work))

    async def _finish(self, work: Slices[Any]) -> None:
        await drive(work)
        with self._tree.keeping_position():
            pass

    async def _finish_sorting(self, work: Slices[None], *, to_first: bool) -> None:
        await drive(work)
        self._tree.rearranged(to_first=to_first)

    async def _scan_and_open(self, node: Namespace) -> None:
        """Have the prefix scanned again, then list what it brought."""
        await self._scan_again(node)
        if self._is_of_now(node) and not self.rows.store.needs_scan(node):
            self._begin(self.rows.expand(node))

    def _is_of_now(self, node: Namespace) -> bool:
        """Take up what is new, and say whether a namespace is not one of an earlier scan."""
        with self._tree.keeping_position():
            pass
        return node.root is self.rows.store.root

    async def _go(self, work: Slices[Row | None]) -> None:
        row = await drive(work)
        if row is not None:
            with self._tree.keeping_position():
                pass
            self._tree.move_to_row(row)

    def _spawn_search(self, work: Work) -> None:
        """Start a search; an older one has become pointless."""
        if self._search is not None:
            self._search.cancel()
        self._search = self._spawn(work)

    def _spawn(self, work: Work) -> Worker[None]:
        return self._tree.run_worker(work, group="rows", exit_on_error=False, description="tree")
