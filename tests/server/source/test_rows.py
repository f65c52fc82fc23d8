"""Rows joined and divided, and the tables made of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.aggregate.presets import preset
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.keyspace.slots import key_slot
from rtui.server.guard.command import pack_keys
from rtui.server.source.floors import LengthFloors
from rtui.server.source.rows import KEY_TYPE, MOMENT_MS, Rows, every_nth, joined, rows_of
from rtui.server.source.table import TableMaker, part_of
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, keys_of

TYPES = st.sampled_from([b"string", b"hash", b"\xff\n", None])
KEYS = st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=9).map(str.encode), st.just(b"{a}b")), max_size=30)


def rows_for(keys: list[bytes], *, is_sampled: bool = True, asked_at_ms: int = 5_000) -> Rows:
    """Rows whose facts follow from their keys."""
    facts: dict[str, list[Any]] = {
        KEY_TYPE: [b"hash" if len(key) % 2 else b"string" for key in keys],
        "ttl_ms": [-1 if len(key) % 3 else 100 * len(key) for key in keys],
        "memory_bytes": [50 + len(key) for key in keys],
    }
    return Rows([*keys], pack_keys(keys), [asked_at_ms] * len(keys), facts, is_sampled=is_sampled)


def content(rows: Rows) -> list[tuple[Any, ...]]:
    return [*zip(rows.keys, rows.asked_at_ms, *rows.facts.values(), strict=True)]


@given(KEYS, KEYS, st.integers(0, 70))
def test_what_is_taken_and_what_is_left_are_all_rows_in_order(one: list[bytes], other: list[bytes], most: int) -> None:
    rows, more = rows_for(one), rows_for(other)
    whole = content(rows) + content(more)
    rows.extend(more)
    taken = rows.take(most)
    assert content(taken) == whole[:most]
    assert content(rows) == whole[most:]
    assert (len(taken.packed or ()), len(rows.packed or ())) == (len(taken.keys), len(rows.keys))


@given(KEYS, st.data())
def test_rows_divided_are_all_rows(keys: list[bytes], data: st.DataObject) -> None:
    rows = rows_for(keys)
    indexes = data.draw(st.lists(st.sampled_from(range(len(keys))), unique=True) if keys else st.just([]))
    chosen, others = rows.divided(indexes)
    assert Counter(content(chosen)) + Counter(content(others)) == Counter(content(rows))
    assert chosen.keys == [keys[index] for index in indexes]


@given(st.lists(st.tuples(st.sampled_from([b"string", b"hash"]), st.integers(0, 1_000), st.integers(-1, 10**6))))
def test_alike_rows_have_one_type_and_one_moment_and_expire_as_before(
    found: list[tuple[bytes, int, int]],
) -> None:
    keys = [b"%d" % number for number in range(len(found))]
    facts: dict[str, list[Any]] = {KEY_TYPE: [one for one, _, _ in found], "ttl_ms": [ttl for _, _, ttl in found]}
    rows = Rows(keys, None, [at for _, at, _ in found], facts, is_sampled=False)
    seen = []
    for part in rows.alike():
        batch = part.batch()
        assert batch.asked_at_s is not None
        assert batch.ttl_ms is not None
        for key, ttl in zip(batch.keys, batch.ttl_ms, strict=True):
            one, at, before = found[int(key)]
            moment = round(batch.asked_at_s * 1000)
            assert (batch.key_type, moment // MOMENT_MS) == (one, -(-at // MOMENT_MS))
            assert ttl == (before if before <= 0 else max(0, before + at - moment))
            seen.append(key)
    assert sorted(seen) == sorted(keys)


@given(st.lists(TYPES), st.integers(1, 5), st.integers(1, 9))
def test_every_nth_key_of_each_type_however_they_are_divided(
    types: list[bytes | None], every: int, portion: int
) -> None:
    skips: dict[bytes, int] = {}
    chosen = []
    for start in range(0, len(types), portion):
        chosen += [start + index for index in every_nth(types[start : start + portion], every, skips)]
    wanted = []
    for one in {*types} - {None}:
        wanted += [index for index, key_type in enumerate(types) if key_type == one][::every]
    assert sorted(chosen) == sorted(wanted)


@given(KEYS, KEYS, KEYS)
def test_a_table_says_what_the_rows_say(one: list[bytes], other: list[bytes], named: list[bytes]) -> None:
    rows = rows_for(one, is_sampled=False)
    sampled = rows_for(other, asked_at_ms=7_000)
    sampled.facts |= {"idle_s": [3] * len(other), "lengths": [*map(len, other)]}
    alone = Rows(named, None, [1] * len(named), {}, is_sampled=True)
    parts = [part_of(part) for part in (rows, sampled, alone)]
    keys = [*one, *other, *named]
    maker = TableMaker()
    maker.ahead_ms = 40
    table = maker.table(parts, dict.fromkeys(other, b"raw"), "node:1", 3)
    assert table.schema == SCHEMA
    assert keys_of(table) == keys
    assert table["slot"].to_list() == [*map(key_slot, keys)]
    assert table["sampled"].to_list() == [False] * len(one) + [True] * (len(other) + len(named))
    assert table["memory_bytes"].to_list() == [50 + len(key) for key in (*one, *other)] + [None] * len(named)
    assert table["length"].to_list() == [None] * len(one) + [*map(len, other)] + [None] * len(named)
    assert table["encoding"].to_list() == ["raw" if key in other else None for key in keys]
    assert table["type"].to_list() == [
        *(["hash" if len(key) % 2 else "string" for key in (*one, *other)]),
        *([None] * len(named)),
    ]
    expected = [
        NEVER if len(key) % 3 else 100 * len(key) + at + 40
        for part, at in ((one, 5_000), (other, 7_000))
        for key in part
    ]
    assert table["expires_ms"].to_list() == expected + [None] * len(named)


@given(KEYS, st.data())
def test_a_table_leaves_out_what_is_not_wanted(keys: list[bytes], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.booleans(), min_size=len(keys), max_size=len(keys)))
    part = part_of(rows_for(keys))._replace(is_wanted=np.array(wanted, bool))
    whole = part_of(rows_for([b"other"], is_sampled=False))
    table = TableMaker().table([part, whole], {}, "", 0)
    assert keys_of(table) == [key for key, is_wanted in zip(keys, wanted, strict=True) if is_wanted] + [b"other"]


def test_what_expires_after_the_last_moment_expires_in_it() -> None:
    rows = rows_for([b"a", b"b"])
    rows.facts["ttl_ms"] = [LATEST_MS, LATEST_MS - 5_000]
    maker = TableMaker()
    maker.ahead_ms = 1
    assert maker.table([part_of(rows)], {}, "", 0)["expires_ms"].to_list() == [LATEST_MS, LATEST_MS]


def test_types_of_any_bytes_are_told_apart() -> None:
    rows = rows_for([b"a", b"b"])
    rows.facts[KEY_TYPE] = [b"\xff", b"\\xfe"]
    table = TableMaker().table([part_of(rows)], {}, "", 0)
    assert table["type"].to_list() == ["\\xff", "\\xfe"]
    assert pl.concat([table, table])["type"].n_unique() == 2


def test_a_batch_becomes_rows_and_joins_those_alike() -> None:
    batch = InspectedBatch(b"list", [b"a", b"b"], ttl_ms=[-1, 5], lengths=[1, 2], is_sampled=False)
    untyped = InspectedBatch(None, [b"c"])
    found = joined([rows_of(batch, 1.5), rows_of(untyped, 1.5), rows_of(batch, 2.5)])
    assert [*found] == [(False, (KEY_TYPE, "ttl_ms", "lengths")), (True, ())]
    (typed, alone) = found.values()
    assert (typed.keys, typed.asked_at_ms) == ([b"a", b"b"] * 2, [1_500, 1_500, 2_500, 2_500])
    assert alone.keys == [b"c"]


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=1), min_size=1), st.integers(1, 5))
def test_the_floor_is_the_least_of_the_longest(parts: list[list[int]], top: int) -> None:
    floors = LengthFloors(TopKeys(top))
    for part in parts:
        floors.add(b"string", np.array(part, np.int64))
    longest = sorted([length for part in parts for length in part])[-top:]
    limit = preset("rtui").limits(b"string").length
    assert limit is not None
    assert floors.length_floor(b"string") == (0 if len(longest) < top else min(longest[0], limit + 1))
    assert floors.length_floor(b"hash") == 0


def test_what_is_left_out_is_told() -> None:
    big = TopKeys(3)
    LengthFloors(big).leave_out(b"hash", 10_001)
    big.count_over(b"hash", 0, 0)
    assert b"hash" in big.over.uncertain


@pytest.mark.parametrize("fact", ["memory_bytes", "ttl_ms"])
def test_what_is_no_number_is_no_part(fact: str) -> None:
    rows = rows_for([b"a"])
    rows.facts[fact] = [None]
    with pytest.raises(TypeError):
        part_of(rows)
