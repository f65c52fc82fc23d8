"""Rows of the key table: made from the arrays of the compiled engine, and from batches of keys that Python has queried.

The columns are those of `rtui.table.schema`. Batches are collected until they are worth a table.
"""

from __future__ import annotations

import time
from binascii import crc_hqx
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise, repeat
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import polars as pl

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, names_of
from rtui.table.tops import TopKeys


@dataclass(frozen=True, slots=True)
class InspectedBatch:
    """Keys of one type; each column is parallel to `keys`, or None if the fact is unknown for all of them.

    Keys that lack a fact come in a batch of their own, so no column has gaps.
    """

    key_type: bytes | None
    """The type as the server names it; None where the user may not ask for it."""
    keys: Sequence[bytes]
    ttl_ms: Sequence[int] | None = None
    """Time to live in milliseconds, NO_EXPIRY for keys that do not expire."""
    memory_bytes: Sequence[int] | None = None
    """MEMORY USAGE with its default number of samples."""
    idle_s: Sequence[int] | None = None
    frequency: Sequence[int] | None = None
    """The LFU counter, 0 … 255."""
    lengths: Sequence[int] | None = None
    """Bytes of a string, else the number of elements."""
    note: str = ""
    """A note for the reader about these keys, such as why their memory was not asked for; a safe sentence."""
    is_sampled: bool = True
    """Whether these keys stand for others: all keys do where all are asked the same, else those chosen at random.

    Facts that are asked of a sample are known of other keys only where those were chosen by other facts.
    """
    asked_at_s: float | None = None
    """When the first answers about them came, in seconds since the epoch; None before that."""
    encodings: Sequence[bytes] | None = None


Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

TABLE_ROWS: Final = 2_000
"""Rows of a table made of batches."""

FIRST_ROWS: Final = 200
"""Rows of the first table; each has twice the rows of the one before until they are TABLE_ROWS."""

TABLE_S: Final = 0.25
"""Seconds after which a table is made of the rows at hand."""

ROW: Final = np.dtype(
    [
        *((name, np.uint64) for name in ("name_at", "length")),
        *((name, np.int64) for name in ("ttl_ms", "recency", "memory_bytes", "size", "asked_ms")),
        ("type", np.int32),
        ("slot", np.uint16),
        ("known", np.uint8),
        ("encoding", np.uint8),
    ],
    align=True,
)
"""A row as `server/engine/_pages.pxd` has it; names are `length` bytes from `name_at` on."""

TTL, MEMORY, IDLE, FREQUENCY, LENGTH, SAMPLED = (1 << bit for bit in range(6))
"""Bits of `known`: which facts of a key are known, and whether it stands for others."""

MOST_ENCODINGS: Final = 33
"""Of one type, with 0 for one that is not known."""

_FACTS: Final = {"memory_bytes": "memory_bytes", "length": "lengths", "idle_s": "idle_s", "frequency": "frequency"}
"""Columns of the key table that a batch has as they are, and their names there."""


