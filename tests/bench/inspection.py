"""How fast everything is inspected: beside redis-cli's analysers and a bare loop, and over a link of 20 ms.

`python -m tests.bench.run inspection`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_RUNS (3),
RTUI_BENCH_CLI_RUNS (1) and RTUI_BENCH_LINK_KEYS (300000).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.bench.loads import redis_clis
from tests.bench.mixed import KEYS, seeded
from tests.bench.row import Row
from tests.bench.scan import Measure, apart, in_turns, long_link

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

RUNS = int(os.environ.get("RTUI_BENCH_RUNS", "3"))
"""How often an analysis and the bare loop run, in turns."""

CLI_RUNS = int(os.environ.get("RTUI_BENCH_CLI_RUNS", "1"))
"""How often redis-cli runs, which takes up to half a minute each time."""

LINK_KEYS = int(os.environ.get("RTUI_BENCH_LINK_KEYS", "300000"))
"""Keys of the keyspace behind the long link."""

LINK_RATE = 30_000
"""Keys a second that have to come over the long link."""

LFU = ("--maxmemory-policy", "allkeys-lfu")
"""Without such a policy there is no `redis-cli --hotkeys`."""

ANALYSERS = ("--memkeys", "--bigkeys", "--hotkeys")
"""What redis-cli offers, a pass each."""

FACTOR, FACTOR_OF_ALL = 3.0, 8.0
"""How many times faster than one analyser, and than all three together, an analysis has to be."""

BARE_SHARE = 0.8
"""How near to a loop that keeps nothing it has to come."""

COUNT = 1_000
"""Keys of a page of the bare loop."""


def once(*arguments: object) -> float:
    """Seconds of one inspection in a process of its own; see `tests.bench.inspect_once`."""
    command = [sys.executable, "-m", "tests.bench.inspect_once", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    print(f"    {found['keys']:,} keys in {found['seconds']:.2f} s", file=sys.stderr)
    return float(found["seconds"])


def cli(port: int, analyser: str) -> float:
    """Seconds of one pass of redis-cli with its defaults."""
    command = (redis_clis() or [["redis-cli"]])[0]
    start = time.perf_counter()
    subprocess.run([*command, "-p", str(port), analyser], check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - start
    print(f"    {took:.2f} s", file=sys.stderr)
    return took


def rows() -> Iterator[Row]:
    """On this machine, each with a processor of its own and then as the system places them, and over the long link."""
    with seeded(SERVER, KEYS, *LFU) as server:
        with apart(server):
            yield from near(server.port, "each on a processor of its own")
        yield from near(server.port, "placed by the system")
    yield far()


def near(port: int, where: str) -> Iterator[Row]:
    """An analysis beside everything else."""
    loops: dict[str, Measure] = {
        "rtui": lambda port: once("rtui", port, "full"),
        "bare": lambda port: once("bare", port, COUNT),
    }
    peers: dict[str, Measure] = {name: lambda port, name=name: cli(port, name) for name in ANALYSERS}  # type: ignore[misc]
    seconds = in_turns(port, loops, RUNS) | in_turns(port, peers, CLI_RUNS)
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    what = f"full-pace inspection of {KEYS:,} mixed keys, all columns, {where} ({SERVER})"
    here = rate(KEYS, median["rtui"])
    for name in ("--memkeys", "--bigkeys"):
        times = median[name] / median["rtui"]
        beside = f"redis-cli {name}: {rate(KEYS, median[name])}"
        yield Row(what, here, beside, f"{times:.1f} ×", f"≥ {FACTOR:.0f} ×", times >= FACTOR)
    together = sum(median[name] for name in ANALYSERS)
    times = together / median["rtui"]
    beside = f"redis-cli {', '.join(ANALYSERS)}: {together:.1f} s together"
    here_s = f"{median['rtui']:.1f} s"
    yield Row(what, here_s, beside, f"{times:.1f} ×", f"≥ {FACTOR_OF_ALL:.0f} ×", times >= FACTOR_OF_ALL)
    times = median["bare"] / median["rtui"]
    beside = f"bare loop, same commands, COUNT {COUNT}: {rate(KEYS, median['bare'])}"
    yield Row(what, here, beside, f"{times:.2f} ×", f"≥ {BARE_SHARE} ×", times >= BARE_SHARE)


def far() -> Row:
    """Over the long link, on one lane."""
    with seeded(SERVER, LINK_KEYS, *LFU) as server, long_link(server.port) as port:
        lanes: dict[str, Measure] = {
            "rtui": lambda port: once("rtui", port, "full"),
            "bare": lambda port: once("bare", port, COUNT),
        }
        seconds = in_turns(port, lanes, RUNS)
    here, bare = (LINK_KEYS / statistics.median(seconds[name]) for name in ("rtui", "bare"))
    what = f"inspection of {LINK_KEYS:,} mixed keys over a link of 20 ms, one lane, full pace ({SERVER})"
    beside = f"bare loop, COUNT {COUNT}: {bare:,.0f} keys/s"
    return Row(
        what, f"{here:,.0f} keys/s", beside, f"{here / bare:.1f} ×", f"≥ {LINK_RATE:,} keys/s", here >= LINK_RATE
    )


def rate(keys: int, seconds: float) -> str:
    """Keys a second as text."""
    return f"{keys / seconds / 1000:,.0f} k keys/s"
