"""Adds up what a pass learns of keys, batch by batch, in memory that is bounded by patterns and not by keys."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Final

from rtui.analysis.aggregate.buffers import Inspected, Layout
from rtui.analysis.aggregate.cliffs import expiry_report
from rtui.analysis.aggregate.expiry_bins import ExpiryBins, ExpiryScale, keep_within
from rtui.analysis.aggregate.figures import Exact, Figures, Sampled, SampleOf
from rtui.analysis.aggregate.pattern_tree import PatternTree
from rtui.analysis.aggregate.placement import NO_FACTS, Places
from rtui.analysis.aggregate.presets import preset
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.slot_load import SlotLoad
from rtui.analysis.aggregate.summary import Rollup, encoding_reports, type_reports
from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.analysis.aggregate.undecided import Undecided
from rtui.analysis.report.document import Scope, Summary
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.segments import Separators

MOST_WAITING: Final = 8_192
"""Rows that wait in buffers, all together, to be counted many at a time."""

MOST_EXPIRY_BINS: Final = 65_536
"""Bins of expiries in all cells together: about 18 MB."""

KEYS_BETWEEN_FITS: Final = 32_768
"""So many keys are taken up before the bins of expiries are counted again."""

_values_of: Final = attrgetter("values")

UNASKED_S: Final = 0.0
"""Stands for the moment of asking where nothing was asked."""

HELD_AT_ONCE: Final = 4
"""Held batches that are taken up with each new one, once they may."""


class Aggregates:
    """What all keys of a pass add up to.

    While a summary is being made, batches are held back and taken up afterwards, so that it is of one moment: drive it
    to its end, or close it.
    """

    def __init__(self, separators: Separators, *, scope: Scope, started_at_s: float, node_budget: int = 4096) -> None:
        self.keys = 0
        """Keys inspected, those in held batches too."""
        self.vanished = 0
        """Keys that were gone when they were asked."""
        self.unread_keys = 0
        """Keys of which only the name is known."""
        self.revision = 0
        """Grows with every change."""
        self.big = TopKeys(scope.top, preset(scope.preset))
        self.slots = SlotLoad()
        self.encodings: dict[bytes, Counter[bytes]] = {}
        """By type, how many of the keys that were asked for their encoding have which."""
        self.lengths: dict[bytes, Sketch] = {}
        """By type, the lengths of the keys."""
        self._scale = ExpiryScale(int(started_at_s) // 60)
        self.tree = PatternTree(separators, self._scale, depth=scope.depth, budget=node_budget)
        self._places = Places(self.tree, separators)
        self._next = 0
        self._waiting = 0
        self._unfitted = 0
        self._summaries = 0
        self._held: list[tuple[Inspected, float]] = []

    @property
    def summed_keys(self) -> int:
        """Keys inspected that are in the figures already: what comes while they are added up is held back."""
        return self.keys - sum(len(batch.keys) for batch, asked_at_s in self._held if asked_at_s != UNASKED_S)

    def add(self, batch: Inspected, asked_at_s: float) -> None:
        """Take up keys that were asked at this moment, in seconds since the epoch."""
        self.keys += len(batch.keys)
        self.revision += 1
        if self._summaries:
            self._held.append((batch, asked_at_s))
            return
        if self._held:
            self._take_held(HELD_AT_ONCE)
        self._take(batch, asked_at_s)

    def add_encodings(self, kind: bytes, encodings: Sequence[bytes]) -> None:
        """Take up the encodings of keys of one type that were chosen whatever their encoding is."""
        self.encodings.setdefault(kind, Counter()).update(encodings)
        self.revision += 1

    def vanish(self, count: int) -> None:
        """Take note of keys that went between the listing and the look."""
        self.vanished += count
        self.revision += 1

    def unread(self, keys: Sequence[bytes]) -> None:
        """Count keys of which only the name is known, and not always all of it; they are in the tree and the slots."""
        self.unread_keys += len(keys)
        self.keys -= len(keys)
        self.add(Inspected(None, keys), UNASKED_S)

    def learn(self, key: bytes, *, length: int | None = None, encoding: bytes | None = None) -> None:
        """Complete the record of a big key."""
        self.big.learn(key, length=length, encoding=encoding)
        self.revision += 1

    def merge(self, other: Aggregates) -> None:
        """Take up all that another one has, which is not used any more then."""
        self.settle()
        other.settle()
        self.keys += other.keys
        self.vanished += other.vanished
        self.unread_keys += other.unread_keys
        self.revision += 1
        for kind, counts in other.encodings.items():
            self.encodings.setdefault(kind, Counter()).update(counts)
        for kind, lengths in other.lengths.items():
            self.lengths.setdefault(kind, Sketch()).merge(lengths)
        self.tree.merge(other.tree)
        self._places.undecided.adopt(other._places.undecided)
        self._forget_merged()
        self.big.merge(other.big)
        self.slots.merge(other.slots)

    def settle(self) -> None:
        """Count everything that waits; not while a summary is being made."""
        self._take_held(len(self._held))
        self._places.flush()
        self._waiting = 0

    def summary(
        self, sample: SampleOf | None = None, *, is_final: bool = True
    ) -> Generator[Summary | None, None, None]:
        """Say what the keys add up to: None after every few milliseconds of work, at last the summary.

        With `sample` the keys are a random sample, and every figure is an estimate for the whole keyspace. A summary
        that is not final leaves open which names will be among the heavy ones; after a final one, that is decided.
        """
        self._summaries += 1
        try:
            summary = yield from self._summary(sample, is_final=is_final)
        finally:
            self._summaries -= 1
            if not self._summaries:
                self._places.undecided.hide()
        yield summary

    def _summary(self, sample: SampleOf | None, *, is_final: bool) -> Slices[Summary]:
        root, slicer = self.tree.root, Slicer()
        while self._held and self._summaries == 1:
            self._take(*self._held.pop(0))
            if slicer.over():
                yield
        for buffer in self._places.buffers:
            self._waiting -= buffer.flush()
            if slicer.over():
                yield
        if self._summaries == 1:
            self._decide(is_final=is_final)
        if slicer.over():
            yield
        figures = self._figures(sample)
        rollup = Rollup(figures, self._scale, slicer)
        node = yield from rollup.root(root)
        expiry = yield from expiry_report(root, figures, self._scale, slicer)
        return Summary(
            root=node,
            types=type_reports(rollup.types, self.lengths, figures),
            encodings=encoding_reports(self.encodings, rollup.types, figures),
            big=self.big.report(figures),
            hottest=self.big.hottest(),
            expiry=expiry,
            slots=self.slots.report(),
            folded=rollup.beyond_budget,
        )

    def _figures(self, sample: SampleOf | None) -> Figures:
        """How to say what was counted."""
        tallies = list(self.tree.root.tallies())
        keys = sum(tally.keys for tally in tallies)
        sizes = [tally.memory for tally in tallies if tally.memory is not None]
        if sample is None:
            return Exact(keys, sum(sketch.sum for sketch in sizes))
        memory = Sketch()
        for sketch in sizes:
            memory.merge(sketch)
        return Sampled(sample, keys, memory)

    def _decide(self, *, is_final: bool) -> None:
        """Decide which names get a node, if that is wanted or due; what stays open is counted where it is seen."""
        undecided = self._places.undecided
        if is_final or undecided.is_full:
            undecided.decide(is_final=is_final)
            self._waiting = 0
            undecided.trim(is_final=is_final)
            self._forget_merged()
        undecided.show()

    def _forget_merged(self) -> None:
        if self._places.forget_poured():
            self._waiting = sum(buffer.keys for buffer in self._places.buffers)

    def _take_held(self, most: int) -> None:
        held, self._held = self._held[:most], self._held[most:]
        for batch, asked_at_s in held:
            self._take(batch, asked_at_s)

    def _take(self, batch: Inspected, asked_at_s: float) -> None:
        keys = batch.keys
        if not keys:
            return
        layout, columns = _laid_out(batch, asked_at_s)
        rows = zip(*columns, strict=False) if columns else repeat(NO_FACTS)
        found, homeless = self._places.find(keys, batch.kind, layout)
        deque(map(list.extend, map(_values_of, found), rows), maxlen=0)
        for index, slot in homeless:
            self._places.undecided.add(Undecided(keys[index], batch.kind, layout, _row(columns, index), slot))
        if batch.kind is not None and batch.lengths is not None:
            self.lengths.setdefault(batch.kind, Sketch()).add(batch.lengths)
        self.slots.add(keys, batch.memory_bytes)
        self.big.add(batch, asked_at_s)
        self._waiting += len(keys) - len(homeless)
        self._unfitted += len(keys)
        if self._places.undecided.is_full:
            self._places.undecided.decide(is_final=False)
            self._waiting = 0
            self._places.undecided.trim(is_final=False)
            self._forget_merged()
        self._count_some()
        if self._unfitted > KEYS_BETWEEN_FITS:
            self._unfitted = 0
            keep_within(MOST_EXPIRY_BINS, self._expiries())

    def _expiries(self) -> Iterator[ExpiryBins]:
        for tally in self.tree.root.tallies():
            if tally.life is not None and tally.life.expiries is not None:
                yield tally.life.expiries

    def _count_some(self) -> None:
        """Count buffer after buffer until not too much waits."""
        buffers = self._places.buffers
        while self._waiting > MOST_WAITING:
            self._next = (self._next + 1) % len(buffers)
            self._waiting -= buffers[self._next].flush()


def _laid_out(batch: Inspected, asked_at_s: float) -> tuple[Layout, list[Iterable[int]]]:
    """The columns of a batch that are there, and their names."""
    columns: dict[str, Iterable[int] | None] = {
        "ttl_ms": batch.ttl_ms,
        "memory_bytes": batch.memory_bytes,
        "idle_s": batch.idle_s,
        "frequency": batch.frequency,
        "asked_at_ms": None if batch.ttl_ms is None else repeat(int(asked_at_s * 1000)),
    }
    there = {name: column for name, column in columns.items() if column is not None}
    return tuple(there), list(there.values())


def _row(columns: Sequence[Iterable[int]], index: int) -> tuple[int, ...]:
    """What the columns say of one key."""
    return tuple(column[index] if isinstance(column, Sequence) else next(iter(column)) for column in columns)
