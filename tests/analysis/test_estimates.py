"""Estimates and their intervals: their edges, and how often they hold the truth."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from math import comb

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import (
    Estimate,
    NamespaceTally,
    Population,
    binomial_tail,
    count,
    count_among,
    mean,
    quantile,
    total,
    wilson,
)
from rtui.keyspace.text.segments import Segment, Separators

draws = st.integers(min_value=1, max_value=5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(draws)
def test_interval_holds_the_share_and_stays_within_bounds(draw: tuple[int, int]) -> None:
    estimate = wilson(*draw)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert estimate.low < estimate.high


@given(draws)
def test_more_draws_say_more(draw: tuple[int, int]) -> None:
    successes, n = draw
    once, tenfold = wilson(successes, n), wilson(10 * successes, 10 * n)
    assert tenfold.high - tenfold.low < once.high - once.low


def test_nothing_drawn_says_nothing() -> None:
    assert wilson(0, 0) == Estimate(0.0, 0.0, 1.0)


def test_everything_drawn_is_exact() -> None:
    assert wilson(3, 10, population=10) == Estimate(0.3, 0.3, 0.3)


def test_known_interval() -> None:
    """Newcombe's example (Statistics in Medicine 17, 1998): 81 of 263 is 0.2553 … 0.3662."""
    estimate = wilson(81, 263)
    assert estimate.low == pytest.approx(0.2553, abs=5e-5)
    assert estimate.high == pytest.approx(0.3662, abs=5e-5)


def test_more_successes_than_draws_is_refused() -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson(3, 2)


def test_scaled_to_a_count() -> None:
    estimate = Estimate(0.1, 0.2, 0.3).scaled(1000)
    assert estimate == Estimate(100, 200, 300)
    assert 150 in estimate
    assert 301 not in estimate


@pytest.mark.parametrize(("share", "drawn"), [(0.5, 200), (0.02, 500), (0.9, 100)])
def test_intervals_cover_the_truth_near_nominal(share: float, drawn: int) -> None:
    population = 2000
    members = round(share * population)
    keyspace = [True] * members + [False] * (population - members)
    rng = random.Random(7)
    runs = 1500
    hits = sum(share in wilson(sum(rng.sample(keyspace, drawn)), drawn, population=population) for _ in range(runs))
    assert 0.93 <= hits / runs <= 0.99


def _chance(found: int, n: int, members: int, whole: int) -> float:
    """How likely it is that so many of n keys are among the members of a keyspace."""
    return comb(members, found) * comb(whole - members, n - found) / comb(whole, n)


