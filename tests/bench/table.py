"""A whole analysis beside that of an earlier version: `RTUI_BENCH_BEFORE=PYTHON python -m tests.bench.run table`.

Whole processes of `rtui report`, which take turns in each round, on the shop of `scan.py`, on keyspaces of the grammar
with 300 and 5,000 patterns, and on names that share no pattern. RTUI_BENCH_BEFORE is the path of a Python in whose
environment the earlier version is installed; without it there is nothing beside. The environment may also set
RTUI_BENCH_SERVERS (redis-7.0 redis-8.10 valkey-9.1), RTUI_BENCH_KEYS (600000), RTUI_BENCH_ROUNDS (3) and
RTUI_BENCH_SEED (a fresh one, printed).

Then a pass and ten questions at normal pace, as an operator has them: here in one session, which keeps the rows, of the
version before as its report and ten processes of `rtui find`, whose start is a twentieth of what they take.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rtui.analysis.query.parsing import parse
from rtui.analysis.query.query import MatchOrder
from rtui.analysis.query.terms import Fact
from rtui.demo.load import send
from rtui.demo.writes import Write
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import ScanState
from rtui.server.search.search import Search
from rtui.server.wire.target import Target
from tests.bench import Row
from tests.bench.scan import seeded
from tests.grammar import grown
from tests.server.targets import eventually
from tests.servers import Server, binaries, running

SERVERS = os.environ.get("RTUI_BENCH_SERVERS", "redis-7.0 redis-8.10 valkey-9.1").split()
KEYS = int(os.environ.get("RTUI_BENCH_KEYS", "600000"))
ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
SEED = int(os.environ.get("RTUI_BENCH_SEED") or random.randrange(1 << 32))

BEFORE = os.environ.get("RTUI_BENCH_BEFORE")
PYTHONS = [sys.executable] if BEFORE is None else [sys.executable, BEFORE]
UNWANTED = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in UNWANTED}
COLUMNS = ("default", "all")
GOAL = 0.9
"""The speed beside that of the version before, at least."""


QUESTIONS = (
    ("size>1K", None),
    ("ttl:none", None),
    ("ttl<1h type:hash", None),
    ("!ttl:none size>500", None),
    ("4242", None),
    ("*[0-9][0-9][0-9][0-9]", None),
    ("*:*7", None),
    ("type:zset,list", None),
    ("size>0", Fact.MEMORY),
    ("ttl<30d", Fact.TTL),
)
"""Queries, and by what their matches are sorted."""

SESSION_GOAL = 5.0


@dataclass(frozen=True, slots=True)
class Run:
    """What one process took."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


def once(python: str, port: int, columns: str) -> Run:
    """Analyse all keys with the version that is installed for a Python, from the start of the process to its end."""
    command = [python, "-P", "-m", "rtui", "report", f"127.0.0.1:{port}", "--pace", "full", "--format", "json"]
    start = time.perf_counter()
    with subprocess.Popen([*command, "--columns", columns], stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the report by {python} ended with {process.returncode}")
    kib = 1 if sys.platform == "darwin" else 1024
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * kib)


