"""Bins of coming expiries."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.expiries import FALSE_ALARMS, FINENESS, Bin, ExpiryBins, find_cliffs, timeline_bins
from rtui.analysis.report.members import Cliff, ExpiryBin, Timeline
from tests.table.naive import binned

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
    found = whole_of(ExpiryBin(0.0, 60.0, 8, 5), ExpiryBin(60.0, 60.0, 3, 6)).columns(0.0, 240.0, 2)
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


HOUR, DAY = 60, 1440

Spread = Callable[[random.Random], float]
"""When a key expires, in minutes from the start of the pass."""


def sliding(life: float, idle: float) -> Spread:
    """A life that begins anew with every access; keys idle for longer than it are gone."""

    def draw(rng: random.Random) -> float:
        while (since := rng.expovariate(1 / idle)) >= life:
            pass
        return life - since

    return draw


def rolling(life: float, begins: float = 0.0) -> Spread:
    """A fixed life of keys that are made at an even rate; `begins`: where in its minute the pass began."""
    return lambda rng: begins + rng.uniform(0, life)


EVEN: dict[str, Spread] = {
    "uniform hour": rolling(HOUR, 0.4),
    "uniform day": rolling(DAY),
    "uniform 30 days": rolling(30 * DAY),
    "uniform year": rolling(365 * DAY),
    "a minute's life": rolling(1, 0.35),
    "three minutes' life": rolling(3, 0.35),
    "decay in a minute": lambda rng: rng.expovariate(1.0),
    "decay in five minutes": lambda rng: rng.expovariate(1 / 5),
    "decay in a day": lambda rng: rng.expovariate(1 / DAY),
    "ramp up": lambda rng: DAY * rng.random() ** 0.5,
    "ramp down": lambda rng: DAY * (1 - rng.random() ** 0.5),
    "sessions of half an hour, busy": sliding(30, 2),
    "sessions of half an hour": sliding(30, 10),
    "sessions of a day, busy": sliding(DAY, 20),
    "sessions of a day": sliding(DAY, 300),
    "sessions of a week": sliding(7 * DAY, 2000),
    "a day with jitter": lambda rng: DAY * rng.uniform(0.9, 1.1),
    "a day with normal jitter": lambda rng: abs(rng.gauss(DAY, 120)),
    "all magnitudes": lambda rng: 10 ** rng.uniform(0, 5),
    "two lives": lambda rng: rng.choice((rng.uniform(0, 5), rng.uniform(0, DAY))),
}


def found_in(minutes: list[float], path: tuple[bytes, ...] = (b"a",)) -> list[Cliff]:
    bins = binned([ORIGIN + int(minute) for minute in minutes], origin_min=ORIGIN)
    return find_cliffs(bins, path=path, label="a")


def drawn(spread: Spread, keys: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [spread(rng) for _ in range(keys)]


@pytest.mark.slow
def test_even_keyspaces_raise_alarms_at_the_stated_rate_at_most() -> None:
    """400 of 20 kinds and 4 sizes."""
    runs, alarms = 0, []
    for name, spread in EVEN.items():
        for keys, seeds in ((60, 6), (300, 8), (1_500, 5), (6_000, 1)):
            for seed in range(seeds):
                runs += 1
                if found_in(drawn(spread, keys, seed)):
                    alarms.append((name, keys, seed))
    assert runs == 400
    assert len(alarms) <= FALSE_ALARMS * runs, alarms


@pytest.mark.parametrize(
    ("spread", "keys", "planted", "when"),
    [
        pytest.param(rolling(HOUR), 186_000, 114_000, (18.0, 2.0), id="38 % of 300,000 in two minutes"),
        pytest.param(rolling(DAY), 300, 200, (45.0, 2.0), id="200 of 500, soon"),
        pytest.param(rolling(DAY), 300, 200, (700.0, 2.0), id="200 of 500, later today"),
        pytest.param(rolling(30 * DAY), 3_000, 1_000, (20.3 * DAY, 2.0), id="far away"),
        pytest.param(rolling(300 * DAY), 3_000, 1_000, (250.0 * DAY, 30.0), id="very far away"),
        pytest.param(rolling(HOUR), 2_000, 600, (30.4, 1.5), id="begins and ends within a minute"),
        pytest.param(rolling(HOUR), 2_000, 1_800, (40.0, 9.0), id="nine minutes"),
        pytest.param(rolling(HOUR), 2_000, 900, (58.0, 2.0), id="at the very end"),
        pytest.param(rolling(HOUR), 2_000, 900, (0.0, 1.0), id="at the very start"),
        pytest.param(rolling(HOUR), 2_000, 900, (1.0, 2.0), id="just after the start"),
        pytest.param(sliding(DAY, 300), 5_000, 900, (500.0, 5.0), id="among sessions"),
        pytest.param(rolling(DAY), 0, 50, (500.0, 3.0), id="and nothing else"),
        pytest.param(rolling(DAY), 100_000, 3_000, (600.0, 1.0), id="three percent"),
    ],
)
@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(4))
def test_a_planted_cliff_is_found_where_it_is(
    spread: Spread, keys: int, planted: int, when: tuple[float, float], seed: int
) -> None:
    at, lasts = when
    minutes = drawn(spread, keys, seed)
    minutes += drawn(rolling(lasts, at), planted, seed + 100)
    (cliff,) = found_in(minutes)
    begins, ends = cliff.start_s / 60 - ORIGIN, cliff.end_s / 60 - ORIGIN
    tight = max(1.0, at / 64)
    assert at - tight <= begins <= at + 1
    assert at + lasts - 1 <= ends <= at + lasts + tight
    assert isinstance(cliff.keys, int)
    assert isinstance(cliff.expected_keys, float)
    assert 0.9 * planted <= cliff.keys <= planted + 2.5 * cliff.expected_keys + 10
    assert cliff.share == cliff.keys / (keys + planted)


def test_two_cliffs_near_each_other_are_two() -> None:
    minutes = drawn(rolling(HOUR), 2_000, 1) + drawn(rolling(2, 20), 900, 2) + drawn(rolling(1, 27), 700, 3)
    found = found_in(minutes)
    assert [(one.start_s / 60 - ORIGIN, one.end_s / 60 - ORIGIN) for one in found] == [(20, 22), (27, 28)]
    assert found[0].share > found[1].share  # type: ignore[operator]


def test_what_is_left_of_a_cliff_is_no_cliff_again() -> None:
    found = found_in([1.0] * 168 + [5.0] * 756 + [6.0] * 756)
    assert [(one.start_s / 60 - ORIGIN, one.end_s / 60 - ORIGIN, one.keys) for one in found] == [
        (5, 7, 1_512),
        (1, 2, 168),
    ]
    assert all(isinstance(one.expected_keys, float) and one.expected_keys < 10 for one in found)


def test_the_start_of_a_keyspace_of_mixed_lives_is_no_cliff() -> None:
    minutes = drawn(rolling(DAY), 2_000, 1) + drawn(rolling(1), 900, 2)
    assert not found_in(minutes, path=())
    assert found_in(minutes + drawn(rolling(1, 300), 500, 3), path=())


def test_shares_are_of_all_keys_and_bytes_of_those_that_expire() -> None:
    bins = binned([ORIGIN + 100] * 300, [7] * 300, origin_min=ORIGIN)
    (cliff,) = find_cliffs(bins, keys=1_200, label="x")
    assert (cliff.keys, cliff.share, cliff.memory_bytes, cliff.label) == (300, 0.25, 2_100, "x")


@pytest.mark.parametrize("total", [15_001, 10**9])
def test_what_hardly_matters_to_a_namespace_is_no_cliff(total: int) -> None:
    assert not find_cliffs(binned([ORIGIN + 100] * 300, origin_min=ORIGIN), keys=total)


def test_a_handful_of_keys_and_none_are_no_cliff() -> None:
    assert not found_in([100.0] * 19)
    assert found_in([100.0] * 20)
    assert not found_in([])


def test_coarse_bins_tell_cliffs_more_loosely() -> None:
    rng = random.Random(4)
    minutes = [ORIGIN + rng.randrange(DAY) for _ in range(3_000)] + [ORIGIN + 611] * 1_500
    for coarser in (1, 2, 3):
        (cliff,) = find_cliffs(binned(minutes, origin_min=ORIGIN, coarser=coarser))
        assert cliff.start_s <= (ORIGIN + 611) * 60 < cliff.end_s
