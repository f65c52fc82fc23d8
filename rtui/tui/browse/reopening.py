"""What was open in the tree when its store was emptied, opened again as the names come back.

A scan that begins again fills an empty store. Namespaces are opened as soon as they have a key, so that the rows look
as they did, and the cursor comes back when its row is there: a key may be among the last that the scan lists. Each try
looks for all that has not come yet, so there is one whenever the keyspace has grown by a quarter, and one at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rtui.keyspace.rows.rows import Row, RowKind, VisibleRows
from rtui.keyspace.slices import Slices

GROWTH: Final = 1.25
"""A try is worth while when there are so many times the keys of the last one."""


class Reopening:
    """Opens namespaces again, and finds the row of the cursor again."""

    def __init__(self, rows: VisibleRows, prefixes: Iterable[bytes], cursor: Row | None, line: int) -> None:
        """`cursor` is its row in the store as it was; `line` is where that was on the screen."""
        self.rows = rows
        self.line = line
        self.is_over = False
        """Whether everything has come, or the scan has ended without it."""
        self.waiting = list(prefixes)
        """The prefixes of the namespaces that have not come yet."""
        self._name = None if cursor is None else cursor.key()
        self._is_key = cursor is not None and cursor.kind is RowKind.KEY
        self._is_trying = False
        self._tried_keys = 0

    def begins(self, *, complete: bool) -> bool:
        """Return whether to try now, and begin if so; `complete` says that no more names will come."""
        keys = self.rows.store.keys
        is_worth_while = complete or keys < self._tried_keys or keys > self._tried_keys * GROWTH
        if self._is_trying or self.is_over or not is_worth_while:
            return False
        self._is_trying, self._tried_keys = True, keys
        return True

    def work(self, *, complete: bool) -> Slices[Row | None]:
        """Open what has come, in slices; return the row of the cursor once it is there.

        In the end that is the row of what it was in, if it has not come.
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
