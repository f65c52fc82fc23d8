"""Adds up what an inspection learns about keys, batch by batch, in memory bounded by patterns and not by keys.

A batch goes four ways: its rows of facts into the buffers of the keys' patterns (`placement`, `tally`), its names into
the counts by hash slot (`slot_counts`), its largest values into the lists of biggest keys (`top_keys`), its lengths
into a sketch by type. From time to time waiting rows are counted, names without a node decided on, and
bins of expiries coarsened. A summary reads the tree from the leaves to the root (`summary`) and finds expiry cliffs
(`cliffs`); `figures` turns counts into estimates where the keys are a sample.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Final

from rtui.analysis.aggregate.batch import InspectedBatch
from rtui.analysis.aggregate.cliffs import expiry_report
from rtui.analysis.aggregate.expiry_bins import ExpiryScale, coarsen_to_budget
from rtui.analysis.aggregate.figures import Figures, SampledKeyspace, SampleFigures
from rtui.analysis.aggregate.pattern_tree import PatternTree
from rtui.analysis.aggregate.placement import NO_FACTS, Placement, UnplacedKey
from rtui.analysis.aggregate.presets import preset
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.slot_counts import SlotCounts
from rtui.analysis.aggregate.summary import NodeReports, encoding_reports, type_reports
from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.analysis.report.document import Scope, Summary
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.segments import Separators

MOST_WAITING: Final = 8_192
"""Rows that wait in buffers, all together, to be counted many at a time."""

MOST_EXPIRY_BINS: Final = 65_536
"""Bins of expiries of all patterns and types together: about 18 MB."""

KEYS_BETWEEN_COARSENING: Final = 32_768
"""After so many keys the bins of expiries are counted again."""

ADDED_AT_ONCE: Final = 5
"""Batches that are added when one comes, held ones first, once no summary is being made."""

NOT_ASKED_S: Final = 0.0
"""Stands for the moment of asking where nothing was asked."""

_values_of: Final = attrgetter("values")


class Aggregates:
    """What all keys of a pass add up to.

    A summary is made in slices, and is of one moment: batches that come meanwhile are held and added afterwards. So
    drive its generator to the end, or close it.
    """

    def __init__(self, separators: Separators, *, scope: Scope, started_at_s: float, node_budget: int = 4096) -> None:
        self.keys = 0
        """Keys inspected, those in held batches too."""
        self.vanished_keys = 0
        """Keys that were gone when they were asked."""
        self.unread_keys = 0
        """Keys of which only the name is known."""
        self.revision = 0
        """Grows with every change."""
        self.big = TopKeys(scope.top, preset(scope.preset))
        self._slots = SlotCounts()
        self._encodings: dict[bytes, Counter[bytes]] = {}
        """By type, how many of the keys that were asked for their encoding have which."""
        self._lengths: dict[bytes, Sketch] = {}
        """By type, the lengths of the keys."""
        self._scale = ExpiryScale(int(started_at_s) // 60)
        self.tree = PatternTree(separators, self._scale, depth=scope.depth, budget=node_budget)
        self._placement = Placement(self.tree, separators)
        self._next_buffer = 0
        self._waiting = 0
        self._since_coarsening = 0
        self._summaries = 0
        """Summaries being made."""
        self._held: list[tuple[InspectedBatch, float]] = []

    @property
    def summed_keys(self) -> int:
        """Keys inspected that a summary counts: not those in held batches."""
        return self.keys - sum(len(batch.keys) for batch, asked_at_s in self._held if asked_at_s != NOT_ASKED_S)

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        """Add keys that were asked at this moment, in seconds since the epoch."""
        if asked_at_s != NOT_ASKED_S:
            self.keys += len(batch.keys)
        self.revision += 1
        self._held.append((batch, asked_at_s))
        if not self._summaries:
            ready, self._held = self._held[:ADDED_AT_ONCE], self._held[ADDED_AT_ONCE:]
            for one in ready:
                self._add(*one)

    def add_unread(self, keys: Sequence[bytes]) -> None:
        """Add keys of which only the name, or its beginning, is known: to the tree and the slots only."""
        self.unread_keys += len(keys)
        self.add(InspectedBatch(None, keys), NOT_ASKED_S)

    def add_vanished(self, count: int) -> None:
        """Count keys that were gone between the listing and the inspection."""
        self.vanished_keys += count
        self.revision += 1

    def add_encodings(self, key_type: bytes, encodings: Sequence[bytes]) -> None:
        """Add the encodings of keys of one type that were chosen independently of their encoding."""
        self._encodings.setdefault(key_type, Counter()).update(encodings)
        self.revision += 1

    def _add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        keys, key_type, placement = batch.keys, batch.key_type, self._placement
        if not keys:
            return
        columns: dict[str, Sequence[int]] = {
            name: column
            for name in ("ttl_ms", "memory_bytes", "idle_s", "frequency")
            if (column := getattr(batch, name)) is not None
        }
        if batch.ttl_ms is not None:
            columns["asked_at_ms"] = [int(asked_at_s * 1000)] * len(keys)
        layout = tuple(columns)
        found, unplaced = placement.find(keys, key_type, layout)
        rows = zip(*columns.values(), strict=True) if columns else repeat(NO_FACTS)
        deque(map(list.extend, map(_values_of, found), rows), maxlen=0)
        for index, missing in unplaced:
            row = tuple(column[index] for column in columns.values())
            size_bytes = 0 if batch.memory_bytes is None else batch.memory_bytes[index]
            placement.hold(UnplacedKey(keys[index], key_type, layout, row, size_bytes, missing))
        if key_type is not None and batch.lengths is not None:
            self._lengths.setdefault(key_type, Sketch()).add(batch.lengths)
        self._slots.add(keys, batch.memory_bytes)
        self.big.add(batch, asked_at_s)
        self._waiting += len(keys) - len(unplaced)
        if placement.is_full:
            placement.decide(is_final=False)
            self._waiting = 0
        while self._waiting > MOST_WAITING:
            self._next_buffer = (self._next_buffer + 1) % len(placement.buffers)
            self._waiting -= placement.buffers[self._next_buffer].flush()
        self._since_coarsening += len(keys)
        if self._since_coarsening > KEYS_BETWEEN_COARSENING:
            self._since_coarsening = 0
            ttls = (tally.ttl for tally in self.tree.root.all_tallies() if tally.ttl is not None)
            coarsen_to_budget(MOST_EXPIRY_BINS, (ttl.expiries for ttl in ttls if ttl.expiries is not None))

    def summary(
        self, sample: SampledKeyspace | None = None, *, is_final: bool = True
    ) -> Generator[Summary | None, None, None]:
        """Yield None after every few milliseconds of work, and at last the summary.

        With `sample` the keys are a random sample, and every figure is an estimate for the whole keyspace. A final
        summary decides which names are heavy enough for a node; one of a running pass leaves that open.
        """
        root, slicer, placement = self.tree.root, Slicer(), self._placement
        self._summaries += 1
        try:
            if self._summaries == 1:
                yield from self.add_held()
            for buffer in placement.buffers:
                self._waiting -= buffer.flush()
                yield from slicer.pause()
            if self._summaries == 1:
                if is_final or placement.is_full:
                    placement.decide(is_final=is_final)
                    self._waiting = 0
                placement.show()
            yield from slicer.pause()
            figures = self._figures(sample)
            reports = NodeReports(figures, self._scale, slicer)
            whole = yield from reports.part(root, is_root=True)
            types = {key_type: tally for key_type, tally in whole.by_type.items() if key_type is not None}
            summary = Summary(
                root=whole.node,
                types=type_reports(types, self._lengths, figures),
                encodings=encoding_reports(self._encodings, types, figures),
                big=self.big.report(figures),
                hottest=self.big.hottest(),
                expiry=(yield from expiry_report(root, figures, self._scale, slicer)),
                slots=self._slots.report(),
                folded=reports.beyond_budget,
            )
        finally:
            self._summaries -= 1
            if not self._summaries:
                placement.hide()
        yield summary

    def add_held(self) -> Slices[None]:
        """Add what was held while a summary was made, in slices, so that `big` knows every key."""
        slicer = Slicer()
        while self._held:
            self._add(*self._held.pop(0))
            yield from slicer.pause()

    def _figures(self, sample: SampledKeyspace | None) -> Figures:
        tallies = list(self.tree.root.all_tallies())
        keys = sum(tally.keys for tally in tallies)
        sketches = [tally.memory for tally in tallies if tally.memory is not None]
        if sample is None:
            return Figures(keys, sum(sketch.sum for sketch in sketches))
        memory = Sketch()
        for sketch in sketches:
            memory.merge(sketch)
        return SampleFigures(sample, keys, memory)
