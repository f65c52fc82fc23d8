"""What another client notices of a scan and of an analysis at each pace, and of redis-cli's analysers, in one run.

`python -m tests.bench.run analysis_latency`. The environment may set RTUI_BENCH_LATENCY_SERVERS, RTUI_BENCH_KEYS
(1000000), RTUI_BENCH_SEED (a fresh one; it is printed), RTUI_BENCH_ROUNDS (11), RTUI_BENCH_WINDOW_S (2) and
RTUI_BENCH_CURVE_WINDOW_S (1).

The other client is an open-loop probe of GETs at a fixed rate, in a process of its own: each request has its moment,
whether or not the one before was answered, and its latency counts from that moment. `python -m
tests.bench.analysis_latency probe PORT SECONDS [CPU…]` prints the latencies in µs as one JSON list.

Each load is a process that goes on until it is stopped, `python -m tests.bench.analysis_latency KIND PORT …`:
`rtui PACE` scans into a store again and again, `analysis PACE` analyses again and again, `scan COUNT DUTY` sends one
SCAN after the other and rests so that it takes that share of the time, `facts COUNT` asks type, life time and size of
each key too.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rtui.keyspace.store.store import NamespaceStore
from rtui.server.analysis.run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from tests.bench import Row
from tests.bench.peers import KEYS, SEED, with_count
from tests.bench.scan import Asking, redis_clis, seeded
from tests.grammar import grown
from tests.servers import Server

SERVERS = os.environ.get("RTUI_BENCH_LATENCY_SERVERS", "redis-6.2 redis-7.0 redis-8.10 valkey-8.1 valkey-9.1").split()
"""The versions that are measured."""

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "11"))
"""How often each load is measured; one after the other, so that a slow minute hits all of them."""

WINDOW_S = float(os.environ.get("RTUI_BENCH_WINDOW_S", "2"))
"""How long each load is measured in each round, and likewise the time without one before it."""

CURVE_WINDOW_S = float(os.environ.get("RTUI_BENCH_CURVE_WINDOW_S", "1"))
"""The same for each point of the curve."""

FOREMOST = -20
"""The niceness of the server, where permitted: what else runs on the machine is not to be measured."""

GOALS = {"gentle": 1.1, "normal": 1.5, "full": 3.0}
"""How many times the p99 without a load that under an analysis may be, by pace."""

SCAN_GOAL = 1.3
"""The same under a scan at the default pace."""

COUNTS = (20, 50, 100, 200, 500, 1_000)
DUTIES = (0.05, 0.15, 0.25, 0.5, 1.0)

RATE_PER_S = 1_000
"""Requests a second."""

REQUEST = b"*2\r\n$3\r\nGET\r\n$5\r\nprobe\r\n"
"""What is asked; the key need not be there."""

REPLY_END = b"\r\n"
"""A missing key is answered with `$-1` and this."""

BLOCKED_S = 0.001
"""How long to listen before the next attempt, when the server takes nothing more."""

TIMER_SLACK_NS = 1
"""How late the kernel may wake the probe, where it may not run in real time."""


READY = b"ready\n"
"""What a load says once it begins."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Percentiles of one window, in µs."""

    p50: float
    p99: float
    p999: float

    @classmethod
    def of(cls, values: list[float]) -> Latencies:
        """From single latencies in µs."""
        ordered = sorted(values)

        def at(share: float) -> float:
            return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

        return cls(at(0.5), at(0.99), at(0.999))


