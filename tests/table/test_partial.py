"""What rows add up to is the same however they are divided; the lists of biggest and hottest keys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.report.document import KeyRecord, Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import TagRule, find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table import lives, partial, slots, tops
from rtui.table.aggregates import Aggregates, TableSlots
from rtui.table.lives import MOST_BINS, Lives
from rtui.table.partial import Partial, Thresholds
from rtui.table.patterns import Patterns
from rtui.table.schema import NEVER
from rtui.table.slots import HeavyTags
from rtui.table.sums import ChunkRows, whole
from rtui.table.tops import TopKeys
from tests.conftest import examples
from tests.table.naive import ROWS, STARTED_MS, add_batch, rows_of, table_of

Rows = list[dict[str, Any]]


def partial_of(rows: Rows, top: int = 3) -> Partial:
    made = Partial(
        Patterns(Separators((b":",))),
        origin_min=STARTED_MS // 60_000,
        top=top,
        thresholds=lambda key_type: Thresholds(50, 1_000, by_memory=key_type == "string"),
    )
    made.add(table_of(rows), STARTED_MS)
    return made


def content(one: Partial) -> dict[str, Any]:
    """All that a partial knows, by names instead of numbers of nodes and types."""
    patterns, own = one.patterns, one.patterns.own().tolist()

    def path(node: int) -> tuple[Any, ...]:
        return (*path(patterns.parents[node]), patterns.name(node)) if node else ()

    names = [(path(own[node]), one.types[kind]) for node, kind in zip(one.cell_nodes, one.cell_types, strict=True)]
    cells = [*map(names.index, names)]  # several cells may be of one node by now
    to = np.array(cells, np.int64)
    memory, lived = one.memory.taken(to), one.lives.taken(to)
    groups, buckets, counts = memory.buckets.settle()
    kinds, lengths, sizes = one.lengths.buckets.settle()
    expiries = zip(*(column.tolist() for column in lived.expiries()), strict=True)
    dense = {
        "counts": one.counts.taken(to).rows,
        "strings": one.strings.taken(to).rows,
        "memory": memory.sums.rows,
        "extremes": memory.greatest.rows,
        "lives": lived.sums.rows,
        "bins": lived.bins.rows,
        "greatest": lived.greatest.rows,
    }
    return {
        **{
            f"{what} {name}": row.tolist()
            for what, rows in dense.items()
            for at, (name, row) in enumerate(zip(names, rows, strict=False))
            if at in cells
        },
        "sizes": {(names[group], *rest) for group, *rest in zip(groups, buckets, counts[0], strict=True)},
        "largest": Counter((names[group], size) for group, size in zip(*lived.largest, strict=True)),
        "expiries": {(names[group], *rest) for group, *rest in expiries},
        "lengths": {
            (one.types[kind // 2], kind % 2, *rest) for kind, *rest in zip(kinds, lengths, *sizes, strict=True)
        },
        "examples": {path(node): keys for node, keys in one.examples.taken(np.array(own)).by_node().items()},
        "slots": one.slots.rows.tolist(),
        "tags": one.slots.tags.heaviest(100).rows(),
        "tops": one.tops.rows.drop("type", "encoding", "node").rows(),
        "over": (one.over, one.over_sampled, one.encodings, one.keys),
    }


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(ROWS, ROWS, ROWS)
def test_the_order_and_grouping_of_what_is_added_says_nothing(first: Rows, second: Rows, third: Rows) -> None:
    whole_one = content(partial_of(first + second + third))
    left = partial_of(first)
    left.merge(partial_of(second))
    left.merge(partial_of(third))
    right, last = partial_of(third), partial_of(second)
    last.merge(partial_of(first))
    right.merge(last)
    one_by_one = partial_of([])
    for row in third + first + second:
        one_by_one.add(table_of([row]), STARTED_MS)
    assert content(left) == content(right) == content(one_by_one) == whole_one


@given(ROWS)
def test_shrinking_changes_no_figure(rows: Rows) -> None:
    one = partial_of(rows)
    before = content(one)
    one.patterns.most = 0
    one.shrink()
    assert {name: figures for name, figures in content(one).items() if name.startswith("slots")} == {
        "slots": before["slots"]
    }
    assert one.counts.rows[:, partial.KEYS].sum() == len(rows)


def test_nothing_wraps_beyond_what_32_and_64_bits_hold() -> None:
    row = {"key": b"user:{1}", "type": "string", "expires_ms": NEVER, "memory_bytes": 2**40 + 1, "length": 2**40 + 1}
    expiring = {**row, "key": b"user:2", "expires_ms": STARTED_MS + 10**7}
    total = partial_of([row, expiring])
    for _ in range(40):
        total.merge(deepcopy(total))
    keys, size = 2**40, 2**40 * (2**40 + 1)
    assert total.keys == 2 * keys
    counts, low, high = total.memory.sums.rows.sum(axis=0).tolist()
    assert (counts, whole(low, high)) == (2 * keys, 2 * size)
    assert total.memory.buckets.settle()[2][0].sum() == 2 * keys
    assert total.lives.sums.rows[:, lives.LASTING].sum() == keys
    _, low, high = total.lengths.sums.rows.sum(axis=0).tolist()
    assert whole(low, high) == 2 * size
    (_, _, counted, low, high, _) = (column.tolist() for column in total.lives.expiries())
    assert (counted, whole(low[0], high[0])) == ([keys], size)
    of_slots = total.slots.rows.sum(axis=0).tolist()
    assert (of_slots[slots.KEYS], whole(of_slots[slots.LOW], of_slots[slots.HIGH])) == (2 * keys, 2 * size)
    ((tag, tagged, missed, low, high, measured),) = total.slots.tags.rows.rows()
    assert (tag, tagged, missed, whole(low, high), measured) == (b"1", keys, 0, size, keys)


@given(st.lists(st.lists(st.integers(0, 40), max_size=60), max_size=6), st.integers(2, 5))
def test_a_tag_has_at_least_its_count_and_at_most_what_was_missed_besides(
    parts: list[list[int]], capacity: int
) -> None:
    total = HeavyTags(capacity)
    for numbers in parts:
        some = HeavyTags(capacity)
        for start in range(0, len(numbers), 7):
            tags = pl.Series([b"%d" % number for number in numbers[start : start + 7]], dtype=pl.Binary)
            some.add(tags, np.zeros(len(tags), np.int64), np.zeros(len(tags), np.bool_))
        total.merge(some)
    truth = Counter(b"%d" % number for numbers in parts for number in numbers)
    kept = {tag: (keys, missed) for tag, keys, missed, *_ in total.rows.iter_rows()}
    assert len(kept) <= 4 * capacity
    for tag, count in truth.items():
        keys, missed = kept.get(tag, (0, total.floor))
        assert keys <= count <= keys + missed


@pytest.mark.slow
def test_bins_of_expiries_are_bounded_and_the_same_in_any_order() -> None:
    random = Random(5)
    groups = np.array([random.randrange(6_000) for _ in range(400_000)], np.int64)
    left = np.array([random.randrange(10**10) for _ in groups], np.int64)

    def added(order: np.ndarray[Any, Any], parts: int) -> Lives:
        made = Lives(STARTED_MS // 60_000)
        for some in np.array_split(order, parts):
            rows, sizes = np.ones(len(some), np.bool_), np.full(len(some), 100)
            made.add(ChunkRows(groups[some]), rows, left[some], left[some] + STARTED_MS, (sizes, rows))
        return made

    once, again = added(np.arange(len(groups)), 1), added(np.argsort(left), 7)
    assert once.coarseness == again.coarseness > 0
    found = [column.tolist() for column in once.expiries()]
    assert found == [column.tolist() for column in again.expiries()]
    assert len(found[0]) <= MOST_BINS
    assert sum(found[2]) == len(groups)


bracy = st.lists(st.sampled_from([b"{", b"}", b"a", b"b", b":", b"\n", b"\xff"]), max_size=9).map(b"".join)
batch = st.lists(bracy | st.binary(max_size=20), max_size=30)


def counted(*parts: tuple[list[bytes], list[int] | None, list[int] | None]) -> TableSlots:
    """Keys with their sizes and times to live, where these are known."""
    found, load = Partial(Patterns(Separators()), origin_min=0), TableSlots()
    for keys, sizes, left_ms in parts:
        found.add(rows_of(InspectedBatch(b"string", keys, left_ms, sizes), 0.0), 0)
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


KINDS = (b"string", b"hash", b"zset")

Fact = tuple[bytes, int, int, int]
"""Kind, memory, length, frequency or idle time."""

values = st.integers(min_value=0, max_value=12)
facts = st.tuples(st.sampled_from(KINDS), values, values, values)
keyspaces = st.dictionaries(st.binary(min_size=1, max_size=3), facts, max_size=60)


def batches(keyspace: dict[bytes, Fact], size: int, *, idle: bool = False) -> list[InspectedBatch]:
    """The keyspace as it would be delivered: batches of one type each."""
    found = []
    for kind in KINDS:
        keys = [key for key, fact in keyspace.items() if fact[0] == kind]
        for at in range(0, len(keys), size):
            some = keys[at : at + size]
            third = [keyspace[key][3] for key in some]
            found.append(
                InspectedBatch(
                    kind,
                    some,
                    memory_bytes=[keyspace[key][1] for key in some],
                    lengths=[keyspace[key][2] for key in some],
                    idle_s=third if idle else None,
                    frequency=None if idle else third,
                )
            )
    return found


def filled(top: int, delivered: Sequence[InspectedBatch]) -> TopKeys:
    found = Aggregates(Separators(), scope=Scope(top=top), started_at_s=0.0)
    for at, batch in enumerate(delivered):
        add_batch(found, batch, float(at))
    finish(found.add_held())
    return found.big


def ranked(keyspace: dict[bytes, Fact], measure: int, top: int, *kinds: bytes, sign: int = -1) -> list[bytes]:
    """What the list should hold: all keys sorted by one fact, ties by key."""
    some = [key for key, fact in keyspace.items() if fact[0] in kinds]
    return sorted(some, key=lambda key: (sign * keyspace[key][measure], key))[:top]


def keys_of(records: Sequence[KeyRecord]) -> list[bytes]:
    return [record.key for record in records]


@given(keyspaces, st.integers(1, 8), st.integers(1, 9), st.randoms(use_true_random=False))
def test_lists_are_those_of_sorting_everything(
    keyspace: dict[bytes, Fact], top: int, size: int, rng: random.Random
) -> None:
    delivered = batches(keyspace, size)
    rng.shuffle(delivered)
    found = filled(top, delivered)
    big = found.report()
    assert keys_of(big.by_memory) == ranked(keyspace, 1, top, *KINDS)
    assert keys_of(big.by_length) == ranked(keyspace, 2, top, b"hash", b"zset")
    for kind, records in big.by_type_memory.items():
        assert keys_of(records) == ranked(keyspace, 1, top, kind)
    for kind, records in big.by_type_length.items():
        assert keys_of(records) == ranked(keyspace, 2, top, kind)
    assert keys_of(found.hottest()) == ranked(keyspace, 3, top, *KINDS)
    assert keys_of(filled(top, batches(keyspace, size, idle=True)).hottest()) == ranked(
        keyspace, 3, top, *KINDS, sign=1
    )


@given(keyspaces, st.integers(1, 8))
def test_a_key_delivered_twice_is_listed_once(keyspace: dict[bytes, Fact], top: int) -> None:
    delivered = batches(keyspace, 4)
    twice = filled(top, delivered + delivered).report()
    assert keys_of(twice.by_memory) == ranked(keyspace, 1, top, *KINDS)


def test_a_key_that_comes_again_counts_by_its_greatest_value_and_as_of_its_last_type() -> None:
    found = filled(
        3,
        [
            InspectedBatch(b"hash", [b"a", b"b"], memory_bytes=[10, 9]),
            InspectedBatch(b"hash", [b"a"], memory_bytes=[2]),
            InspectedBatch(b"list", [b"b"], memory_bytes=[7]),
        ],
    )
    assert [(one.key, one.key_type, one.memory_bytes) for one in found.report().by_memory] == [
        (b"a", b"hash", 10),
        (b"b", b"list", 7),
    ]


def test_a_record_holds_all_that_the_batch_says() -> None:
    batch = InspectedBatch(b"zset", [b"a"], ttl_ms=[-1], idle_s=[3], lengths=[7], note="its memory is not known")
    assert filled(1, [batch]).report().by_length == (
        KeyRecord(b"a", b"zset", None, 7, ttl_ms=-1, idle_s=3, note="its memory is not known"),
    )


def test_facts_learnt_later_complete_the_record_in_every_list() -> None:
    found = filled(2, [InspectedBatch(b"hash", [b"a", b"b"], memory_bytes=[9, 8], frequency=[1, 2])])
    found.learn(b"a", length=40, encoding=b"hashtable")
    found.learn(b"never seen", length=1)
    record = found.report().by_memory[0]
    assert (record.length, record.encoding) == (40, b"hashtable")
    assert found.hottest()[1] == record
    assert not found.report().by_length


def test_keys_of_unknown_type_are_in_the_list_over_all_alone() -> None:
    big = filled(2, [InspectedBatch(None, [b"a"], memory_bytes=[9])]).report()
    assert keys_of(big.by_memory) == [b"a"]
    assert not big.by_type_memory
    assert not big.over


def test_unknown_sizes_are_in_no_list() -> None:
    big = filled(2, [InspectedBatch(b"hash", [b"a"])]).report()
    assert not big.by_memory
    assert not big.by_length
    assert not big.over


def test_lists_of_no_length_are_empty() -> None:
    found = filled(0, [InspectedBatch(b"string", [b"a"], memory_bytes=[10**9], lengths=[10**9], idle_s=[1])])
    assert not found.report().by_memory
    assert not found.hottest()


def test_memory_stays_bounded_however_sizes_grow() -> None:
    found = Aggregates(Separators(), scope=Scope(top=10), started_at_s=0.0)
    for at in range(20):
        keys = [b"%06d" % (at * 50 + i) for i in range(50)]
        sizes = list(range(at * 50, at * 50 + 50))
        add_batch(found, InspectedBatch(b"set", keys, memory_bytes=sizes, lengths=sizes, idle_s=sizes[::-1]), 0.0)
        finish(found.add_held())
        assert found.partial.tops.rows.height <= 30
    assert keys_of(found.big.report().by_memory)[0] == b"000999"


@settings(max_examples=30)
@given(st.dictionaries(st.binary(min_size=1, max_size=9), values), st.integers(1, 8), st.integers(1, 30))
def test_a_list_ends_where_the_names_have_no_more_room(keyspace: dict[bytes, int], top: int, room: int) -> None:
    keys, lengths = list(keyspace), list(keyspace.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tops, "LIST_NAME_BYTES", room)
        batches = [InspectedBatch(b"hash", keys, lengths=lengths, idle_s=lengths)] if keys else []
        found = filled(top, batches)
        for sign, listed in ((-1, found.report().by_length), (1, found.hottest())):
            wanted = sorted(keyspace, key=lambda key: (sign * keyspace[key], key))[:top]
            most = sum(size <= room for size in accumulate(map(len, wanted)))
            assert keys_of(listed) == wanted[: max(1, most)]
