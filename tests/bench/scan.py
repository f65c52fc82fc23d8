"""How fast a keyspace is taken up: beside redis-cli and a bare loop on this machine, and over a link of 20 ms.

Without the compiled engine it is a bare loop with the COUNT that the pace has come to, in wall time and in CPU time of
the process.

`python -m tests.bench.run scan`. The environment may set RTUI_BENCH_SERVER (valkey-9.1) and RTUI_BENCH_RUNS (5).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import SystemRandom

from tests.bench.loads import Asking, redis_clis
from tests.bench.row import Row
from tests.bench.seed import KEYS, seeded
from tests.grammar import grown
from tests.servers import Server

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

RUNS = int(os.environ.get("RTUI_BENCH_RUNS", "5"))
"""How often each peer runs, in turns."""

LINK_KEYS = 100_000
"""Keys of the keyspace behind the long link: redis-cli needs 10 keys a round trip."""

LINK_RUNS = 3
"""How often each peer crosses the long link; redis-cli crosses it once, which takes minutes."""

ONE_WAY_MS = 10
"""Half of the round trip over the long link."""

BARE_SHARE = 0.6
"""How near to a loop that keeps nothing a scan into the store has to come."""

LINK_TIMES = 10.0
"""How many times faster than redis-cli a scan over the long link has to be."""

PURE_KEYS = 200_000
"""Keys of the keyspaces that are scanned without the compiled engine."""

PURE_TIMES = 2.0
"""How many times the time of a loop that keeps nothing such a scan may need, with the same COUNT."""

Measure = Callable[[int], float]
"""Seconds that a peer needs for the server at a port."""


def once(*arguments: object) -> float:
    """Seconds that a scan in a process of its own says it needed; see `tests.bench.scan_once`."""
    return costs_of(*arguments)[0]


def costs_of(*arguments: object, engine: str | None = None) -> tuple[float, float, int]:
    """Seconds, seconds of CPU and commands of a scan in a process of its own, with this engine if one is named."""
    command = [sys.executable, "-m", "tests.bench.scan_once", *map(str, arguments)]
    environment = os.environ | ({} if engine is None else {"RTUI_ENGINE": engine})
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    seconds, cpu_seconds, commands = done.stdout.split()
    return float(seconds), float(cpu_seconds), int(commands)


def cli(port: int, *arguments: str) -> float:
    """Seconds of one `redis-cli --scan` into a file; the start of the process is part of it, some milliseconds."""
    command = (redis_clis() or [["redis-cli"]])[0]
    with tempfile.TemporaryFile() as file:
        start = time.perf_counter()
        subprocess.run([*command, "-p", str(port), "--scan", *arguments], check=True, stdout=file)
        return time.perf_counter() - start


def in_turns(port: int, peers: dict[str, Measure], runs: int) -> dict[str, list[float]]:
    """Measure each peer `runs` times, one after the other."""
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(runs):
        for name, measure in peers.items():
            print(f"  run {number + 1} of {runs}: {name}", file=sys.stderr)
            seconds[name].append(measure(port))
    return seconds


@contextmanager
def long_link(port: int) -> Iterator[int]:
    """The port of a proxy that adds the round trip, in a process of its own."""
    command = [sys.executable, "-m", "tests.proxy", str(port), str(ONE_WAY_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.kill()


def _rate(keys: int, seconds: Sequence[float]) -> str:
    return f"{keys / statistics.median(seconds) / 1000:,.0f} k keys/s"


def _faster(seconds: dict[str, list[float]], ours: str, peer: str) -> float:
    return statistics.median(seconds[peer]) / statistics.median(seconds[ours])


def rows() -> Iterator[Row]:
    """On this machine, then over the long link."""
    yield from _near()
    for what, keyspace in (("names of a shop", seeded), ("names of the grammar", _of_the_grammar)):
        with keyspace(SERVER, PURE_KEYS) as server:
            yield from _pure(server.port, what)
    yield from _far()


@contextmanager
def apart(server: Server) -> Iterator[None]:
    """Give the server a processor of its own, as on a machine that is not shared; the peers have the others."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 1:
        os.sched_setaffinity(server.pid, cpus[:1])
        os.sched_setaffinity(0, cpus[1:])
    yield
    os.sched_setaffinity(server.pid, cpus)
    os.sched_setaffinity(0, cpus)


