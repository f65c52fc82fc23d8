"""The keys that two files differ in: those that came, went, grew and lost their TTL.

The files are joined by database and name, a part of all keys at a time, chosen by the hash of the name: each part takes
bounded memory, and is read anew from both files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from rtui.analysis.formats.comparison import KeyChange, KeyFate, KeyFates
from rtui.analysis.report.document import CoverageKind
from rtui.table.keys_file import KeysFile
from rtui.table.schema import NEVER

PART_ROWS: Final = 1_000_000
"""Rows of the larger file that are joined at once, about."""

_BY: Final = ("database", "key")
_FACTS: Final = ("memory_bytes", "expires_ms")
_BEFORE, _AFTER = pl.col("is_before"), pl.col("is_after")
_GROWTH: Final = pl.col("memory_bytes_after") - pl.col("memory_bytes")

_FATES: Final = {
    KeyFate.CAME: (_BEFORE.is_null(), pl.col("memory_bytes_after")),
    KeyFate.WENT: (_AFTER.is_null(), pl.col("memory_bytes")),
    KeyFate.GREW: (_GROWTH > 0, _GROWTH),
    KeyFate.LASTING: (
        (pl.col("expires_ms") != NEVER) & (pl.col("expires_ms_after") == NEVER),
        pl.col("memory_bytes_after"),
    ),
}
"""Which keys of a join have a fate, and by what they are listed, most first."""


def compare_keys(before: KeysFile, after: KeysFile, top: int) -> KeyFates:
    """Return how many keys came, went, grew and lost their TTL, and the `top` first of each; raises KeysFileError.

    A key that is not in a file can only have come or gone where the file has all keys.
    """
    parts = max(1, -(-max(before.height, after.height) // PART_ROWS))
    counts, bytes_of = dict.fromkeys(KeyFate, 0), dict.fromkeys(KeyFate, 0)
    listed = {fate: pl.DataFrame(schema=_LISTED) for fate in KeyFate}
    for part in range(parts):
        old = _part(before, part, parts).with_columns(is_before=True)
        new = _part(after, part, parts).with_columns(is_after=True)
        joined = old.join(new, on=_BY, how="full", coalesce=True, nulls_equal=True, suffix="_after")
        for fate, (passes, weight) in _FATES.items():
            found = joined.filter(passes).with_columns(weight.alias("weight"))
            counts[fate] += found.height
            bytes_of[fate] += int(found["weight"].sum())
            some = pl.concat([listed[fate], found.select(_LISTED.names())])
            listed[fate] = some.sort("weight", "key", descending=[True, False], nulls_last=True).head(top)
    doubts = {
        fate: "" if _is_whole(file) else f"the {word} file does not have all keys"
        for fate, file, word in ((KeyFate.CAME, before, "earlier"), (KeyFate.WENT, after, "later"))
    }
    rows = {fate: table.drop("weight").iter_rows() for fate, table in listed.items()}
    changes = {fate: tuple(KeyChange(*row) for row in some) for fate, some in rows.items()}
    return KeyFates(counts, bytes_of, changes, {fate: why for fate, why in doubts.items() if why})


_LISTED: Final = pl.Schema(
    {
        "database": pl.Int64(),
        "key": pl.Binary(),
        "memory_bytes": pl.Int64(),
        "memory_bytes_after": pl.Int64(),
        "weight": pl.Int64(),
    }
)


def _is_whole(file: KeysFile) -> bool:
    head = file.head
    return head is not None and head.head.coverage.kind is CoverageKind.EXACT and head.rows == file.height


def _part(file: KeysFile, part: int, parts: int) -> pl.DataFrame:
    """Return the rows of a file whose names are in a part; of a key that is there twice, the later one."""
    key = pl.coalesce("raw", pl.col("name").cast(pl.Binary)).alias("key")

    def chosen() -> Iterator[pl.DataFrame]:
        for table in file.tables():
            rows = table.select("database", key, *_FACTS)
            yield rows.filter(pl.col("key").hash(seed=7) % parts == part) if parts > 1 else rows

    schema = {"database": pl.Int64(), "key": pl.Binary(), **dict.fromkeys(_FACTS, pl.Int64())}
    return pl.concat([pl.DataFrame(schema=schema), *chosen()]).unique(_BY, keep="last")
