"""Quantiles are within the stated error of the true ones, and sketches add up."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.figures import ERROR, HIGHEST, Sketch
from rtui.table.sums import size_buckets

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
