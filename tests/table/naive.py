"""What keys add up to, by brute force; rows of the key table, drawn and written out."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import KeyRecord, Node, NodeKind, Stats
from rtui.analysis.report.expiries import ExpiryBins
from rtui.analysis.report.members import IDLE_EDGES_S, MOST_SHORT, MOST_TINY, TTL_EDGES_S
from rtui.keyspace.text.identifiers import Identifiers, KeySegments
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch, TableFindings
from rtui.server.inspection.tables import table_of as table_of_batches
from rtui.table.lives import MINUTE_MS, Lives
from rtui.table.schema import NEVER, SCHEMA, names_of
from rtui.table.sums import ChunkRows, whole

PathName = tuple[tuple[bytes, bytes, NodeKind], ...]
"""What tells nodes apart, from the first level on."""


@dataclass(frozen=True, slots=True)
class One:
    """A key and what is known of it."""

    key: bytes
    kind: bytes | None
    ttl_ms: int | None
    memory_bytes: int | None
    idle_s: int | None
    length: int | None
    asked_at_s: float


def records(batches: Iterable[tuple[InspectedBatch, float]]) -> Iterator[One]:
    def at(column: Sequence[int] | None, index: int) -> int | None:
        return None if column is None else column[index]

    for batch, asked_at_s in batches:
        for index, key in enumerate(batch.keys):
            ttl_ms, memory = at(batch.ttl_ms, index), at(batch.memory_bytes, index)
            idle_s, length = at(batch.idle_s, index), at(batch.lengths, index)
            yield One(key, batch.key_type, ttl_ms, memory, idle_s, length, asked_at_s)


def path_of(key: bytes, separators: Separators, depth: int | None = None) -> PathName:
    """Where a key lies where nothing is folded."""
    identifiers = Identifiers(separators.values)
    path: list[tuple[bytes, bytes, NodeKind]] = []
    for name, separator in KeySegments(separators).of(key, 1_000):
        pattern = identifiers.form(name).pattern
        kind = NodeKind.LITERAL if pattern is None else NodeKind.PATTERN
        path.append((name if pattern is None else pattern, separator, kind))
    return tuple(path[:depth])


def by_path(keys: Iterable[One], separators: Separators, depth: int | None = None) -> dict[PathName, list[One]]:
    """Every node, with all keys at and below it."""
    found: dict[PathName, list[One]] = {}
    for one in keys:
        path = path_of(one.key, separators, depth)
        for level in range(len(path) + 1):
            found.setdefault(path[:level], []).append(one)
    return found


def nodes(root: Node) -> dict[PathName, Stats]:
    return {tuple((one.name, one.separator, one.kind) for one in path[1:]): path[-1].stats for path in root.walk()}


def check(stats: Stats, keys: Sequence[One], total: Sequence[One]) -> None:
    """Hold what a report says of keys against the keys."""
    memory = [one.memory_bytes for one in keys if one.memory_bytes is not None]
    all_memory = sum(one.memory_bytes or 0 for one in total)
    assert stats.keys == len(keys)
    assert stats.share_keys == len(keys) / len(total)
    assert stats.memory_known_keys == len(memory)
    assert stats.memory_bytes == (sum(memory) if memory else None)
    assert stats.share_memory == ((sum(memory) / all_memory if all_memory else 0.0) if memory else None)
    assert (stats.memory is None) == (not memory)
    if stats.memory is not None:
        assert (stats.memory.max, stats.memory.mean) == (max(memory), sum(memory) / len(memory))
    _check_lives(stats, keys)
    idle = [one.idle_s for one in keys if one.idle_s is not None]
    assert stats.idle == (_counted(idle, IDLE_EDGES_S) if idle else None)
    _check_strings(stats, keys)
    kinds = Counter(one.kind for one in keys if one.kind is not None)
    assert stats.types == tuple(sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0])))


def _check_strings(stats: Stats, keys: Sequence[One]) -> None:
    asked = [one for one in keys if one.kind == b"string" and one.length is not None]
    found = stats.strings
    assert (found is None) == (not asked)
    if found is not None:
        lengths = [one.length or 0 for one in asked]
        tiny = [one for one in asked if (one.length or 0) <= MOST_TINY]
        assert (found.asked_keys, found.length_bytes, found.tiny_keys) == (len(asked), sum(lengths), len(tiny))
        assert found.long_keys == sum(length > MOST_SHORT for length in lengths)
        lives = [-1 if one.ttl_ms < 0 else one.ttl_ms // 1000 for one in tiny if one.ttl_ms is not None]
        lasting = lives.count(-1)
        assert found.tiny_ttl == (lasting, *_counted([one for one in lives if one >= 0], TTL_EDGES_S))


def _check_lives(stats: Stats, keys: Sequence[One]) -> None:
    lives = [one for one in keys if one.ttl_ms is not None]
    lasting = [one for one in lives if one.ttl_ms == -1]
    ttl = [one.ttl_ms // 1000 for one in lives if one.ttl_ms is not None and one.ttl_ms >= 0]
    ends = [int(one.asked_at_s * 1000) + one.ttl_ms for one in lives if one.ttl_ms is not None and one.ttl_ms >= 0]
    assert stats.no_ttl_keys == (len(lasting) if lives else None)
    assert stats.no_ttl_share == (len(lasting) / len(lives) if lives else None)
    assert stats.ttl == (_counted(ttl, TTL_EDGES_S) if lives else None)
    left_s = [one.ttl_ms / 1000 for one in lives if one.ttl_ms is not None and one.ttl_ms >= 0]
    assert stats.ttl_range_s == ((min(left_s), max(left_s)) if left_s else None)
    assert stats.soonest_expiry_s == (min(ends) / 1000 if ends else None)
    if lives and stats.memory_bytes is not None:
        sizes = [one.memory_bytes for one in lasting if one.memory_bytes is not None]
        assert stats.no_ttl_memory_bytes == (None if lasting and not sizes else sum(sizes))


def _counted(values: Sequence[int], edges: Sequence[int]) -> tuple[int, ...]:
    counts = Counter(bisect_right(edges, value) for value in values)
    return tuple(counts[index] for index in range(len(edges) + 1))


ROUNDING = 1e-9
"""How far figures may be off that rest on sums of squares, which a table adds up in floating point."""


def assert_same(one: Any, other: Any, path: str = "summary") -> None:
    """Compare everything; numbers with a point but for their rounding."""
    if path.endswith(".distinct"):
        _same_distinct(one, other, path)
    elif isinstance(one, Estimate | float) or isinstance(other, Estimate | float):
        low, high = ((a.low, a.value, a.high) if isinstance(a, Estimate) else a for a in (one, other))
        assert type(one) is type(other), path
        assert low == pytest.approx(high, rel=ROUNDING, nan_ok=True), path
    elif isinstance(one, msgspec.Struct):
        assert type(one) is type(other), path
        for name in one.__struct_fields__:
            assert_same(getattr(one, name), getattr(other, name), f"{path}.{name}")
    elif isinstance(one, tuple | list) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{path}[{at}]")
    elif isinstance(one, dict) and one.keys() == other.keys():
        for key in one:
            assert_same(one[key], other[key], f"{path}[{key!r}]")
    else:
        assert one == other, path


def _same_distinct(one: Any, other: Any, path: str) -> None:
    """Counts of different segments up to 255 are exact; above, each is an estimate by other hashes."""
    if isinstance(one, Estimate) and isinstance(other, Estimate):
        assert 0.75 < one.value / other.value < 1.33, path
    else:
        assert one == other, path


def binned(
    minutes: Sequence[int], sizes: Sequence[int | None] | None = None, *, origin_min: int, coarser: int = 0
) -> ExpiryBins:
    """Expiries by the minute since the epoch, with the sizes that are known, in bins that are joined so many times."""
    lives = Lives(origin_min)
    known = [None] * len(minutes) if sizes is None else [*sizes]
    memory = np.array([size or 0 for size in known], np.int64), np.array([size is not None for size in known], bool)
    if minutes:
        moments = np.array(minutes, np.int64) * MINUTE_MS
        left = np.maximum(moments - origin_min * MINUTE_MS, 0)
        lives.add(ChunkRows(np.zeros(len(minutes), np.int64)), np.ones(len(minutes), bool), left, moments, memory)
    lives._join(coarser)
    _, starts, keys, low, high, squares = lives.expiries()
    counted = (
        (start, count, whole(lower, upper), int(square))
        for start, count, lower, upper, square in zip(
            *(column.tolist() for column in (starts, keys, low, high, squares)), strict=True
        )
    )
    return ExpiryBins(origin_min, lives.coarseness, counted)


STARTED_MS = 1_790_000_000_000

_NAMES = st.sampled_from(b"user cart v2 42 7 page_1 page_2 2026-02-01 {a:1} {9} \xff { \1".split(b" ")) | st.just(b"")

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.lists(_NAMES, min_size=1, max_size=4).map(b":".join),
            "type": st.sampled_from(("string", "hash", None)),
            "encoding": st.sampled_from((None, "raw", "int")),
            "expires_ms": st.none() | st.just(NEVER) | st.integers(STARTED_MS, STARTED_MS + 10**11),
            "memory_bytes": st.none() | st.integers(0, 200) | st.integers(0, 2**40) | st.just(2**62),
            "length": st.none() | st.integers(0, 100),
            "idle_s": st.none() | st.integers(0, 10**8),
            "frequency": st.none() | st.integers(0, 255),
            "sampled": st.booleans(),
        }
    ),
    max_size=25,
)
"""Rows whose keys are often alike."""


def table_of(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return these rows; what they don't say is not known."""
    found = [*rows]
    name, raw = names_of([row["key"] for row in found])
    columns = {column: [row.get(column) for row in found] for column in SCHEMA.names() if column not in ("name", "raw")}
    return pl.DataFrame({"name": name, "raw": raw, **columns}, SCHEMA)


def rows_of(batch: InspectedBatch, asked_at_s: float) -> pl.DataFrame:
    """Return the keys of a batch as rows."""
    return table_of_batches([(batch, asked_at_s)], "", 0)


def add_batch(found: TableFindings, batch: InspectedBatch, asked_at_s: float) -> None:
    """Add the keys of a batch as rows."""
    if batch.note:
        found.add_note(batch.key_type, batch.note)
    found.add_rows(partial(rows_of, batch, asked_at_s), len(batch.keys), asked_at_s)


def record_of(batch: InspectedBatch, index: int, asked_at_s: float) -> KeyRecord:
    """Return all that a batch says about one of its keys."""

    def value(column: Sequence[int] | None) -> int | None:
        return None if column is None else column[index]

    return KeyRecord(
        key=batch.keys[index],
        key_type=batch.key_type,
        memory_bytes=value(batch.memory_bytes),
        length=value(batch.lengths),
        ttl_ms=value(batch.ttl_ms),
        idle_s=value(batch.idle_s),
        frequency=value(batch.frequency),
        asked_at_s=asked_at_s,
        note=batch.note,
    )
