"""How fast a keyspace is taken up: beside redis-cli and a bare loop on this machine, and over a link of 20 ms.

A second bare loop has the COUNT that the pace has come to: beside it, in wall time and in CPU time of the process.

`python -m tests.bench.run scan`. The environment may set RTUI_BENCH_SERVER (valkey-9.1) and RTUI_BENCH_RUNS (5).
`python -m tests.bench.scan seed PORT [KEYS] [SHAPE]` fills a server with names of a shop, a million of 28 bytes.
`… rtui PORT PACE KEYS` scans once into a store and prints the seconds it took once connected, those of its CPU, its
commands and the bytes of memory at its peak; `… bare PORT COUNT` sends one SCAN after the other and keeps nothing.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any

import hiredis

from rtui.demo.load import pack
from rtui.keyspace.store.store import NamespaceStore
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode, SplitSink
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.target import Target
from tests.bench import Row
from tests.grammar import grown
from tests.servers import BROUGHT, Server, binaries, running

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

COUNT_KEYS = 200_000
"""Keys of the keyspaces that are scanned beside a loop with the same COUNT."""

COUNT_TIMES = 2.0
"""How many times the time of a loop that keeps nothing a scan may need, with the same COUNT."""

Measure = Callable[[int], float]
"""Seconds that a peer needs for the server at a port."""


MOST_BYTES = 100_000_000
"""The memory of a process after a scan of a million keys."""

KEYS = 1_000_000
"""How many keys the measurements want."""

NAME_BYTES = 28
"""The length of every name."""

SHOP = (
    (b"shop:session:%015d", 30),
    (b"shop:user:%010d:profile", 15),
    (b"shop:user:%011d:orders", 10),
    (b"shop:cache:product:%09d", 20),
    (b"lock:order:%017d", 5),
    (b"queue:email:%016d", 10),
    (b"app:rate:api:%015d", 10),
)
"""Names of a shop, and how many of a hundred keys they are."""

FLAT = ((b"flat:%023d", 100),)
"""One namespace with every key directly in it."""

SHAPES = {"shop": SHOP, "flat": FLAT}
"""What a seeded keyspace may look like."""

BATCH = 1_000
"""Keys of one MSET."""


def names(keys: int = KEYS, shape: str = "shop") -> Iterator[list[bytes]]:
    """The names in batches, each of NAME_BYTES bytes."""
    kinds = [name for name, weight in SHAPES[shape] for _ in range(weight)]
    # Neighbours differ in kind, so that any part of the keyspace looks like the whole.
    kinds = [kinds[position * 37 % 100] for position in range(100)]
    for first in range(0, keys, BATCH):
        yield [kinds[number % 100] % number for number in range(first, min(first + BATCH, keys))]


def seed(connection: socket.socket, keys: int = KEYS, shape: str = "shop") -> None:
    """Write them down a connection, with a value of 16 bytes each."""
    replies = connection.makefile("rb")
    batches = 0
    for batch in names(keys, shape):
        pairs = b"".join([b"$28\r\n%s\r\n$16\r\nvalue-0123456789\r\n" % name for name in batch])
        connection.sendall(b"*%d\r\n$4\r\nMSET\r\n%s" % (1 + 2 * len(batch), pairs))
        batches += 1
        if batches > 8:
            _expect_ok(replies.readline())
    for _ in range(min(batches, 8)):
        _expect_ok(replies.readline())


def _expect_ok(line: bytes) -> None:
    if line != b"+OK\r\n":
        raise RuntimeError(f"the server refused a write: {line!r}")


@contextmanager
def seeded(name: str = "valkey-9.1", keys: int = KEYS, shape: str = "shop", *args: str) -> Iterator[Server]:
    """A server of this version that holds the keys."""
    with running(binaries()[name], *args) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server.socket)
            seed(connection, keys, shape)
        yield server


Took = tuple[float, float, int, int]
"""Seconds, seconds of this process's CPU, commands that were sent, bytes of memory at the peak."""


async def into_the_store(port: int, pace: str, keys: int) -> Took:
    """Scan everything once, as browsing does."""
    deployment = Deployment(Target(port=port))
    await deployment.open()
    nodes = [
        ScanNode(one.connection, dialect_of(one.connection.server), one.id or None, slots=one.slots, size=keys)
        for one in await deployment.scanned()
    ]
    store = NamespaceStore()
    gc.freeze()
    start, start_cpu = time.perf_counter(), time.process_time()
    split_sink = SplitSink(store.separators.values, store.add_split)
    scan = Scan(nodes, store.add, RunControl(Pace(pace)), split_sink=split_sink)
    await scan.run()
    took = time.perf_counter() - start, time.process_time() - start_cpu, scan.cost.commands, peak_bytes()
    await deployment.close()
    if scan.state is not ScanState.DONE or store.keys < keys:
        raise RuntimeError(f"{scan.state}, {store.keys} keys of {keys}")
    return took


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def bare(port: int, count: int) -> Took:
    """Scan everything once and throw it away."""
    client, commands = Asking(port), 1
    start, start_cpu = time.perf_counter(), time.process_time()
    cursor, _ = client.page(b"0", count)
    while cursor != b"0":
        cursor, _ = client.page(cursor, count)
        commands += 1
    return time.perf_counter() - start, time.process_time() - start_cpu, commands, peak_bytes()


