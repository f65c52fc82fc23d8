"""Clusters: of three primaries beside one server with the same keys and beside what else there is; of 1,000 nodes.

`python -m tests.bench.run cluster`. The environment may set RTUI_BENCH_SERVERS (redis-7.0 redis-8.10 valkey-9.1),
RTUI_BENCH_KEYS (300,000), RTUI_BENCH_ROUNDS (3), RTUI_BENCH_PRESSES (150) and RTUI_BENCH_SEED (a fresh one; it is
printed).

An analysis of three primaries is a whole process; a scan is what browsing does, without the start. All take turns in
each round. The 1,000 nodes are simulated by one process (`tests/fakes/cluster.py`), which shares the processors with
rtui, and answer at the rate of Python: times of passes are as much its own. Memory, commands and holds of the event
loop are not.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from redis.cluster import RedisCluster

from rtui.demo.load import send
from rtui.demo.writes import Write
from rtui.keyspace.slots import key_slot
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import BrowseOptions, PaceName
from rtui.tui.browse.screen import BrowseScreen
from tests.bench import Row, in_ms, scan, time_row
from tests.bench.interface import APART_S
from tests.bench.peers import KIB, once, spread
from tests.clusters import TestCluster, cluster_of
from tests.fakes.cluster import Shape, SimulatedCluster, simulated
from tests.grammar import Grammar, grown
from tests.holds import Holds
from tests.servers import CHECKOUT, binaries
from tests.tui.stage import Stage, on_stage
from tests.window import environment

SERVERS = os.environ.get("RTUI_BENCH_SERVERS", "redis-7.0 redis-8.10 valkey-9.1").split()
"""The versions that are measured."""

KEYS = int(os.environ.get("RTUI_BENCH_KEYS", "300000"))
ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
SEED = int(os.environ.get("RTUI_BENCH_SEED") or random.randrange(1 << 32))

PRESSES = int(os.environ.get("RTUI_BENCH_PRESSES", "150"))

PATTERNS = 200

SHARE = 0.9
"""How near to the rate of one server that of a cluster has to come."""

SCAN_TIMES = 20.0
"""How many times faster than redis-py's iterator a scan has to be."""

SIZES = (3, 100, 1_000)
"""Nodes of the clusters whose memory is compared."""

NODE_BYTES = 3 << 20
"""The memory that a node may take."""

P99_S, HOLD_S, LOOK_HOLD_S = 0.033, 0.010, 0.005
"""A keypress until it is painted; a callback of the event loop; one that reads the topology."""

LONGEST_S = 60.0
"""For so long keys are pressed at most."""

Measure = Callable[[], float]
"""Seconds that something takes."""


def rows() -> Iterator[Row]:
    """Six rows a server, then what a thousand nodes cost."""
    for version in SERVERS:
        yield from of_three(version)
    yield from of_many()


def of_three(version: str) -> Iterator[Row]:
    """Measure a cluster of three primaries and its peers by turns."""
    print(f"  {version}, seed {SEED}", file=sys.stderr)
    with grown(version, KEYS, SEED, patterns=PATTERNS) as alone, grown_cluster(version) as cluster:
        ports = [member.server.port for member in cluster.members]
        measures: dict[str, Measure] = {
            "report": lambda port=ports[0]: report(port),  # type: ignore[misc]
            "report --workers 3": lambda port=ports[0]: report(port, "--workers", "3"),  # type: ignore[misc]
            "report of one server": lambda port=alone.port: report(port),  # type: ignore[misc]
            "redis-cli --memkeys": lambda ports=ports: sum(memkeys(port) for port in ports),  # type: ignore[misc]
            "scan": lambda port=ports[0]: scan.once("rtui", port, "full", KEYS),  # type: ignore[misc]
            "scan of one server": lambda port=alone.port: scan.once("rtui", port, "full", KEYS),  # type: ignore[misc]
            "scan_iter()": lambda port=ports[0]: iterated(port),  # type: ignore[misc]
            "scan_iter(count=1000)": lambda port=ports[0]: iterated(port, 1_000),  # type: ignore[misc]
        }
        seconds: dict[str, list[float]] = {name: [] for name in measures}
        for number in range(ROUNDS):
            for name, measure in measures.items():
                seconds[name].append(measure())
                print(f"  round {number + 1} of {ROUNDS}: {name}: {seconds[name][-1]:.2f} s", file=sys.stderr)
        yield from beside(version, seconds)


