"""Rows of a pass that are kept: bytes a row beyond its name, CPU time a row to keep them, and the time of questions.

Names are of the grammar with a fresh seed. Run `python -m tests.bench.rows [ROWS] [SEED]`. Times are medians of this
process's CPU, so that other work on the machine says little; terms about names are looked for by two threads, so half
of their CPU time is what they take.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import SystemRandom

import numpy as np
import polars as pl

from rtui.analysis.query.expressions import condition_of
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.terms import Fact
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.table.questions import By, find
from rtui.table.rows import ROW_BYTES, KeptRows
from rtui.table.schema import NEVER, SCHEMA, names_of
from tests.bench.row import Row, time_row
from tests.grammar import Grammar

ROWS = 1_000_000
"""Rows that are kept where nobody says."""

PAGE = 2_000
"""Rows of a table as it comes."""

RUNS = 7
"""How often each question is asked."""

NOW_MS = 1_790_000_000_000

SIMPLE_S, REGEX_S = 0.020, 0.100
"""What a question to a million rows may take."""

LIMIT = 1_000


def rows(number: int = ROWS, seed: int | None = None) -> Iterator[Row]:
    """Keep rows, then ask them."""
    seed = SystemRandom().getrandbits(32) if seed is None else seed
    warm = KeptRows(1 << 40, 1 << 40)
    warm.append(table([b"warm"], np.random.default_rng()))
    warm.finish(0.0, is_all=True)
    asked(warm, "size>1K", By(pl.col("name")))
    before = resident()
    made = KeptRows(1 << 40, number)
    spent = name_bytes = peak = 0.0
    pages = tables(number, seed)
    for page in pages:
        name_bytes += int(page["name"].str.len_bytes().sum())
        began = time.process_time()
        made.append(page)
        spent += time.process_time() - began
        peak = max(peak, resident() - before - name_bytes)
    made.finish(0.0, is_all=True)
    del page, pages
    gc.collect()
    time.sleep(5)  # the allocator gives pages back some time later
    beyond = (resident() - before - name_bytes) / made.height
    named = f"{made.height:,} rows, names of {name_bytes / made.height:.0f} bytes, seed {seed}"
    yield Row(
        f"a row kept, beyond its name; {named}", f"{beyond:.0f} B", "", "", f"≤ {ROW_BYTES} B", beyond <= ROW_BYTES
    )
    yield Row("the same at most while rows come", f"{peak / made.height:.0f} B")
    yield Row("CPU time to keep a row", f"{spent / made.height * 1e6:.2f} µs")
    millions = made.height / 1_000_000
    for line, goal_s in QUESTIONS:
        threads = 2 if parse(line).about(Fact.NAME) else 1
        times = [spent / threads for spent in asked(made, line, None)]
        yield time_row(f"`{line}`", times, goal_s * millions)
    for line, by in (("", "memory_bytes"), ("ttl<1d", "expires_ms"), ("", "name")):
        times = asked(made, line, By(pl.col(by), by == "memory_bytes"))
        yield time_row(f"`{line}` the first {LIMIT:,} by {by}", times, SIMPLE_S * millions)


QUESTIONS = (
    ("size>1K", SIMPLE_S),
    ("ttl:none type:hash", SIMPLE_S),
    ("ttl<1h", SIMPLE_S),
    ("in:cache", SIMPLE_S),
    ("cart", SIMPLE_S),
    ("user:*:cart", SIMPLE_S),
    ("*:[0-9]*7", REGEX_S),
    (r"re:^[a-z]+:[0-9]+$", REGEX_S),
    (r"re:\d{4}", REGEX_S),
)


def asked(made: KeptRows, line: str, by: By | None) -> list[float]:
    """Seconds of CPU that a question takes."""
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        _, work = find(made.chunks(), condition_of(parse(line), Separators(), NOW_MS), NOW_MS, LIMIT, by)
        finish(work)
        times.append(time.process_time() - began)
    return times


def tables(number: int, seed: int) -> Iterator[pl.DataFrame]:
    """Yield tables as a pass of such a keyspace finds them: all facts of all keys, but one in eight for three."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "names"
        program = [sys.executable, "-m", "tests.bench.rows", str(number), str(seed), str(path)]
        subprocess.run(program, check=True)  # elsewhere, since what is drawn takes more memory than what is kept
        with path.open("rb") as lines:
            while names := [line[:-1] for line in islice(lines, PAGE)]:
                yield table(names, rng)


def write_names(number: int, seed: int, path: Path) -> None:
    with path.open("wb") as lines:
        lines.writelines(name + b"\n" for _, name in Grammar(seed).drawn(number))


def table(names: list[bytes], rng: np.random.Generator) -> pl.DataFrame:
    name, raw = names_of(names)
    count = len(names)
    eighth = pl.Series(rng.random(count) < 0.125)
    type_ = pl.Series(rng.choice(["string", "hash", "set", "zset"], count), dtype=pl.Categorical)
    found = pl.DataFrame({"name": name, "raw": raw, "type": type_}).with_columns(
        encoding=pl.Series(rng.choice(["raw", "listpack", "int"], count), dtype=pl.Categorical),
        node=pl.lit("127.0.0.1:6379", pl.Categorical()),
        expires_ms=pl.Series(np.where(rng.random(count) < 0.5, NEVER, NOW_MS + rng.integers(0, 10**9, count))),
        memory_bytes=pl.Series(rng.lognormal(6, 2, count).astype(np.int64)),
        length=pl.Series(rng.lognormal(3, 2, count).astype(np.int64)),
        idle_s=pl.Series(rng.integers(0, 10**6, count)),
        frequency=pl.lit(None, pl.Int64()),
        database=pl.lit(0, pl.Int64()),
        slot=pl.Series(rng.integers(0, 16_384, count)),
        sampled=eighth,
    )
    few = pl.when(eighth)
    return found.with_columns(few.then(one).alias(one) for one in ("encoding", "idle_s")).select(*SCHEMA)


def resident() -> int:
    """The resident memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        write_names(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    else:
        for one in rows(*(int(argument) for argument in sys.argv[1:])):
            print(one.as_markdown())
