"""How the interface answers: keys while a scan runs, and a namespace with a million children.

`python -m tests.bench.run interface`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_ROUNDS (3)
and RTUI_BENCH_PRESSES (300).
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from rtui.keyspace.rows.rows import RowKind
from rtui.server.options import BrowseOptions, PaceName
from rtui.server.wire.target import Target
from tests.bench.paint import Stage, on_stage
from tests.bench.row import Row, time_row
from tests.bench.seed import KEYS, names, seeded
from tests.bench.window import COLUMNS, LINES
from tests.servers import Server

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is browsed."""

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
"""How often everything is done; medians count."""

PRESSES = int(os.environ.get("RTUI_BENCH_PRESSES", "300"))
"""How many keys are pressed while a scan runs, in each round."""

APART_S = (0.01, 0.05)
"""Pauses between presses are drawn from this range, so that they meet every moment of frames and slices."""

ROAM_ROWS = 60
"""The cursor goes up and down over so many rows; on half of them the tree scrolls."""

ENOUGH_KEYS = 20_000
"""So many keys show which namespace is the largest."""

TYPING_S = 0.05
"""From one letter to the next of a name that is typed."""

P50_S, P99_S = 0.010, 0.050
"""What a keypress may take until it is painted, half of the time and nearly always."""

OPEN_S = 0.1
"""What it may take until children are painted."""

HOLD_S = 0.05
"""For so long the event loop may be held."""


def rows() -> Iterator[Row]:
    """One row a figure."""
    with seeded(SERVER) as server:
        yield from pressing(server, "gentle")
        yield from pressing(server, "full")
    with seeded(SERVER, shape="flat") as server:
        yield from wide(server)


def options(server: Server, pace: PaceName) -> BrowseOptions:
    """Browse a server, as far as the interface is told."""
    return BrowseOptions(target=Target(port=server.port), pace=pace, resume=False)


# keys while a scan runs


def pressing(server: Server, pace: PaceName) -> Iterator[Row]:
    """From a keypress to its painting."""
    p50s, p99s = [], []
    for _ in range(ROUNDS):
        taken: list[float] = []
        on_stage(options(server, pace), lambda stage, taken=taken: press_around(stage, taken))  # type: ignore[misc]
        taken.sort()
        p50s.append(statistics.median(taken))
        p99s.append(taken[int(0.99 * len(taken))])
    default = " (default)" if pace == BrowseOptions().pace else ""
    what = f"keypress → painted while a scan runs at the pace {pace}{default}, {COLUMNS}×{LINES}"
    yield time_row(f"{what}, p50", p50s, P50_S)
    yield time_row(f"{what}, p99", p99s, P99_S)


def press_around(stage: Stage, taken: list[float]) -> None:
    """Move the cursor up and down while a scan runs; begin another scan when one has ended."""
    open_two(stage)
    down = True
    while len(taken) < PRESSES:
        if not stage.is_scanning:
            stage.call(stage.session.rescan)
            open_two(stage)
        line, last = stage.call(lambda: (stage.tree.cursor_line, stage.tree.virtual_size.height - 1))
        down = line == 0 or (down and line < min(ROAM_ROWS, last))
        seconds = stage.pressed_to_painted_s("down" if down else "up", time.perf_counter() + random.uniform(*APART_S))
        if seconds is not None and stage.is_scanning:
            taken.append(seconds)


def open_two(stage: Stage) -> None:
    """Open the largest namespace and the largest one in it, so that keys arrive among the rows."""
    stage.wait(partial(has_fresh_rows, stage))
    finish(stage, "S")
    stage.press("home")
    for line in (0, 1):
        stage.wait(partial(is_at, stage, line))
        stage.press("right")
        stage.wait(partial(has_row, stage, line + 1, depth=line + 1))
        stage.press("right")


def finish(stage: Stage, key: str) -> None:
    """Press a key and wait until all that it set going is done."""
    stage.press(key)
    time.sleep(TYPING_S)
    stage.wait(lambda: not stage.is_working)


def has_fresh_rows(stage: Stage) -> bool:
    """Whether there are rows, of the scan that is under way, and enough to know what is large."""
    cursor, store = stage.tree.cursor, stage.session.store
    return cursor is not None and cursor.namespace.root is store.root and store.keys >= ENOUGH_KEYS


def is_at(stage: Stage, line: int) -> bool:
    """Whether the cursor is on this row."""
    return stage.tree.cursor_line == line


def has_row(stage: Stage, line: int, depth: int) -> bool:
    """Whether this row is inside of so many namespaces."""
    rows = stage.tree.rows
    return rows is not None and len(rows) > line and rows.row(line).depth == depth


# a million children


def wide(server: Server) -> Iterator[Row]:
    """From opening a namespace to its first children on screen, and how long the loop is held by what is done there."""
    opened: list[float] = []
    held: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        on_stage(options(server, "full"), lambda stage: walk(stage, opened, held))
    yield time_row(f"opening a namespace with {KEYS:,} direct children, first paint of children", opened, OPEN_S)
    for what, seconds in held.items():
        yield time_row(f"longest hold of the event loop while {what}", seconds, HOLD_S)


def walk(stage: Stage, opened: list[float], held: dict[str, list[float]]) -> None:
    """Open the namespace, jump to a name, sort and go to the end."""
    stage.wait(lambda: stage.session.store.complete)
    with stage.longest_hold() as hold:
        opened.append(open_one(stage))
        stage.wait(lambda: not stage.is_working)
    held["it is opened"] += hold
    wanted = list(names(KEYS, "flat"))[-7][3].partition(b":")[2]
    with stage.longest_hold() as hold:
        jump(stage, wanted.decode())
    held["a name of it is jumped to, letter by letter"] += hold
    for name, key in (("by name", "greater_than_sign"), ("by count", "less_than_sign")):
        with stage.longest_hold() as hold:
            finish(stage, key)
        held[f"it is sorted {name}"] += hold
    with stage.longest_hold() as hold:
        scroll(stage)
    held["it is scrolled to the end"] += hold


def open_one(stage: Stage) -> float:
    """Open the only namespace; returns the seconds until a key in it was painted."""
    stage.press("home")
    stage.wait(lambda: stage.tree.cursor_line == 0)
    start = time.perf_counter()
    stage.press("right")
    stage.wait_painted(lambda painted: painted.below is not None and painted.below.kind is RowKind.KEY)
    return stage.app.painted.below_at - start


def jump(stage: Stage, name: str) -> None:
    """Type a whole name."""
    stage.press("right")
    stage.press("f")
    for letter in name:
        time.sleep(TYPING_S)
        stage.press(letter, letter)
    stage.wait(lambda: stage.tree.cursor is not None and stage.tree.cursor.name == name.encode())
    stage.press("escape")


def scroll(stage: Stage) -> None:
    """Go to the end at once, then up and down by pages."""
    last = stage.tree.virtual_size.height - 1
    stage.press("end")
    stage.wait(lambda: stage.tree.cursor_line == last)
    for key in ("pageup", "pagedown"):
        for _ in range(20):
            stage.pressed_to_painted_s(key, time.perf_counter())
    stage.press("home")
    stage.wait(lambda: stage.tree.cursor_line == 0)
