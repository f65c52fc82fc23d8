"""How uneven the load of hash slots is, and what the nodes of a cluster would hold."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.tables.slots import SlotRangeLoad, node_loads, skew
from rtui.keyspace.slots import SLOTS


def test_three_nodes_are_cut_as_redis_cli_cuts_them() -> None:
    """The borders that every tutorial on `redis-cli --cluster create` shows."""
    assert [(node.first, node.last) for node in node_loads([0] * SLOTS, 3)] == [
        (0, 5460),
        (5461, 10922),
        (10923, 16383),
    ]
    assert [(node.first, node.last) for node in node_loads([0] * SLOTS, 6)] == [
        (0, 2730),
        (2731, 5460),
        (5461, 8191),
        (8192, 10922),
        (10923, 13652),
        (13653, 16383),
    ]


@given(st.integers(1, 1000))
def test_nodes_share_all_slots(nodes: int) -> None:
    cut = node_loads(range(SLOTS), nodes)
    assert [slot for node in cut for slot in range(node.first, node.last + 1)] == list(range(SLOTS))
    assert sum(node.load for node in cut) == sum(range(SLOTS))
    widths = {node.last - node.first for node in cut}
    assert max(widths) - min(widths) <= 1


def test_one_node_has_everything_and_none_is_refused() -> None:
    assert node_loads([1] * SLOTS, 1) == (SlotRangeLoad(0, SLOTS - 1, SLOTS),)
    with pytest.raises(ValueError, match="0 nodes"):
        node_loads([1] * SLOTS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [300, 20_000, 500_000])
def test_an_even_spread_is_chance(keys: int) -> None:
    rng = random.Random(keys)
    alarms = 0
    for _ in range(60 if keys < 100_000 else 5):
        slots = [0] * SLOTS
        for slot, count in Counter(rng.choices(range(SLOTS), k=keys)).items():
            slots[slot] = count
        alarms += not skew(slots).is_chance
    assert alarms <= 2


def test_a_loaded_slot_is_not_chance() -> None:
    slots = [61] * SLOTS
    slots[7] += 60
    found = skew(slots)
    assert (found.slot, found.keys, found.is_chance) == (7, 121, False)
    assert found.ratio == pytest.approx(121 / 61, rel=1e-3)


def test_only_owned_slots_are_compared() -> None:
    slots = [0] * SLOTS
    for slot in range(100):
        slots[slot] = 10
    assert not skew(slots).is_chance
    assert skew(slots, [(0, 99)]).is_chance
    assert skew(slots, [(200, 300)]).ratio == 0
    assert skew(slots, []).is_chance
    assert skew([5, *slots[1:]], [(0, 0)]).is_chance
