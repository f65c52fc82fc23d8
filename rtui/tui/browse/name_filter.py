"""Chooses the rows that are shown: of the whole keyspace, or of the names that contain what the user typed."""

from __future__ import annotations

from typing import Final

from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.filtered import FilteredView
from rtui.keyspace.store.store import NamespaceStore
from rtui.tui.kit.polling import drive

FEW_ROWS: Final = 200
"""Up to so many matches are opened at once."""


class NameFilter:
    """The rows that are shown; those of the whole keyspace stay as they are while filtered ones are shown."""

    def __init__(self, store: NamespaceStore) -> None:
        self._all = VisibleRows(store)
        self._before: tuple[VisibleRows, Row | None] | None = None
        self._filtered: FilteredView | None = None
        self.rows = self._all
        self.needle: bytes | None = None
        self.cursor: Row | None = None
        self.is_searching = False

    @property
    def source(self) -> NamespaceStore:
        """The store whose names are searched."""
        return self._all.store

    def use(self, store: NamespaceStore, cursor: Row | None) -> bool:
        """Show the rows of another store; True if it is the one before, whose rows are as they were left.

        `cursor` is where the rows that were shown so far are left.
        """
        before, self._before = self._before, (self._all, cursor)
        is_back = before is not None and before[0].store is store
        self._all, self.cursor = before if before is not None and is_back else (VisibleRows(store), None)
        if is_back:
            self._before = None
        self._filtered, self.needle, self.rows, self.is_searching = None, None, self._all, False
        return is_back

    @property
    def revision(self) -> int:
        """Grows with each name that is found."""
        return 0 if self._filtered is None else self._filtered.store.revision

    def choose(self, needle: bytes, cursor: Row | None) -> None:
        """Show the rows with these bytes in their names, all of them for none; `cursor` is where to come back to."""
        if self.needle is None:
            self.cursor = cursor
        if needle:
            ignore_case = needle == needle.lower()
            self._filtered = FilteredView(self._all.store, needle, ignore_case=ignore_case)
            self.needle, self.rows = needle, VisibleRows(self._filtered.store, sort=self._all.sort_order)
            self.is_searching = True
        else:
            self._filtered, self.needle, self.rows = None, None, self._all
            self.is_searching = False

    async def work(self) -> None:
        """Search all names that are loaded; later ones are matched as they come."""
        filtered = self._filtered
        if filtered is not None:
            await drive(filtered.work())
            if filtered is self._filtered:
                self.is_searching = False
                await drive(self.rows.sort(self.rows.sort_order))
                if filtered.store.keys <= FEW_ROWS:
                    await drive(self.rows.expand_all(filtered.store.root, most_rows=FEW_ROWS))
