"""How the interface answers while an analysis runs: keys in a table that fills, of few patterns and of thousands.

`python -m tests.bench.run analysis_interface`. The environment may set RTUI_BENCH_SERVER (valkey-9.1),
RTUI_BENCH_ROUNDS (3) and RTUI_BENCH_PRESSES (300).
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from rtui.server.options import BrowseOptions, PaceName
from rtui.tui.analyse.screen import AnalyseScreen
from tests.bench.interface import APART_S, HOLD_S, P99_S, PRESSES, ROUNDS, SERVER, options
from tests.bench.mixed import seeded
from tests.bench.paint import Stage, on_stage
from tests.bench.row import Row, in_ms, time_row
from tests.bench.window import COLUMNS, LINES
from tests.grammar import grown
from tests.servers import Server

BIG: Final = "3"
"""The key of the panel with the longest table."""

ENOUGH_ROWS: Final = 60
"""The cursor goes up and down over so many rows; on half of them the table scrolls."""


LONGEST_S: Final = 60.0
"""A round ends after so long with the keys that were pressed: at full pace an analysis is over in seconds."""


PATTERNS: Final = 5_000
MANY_KEYS: Final = 400_000
SEED: Final = 7
"""A keyspace of the grammar with more patterns than a report shows."""


def rows() -> Iterator[Row]:
    """Three rows a pace, and three of thousands of patterns."""
    with seeded(SERVER) as server:
        for pace in ("gentle", "full"):
            yield from pressing(server, pace)
    with grown(SERVER, MANY_KEYS, SEED, patterns=PATTERNS) as server:
        yield from pressing(server, "full", f", {PATTERNS:,} patterns")


def pressing(server: Server, pace: PaceName, of: str = "") -> Iterator[Row]:
    """From a keypress to its painting, and for how long the event loop was held meanwhile."""
    p50s, p99s, holds = [], [], []
    for _ in range(ROUNDS):
        taken: list[float] = []
        held: list[float] = []
        on_stage(options(server, pace), partial(press_around, taken=taken, held=held))
        taken.sort()
        holds += held
        p50s.append(statistics.median(taken))
        p99s.append(taken[int(0.99 * len(taken))])
    default = " (default)" if pace == BrowseOptions().pace else ""
    what = f"keypress → painted while an analysis runs at the pace {pace}{default}{of}, {COLUMNS}×{LINES}"
    yield Row(f"{what}, p50", in_ms(statistics.median(p50s)))
    yield time_row(f"{what}, p99", p99s, P99_S)
    yield time_row(f"event loop held meanwhile at most{of}, pace {pace}", holds, HOLD_S)


def press_around(stage: Stage, taken: list[float], held: list[float]) -> None:
    """Move the cursor up and down in the table of big keys; begin another analysis when one has ended."""
    stage.press("a")
    stage.wait(lambda: isinstance(stage.app.screen, AnalyseScreen))
    screen = stage.app.screen
    assert isinstance(screen, AnalyseScreen)
    stage.press(BIG)
    begin(stage, screen)
    stage.call(lambda: stage.app.look_at_table(screen.view.table.body))
    down, until = True, time.perf_counter() + LONGEST_S
    with stage.longest_hold() as longest:
        while len(taken) < PRESSES and time.perf_counter() < until:
            if not screen.source.status.is_under_way:
                begin(stage, screen)
            line = stage.call(lambda: screen.view.table.body.cursor_line)
            down = line == 0 or (down and line < ENOUGH_ROWS)
            due = time.perf_counter() + random.uniform(*APART_S)
            seconds = stage.pressed_to_painted_s("down" if down else "up", due)
            if seconds is not None and screen.source.status.is_under_way:
                taken.append(seconds)
    held += longest


def begin(stage: Stage, screen: AnalyseScreen) -> None:
    """Have every key asked, and wait for a table of that to go around in; the pass may be over by then."""
    before = screen.source.revision
    stage.press("r")
    stage.wait(lambda: screen.source.revision != before and has_figures(screen))


def has_figures(screen: AnalyseScreen) -> bool:
    """Whether the figures of the analysis that began last are shown: before, there is no row to move to."""
    is_shown = screen.report is not None and screen.report is screen.source.report
    return is_shown and len(screen.view.table.rows) > ENOUGH_ROWS
