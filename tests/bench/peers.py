"""A whole analysis beside its peers, on keyspaces drawn from a grammar of real names, on several servers.

`python -m tests.bench.run peers`. The environment may set RTUI_BENCH_SERVERS (redis-7.0 redis-8.10 valkey-9.1),
RTUI_BENCH_KEYS (1000000), RTUI_BENCH_ROUNDS (3), RTUI_BENCH_SEED (a fresh one; it is printed), RTUI_BENCH_PATTERNS
and RTUI_BENCH_KEYSTATS. It needs a C compiler.

Every figure is of a whole process, from its start to its end, placed by the system; rtui and its peers take turns in
each round. Beside the medians stand the fastest and the slowest round.

Last comes an analysis over a link of 20 ms on one connection. The link and the loop beside it are programs in C, so
that neither is what limits the rate. The loop has two writes under way, of a thousand keys each: smaller ones would
take it minutes, and these hold other clients up for milliseconds. An analysis has as many small ones under way as the
round trip needs.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.bench import Row
from tests.bench.scan import redis_clis
from tests.grammar import grown

SERVERS = os.environ.get("RTUI_BENCH_SERVERS", "redis-7.0 redis-8.10 valkey-9.1").split()
"""The versions that are measured."""

KEYS = int(os.environ.get("RTUI_BENCH_KEYS", "1000000"))

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
"""How often each peer runs, in turns."""

SEED = int(os.environ.get("RTUI_BENCH_SEED") or random.randrange(1 << 32))
"""Of the keyspaces, which are the same on all servers."""

KEYSTATS = "RTUI_BENCH_KEYSTATS" in os.environ
"""Whether `redis-cli 8 --keystats` runs, too, which takes minutes."""

PATTERNS = int(os.environ["RTUI_BENCH_PATTERNS"]) if "RTUI_BENCH_PATTERNS" in os.environ else None

GOALS = {"redis-7.0": 1.3, "redis-8.10": 1.1, "valkey-9.1": 1.1}
"""How many times faster than `redis-cli --memkeys` an analysis with all columns has to be."""

DEFAULT_GOALS = {"redis-7.0": 1.8, "redis-8.10": 1.5, "valkey-9.1": 1.5}
"""The same with the default columns."""

GOAL_OF_ALL, LIMIT_SHARE, CPU_US = 5.0, 0.85, 2.5
"""The same beside all three analysers; how near to a loop that keeps nothing; processor per key in µs at most."""

QUESTIONS = {"redis-7.0": "tpfm"}
"""What the loop asks of each key, see limit_loop.c; there is no length where there is no NO-TOUCH."""

LFU = ("--maxmemory-policy", "allkeys-lfu")
"""Without such a policy there is no `redis-cli --hotkeys`."""

OURS, DEFAULT = "rtui report --columns all", "rtui report"

ONE_WAY_MS, COUNT = 10, 1_000
"""Half of the round trip over the link, and the keys of a page of the loop over it."""

LINK_GOAL = 100_000
"""Keys a second over the link at normal pace."""

MOST_BYTES = 120_000_000
"""The memory of an analysis, however many keys there are."""

LIMIT = "a loop in C that sends the same, two writes of 25 keys under way, and keeps nothing"


@dataclass(frozen=True, slots=True)
class Run:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


KIB = 1 if sys.platform == "darwin" else 1024
"""The unit in which the system tells memory."""


def once(command: Sequence[str]) -> Run:
    """Run a command to its end."""
    start = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * KIB)


@cache
def compiled(name: str, *options: str) -> str:
    """Compile a program of this folder, and return where it is."""
    source, made = Path(__file__).with_name(f"{name}.c"), Path(tempfile.mkdtemp()) / name
    subprocess.run(["cc", "-O2", "-o", str(made), str(source), *options], check=True)
    return str(made)


def limit_loop() -> str:
    """Return where the loop is, which is compiled once."""
    return compiled("limit_loop")


def with_count() -> list[str] | None:
    """A redis-cli that knows --count for its key analysers, if there is one."""
    for command in redis_clis():
        said = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
        if "--memkeys" in said.stdout + said.stderr and "--count" in said.stdout + said.stderr:
            return command
    return None


def commands(server: str, port: int) -> dict[str, list[str]]:
    """Return the command line of each peer."""
    cli = ["redis-cli", "-p", str(port)]
    ours = [sys.executable, "-m", "rtui", "report", f"127.0.0.1:{port}", "--pace", "full", "--format", "json"]
    found = {
        OURS: [*ours, "--columns", "all"],
        DEFAULT: ours,
        LIMIT: [limit_loop(), str(port), "25", QUESTIONS.get(server, "tpfmx")],
        **{f"redis-cli {option}": [*cli, option] for option in ("--memkeys", "--bigkeys", "--hotkeys")},
    }
    newer = with_count()
    if newer is not None and newer in redis_clis():
        newer = [*newer, "-p", str(port)]
        found["redis-cli 8 --memkeys --count 1000"] = [*newer, "--memkeys", "--count", "1000"]
        if KEYSTATS:
            found["redis-cli 8 --keystats"] = [*newer, "--keystats"]
    return found


def measured(server: str, port: int) -> dict[str, list[Run]]:
    """Run every peer once a round."""
    runs: dict[str, list[Run]] = {name: [] for name in commands(server, port)}
    for number in range(ROUNDS):
        for name, command in commands(server, port).items():
            runs[name].append(once(command))
            print(f"  round {number + 1} of {ROUNDS}: {name}: {runs[name][-1].wall_s:.2f} s", file=sys.stderr)
    return runs


def rows() -> Iterator[Row]:
    """Some rows a server."""
    for name in SERVERS:
        print(f"  {name}, seed {SEED}", file=sys.stderr)
        with grown(name, KEYS, SEED, *LFU, patterns=PATTERNS) as server:
            yield from beside(name, measured(name, server.port))
    with grown(SERVERS[-1], KEYS, SEED, *LFU) as server, long_link(server.port) as link:
        yield from over_link(SERVERS[-1], server.port, link)


def beside(server: str, runs: dict[str, list[Run]]) -> Iterator[Row]:
    """An analysis beside each peer, all three analysers together, and the limit."""
    walls = {name: [run.wall_s for run in some] for name, some in runs.items()}
    ours = statistics.median(walls[OURS])
    what = f"`{OURS}` at full pace, {KEYS:,} keys of the grammar, seed {SEED} ({server})"
    memkeys, goal = walls["redis-cli --memkeys"], DEFAULT_GOALS.get(server)
    times = statistics.median(memkeys) / statistics.median(walls[DEFAULT])
    verdict = None if goal is None else times >= goal
    peer = f"redis-cli --memkeys: {spread(memkeys)}"
    yield Row(
        "the next row with default columns", spread(walls[DEFAULT]), peer, f"{times:.2f} ×", _least(goal), verdict
    )
    for name, theirs_s in walls.items():
        if name in (OURS, DEFAULT, LIMIT):
            continue
        times = statistics.median(theirs_s) / ours
        goal = GOALS.get(server) if name == "redis-cli --memkeys" else None
        verdict = None if goal is None else times >= goal
        yield Row(what, spread(walls[OURS]), f"{name}: {spread(theirs_s)}", f"{times:.2f} ×", _least(goal), verdict)
    analysers = (walls[f"redis-cli --{one}keys"] for one in ("big", "mem", "hot"))
    three = [sum(round_s) for round_s in zip(*analysers, strict=True)]
    times = statistics.median(three) / ours
    together = f"redis-cli --bigkeys, --memkeys, --hotkeys: {spread(three)} together"
    yield Row(what, spread(walls[OURS]), together, f"{times:.2f} ×", _least(GOAL_OF_ALL), times >= GOAL_OF_ALL)
    times = statistics.median(walls[LIMIT]) / ours
    limit = f"{LIMIT}: {spread(walls[LIMIT])}"
    yield Row(what, spread(walls[OURS]), limit, f"{times:.2f} ×", _least(LIMIT_SHARE), times >= LIMIT_SHARE)
    cpu_us = statistics.median(run.cpu_s for run in runs[OURS]) / KEYS * 1e6
    theirs = statistics.median(run.cpu_s for run in runs["redis-cli --memkeys"]) / KEYS * 1e6
    yield Row(
        f"processor of {what}",
        f"{cpu_us:.1f} µs a key",
        f"redis-cli --memkeys: {theirs:.1f} µs",
        f"{theirs / cpu_us:.2f} ×",
        f"≤ {CPU_US} µs",
        cpu_us <= CPU_US,
    )
    peak = max(run.peak_bytes for run in runs[OURS])
    most = f"≤ {MOST_BYTES / 1e6:.0f} MB"
    yield Row(f"memory of {what} at its peak", f"{peak / 1e6:.0f} MB", "", "", most, peak <= MOST_BYTES)


def _least(goal: float | None) -> str:
    return "" if goal is None else f"≥ {goal} ×"


def spread(seconds: Sequence[float]) -> str:
    """The median, with the fastest and the slowest."""
    return f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} … {max(seconds):.1f})"


@contextmanager
def long_link(port: int) -> Iterator[int]:
    """The port of a link to this one that adds the round trip; it serves as many connections as come."""
    command = [compiled("delay_link", "-pthread"), str(port), str(ONE_WAY_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as link:
        assert link.stdout is not None
        try:
            yield int(link.stdout.readline())
        finally:
            link.kill()


def over_link(server: str, near: int, far: int) -> Iterator[Row]:
    """Normal and full pace, over the link and without it; `near` and `far` are the ports of the server and the link."""
    loop = [str(COUNT), QUESTIONS.get(server, "tpfmx")]
    peers: dict[str, Callable[[], float]] = {}
    for where, port in (("", far), (" without the link", near)):
        for pace in ("normal", "full"):
            ours = [sys.executable, "-m", "rtui", "report", f"127.0.0.1:{port}", "--columns", "all", "--format", "json"]
            peers[f"{pace}{where}"] = lambda command=[*ours, "--pace", pace]: once(command).wall_s  # type: ignore[misc]
        peers[f"loop{where}"] = lambda port=port: once([limit_loop(), str(port), *loop]).wall_s  # type: ignore[misc]
    rates: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(ROUNDS):
        for name, measure in peers.items():
            rates[name].append(KEYS / measure())
            print(f"  round {number + 1} of {ROUNDS}: {name}: {rates[name][-1]:,.0f} keys/s", file=sys.stderr)
    found = {name: statistics.median(some) for name, some in rates.items()}
    what = (
        f"`rtui report --columns all` of {KEYS:,} keys of the grammar (seed {SEED}) over a link of {2 * ONE_WAY_MS} ms"
    )
    for pace in ("normal", "full"):
        for peer in (f"{pace} without the link", "loop", "loop without the link"):
            is_goal = pace == "normal" and peer == f"{pace} without the link"
            name = peer.replace("loop", f"loop in C, COUNT {COUNT}").replace(pace, f"rtui, {pace} pace")
            yield Row(
                f"{what}, one connection, {pace} pace ({server})",
                f"{found[pace] / 1000:,.0f} k keys/s",
                f"{name}: {found[peer] / 1000:,.0f} k keys/s",
                f"{found[pace] / found[peer]:.2f} ×",
                f"≥ {LINK_GOAL // 1000} k keys/s" if is_goal else "",
                found[pace] >= LINK_GOAL if is_goal else None,
            )
