"""Rows of a pass as a table: the columns of `rtui.table.schema`, made of lists of facts of several layouts at once."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.inspection.queries import FACT_COLUMNS
from rtui.server.source.rows import KEY_TYPE, Rows
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, names_of

COLUMNS: Final = {"memory_bytes": "memory_bytes", "lengths": "length", "idle_s": "idle_s", "frequency": "frequency"}
"""Facts of numbers that are columns as they are, and what these are called."""

assert {*COLUMNS, "ttl_ms"} == {*FACT_COLUMNS}  # noqa: S101 - a fact more is a column more


Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class Part(NamedTuple):
    """Rows of one layout whose answers are numbers, and which of them are wanted."""

    rows: Rows
    numbers: dict[str, Numbers]
    """All facts but the type."""
    is_wanted: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    """None where all are."""

    @property
    def wanted(self) -> int:
        """The number of wanted rows."""
        return len(self.rows.keys) if self.is_wanted is None else int(self.is_wanted.sum())


def part_of(rows: Rows) -> Part:
    """Return rows as a part; all answers but types must be integers of 64 bits."""
    size = len(rows.keys)
    return Part(rows, {name: np.fromiter(one, np.int64, size) for name, one in rows.facts.items() if name != KEY_TYPE})


class TableMaker:
    """Makes tables of the rows of one server."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        """How far the server's clock is ahead of that of rtui."""

    def table(self, parts: Sequence[Part], encodings: Mapping[bytes, bytes], node: str, database: int) -> pl.DataFrame:
        """Return the rows of all parts, at least one row; `encodings` are by key those that are known."""
        keys = [*chain.from_iterable([part.rows.keys for part in parts])]
        size = len(keys)
        name, raw = names_of(keys)
        types = [*chain.from_iterable([part.rows.types for part in parts])]
        found = named([*map(encodings.get, keys)]) if encodings else constant("encoding", None, size)
        sampled = [pl.Series([part.rows.is_sampled]).new_from_index(0, len(part.rows.keys)) for part in parts]
        columns: dict[str, pl.Series] = {
            "name": name,
            "raw": raw,
            "type": named(types),
            "encoding": found,
            "node": constant("node", node, size),
            "expires_ms": _column([self._expiries(part) for part in parts], parts),
            **{column: _column([part.numbers.get(fact) for part in parts], parts) for fact, column in COLUMNS.items()},
            "database": constant("database", database, size),
            "slot": pl.Series(_slots(keys)),
            "sampled": pl.concat(sampled),
        }
        table = pl.DataFrame({column: columns[column] for column in SCHEMA})
        if all(part.is_wanted is None for part in parts):
            return table
        masks = [np.ones(len(part.rows.keys), bool) if part.is_wanted is None else part.is_wanted for part in parts]
        return table.filter(pl.Series(np.concatenate(masks)))

    def _expiries(self, part: Part) -> Numbers | None:
        """Return when keys expire by the server's clock, in ms since the epoch."""
        left = part.numbers.get("ttl_ms")
        if left is None:
            return None
        asked = np.fromiter(part.rows.asked_at_ms, np.int64, len(left))
        return expiries(left, asked + self.ahead_ms)


def _column(found: Sequence[Numbers | None], parts: Sequence[Part]) -> pl.Series:
    """Return the numbers of all rows, null where the fact was not asked."""
    return pl.concat(
        [
            constant("length", None, len(part.rows.keys)) if one is None else pl.Series(one)
            for one, part in zip(found, parts, strict=True)
        ]
    )


def expiries(left_ms: Numbers, asked_ms: Numbers) -> Numbers:
    """Return when keys expire that had so long left when they were asked; NEVER where it is negative."""
    return np.where(left_ms < 0, NEVER, np.minimum(left_ms, LATEST_MS - asked_ms) + asked_ms)


def named(names: Sequence[bytes | None]) -> pl.Series:
    """Return names of types or encodings, whatever their bytes, as a column."""
    try:
        texts = pl.Series(names, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:  # not UTF-8
        texts = pl.Series([None if one is None else one.decode("utf-8", "backslashreplace") for one in names])
    return texts.cast(pl.Categorical())


def constant(column: str, value: object, size: int) -> pl.Series:
    """Return a column of the key table with one value."""
    return pl.Series([value], dtype=SCHEMA[column]).new_from_index(0, size)


def _slots(keys: Sequence[bytes]) -> Numbers:
    """Return the hash slot of each key; only in those with a brace tags are looked for."""
    slots = np.fromiter([crc_hqx(key, 0) for key in keys], np.int64, len(keys)) % SLOTS
    for index, key in enumerate(keys):
        if b"{" in key:
            slots[index] = key_slot(key)
    return slots
