"""What all keys at and below a pattern add up to, and how a report says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.figures import Figures, sums_of
from rtui.analysis.aggregate.pattern_tree import Pattern
from rtui.analysis.aggregate.sample_bytes import Sums
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.tally import Life, Tally
from rtui.analysis.estimates import Estimate, wilson
from rtui.analysis.report.document import EncodingReport, Figure, Node, NodeKind, Stats, TypeReport
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.types import type_of


class Rolled:
    """The tallies of keys by type, and of all together; not to be changed, since parts share them."""

    __slots__ = ("by_kind", "tally")

    def __init__(self, parts: Iterable[Mapping[bytes | None, Tally]], scale: ExpiryScale) -> None:
        tallies: dict[bytes | None, list[Tally]] = {}
        for part in parts:
            for kind, tally in part.items():
                tallies.setdefault(kind, []).append(tally)
        self.by_kind = {kind: _sum(found, scale) for kind, found in tallies.items()}
        """By type, None for keys whose type is not known."""
        self.tally = _sum(list(self.by_kind.values()), scale)

    def stats(self, figures: Figures) -> Stats:
        """Say it."""
        kinds = [(kind, tally.keys) for kind, tally in self.by_kind.items() if kind is not None]
        return stats_of(self.tally, sorted(kinds, key=lambda pair: (-pair[1], pair[0])), figures)


def _sum(tallies: Sequence[Tally], scale: ExpiryScale) -> Tally:
    """The sum of tallies; of one alone, itself."""
    if len(tallies) == 1:
        return tallies[0]
    total = Tally(scale)
    for tally in tallies:
        total.merge(tally, expiries=False)
    return total


def stats_of(tally: Tally, kinds: Iterable[tuple[bytes, int]], figures: Figures) -> Stats:
    """Say what keys of these types add up to."""
    memory, life = tally.memory, tally.life
    return Stats(
        keys=figures.keys(tally.keys),
        share_keys=figures.share_keys(tally.keys),
        memory_bytes=None if memory is None else figures.memory(memory.sum, partial(sums_of, memory)),
        share_memory=None if memory is None else figures.share_memory(memory.sum, partial(sums_of, memory)),
        memory_known_keys=0 if memory is None else memory.count,
        memory=None if memory is None else figures.memory_quantiles(memory),
        no_ttl_keys=None if life is None else figures.keys(life.no_ttl_keys),
        no_ttl_share=None if life is None else figures.share(life.no_ttl_keys, life.known),
        no_ttl_memory_bytes=None if life is None or memory is None else _lasting(life, memory, figures),
        ttl=None if life is None else _bins(life.bins, figures),
        soonest_expiry_s=None if life is None or life.soonest_ms is None else life.soonest_ms / 1000,
        idle=None if tally.idle is None else _bins(tally.idle, figures),
        frequency=None if tally.frequency is None else _bins(tally.frequency, figures),
        types=tuple((kind, figures.keys(keys)) for kind, keys in kinds),
    )


def _lasting(life: Life, memory: Sketch, figures: Figures) -> Figure | None:
    """Say how many bytes never expire; None where they are known of none of the keys that do not."""
    if life.no_ttl_keys and not life.no_ttl_memory_bytes:
        return None
    lasting = Sums(float(life.no_ttl_memory_bytes), float(life.no_ttl_squares), life.no_ttl_largest)
    return figures.memory(life.no_ttl_memory_bytes, lambda: lasting)


def _bins(bins: list[int], figures: Figures) -> tuple[Figure, ...]:
    return tuple(map(figures.keys, bins))


class Rollup:
    """Adds up patterns from the leaves to the root, each once."""

    def __init__(self, figures: Figures, scale: ExpiryScale, slicer: Slicer) -> None:
        self.types: dict[bytes, Tally] = {}
        """By type, all keys, once the root was added up."""
        self.beyond_budget = 0
        """Keys in nodes that stand for what was beyond the budget."""
        self._figures = figures
        self._scale = scale
        self._slicer = slicer

    def root(self, pattern: Pattern) -> Slices[Node]:
        """The node of the root, and all below it."""
        node, rolled, _ = yield from self._node(pattern, 0)
        self.types = {kind: tally for kind, tally in rolled.by_kind.items() if kind is not None}
        keys, all_of_it = self._figures.all_keys()
        memory = rolled.tally.memory
        share_memory = node.stats.share_memory if memory is None or not memory.sum else all_of_it
        stats = replace(node.stats, keys=keys, share_keys=all_of_it, share_memory=share_memory)
        return replace(node, stats=stats)

    def _node(self, pattern: Pattern, patterns_above: int) -> Slices[tuple[Node, Rolled, int]]:
        """The node of a pattern, what it adds up to, and how many names its parts stand for at least, if one does."""
        patterns = patterns_above + (pattern.kind is NodeKind.PATTERN)
        below: list[tuple[Node, Rolled, int]] = []
        for child in pattern.children.values():
            part = yield from self._node(child, patterns)
            below.append(part)
        if self._slicer.over():
            yield
        own = sum(tally.keys for tally in pattern.own())
        if pattern.kind is NodeKind.OTHER:
            self.beyond_budget += own
        if not pattern.cells and not pattern.undecided and len(below) == 1:
            stats, rolled = below[0][0].stats, below[0][1]
        else:
            cells = {kind: cell.tally for kind, cell in pattern.cells.items()}
            rolled = Rolled([cells, pattern.undecided, *(part.by_kind for _, part, _ in below)], self._scale)
            stats = rolled.stats(self._figures)
        names = max([own, *(most for _, _, most in below)])
        node = Node(
            pattern.name,
            pattern.separator,
            pattern.kind,
            stats,
            tuple(node for node, _, _ in sorted(below, key=_most_first)),
            names if pattern.kind is NodeKind.PATTERN and patterns == 1 else None,
        )
        return node, rolled, names if patterns <= 1 else 0


def _most_first(part: tuple[Node, Rolled, int]) -> tuple[int, int, bytes, bytes, NodeKind]:
    node, rolled, _ = part
    memory = rolled.tally.memory
    return 0 if memory is None else -memory.sum, -rolled.tally.keys, node.name, node.separator, node.kind


def type_reports(
    types: Mapping[bytes, Tally], lengths: Mapping[bytes, Sketch], figures: Figures
) -> tuple[TypeReport, ...]:
    """All types, most keys first, with the lengths of those that have any."""
    ordered = sorted(types.items(), key=lambda pair: (-pair[1].keys, pair[0]))
    return tuple(
        TypeReport(
            kind,
            stats_of(tally, [(kind, tally.keys)], figures),
            figures.quantiles(lengths[kind]) if kind in lengths else None,
            type_of(kind).units,
        )
        for kind, tally in ordered
    )


def encoding_reports(
    asked: Mapping[bytes, Counter[bytes]], types: Mapping[bytes, Tally], figures: Figures
) -> tuple[EncodingReport, ...]:
    """All encodings by type, most keys first: estimates unless every key of the type was asked."""
    reports = []
    for kind, counts in sorted(asked.items(), key=lambda pair: (-pair[1].total(), pair[0])):
        total = counts.total()
        keys = types[kind].keys if kind in types else total
        for encoding, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            if total >= keys:
                reports.append(EncodingReport(kind, encoding, figures.keys(count), figures.share(count, total)))
            else:
                share = wilson(count, total, population=keys)
                reports.append(EncodingReport(kind, encoding, _times(share, figures.keys(keys)), share))
    return tuple(reports)


def _times(share: Estimate, keys: Figure) -> Estimate:
    """As many keys as a share of them is; where both are estimates, with the bounds of both."""
    if isinstance(keys, Estimate):
        return Estimate(share.low * keys.low, share.value * keys.value, share.high * keys.high)
    return share.scaled(keys)
