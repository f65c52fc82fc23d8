"""Load by hash slot against `key_slot`, and how uneven it is."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.aggregate.slot_load import SlotLoad
from rtui.analysis.report.slot_balance import NodeLoad, node_loads, skew
from rtui.keyspace.slots import SLOTS, TagRule, find_tag, hashed_bytes, key_slot

bracy = st.lists(st.sampled_from([b"{", b"}", b"a", b"b", b":", b"\n", b"\xff"]), max_size=9).map(b"".join)
batch = st.lists(bracy | st.binary(max_size=20), max_size=30)


def counted(keys: list[bytes], sizes: list[int] | None = None) -> SlotLoad:
    load = SlotLoad()
    load.add(keys, sizes)
    return load


@given(batch)
@example([b"{}a", b"{{x}}", b"a{b", b"}{x}", b"{a}{b}", b""])
def test_slots_are_those_of_every_key(keys: list[bytes]) -> None:
    sizes = [100 + len(key) for key in keys]
    report = counted(keys, sizes).report()
    bytes_by_slot: Counter[int] = Counter()
    for key, size in zip(keys, sizes, strict=True):
        bytes_by_slot[key_slot(key)] += size
    assert Counter({slot: n for slot, n in enumerate(report.keys) if n}) == Counter(map(key_slot, keys))
    assert report.memory_bytes is not None
    assert {slot: n for slot, n in enumerate(report.memory_bytes) if n} == bytes_by_slot


@given(batch)
def test_few_tags_are_counted_exactly(keys: list[bytes]) -> None:
    tagged = [key for key in keys if find_tag(key)[0] is TagRule.TAG]
    report = counted(keys, [1] * len(keys)).report()
    assert {tag.tag: tag.keys for tag in report.tags} == Counter(map(hashed_bytes, tagged))
    for tag in report.tags:
        assert tag.slot == key_slot(b"{" + tag.tag + b"}x")
        assert tag.memory_bytes == tag.keys
        assert not tag.at_least


@given(batch, batch)
def test_merged_is_as_counted_together(one: list[bytes], two: list[bytes]) -> None:
    merged = counted(one, [3] * len(one))
    merged.merge(counted(two, [3] * len(two)))
    assert merged.report() == counted(one + two, [3] * len(one + two)).report()


def test_memory_that_is_known_of_some_keys_is_kept() -> None:
    load = counted([b"a", b"{b}c"], [1, 2])
    load.add([b"d", b"{b}e"], None)
    report = load.report(owned=((0, 100),))
    assert report.memory_bytes is not None
    assert sum(report.memory_bytes) == 3
    assert report.tags[0].memory_bytes == 2
    assert report.unmeasured is not None
    assert {slot: n for slot, n in enumerate(report.unmeasured) if n} == {key_slot(b"d"): 1, key_slot(b"{b}"): 1}
    assert report.bytes_in(key_slot(b"a"), key_slot(b"a")) == (1, True)
    assert report.bytes_in(key_slot(b"{b}"), key_slot(b"{b}")) == (2, False)
    assert report.bytes_in(key_slot(b"d"), key_slot(b"d")) == (None, False)
    assert report.bytes_in(0, 16_383) == (3, False)
    assert sum(report.keys) == 4
    never = counted([b"{b}e"], None).report()
    assert (never.memory_bytes, never.tags[0].memory_bytes) == (None, None)
    assert report.owned == ((0, 100),)


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
    assert node_loads([1] * SLOTS, 1) == (NodeLoad(0, SLOTS - 1, SLOTS),)
    with pytest.raises(ValueError, match="0 nodes"):
        node_loads([1] * SLOTS, 0)


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
