"""A search for keys beside what people do without it: `redis-cli --scan --pattern`, and redis-py asking every key.

The script's pipelines of 1,000 commands hold the server for milliseconds, a search at full pace for 150 µs at once.
`python -m tests.bench.run query`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_ROUNDS (3),
RTUI_BENCH_KEYS (1,000,000) and RTUI_BENCH_SEED, of the names.
"""

from __future__ import annotations

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

import redis

from tests.bench.row import Row
from tests.bench.window import environment
from tests.grammar import grown
from tests.servers import CHECKOUT, Server

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
        command,
        cwd=CHECKOUT,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
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