def probe(port: int, seconds: float) -> list[float]:
    """Latencies in µs of all requests of a window."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        count = int(seconds * RATE_PER_S)
        latencies = array("d", bytes(8 * count))
        sent = answered = 0
        rest = b""
        start = time.perf_counter() + 0.01
        while answered < count:
            due = start + sent / RATE_PER_S if sent < count else float("inf")
            wait = due - time.perf_counter()
            if wait <= 0:
                with contextlib.suppress(BlockingIOError):
                    sent += connection.send(REQUEST) > 0
                    continue
                wait = BLOCKED_S
            ready, _, _ = select.select([connection], [], [], None if sent == count else wait)
            if ready:
                data = rest + connection.recv(65_536)
                now = time.perf_counter()
                replies = data.count(REPLY_END)
                rest = data[data.rfind(REPLY_END) + 2 :] if replies else data
                for number in range(answered, answered + replies):
                    latencies[number] = (now - start - number / RATE_PER_S) * 1e6
                answered += replies
        return latencies.tolist()


def probe_apart(port: int, seconds: float, cpus: set[int]) -> Latencies:
    """The percentiles of a window, measured by a process of its own on some of the processors."""
    command = [sys.executable, "-m", "tests.bench.analysis_latency", "probe", str(port), str(seconds), *map(str, cpus)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Latencies.of(json.loads(done.stdout))


def _prefer_me() -> None:
    """Run before everything else on the machine, if that is permitted, and wake on time."""
    gc.disable()
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    if sys.platform == "linux":
        set_timer_slack = 29
        ctypes.CDLL(None).prctl(set_timer_slack, TIMER_SLACK_NS)


async def rtui_scans(port: int, pace: str) -> None:
    """Scan the whole keyspace into a store at one of rtui's paces, again and again."""
    connection = Connection(Target(port=port))
    await connection.open()
    dialect = dialect_of(connection.server)
    while True:
        store = NamespaceStore()
        await Scan([ScanNode(connection, dialect)], store.add, RunControl(Pace(pace))).run()


async def rtui_analyses(port: int, pace: str) -> None:
    """Analyse the whole keyspace at one of rtui's paces, again and again."""
    connection = Connection(Target(port=port))
    await connection.open()
    while True:
        await AnalysisRun(connection, AnalysisOptions(pace=Pace(pace))).run()


def paced_scans(port: int, count: int, duty: float) -> None:
    """Scan with one COUNT, resting after each call so that calls take `duty` of the time."""
    client, cursor = Asking(port), b"0"
    while True:
        start = time.perf_counter()
        cursor, _ = client.page(cursor, count)
        took = time.perf_counter() - start
        if duty < 1:
            time.sleep(took * (1 / duty - 1))


def scans_with_facts(port: int, count: int) -> None:
    """Scan in large pages and ask three facts of each key in one write, as graphical browsers do."""
    client, cursor = Asking(port), b"0"
    while True:
        cursor, keys = client.page(cursor, count)
        facts = [(b"TYPE",), (b"PTTL",), (b"MEMORY", b"USAGE")]
        client.run([(*fact, key) for key in keys for fact in facts])


def own(kind: str, port: int, *arguments: object) -> list[str]:
    """The command line of one of these loads."""
    return [sys.executable, "-m", "tests.bench.analysis_latency", kind, str(port), *map(str, arguments)]


def again_and_again(command: Sequence[str]) -> list[str]:
    """A command line that says it is ready and then repeats a command; it must be one that ends by itself."""
    return ["bash", "-c", 'echo ready; while "$@" >/dev/null 2>&1; do :; done', "load", *command]


@contextmanager
def under(command: Sequence[str] | None, cpus: set[int]) -> Iterator[None]:
    """Put the server under a load for the time of the block; None is no load."""
    if command is None:
        yield
        return

    def stay() -> None:
        os.sched_setaffinity(0, cpus)

    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=stay,  # noqa: PLW1509 -- one system call, no lock
    ) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == READY
        try:
            yield
            assert load.poll() is None, f"the load ended by itself: {command}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(load.pid, signal.SIGKILL)


Rounds = dict[str, list[tuple[Latencies, Latencies]]]
"""Of each load, in the order of the rounds: a window without a load, and the one under it that follows."""


def conditions(port: int) -> dict[str, list[str]]:
    """Every load, as a command line."""
    plain, counting = (redis_clis() or [["redis-cli"]])[-1], with_count()
    found = {_name(pace): own("analysis", port, pace) for pace in GOALS}
    found |= {f"rtui scan, {pace}": own("rtui", port, pace) for pace in GOALS}
    for analyser in ("--bigkeys", "--memkeys"):
        found[f"redis-cli {analyser}"] = again_and_again([*plain, "-p", str(port), analyser])
    if counting is not None:
        counted = [*counting, "-p", str(port), "--memkeys", "--count", "1000"]
        found["redis-cli --memkeys --count 1000"] = again_and_again(counted)
    found["SCAN COUNT 10000"] = own("scan", port, 10_000, 1)
    found["SCAN COUNT 10000 + TYPE, PTTL, MEMORY of each key"] = own("facts", port, 10_000)
    return found