class Asking:
    """A plain client that sends commands and waits for all replies."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._reader = hiredis.Reader()

    def run(self, commands: Sequence[tuple[bytes, ...]]) -> list[Any]:
        """One write, all replies."""
        return self.exchange(b"".join([pack(command) for command in commands]), len(commands))

    def exchange(self, packed: bytes, count: int) -> list[Any]:
        """Send bytes that are so many commands, and wait for their replies."""
        self._socket.sendall(packed)
        replies: list[Any] = []
        while len(replies) < count:
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self._socket.recv(1 << 20))
            else:
                replies.append(reply)
        return replies

    def page(self, cursor: bytes, count: int) -> tuple[bytes, list[bytes]]:
        (reply,) = self.run([(b"SCAN", cursor, b"COUNT", b"%d" % count)])
        assert isinstance(reply, list), reply
        return reply[0], reply[1]


def redis_clis() -> list[list[str]]:
    """Every redis-cli of this machine, newest package first, as the beginning of a command line."""
    folder = BROUGHT.parent.resolve()
    libraries = folder / "glibc/usr/lib/x86_64-linux-gnu"
    loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
    brought = [[*loader, str(path)] for path in sorted(folder.glob("root/redis*8*/usr/bin/redis-cli"), reverse=True)]
    installed = Path("/usr/bin/redis-cli")
    return [*brought, *([[str(installed)]] if installed.exists() else [])]


def once(*arguments: object) -> float:
    """Seconds of a scan in a process of its own."""
    return costs_of(*arguments)[0]


def costs_of(*arguments: object) -> Took:
    """What a scan in a process of its own has taken."""
    command = [sys.executable, "-m", "tests.bench.scan", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds, cpu_seconds, commands, peak = done.stdout.split()
    return float(seconds), float(cpu_seconds), int(commands), int(peak)


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
        with keyspace(SERVER, COUNT_KEYS) as server:
            yield from _with_its_count(server.port, what)
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
        *_, peak = costs_of("rtui", server.port, "full", KEYS)
    rate, what = _rate(KEYS, seconds["rtui"]), f"full-pace scan of {KEYS:,} keys into the store ({SERVER})"
    times = _faster(seconds, "rtui", "cli")
    yield Row(what, rate, f"redis-cli --scan: {_rate(KEYS, seconds['cli'])}", f"{times:.1f} ×", "> 1 ×", times > 1)
    times = _faster(beside_loop, "rtui", "bare")
    rate, beside = (_rate(KEYS, beside_loop[name]) for name in ("rtui", "bare"))
    what = f"{what}, the server on a processor of its own"
    yield Row(
        what, rate, f"bare loop, COUNT 1000: {beside}", f"{times:.2f} ×", f"≥ {BARE_SHARE} ×", times >= BARE_SHARE
    )
    least = f"≤ {MOST_BYTES / 1e6:.0f} MB"
    yield Row("memory of that process at its peak", f"{peak / 1e6:.0f} MB", "", "", least, peak <= MOST_BYTES)


@contextmanager
def _of_the_grammar(server: str, keys: int) -> Iterator[Server]:
    """A server with a keyspace of the grammar that nobody has seen before."""
    with grown(server, keys, SystemRandom().getrandbits(32)) as found:
        yield found


def _with_its_count(port: int, what: str) -> Iterator[Row]:
    """A scan beside a loop with the same COUNT, in turns, and its share of the CPU."""
    (keys,) = Asking(port).run([(b"DBSIZE",)])
    ours: list[tuple[float, float]] = []
    loop: list[tuple[float, float]] = []
    for number in range(RUNS):
        print(f"  run {number + 1} of {RUNS}: the same COUNT, {what}", file=sys.stderr)
        seconds, cpu_seconds, commands, _ = costs_of("rtui", port, "full", keys)
        ours.append((seconds, cpu_seconds))
        loop.append(costs_of("bare", port, max(10, keys // commands))[:2])
    for index, unit in enumerate(("wall", "CPU")):
        mine, bare = (statistics.median(one[index] for one in runs) for runs in (ours, loop))
        beside = f"a loop with the same COUNT: {bare / keys * 1e6:.2f} µs"
        yield Row(
            f"full-pace scan into the store, {what}: {unit} time",
            f"{mine / keys * 1e6:.2f} µs a key",
            beside,
            f"{mine / bare:.1f} ×",
            f"≤ {COUNT_TIMES:.0f} ×",
            mine <= COUNT_TIMES * bare,
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


def main(kind: str, port: int, *arguments: str) -> None:
    """Fill a server, or scan it once in this process."""
    if kind == "seed":
        with socket.create_connection(("127.0.0.1", port)) as to_seed:
            seed(to_seed, int(arguments[0]) if arguments else KEYS, *arguments[1:])
    elif kind == "rtui":
        print(*asyncio.run(into_the_store(port, arguments[0], int(arguments[1]))))
    else:
        print(*bare(port, int(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
