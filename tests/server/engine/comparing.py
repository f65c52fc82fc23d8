"""The same batches given to the pure and the compiled counters, and what they say compared field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random
from typing import Any

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.counted import CountedPatterns, KeySums
from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.figures import SampledKeyspace
from rtui.analysis.aggregate.pattern_counts import Counters, PatternCounter, PatternCounts
from rtui.analysis.aggregate.pattern_tree import Limits
from rtui.analysis.aggregate.slot_counts import SlotCounts
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.report.document import Scope, Summary
from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.text.segments import Separators
from rtui.server.engine.counters import CompiledPatternCounts, CompiledSlotCounts

STARTED_S = 1_790_000_000.0

Batches = Iterable[tuple[InspectedBatch, float]]

SHARES = (0.5, 0.0, 0.001, 0.01, 0.1, 0.25, 0.75, 0.9, 0.99, 0.999, 1.0)

TYPES = (b"string", b"string", b"string", b"hash", b"zset", b"unheard-of", None)


def new_pure(limits: Limits | None, separators: Separators, scale: ExpiryScale, depth: int | None) -> Counters:
    return Counters(PatternCounts(separators, scale, depth, limits), SlotCounts())


def new_compiled(limits: Limits | None, separators: Separators, scale: ExpiryScale, depth: int | None) -> Counters:
    return Counters(CompiledPatternCounts(separators, scale, depth, limits), CompiledSlotCounts())


def compare(batches: Batches, *, limits: Limits | None = None, scope: Scope | None = None, budget: int = 4096) -> None:
    """Give batches to both, and compare what they say at the end, and once halfway."""
    scope, batches = scope or Scope(), list(batches)
    pure, compiled = (
        Aggregates(
            Separators(scope.separators),
            scope=scope,
            started_at_s=STARTED_S,
            node_budget=budget,
            new_counters=partial(new, limits),
        )
        for new in (new_pure, new_compiled)
    )
    for index, (batch, asked_at_s) in enumerate(batches):
        for one in (pure, compiled):
            one.add(batch, asked_at_s)
        if index == len(batches) // 2:
            same(pure, compiled, budget)
    same(pure, compiled, budget)


def same(pure: Aggregates, compiled: Aggregates, budget: int) -> None:
    """Fail unless both have the same tree, and the same summary, of all keys and of a sample."""
    assert list(lines(pure.patterns, budget)) == list(lines(compiled.patterns, budget))
    for sample in (None, SampledKeyspace(10 * pure.keys, None)):
        assert summary_of(pure, sample) == summary_of(compiled, sample)


def summary_of(aggregates: Aggregates, sample: SampledKeyspace | None) -> Summary:
    return finish(aggregates.summary(sample))


def lines(patterns: PatternCounter, budget: int) -> Iterator[object]:
    """Yield all that the folded tree says."""
    return told(counted(patterns, budget))


def counted(patterns: PatternCounter, budget: int) -> CountedPatterns[Any]:
    """Fold patterns and add them up."""
    return finish(finish(patterns.snapshot(budget, Slicer())).counted())


def told(patterns: CountedPatterns[Any]) -> Iterator[object]:
    """Yield all that patterns of a report say, children in their order."""
    waiting = [(0, patterns.root)]
    while waiting:
        level, node = waiting.pop()
        yield level, node.name, node.separator, node.kind, node.keys, node.bytes
        yield node.names, node.holds_any_name, list(node.example_keys)
        yield node.own_keys, node.expiring, node.is_alike, dict(node.types), facts(node.tally)
        ((bins, largest),) = finish(patterns.expiries([node], Slicer()))
        yield bins.coarseness, bins.total, list(bins.bins()), largest
        waiting += [(level + 1, child) for child in node.below]
    yield {key_type: facts(tally) for key_type, tally in patterns.by_type.items()}


def facts(tally: KeySums) -> object:
    memory, ttl = tally.memory, tally.ttl
    return (
        tally.keys,
        memory and (memory.count, memory.sum, memory.max, memory.mean, memory.quantiles(SHARES)),
        memory and (memory.sum_of_squares(), memory.largest(7), memory.quantiles([1.0]) if memory.count else None),
        tally.idle,
        tally.frequency,
        tally.strings,
        ttl
        and (
            (ttl.known_keys, ttl.no_ttl_keys, ttl.no_ttl_memory_bytes, ttl.no_ttl_squares, ttl.no_ttl_largest),
            (ttl.soonest_ms, ttl.bins, ttl.range_ms),
        ),
    )


def batches_of(names: list[bytes], rng: Random, *, longest_batch: int = 400) -> Iterator[tuple[InspectedBatch, float]]:
    """Yield names in batches with facts drawn at random; some columns are missing."""
    at, moment_s = 0, STARTED_S
    while at < len(names):
        keys = names[at : at + rng.randint(1, longest_batch)]
        at += len(keys)
        moment_s += rng.random()
        unit = rng.choice((60_000, 3_600_000, 10**9, 2**40, 2**56))
        lives = [-1 if rng.random() < 0.3 else int(unit * rng.random()) for _ in keys]
        sizes = [int(rng.choice((64, 90, 2**20, 2**42)) ** rng.random()) for _ in keys]
        yield (
            InspectedBatch(
                rng.choice(TYPES),
                keys,
                ttl_ms=lives if rng.random() < 0.9 else None,
                memory_bytes=sizes if rng.random() < 0.9 else None,
                idle_s=[rng.randrange(10**7) for _ in keys] if rng.random() < 0.5 else None,
                frequency=[rng.randrange(256) for _ in keys] if rng.random() < 0.5 else None,
                lengths=[rng.randrange(rng.choice((6, 100, 1000))) for _ in keys] if rng.random() < 0.5 else None,
                is_sampled=rng.random() < 0.8,
            ),
            moment_s,
        )
