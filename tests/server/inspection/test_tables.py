"""Tables made of batches, and the floors of lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.thresholds import preset
from rtui.keyspace.slots import key_slot
from rtui.server.inspection.tables import TABLE_ROWS, InspectedBatch, LengthFloors, Tables, table_of
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, keys_of
from rtui.table.tops import TopKeys, Tops
from tests.server.inspection.kept import Kept

KEYS = st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=9).map(str.encode), st.just(b"{a}b")), max_size=30)


def batch_of(keys: list[bytes], key_type: bytes | None = b"hash", **facts: Any) -> InspectedBatch:
    """A batch whose facts follow from its keys."""
    ttl_ms = [-1 if len(key) % 3 else 100 * len(key) for key in keys]
    return InspectedBatch(key_type, keys, ttl_ms, [50 + len(key) for key in keys], **facts)


@given(KEYS, KEYS, KEYS)
def test_a_table_says_what_the_batches_say(one: list[bytes], other: list[bytes], named: list[bytes]) -> None:
    lengths = [*map(len, other)]
    found = [
        (batch_of(one, is_sampled=False), 5.0),
        (batch_of(other, b"set", lengths=lengths, idle_s=[3] * len(other), encodings=[b"raw"] * len(other)), 7.0),
        (InspectedBatch(None, named), 1.0),
    ]
    keys = [*one, *other, *named]
    table = table_of(found, "node:1", 3)
    assert table.schema == SCHEMA
    assert keys_of(table) == keys
    assert table["slot"].to_list() == [*map(key_slot, keys)]
    assert table["sampled"].to_list() == [False] * len(one) + [True] * (len(other) + len(named))
    assert table["memory_bytes"].to_list() == [50 + len(key) for key in (*one, *other)] + [None] * len(named)
    assert table["length"].to_list() == [None] * len(one) + lengths + [None] * len(named)
    assert table["idle_s"].to_list() == [None] * len(one) + [3] * len(other) + [None] * len(named)
    assert table["encoding"].to_list() == [None] * len(one) + ["raw"] * len(other) + [None] * len(named)
    assert table["type"].to_list() == ["hash"] * len(one) + ["set"] * len(other) + [None] * len(named)
    expected = [
        NEVER if len(key) % 3 else 100 * len(key) + at for part, at in ((one, 5_000), (other, 7_000)) for key in part
    ]
    assert table["expires_ms"].to_list() == expected + [None] * len(named)
    assert set(table["node"]) <= {"node:1"}
    assert set(table["database"]) <= {3}


def test_what_expires_after_the_last_moment_expires_in_it() -> None:
    batch = InspectedBatch(b"set", [b"a", b"b"], ttl_ms=[LATEST_MS, LATEST_MS - 5_000])
    assert table_of([(batch, 5.001)], "", 0)["expires_ms"].to_list() == [LATEST_MS, LATEST_MS]


def test_types_of_any_bytes_are_told_apart() -> None:
    table = table_of([(batch_of([b"a"], b"\xff"), 1.0), (batch_of([b"b"], b"\\xfe"), 1.0)], "", 0)
    assert table["type"].to_list() == ["\\xff", "\\xfe"]
    assert pl.concat([table, table])["type"].n_unique() == 2


class Counted(Kept):
    """Findings that count the tables."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[float] = []

    def add_rows(self, made: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        assert made().height == rows
        self.tables.append(made())
        self.moments.append(asked_at_s)


@given(st.lists(st.integers(1, 700), max_size=30))
def test_each_key_goes_into_one_table_none_of_which_is_large(sizes: list[int]) -> None:
    found = Counted()
    tables = Tables(found, "node:1")
    tables.ahead_ms = 2_000
    for at, size in enumerate(sizes):
        tables.add(batch_of([b"%d:%d" % (at, index) for index in range(size)]), float(at))
    tables.hand_on()
    assert tables.rows == 0
    assert keys_of(found.rows) == [b"%d:%d" % (at, index) for at, size in enumerate(sizes) for index in range(size)]
    assert all(0 < table.height < TABLE_ROWS + 700 for table in found.tables)
    assert found.moments[-1:] == ([len(sizes) - 1 + 2.0] if sizes else [])


def test_keys_that_are_forgotten_are_in_no_table() -> None:
    found = Counted()
    tables = Tables(found, "")
    tables.add(batch_of([b"a"]), 1.0)
    tables.clear()
    tables.hand_on()
    assert not found.tables


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
    big.take(Tops(3), Counter(hash=0), Counter())
    assert b"hash" in big.over.uncertain
