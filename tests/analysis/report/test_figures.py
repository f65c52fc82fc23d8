"""Bytes by a sample: what large keys do to them, what bounds them, and how often the intervals hold the truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from secrets import randbits

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.figures import (
    ERROR,
    HIGHEST,
    MOST_LARGE,
    SampleBytes,
    SizeSums,
    Sketch,
    cap_of,
    largest_of,
    sums_of,
)
from rtui.table.sums import size_buckets

some_sizes = st.lists(st.integers(0, 10**9), min_size=1, max_size=80)


def sums(sizes: Sequence[float]) -> SizeSums:
    return SizeSums(float(sum(sizes)), float(sum(size * size for size in sizes)), largest_of(sizes))


def is_in_order(estimate: Estimate) -> bool:
    return 0 <= estimate.low <= estimate.value <= estimate.high


@given(some_sizes)
def test_the_cap_is_a_tenth_of_the_capped_sizes_and_few_are_above_it(sizes: list[int]) -> None:
    cap = cap_of(sums(sizes), len(sizes))
    assert sum(size > cap for size in sizes) < MOST_LARGE
    if cap < math.inf:
        part = max(0.1, 4 / len(sizes))
        assert cap == pytest.approx(part * sum(min(size, cap) for size in sizes), rel=1e-6, abs=1)


@given(some_sizes, st.integers(80, 10**8), st.none() | st.integers(0, 10**12), st.data())
def test_every_estimate_lies_within_its_bounds_and_those_of_the_server(
    sizes: list[int], population: int, bound: int | None, data: st.DataObject
) -> None:
    n = len(sizes)
    cut = data.draw(st.integers(0, n))
    bytes_of = SampleBytes(sums(sizes), n, population, bound)
    parts = [sizes[:cut], sizes[cut:]]
    whole = bytes_of.total(sums(sizes))
    assert is_in_order(whole)
    assert whole.low >= sum(sizes) * (1 - 1e-9)
    totals = [bytes_of.total(sums(part)) for part in parts]
    assert sum(total.value for total in totals) == pytest.approx(whole.value, rel=1e-6, abs=1)
    for part, total in zip(parts, totals, strict=True):
        share = bytes_of.share(sums(part))
        assert is_in_order(total)
        assert is_in_order(share)
        assert share.high <= 1
        assert total.low >= sum(part) * (1 - 1e-9)
        if bound is not None:
            assert total.high <= max(bound, sum(sizes)) * (1 + 1e-9)
        if part:
            mean = bytes_of.mean(sums(part), len(part), Estimate(len(part), population * len(part) / n, population))
            assert mean is not None
            assert is_in_order(mean)


def test_one_large_key_is_counted_as_itself() -> None:
    """One key of 2.9 MB among 2,000 of 20,000 is no reason to think that there are ten."""
    ordinary, large = [200] * 1_999, 2_900_000
    sizes = sums([*ordinary, large])
    bytes_of = SampleBytes(sizes, 2_000, 20_000, 12_000_000)
    of_it, of_all = bytes_of.total(sums([large])), bytes_of.total(sizes)
    assert of_it.low >= large
    assert of_it.value < 1.2 * large
    assert of_all.value < 1.1 * (20_000 * 200 + large)
    assert of_all.high == 12_000_000


@given(st.lists(st.integers(50, 1_000), min_size=200, max_size=400), st.integers(10**6, 10**9))
def test_a_large_key_leaves_the_spread_of_the_others_as_it_was(ordinary: list[int], large: int) -> None:
    """Sketches know sizes to one percent, and one percent of a large key is more than all others have."""
    sketch = sketch_of([*ordinary, large])
    bytes_of = SampleBytes(sums_of(sketch), sketch.count, 100_000, 10**12)
    whole = bytes_of.total(sums_of(sketch))
    assert whole.low < whole.value


def test_all_keys_are_no_sample() -> None:
    sizes = [100, 5_000_000, 300]
    bytes_of = SampleBytes(sums(sizes), 3, 3, 10**9)
    assert bytes_of.total(sums(sizes)) == Estimate(5_000_400, 5_000_400, 5_000_400)
    assert bytes_of.total(sums([100])) == Estimate(100, 100, 100)


def test_without_a_bound_nobody_knows_the_most() -> None:
    bytes_of = SampleBytes(sums([100] * 50), 50, 5_000, None)
    assert bytes_of.total(sums([100] * 50)).high == math.inf
    assert bytes_of.share(sums([100] * 10)).high == 1.0


def test_a_server_that_tells_less_than_was_extrapolated_bounds_the_value_too() -> None:
    bytes_of = SampleBytes(sums([1_000] * 100), 100, 1_000, 900_000)
    assert bytes_of.total(sums([1_000] * 100)).value == 900_000
    assert bytes_of.total(sums([1_000] * 50)).value == pytest.approx(450_000)


Law = Callable[[Random], float]


def lognormal(sigma: float) -> Law:
    return lambda rng: 50 + rng.lognormvariate(5, sigma)


def pareto(exponent: float) -> Law:
    return lambda rng: min(5e8, 60 * rng.paretovariate(exponent))


def spikes(part: float, size: float) -> Law:
    return lambda rng: size * rng.uniform(0.5, 1.5) if rng.random() < part else rng.uniform(60, 300)


EVEN: dict[str, Law] = {"one size": lambda _: 100, "even": lambda rng: rng.uniform(60, 300), "mild": lognormal(0.5)}
HEAVY: dict[str, Law] = {
    **{f"lognormal {sigma}": lognormal(sigma) for sigma in (1, 1.5, 2, 2.5, 3)},
    **{f"Pareto {exponent}": pareto(exponent) for exponent in (0.8, 1, 1.2, 1.5, 2)},
    **{f"{part:.2%} of {size:,.0f}": spikes(part, size) for part, size in ((0.01, 1e5), (0.001, 1e6), (0.0002, 3e6))},
    "one giant": lambda rng: rng.uniform(60, 300),
}
SLACK = 1.15
"""How much more memory the server uses than its keys have."""
KEYS, KEYSPACES, SAMPLES = 8_000, 12, 5
WEIGHTS = (50, 30, 15, 5)
"""Of the namespaces, by keys."""


def coverage(name: str, law: Law, n: int, rng: Random) -> tuple[Counter[str], float]:
    """How many of the intervals of 60 samples hold the truth, and how wide those of totals are, by the truth."""
    hits, width = Counter[str](), 0.0
    for _ in range(KEYSPACES):
        sizes = [law(rng) for _ in range(KEYS)]
        if name == "one giant":
            sizes[rng.randrange(KEYS)] = 3e6
        whose = rng.choices(range(len(WEIGHTS)), WEIGHTS, k=KEYS)
        whole = sum(sizes)
        parts = [sum(size for size, of in zip(sizes, whose, strict=True) if of == at) for at in range(len(WEIGHTS))]
        for _ in range(SAMPLES):
            drawn = rng.sample(range(KEYS), n)
            seen = sums([sizes[one] for one in drawn])
            bytes_of = SampleBytes(seen, n, KEYS, SLACK * whole)
            found = bytes_of.total(seen)
            hits["whole"] += whole in found
            width += (found.high - found.low) / whole
            for at, truth in enumerate(parts):
                part = sums([sizes[one] for one in drawn if whose[one] == at])
                hits[f"part {at}"] += truth in bytes_of.total(part)
                hits[f"share {at}"] += truth / whole in bytes_of.share(part)
    return hits, width / (KEYSPACES * SAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 3_000])
@pytest.mark.parametrize("name", [*EVEN, *HEAVY])
def test_intervals_hold_the_truth_of_keyspaces_never_seen_before(name: str, n: int) -> None:
    """Of 60 samples with a 95 % interval, fewer than 50 hold the truth once in 10,000 runs; there are 9 intervals."""
    seed = randbits(64)
    hits, width = coverage(name, {**EVEN, **HEAVY}[name], n, Random(seed))
    assert len(hits) == 1 + 2 * len(WEIGHTS)
    assert min(hits.values()) >= 48, f"{hits} by seed {seed}"
    assert sum(hits.values()) >= 0.93 * len(hits) * KEYSPACES * SAMPLES, f"{hits} by seed {seed}"
    if name in EVEN:
        assert width < SLACK - 1 + 0.15, "an interval of even sizes is hardly wider than what the server leaves open"


SIZES = st.integers(0, 300) | st.integers(0, 2**40) | st.integers(HIGHEST - 2, HIGHEST)
"""Small, middling and the largest sizes."""

MANY = st.lists(SIZES, max_size=200)


def sketch_of(sizes: list[int]) -> Sketch:
    """A sketch of sizes in the buckets of a table."""
    buckets = Counter(size_buckets(np.array(sizes, np.int64)).tolist())
    return Sketch.of(buckets, sum(sizes), min(sizes, default=0), max(sizes, default=0))


@given(st.lists(SIZES, min_size=1, max_size=200), st.lists(st.floats(0, 1), max_size=5))
def test_quantiles_are_within_the_error(sizes: list[int], shares: list[float]) -> None:
    ordered = sorted(sizes)
    for share, found in zip(shares, sketch_of(sizes).quantiles(shares), strict=True):
        true = ordered[max(0, math.ceil(share * len(sizes)) - 1)]
        assert abs(found - true) <= ERROR * true


@given(st.lists(st.integers(0, 99), min_size=1), st.floats(0, 1))
def test_small_sizes_are_exact(sizes: list[int], share: float) -> None:
    assert sketch_of(sizes).quantiles([share]) == [sorted(sizes)[max(0, math.ceil(share * len(sizes)) - 1)]]


@given(MANY)
def test_counts_and_sums_are_exact(sizes: list[int]) -> None:
    sketch = sketch_of(sizes)
    assert (sketch.count, sketch.sum, sketch.max) == (len(sizes), sum(sizes), max(sizes, default=0))
    assert sketch.mean == (sum(sizes) / len(sizes) if sizes else 0)
    assert sketch.sum_of_squares() == pytest.approx(sum(size * size for size in sizes), rel=0.0202)


@given(MANY, MANY)
def test_two_sketches_add_up(some: list[int], others: list[int]) -> None:
    merged = sketch_of(some)
    merged.merge(sketch_of(others))
    together = sketch_of(some + others)
    shares = [rank / 20 for rank in range(21)]
    assert merged.quantiles(shares) == together.quantiles(shares)
    assert (merged.count, merged.sum, merged.max) == (together.count, together.sum, together.max)
    assert merged.sum_of_squares() == together.sum_of_squares()


def test_an_empty_sketch_says_nothing() -> None:
    assert Sketch().quantiles([0.5, 1.0]) == [0, 0]


def test_the_ends_are_exact_and_nothing_lies_beyond_them() -> None:
    sketch = sketch_of([3_000_048])
    assert sketch.quantiles((0.5, 0.9, 0.99)) == [3_000_048] * 3
    sketch.merge(sketch_of([2_999_000] * 9))
    assert (sketch.min, sketch.max) == (2_999_000, 3_000_048)
    assert sketch.quantiles((0.0, 0.5, 1.0)) == [2_999_000, 2_999_000, 3_000_048]
    sketch.merge(Sketch())
    assert (sketch.min, Sketch().min) == (2_999_000, 0)
