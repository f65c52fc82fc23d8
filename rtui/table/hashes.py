"""CRC32 and hash slot of keys, for which a table has no function: computed key by key, a few thousand at a time."""

from __future__ import annotations

import re
from binascii import crc_hqx
from itertools import repeat
from typing import Final
from zlib import crc32

import numpy as np
import polars as pl

from rtui.keyspace.slots import SLOTS
from rtui.table.sums import Whole

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
