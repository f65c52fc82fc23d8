"""The patterns of the names that a store holds, as a report in which nothing is known of keys but their names.

The store keeps names packed and knows nothing of patterns. So its names are walked over once, a few hundred at a time,
into the tree of patterns in which an analysis counts keys (`pattern_counts`), and that tree is folded as for a report:
what names alone and what a whole analysis say of a keyspace has the same form, and the same patterns.

The names are walked over when somebody wants to see their patterns, not counted as a scan brings them: that would cost
every scan time for what few look at, and it could not follow a filter or names that are removed. While a scan goes on,
`is_due` says when the names have become so many more that it is worth walking over them again; as they have to grow by
half, all walks together cost three times the last one. Of 1,000,000 names a walk takes about five seconds, in slices of
a few milliseconds.
"""

from __future__ import annotations

from typing import Final

from rtui.analysis.aggregate.aggregates import NodeReports
from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.figures import Figures
from rtui.analysis.aggregate.pattern_counts import PatternCounts
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport, Summary
from rtui.keyspace.slices import Slicer, Steps
from rtui.keyspace.store.held_names import PAGE, HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators

MOST_PATTERNS: Final = 4_096
"""So many patterns are told apart, as in a report of an analysis."""

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
        self._counts = PatternCounts(Separators(separators), ExpiryScale(0))

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
        """Return the report, in slices; exact where every key of a complete store was read."""
        slicer, names = Slicer(), HeldNames(self._store)
        batch: list[bytes] = []
        for page in names.pages():
            batch += page
            if len(batch) >= PAGE:
                self._add(batch)
                batch = []
            yield from slicer.pause()
        self._add(batch)
        patterns = yield from self._counts.summed(MOST_PATTERNS, slicer)
        root = patterns.root
        figures = Figures(root.keys, 0, samples_idle=False)
        part = yield from NodeReports(figures, slicer).part(root, is_root=True)
        yield from patterns.release(slicer)
        is_exact = self.is_complete and not names.missing and self.read == self._store.keys
        coverage = Coverage(
            CoverageKind.EXACT if is_exact else CoverageKind.PARTIAL,
            keys=0,
            total_keys=self._store.keys if self.is_complete else None,
            unread=self.read,
        )
        return Report(Head(0.0, ServerReport(""), self._scope, coverage), Summary(root=part.node))

    def _add(self, names: list[bytes]) -> None:
        if names:
            self._counts.add(InspectedBatch(None, names), 0.0)
            self.read += len(names)
