"""Bins of coming expiries."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.aggregate.expiry_bins import FINENESS, Bin, ExpiryBins, ExpiryScale, keep_within

ORIGIN = 29_833_333
"""2026-09-21 14:13 UTC, in minutes."""

distances = st.integers(0, 100) | st.integers(0, 50_000) | st.integers(0, 10**8) | st.integers(0, 2**57)
minutes = st.lists(distances.map(lambda distance: ORIGIN + distance), max_size=80)


def binned(some: list[int], origin: int = ORIGIN, **options: int) -> ExpiryBins:
    bins = ExpiryBins(ExpiryScale(origin), **options)
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
    found = list(bins.stretch(beyond))
    assert [one for one in found if one.keys] == list(bins.bins())
    for before, after in pairwise(found):
        assert before.start_min + before.width_min == after.start_min
    if some:
        assert found[0].start_min <= ORIGIN
        assert not any(one.keys for one in found[len(found) - beyond :])
        assert found[-1 - beyond].keys
    else:
        assert not found


@given(minutes, minutes, st.integers(0, 10**6))
def test_merged_bins_hold_what_lies_in_them(one: list[int], two: list[int], later: int) -> None:
    two = [minute + later for minute in two]
    for merged, other in (
        (binned(one), binned(two, ORIGIN + later)),
        (binned(two, ORIGIN + later), binned(one)),
    ):
        other.coarsen()
        merged.merge(other)
        hold_to_the_truth(merged, one + two)
        assert merged.memory_known_keys == len(one + two)


@given(minutes, minutes, minutes, st.integers(0, 10**6))
def test_starts_by_the_first_scale_are_still_taken_after_a_merge(
    one: list[int], two: list[int], more: list[int], earlier: int
) -> None:
    scale = ExpiryScale(ORIGIN)
    bins = ExpiryBins(scale)
    for some in (one, more):
        bins.add_starts(scale.starts(some), None)
        bins.merge(binned(two, ORIGIN - earlier))
        found = list(bins.bins())
        for before, after in pairwise(found):
            assert before.start_min + before.width_min <= after.start_min
    assert sum(one.keys for one in found) == len(one) + len(more) + 2 * len(two)


@given(minutes, st.integers(1, FINENESS + 2))
def test_coarsened_bins_hold_what_lies_in_them(some: list[int], times: int) -> None:
    bins = binned(some)
    for _ in range(times):
        bins.coarsen()
    hold_to_the_truth(bins, some)


@given(st.lists(minutes, max_size=8))
def test_bins_stay_within_what_is_allowed(many: list[list[int]]) -> None:
    bins = ExpiryBins(ExpiryScale(ORIGIN), most=120)
    for some in many:
        bins.add(some, [minute % 97 for minute in some])
    hold_to_the_truth(bins, [minute for some in many for minute in some])


def test_an_even_year_stays_within_what_is_allowed() -> None:
    rng = random.Random(1)
    some = [ORIGIN + rng.randrange(525_600) for _ in range(20_000)]
    for most in (100, 400, 2048):
        bins = ExpiryBins(ExpiryScale(ORIGIN), most=most)
        for at in range(0, len(some), 50):
            bins.add(some[at : at + 50], None)
        found = list(bins.bins())
        assert len(found) <= most
        assert len(found) >= most // 4
        assert sum(one.keys for one in found) == len(some)


def test_many_sets_share_a_budget() -> None:
    rng = random.Random(1)
    sets = [binned([ORIGIN + rng.randrange(10_000) for _ in range(size)]) for size in (0, 2_000, 1_000, 300)]
    keep_within(500, sets)
    assert sum(len(list(one.bins())) for one in sets) <= 500
    assert sets[1].coarseness <= sets[3].coarseness
    keep_within(0, sets)
    assert [one.coarseness for one in sets] == [0, FINENESS, FINENESS, FINENESS]


def test_unknown_memory_is_told_apart() -> None:
    bins = binned([ORIGIN + 5])
    bins.add([ORIGIN + 7, ORIGIN + 5], None)
    assert (bins.total, bins.memory_known_keys) == (3, 1)


@pytest.mark.parametrize("some", [[], [ORIGIN + 3], [ORIGIN + 70_000, ORIGIN + 9]])
def test_soonest(some: list[int]) -> None:
    assert binned(some).soonest_min == (min(some) if some else None)


def test_what_should_have_expired_is_still_counted() -> None:
    some = [ORIGIN - 3, ORIGIN - 500]
    assert [one.start_min for one in hold_to_the_truth(binned(some), some)] == [ORIGIN - 500, ORIGIN - 3]
