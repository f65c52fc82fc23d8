"""Estimates and their intervals."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate, NamespaceTally, wilson
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