@pytest.mark.parametrize("whole", [1, 8, 9, 16, 40, 80, 161, 400])
def test_counts_among_one_key_in_eight_hold_the_truth_for_any_number(whole: int) -> None:
    n = -(-whole // 8)
    estimates = [count_among(found, n, whole) for found in range(n + 1)]
    for members in range(whole + 1):
        possible = range(max(0, n - whole + members), min(n, members) + 1)
        held = sum(_chance(found, n, members, whole) for found in possible if members in estimates[found])
        assert held >= 0.95, members


@given(st.integers(1, 10**9), st.data())
def test_counts_among_keys_stay_within_what_is_possible(whole: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(0, whole))
    found = data.draw(st.integers(0, n))
    estimate = count_among(found, n, whole)
    assert found <= estimate.low <= estimate.value * (1 + 1e-9)
    assert estimate.value * (1 - 1e-9) <= estimate.high <= whole - n + found


def test_shares_of_two_levels() -> None:
    keys = [b"a:b:1", b"a:b:2", b"a:c", b"plain", b"{u:1}:x"]
    tally = NamespaceTally(Separators())
    tally.add(keys[:2])
    tally.add(keys[2:])
    shares = tally.shares()
    a, b, tag = Segment(b"a", b":"), Segment(b"b", b":"), Segment(b"{u:1}", b":")
    assert {path: round(estimate.value, 3) for path, estimate in shares.items()} == {
        (a,): 0.6,
        (a, b): 0.4,
        (tag,): 0.2,
    }


def test_shares_stop_at_the_depth() -> None:
    tally = NamespaceTally(Separators(), depth=1)
    tally.add([b":".join([b"s"] * 100_000)])
    assert list(tally.shares()) == [(Segment(b"s", b":"),)]


def test_shares_of_the_largest_only() -> None:
    tally = NamespaceTally(Separators())
    tally.add([b"a:1", b"a:2", b"b:1"])
    assert list(tally.shares(most=1)) == [(Segment(b"a", b":"),)]


sizes = st.lists(st.integers(0, 10**7), min_size=1, max_size=60)
populations = (
    st.none()
    | st.integers(60, 10**9)
    | st.builds(
        lambda low, wide: Estimate(low, low + wide, low + 3 * wide), st.integers(60, 10**9), st.integers(0, 10**6)
    )
)


class Exact:
    """Sizes of which every quantile is known."""

    def __init__(self, some: Sequence[int]) -> None:
        self._sizes = sorted(some)
        self.count = len(some)

    def quantiles(self, shares: Sequence[float], /) -> list[int]:
        last = self.count - 1
        return [self._sizes[min(last, max(0, math.ceil(one * self.count) - 1))] for one in shares]


def moments(some: Sequence[int]) -> tuple[float, float]:
    return float(sum(some)), float(sum(size * size for size in some))


def is_in_order(estimate: Estimate | None) -> bool:
    assert estimate is not None
    assert math.isfinite(estimate.high)
    return 0 <= estimate.low <= estimate.value <= estimate.high


@given(sizes, populations, st.floats(0.01, 0.99))
def test_every_interval_holds_its_value(some: list[int], population: Population, q: float) -> None:
    n, whole, largest = len(some), moments(some), max(some)
    assert is_in_order(wilson(n // 3, n, population))
    assert is_in_order(mean(*whole, n, population, largest=largest))
    assert is_in_order(quantile(Exact(some).quantiles, len(some), q, population))
    if population is not None:
        assert is_in_order(count(n // 3, n, population))
        assert is_in_order(total(*whole, n, population, largest=largest))


def test_a_sum_that_rounding_has_made_tiny_has_no_upper_bound() -> None:
    for found in (mean(1e-9, 1e6, 10, 1_000, largest=1e3), total(1e-9, 1e6, 10, 1_000, largest=1e3)):
        assert found is not None
        assert 0 <= found.low <= found.value < found.high == math.inf


@given(sizes)
def test_all_keys_are_no_sample(some: list[int]) -> None:
    n, whole = len(some), moments(some)
    for estimate, truth in (
        (wilson(n // 3, n, n), n // 3 / n),
        (count(n // 3, n, n), n // 3),
        (total(*whole, n, n), whole[0]),
        (mean(*whole, n, n), whole[0] / n),
    ):
        assert estimate is not None
        assert [estimate.low, estimate.value, estimate.high] == pytest.approx([truth] * 3)


def test_what_nobody_knows_is_no_number() -> None:
    assert count(3, 10, None) is None
    assert total(3, 9, 10, None) is None
    assert total(0, 0, 0, 100) is None
    assert mean(0, 0, 0) is None
    assert quantile(Exact([]).quantiles, 0, 0.5) is None


def test_keys_that_were_seen_are_there() -> None:
    estimate = count(3, 1_000, 2_000)
    assert estimate is not None
    assert estimate.low >= 3


@pytest.mark.parametrize("of", ["count", "total"])
def test_an_uncertain_population_widens_what_is_of_it(of: str) -> None:
    def figure(population: Population) -> Estimate:
        found = count(500, 1_000, population) if of == "count" else total(5e4, 5e6, 1_000, population)
        assert found is not None
        return found

    sure, unsure = figure(100_000), figure(Estimate(80_000, 100_000, 120_000))
    assert sure.value == unsure.value
    assert unsure.low < sure.low
    assert unsure.high > sure.high
    assert unsure.high / unsure.value >= 1.2


def test_a_quantile_beyond_the_sample_reaches_beyond_it() -> None:
    assert quantile(Exact([100] * 30 + [1_000]).quantiles, 31, 0.99) == Estimate(100, 1_000, 10_000)


def lognormal(sigma: float) -> Callable[[random.Random], float]:
    return lambda rng: 56 + rng.lognormvariate(6, sigma)


def pareto(rng: random.Random) -> float:
    return 100 * rng.paretovariate(1.5)


MODERATE = {"narrow": lognormal(0.25), "moderate": lognormal(1.0), "skewed": lognormal(1.5)}
HEAVY = {"heavy": lognormal(2.0), "Pareto": pareto}
KEYS, DRAWN, KEYSPACES, SAMPLES = 20_000, 500, 30, 20


def coverage(size: Callable[[random.Random], float]) -> dict[str, float]:
    """How often each interval holds the truth, over samples of several keyspaces; a fifth of the keys is the part."""
    rng = random.Random(11)
    hits: Counter[str] = Counter()
    for _ in range(KEYSPACES):
        keys = [round(size(rng)) for _ in range(KEYS)]
        part = KEYS // 5
        known, sorted_keys = Exact(keys), range(KEYS)
        all_bytes, part_bytes = sum(keys), sum(keys[:part])
        p50, p90, p99 = known.quantiles([0.5, 0.9, 0.99])
        for _ in range(SAMPLES):
            drawn = rng.sample(sorted_keys, DRAWN)
            whole = [keys[i] for i in drawn]
            mine = [keys[i] for i in drawn if i < part]
            spread = Exact(whole)
            for name, estimate, truth in (
                ("share", wilson(len(mine), DRAWN, KEYS), part / KEYS),
                ("count", count(len(mine), DRAWN, KEYS), part),
                ("total", total(*moments(whole), DRAWN, KEYS, largest=max(whole)), all_bytes),
                ("part", total(*moments(mine), DRAWN, KEYS, largest=max(mine)), part_bytes),
                ("mean", mean(*moments(whole), DRAWN, KEYS, largest=max(whole)), all_bytes / KEYS),
                ("p50", quantile(spread.quantiles, spread.count, 0.5, KEYS), p50),
                ("p90", quantile(spread.quantiles, spread.count, 0.9, KEYS), p90),
                ("p99", quantile(spread.quantiles, spread.count, 0.99, KEYS), p99),
            ):
                assert estimate is not None
                hits[name] += truth in estimate
    return {name: hits[name] / (KEYSPACES * SAMPLES) for name in hits}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODERATE)
def test_intervals_hold_the_truth_near_their_nominal_rate(name: str) -> None:
    reached = coverage(MODERATE[name])
    assert min(reached.values()) >= 0.92, reached
    assert max(reached[each] for each in ("share", "count", "p50", "p90")) <= 0.985, reached


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_intervals_of_heavy_tails_still_hold_the_truth(name: str) -> None:
    reached = coverage(HEAVY[name])
    assert min(reached.values()) >= 0.88, reached


def test_an_estimated_population_is_accounted_for() -> None:
    """The size of the keyspace is itself only known to a tenth, with 95 %."""
    rng = random.Random(5)
    keys, drawn, runs = 20_000, 400, 400
    sizes_of = [round(lognormal(1.0)(rng)) for _ in range(keys)]
    whole, part, hits = sum(sizes_of), keys // 4, Counter[str]()
    for _ in range(runs):
        believed = keys * (1 + rng.gauss(0, 0.05))
        population = Estimate(believed * 0.9, believed, believed * 1.1)
        indices = rng.sample(range(keys), drawn)
        some = [sizes_of[i] for i in indices]
        counted = count(sum(i < part for i in indices), drawn, population)
        summed = total(*moments(some), drawn, population, largest=max(some))
        assert counted is not None
        assert summed is not None
        hits["count"] += part in counted
        hits["total"] += whole in summed
    assert min(hits.values()) >= 0.92 * runs
    assert max(hits.values()) <= 0.985 * runs


@pytest.mark.parametrize(
    ("at_least", "n", "p", "known"),
    [(0, 10, 0.5, 1.0), (10, 10, 0.5, 2**-10), (8, 10, 0.5, 56 / 1024), (2, 10, 0.5, 1013 / 1024), (11, 10, 0.5, 0.0)],
)
def test_binomial_tail(at_least: int, n: int, p: float, known: float) -> None:
    assert binomial_tail(at_least, n, p) == pytest.approx(known, rel=1e-9)


def test_a_tail_far_out_is_small_but_never_below_nothing() -> None:
    assert 0.0 <= binomial_tail(900_000, 1_000_000, 0.1) < 1e-300
    assert binomial_tail(1, 10, 1.0) == 1.0
    assert binomial_tail(1, 10, 0.0) == 0.0


bounds = st.floats(min_value=-1e15, max_value=1e15)


@given(bounds, bounds, bounds)
def test_the_value_of_any_estimate_lies_within_its_interval(low: float, value: float, high: float) -> None:
    """Also of one that is read from a file, or scaled."""
    written = msgspec.json.encode({"low": low, "value": value, "high": high})
    for found in (Estimate(low, value, high), msgspec.json.decode(written, type=Estimate)):
        assert found.low <= found.value <= found.high
        assert found.low == low
        if low <= value <= high:
            assert (found.value, found.high) == (value, high)


@given(st.integers(0, 400), st.integers(1, 500), st.integers(1, 600), st.integers(0, 10**6), st.integers(0, 10**12))
def test_every_estimator_gives_an_interval(found: int, n: int, size: int, sum_: int, squares: int) -> None:
    """Also where the population is smaller than the sample, as on a server whose keys come and go."""
    found = min(found, n)
    about = Estimate(size * 0.9, float(size), size * 1.2)
    made: list[Estimate | None] = [count_among(found, n, max(n, size))]
    for population in (None, size, about):
        made += [count(found, n, population), wilson(found, n, population)]
        made += [total(sum_, squares, n, population, largest=sum_), mean(sum_, squares, n, population, largest=sum_)]
    for one in made:
        assert one is None or one.low <= one.value <= one.high


@pytest.mark.parametrize(("n", "population"), [(20, 21), (1_500, 8_000), (1_000, 15_000)])
def test_a_single_key_that_was_seen_may_be_the_only_one(n: int, population: int) -> None:
    """In a sample of a fifteenth it is seen too often for an interval of 95 % to leave it out."""
    found = count(1, n, population)
    assert found is not None
    assert found.low == pytest.approx(1)
