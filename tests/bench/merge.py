"""Merging the results of many nodes: `RTUI_BENCH_MERGED=60 python -m tests.bench.run merge`.

A result holds all that a report holds: 5,000 patterns, histograms, times of expiry, largest keys, examples. Five
different ones are made of 200,000 keys each, and merged in turns as a worker does it, pickled as they come from another
process. RTUI_BENCH_MERGED says how many (1,000 unless set).
"""

from __future__ import annotations

import os
import pickle
import resource
import string
import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

import numpy as np
import polars as pl

from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.report.document import Scope
from rtui.keyspace.text.segments import Separators
from rtui.table.aggregates import Aggregates, Collected
from rtui.table.schema import names_of
from tests.bench import Row

MERGED: Final = int(os.environ.get("RTUI_BENCH_MERGED", "1000"))
DIFFERENT: Final = 5
PATTERNS: Final = 5_000
KEYS: Final = 200_000
CHUNK: Final = 100_000
BEGAN_S: Final = 1_760_000_000.0
SEPARATORS: Final = Separators((b":",))
SCOPE: Final = Scope((b":",), None, None, None, 100, columns=ALL_COLUMNS)


def rows() -> Iterator[Row]:
    blobs = [pickle.dumps(made(seed), pickle.HIGHEST_PROTOCOL) for seed in range(DIFFERENT)]
    wall, cpu = time.perf_counter(), time.process_time()
    whole: Collected = pickle.loads(blobs[0])  # noqa: S301 - made above
    for blob in islice(cycle(blobs), 1, MERGED):
        part: Collected = pickle.loads(blob)  # noqa: S301 - made above
        whole.partial.merge(part.partial)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    of = f"merge: {MERGED:,} results of {PATTERNS:,} patterns"
    size = max(map(len, blobs)) / 1e6
    yield Row(
        of, f"{wall:.1f} s", f"{cpu / MERGED:.2f} s of processor each, {size:.0f} MB each", "", "≤ 10 s", wall <= 10
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Row(f"{of}, memory at its peak", f"{peak:.0f} MiB", "", "", "≤ 1 GB", peak <= 1_000)


def made(seed: int) -> Collected:
    """Return the sums of a node with these patterns, weighted by Zipf's law."""
    rng = np.random.default_rng(seed)
    weights = 1 / (1 + np.arange(PATTERNS)) ** 0.8
    drawn = rng.choice(PATTERNS, KEYS, p=weights / weights.sum()).tolist()
    ids = rng.integers(0, 10**9, KEYS).tolist()
    names = [f"{word(at % 71)}:{word(at // 71)}:{number}".encode() for at, number in zip(drawn, ids, strict=True)]
    found = pl.DataFrame(names_of(list(dict.fromkeys(names))))
    keys = found.height
    types = np.array(["string", "hash", "zset", "list", "set"])[rng.choice(5, keys, p=[0.6, 0.2, 0.1, 0.05, 0.05])]
    expires = BEGAN_S * 1000 + np.exp(rng.uniform(0, 24, keys)) * 1000
    table = found.with_columns(
        type=pl.Series(types, dtype=pl.Categorical()),
        encoding=pl.lit("listpack").cast(pl.Categorical()),
        node=pl.lit(f"10.0.{seed}.1:6379").cast(pl.Categorical()),
        expires_ms=pl.Series(np.where(rng.random(keys) < 0.5, -1, expires).astype(np.int64)),
        memory_bytes=pl.Series(np.exp(rng.normal(6, 2, keys)).astype(np.int64) + 50),
        length=pl.Series(np.exp(rng.normal(4, 2, keys)).astype(np.int64)),
        idle_s=pl.Series(np.exp(rng.uniform(0, 14, keys)).astype(np.int64)),
        frequency=pl.lit(None, pl.Int64()),
        database=pl.lit(0, pl.Int64()),
        slot=pl.Series(rng.integers(0, 16_384, keys)),
        sampled=pl.lit(True),
        asked_ms=pl.lit(int(BEGAN_S * 1000), pl.Int64()),
    )
    sums = Aggregates(SEPARATORS, scope=SCOPE, started_at_s=BEGAN_S)
    for part in table.iter_slices(CHUNK):
        sums.fold(part)
    return sums.collected()


def word(number: int) -> str:
    """Return a word of five letters without a digit, so that it is a name."""
    letters = ""
    for _ in range(5):
        number, letter = divmod(number * 7 + 11, 26)
        letters += string.ascii_lowercase[letter]
        number += letter * 3
    return letters
