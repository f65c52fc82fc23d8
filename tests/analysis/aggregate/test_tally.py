"""Tallies count into the bins that were planted, and add up."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.tally import Tally, histogram
from rtui.analysis.report.members import DAY_S, FREQUENCY_EDGES, HOUR_S, IDLE_EDGES_S, MINUTE_S, TTL_EDGES_S

STARTED_MIN = 29_833_333

VALUES = st.lists(st.integers(0, 400 * DAY_S), max_size=60)


@given(VALUES, st.sampled_from((TTL_EDGES_S, IDLE_EDGES_S, FREQUENCY_EDGES)))
def test_a_histogram_counts_each_value_once(values: list[int], edges: tuple[int, ...]) -> None:
    expected = [0] * (len(edges) + 1)
    for value in values:
        expected[bisect_right(edges, value)] += 1
    assert histogram(values, edges) == expected


def test_planted_lives_are_in_their_bins() -> None:
    planted = (
        0, MINUTE_S - 1, MINUTE_S, 10 * MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 365 * DAY_S, 9 * 365 * DAY_S,
    )  # fmt: skip
    tally = Tally(ExpiryScale(STARTED_MIN))
    asked = [STARTED_MIN * 60_000] * (len(planted) + 2)
    tally.add(len(asked), ttl_ms=[*(life * 1000 for life in planted), -1, -1], asked_at_ms=asked)
    assert tally.ttl is not None
    assert tally.ttl.bins == [2, 1, 1, 1, 1, 1, 1, 2]
    assert (tally.ttl.no_ttl_keys, tally.ttl.known_keys) == (2, 12)
    assert tally.ttl.soonest_ms == STARTED_MIN * 60_000


def test_the_top_of_the_frequency_counter_has_a_bin_of_its_own() -> None:
    tally = Tally(ExpiryScale(STARTED_MIN))
    tally.add(4, frequency=[254, 255, 255, 0])
    assert tally.frequency is not None
    assert (tally.frequency[0], tally.frequency[-2], tally.frequency[-1]) == (1, 1, 2)


def test_what_is_not_known_is_not_counted() -> None:
    tally = Tally(ExpiryScale(STARTED_MIN))
    tally.add(7)
    assert tally.keys == 7
    assert (tally.memory, tally.ttl, tally.idle, tally.frequency) == (None,) * 4
    tally.add(1, memory_bytes=[64])
    assert tally.memory is not None
    assert (tally.keys, tally.memory.count, tally.memory.sum) == (8, 1, 64)