def beside(version: str, seconds: dict[str, list[float]]) -> Iterator[Row]:
    """The cluster beside one server, and beside its peers."""
    of = f"{KEYS:,} keys of the grammar, seed {SEED}, on three primaries ({version}), full pace"
    pairs = (
        ("`rtui report`", "report", "report of one server", SHARE),
        ("`rtui report`", "report", "redis-cli --memkeys", None),
        ("`rtui report --workers 3`", "report --workers 3", "report", None),
        ("scan into the tree", "scan", "scan of one server", SHARE),
        ("scan into the tree", "scan", "scan_iter()", SCAN_TIMES),
        ("scan into the tree", "scan", "scan_iter(count=1000)", None),
    )
    names = {
        "redis-cli --memkeys": "redis-cli --memkeys on each node in turn",
        "report": "`rtui report` in one process",
        "scan_iter()": "redis-py's RedisCluster.scan_iter()",
        "scan_iter(count=1000)": "redis-py's RedisCluster.scan_iter(count=1000)",
    }
    for what, ours, theirs, goal in pairs:
        times = statistics.median(seconds[theirs]) / statistics.median(seconds[ours])
        peer = f"{names.get(theirs, 'one server with the same keys')}: {spread(seconds[theirs])}"
        least = "" if goal is None else f"≥ {goal:g} ×"
        verdict = None if goal is None else times >= goal
        yield Row(f"{what}, {of}", spread(seconds[ours]), peer, f"{times:.2f} ×", least, verdict)


def report(port: int, *options: str) -> float:
    """Seconds of one analysis of all keys, with the default columns."""
    command = [sys.executable, "-m", "rtui", "report", f"127.0.0.1:{port}", "--pace", "full", "--format", "json"]
    return once([*command, *options]).wall_s


def memkeys(port: int) -> float:
    """Seconds of one `redis-cli --memkeys`."""
    return once([*(scan.redis_clis() or [["redis-cli"]])[-1], "-p", str(port), "--memkeys"]).wall_s


def iterated(port: int, count: int | None = None) -> float:
    """Seconds in which redis-py gives the names of all keys."""
    client = RedisCluster(host="127.0.0.1", port=port)
    start = time.perf_counter()
    found = sum(1 for _ in client.scan_iter(count=count))
    took = time.perf_counter() - start
    client.close()
    if found < KEYS:
        raise RuntimeError(f"{found} keys of {KEYS}")
    return took


@contextmanager
def grown_cluster(version: str) -> Iterator[TestCluster]:
    """A cluster of three primaries of this version that holds the keyspace."""
    with cluster_of(binaries()[version]) as cluster, ExitStack() as stack:
        bounds = [member.slots[1] for member in cluster.members if member.slots is not None]
        writes: list[list[Write]] = [[] for _ in bounds]
        for write in Grammar(SEED, PATTERNS).writes(KEYS):
            assert isinstance(write[1], bytes)
            slot = key_slot(write[1])
            writes[next(at for at, last in enumerate(bounds) if slot <= last)].append(write)
        for member, some in zip(cluster.members, writes, strict=True):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", member.server.port)))
            errors = send(connection, some)
            if errors:
                raise RuntimeError(f"the server refused writes: {errors[:3]}")
        del writes
        yield cluster


# a thousand nodes


