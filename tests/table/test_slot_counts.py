"""Counts by hash slot against `key_slot`."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from rtui.keyspace.slots import TagRule, find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import TableSlots
from rtui.table.partial import Partial
from rtui.table.patterns import Patterns
from tests.table.drawn_rows import rows_of

bracy = st.lists(st.sampled_from([b"{", b"}", b"a", b"b", b":", b"\n", b"\xff"]), max_size=9).map(b"".join)
batch = st.lists(bracy | st.binary(max_size=20), max_size=30)


def counted(*parts: tuple[list[bytes], list[int] | None, list[int] | None]) -> TableSlots:
    """Keys with their sizes and times to live, where these are known."""
    found, load = Partial(Patterns(Separators()), origin_min=0), TableSlots()
    for keys, sizes, lives in parts:
        batch = InspectedBatch(b"string", keys, lives, sizes)
        found.add(rows_of(batch, 0.0), 0)
    load.found = found.slots
    return load


@given(batch)
@example([b"{}a", b"{{x}}", b"a{b", b"}{x}", b"{a}{b}", b""])
def test_slots_are_those_of_every_key(keys: list[bytes]) -> None:
    sizes = [100 + len(key) for key in keys]
    report = counted((keys, sizes, None)).report()
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
    load = counted(([key for key, _ in known], None, [ttl for _, ttl in known]), (unknown, None, None))
    found = [Counter({slot: count for slot, count in enumerate(counts) if count}) for counts in load.ttl_counts()]
    assert found == [
        Counter(key_slot(key) for key, _ in known),
        Counter(key_slot(key) for key, ttl in known if ttl < 0),
    ]


@given(batch)
def test_few_tags_are_counted_exactly(keys: list[bytes]) -> None:
    tagged = [key for key in keys if find_tag(key)[0] is TagRule.TAG]
    report = counted((keys, [1] * len(keys), None)).report()
    assert {tag.tag: tag.keys for tag in report.tags} == Counter(map(hashed_bytes, tagged))
    for tag in report.tags:
        assert tag.slot == key_slot(b"{" + tag.tag + b"}x")
        assert tag.memory_bytes == tag.keys
        assert not tag.at_least


def test_memory_that_is_known_of_some_keys_is_kept() -> None:
    report = counted(([b"a", b"{b}c"], [1, 2], None), ([b"d", b"{b}e"], None, None)).report()
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
    never = counted(([b"{b}e"], None, None)).report()
    assert (never.memory_bytes, never.tags[0].memory_bytes) == (None, None)
