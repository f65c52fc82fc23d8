"""Counts keys by their patterns, in a tree.

A batch goes as rows of facts to the nodes of its keys' patterns (`placement`, `pattern_tree`). From time to time rows
that wait are counted many at a time (`tally`), nodes of light names merged, and bins of expiries coarsened.

What is counted depends on the batches alone, not on when rows are counted.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

from rtui.analysis.aggregate.expiry_bins import ExpiryBins, ExpiryScale, coarsen_to_budget
from rtui.analysis.aggregate.folding import folded
from rtui.analysis.aggregate.pattern_tree import NO_FACTS, Limits, PatternNode, PatternTree
from rtui.analysis.aggregate.placement import Placement
from rtui.analysis.aggregate.sums import SummedPatterns
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.segments import Separators

MOST_WAITING: Final = 16_384
"""Rows that wait in nodes, all together, to be counted many at a time."""

MOST_UNNAMED: Final = 2_048
"""Keys whose names wait to be looked at many at a time."""

FEWEST_ROWS: Final = 8
"""Nodes with fewer rows are passed over every second time that rows are counted."""


class PatternCounts:
    """Counts the facts of keys in a tree of patterns."""

    def __init__(
        self, separators: Separators, scale: ExpiryScale, depth: int | None = None, limits: Limits | None = None
    ) -> None:
        self.tree = PatternTree(separators, scale, depth=depth, limits=limits)
        self._placement = Placement(self.tree, separators)
        self._to_flush: list[PatternNode] = []
        """Nodes whose rows are counted next, from the last one on."""
        self._fewest_rows = 1
        self._since_coarsening = 0
        self._unnamed: defaultdict[PatternNode, list[bytes]] = defaultdict(list)
        """Keys by their node, of which no more than their facts has been looked at."""
        self._unnamed_keys = 0

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        """Add keys, at least one, that were asked at this moment, in seconds since the epoch."""
        keys, tree = batch.keys, self.tree
        columns: dict[str, Sequence[int]] = {
            name: column
            for name in ("ttl_ms", "memory_bytes", "idle_s", "frequency")
            if (column := getattr(batch, name)) is not None
        }
        if (lengths := batch.string_lengths) is not None:
            columns["lengths"] = lengths
        if batch.ttl_ms is not None:
            columns["asked_at_ms"] = [int(asked_at_s * 1000)] * len(keys)
        found = self._placement.find(keys, batch.key_type, tuple(columns))
        rows = zip(*columns.values(), strict=True) if columns else repeat(NO_FACTS)
        deque(map(list.extend, found, rows), maxlen=0)
        tree.waiting += len(keys)
        tree.unweighed.update(found)
        for one, key in zip(found, keys, strict=True):
            self._unnamed[one.node].append(key)
        self._unnamed_keys += len(keys)
        if tree.is_too_large or self._unnamed_keys > MOST_UNNAMED:
            self._name_keys()
        tree.shrink()
        while tree.waiting > MOST_WAITING:
            if not self._to_flush:
                self._to_flush = list(tree.root.walk())
                self._fewest_rows = 1 if self._fewest_rows > 1 else FEWEST_ROWS
            tree.flush(self._to_flush.pop(), self._fewest_rows)
        self._since_coarsening += len(keys)
        if self._since_coarsening > tree.limits.keys_between_coarsening:
            self._since_coarsening = 0
            self._coarsen()

    def summed(self, budget: int, slicer: Slicer) -> Slices[SummedPatterns]:
        """Return what at most so many patterns add up to; nothing may be added meanwhile."""
        self._name_keys()
        yield from slicer.pause()
        root = yield from folded(self.tree, budget, slicer)
        patterns = SummedPatterns(root, self.tree.scale)
        yield from patterns.add_up(slicer)
        return patterns

    def _name_keys(self) -> None:
        for node, keys in self._unnamed.items():
            node.name_keys(keys, self.tree.segments)
        self._unnamed.clear()
        self._unnamed_keys = 0

    def _coarsen(self) -> None:
        """Coarsen bins of expiries where there are too many; every row that waits may need one."""
        tree, most = self.tree, self.tree.limits.expiry_bins
        if sum(map(len, self._expiries())) + tree.waiting <= most:
            return
        for node in tree.root.walk():
            tree.flush(node, 1)
        coarsen_to_budget(most, self._expiries())

    def _expiries(self) -> Iterator[ExpiryBins]:
        """Yield the bins of all nodes and types."""
        for node in self.tree.root.walk():
            for _, tally in sorted(node.tallies.items(), key=lambda pair: (pair[0] is not None, pair[0] or b"")):
                if tally.ttl is not None and tally.ttl.expiries is not None:
                    yield tally.ttl.expiries
