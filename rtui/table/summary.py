"""The summary of a report, made from the sums over keys: nodes from the leaves to the root, types, expiries, a
registry.

`rtui.analysis.report.figures` turns counts into estimates if the keys are a sample. If the length is asked of one key
in eight, it stands for those of seven others. Other keys are asked because they may be among the longest: their lengths
tell nothing of the rest, unless together all keys of a type were asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from heapq import nlargest
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import structs

from rtui.analysis.columns import Asked, Columns
from rtui.analysis.estimates import Estimate, as_estimate, wilson
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import (
    BigReport,
    EncodingReport,
    KeyRecord,
    Node,
    NodeKind,
    Quantiles,
    SlotsReport,
    Stats,
    Summary,
    TypeReport,
)
from rtui.analysis.report.expiries import FALSE_ALARMS, bin_memory, find_cliffs, timeline_bins
from rtui.analysis.report.figures import Counted, Figures, SampledKeyspace, SampleFigures, SizeSums, Sketch, sums_of
from rtui.analysis.report.members import LENGTH_EDGES, Cliff, ExpiryReport, Figure, RuleSetting, StringReport, Timeline
from rtui.analysis.report.namespaces import expiry_with, with_leading_numbers
from rtui.keyspace.slices import Slicer, Slices, Steps
from rtui.keyspace.text.display import display
from rtui.keyspace.text.identifiers import as_name
from rtui.keyspace.types import type_of
from rtui.table.folding import FoldedNode, Tally
from rtui.table.node_sums import TablePatterns, bytes_of
from rtui.table.partial import Partial
from rtui.table.registered import RegistryCounts
from rtui.table.sums import whole
from rtui.table.tops import OverCounts

MOST_TIMELINES: Final = 12
FEWEST_EXPIRING: Final = 2
"""So many namespaces get a timeline, besides the whole keyspace; one in which fewer keys expire gets none."""


class Biggest(NamedTuple):
    """The biggest keys, how many of a type are above the thresholds, and the hottest ones."""

    listed: BigReport
    over: OverCounts
    hottest: tuple[KeyRecord, ...]


class Moment(NamedTuple):
    """The sums over keys at one moment."""

    patterns: TablePatterns
    biggest: Biggest
    counted: Counted
    slots: SlotsReport
    lengths: Lengths
    encodings: dict[bytes, Counter[bytes]]
    registered: RegistryCounts | None


def summed(moment: Moment, columns: Columns, sample: SampledKeyspace | None, slicer: Slicer) -> Steps[Summary]:
    """Return the summary of a moment."""
    patterns, biggest, registered = moment.patterns, moment.biggest, moment.registered
    root, by_type = patterns.root, patterns.by_type
    total = 0 if root.tally.memory is None else root.tally.memory.sum
    figures: Figures = Figures(root.keys, total, samples_idle=columns.idle is Asked.SAMPLED)
    if sample is not None:
        figures = SampleFigures(sample, root.keys, root.tally.memory or Sketch())
    reports = NodeReports(figures, slicer)
    whole = yield from reports.part(root, is_root=True)
    named, renamed = with_leading_numbers(whole.node)
    types = {key_type: tally for key_type, tally in by_type.items() if key_type is not None}
    big = biggest.listed
    registry, naming, rules = None, None, {}
    if registered is not None:
        settings = registered.registry.rules.settings
        rules = {rule: RuleSetting(severity.value, parameters) for rule, (severity, parameters) in settings.items()}
        samples_lengths = columns.length is Asked.SAMPLED
        registry, naming = yield from registered.reports(named, figures, slicer, samples_lengths=samples_lengths)
    summary = Summary(
        root=named,
        types=type_reports(types, moment.lengths.spreads(types, big.by_type_length, figures), figures),
        encodings=encoding_reports(moment.encodings, types, figures),
        big=structs.replace(big, over=moment.lengths.over(biggest.over, types, figures)),
        hottest=biggest.hottest,
        expiry=expiry_with((yield from expiry_report(patterns, figures, slicer)), renamed),
        slots=moment.slots,
        folded=reports.beyond_budget,
        registry=registry,
        naming=naming,
        rules=rules,
    )
    yield from patterns.release(slicer)
    return summary


_Path: TypeAlias = tuple[FoldedNode, ...]
"""The path to a namespace, from the first level on."""


def expiry_report(patterns: TablePatterns, figures: Figures, slicer: Slicer) -> Slices[ExpiryReport]:
    """Return timelines and cliffs of the whole keyspace and of the namespaces in which most keys expire."""
    paths: list[_Path] = []
    if patterns.root.expiring:
        paths = [(), *(yield from _most_expiring(patterns.root, slicer))]
    nodes = [path[-1] if path else patterns.root for path in paths]
    expiries = yield from patterns.expiries(nodes, slicer)
    timelines, cliffs = [], []
    for path, node, (bins, largest) in zip(paths, nodes, expiries, strict=True):
        is_other = node.kind is NodeKind.OTHER
        prefix = display(b"".join(_shown(one) + one.separator for one in (path[:-1] if is_other else path)))
        names, label = tuple(one.name for one in path), f"{prefix}{OTHER}" if is_other else prefix or "all keys"
        memory = partial(bin_memory, figures=figures, largest=largest)
        columns = timeline_bins(bins, keys=lambda one: figures.keys(one.keys), memory_bytes=memory)
        timelines.append(Timeline(path=names, label=label, bins=columns))
        yield from slicer.pause()
        cliffs += find_cliffs(bins, keys=node.keys, path=names, label=label, figures=figures, largest=largest)
        yield from slicer.pause()
    cliffs = [one for one in cliffs if not any(_explains(other, one) for other in cliffs)]
    cliffs.sort(key=lambda cliff: (-as_estimate(cliff.keys).value, cliff.start_s))
    return ExpiryReport(timelines=tuple(timelines), cliffs=tuple(cliffs), false_alarms=FALSE_ALARMS * len(timelines))


def _shown(node: FoldedNode) -> bytes:
    return as_name(node.name) if node.kind is NodeKind.LITERAL else node.name


def _most_expiring(root: FoldedNode, slicer: Slicer) -> Slices[list[_Path]]:
    """Return the namespaces in which most keys expire, each a proper part of its parent; ties by name."""
    found: list[_Path] = []
    waiting: list[_Path] = [(root,)]
    while waiting:
        path = waiting.pop()
        for child in path[-1].below:
            if child.expiring >= FEWEST_EXPIRING:
                waiting.append((*path, child))
                if child.expiring < path[-1].expiring:
                    found.append((*path[1:], child))
        yield from slicer.pause()
    least = min(nlargest(MOST_TIMELINES, (path[-1].expiring for path in found)), default=0)
    found = [path for path in found if path[-1].expiring >= least]
    found.sort(key=lambda path: (-path[-1].expiring, [(node.name, node.separator) for node in path]))
    return found[:MOST_TIMELINES]


def _explains(below: Cliff, cliff: Cliff) -> bool:
    """Whether one cliff is at the same time as another, in a namespace below, and has most of its keys."""
    depth = len(cliff.path)
    is_below = len(below.path) > depth and below.path[:depth] == cliff.path
    is_then = below.start_s < cliff.end_s and cliff.start_s < below.end_s
    return is_below and is_then and 2 * as_estimate(below.keys).value > as_estimate(cliff.keys).value


class SummaryPart(NamedTuple):
    """A node of the report, with the figures needed to add it to its parent."""

    node: Node
    weight: tuple[int, int]
    """Its bytes and keys, by which siblings are ordered."""
    names: int
    """How many names at least a pattern above it stands for; 0 where that is not known."""


class NodeReports:
    """Makes the nodes of a report from the leaves to the root."""

    def __init__(self, figures: Figures, slicer: Slicer) -> None:
        self.beyond_budget = 0
        """Keys in rest nodes, which stand for nodes beyond the budget."""
        self._figures = figures
        self._slicer = slicer

    def part(self, pattern: FoldedNode, patterns_above: int = 0, *, is_root: bool = False) -> Slices[SummaryPart]:
        """Return the node of the report for a pattern and all below it."""
        patterns = patterns_above + (pattern.kind is NodeKind.PATTERN)
        below: list[SummaryPart] = []
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
            examples=tuple([key for _, key in pattern.examples]) if patterns and own else (),
        )
        weight = 0 if tally.memory is None else tally.memory.sum, tally.keys
        return SummaryPart(node, weight, names if patterns <= 1 else 0)


def _distinct(pattern: FoldedNode, least: int) -> int | Estimate:
    """Return how many different segments a pattern stands for: `least` at least, and no more than it has keys."""
    found = as_estimate(0 if pattern.distinct is None else pattern.distinct.count())
    low, value, high = (min(max(one, least), pattern.keys) for one in (found.low, found.value, found.high))
    return int(value) if low == high else Estimate(low, value, high)


def _stats(tally: Tally, types: Mapping[bytes | None, int], figures: Figures, *, is_whole: bool = False) -> Stats:
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

    def bins(counts: tuple[int, ...] | None) -> tuple[Figure, ...] | None:
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
    types: Mapping[bytes, Tally], lengths: Mapping[bytes, Spread], figures: Figures
) -> tuple[TypeReport, ...]:
    """Return all types, most keys first, with the lengths of types that have any."""
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
    asked: Mapping[bytes, Counter[bytes]], types: Mapping[bytes, Tally], figures: Figures
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


class Spread(NamedTuple):
    """The lengths of the keys of a type."""

    quantiles: Quantiles
    bins: tuple[Figure, ...]


class Lengths:
    """The lengths of the keys of a pass by type."""

    def __init__(self, columns: Columns, standing: Mapping[bytes, Sketch], others: Mapping[bytes, Sketch]) -> None:
        """`standing` are of the keys that stand for others."""
        self._is_sampled = columns.length is Asked.SAMPLED
        self._standing, self._others = standing, others

    def spreads(
        self, types: Mapping[bytes, Tally], longest: Mapping[bytes, tuple[KeyRecord, ...]], figures: Figures
    ) -> dict[bytes, Spread]:
        """Return the spread of lengths by type, if any are known: estimates if most keys were not asked.

        `longest` are the lists of the longest keys, which may be longer than the sampled ones.
        """
        found = {}
        for key_type, tally in types.items():
            parts = [sketches[key_type] for sketches in (self._standing, self._others) if key_type in sketches]
            is_whole = self._is_sampled and sum(part.count for part in parts) >= tally.keys
            if not is_whole and key_type not in self._standing:
                continue
            joined = Sketch()
            for part in parts if is_whole else parts[:1]:
                joined.merge(part)
            quantiles = figures.quantiles(joined, of=tally.keys if self._is_sampled else None)
            most = max((one.length or 0 for one in longest.get(key_type, ())), default=0)
            above = [joined.above(edge) for edge in LENGTH_EDGES]
            bins = [count - longer for count, longer in pairwise((*above, 0))]
            found[key_type] = Spread(
                structs.replace(quantiles, max=max(quantiles.max, most)),
                tuple(figures.among(count, joined.count, tally.keys) for count in bins),
            )
        return found

    def over(self, counts: OverCounts, types: Mapping[bytes, Tally], figures: Figures) -> dict[bytes, Figure]:
        """Return by type how many keys are above the thresholds.

        An estimate, and at least the number known, if keys that may be above were not asked for their length.
        """
        found: dict[bytes, Figure] = {}
        for key_type, known in counts.known.items():
            found[key_type] = figures.keys(known)
            if key_type in counts.uncertain and key_type in types:
                asked = self._standing[key_type].count if key_type in self._standing else 0
                above = counts.sampled.get(key_type, 0)  # some by their memory, though their length is not known
                guess = as_estimate(figures.among(above, max(asked, above), types[key_type].keys))
                found[key_type] = Estimate(max(guess.low, known), max(guess.value, known), max(guess.high, known))
        return found


def lengths_of(found: Partial, columns: Columns) -> Lengths:
    """Return the lengths of the keys of each type."""
    by_standing: tuple[dict[bytes, Sketch], dict[bytes, Sketch]] = {}, {}
    groups, buckets, (counts,) = found.lengths.buckets.settle()
    for group in np.unique(groups).tolist():
        places = slice(*np.searchsorted(groups, (group, group + 1)))
        by_bucket = dict(zip(buckets[places].tolist(), counts[places].tolist(), strict=True))
        _, low, high = found.lengths.sums.rows[group].tolist()
        largest, smallest = found.lengths.greatest.rows[group].tolist()
        key_type = bytes_of(found.types[group // 2])
        if key_type is not None:
            by_standing[group % 2][key_type] = Sketch.of(by_bucket, whole(low, high), -smallest, largest)
    others, standing = by_standing
    return Lengths(columns, standing, others)
