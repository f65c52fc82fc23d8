"""Bins of coming expiries."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.aggregate.expiry_bins import FINENESS, Bin, ExpiryBins, ExpiryScale, coarsen_to_budget
from rtui.table.buckets import LEVELS

ORIGIN = 29_833_333
"""2026-09-21 14:13 UTC, in minutes."""

distances = st.integers(0, 100) | st.integers(0, 50_000) | st.integers(0, 10**8) | st.integers(0, 2**57)
minutes = st.lists(distances.map(lambda distance: ORIGIN + distance), max_size=80)


def binned(some: list[int]) -> ExpiryBins:
    bins = ExpiryBins(ExpiryScale(ORIGIN))
    bins.add(some, [minute % 97 for minute in some])
    return bins


def hold_to_the_truth(bins: ExpiryBins, some: list[int]) -> list[Bin]:
    """Each bin holds exactly the keys of its stretch, and no two overlap."""
    found = list(bins.bins())
    for one in found:
        inside = [minute for minute in some if one.start_min <= minute < one.start_min + one.width_min]
        assert one.keys == len(inside) > 0
        assert one.memory_bytes == sum(minute % 97 for minute in inside)
    assert sum(one.keys for one in found) == len(some) == bins.total
    for before, after in pairwise(found):
        assert before.start_min + before.width_min <= after.start_min
    return found


@given(minutes)
def test_bins_hold_what_lies_in_them_at_the_promised_resolution(some: list[int]) -> None:
    for one in hold_to_the_truth(binned(some), some):
        assert one.start_min % one.width_min == 0
        assert one.width_min == 1 or one.width_min <= (one.start_min - ORIGIN) / 64


@given(minutes, st.integers(0, 3), st.integers(0, 7))
def test_a_stretch_has_every_bin_and_no_gap(some: list[int], beyond: int, coarser: int) -> None:
    bins = binned(some)
    for _ in range(coarser):
        bins.coarsen()
    found = list(bins.contiguous(beyond))
    assert [one for one in found if one.keys] == list(bins.bins())
    for before, after in pairwise(found):
        assert before.start_min + before.width_min == after.start_min
    if some:
        assert found[0].start_min <= ORIGIN
        assert not any(one.keys for one in found[len(found) - beyond :])
        assert found[-1 - beyond].keys
    else:
        assert not found


@given(minutes, minutes)
def test_merged_bins_hold_what_lies_in_them(one: list[int], two: list[int]) -> None:
    for merged, other in ((binned(one), binned(two)), (binned(two), binned(one))):
        other.coarsen()
        merged.merge(other)
        hold_to_the_truth(merged, one + two)


@given(minutes, st.integers(1, FINENESS + 2))
def test_coarsened_bins_hold_what_lies_in_them(some: list[int], times: int) -> None:
    bins = binned(some)
    for _ in range(times):
        bins.coarsen()
    hold_to_the_truth(bins, some)


def test_an_even_year_needs_few_bins() -> None:
    rng = random.Random(1)
    some = [ORIGIN + rng.randrange(525_600) for _ in range(20_000)]
    bins = ExpiryBins(ExpiryScale(ORIGIN))
    for at in range(0, len(some), 50):
        bins.add(some[at : at + 50], None)
    found = list(bins.bins())
    assert 500 < len(found) < 1_100
    assert sum(one.keys for one in found) == len(some)


def test_the_order_of_additions_does_not_matter() -> None:
    rng = random.Random(2)
    some = [ORIGIN + int(2 ** (57 * rng.random())) for _ in range(20_000)]
    one, other = binned(some), binned(some[::-1])
    assert list(one.bins()) == list(other.bins())
    assert len(one) < 128 * LEVELS


def test_bins_that_were_counted_elsewhere() -> None:
    bins = binned([ORIGIN, ORIGIN + 1, ORIGIN + 1, ORIGIN + 500])
    bins.coarsen()
    counted = [(one.start_min, one.keys, one.memory_bytes, one.memory_squares) for one in bins.bins()]
    again = ExpiryBins.of(ExpiryScale(ORIGIN), bins.coarseness, counted)
    assert list(again.bins()) == list(bins.bins())
    assert again.total == bins.total


def test_many_sets_share_a_budget() -> None:
    rng = random.Random(1)
    sets = [binned([ORIGIN + rng.randrange(10_000) for _ in range(size)]) for size in (0, 2_000, 1_000, 300)]
    coarsen_to_budget(500, sets)
    assert sum(len(list(one.bins())) for one in sets) <= 500
    assert sets[1].coarseness <= sets[3].coarseness
    coarsen_to_budget(0, sets)
    assert [one.coarseness for one in sets] == [0, FINENESS, FINENESS, FINENESS]


def test_what_should_have_expired_is_still_counted() -> None:
    some = [ORIGIN - 3, ORIGIN - 500]
    assert [one.start_min for one in hold_to_the_truth(binned(some), some)] == [ORIGIN - 500, ORIGIN - 3]
