"""How the interface answers: keys while a scan, an analysis or a search runs, and a namespace with a million children.

`python -m tests.bench.run interface`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_ROUNDS (3),
RTUI_BENCH_PRESSES (300), and RTUI_BENCH_KEYS (1,000,000) and RTUI_BENCH_SEED of what is searched. A hold of the event
loop is the processor's time of one callback, which other work on the machine does not change; with
RTUI_BENCH_TRACED=1 the longest ones of searches are told with where they were.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from textual.keys import _character_to_key

from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import RowKind
from rtui.server.options import BrowseOptions, PaceName
from rtui.server.search.search import Stage as SearchStage
from rtui.server.wire.target import Target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.find import FindScreen
from rtui.tui.goto import GotoScreen
from tests.bench import Row, in_ms, time_row
from tests.bench.scan import KEYS, names, seeded
from tests.grammar import grown
from tests.holds import Holds
from tests.servers import Server
from tests.tui.stage import Stage, on_stage
from tests.window import COLUMNS, LINES

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


PACES: Final[tuple[PaceName, ...]] = ("gentle", "full")

BIG: Final = "3"
"""The key of the panel of an analysis with the longest table."""

LONGEST_S: Final = 60.0
"""A round ends after so long with the keys that were pressed: an analysis may be over in seconds."""

PATTERNS, MANY_KEYS, SEED_OF_MANY = 5_000, 400_000, 7
"""A keyspace of the grammar with more patterns than a report shows."""

NUMBER: Final = int(os.environ.get("RTUI_BENCH_KEYS", "1000000"))
SEED: Final = int(os.environ.get("RTUI_BENCH_SEED", "1652403918"))
IS_TRACED: Final = os.environ.get("RTUI_BENCH_TRACED") == "1"

SEARCH_P99_S, SEARCH_HOLD_S = 0.033, 0.010
"""What a keypress may take while keys are searched, and for how long a callback may hold the event loop then."""

HELD: Final = ("42 slot:0-16383", "size>1K", "idle>0 ttl:none", "size>100 type:hash")
"""Queries when the tree has the names of all keys: about names alone, and with facts that the server is asked."""

SCANNED: Final = ("42 slot:0-16383", "size>1K", "ttl>1h")
"""Queries before the tree has them."""


def rows() -> Iterator[Row]:
    """One row a figure."""
    with seeded(SERVER) as server:
        for pace in PACES:
            yield from while_scanning(server, pace)
    with seeded(SERVER, shape="flat") as server:
        yield from wide(server)
    with grown(SERVER, NUMBER, SEED) as server:
        for pace in PACES:
            yield from while_analysing(server, pace)
        for query in HELD:
            yield from searching(server, query, is_held=True)
        for query in SCANNED:
            yield from searching(server, query, is_held=False)
        yield from typing(server, ":", "order", "typing in the line that goes to anything by name")
        yield from typing(server, "/", "4242", "typing a part of a name in the filter of the tree")
    with grown(SERVER, MANY_KEYS, SEED_OF_MANY, patterns=PATTERNS) as server:
        yield from while_analysing(server, "full", f", {PATTERNS:,} patterns")


def options(server: Server, pace: PaceName) -> BrowseOptions:
    """Browse a server, as far as the interface is told."""
    return BrowseOptions(target=Target(port=server.port), pace=pace, resume=False)


class Taken:
    """What several rounds took."""

    def __init__(self) -> None:
        self.presses: list[float] = []
        self.holds: list[float] = []

    def rows(self, what: str, p99_s: float, hold_s: float, p50_s: float | None = None) -> Iterator[Row]:
        """Return the rows about keys, and about holds if there are any."""
        self.presses.sort()
        if self.presses:
            median, p99 = statistics.median(self.presses), self.presses[int(0.99 * len(self.presses))]
            pressed = f"{what}: keypress → painted"
            yield (
                Row(f"{pressed}, p50", in_ms(median)) if p50_s is None else time_row(f"{pressed}, p50", [median], p50_s)
            )
            yield time_row(f"{pressed}, p99", [p99], p99_s)
        if self.holds:
            yield time_row(f"{what}: event loop held at most", [max(self.holds)], hold_s)

    def move(self, stage: Stage, line: int, last: int, counts: Callable[[], bool] = lambda: True) -> None:
        """Press a key that moves the cursor, down or up over the first rows; `counts` if that is to be kept."""
        self._is_down = line == 0 or (self._is_down and line < min(ROAM_ROWS, last))
        due = time.perf_counter() + random.uniform(*APART_S)
        seconds = stage.pressed_to_painted_s("down" if self._is_down else "up", due)
        if seconds is not None and counts():
            self.presses.append(seconds)

    _is_down = True


def _at(pace: PaceName, of: str) -> str:
    default = " (default)" if pace == BrowseOptions().pace else ""
    return f"at the pace {pace}{default}{of}, {COLUMNS}×{LINES}"


# keys while a scan runs


def while_scanning(server: Server, pace: PaceName) -> Iterator[Row]:
    """From a keypress to its painting."""
    taken = Taken()
    for _ in range(ROUNDS):
        on_stage(options(server, pace), partial(move_in_tree, taken=taken, until=len(taken.presses) + PRESSES))
    yield from taken.rows(f"while a scan runs {_at(pace, '')}", P99_S, HOLD_S, P50_S)


def move_in_tree(stage: Stage, *, taken: Taken, until: int) -> None:
    """Move the cursor up and down while a scan runs; begin another scan when one has ended."""
    open_two(stage)
    while len(taken.presses) < until:
        if not stage.is_scanning:
            stage.call(stage.session.rescan)
            open_two(stage)
        line, last = stage.call(lambda: (stage.tree.cursor_line, stage.tree.virtual_size.height - 1))
        taken.move(stage, line, last, lambda: stage.is_scanning)


def open_two(stage: Stage) -> None:
    """Open the largest namespace and the largest one in it, so that keys arrive among the rows."""
    stage.wait(partial(has_fresh_rows, stage))
    sort(stage, Sort.COUNT)
    stage.press("home")
    for line in (0, 1):
        stage.wait(partial(is_at, stage, line))
        if not stage.call(partial(has_row, stage, line + 1, depth=line + 1)):  # else open since the scan before
            stage.press("right")
            stage.wait(partial(has_row, stage, line + 1, depth=line + 1))
        stage.call(partial(stage.tree.move_to, line + 1))


def sort(stage: Stage, by: Sort) -> None:
    """Sort the rows, and wait until that is done."""
    stage.call(lambda: stage.app.screen.query_one(TreePane).work.sort_by(by))
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
    for by in (Sort.NAME_BYTES, Sort.COUNT):
        with stage.longest_hold() as hold:
            sort(stage, by)
        held[f"it is sorted by {by.value}"] += hold
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


# keys while an analysis runs


def while_analysing(server: Server, pace: PaceName, of: str = "") -> Iterator[Row]:
    """From a keypress to its painting in a table that fills, and for how long the event loop was held meanwhile."""
    taken = Taken()
    for _ in range(ROUNDS):
        on_stage(options(server, pace), partial(move_in_table, taken=taken, most=len(taken.presses) + PRESSES))
    yield from taken.rows(f"while an analysis runs {_at(pace, of)}", P99_S, HOLD_S)


def move_in_table(stage: Stage, *, taken: Taken, most: int) -> None:
    """Move the cursor up and down in the table of big keys; begin another analysis when one has ended."""
    stage.press("a")
    stage.wait(lambda: isinstance(stage.app.screen, AnalyseScreen))
    screen = stage.app.screen
    assert isinstance(screen, AnalyseScreen)
    stage.press(BIG)
    begin(stage, screen)
    stage.call(lambda: stage.app.look_at_table(screen.view.table.body))
    until = time.perf_counter() + LONGEST_S
    with stage.longest_hold() as longest:
        while len(taken.presses) < most and time.perf_counter() < until:
            if not screen.source.status.is_under_way:
                begin(stage, screen)
            line = stage.call(lambda: screen.view.table.body.cursor_line)
            taken.move(stage, line, ROAM_ROWS, lambda: screen.source.status.is_under_way)
    taken.holds += longest


def begin(stage: Stage, screen: AnalyseScreen) -> None:
    """Have every key asked, and wait for a table of that to go around in; the pass may be over by then."""
    before = screen.source.revision
    stage.press("r")
    stage.wait(lambda: screen.source.revision != before and has_figures(screen))


def has_figures(screen: AnalyseScreen) -> bool:
    """Whether the figures of the analysis that began last are shown: before, there is no row to move to."""
    is_shown = screen.report is not None and screen.report is screen.source.report
    return is_shown and len(screen.view.table.rows) > ROAM_ROWS


# keys while keys are searched


def searching(server: Server, query: str, *, is_held: bool) -> Iterator[Row]:
    """Type a query, begin it, and move about in what it finds."""
    taken = Taken()
    for _ in range(ROUNDS):
        on_stage(options(server, "full"), partial(search, query=query, taken=taken, is_held=is_held))
    where = "in held names" if is_held else "by a scan"
    yield from taken.rows(f"`/{query}` over {NUMBER:,} keys, {where}", SEARCH_P99_S, SEARCH_HOLD_S)


def typing(server: Server, key: str, text: str, what: str) -> Iterator[Row]:
    """Type in a line that searches the names while one types."""
    taken = Taken()
    for _ in range(ROUNDS):
        on_stage(options(server, "full"), partial(type_in, key=key, text=text, taken=taken))
    yield from taken.rows(f"{what}, {NUMBER:,} keys", SEARCH_P99_S, SEARCH_HOLD_S)


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
    until = time.perf_counter() + LONGEST_S
    while screen.search.stage is not SearchStage.OVER and time.perf_counter() < until:
        line, last = stage.call(lambda: (body.cursor_line, len(body.rows) - 1))
        taken.move(stage, line, last)
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