def _name(pace: str) -> str:
    return f"rtui analysis, {pace}"


def measure(server: Server, loads: dict[str, list[str]], rounds: int, window_s: float) -> Rounds:
    """Measure each load once a round, and the time without one before it."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(server.pid, {cpus[0]})
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, server.pid, FOREMOST)
    others = set(cpus[1:]) or set(cpus)
    results: Rounds = {name: [] for name in loads}
    for number in range(rounds):
        for name, command in loads.items():
            print(f"  round {number + 1} of {rounds}: {name}", file=sys.stderr)
            idle = probe_apart(server.port, window_s, others)
            with under(command, others):
                results[name].append((idle, probe_apart(server.port, window_s, others)))
    return results


def ratio(windows: list[tuple[Latencies, Latencies]]) -> float:
    """How the p99 compares with that of the window before, median over the rounds."""
    return statistics.median(under_load.p99 / idle.p99 for idle, under_load in windows)


def _figures(windows: Iterable[Latencies]) -> str:
    kept = list(windows)
    p50, p99, p999 = (statistics.median(getattr(window, which) for window in kept) for which in ("p50", "p99", "p999"))
    return f"{p50:,.0f} / {p99:,.0f} / {p999:,.0f} µs"


def rows() -> Iterator[Row]:
    """One row a server and load, the probe's p50 / p99 / p999 under it beside those without."""
    goals = {_name(pace): goal for pace, goal in GOALS.items()} | {"rtui scan, gentle": SCAN_GOAL}
    for name in SERVERS:
        print(f"  {name}, seed {SEED}", file=sys.stderr)
        with grown(name, KEYS, SEED) as server:
            results = measure(server, conditions(server.port), ROUNDS, WINDOW_S)
        yield from load_rows(results, name, goals)


def load_rows(results: Rounds, server: str, goals: Mapping[str, float]) -> Iterator[Row]:
    """One row for each load; `goals` are the ratios that the p99 has to stay under."""
    for name, windows in results.items():
        times, goal = ratio(windows), goals.get(name)
        yield Row(
            f"another client's latency, p50 / p99 / p999, under {name} ({server})",
            _figures(loaded for _, loaded in windows),
            f"{_figures(idle for idle, _ in windows)} without",
            f"{times:.2f} × p99",
            "" if goal is None else f"≤ {goal} ×",
            None if goal is None else times <= goal,
        )


def appendix() -> str:
    """The curve that the default was chosen from: p99 as a multiple of that without a load, by batch and duty."""
    with seeded(SERVERS[-1]) as server:
        loads = {f"{count} {duty}": own("scan", server.port, count, duty) for count in COUNTS for duty in DUTIES}
        results = measure(server, loads, max(3, ROUNDS // 2), CURVE_WINDOW_S)
    lines = [
        f"Another client's p99 ({SERVERS[-1]}), as a multiple of that without a scan, by COUNT and share of the time:",
        "",
        f"| COUNT | {' | '.join(f'{duty:.0%}' for duty in DUTIES)} |",
        f"|---|{'---|' * len(DUTIES)}",
    ]
    for count in COUNTS:
        cells = " | ".join(f"{ratio(results[f'{count} {duty}']):.2f}" for duty in DUTIES)
        lines.append(f"| {count:,} | {cells} |")
    return "\n".join(lines)


def main(kind: str, port: int, *arguments: str) -> None:
    """Measure latencies once, or run one load for ever."""
    if kind == "probe":
        _prefer_me()
        os.sched_setaffinity(0, map(int, arguments[1:]))
        print(json.dumps([round(value, 1) for value in probe(port, float(arguments[0]))]))
        return
    os.write(1, READY)
    kinds: dict[str, Callable[[], None]] = {
        "rtui": lambda: asyncio.run(rtui_scans(port, arguments[0])),
        "analysis": lambda: asyncio.run(rtui_analyses(port, arguments[0])),
        "scan": lambda: paced_scans(port, int(arguments[0]), float(arguments[1])),
        "facts": lambda: scans_with_facts(port, int(arguments[0])),
    }
    kinds[kind]()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
