"""The columns of the key table: one row a key, in memory, in what is kept of a pass, and in files.

    column        type         meaning, and what null says besides "not known"
    name          String       the key; invalid UTF-8 in it as `\\xff`
    raw           Binary       the key's bytes where they are not UTF-8, null for all others
    type          Categorical  as TYPE answers: `string`, `hash`, …, the name of a module's type
    encoding      Categorical  as OBJECT ENCODING answers
    node          Categorical  `host:port` of the primary that serves the key
    expires_ms    Int64        milliseconds since the epoch by the server's clock; NEVER where the key does not expire
    memory_bytes  Int64        MEMORY USAGE
    length        Int64        bytes of a string, else the number of elements
    idle_s        Int64        OBJECT IDLETIME when the key was asked
    frequency     Int64        OBJECT FREQ, the LFU counter, 0 … 255
    database      Int64
    slot          Int64        the hash slot of the name, 0 … 16383
    sampled       Boolean      whether the row stands for others: true of all rows where all keys were asked the same

Null is "not known". Why a fact is not known (not asked, not sampled, denied) is said of a column, not of a row, and so
stands beside the table, in the head of the report. What is summed is 64 bits wide before it is summed: Polars counts
rows in 32 bits and sums those in 32 bits, which wrap without a word.

Types and encodings are Categorical, not Enum: Enums of different batches can't be concatenated, and a type that is not
in an Enum becomes null. Their codes say nothing outside of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

VERSION: Final = 1
"""Of the schema, for files; a change of a column's meaning or type raises it."""

SLICE_ROWS: Final = 8_000
"""Rows that are turned into Python objects, or made of them, in one step."""

NEVER: Final = -1
"""The value of `expires_ms` for a key that does not expire."""

LATEST_MS: Final = (1 << 63) - 1
"""The latest moment that `expires_ms` can hold; later expiries are stored as this."""

SCHEMA: Final = pl.Schema(
    {
        "name": pl.String(),
        "raw": pl.Binary(),
        "type": pl.Categorical(),
        "encoding": pl.Categorical(),
        "node": pl.Categorical(),
        "expires_ms": pl.Int64(),
        "memory_bytes": pl.Int64(),
        "length": pl.Int64(),
        "idle_s": pl.Int64(),
        "frequency": pl.Int64(),
        "database": pl.Int64(),
        "slot": pl.Int64(),
        "sampled": pl.Boolean(),
    }
)
"""All columns in their order."""


def names_of(keys: Sequence[bytes]) -> tuple[pl.Series, pl.Series]:
    """Return the columns `name` and `raw` of these keys; no bytes raise."""
    raw = pl.Series("raw", keys, dtype=pl.Binary)
    try:
        return raw.cast(pl.String).alias("name"), pl.Series("raw", [None], dtype=pl.Binary).new_from_index(0, len(raw))
    except pl.exceptions.ComputeError:  # one such name, and the whole column can't be cast
        texts = [key.decode("utf-8", "backslashreplace") for key in keys]
    odd = [None if text.encode() == key else key for text, key in zip(texts, keys, strict=True)]
    return pl.Series("name", texts, dtype=pl.String), pl.Series("raw", odd, dtype=pl.Binary)


def keys_of(table: pl.DataFrame) -> list[bytes]:
    """Return the bytes of the keys of a table with the columns `name` and `raw`."""
    return table.select(pl.coalesce("raw", pl.col("name").cast(pl.Binary)))["raw"].to_list()


def keys_in_slices(table: pl.DataFrame) -> Iterator[list[bytes]]:
    """Yield the same a few at a time: Polars makes a list in one step, in which no other thread gets to run."""
    return map(keys_of, table.iter_slices(SLICE_ROWS))
