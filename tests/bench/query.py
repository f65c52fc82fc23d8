"""A search for keys beside what people do without it: `redis-cli --scan --pattern`, and redis-py asking every key.

The script's pipelines of 1,000 commands hold the server for milliseconds, a search at full pace for 150 µs at once.
Then rows of a pass that are kept: bytes a row beyond its name, CPU time a row to keep them, and the time of questions,
as medians of this process's CPU, so that other work on the machine says little. Terms about names are looked for by two
threads, so half of their CPU time is what they take.

`python -m tests.bench.run query`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_ROUNDS (3),
RTUI_BENCH_KEYS (1,000,000) and RTUI_BENCH_SEED, of the names. `python -m tests.bench.query` prints the rows about rows
that are kept alone.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
import redis

from rtui.analysis.query.parsing import parse
from rtui.analysis.query.terms import Fact
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.table.kept_rows import By, condition_of, find
from rtui.table.rows import ROW_BYTES, KeptRows
from rtui.table.schema import NEVER, SCHEMA, names_of
from tests.bench import Row, time_row
from tests.grammar import Grammar, grown
from tests.servers import CHECKOUT, Server
from tests.window import environment

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is searched."""

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
"""Of each program, in turn."""

NUMBER = int(os.environ.get("RTUI_BENCH_KEYS", "1000000"))
"""Keys of the server."""

SEED = int(os.environ.get("RTUI_BENCH_SEED", "1652403918"))
"""Of the grammar that names them."""

SAMPLED = 2_000
"""So many random keys tell which namespace is large."""

PAGE = 2_000
"""Rows of a table as it comes."""

QUESTION_RUNS = 7
"""How often each question is asked."""

NOW_MS = 1_790_000_000_000

SIMPLE_S, REGEX_S = 0.020, 0.100
"""What a question to a million rows may take."""

LIMIT = 1_000

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

SCRIPT = """
import sys, redis
client, command, fits = redis.Redis(port=int(sys.argv[1])), sys.argv[2].split(), eval(sys.argv[3])
cursor, found = 0, 0
while True:
    cursor, keys = client.scan(cursor, count=1000)
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command(*command, key)
    for key, reply in zip(keys, pipeline.execute()):
        if fits(reply):
            print(key.decode())
    if not cursor:
        break
"""
"""What people write: a page of names, then one pipeline about all of them."""


def rows() -> Iterator[Row]:
    """A name, a glob, and terms that need one fact and two; then what is forecast of how long it takes."""
    cli = shutil.which("redis-cli") or "redis-cli"
    with grown(SERVER, NUMBER, SEED) as server, tempfile.TemporaryDirectory(prefix="rtui-home-") as home:
        port = str(server.port)
        find = [sys.executable, "-m", "rtui", "find", f"127.0.0.1:{port}", "--pace", "full"]
        scan = [cli, "-p", port, "--scan", "--pattern"]
        ask = [sys.executable, "-c", SCRIPT, port]
        large = large_namespace(server)
        glob, inside = f"{large}:*7", f"in:{large}"
        cases = (
            ("4242", [*find, "4242"], [*scan, "*4242*"], "redis-cli --scan"),
            (glob, [*find, glob], [*scan, glob], "redis-cli --scan"),
            (f"{inside} !ttl:none", [*find, inside, "!ttl:none"], [*ask, "PTTL", "lambda n: n != -1"], "redis-py"),
            ("ttl:none", [*find, "ttl:none"], [*ask, "PTTL", "lambda n: n == -1"], "redis-py"),
            ("size>1K", [*find, "size>1K"], [*ask, "MEMORY USAGE", "lambda n: n > 1024"], "redis-py"),
        )
        for terms, here, beside, name in cases:
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(seconds(here, home))
                theirs.append(seconds(beside, home))
            yield row(f"`rtui find {terms}`, {NUMBER:,} keys", ours, theirs, name)
        for pace in ("gentle", "normal", "full"):
            for terms in ("4242", f"{inside} ttl:none", "ttl:none", "size>1K"):
                said = [forecast([*find, *terms.split(), "--pace", pace, "--count"], home) for _ in range(ROUNDS)]
                yield forecast_row(f"forecast of `rtui find {terms} --pace {pace}`, {NUMBER:,} keys", said)
    yield from kept_rows()


def large_namespace(server: Server) -> str:
    """Return the first segment that most of some random keys have."""
    with redis.Redis(port=server.port) as client, client.pipeline(transaction=False) as pipeline:
        for _ in range(SAMPLED):
            pipeline.randomkey()
        drawn = [str(key, "utf-8", "replace").partition(":") for key in pipeline.execute()]
    return Counter(first for first, found, _ in drawn if found).most_common(1)[0][0]


def seconds(command: Sequence[str], home: str) -> float:
    """How long a program takes, its output thrown away."""
    began = time.perf_counter()
    subprocess.run(
        command, cwd=CHECKOUT, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


def forecast(command: Sequence[str], home: str) -> tuple[float | None, float]:
    """How long a search first says that it takes, and how long it does, both in seconds; None if it does not say."""
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment(home), capture_output=True, text=True, encoding="utf-8", check=True
    )
    took_s = time.perf_counter() - began
    said = re.search(r"Takes about (?:(\d+)h ?)?(?:(\d+)m ?)?(?:(\d+)s)? at", done.stderr)
    if said is None:
        return None, took_s
    hours, minutes, rest = (int(part or 0) for part in said.groups())
    return 3600.0 * hours + 60 * minutes + rest, took_s


def forecast_row(what: str, said: Sequence[tuple[float | None, float]]) -> Row:
    """Medians of what was said and taken, and the most by which they differ (goal: below 1.5)."""
    known = [(ahead, took) for ahead, took in said if ahead is not None]
    taken = _seconds([took for _, took in said])
    if not known:
        return Row(what, "nothing said", taken, "–")
    worst = max(max(ahead / took, took / ahead) for ahead, took in known)
    return Row(what, _seconds([ahead for ahead, _ in known]), taken, f"{worst:.2f} × at most")


def row(what: str, ours: Sequence[float], theirs: Sequence[float], name: str) -> Row:
    """Medians of both, and how many times as fast the search is."""
    here, beside = statistics.median(ours), statistics.median(theirs)
    ratio = beside / here
    return Row(what, _seconds(ours), f"{name}: {_seconds(theirs)}", f"{ratio:.2f} ×")


def _seconds(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.2f} s ({min(times):.2f} … {max(times):.2f})"


# rows that are kept


def kept_rows(number: int = NUMBER, seed: int = SEED) -> Iterator[Row]:
    """Keep rows, then ask them."""
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


def asked(made: KeptRows, line: str, by: By | None) -> list[float]:
    """Seconds of CPU that a question takes."""
    times = []
    for _ in range(QUESTION_RUNS):
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
        program = [sys.executable, "-m", "tests.bench.query", str(number), str(seed), str(path)]
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
        for one in kept_rows(*(int(argument) for argument in sys.argv[1:])):
            print(one.as_markdown())
