"""Estimates of a real keyspace beside the exact pass over it: how often the intervals hold the truth."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from secrets import randbits
from typing import Any

import pytest
import redis

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import CoverageKind, Report, Stats
from rtui.analysis.report.members import Figure
from tests.oracles.counted import report_on
from tests.server.targets import target_of
from tests.servers import Server

KEYS = 20_000

SAMPLE = 400

RUNS = 64

AT_ONCE = 16
"""Analyses that run side by side."""

NOMINAL = 0.95

STRAYS_OF_ONE = 0.13
"""How far the part of the intervals of one sort that hold the truth may be below the nominal one, by chance: those of
one run go together, so 64 runs stray by 0.03, and by four times that once in 30,000."""

STRAYS_OF_ALL = 0.04
"""The same for all sorts together."""


def plant(server: Server) -> None:
    """Namespaces of different weight whose keys differ in size, type and life."""
    random = Random(5)
    pipeline = server.client().pipeline(transaction=False)
    for number in range(KEYS):
        draw = random.random()
        size = int(random.lognormvariate(4, 1))
        if draw < 0.5:
            pipeline.set(b"session:%d" % number, b"v" * size, ex=86_400)
        elif draw < 0.8:
            pipeline.hset(b"user:%d" % number, mapping={b"name": b"n" * 20, b"note": b"v" * (size // 2)})
        elif draw < 0.95:
            pipeline.set(b"cache:%d" % number, b"v" * size * 3, ex=86_400 if draw < 0.9 else None)
        else:
            pipeline.rpush(b"queue:%d" % number, *range(1 + size // 20))
        if number % 2_000 == 0:
            pipeline.execute()
    pipeline.execute()


def figures(report: Report) -> Iterator[tuple[str, str, Figure]]:
    """What to hold against the truth: the sort of figure, whose it is, and the figure."""
    yield from _of(report.summary.root.stats, "all")
    for child in report.summary.root.children:
        yield from _of(child.stats, child.name.decode())
    for one in report.summary.types:
        yield from _of(one.stats, f"type {one.name.decode()}")


def _scale(what: str, whose: str, exact: float, truth: dict[tuple[str, str], Figure]) -> float:
    """What an interval is to be narrower than: the truth, or for bytes, of which a missed key may have many, all."""
    everything = truth["sum of memory", "all"]
    assert isinstance(everything, int)
    if what == "mean" and whose != "all":
        keys = truth["keys", whose]
        assert isinstance(keys, int)
        return everything / keys
    return {"sum of memory": float(everything), "share of memory": 1.0}.get(what, exact)


def _of(stats: Stats, whose: str) -> Iterator[tuple[str, str, Figure]]:
    quantiles = stats.memory
    assert stats.memory_bytes is not None
    assert stats.share_memory is not None
    assert stats.no_ttl_share is not None
    assert quantiles is not None
    if whose != "all":
        yield "share of keys", whose, stats.share_keys
        yield "keys", whose, stats.keys
        yield "share of memory", whose, stats.share_memory
    yield "sum of memory", whose, stats.memory_bytes
    yield "mean", whose, quantiles.mean
    yield "median", whose, quantiles.p50
    yield "90 % quantile", whose, quantiles.p90
    if stats.no_ttl_share not in (0.0, 1.0):
        yield "share without end", whose, stats.no_ttl_share


async def test_intervals_hold_the_truth_as_often_as_they_say(valkey: Server) -> None:
    plant(valkey)
    truth = {(what, whose): value for what, whose, value in figures(await report_on(target_of(valkey)))}
    held: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    widths: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(RUNS // AT_ONCE):
        sampled = [report_on(target_of(valkey), estimate_keys=SAMPLE) for _ in range(AT_ONCE)]
        for report in await asyncio.gather(*sampled):
            assert report.head.coverage.kind is CoverageKind.ESTIMATE
            assert report.head.coverage.keys < KEYS / 20
            for what, whose, said in figures(report):
                exact = truth.get((what, whose))
                if exact is None:
                    continue
                assert isinstance(said, Estimate)
                assert isinstance(exact, int | float)
                held[what][said.low * 0.99 <= exact <= said.high * 1.01] += 1
                widths[what].append((said.high - said.low) / _scale(what, whose, exact, truth))
    parts = {what: one[True] / one.total() for what, one in held.items()}
    assert set(parts) == {what for what, _ in truth}
    assert all(part >= NOMINAL - STRAYS_OF_ONE for part in parts.values()), parts
    assert NOMINAL - STRAYS_OF_ALL <= sum(parts.values()) / len(parts) < 0.999, parts
    assert all(sum(one) / len(one) < 1 for one in widths.values()), widths


async def test_a_sample_of_all_that_is_asked_for_is_exact(valkey: Server) -> None:
    pipeline = valkey.client().pipeline(transaction=False)
    for number in range(500):
        pipeline.set(b"a:%d" % number, b"v" * number)
    pipeline.execute()
    whole = await report_on(target_of(valkey))
    asked_for_all = await report_on(target_of(valkey), estimate_keys=500)
    assert asked_for_all.head.coverage.kind is CoverageKind.EXACT
    assert asked_for_all.summary.root.stats == whole.summary.root.stats


HEAVY_KEYS, HEAVY_SAMPLE, HEAVY_RUNS = 8_000, 1_500, 12


@pytest.mark.sampled("number")
@pytest.mark.parametrize("number", range(3))
async def test_intervals_hold_the_truth_of_keyspaces_with_heavy_tails(valkey: Server, number: int) -> None:
    """Keyspaces never seen before, whose figures hang together: a sort of them may be held a bit less often."""
    seed = randbits(48)
    told = plant_sizes(valkey.client(), Random(seed), HEAVY_KEYS)
    truth = {(what, whose): value for what, whose, value in figures(await report_on(target_of(valkey)))}
    used = int(valkey.client().info("memory")["used_memory"])
    held: defaultdict[str, list[bool]] = defaultdict(list)
    reports = [report_on(target_of(valkey), estimate_keys=HEAVY_SAMPLE) for _ in range(HEAVY_RUNS)]
    for report in await asyncio.gather(*reports):
        for what, whose, said in figures(report):
            exact = truth.get((what, whose))
            if exact is None or not isinstance(said, Estimate):
                continue
            assert isinstance(exact, int | float)
            held[what].append(said.low * 0.98 <= exact <= said.high * 1.02)
            if what == "sum of memory":
                assert said.high <= 1.1 * used
    made = f"keyspace {number} of seed {seed}: {told}"
    assert {"sum of memory", "share of memory", "keys"} <= set(held), made
    every = [one for hits in held.values() for one in hits]
    assert sum(every) >= 0.9 * len(every), made
    rates = {what: sum(hits) / len(hits) for what, hits in held.items()}
    assert min(rates.values()) >= 0.8, (made, rates)


Law = Callable[[Random], float]
"""Draws the size of a key in bytes."""

LARGEST_BYTES = 4_000_000
"""No key is larger."""

NAMES = ("app", "feed", "session", "cart", "queue", "cache", "lock", "user")


def _even(random: Random) -> tuple[str, Law]:
    high = random.randrange(50, 2_000)
    return f"even to {high}", lambda rng: rng.uniform(1, high)


def _lognormal(random: Random) -> tuple[str, Law]:
    sigma = random.uniform(0.5, 3)
    return f"lognormal {sigma:.1f}", lambda rng: rng.lognormvariate(4, sigma)


def _pareto(random: Random) -> tuple[str, Law]:
    exponent = random.uniform(0.8, 2)
    return f"Pareto {exponent:.1f}", lambda rng: 30 * rng.paretovariate(exponent)


def _spikes(random: Random) -> tuple[str, Law]:
    part, size = 10 ** random.uniform(-4, -2), 10 ** random.uniform(4, 6.5)
    return f"{part:.2%} of {size:,.0f}", lambda rng: size if rng.random() < part else rng.uniform(1, 200)


LAWS = (_even, _lognormal, _pareto, _spikes)


@dataclass(frozen=True)
class Part:
    """A namespace."""

    name: str
    keys: int
    says: str
    """By what law its sizes are drawn."""
    size: Law
    write: Callable[[Any, bytes, int], None]


def parts(random: Random, keys: int) -> list[Part]:
    """Draw the namespaces of a keyspace of about so many keys."""
    names = random.sample(NAMES, random.randint(2, 6))
    weights = [random.paretovariate(1) for _ in names]
    found = []
    for name, weight in zip(names, weights, strict=True):
        says, law = random.choice(LAWS)(random)
        count = max(20, round(keys * weight / sum(weights)))
        found.append(Part(name, count, says, law, random.choice((_string, _hash, _list))))
    return found


def plant_sizes(client: redis.Redis, random: Random, keys: int) -> list[str]:
    """Write such a keyspace, sometimes with one giant; returns what is in it."""
    pipeline = client.pipeline(transaction=False)
    told, waiting = [], 0
    for part in parts(random, keys):
        told.append(f"{part.keys} {part.name} {part.says}")
        for number in range(part.keys):
            size = max(1, min(LARGEST_BYTES, int(part.size(random))))
            key = b"%s:%d" % (part.name.encode(), number)
            part.write(pipeline, key, size)
            if random.random() < 0.3:
                pipeline.expire(key, random.randrange(60, 1_000_000))
            waiting += size + 100
            if waiting > LARGEST_BYTES:
                pipeline.execute()
                waiting = 0
    if random.random() < 0.5:
        told.append("one giant")
        pipeline.set(b"giant:1", b"v" * LARGEST_BYTES)
    pipeline.execute()
    return told


def _string(pipeline: Any, key: bytes, size: int) -> None:
    pipeline.set(key, b"v" * size)


def _hash(pipeline: Any, key: bytes, size: int) -> None:
    pipeline.hset(key, mapping={b"name": b"n" * 10, b"value": b"v" * size})


def _list(pipeline: Any, key: bytes, size: int) -> None:
    pipeline.rpush(key, *([b"v" * 64] * max(1, min(size // 64, 2_000))))
