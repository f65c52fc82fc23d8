"""The lists of biggest and hottest keys, against sorting all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.analysis.report.document import KeyRecord, Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table import tops
from rtui.table.aggregates import Aggregates
from rtui.table.tops import TopKeys
from tests.table.drawn_rows import add_batch

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
