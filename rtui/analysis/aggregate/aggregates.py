"""Adds up what an inspection learns about keys, batch by batch, in memory bounded by patterns and not by keys.

A batch goes four ways: its facts to the patterns of its keys (`pattern_counts`), its names into the counts by hash slot
(`slot_counts`), its largest values into the lists of biggest keys (`top_keys`), its lengths into a sketch by type. With
a registry it goes to the counts of its entries and of what its naming rules find as well (`registry_counts`). A summary
takes a copy of the patterns as a tree (`folding`), reads it from the leaves to the root and finds expiry cliffs
(`cliffs`); `figures` turns counts into estimates where the keys are a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import structs

from rtui.analysis.aggregate.cliffs import expiry_report
from rtui.analysis.aggregate.counted import CountedNode, CountedPatterns, KeySums
from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.figures import Figures, SampledKeyspace, SampleFigures, SizeSums, sums_of
from rtui.analysis.aggregate.lengths import Lengths, Spread
from rtui.analysis.aggregate.pattern_counts import PatternCounts
from rtui.analysis.aggregate.presets import preset
from rtui.analysis.aggregate.registry_counts import RegistryCounts
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.slot_counts import SlotCounts
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.aggregate.top_keys import OverCounts, TopKeys
from rtui.analysis.columns import Asked, Columns
from rtui.analysis.estimates import Estimate, as_estimate, wilson
from rtui.analysis.report.document import (
    BigReport,
    EncodingReport,
    KeyRecord,
    Node,
    NodeKind,
    Scope,
    SlotsReport,
    Stats,
    Summary,
    TypeReport,
)
from rtui.analysis.report.leading_number import expiry_with, with_leading_numbers
from rtui.analysis.report.members import Figure, RuleSetting, StringReport
from rtui.keyspace.slices import Slicer, Slices, Steps
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import type_of
from rtui.registry.registry import Registry

ADDED_AT_ONCE: Final = 5
"""Batches that are added when one comes, held ones first, once no summary is being made."""

NOT_ASKED_S: Final = 0.0
"""Stands for the moment of asking where nothing was asked."""


class Counted(NamedTuple):
    """How many keys a summary is of."""

    keys: int = 0
    """Keys inspected."""
    unread_keys: int = 0
    """Keys of which only the name is known."""
    vanished_keys: int = 0
    """Keys that were gone when they were asked."""


class Aggregates:
    """What all keys of a pass add up to.

    A summary is made in slices, and is of one moment: batches that would change it are held and added afterwards.
    """

    def __init__(
        self,
        separators: Separators,
        *,
        scope: Scope,
        started_at_s: float,
        node_budget: int = 4096,
        registry: Registry | None = None,
        is_sample: bool = False,
    ) -> None:
        """Count by the entries and naming rules of a registry as well; `is_sample` if its bytes are to be estimated."""
        self.keys = 0
        """Keys inspected, those in held batches too."""
        self.vanished_keys = 0
        """Keys that were gone when they were asked."""
        self.unread_keys = 0
        """Keys of which only the name is known."""
        self.revision = 0
        """Grows with every change."""
        self.counted = Counted()
        """What the latest summary is of, the one that is being made if there is one."""
        self.big = TopKeys(scope.top, preset(scope.preset))
        self._encodings: dict[bytes, Counter[bytes]] = {}
        """By type, how many of the keys that were asked for their encoding have which."""
        self._columns = scope.columns
        self._lengths = Lengths(scope.columns)
        self._scale = ExpiryScale(int(started_at_s) // 60)
        self.patterns, self.slots = PatternCounts(separators, self._scale, scope.depth), SlotCounts()
        self.registered = None if registry is None else RegistryCounts(registry, is_sample=is_sample)
        self._node_budget = node_budget
        self._summaries = 0
        """Summaries being made that batches would change."""
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
        if batch.encodings is not None:
            self.add_encodings(batch.key_type or b"", batch.encodings)
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
        keys, key_type = batch.keys, batch.key_type
        if not keys:
            return
        self.patterns.add(batch, asked_at_s)
        if key_type is not None and batch.lengths is not None:
            self._lengths.add(key_type, batch.lengths, is_sampled=batch.is_sampled)
        self.slots.add(keys, batch.memory_bytes, batch.ttl_ms)
        self.big.add(batch, asked_at_s)
        if self.registered is not None:
            self.registered.add(batch)

    def summary(self, sample: SampledKeyspace | None = None) -> Steps[Summary]:
        """Return the summary of all keys of one moment; `counted` is of the same.

        With `sample` the keys are a random sample, and every figure is an estimate for the whole keyspace. To be driven
        to its end or closed, since batches are held as long as they would change what it is of.
        """
        slicer = Slicer()
        self._summaries += 1
        try:
            if self._summaries == 1:
                yield from self.add_held()
            registered = None if self.registered is None else (yield from self.registered.copy(slicer))
            self.counted = Counted(self.summed_keys, self.unread_keys, self.vanished_keys)
            big = self.big.report(), self.big.over, self.big.hottest()
            yield from slicer.pause()
            slots = self.slots.report()
            yield from slicer.pause()
            encodings = {key_type: counts.copy() for key_type, counts in self._encodings.items()}
            lists = Lists(encodings, self._lengths.copy(), big, slots, self._columns, registered)
            patterns = yield from self.patterns.summed(self._node_budget, slicer)
            return (yield from summed(patterns, lists, sample, slicer))
        finally:
            self._summaries -= 1

    @property
    def held(self) -> int:
        """How many keys are held that are to be added (`add_held`) from time to time before a summary is wanted."""
        return 0

    def add_held(self) -> Steps[None]:
        """Add what was held while a summary was made, in slices; then `big` knows every key."""
        slicer = Slicer()
        while self._held:
            self._add(*self._held.pop(0))
            yield from slicer.pause()


class Lists(NamedTuple):
    """What a summary has beside the patterns, of the same moment."""

    encodings: dict[bytes, Counter[bytes]]
    lengths: Lengths
    big: tuple[BigReport, OverCounts, tuple[KeyRecord, ...]]
    """The biggest keys, how many of a type are above the thresholds, and the hottest."""
    slots: SlotsReport
    columns: Columns
    registered: RegistryCounts | None


def summed(
    patterns: CountedPatterns[Any], lists: Lists, sample: SampledKeyspace | None, slicer: Slicer
) -> Steps[Summary]:
    """Return the summary of a moment, of which these are the patterns."""
    root, by_type = patterns.root, patterns.by_type
    total = 0 if root.tally.memory is None else root.tally.memory.sum
    figures: Figures = Figures(root.keys, total, samples_idle=lists.columns.idle is Asked.SAMPLED)
    if sample is not None:
        figures = SampleFigures(sample, root.keys, root.tally.memory or Sketch())
    reports = NodeReports(figures, slicer)
    whole = yield from reports.part(root, is_root=True)
    named, renamed = with_leading_numbers(whole.node)
    types = {key_type: tally for key_type, tally in by_type.items() if key_type is not None}
    big, over, hottest = lists.big
    registry, naming, rules = None, None, {}
    if lists.registered is not None:
        settings = lists.registered.registry.rules.settings
        rules = {rule: RuleSetting(severity.value, parameters) for rule, (severity, parameters) in settings.items()}
        samples_lengths = lists.columns.length is Asked.SAMPLED
        registry, naming = yield from lists.registered.reports(named, figures, slicer, samples_lengths=samples_lengths)
    summary = Summary(
        root=named,
        types=type_reports(types, lists.lengths.spreads(types, big.by_type_length, figures), figures),
        encodings=encoding_reports(lists.encodings, types, figures),
        big=structs.replace(big, over=lists.lengths.over(over, types, figures)),
        hottest=hottest,
        expiry=expiry_with((yield from expiry_report(patterns, figures, slicer)), renamed),
        slots=lists.slots,
        folded=reports.beyond_budget,
        registry=registry,
        naming=naming,
        rules=rules,
    )
    yield from patterns.release(slicer)
    return summary


class Part(NamedTuple):
    """A node of the report, with what is needed to add it to its parent."""

    node: Node
    weight: tuple[int, int]
    """Its bytes and keys, by which siblings are ordered."""
    names: int
    """How many names at least a pattern above it stands for; 0 where that is not known."""


class NodeReports:
    """Makes the nodes of a report from the leaves to the root."""

    def __init__(self, figures: Figures, slicer: Slicer) -> None:
        self.beyond_budget = 0
        """Keys in nodes that stand for what was beyond the budget."""
        self._figures = figures
        self._slicer = slicer

    def part(self, pattern: CountedNode, patterns_above: int = 0, *, is_root: bool = False) -> Slices[Part]:
        """Return the node of the report for a pattern and all below it."""
        patterns = patterns_above + (pattern.kind is NodeKind.PATTERN)
        below: list[Part] = []
        for child in pattern.below:
            part = yield from self.part(child, patterns)
            below.append(part)
        yield from self._slicer.pause()
        own, tally = pattern.own_keys, pattern.tally
        if pattern.kind is NodeKind.OTHER:
            self.beyond_budget += own
        stats = (
            below[0].node.stats if pattern.is_alike else _stats(tally, pattern.types, self._figures, is_whole=is_root)
        )
        is_pattern = pattern.kind is NodeKind.PATTERN
        names = max([own, *(part.names for part in below)])
        below.sort(key=lambda part: (part.node.name, part.node.separator, part.node.kind))
        below.sort(key=lambda part: part.weight, reverse=True)
        node = Node(
            name=pattern.name,
            separator=pattern.separator,
            kind=pattern.kind,
            stats=stats,
            children=tuple([part.node for part in below]),
            distinct=self._figures.names(_distinct(pattern, names if patterns == 1 else 0)) if is_pattern else None,
            holds_names=pattern.holds_any_name,
            examples=tuple(pattern.example_keys) if patterns and own else (),
        )
        weight = 0 if tally.memory is None else tally.memory.sum, tally.keys
        return Part(node, weight, names if patterns <= 1 else 0)


def _distinct(pattern: CountedNode, least: int) -> int | Estimate:
    """Return how many different segments a pattern stands for: at least so many, and no more than it has keys."""
    found = as_estimate(pattern.names or 0)
    low, value, high = (min(max(one, least), pattern.keys) for one in (found.low, found.value, found.high))
    return int(value) if low == high else Estimate(low, value, high)


def _stats(tally: KeySums, types: Mapping[bytes | None, int], figures: Figures, *, is_whole: bool = False) -> Stats:
    """Return the stats of keys of these types; of all keys, whose shares are known, if `is_whole`."""
    known_types = [(key_type, keys) for key_type, keys in types.items() if key_type is not None]
    known_types.sort(key=lambda pair: (-pair[1], pair[0]))
    memory, ttl = tally.memory, tally.ttl
    keys, share_keys = figures.all_keys() if is_whole else (figures.keys(tally.keys), figures.share_keys(tally.keys))
    memory_bytes = share_memory = no_ttl_bytes = None
    if memory is not None:
        sums = partial(sums_of, memory)
        memory_bytes = figures.memory(memory.sum, sums)
        share_memory = share_keys if is_whole and memory.sum else figures.share_memory(memory.sum, sums)
        if ttl is not None and (ttl.no_ttl_memory_bytes or not ttl.no_ttl_keys):
            lasting = SizeSums(float(ttl.no_ttl_memory_bytes), float(ttl.no_ttl_squares), ttl.no_ttl_largest)
            no_ttl_bytes = figures.memory(ttl.no_ttl_memory_bytes, lambda: lasting)

    lives = None if ttl is None else ttl.range_ms

    def bins(counts: list[int] | None) -> tuple[Figure, ...] | None:
        return None if counts is None else tuple(map(figures.keys, counts))

    return Stats(
        keys=keys,
        share_keys=share_keys,
        memory_bytes=memory_bytes,
        share_memory=share_memory,
        memory_known_keys=0 if memory is None else memory.count,
        memory=None if memory is None else figures.quantiles(memory, are_bytes=True),
        no_ttl_keys=None if ttl is None else figures.keys(ttl.no_ttl_keys),
        no_ttl_share=None if ttl is None else figures.share(ttl.no_ttl_keys, ttl.known_keys),
        no_ttl_memory_bytes=no_ttl_bytes,
        ttl=None if ttl is None else bins(ttl.bins),
        ttl_range_s=None if lives is None else (lives[0] / 1000, lives[1] / 1000),
        soonest_expiry_s=None if ttl is None or ttl.soonest_ms is None else ttl.soonest_ms / 1000,
        idle=None if tally.idle is None else figures.by_use(tally.idle, tally.keys),
        frequency=None if tally.frequency is None else figures.by_use(tally.frequency, tally.keys),
        types=tuple([(key_type, figures.keys(count)) for key_type, count in known_types]),
        strings=None if tally.strings is None else StringReport(*tally.strings),
    )


def type_reports(
    types: Mapping[bytes, KeySums], lengths: Mapping[bytes, Spread], figures: Figures
) -> tuple[TypeReport, ...]:
    """Return all types, most keys first, with the lengths of those that have any."""
    return tuple(
        TypeReport(
            name=key_type,
            stats=_stats(tally, {key_type: tally.keys}, figures),
            length=lengths[key_type].quantiles if key_type in lengths else None,
            unit=type_of(key_type).units,
            lengths=lengths[key_type].bins if key_type in lengths else None,
        )
        for key_type, tally in sorted(types.items(), key=lambda pair: (-pair[1].keys, pair[0]))
    )


def encoding_reports(
    asked: Mapping[bytes, Counter[bytes]], types: Mapping[bytes, KeySums], figures: Figures
) -> tuple[EncodingReport, ...]:
    """Return all encodings by type, most keys first: estimates unless every key of the type was asked."""
    reports = []
    for key_type, counts in sorted(asked.items(), key=lambda pair: (-pair[1].total(), pair[0])):
        total = counts.total()
        of_type = types[key_type].keys if key_type in types else total
        for encoding, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            keys, share = figures.keys(count), figures.share(count, total)
            if total < of_type:
                share, whole = wilson(count, total, population=of_type), as_estimate(figures.keys(of_type))
                keys = Estimate(share.low * whole.low, share.value * whole.value, share.high * whole.high)
            reports.append(EncodingReport(key_type=key_type, encoding=encoding, keys=keys, share=share))
    return tuple(reports)
