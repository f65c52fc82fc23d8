"""Heavy hash tags, against a count of all of them."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.aggregate.heavy_tags import TAG_BYTES, HeavyTags

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


@given(streams, streams, st.integers(1, 6))
def test_merged_counts_are_honest(one: list[list[bytes]], two: list[list[bytes]], capacity: int) -> None:
    heavy = followed(one, capacity)
    heavy.merge(followed(two, capacity))
    hold_to_the_truth(heavy, Counter(tag for tags in one + two for tag in tags), capacity)


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


@given(streams, streams, st.integers(1, 6), st.integers(1, 12))
def test_counts_of_tags_without_room_are_honest(
    one: list[list[bytes]], two: list[list[bytes]], capacity: int, room: int
) -> None:
    heavy, other = HeavyTags(capacity, room=room), HeavyTags(capacity, room=room)
    for some, stream in ((heavy, one), (other, two)):
        for tags in stream:
            some.add(tags, None)
    heavy.merge(other)
    found = {tag.tag: tag for tag in heavy.heaviest(10**6)}
    for tag, count in Counter(tag for tags in one + two for tag in tags).items():
        if tag not in found:
            assert count <= heavy.floor
            continue
        keys = found[tag].keys
        assert isinstance(keys, int)
        assert keys <= count <= keys + heavy.floor * found[tag].at_least
