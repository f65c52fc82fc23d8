"""Bins of coming expiries."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.expiries import FINENESS, Bin, ExpiryBins
from tests.table.binned import binned

ORIGIN = 29_833_333
"""2026-09-21 14:13 UTC, in minutes."""

distances = st.integers(0, 100) | st.integers(0, 50_000) | st.integers(0, 10**8) | st.integers(0, 2**46)
minutes = st.lists(distances.map(lambda distance: ORIGIN + distance), max_size=80)


def bins_of(some: list[int], coarser: int = 0) -> ExpiryBins:
    return binned(some, [minute % 97 for minute in some], origin_min=ORIGIN, coarser=coarser)


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
    for one in hold_to_the_truth(bins_of(some), some):
        assert one.start_min % one.width_min == 0
        assert one.width_min == 1 or one.width_min <= (one.start_min - ORIGIN) / 64


@given(minutes, st.integers(0, 3), st.integers(0, FINENESS))
def test_a_stretch_has_every_bin_and_no_gap(some: list[int], beyond: int, coarser: int) -> None:
    bins = bins_of(some, coarser)
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


@given(minutes, st.integers(1, FINENESS))
def test_coarsened_bins_hold_what_lies_in_them(some: list[int], times: int) -> None:
    hold_to_the_truth(bins_of(some, times), some)


def test_an_even_year_needs_few_bins() -> None:
    rng = random.Random(1)
    some = [ORIGIN + rng.randrange(525_600) for _ in range(20_000)]
    found = binned(some, origin_min=ORIGIN).bins()
    assert 500 < len(found) < 1_100
    assert sum(one.keys for one in found) == len(some)


def test_what_should_have_expired_is_still_counted() -> None:
    some = [ORIGIN - 3, ORIGIN - 500]
    assert [one.start_min for one in hold_to_the_truth(bins_of(some), some)] == [ORIGIN - 500, ORIGIN - 3]
