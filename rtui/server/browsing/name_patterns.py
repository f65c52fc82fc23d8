"""The patterns of the names that a store holds, as a report in which nothing is known of keys but their names.

The store keeps names packed and knows nothing of patterns. So its names are walked over once, a few hundred at a time,
and their patterns are found as those of an analysis are, many thousands at once, in another thread: what names alone
and what a whole analysis say of a keyspace has the same form, and the same patterns.

The names are walked over when somebody wants to see their patterns, not counted as a scan brings them: that would cost
every scan time for what few look at, and it could not follow a filter or names that are removed. While a scan goes on,
`is_due` says when the names have become so many more that it is worth walking over them again; as they have to grow by
half, all walks together cost three times the last one.
"""

from __future__ import annotations

from typing import Final

from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport, Summary
from rtui.keyspace.slices import Slicer, Steps, elsewhere
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators

AT_ONCE: Final = 50_000
"""Names whose patterns are found at once, about."""

GROWTH: Final = 1.5
"""During a scan the names are walked over again when they have become more by this factor."""


class NamePatterns:
    """Walks over the names of a store once."""

    def __init__(
        self,
        store: NamespaceStore,
        *,
        is_complete: bool,
        match: bytes | None = None,
        key_type: bytes | None = None,
    ) -> None:
        """`is_complete` says that the store has all keys, or all of those that match and are of this type."""
        self.read = 0
        """Names read so far."""
        self.is_complete = is_complete
        self._store = store
        self._root, self._of = store.root, store.keys
        separators = tuple(store.separators.values)
        self._scope = Scope(separators=separators, match=match, key_type=key_type)

    @property
    def fraction(self) -> float:
        """How much has been read, 0 … 1."""
        return min(1.0, self.read / max(1, self._of))

    def is_due(self, store: NamespaceStore, *, is_complete: bool) -> bool:
        """Return whether the names are to be walked over again: others, all at last, or many more."""
        if store is not self._store or store.root is not self._root or is_complete is not self.is_complete:
            return True
        return store.keys != self._of if is_complete else store.keys > self._of * GROWTH

    def is_of(self, store: NamespaceStore) -> bool:
        """Return whether these are patterns of the names of this store, which was not emptied since."""
        return store is self._store and store.root is self._root

    def work(self) -> Steps[Report]:
        """Return the report; exact where every key of a complete store was read.

        What finds the patterns must have been imported (`table_import`).
        """
        from rtui.table.aggregates import NameTree  # noqa: PLC0415 - imports Polars

        tree, slicer, names = NameTree(Separators(self._scope.separators)), Slicer(), HeldNames(self._store)
        batch: list[bytes] = []
        for page in names.pages():
            batch += page
            self.read += len(page)
            if len(batch) >= AT_ONCE:
                yield from elsewhere(tree.add(batch))
                batch = []
            yield from slicer.pause()
        yield from elsewhere(tree.add(batch))
        root = yield from elsewhere(tree.root())
        is_exact = self.is_complete and not names.missing and self.read == self._store.keys
        coverage = Coverage(
            CoverageKind.EXACT if is_exact else CoverageKind.PARTIAL,
            keys=0,
            total_keys=self._store.keys if self.is_complete else None,
            unread=self.read,
        )
        return Report(Head(0.0, ServerReport(""), self._scope, coverage), Summary(root=root))
