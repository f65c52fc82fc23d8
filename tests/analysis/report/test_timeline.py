"""Coming expiries in the report, and cut into columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.expiries import timeline_bins
from rtui.analysis.report.members import ExpiryBin, Timeline
from tests.table.binned import binned

ORIGIN = 29_833_333


def whole_of(*bins: ExpiryBin) -> Timeline:
    return Timeline((), "all keys", bins)


def test_bins_are_told_in_seconds() -> None:
    bins = binned([ORIGIN + 1, ORIGIN + 1, ORIGIN + 9], [10, 20, 30], origin_min=ORIGIN)
    assert timeline_bins(bins) == (
        ExpiryBin((ORIGIN + 1) * 60.0, 60.0, 2, 30),
        ExpiryBin((ORIGIN + 9) * 60.0, 60.0, 1, 30),
    )


def test_unknown_memory_is_not_nothing() -> None:
    bins = binned([ORIGIN + 1, ORIGIN + 9], [None, 5], origin_min=ORIGIN)
    assert [one.memory_bytes for one in timeline_bins(bins)] == [None, 5]


def test_those_of_a_sample_become_estimates() -> None:
    bins = binned([ORIGIN + 1], [7], origin_min=ORIGIN)
    found = timeline_bins(
        bins, keys=lambda one: Estimate(0, one.keys * 10, 50), memory_bytes=lambda one: one.memory_bytes * 10
    )
    assert (found[0].keys, found[0].memory_bytes) == (Estimate(0, 10, 50), 70)


spans = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(0, 1000)), min_size=1, max_size=20)


@given(spans, st.integers(1, 40))
def test_columns_hold_all_keys_of_their_time(pieces: list[tuple[int, int, int]], n: int) -> None:
    at, bins = 0.0, []
    for gap, width, keys in pieces:
        bins.append(ExpiryBin(at + gap, float(width), keys, keys * 3))
        at += gap + width
    whole = whole_of(*bins)
    cut = whole.columns(0.0, whole.end_s, n)
    assert len(cut) == n
    assert sum(one.keys for one in cut if not isinstance(one.keys, Estimate)) == pytest.approx(
        sum(keys for _, _, keys in pieces)
    )
    for one in cut:
        assert isinstance(one.memory_bytes, int | float)
        assert isinstance(one.keys, int | float)
        assert one.memory_bytes == pytest.approx(one.keys * 3)


def test_a_bin_over_a_border_is_shared_by_both_columns() -> None:
    whole = whole_of(ExpiryBin(100.0, 40.0, 8, None), ExpiryBin(200.0, 10.0, 3, None))
    assert [one.keys for one in whole.columns(100.0, 220.0, 4)] == [6, 2, 0, 3]
    assert [one.keys for one in whole.columns(130.0, 150.0, 2)] == [2, 0]
    assert {one.memory_bytes for one in whole.columns(100.0, 220.0, 4)} == {None}


def test_whole_bins_stay_whole_numbers() -> None:
    whole = whole_of(ExpiryBin(0.0, 60.0, 8, 5), ExpiryBin(60.0, 60.0, 3, 6))
    found = whole.columns(0.0, 240.0, 2)
    assert [(one.keys, one.memory_bytes) for one in found] == [(11, 11), (0, 0)]
    assert isinstance(found[0].keys, int)


def test_estimates_are_added_with_their_intervals() -> None:
    one = ExpiryBin(0.0, 60.0, Estimate(7, 10, 14), None)
    found = whole_of(one, replace(one, start_s=60.0, keys=Estimate(16, 20, 23))).columns(0.0, 120.0, 1)
    assert found[0].keys == Estimate(25, 30, 35)


@pytest.mark.parametrize(("from_s", "to_s", "n"), [(0.0, 100.0, 0), (5.0, 5.0, 3), (9.0, 5.0, 3)])
def test_no_time_has_no_columns(from_s: float, to_s: float, n: int) -> None:
    assert whole_of(ExpiryBin(0.0, 60.0, 8, 5)).columns(from_s, to_s, n) == ()


def test_an_empty_timeline_has_empty_columns() -> None:
    assert whole_of().end_s == 0.0
    assert [one.keys for one in whole_of().columns(0.0, 60.0, 3)] == [0, 0, 0]
