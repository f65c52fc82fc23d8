"""What all keys at and below a node of the pattern tree add up to, as the nodes, types and encodings of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.figures import Figures, SizeSums, sums_of
from rtui.analysis.aggregate.pattern_tree import PatternNode
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.estimates import Estimate, wilson
from rtui.analysis.report.document import EncodingReport, Node, NodeKind, Stats, TypeReport
from rtui.analysis.report.members import Figure
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.types import type_of

TypeTallies: TypeAlias = Mapping[bytes | None, Tally]
"""Tallies by type, under None for keys whose type is not known; not to be changed, since nodes share them."""


class Part(NamedTuple):
    """A node of the report, with what is needed to add it to its parent."""

    node: Node
    by_type: TypeTallies
    tally: Tally
    """All types together."""
    names: int
    """How many names at least a pattern above it stands for; 0 where that is not known."""


class NodeReports:
    """Makes the nodes of a report from the leaves to the root."""

    def __init__(self, figures: Figures, scale: ExpiryScale, slicer: Slicer) -> None:
        self.beyond_budget = 0
        """Keys in nodes that stand for what was beyond the budget."""
        self._figures = figures
        self._scale = scale
        self._slicer = slicer

    def part(self, pattern: PatternNode, patterns_above: int = 0, *, is_root: bool = False) -> Slices[Part]:
        """Return the node of the report for a pattern and all below it."""
        patterns = patterns_above + (pattern.kind is NodeKind.PATTERN)
        below: list[Part] = []
        for child in pattern.children.values():
            part = yield from self.part(child, patterns)
            below.append(part)
        yield from self._slicer.pause()
        own = sum(tally.keys for tally in pattern.own_tallies())
        if pattern.kind is NodeKind.OTHER:
            self.beyond_budget += own
        if not pattern.tallies and not pattern.unplaced and len(below) == 1 and not is_root:
            stats, by_type, tally = below[0].node.stats, below[0].by_type, below[0].tally
        else:
            tallies: dict[bytes | None, list[Tally]] = {}
            for some in (pattern.tallies, pattern.unplaced, *(part.by_type for part in below)):
                for key_type, one in some.items():
                    tallies.setdefault(key_type, []).append(one)
            by_type = {key_type: _sum(of_type, self._scale) for key_type, of_type in tallies.items()}
            tally = _sum(list(by_type.values()), self._scale)
            types = [(key_type, one.keys) for key_type, one in by_type.items() if key_type is not None]
            types.sort(key=lambda pair: (-pair[1], pair[0]))
            stats = _stats(tally, types, self._figures, is_whole=is_root)
        names = max([own, *(part.names for part in below)])
        below.sort(key=lambda part: (part.node.name, part.node.separator, part.node.kind))
        below.sort(key=lambda part: (0 if part.tally.memory is None else -part.tally.memory.sum, -part.tally.keys))
        node = Node(
            name=pattern.name,
            separator=pattern.separator,
            kind=pattern.kind,
            stats=stats,
            children=tuple(part.node for part in below),
            distinct=names if pattern.kind is NodeKind.PATTERN and patterns == 1 else None,
        )
        return Part(node, by_type, tally, names if patterns <= 1 else 0)


def _sum(tallies: list[Tally], scale: ExpiryScale) -> Tally:
    """Return the sum of tallies, without the times of expiry; of one alone, itself."""
    if len(tallies) == 1:
        return tallies[0]
    total = Tally(scale)
    for tally in tallies:
        total.merge(tally, expiries=False)
    return total


def _stats(tally: Tally, types: Iterable[tuple[bytes, int]], figures: Figures, *, is_whole: bool = False) -> Stats:
    """Return the stats of keys of these types; of all keys, whose shares are known, if `is_whole`."""
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

    def bins(counts: list[int] | None) -> tuple[Figure, ...] | None:
        return None if counts is None else tuple(map(figures.keys, counts))

    return Stats(
        keys=keys,
        share_keys=share_keys,
        memory_bytes=memory_bytes,
        share_memory=share_memory,
        memory_known_keys=0 if memory is None else memory.count,
        memory=None if memory is None else figures.memory_quantiles(memory),
        no_ttl_keys=None if ttl is None else figures.keys(ttl.no_ttl_keys),
        no_ttl_share=None if ttl is None else figures.share(ttl.no_ttl_keys, ttl.known_keys),
        no_ttl_memory_bytes=no_ttl_bytes,
        ttl=None if ttl is None else bins(ttl.bins),
        soonest_expiry_s=None if ttl is None or ttl.soonest_ms is None else ttl.soonest_ms / 1000,
        idle=bins(tally.idle),
        frequency=bins(tally.frequency),
        types=tuple((key_type, figures.keys(count)) for key_type, count in types),
    )


def type_reports(
    types: Mapping[bytes, Tally], lengths: Mapping[bytes, Sketch], figures: Figures
) -> tuple[TypeReport, ...]:
    """Return all types, most keys first, with the lengths of those that have any."""
    return tuple(
        TypeReport(
            name=key_type,
            stats=_stats(tally, [(key_type, tally.keys)], figures),
            length=figures.quantiles(lengths[key_type]) if key_type in lengths else None,
            unit=type_of(key_type).units,
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
                share = wilson(count, total, population=of_type)
                keys = _product(share, figures.keys(of_type))
            reports.append(EncodingReport(kind=key_type, encoding=encoding, keys=keys, share=share))
    return tuple(reports)


def _product(share: Estimate, keys: Figure) -> Estimate:
    """Return a share of a number of keys; where both are estimates, with the bounds of both."""
    if isinstance(keys, Estimate):
        return Estimate(share.low * keys.low, share.value * keys.value, share.high * keys.high)
    return share.scaled(keys)