@contextmanager
def alone(server: str, keys: int, seed: int) -> Iterator[Server]:
    """A server with names of random words, of which no two share a pattern."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"

    def word() -> str:
        return "".join(rng.choices(letters, k=rng.randint(3, 10)))

    def writes() -> Iterator[Write]:
        for _ in range(keys):
            yield b"SET", ":".join(word() for _ in range(rng.randint(1, 4))).encode(), b"x" * rng.randint(1, 200)

    with running(binaries()[server]) as found:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(found.socket)
            send(connection, writes())
        yield found


KEYSPACES: dict[str, Callable[[str], AbstractContextManager[Server]]] = {
    "shop": lambda server: seeded(server, KEYS),
    "grammar, 300 patterns": lambda server: grown(server, KEYS, SEED, patterns=300),
    "grammar, 5,000 patterns": lambda server: grown(server, KEYS, SEED + 1, patterns=5_000),
    "names that share no pattern": lambda server: alone(server, KEYS, SEED + 2),
}


def rows() -> Iterator[Row]:
    """Some rows a server and keyspace: speed, processor and memory beside the version before."""
    for server in SERVERS:
        for keyspace, filled in KEYSPACES.items():
            print(f"  {server}, {keyspace}, seed {SEED}", file=sys.stderr)
            with filled(server) as found:
                keys = found.client().dbsize()
                for columns in COLUMNS:
                    rounds = [[once(python, found.port, columns) for python in PYTHONS] for _ in range(ROUNDS)]
                    now, *before = map(list, zip(*rounds, strict=True))
                    what = f"{keyspace}, {keys:,} keys, {columns} columns ({server})"
                    yield beside(what, keys, now, before[0]) if before else Row(what, _said(keys, now))
    yield from questions()


def questions() -> Iterator[Row]:
    """A row a server: a pass and ten questions beside the same with the version before."""
    for server in SERVERS:
        with grown(server, KEYS, SEED, patterns=300) as found:
            here, before = [], []
            for _ in range(ROUNDS):
                with tempfile.TemporaryDirectory(prefix="rtui-state-") as folder:
                    here.append(asyncio.run(_session_s(found.port, Path(folder))))
                if BEFORE is not None:
                    before.append(_processes_s(BEFORE, found.port))
            what = f"a pass and ten questions, normal pace, {KEYS:,} keys of the grammar ({server})"
            said = f"{statistics.median(here):.1f} s"
            if not before:
                yield Row(what, said)
                continue
            ratio = statistics.median(before) / statistics.median(here)
            goal = f"≥ {SESSION_GOAL:.0f} ×"
            yield Row(what, said, f"{statistics.median(before):.1f} s", f"{ratio:.1f} ×", goal, ratio >= SESSION_GOAL)


async def _session_s(port: int, folder: Path) -> float:
    session = BrowsingSession(BrowseOptions(Target(port=port), pace="normal"), state_folder=folder)
    start = time.perf_counter()
    await session.start()
    try:
        session.analysis.begin()
        await eventually(lambda: session.analysis.status.progress.state.is_over)
        for line, fact in QUESTIONS:
            found = session.search(parse(line), order=None if fact is None else MatchOrder(fact))
            found.prepare()
            found.begin()
            await eventually(partial(_is_over, found))
            if found.as_of_s is None or found.progress.state is not ScanState.DONE:
                raise RuntimeError(f"{line!r} was not answered from rows")
            await found.close()
        return time.perf_counter() - start
    finally:
        await session.close()


def _is_over(search: Search) -> bool:
    return search.progress.state.is_over


def _processes_s(python: str, port: int) -> float:
    target = [f"127.0.0.1:{port}", "--pace", "normal"]
    commands = [["report", *target, "--format", "json"]]
    for line, fact in QUESTIONS:
        by = [] if fact is None else ["--sort", "size" if fact is Fact.MEMORY else "ttl"]
        commands.append(["find", *target, *line.split(), *by, "--limit", "1000"])
    start = time.perf_counter()
    for command in commands:
        whole = [python, "-P", "-m", "rtui", *command]
        subprocess.run(whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=True)
    return time.perf_counter() - start


def beside(what: str, keys: int, now: list[Run], before: list[Run]) -> Row:
    """Runs of this version beside those of the version before."""
    ratio = statistics.median(run.wall_s for run in before) / statistics.median(run.wall_s for run in now)
    said = f"the version before: {_said(keys, before)}"
    return Row(what, _said(keys, now), said, f"{ratio:.2f} ×", f"≥ {GOAL} ×", ratio >= GOAL)


def _said(keys: int, runs: list[Run]) -> str:
    wall_s = statistics.median(run.wall_s for run in runs)
    cpu_us = statistics.median(run.cpu_s for run in runs) / keys * 1e6
    memory = max(run.memory_bytes for run in runs) / 2**20
    return f"{wall_s:.1f} s, {cpu_us:.1f} µs a key, {memory:.0f} MiB"
