"""Keys, bytes and times to live by hash slot, and the hash tags that hold most keys.

There may be more tags than fit into memory, so only those with most keys are kept: this is Misra and Gries' summary
with its subtractions noted instead of made (Agarwal et al., Mergeable Summaries, PODS 2012). A tag that was dropped had
`floor` keys at most; one that comes later, or again, is counted from 0, with a note that up to `floor` may be missing.

CRC32 and hash slot of keys are computed key by key, a few thousand at a time: a table has no function for them.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from itertools import repeat
from typing import Final
from zlib import crc32

import numpy as np
import polars as pl

from rtui.keyspace.slots import SLOTS
from rtui.table.sums import MASK, ChunkRows, Flags, Whole, carried

KEYS, LOW, HIGH, UNMEASURED, TTL_KNOWN, LASTING = range(6)
"""Columns of `Slots.rows`: keys, both halves of their bytes, keys of unknown memory, keys of known time to live, and
keys that do not expire."""

CAPACITY: Final = 512
"""How many tags are kept; each that holds more than 1/513 of all tagged keys is among them for certain, unless they
take too much memory."""

TAG_BYTES: Final = 1 << 20
"""Bytes of all tags together, up to a small factor: if they are very long, fewer are kept."""

_TAGS: Final = pl.Schema(
    {
        "tag": pl.Binary(),
        "keys": pl.Int64(),
        "missed": pl.Int64(),
        "low": pl.Int64(),
        "high": pl.Int64(),
        "measured": pl.Int64(),
    }
)

KEYS_AT_ONCE: Final = 4_096
"""Names that are turned into objects of Python at once: a millisecond or two, in which nothing else runs."""

TAG: Final = r"^[^{]*\{([^}]+)\}"
"""Matches a key with a hash tag: the non-empty text between the first { and the first } after it."""

_tag = re.compile(TAG.encode()).match


def tags_of(names: pl.Series, raw: pl.Series) -> pl.Series | None:
    """Return the hash tag of each key as Binary, without braces, null for a key without one; None if no key has one.

    `names` and `raw` as in the key table.
    """
    some = names.str.contains("{", literal=True).arg_true()
    if not len(some):
        return None
    found = names.gather(some).str.extract(TAG, 1).cast(pl.Binary)
    tags = pl.Series("tag", [None], dtype=pl.Binary).new_from_index(0, len(names)).scatter(some, found)
    odd = raw.is_not_null().arg_true()
    if len(odd):
        of_odd = [match[1] if (match := _tag(key)) else None for key in raw.gather(odd).to_list()]
        tags = tags.scatter(odd, pl.Series(of_odd, dtype=pl.Binary))
    return tags


def checksums_and_slots(keys: pl.Series, tags: pl.Series | None, slots: pl.Series) -> tuple[Whole, Whole]:
    """Return CRC32 and hash slot of keys, a column of Binary; slots that are known are taken from `slots`."""
    checksums, found = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    is_known = not slots.null_count()
    for start in range(0, len(keys), KEYS_AT_ONCE):
        part = keys.slice(start, KEYS_AT_ONCE).to_list()
        end = start + len(part)
        checksums[start:end] = np.fromiter(map(crc32, part), np.int64, len(part))
        if not is_known:
            found[start:end] = np.fromiter(map(crc_hqx, part, repeat(0)), np.int64, len(part))
    if is_known:
        return checksums, slots.to_numpy()
    tagged = None if tags is None else tags.is_not_null().arg_true()
    if tags is not None and tagged is not None and len(tagged):
        texts, at = tags.gather(tagged).unique(maintain_order=True), tagged.to_numpy()
        crc = np.fromiter(map(crc_hqx, texts.to_list(), repeat(0)), np.int64, len(texts))
        by_tag = pl.DataFrame({"tag": texts, "crc": crc})
        found[at] = (
            tags.gather(tagged).to_frame().join(by_tag, on="tag", how="left", maintain_order="left")["crc"].to_numpy()
        )
    return checksums, found & (SLOTS - 1)


class Slots:
    """Sums by hash slot, and the heaviest tags."""

    def __init__(self) -> None:
        self.rows = np.zeros((SLOTS, 6), np.int64)
        self.tags = HeavyTags()

    def add(self, slots: Whole, tags: pl.Series | None, memory: tuple[Whole, Flags], ttl: tuple[Flags, Flags]) -> None:
        """Add keys by their slots and tags.

        `memory` has the size of each and whether it is known, `ttl` whether that is known, and that it does not expire.
        """
        sizes, has_size = memory
        has_ttl, is_lasting = ttl
        chunk = ChunkRows(slots)
        columns = (
            chunk.keys,
            chunk.halves(np.where(has_size, sizes, 0)),
            chunk.count(~has_size),
            chunk.count(has_ttl),
            chunk.count(is_lasting),
        )
        self.rows[chunk.used] += np.column_stack(columns)
        carried(self.rows[:, LOW : HIGH + 1])
        if tags is not None:
            self.tags.add(tags, sizes, has_size)

    def merge(self, other: Slots) -> None:
        self.rows += other.rows
        carried(self.rows[:, LOW : HIGH + 1])
        self.tags.merge(other.tags)

    def copy(self) -> Slots:
        made = Slots()
        made.rows = self.rows.copy()
        made.tags.rows, made.tags.floor = self.tags.rows, self.tags.floor
        return made


class HeavyTags:
    """Keys and bytes of the hash tags that hold most keys."""

    def __init__(self, capacity: int = CAPACITY, *, max_bytes: int = TAG_BYTES) -> None:
        self.floor = 0
        """The most keys that a tag can have that is not kept."""
        self.rows = _TAGS.to_frame()
        """By tag: its keys since it has been kept, how many may have been missed before, its bytes in two halves, and
        the keys that they are of."""
        self._capacity, self._max_bytes = capacity, max_bytes

    def add(self, tags: pl.Series, sizes: Whole, has_size: Flags) -> None:
        """Count keys by their tags, without braces; null for those without one."""
        size = pl.Series("size", np.where(has_size, sizes, 0))
        new = (
            pl.DataFrame((tags.alias("tag"), size, pl.Series("has_size", has_size)))
            .filter(pl.col("tag").is_not_null())
            .group_by("tag")
            .agg(
                pl.len().cast(pl.Int64).alias("keys"),
                pl.lit(0, pl.Int64).alias("missed"),
                (pl.col("size") & MASK).sum().alias("low"),
                (pl.col("size") // (MASK + 1)).sum().alias("high"),
                pl.col("has_size").cast(pl.Int64).sum().alias("measured"),
            )
        )
        self._join(new, 0)

    def merge(self, other: HeavyTags) -> None:
        if other.rows.height or other.floor:
            self._join(other.rows, other.floor)

    def _join(self, rows: pl.DataFrame, floor: int) -> None:
        """Add counts of other keys, whose tags that are not among them have had `floor` keys at most."""
        mine = self.rows.with_columns(pl.lit(self.floor, pl.Int64).alias("floor"))
        theirs = rows.with_columns(pl.lit(floor, pl.Int64).alias("floor"))
        both = self.floor + floor
        self.rows = (
            pl.concat((mine, theirs))
            .group_by("tag")
            .agg(
                pl.col("keys").sum(),
                (pl.col("missed").sum() + both - pl.col("floor").sum()).alias("missed"),
                *(pl.col(name).sum() for name in ("low", "high", "measured")),
            )
        )
        self.floor = both
        self._drop()

    def _drop(self) -> None:
        """Keep the tags with the highest upper bounds if there are too many."""
        lengths = pl.col("tag").bin.size().cast(pl.Int64)
        rows = self.rows
        if rows.height <= 4 * self._capacity and int(rows.select(lengths.sum()).item()) <= 4 * self._max_bytes:
            return
        bound = pl.col("keys") + pl.col("missed")
        ranked = rows.with_columns(bound.alias("bound")).sort("bound", "tag", descending=[True, False])
        fitting = int(ranked.select((lengths.cum_sum() <= self._max_bytes).sum()).item())
        most = min(self._capacity, max(1, fitting))
        if most < ranked.height:
            self.floor = int(ranked["bound"][most])
            self.rows = ranked.filter(pl.col("bound") > self.floor).drop("bound")

    def heaviest(self, most: int) -> pl.DataFrame:
        return self.rows.sort("keys", "tag", descending=[True, False]).head(most)