class TableFindings(Protocol):
    """The findings that the tables of a pass are added to."""

    @property
    def big(self) -> TopKeys:
        """Gives the length from which a key is listed, and is told of keys whose length is not asked."""

    def add_rows(self, table: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        """Add rows that were asked at about this moment, in seconds since the epoch by the server's clock.

        `table` makes the table of these rows, in any thread.
        """

    def add_unread(self, keys: Sequence[bytes]) -> None:
        """Add keys of which only the name is known."""

    def add_vanished(self, count: int) -> None:
        """Count keys that no longer existed when they were queried."""

    def add_note(self, key_type: bytes | None, note: str) -> None:
        """Learn why the memory of keys of a type is not known."""


class LengthFloors:
    """The length from which a key would be listed among the longest of its type, by the lengths so far.

    The findings add up tables in large chunks, so they learn it late; but the choice of keys to ask for their length
    depends on it. To `LateLengths` this stands for the findings' lists of largest keys.
    """

    def __init__(self, big: TopKeys) -> None:
        """`big` gives the length of its lists and the thresholds of big keys, and is told of keys left out."""
        self.big = big
        self._largest: dict[bytes | None, Numbers] = {}

    @property
    def top(self) -> int:
        return self.big.top

    def add(self, key_type: bytes | None, lengths: Numbers) -> None:
        known = self._largest.get(key_type)
        if known is not None:
            if len(known) == self.top and int(lengths.max(initial=0)) <= known[0]:
                return
            lengths = np.concatenate([known, lengths])
        self._largest[key_type] = np.sort(lengths)[-self.top :]

    def length_floor(self, key_type: bytes | None) -> int:
        """Return from which length on a key would be listed, or be above the thresholds, as known by now."""
        known = self._largest.get(key_type)
        floor = 0 if known is None or len(known) < self.top else int(known[0])
        limit = self.big.limits(key_type).length
        return floor if limit is None else min(floor, limit + 1)

    def leave_out(self, key_type: bytes | None, most_length: int) -> None:
        self.big.leave_out(key_type, most_length)


class Tables:
    """Findings that pass on the keys of one node as tables; batches are collected for a while."""

    def __init__(self, findings: TableFindings, node: str) -> None:
        """`node` is host and port of the primary that serves the keys; empty until it is known."""
        self.node, self.database = node, 0
        self.ahead_ms = 0
        """How far the server's clock is ahead of that of rtui."""
        self.rows = 0
        """Keys that wait for a table."""
        self._batches: list[tuple[InspectedBatch, float]] = []
        """Batches with the time they were asked, by the clock of rtui."""
        self._since = 0.0
        self._most = FIRST_ROWS
        self.use(findings)

    def use(self, findings: TableFindings) -> None:
        """Hand on to other findings from now on."""
        self.findings = findings
        self.big = LengthFloors(findings.big)
        self.add_unread, self.add_vanished, self.add_note = (
            findings.add_unread,
            findings.add_vanished,
            findings.add_note,
        )

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        """Add keys with complete facts, asked at this moment by the clock of rtui."""
        if batch.note:
            self.add_note(batch.key_type, batch.note)
        if batch.lengths is not None:
            self.big.add(batch.key_type, np.array(batch.lengths, dtype=np.int64))
        now = time.monotonic()
        if not self.rows:
            self._since = now
        self._batches.append((batch, asked_at_s))
        self.rows += len(batch.keys)
        if self.rows >= self._most or now - self._since > TABLE_S:
            self._most = min(2 * self._most, TABLE_ROWS)
            self.hand_on()

    def add_array(self, rows: EngineRows) -> bool:
        """Add rows of the engine, one at least; return whether the length of any is known."""
        found = rows.lengths()
        for key_type, lengths in found.items():
            self.big.add(key_type, lengths)
        table = partial(rows.table, self.ahead_ms, self.node, self.database)
        self.findings.add_rows(table, len(rows), (rows.asked_ms + self.ahead_ms) / 1000)
        return bool(found)

    def hand_on(self) -> None:
        batches, rows, self._batches, self.rows = self._batches, self.rows, [], 0
        if rows:
            ahead_s = self.ahead_ms / 1000
            table = partial(table_of, [(batch, at_s + ahead_s) for batch, at_s in batches], self.node, self.database)
            self.findings.add_rows(table, rows, max([at_s for _, at_s in batches]) + ahead_s)

    def clear(self) -> None:
        self._batches, self.rows = [], 0


def table_of(batches: Sequence[tuple[InspectedBatch, float]], node: str, database: int) -> pl.DataFrame:
    """Return the keys of batches as a table, each batch with the time it was asked, by the server's clock."""
    keys = [*chain.from_iterable([batch.keys for batch, _ in batches])]
    sizes, size = [len(batch.keys) for batch, _ in batches], len(keys)
    name, raw = names_of(keys)

    def of_each(values: Iterable[Any]) -> list[Any]:
        return [*chain.from_iterable(map(repeat, values, sizes))]

    def joined(field: str) -> list[Any]:
        columns = [getattr(batch, field) for batch, _ in batches]
        return [
            *chain.from_iterable(
                repeat(None, many) if one is None else one for one, many in zip(columns, sizes, strict=True)
            )
        ]

    columns: dict[str, pl.Series] = {
        "name": name,
        "raw": raw,
        "type": named(of_each([batch.key_type for batch, _ in batches])),
        "encoding": named(joined("encodings")),
        "node": constant("node", node, size),
        "expires_ms": pl.concat([_expiries(batch, round(asked_at_s * 1000)) for batch, asked_at_s in batches]),
        **{column: pl.Series(joined(fact), dtype=pl.Int64) for column, fact in _FACTS.items()},
        "database": constant("database", database, size),
        "slot": pl.Series(_slots(keys)),
        "sampled": pl.Series(of_each([batch.is_sampled for batch, _ in batches]), dtype=pl.Boolean),
    }
    return pl.DataFrame({column: columns[column] for column in SCHEMA})


def _expiries(batch: InspectedBatch, asked_ms: int) -> pl.Series:
    """Return when the keys of a batch expire by the server's clock, in ms since the epoch."""
    if batch.ttl_ms is None:
        return constant("expires_ms", None, len(batch.keys))
    return pl.Series(expiries(np.array(batch.ttl_ms, np.int64), np.array(asked_ms, np.int64)))


class EngineRows:
    """Rows that the engine has handed over at once."""

    def __init__(
        self, rows: bytes, names: bytes, types: Sequence[bytes | None], encodings: Sequence[Sequence[bytes]]
    ) -> None:
        """`types` are by number, and `encodings` of each type by number less 1, as far as the engine knows them."""
        self.array: np.ndarray[Any, Any] = np.frombuffer(rows, ROW)
        self._names, self._types, self._encodings = names, types, encodings

    def __len__(self) -> int:
        return len(self.array)

    @property
    def asked_ms(self) -> int:
        """When the last of them was asked first, in ms since the epoch by the clock of rtui."""
        return int(self.array["asked_ms"].max())

    def has(self, fact: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        found: np.ndarray[Any, np.dtype[np.bool_]] = self.array["known"] & np.uint8(fact) != 0
        return found

    def lengths(self) -> dict[bytes | None, Numbers]:
        known = self.has(LENGTH)
        types, sizes = self.array["type"][known], self.array["size"][known]
        return {self._types[one]: sizes[types == one] for one in self._types_of(known)}

    def without_memory(self) -> list[bytes | None]:
        """Return the types of which keys have no known memory."""
        return [self._types[one] for one in self._types_of(~self.has(MEMORY))]

    def _types_of(self, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> list[int]:
        found: list[int] = np.flatnonzero(np.bincount(self.array["type"][rows])).tolist()
        return found

    def table(self, ahead_ms: int, node: str, database: int) -> pl.DataFrame:
        """Return the table; the server's clock is `ahead_ms` ahead of that of rtui."""
        array, size = self.array, len(self)
        ends = [0, *np.cumsum(array["length"], dtype=np.int64).tolist()]
        name, raw = names_of([self._names[start:end] for start, end in pairwise(ends)])
        kinds = array["type"]
        texts = [
            encoding
            for some in self._encodings
            for encoding in (None, *some, *[None] * (MOST_ENCODINGS - 1 - len(some)))
        ]
        columns: dict[str, pl.Series] = {
            "name": name,
            "raw": raw,
            "type": named(self._types).gather(kinds),
            "encoding": named(texts).gather(kinds * MOST_ENCODINGS + array["encoding"]),
            "node": constant("node", node, size),
            "expires_ms": self._column(TTL, expiries(array["ttl_ms"], array["asked_ms"] + ahead_ms)),
            "memory_bytes": self._column(MEMORY, array["memory_bytes"]),
            "length": self._column(LENGTH, array["size"]),
            "idle_s": self._column(IDLE, array["recency"]),
            "frequency": self._column(FREQUENCY, array["recency"]),
            "database": constant("database", database, size),
            "slot": pl.Series(array["slot"].astype(np.int64)),
            "sampled": pl.Series(self.has(SAMPLED)),
        }
        return pl.DataFrame({column: columns[column] for column in SCHEMA})

    def _column(self, fact: int, values: Numbers) -> pl.Series:
        known = self.has(fact)
        if not known.any():
            return constant("length", None, len(self))
        found = pl.Series(np.ascontiguousarray(values))
        return found if known.all() else found.scatter(np.flatnonzero(~known), None)


def expiries(left_ms: Numbers, asked_ms: Numbers) -> Numbers:
    """Return the expiry times of keys with these remaining times to live; NEVER for negative ones."""
    return np.where(left_ms < 0, NEVER, np.minimum(left_ms, LATEST_MS - asked_ms) + asked_ms)


def named(names: Sequence[bytes | None]) -> pl.Series:
    """Return names of types or encodings, whatever their bytes, as a column."""
    try:
        texts = pl.Series(names, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:  # not UTF-8
        texts = pl.Series([None if one is None else one.decode("utf-8", "backslashreplace") for one in names])
    return texts.cast(pl.Categorical())


def constant(column: str, value: object, size: int) -> pl.Series:
    return pl.Series([value], dtype=SCHEMA[column]).new_from_index(0, size)


def _slots(keys: Sequence[bytes]) -> Numbers:
    """Return the hash slot of each key; only in those with a brace tags are looked for."""
    slots = np.fromiter([crc_hqx(key, 0) for key in keys], np.int64, len(keys)) % SLOTS
    for index, key in enumerate(keys):
        if b"{" in key:
            slots[index] = key_slot(key)
    return slots
