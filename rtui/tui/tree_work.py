"""Work on the rows of the tree that may take longer than a frame: opening, sorting, searching, each in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rtui.keyspace.namespace import Namespace
from rtui.keyspace.ordering import Sort
from rtui.keyspace.rows import Row, VisibleRows
from rtui.keyspace.slices import Slices
from rtui.tui.driving import drive
from rtui.tui.session import Session
from rtui.tui.widgets.key_tree import KeyTree

T = TypeVar("T")


class TreeWork:
    """Drives sliced work on the rows of one tree; the first slice is done at once, so small work needs no turn of the loop."""

    def __init__(self, session: Session, rows: VisibleRows, tree: KeyTree) -> None:
        self._session = session
        self._rows = rows
        self._tree = tree
        self._search: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, node: Namespace, *, below: bool = False) -> None:
        """List the children of a namespace, or everything below it."""
        if self._session.store.needs_scan(node):
            self._spawn(self._scan_and_open(node))
            return
        work: Slices[Any] = self._rows.expand_all(node) if below else self._rows.expand(node)
        self._begin(work)

    def sort(self, order: Sort) -> None:
        """Sort all rows; they take their new places together."""
        self._begin(self._rows.sort(order))

    def jump(self, typed: str) -> None:
        """Go to the first row beside the cursor's that begins with what was typed."""
        row = self._tree.cursor
        if row is not None and typed:
            self._spawn_search(self._go(self._rows.find_sibling(row, typed.encode(), ignore_case=True)))

    def reveal(self, key: bytes) -> None:
        """Open what a key lies in and go to it."""
        self._spawn_search(self._go(self._rows.reveal(key)))

    def stop(self) -> None:
        """Leave everything as it is."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Slices[Any]) -> None:
        """Do the first slice now and the rest between other things."""
        done = object()
        with self._tree.keeping_place():
            more = next(work, done) is not done
        if more:
            self._spawn(self._finish(work))

    async def _finish(self, work: Slices[Any]) -> None:
        await drive(work)
        with self._tree.keeping_place():
            pass

    async def _scan_and_open(self, node: Namespace) -> None:
        """Have the prefix scanned again, then list what it brought."""
        await self._session.open_namespace(node)
        if not self._session.store.needs_scan(node):
            self._begin(self._rows.expand(node))

    async def _go(self, work: Slices[Row | None]) -> None:
        row = await drive(work)
        if row is not None:
            with self._tree.keeping_place():
                pass
            self._tree.move_to_row(row)

    def _spawn_search(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a search; an older one has become pointless."""
        if self._search is not None:
            self._search.cancel()
        self._search = self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name="rtui tree work")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
