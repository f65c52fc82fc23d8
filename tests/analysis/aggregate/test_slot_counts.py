"""Counts by hash slot against `key_slot`, and heavy hash tags against a count of all of them."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.aggregate.slot_counts import TAG_BYTES, HeavyTags, SlotCounts
from rtui.keyspace.slots import TagRule, find_tag, hashed_bytes, key_slot

bracy = st.lists(st.sampled_from([b"{", b"}", b"a", b"b", b":", b"\n", b"\xff"]), max_size=9).map(b"".join)
batch = st.lists(bracy | st.binary(max_size=20), max_size=30)


def counted(keys: list[bytes], sizes: list[int] | None = None) -> SlotCounts:
    load = SlotCounts()
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


@given(st.lists(st.tuples(bracy, st.sampled_from([-1, 0, 90_000])), max_size=30), batch)
def test_times_to_live_are_those_of_the_keys_of_which_they_are_known(
    known: list[tuple[bytes, int]], unknown: list[bytes]
) -> None:
    load = SlotCounts()
    load.add([key for key, _ in known], None, [ttl for _, ttl in known])
    load.add(unknown, None)
    found = [Counter({slot: count for slot, count in enumerate(counts) if count}) for counts in load.ttl_counts()]
    assert found == [
        Counter(key_slot(key) for key, _ in known),
        Counter(key_slot(key) for key, ttl in known if ttl < 0),
    ]


@given(batch)
def test_few_tags_are_counted_exactly(keys: list[bytes]) -> None:
    tagged = [key for key in keys if find_tag(key)[0] is TagRule.TAG]
    report = counted(keys, [1] * len(keys)).report()
    assert {tag.tag: tag.keys for tag in report.tags} == Counter(map(hashed_bytes, tagged))
    for tag in report.tags:
        assert tag.slot == key_slot(b"{" + tag.tag + b"}x")
        assert tag.memory_bytes == tag.keys
        assert not tag.at_least


def test_memory_that_is_known_of_some_keys_is_kept() -> None:
    load = counted([b"a", b"{b}c"], [1, 2])
    load.add([b"d", b"{b}e"], None)
    report = load.report()
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


streams = st.lists(st.lists(st.integers(0, 60).map(lambda n: b"%d" % (n * n // 40)), max_size=20), max_size=30)


def followed(stream: list[list[bytes]], capacity: int) -> HeavyTags:
    heavy = HeavyTags(capacity)
    for tags in stream:
        heavy.add(tags, [2] * len(tags))
    return heavy


def hold_to_the_truth(heavy: HeavyTags, truth: Counter[bytes], capacity: int) -> None:
    found = {tag.tag: tag for tag in heavy.heaviest(10**6)}
    assert heavy.floor <= sum(truth.values()) / (capacity + 1)
    for tag, one in found.items():
        assert isinstance(one.keys, int)
        assert one.memory_bytes == 2 * one.keys
        if one.at_least:
            assert one.keys <= truth[tag] <= one.keys + heavy.floor
        else:
            assert one.keys == truth[tag]
    for tag, count in truth.items():
        assert tag in found or count <= heavy.floor


@given(streams, st.integers(1, 6))
def test_counts_are_honest(stream: list[list[bytes]], capacity: int) -> None:
    hold_to_the_truth(followed(stream, capacity), Counter(tag for tags in stream for tag in tags), capacity)


@pytest.mark.parametrize("late", [False, True])
def test_a_heavy_tag_is_found_among_a_hundred_thousand_light_ones(late: bool) -> None:
    rng = random.Random(3)
    light = [b"user:%d" % i for i in range(100_000)]
    mixed = [*light[50_000:], *[b"eu"] * 2_000]
    rng.shuffle(mixed)
    keys = light[:50_000] + mixed if late else [b"eu", *mixed, *light[:50_000]]
    first = followed([keys[at : at + 200] for at in range(0, len(keys), 200)], 512).heaviest(1)[0]
    assert first.tag == b"eu"
    assert first.at_least is late
    assert first.keys == 2_000 + (not late)


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
def test_long_tags_do_not_fill_the_memory(size: int) -> None:
    heavy = HeavyTags()
    tracemalloc.start()
    try:
        peak = 0
        for n in range(200):
            heavy.add([b"%0*d" % (size, n), b"eu"], None)
            peak = max(peak, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert peak < 4 * TAG_BYTES + 3 * size
    first = heavy.heaviest(1)[0]
    assert (first.tag, first.keys, first.at_least) == (b"eu", 200, False)


@given(streams, st.integers(1, 6), st.integers(1, 12))
def test_counts_of_tags_without_room_are_honest(stream: list[list[bytes]], capacity: int, room: int) -> None:
    heavy = HeavyTags(capacity, max_bytes=room)
    for tags in stream:
        heavy.add(tags, None)
    found = {tag.tag: tag for tag in heavy.heaviest(10**6)}
    for tag, count in Counter(tag for tags in stream for tag in tags).items():
        if tag not in found:
            assert count <= heavy.floor
            continue
        keys = found[tag].keys
        assert isinstance(keys, int)
        assert keys <= count <= keys + heavy.floor * found[tag].at_least
