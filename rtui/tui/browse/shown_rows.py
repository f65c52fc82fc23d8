"""Which rows the tree shows: those of all keys, of a filter of the server, or of the names that a text is in."""

from __future__ import annotations

from typing import Final

from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.filtered import FilteredStore
from rtui.keyspace.store.store import NamespaceStore
from rtui.tui.browse.row_weights import RowWeights
from rtui.tui.kit.command_screen import drive

FEW_ROWS: Final = 200
"""Up to so many matches are opened at once."""


class ShownRows:
    """The rows that are shown; those of the whole keyspace stay as they are while filtered ones are shown."""

    def __init__(self, store: NamespaceStore, sort: Sort, weights: RowWeights, *, is_reversed: bool = False) -> None:
        self._weights = weights
        self.all_rows = self._rows_of(store, sort, is_reversed=is_reversed)
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
            self.all_rows, self.cursor = self._sorted_rows_of(store), None
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
            self.rows = self._sorted_rows_of(self._filtered)
            self.needle, self.is_searching = needle, True

    def _rows_of(self, store: NamespaceStore, sort: Sort, *, is_reversed: bool) -> VisibleRows:
        return VisibleRows(store, sort=sort, weigher=self._weights, joins_chains=True, is_reversed=is_reversed)

    def _sorted_rows_of(self, store: NamespaceStore) -> VisibleRows:
        """Return the rows of another store, sorted as all rows are."""
        return self._rows_of(store, self.all_rows.sort_order, is_reversed=self.all_rows.is_reversed)

    async def work(self) -> None:
        """Search all names that are loaded; later ones are matched as they come."""
        filtered = self._filtered
        if filtered is not None:
            await drive(filtered.work())
            if filtered is self._filtered:
                self.is_searching = False
                await drive(self.rows.sort(self.rows.sort_order, is_reversed=self.rows.is_reversed))
                if filtered.keys <= FEW_ROWS:
                    await drive(self.rows.expand_all(filtered.root, most_rows=FEW_ROWS))
