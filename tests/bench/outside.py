"""The whole process as seen from outside: how it starts, what memory it takes, what a slow link has to carry.

`python -m tests.bench.run outside`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_STARTS (15),
RTUI_BENCH_ROUNDS (3) and RTUI_BENCH_MOVES (40).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.bench.connection_recorder import recorded_connections
from tests.bench.row import Row, time_row
from tests.bench.seed import KEYS, seeded
from tests.bench.window import COLUMNS, LINES, Window, environment, window
from tests.servers import CHECKOUT, Server

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is browsed."""

STARTS = int(os.environ.get("RTUI_BENCH_STARTS", "15"))
"""How often a start is timed."""

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
"""How often memory is measured."""

MOVES = int(os.environ.get("RTUI_BENCH_MOVES", "40"))
"""Cursor moves whose bytes are counted, each way."""

QUIET_S = 0.4
"""After so long without output nothing more belongs to a move: the detail is there by then."""

MOST_BYTES = 100_000_000
"""The memory that the process may take."""

MOVE_BYTES = 1_000
"""What a cursor move may send to the terminal."""

EMPTY_APP = (
    "from textual.app import App\nfrom textual.widgets import Label\n"
    "class Empty(App):\n    def compose(self):\n        yield Label('READ-ONLY')\nEmpty().run()"
)
"""The least that can be painted with the same library."""


def rows() -> Iterator[Row]:
    """One row a figure."""
    yield from commands()
    with seeded(SERVER) as server:
        yield from starts(server)
        yield memory(server)
        with scanned(["-p", str(server.port), "--pace", "full", "--no-resume"]) as screen:
            into_a_namespace(screen)
            yield from moves(screen, f"{KEYS:,} keys")
    with scanned(["--demo"]) as screen:
        screen.type(b"*")
        screen.wait_quiet(QUIET_S)
        yield from moves(screen, "the demo's keys of every type")


def commands() -> Iterator[Row]:
    """Commands that must not wait for the interface."""
    beside = f"{statistics.median(command_times('-c', 'import click')) * 1000:.0f} ms for importing click alone"
    for option in ("--help", "--version"):
        yield time_row(f"`rtui {option}`", command_times("-m", "rtui", option), 0.15, beside)


def command_times(*arguments: str) -> list[float]:
    """How long a Python program takes until it has ended, in seconds."""
    times = []
    with tempfile.TemporaryDirectory(prefix="rtui-home-") as home:
        for _ in range(STARTS):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments], env=environment(home), cwd=CHECKOUT, check=True, capture_output=True
            )
            times.append(time.perf_counter() - start)
    return times


def starts(server: Server) -> Iterator[Row]:
    """From the command to the first paint, and from the connection to the first rows."""
    painted, listed, empty = [], [], []
    with recorded_connections(server.socket) as recorder:
        for _ in range(STARTS):
            before = len(recorder.opened_at)
            with window(["-m", "rtui", "-p", str(recorder.port), "--no-resume"]) as screen:
                painted.append(screen.wait_for(b"READ-ONLY") - screen.started_at)
                listed.append(screen.wait_for(b"shop") - recorder.opened_at[before])
            with window(["-c", EMPTY_APP]) as screen:
                empty.append(screen.wait_for(b"READ-ONLY") - screen.started_at)
    beside = f"{statistics.median(empty) * 1000:.0f} ms for an empty Textual app"
    yield time_row("first paint after the command", painted, 0.5, beside)
    yield time_row("first rows after the connection was accepted", listed, 0.2)


def memory(server: Server) -> Row:
    """The whole process after a scan."""
    found = []
    for _ in range(ROUNDS):
        with scanned(["-p", str(server.port), "--pace", "full", "--no-resume"]) as screen:
            found.append(screen.resident_bytes())
    here = statistics.median(found)
    what = f"memory of the process after a scan of {KEYS:,} keys of 28 bytes"
    return Row(what, f"{here / 1e6:.0f} MB", "", "", f"≤ {MOST_BYTES / 1e6:.0f} MB", here <= MOST_BYTES)


@contextmanager
def scanned(arguments: Sequence[str]) -> Iterator[Window]:
    """A browser that has seen every key, with nothing moving any more."""
    with window(["-m", "rtui", *arguments]) as screen:
        screen.wait_for(b"complete")
        screen.wait_quiet(QUIET_S)
        yield screen


def into_a_namespace(screen: Window) -> None:
    """Open the first namespace and the first one in it, and go to the first key there."""
    for keys in (b"l", b"l", b"l", b"l"):
        screen.type(keys)
        screen.wait_quiet(QUIET_S)


def moves(screen: Window, where: str) -> Iterator[Row]:
    """Bytes for going down by one row and up again, as long as nothing scrolls and then at the edge, where it does."""
    within = [*cost(screen, b"j", LINES // 2), *cost(screen, b"k", LINES // 2)]
    here = statistics.median(within)
    what = f"bytes to the terminal for a cursor move, detail panel included, {COLUMNS}×{LINES}, {where}"
    yield Row(what, f"{here:,.0f}", "", "", f"≤ {MOVE_BYTES:,}", here <= MOVE_BYTES)
    cost(screen, b"j", LINES)
    scrolled = cost(screen, b"j", MOVES)
    yield Row(f"the same where the tree scrolls, {where}", f"{statistics.median(scrolled):,.0f}")


def cost(screen: Window, key: bytes, count: int) -> list[int]:
    """Bytes that each press of a key brings, until nothing more comes."""
    found = []
    for _ in range(count):
        before = screen.written_bytes
        screen.type(key)
        screen.wait_quiet(QUIET_S)
        found.append(screen.written_bytes - before)
    return found