@dataclass(frozen=True, slots=True)
class Pass:
    """What one process that analyses all keys took."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    commands: int
    connections: int
    report: dict[str, Any]


def of_many() -> Iterator[Row]:
    """Time and memory by the number of nodes, looks, the interface."""
    taken = {size: [] for size in SIZES}  # type: dict[int, list[Pass]]
    estimates: list[Pass] = []
    for _ in range(ROUNDS):
        for size in SIZES:
            with simulated(Shape(size, KEYS, seed=SEED)) as cluster:
                taken[size].append(analysed(cluster, "--pace", "full"))
                if size == SIZES[-1]:
                    estimates.append(analysed(cluster, "--estimate", "20000"))
    yield from costs(taken, estimates)
    with simulated(Shape(SIZES[-1], KEYS, seed=SEED)) as cluster:
        yield from looks(cluster)
        for pace in ("gentle", "full"):
            yield from pressing(cluster, pace)


def analysed(cluster: SimulatedCluster, *options: str) -> Pass:
    """Run `rtui report` on all nodes."""
    before = cluster.figures()
    with tempfile.TemporaryDirectory(prefix="rtui-home-") as home:
        file = Path(home) / "report.json"
        command = [sys.executable, "-m", "rtui", "report", f"127.0.0.1:{cluster.port}", *options]
        start = time.perf_counter()
        with subprocess.Popen(
            [*command, "--format", "json", "-o", str(file)], cwd=CHECKOUT, env=environment(home)
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - start
        if process.returncode:
            raise RuntimeError(f"the report ended with code {process.returncode}")
        found = json.loads(file.read_text())
    after = cluster.figures()
    print(f"    {cluster.shape.nodes} nodes: {wall_s:.1f} s, {usage.ru_maxrss >> 10} MiB", file=sys.stderr)
    return Pass(
        wall_s,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * KIB,
        after["commands"] - before["commands"],
        after["most_connections"],
        found,
    )


def costs(taken: dict[int, list[Pass]], estimates: list[Pass]) -> Iterator[Row]:
    """What the nodes cost."""
    fewest, most = SIZES[0], SIZES[-1]
    peaks = {size: statistics.median(one.peak_bytes for one in some) for size, some in taken.items()}
    per_node = (peaks[most] - peaks[fewest]) / (most - fewest)
    what = f"`rtui report` of {KEYS:,} keys on simulated nodes: memory at its peak with {most:,}"
    others = ", ".join(f"{size}: {peak / 1e6:.0f} MB" for size, peak in peaks.items() if size != most)
    here = f"{peaks[most] / 1e6:.0f} MB"
    yield Row(what, here, others, f"{per_node / 1e6:.2f} MB a node", "≤ 3 MB a node", per_node <= NODE_BYTES)
    for size, some in taken.items():
        keys = {one.report["head"]["coverage"]["keys"] for one in some}
        kinds = {one.report["head"]["coverage"]["kind"] for one in some}
        wall, cpu, commands = (
            statistics.median(getattr(one, name) for one in some) for name in ("wall_s", "cpu_s", "commands")
        )
        what = f"the same with {size:,} nodes at full pace: time; processor; commands a key; connections at most"
        text = f"{wall:.1f} s; {cpu:.1f} s; {commands / KEYS:.2f}; {max(one.connections for one in some):,}"
        yield Row(what, text, "", "", "every key once", keys == {KEYS} and kinds == {"exact"})
    overhead_ms = (
        statistics.median(one.cpu_s for one in taken[most]) - statistics.median(one.cpu_s for one in taken[fewest])
    ) / (most - fewest)
    yield Row("processor that a node takes beside its keys", f"{overhead_ms * 1e3:.1f} ms")
    wall = statistics.median(one.wall_s for one in estimates)
    commands = statistics.median(one.commands for one in estimates)
    keys = statistics.median(one.report["head"]["coverage"]["keys"] for one in estimates)
    yield Row(
        f"`rtui report --estimate 20000` of {most:,} nodes: time; commands",
        f"{wall:.1f} s; {commands:,.0f}, {keys:,.0f} keys",
    )


def looks(cluster: SimulatedCluster) -> Iterator[Row]:
    """What it takes to see that slots have moved, and that a node is down whose slots nobody serves."""
    yield from asyncio.run(_looks(cluster))


async def _looks(cluster: SimulatedCluster) -> list[Row]:
    deployment = Deployment(cluster.target)
    await deployment.open()
    found = []
    for what, change in (("slots have moved", cluster.move), ("a node is down and nobody has its slots", cluster.kill)):
        seconds, holds = [], []
        for _ in range(ROUNDS):
            change()
            held = Holds()
            held.begin()
            start = time.perf_counter()
            await deployment.look()
            seconds.append(time.perf_counter() - start)
            held.end()
            holds.append(held.longest_s)
        where = f"look at {cluster.shape.nodes:,} nodes after {what}"
        found += [Row(where, in_ms(statistics.median(seconds))), time_row(f"{where}: event loop held", holds, HOLD_S)]
    await deployment.close()
    return found


def pressing(cluster: SimulatedCluster, pace: PaceName) -> Iterator[Row]:
    """From a keypress to its painting while all nodes are scanned, and for how long the event loop is held."""
    taken: list[float] = []
    holds: list[float] = []
    for _ in range(ROUNDS):
        options = BrowseOptions(target=cluster.target, pace=pace, resume=False)
        on_stage(options, partial(press_around, taken=taken, holds=holds))
    taken.sort()
    what = f"tree of {cluster.shape.nodes:,} nodes while it is scanned at the pace {pace}"
    if taken:
        yield Row(f"{what}: keypress → painted, p50", in_ms(statistics.median(taken)))
        yield time_row(f"{what}: keypress → painted, p99", [taken[int(0.99 * len(taken))]], P99_S)
    yield time_row(f"{what}: event loop held at most, processor's time", [max(holds)], HOLD_S)


def press_around(stage: Stage, taken: list[float], holds: list[float]) -> None:
    """Move the cursor down and up while keys arrive, and after."""
    held = Holds()
    stage.call(held.begin)
    assert isinstance(stage.app.screen, BrowseScreen)
    down, until = True, time.perf_counter() + LONGEST_S
    count = 0
    while count < PRESSES and time.perf_counter() < until:
        line, last = stage.call(lambda: (stage.tree.cursor_line, stage.tree.virtual_size.height - 1))
        down = line == 0 or (down and line < last)
        seconds = stage.pressed_to_painted_s("down" if down else "up", time.perf_counter() + random.uniform(*APART_S))
        count += 1
        if seconds is not None:
            taken.append(seconds)
    stage.call(held.end)
    holds.append(held.longest_s)