def _near() -> Iterator[Row]:
    def ours(port: int) -> float:
        return once("rtui", port, "full", KEYS)

    peers: dict[str, Measure] = {"rtui": ours, "cli": cli}
    loops: dict[str, Measure] = {"rtui": ours, "bare": lambda port: once("bare", port, 1_000)}
    with seeded(SERVER) as server:
        seconds = in_turns(server.port, peers, RUNS)
        with apart(server):
            beside_loop = in_turns(server.port, loops, RUNS)
    rate, what = _rate(KEYS, seconds["rtui"]), f"full-pace scan of {KEYS:,} keys into the store ({SERVER})"
    times = _faster(seconds, "rtui", "cli")
    yield Row(what, rate, f"redis-cli --scan: {_rate(KEYS, seconds['cli'])}", f"{times:.1f} ×", "> 1 ×", times > 1)
    times = _faster(beside_loop, "rtui", "bare")
    rate, beside = (_rate(KEYS, beside_loop[name]) for name in ("rtui", "bare"))
    what = f"{what}, the server on a processor of its own"
    yield Row(
        what, rate, f"bare loop, COUNT 1000: {beside}", f"{times:.2f} ×", f"≥ {BARE_SHARE} ×", times >= BARE_SHARE
    )


@contextmanager
def _of_the_grammar(server: str, keys: int) -> Iterator[Server]:
    """A server with a keyspace of the grammar that nobody has seen before."""
    with grown(server, keys, SystemRandom().getrandbits(32)) as found:
        yield found


def _pure(port: int, what: str) -> Iterator[Row]:
    """A scan without the compiled engine beside a loop with the same COUNT, in turns, and its share of the CPU."""
    (keys,) = Asking(port).run([(b"DBSIZE",)])
    ours: list[tuple[float, float]] = []
    loop: list[tuple[float, float]] = []
    for number in range(RUNS):
        print(f"  run {number + 1} of {RUNS}: plain Python, {what}", file=sys.stderr)
        seconds, cpu_seconds, commands = costs_of("rtui", port, "full", keys, engine="pure")
        ours.append((seconds, cpu_seconds))
        loop.append(costs_of("bare", port, max(10, keys // commands))[:2])
    for index, unit in enumerate(("wall", "CPU")):
        mine, bare = (statistics.median(one[index] for one in runs) for runs in (ours, loop))
        beside = f"a loop with the same COUNT: {bare / keys * 1e6:.2f} µs"
        yield Row(
            f"full-pace scan into the store in plain Python, {what}: {unit} time",
            f"{mine / keys * 1e6:.2f} µs a key",
            beside,
            f"{mine / bare:.1f} ×",
            f"≤ {PURE_TIMES:.0f} ×",
            mine <= PURE_TIMES * bare,
        )


def _far() -> Iterator[Row]:
    with seeded(SERVER, LINK_KEYS) as server, long_link(server.port) as port:
        seconds = in_turns(port, {"rtui": lambda port: once("rtui", port, "normal", LINK_KEYS)}, LINK_RUNS)
        seconds |= in_turns(port, {"count": lambda port: once("bare", port, 1_000)}, LINK_RUNS)
        seconds |= in_turns(port, {"cli": cli}, 1)
    ours = _rate(LINK_KEYS, seconds["rtui"])
    what = f"scan of {LINK_KEYS:,} keys over a link of {2 * ONE_WAY_MS} ms, normal pace ({SERVER})"
    times = _faster(seconds, "rtui", "cli")
    beside = f"redis-cli --scan: {LINK_KEYS / seconds['cli'][0]:,.0f} keys/s"
    yield Row(what, ours, beside, f"{times:,.0f} ×", f"≥ {LINK_TIMES:.0f} ×", times >= LINK_TIMES)
    times = _faster(seconds, "rtui", "count")
    yield Row(
        what,
        ours,
        f"a loop with COUNT 1000: {_rate(LINK_KEYS, seconds['count'])}",
        f"{times:.1f} ×",
        "> 1 ×",
        times > 1,
    )
