"""How the interface answers while an analysis runs: keys in a table that fills.

`python -m tests.bench.run analysis_interface`. The environment may set RTUI_BENCH_SERVER (valkey-9.1),
RTUI_BENCH_ROUNDS (3) and RTUI_BENCH_PRESSES (300).
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from typing import Final

from rtui.server.options import BrowseOptions, PaceName
from rtui.tui.analyse.screen import AnalyseScreen
from tests.bench.interface import APART_S, P99_S, PRESSES, ROUNDS, SERVER, options
from tests.bench.mixed import seeded
from tests.bench.paint import Stage, on_stage
from tests.bench.row import Row, in_ms, time_row
from tests.bench.window import COLUMNS, LINES
from tests.servers import Server

BIG: Final = "2"
"""The key of the panel with the longest table."""

ENOUGH_ROWS: Final = 60
"""The cursor goes up and down over so many rows; on half of them the table scrolls."""


LONGEST_S: Final = 60.0
"""A round ends after so long with the keys that were pressed: at full pace an analysis is over in seconds."""


def rows() -> Iterator[Row]:
    """Two rows a pace."""
    with seeded(SERVER) as server:
        for pace in ("gentle", "full"):
            yield from pressing(server, pace)


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
    what = f"keypress → painted while an analysis runs at the pace {pace}{default}, {COLUMNS}×{LINES}"
    yield Row(f"{what}, p50", in_ms(statistics.median(p50s)))
    yield time_row(f"{what}, p99", p99s, P99_S)


def press_around(stage: Stage, taken: list[float]) -> None:
    """Move the cursor up and down in the table of big keys; begin another analysis when one has ended."""
    stage.press("a")
    stage.wait(lambda: isinstance(stage.app.screen, AnalyseScreen))
    screen = stage.app.screen
    assert isinstance(screen, AnalyseScreen)
    stage.press(BIG)
    begin(stage, screen)
    stage.call(lambda: stage.app.look_at_table(screen.view.table.body))
    down, until = True, time.perf_counter() + LONGEST_S
    while len(taken) < PRESSES and time.perf_counter() < until:
        if not screen.source.status.is_under_way:
            begin(stage, screen)
        line = stage.call(lambda: screen.view.table.body.cursor_line)
        down = line == 0 or (down and line < ENOUGH_ROWS)
        seconds = stage.pressed_to_painted_s("down" if down else "up", time.perf_counter() + random.uniform(*APART_S))
        if seconds is not None and screen.source.status.is_under_way:
            taken.append(seconds)


def begin(stage: Stage, screen: AnalyseScreen) -> None:
    """Have every key asked, and wait for a table to go around in."""
    stage.press("r")
    stage.wait(lambda: screen.source.status.is_under_way and len(screen.view.table.rows) > ENOUGH_ROWS)
