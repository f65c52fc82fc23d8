"""The patterns of the names in a store, as a report without any other facts about keys.

The store keeps names packed, without patterns. So its names are walked over once, a few hundred at a time, and their
patterns are found in another thread, many thousands at once, by the code of an analysis: reports on names alone and of
a whole analysis have the same form and the same patterns.

The walk starts when the patterns are to be shown. Counting names as a scan brings them would slow down every scan for a
rare use, and could not follow a filter or removed names. During a scan `is_due` tells when the number of names has
grown enough to walk over them again: by half, so all walks together cost three times the last one.
"""

from __future__ import annotations

from typing import Final

from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport, Summary
from rtui.keyspace.slices import Slicer, Steps, elsewhere
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators

AT_ONCE: Final = 50_000
"""The approximate number of names whose patterns are found at once."""

GROWTH: Final = 1.5
"""The growth of the number of names during a scan at which they are walked over again."""


class NamePatterns:
    """Walks over the names of a store once."""

    def __init__(
        self, store: NamespaceStore, *, is_complete: bool, match: bytes | None = None, key_type: bytes | None = None
    ) -> None:
        """`is_complete` is whether the store has all keys, or all those that match and are of this type."""
        self.read = 0
        self.is_complete = is_complete
        self._store = store
        self._root, self._of = store.root, store.keys
        separators = tuple(store.separators.values)
        self._scope = Scope(separators=separators, match=match, key_type=key_type)

    @property
    def fraction(self) -> float:
        return min(1.0, self.read / max(1, self._of))

    def is_due(self, store: NamespaceStore, *, is_complete: bool) -> bool:
        """Return whether to walk over the names again: for another store, a scan that has ended, or many more names."""
        if store is not self._store or store.root is not self._root or is_complete is not self.is_complete:
            return True
        return store.keys != self._of if is_complete else store.keys > self._of * GROWTH

    def is_of(self, store: NamespaceStore) -> bool:
        """Return whether these are the patterns of this store, and it has not been emptied since."""
        return store is self._store and store.root is self._root

    def work(self) -> Steps[Report]:
        """Return the report; exact if every key of a complete store was read.

        The modules that find patterns must have been imported (`table_import`).
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
