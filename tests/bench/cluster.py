"""A pass over a cluster of three primaries beside one server with the same keys, and beside what else there is.

`python -m tests.bench.run cluster`. The environment may set RTUI_BENCH_SERVERS (redis-7.0 redis-8.10 valkey-9.1),
RTUI_BENCH_KEYS (300,000), RTUI_BENCH_ROUNDS (3) and RTUI_BENCH_SEED (a fresh one; it is printed).

An analysis is a whole process; a scan is what browsing does, without the start. All take turns in each round.
"""

from __future__ import annotations

import os
import random
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from redis.cluster import RedisCluster

from rtui.demo.load import send
from rtui.demo.writes import Write
from rtui.keyspace.slots import key_slot
from tests.bench import scan
from tests.bench.inspection import cli
from tests.bench.peers import once, spread
from tests.bench.row import Row
from tests.clusters import TestCluster, cluster_of
from tests.grammar import Grammar, grown
from tests.servers import binaries

SERVERS = os.environ.get("RTUI_BENCH_SERVERS", "redis-7.0 redis-8.10 valkey-9.1").split()
"""The versions that are measured."""

KEYS = int(os.environ.get("RTUI_BENCH_KEYS", "300000"))
ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
SEED = int(os.environ.get("RTUI_BENCH_SEED") or random.randrange(1 << 32))

PATTERNS = 200

SHARE = 0.9
"""How near to the rate of one server that of a cluster has to come."""

SCAN_TIMES = 20.0
"""How many times faster than redis-py's iterator a scan has to be."""

Measure = Callable[[], float]
"""Seconds that something takes."""


def rows() -> Iterator[Row]:
    """Four rows a server."""
    for version in SERVERS:
        print(f"  {version}, seed {SEED}", file=sys.stderr)
        with grown(version, KEYS, SEED, patterns=PATTERNS) as alone, grown_cluster(version) as cluster:
            ports = [member.server.port for member in cluster.members]
            measures: dict[str, Measure] = {
                "report": lambda port=ports[0]: report(port),  # type: ignore[misc]
                "report of one server": lambda port=alone.port: report(port),  # type: ignore[misc]
                "redis-cli --memkeys": lambda ports=ports: sum(cli(port, "--memkeys") for port in ports),  # type: ignore[misc]
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
        ("scan into the tree", "scan", "scan of one server", SHARE),
        ("scan into the tree", "scan", "scan_iter()", SCAN_TIMES),
        ("scan into the tree", "scan", "scan_iter(count=1000)", None),
    )
    names = {
        "redis-cli --memkeys": "redis-cli --memkeys on each node in turn",
        "scan_iter()": "redis-py's RedisCluster.scan_iter()",
        "scan_iter(count=1000)": "redis-py's RedisCluster.scan_iter(count=1000)",
    }
    for what, ours, theirs, goal in pairs:
        times = statistics.median(seconds[theirs]) / statistics.median(seconds[ours])
        peer = f"{names.get(theirs, 'one server with the same keys')}: {spread(seconds[theirs])}"
        least = "" if goal is None else f"≥ {goal:g} ×"
        verdict = None if goal is None else times >= goal
        yield Row(f"{what}, {of}", spread(seconds[ours]), peer, f"{times:.2f} ×", least, verdict)


def report(port: int) -> float:
    """Seconds of one analysis of all keys, with the default columns."""
    command = [sys.executable, "-m", "rtui", "report", f"127.0.0.1:{port}", "--pace", "full", "--format", "json"]
    return once(command).wall_s


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
