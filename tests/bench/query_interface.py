"""How the interface answers while keys are searched: letters of the query, then the cursor in the list that fills.

A hold of the event loop is the processor's time of one callback, which other work on the machine does not change.
`python -m tests.bench.run query_interface`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_ROUNDS
(3), RTUI_BENCH_KEYS (1,000,000) and RTUI_BENCH_SEED; with RTUI_BENCH_TRACED=1 the longest holds are told with where
they were.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from textual.keys import _character_to_key

from rtui.server.search.search import Stage as SearchStage
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find.screen import FindScreen
from rtui.tui.goto.screen import GotoScreen
from tests.bench.holds import Holds
from tests.bench.interface import APART_S, ROUNDS, SERVER, TYPING_S, options
from tests.bench.paint import Stage, on_stage
from tests.bench.row import Row, in_ms, time_row
from tests.grammar import grown
from tests.servers import Server

KEYS: Final = int(os.environ.get("RTUI_BENCH_KEYS", "1000000"))
SEED: Final = int(os.environ.get("RTUI_BENCH_SEED", "1652403918"))
IS_TRACED: Final = os.environ.get("RTUI_BENCH_TRACED") == "1"

LONGEST_S: Final = 60.0
"""A search is looked at for so long."""

ENOUGH_ROWS: Final = 60
"""The cursor goes up and down over so many rows; on half of them the list scrolls."""

P99_S: Final = 0.033
"""What a keypress may take until it is painted, nearly always."""

HOLD_S: Final = 0.010
"""For so long a callback may hold the event loop."""

HELD: Final = ("42 slot:0-16383", "size>1K", "idle>0 ttl:none", "size>100 type:hash")
"""Queries when the tree has the names of all keys: about names alone, and with facts that the server is asked."""

SCANNED: Final = ("42 slot:0-16383", "size>1K", "ttl>1h")
"""Queries before the tree has them."""


def rows() -> Iterator[Row]:
    """Three rows a query, two for the line that goes to anything by name, two for a filter."""
    with grown(SERVER, KEYS, SEED) as server:
        for query in HELD:
            yield from searching(server, query, is_held=True)
        for query in SCANNED:
            yield from searching(server, query, is_held=False)
        yield from typing(server, ":", "order", "typing in the line that goes to anything by name")
        yield from typing(server, "/", "4242", "typing a part of a name in the filter of the tree")


class Taken:
    """What several rounds took."""

    def __init__(self) -> None:
        self.presses: list[float] = []
        self.holds: list[float] = []

    def rows(self, what: str) -> Iterator[Row]:
        """Return the rows about keys and holds."""
        self.presses.sort()
        if self.presses:
            yield Row(f"{what}: keypress → painted, p50", in_ms(statistics.median(self.presses)))
            yield time_row(f"{what}: keypress → painted, p99", [self.presses[int(0.99 * len(self.presses))]], P99_S)
        yield time_row(f"{what}: event loop held at most, processor's time", [max(self.holds)], HOLD_S)


def searching(server: Server, query: str, *, is_held: bool) -> Iterator[Row]:
    """Type a query, begin it, and move about in what it finds."""
    taken = Taken()
    for _ in range(ROUNDS):
        on_stage(options(server, "full"), partial(search, query=query, taken=taken, is_held=is_held))
    where = "in held names" if is_held else "by a scan"
    yield from taken.rows(f"`/{query}` over {KEYS:,} keys, {where}")


def typing(server: Server, key: str, text: str, what: str) -> Iterator[Row]:
    """Type in a line that searches the names while one types."""
    taken = Taken()
    for _ in range(ROUNDS):
        on_stage(options(server, "full"), partial(type_in, key=key, text=text, taken=taken))
    yield from taken.rows(f"{what}, {KEYS:,} keys")


def search(stage: Stage, *, query: str, taken: Taken, is_held: bool) -> None:
    """One round of `searching`."""
    if is_held:
        stage.wait(lambda: stage.session.store.complete)
    holds = watched(stage)
    type_query(stage, query, taken)
    stage.press("enter")
    stage.wait(lambda: isinstance(stage.app.screen, FindScreen))
    screen = stage.app.screen
    assert isinstance(screen, FindScreen)
    stage.wait(lambda: screen.search.stage is not SearchStage.PREPARING)
    if screen.search.stage is SearchStage.ASKING:
        stage.press("enter")
    body = screen.view.body
    stage.call(lambda: stage.app.look_at_rows(body, lambda: body.record and body.record.key))
    down, until = True, time.perf_counter() + LONGEST_S
    while screen.search.stage is not SearchStage.OVER and time.perf_counter() < until:
        line, last = stage.call(lambda: (body.cursor_line, len(body.rows) - 1))
        down = line == 0 or (down and line < min(ENOUGH_ROWS, last))
        move(stage, "down" if down else "up", taken)
    told(stage, holds, taken, query)


def type_query(stage: Stage, text: str, taken: Taken) -> None:
    """Type into the line of the tree."""
    screen = stage.app.screen
    assert isinstance(screen, BrowseScreen)
    stage.press("slash", "/")
    stage.wait(lambda: screen.filter_input.is_open)
    stage.call(lambda: stage.app.look_at_line(screen.filter_input))
    type_letters(stage, text, taken)


def type_letters(stage: Stage, text: str, taken: Taken) -> None:
    """Type a letter after the other."""
    for letter in text:
        due = time.perf_counter() + TYPING_S + random.uniform(*APART_S)
        seconds = stage.pressed_to_painted_s(_character_to_key(letter), due, letter)
        if seconds is not None:
            taken.presses.append(seconds)


def move(stage: Stage, key: str, taken: Taken) -> None:
    """Press a key that moves the cursor."""
    seconds = stage.pressed_to_painted_s(key, time.perf_counter() + random.uniform(*APART_S))
    if seconds is not None:
        taken.presses.append(seconds)


def type_in(stage: Stage, *, key: str, text: str, taken: Taken) -> None:
    """One round of `typing`."""
    stage.wait(lambda: stage.session.store.complete)
    holds = watched(stage)
    if key == "/":
        type_query(stage, text, taken)
        pane = stage.tree.screen.query_one("#tree-pane")
        stage.wait(lambda: not pane.names.is_searching)  # type: ignore[attr-defined]
    else:
        stage.press("colon", ":")
        stage.wait(lambda: isinstance(stage.app.screen, GotoScreen))
        screen = stage.app.screen
        assert isinstance(screen, GotoScreen)
        stage.call(lambda: stage.app.look_at_line(screen.line))
        type_letters(stage, text, taken)
        stage.wait(lambda: screen._search is None)
    told(stage, holds, taken, f"{key}{text}")


def watched(stage: Stage) -> Holds:
    """Begin to measure the callbacks of the app's loop."""
    holds = Holds(IS_TRACED)
    stage.call(holds.begin)
    return holds


def told(stage: Stage, holds: Holds, taken: Taken, what: str) -> None:
    """Add the longest hold to what was taken."""
    stage.call(holds.end)
    taken.holds.append(holds.longest_s)
    if IS_TRACED:
        assert sys.__stderr__ is not None  # the application has replaced `sys.stderr`
        sys.__stderr__.write("\n".join([what, *(hold.text for hold in holds.longest()), ""]))
