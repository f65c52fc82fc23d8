"""What a person at a terminal of 120×36 gets, measured from outside: first paint, memory, key presses, bytes.

`python -m tests.bench.run terminal`. The environment may set RTUI_BENCH_SERVER (valkey-9.1) and RTUI_BENCH_RUNS (5).
"""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.bench.glass import Glass
from tests.bench.row import Row
from tests.bench.seed import KEYS, seeded
from tests.servers import Server

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

RUNS = int(os.environ.get("RTUI_BENCH_RUNS", "5"))
"""How often the program is started."""

SCANNED_KEYS = 3_000_000
"""Keys for the key presses during a scan, so that it lasts."""

PRESS_PAUSE_S = 0.012
"""Seconds between key presses during a scan, at least; not a multiple of any interval of the program."""

MOVES = 40
"""Cursor moves whose bytes are counted."""

UP, DOWN, RIGHT = b"\x1b[A", b"\x1b[B", b"\x1b[C"
"""What a terminal sends for the arrow keys."""

CURSOR_COLUMN = 3
"""A column of the tree, where the cursor's row has a colour of its own."""

FIRST_ROW = 2
"""The first row of the tree on screen."""

PAINT_GOAL_S, ROWS_GOAL_S = 0.5, 0.2
MEMORY_GOAL_MB = 100
PRESS_GOAL_MS = (10, 50)
OPEN_GOAL_MS, HELD_GOAL_MS = 100, 50
MOVE_GOAL_BYTES = 1_000


@contextmanager
def browsing(server: Server, *options: str) -> Iterator[Glass]:
    """rtui on a terminal of its own, as a user starts it."""
    command = [sys.executable, "-m", "rtui", "-p", str(server.port), "--no-resume", *options]
    with Glass(command) as glass:
        yield glass


def is_complete(glass: Glass) -> bool:
    """Whether the status line says that every key has been seen."""
    return glass.line(glass.rows - 2).lstrip().startswith("complete")


def cursor_row(glass: Glass) -> int | None:
    """The row of the tree that has a background of its own; None while none has."""
    styles = [glass.style(row, CURSOR_COLUMN) for row in range(FIRST_ROW, glass.rows - 2)]
    usual, _ = Counter(styles).most_common(1)[0]
    return next((row for row, style in enumerate(styles, FIRST_ROW) if style != usual), None)


def press_s(glass: Glass, key: bytes) -> float:
    """Seconds from a key press to the paint that shows the cursor on another row."""
    before = cursor_row(glass)
    pressed_at = glass.press(key)
    return glass.wait(lambda: cursor_row(glass) not in (None, before)) - pressed_at


def percentile(values: list[float], share: float) -> float:
    """The value below which this share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rows() -> Iterator[Row]:
    """From the start of the program to a namespace of a million children."""
    with seeded(SERVER) as server:
        yield from _start(server)
        yield from _memory_and_bytes(server)
    with seeded(SERVER, SCANNED_KEYS) as server:
        yield _presses(server)
    with seeded(SERVER, KEYS, "flat") as server:
        yield from _wide(server)


def _start(server: Server) -> Iterator[Row]:
    paints, firsts = [], []
    for _ in range(RUNS):
        with browsing(server) as glass:
            painted_at = glass.wait(lambda glass=glass: glass.text().strip() != "")  # type: ignore[misc]
            paints.append(painted_at - glass.started_at)
            firsts.append(glass.wait(lambda glass=glass: "shop" in glass.text()) - painted_at)  # type: ignore[misc]
    paint, first = statistics.median(paints), statistics.median(firsts)
    yield Row("first paint after the command", f"{paint:.2f} s", "", "", f"≤ {PAINT_GOAL_S} s", paint <= PAINT_GOAL_S)
    what = "first rows after the first paint: imports, connecting and the first reply"
    yield Row(what, f"{first:.2f} s", "", "", f"≤ {ROWS_GOAL_S} s after connecting", first <= ROWS_GOAL_S or None)


def _memory_and_bytes(server: Server) -> Iterator[Row]:
    with browsing(server, "--pace", "full") as glass:
        glass.wait(lambda: is_complete(glass))
        glass.settle()
        memory = _resident_mb(glass.pid)
        what = f"memory of the whole process after a scan of {KEYS:,} keys of 28 bytes"
        goal = f"≤ {MEMORY_GOAL_MB} MB"
        yield Row(what, f"{memory:.0f} MB", "", "", goal, memory <= MEMORY_GOAL_MB)
        glass.press(RIGHT)
        glass.settle()
        while not re.search(r"\d{9}", _tree_line(glass, cursor_row(glass) or FIRST_ROW)):
            glass.press(DOWN)
            glass.settle()
            glass.press(RIGHT)
            glass.settle()
        moves = []
        for _ in range(MOVES):
            glass.press(DOWN)
            moves.append(glass.settle())
    size = statistics.median(moves)
    what = "bytes to the terminal for a cursor move between keys, with their details"
    yield Row(what, f"{size:,.0f}", "", "", f"median ≤ {MOVE_GOAL_BYTES:,}", size <= MOVE_GOAL_BYTES)


def _tree_line(glass: Glass, row: int) -> str:
    return glass.line(row)[:40]


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6


def _presses(server: Server) -> Row:
    random = Random(1)
    times: list[float] = []
    for _ in range(RUNS):
        with browsing(server, "--pace", "full") as glass:
            glass.wait(lambda glass=glass: "scan" in glass.line(glass.rows - 2))  # type: ignore[misc]
            key = DOWN
            while not is_complete(glass):
                times.append(press_s(glass, key) * 1000)
                key = UP if key == DOWN else DOWN
                glass.settle(PRESS_PAUSE_S * (1 + random.random()))
    p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
    what = f"key press → paint during a full-pace scan ({len(times)} presses), p50 / p99"
    goal = f"≤ {PRESS_GOAL_MS[0]} / {PRESS_GOAL_MS[1]} ms"
    return Row(what, f"{p50:.1f} / {p99:.1f} ms", "", "", goal, p50 <= PRESS_GOAL_MS[0] and p99 <= PRESS_GOAL_MS[1])


def _wide(server: Server) -> Iterator[Row]:
    opens, held = [], []
    for _ in range(RUNS):
        with browsing(server, "--pace", "full") as glass:
            glass.wait(lambda glass=glass: is_complete(glass))  # type: ignore[misc]
            glass.settle()
            pressed_at = glass.press(RIGHT)
            shown_at = glass.wait(lambda glass=glass: "0000000" in _tree_line(glass, FIRST_ROW + 1))  # type: ignore[misc]
            opens.append((shown_at - pressed_at) * 1000)
            held.append(max(press_s(glass, DOWN) * 1000 for _ in range(20)))
    shown, longest = statistics.median(opens), statistics.median(held)
    what = f"opening a namespace with {KEYS:,} direct children: first paint"
    yield Row(what, f"{shown:.0f} ms", "", "", f"≤ {OPEN_GOAL_MS} ms", shown <= OPEN_GOAL_MS)
    what = "the longest of 20 key presses right after it, press → paint"
    yield Row(what, f"{longest:.0f} ms", "", "", f"≤ {HELD_GOAL_MS} ms", longest <= HELD_GOAL_MS)
