"""The app in this process, on a terminal that is not there: when keys were painted, and what held the event loop.

Keys are posted from a thread at their due moments, as the driver posts what it reads, whether or not the loop is busy;
and everything is rendered down to the bytes for a terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from textual import events
from textual.driver import Driver
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from rtui.keyspace.rows.rows import Row
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.tui.app import RtuiApp
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.kit.line_view import RowsView
from rtui.tui.kit.table import TableBody
from tests.conftest import known
from tests.window import COLUMNS, LINES

BEAT_S = 0.001
"""How often the loop is asked whether it is free."""

WORK = "rows"
"""The group of the workers that open, sort and search."""

WAIT_S = 60.0
"""Nothing takes longer than this."""

LOOK_S = 0.005
"""How often it is looked whether something holds."""

STAYS_S = 1.0
"""A key that has moved nothing for so long does not move anything."""


class SinkDriver(Driver):
    """A terminal that shows nothing; the bytes for it are made all the same."""

    def write(self, data: str) -> None:
        data.encode()

    def start_application_mode(self) -> None:
        """Tell the size."""
        size = Size(COLUMNS, LINES)
        self.send_message(events.Resize(size, size))

    def disable_input(self) -> None:
        """There is none."""

    def stop_application_mode(self) -> None:
        """There is nothing to restore."""


@dataclass(slots=True)
class Painted:
    """What the last frames showed."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    cursor: object = None
    """What the cursor was on in the last frame in which its line was painted."""
    cursor_at: float = 0.0
    """When that frame was handed to the driver, on the clock of `time.perf_counter`."""
    below: Row | None = None
    """The row below it in the last frame in which that was painted."""
    below_at: float = 0.0
    """When that frame was handed to the driver."""


class WatchedApp(RtuiApp):
    """Notes when the line under the cursor has been painted and the frame with it has left for the driver."""

    CSS_PATH = RtuiApp.CSS_PATH

    def __init__(self, options: BrowseOptions, session: BrowsingSession) -> None:
        super().__init__(options, session)
        self.driver_class = self.extend_driver(SinkDriver)
        self.painted = Painted()
        self.beats: list[float] = []
        self._cursor: object = None
        self._below: Row | None = None

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Render, then say what is on screen now."""
        super()._display(screen, renderable)
        now, painted = time.perf_counter(), self.painted
        with painted.changed:
            if self._cursor is not None:
                painted.cursor, painted.cursor_at, self._cursor = self._cursor, now, None
            if self._below is not None:
                painted.below, painted.below_at, self._below = self._below, now, None
            painted.changed.notify_all()

    def look_at(self, tree: KeyTree) -> None:
        """Note each painting of the line under the cursor of this tree, and of the one below."""
        paint = tree.render_line

        def painting(y: int) -> Strip:
            number = y + tree.scroll_offset.y
            if number == tree.cursor_line:
                self._cursor = tree.cursor
            elif number == tree.cursor_line + 1 and tree.rows is not None and number < len(tree.rows):
                self._below = tree.rows.row(number)
            return paint(y)

        tree.render_line = painting  # type: ignore[method-assign]

    def look_at_table(self, body: TableBody) -> None:
        """Note each painting of the line under the cursor of this table."""
        self.look_at_rows(body, lambda: body.subject)

    def look_at_rows(self, body: RowsView, under_cursor: Callable[[], object]) -> None:
        """Note what is under the cursor of these rows each time that its line is painted."""
        paint = body.render_line

        def painting(y: int) -> Strip:
            if y + body.scroll_offset.y == body.cursor_line:
                self._cursor = under_cursor()
            return paint(y)

        body.render_line = painting  # type: ignore[method-assign]

    def look_at_line(self, line: Input) -> None:
        """Note what is typed in a line each time that it is painted."""
        paint = line.render_line

        def painting(y: int) -> Strip:
            self._cursor = line.value
            return paint(y)

        line.render_line = painting  # type: ignore[method-assign]

    async def beat(self) -> None:
        """Ask for the loop again and again; the moments at which it was had are kept."""
        while True:
            await asyncio.sleep(BEAT_S)
            self.beats.append(time.perf_counter())


class Stage:
    """A running app and the hands at its keyboard; all of it is for another thread than the app's."""

    def __init__(self, app: WatchedApp, session: BrowsingSession, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self.session = session
        self.loop = loop

    @property
    def tree(self) -> KeyTree:
        return self.app.screen.query_one(KeyTree)

    @property
    def has_rows(self) -> bool:
        """Whether there is a tree with something in it."""
        found = self.app.screen.query(KeyTree)
        return bool(found) and found.first().cursor is not None

    @property
    def is_working(self) -> bool:
        """Whether the rows are still being opened, sorted or searched."""
        return any(worker.group == WORK and worker.is_running for worker in self.app.workers)

    @property
    def is_scanning(self) -> bool:
        return not self.session.status.progress.state.is_over

    def press(self, key: str, character: str | None = None) -> None:
        """Post a key as the driver does."""
        known(self.app._driver).process_message(events.Key(key, character))

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds; it is looked at in the app's thread."""
        until = time.perf_counter() + WAIT_S
        while not self.call(holds):
            if time.perf_counter() > until:
                raise TimeoutError
            time.sleep(LOOK_S)

    def wait_painted(self, holds: Callable[[Painted], bool], timeout_s: float = WAIT_S) -> bool:
        """Wait until this holds of what is on screen; whether it came to that."""
        with self.app.painted.changed:
            return self.app.painted.changed.wait_for(lambda: holds(self.app.painted), timeout_s)

    def call(self, what: Callable[[], Any]) -> Any:
        async def doing() -> Any:
            with self.app._context():  # what the app's own tasks know, such as which application is theirs
                found = what()
                return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(doing(), self.loop).result(WAIT_S)

    def pressed_to_painted_s(self, key: str, due: float, character: str | None = None) -> float | None:
        """From the moment a key is due until the frame with the cursor on another row; None if it stays where it is."""
        before = self.app.painted.cursor
        time.sleep(max(0.0, due - time.perf_counter()))
        self.press(key, character)
        if self.wait_painted(lambda painted: painted.cursor_at > due and painted.cursor != before, STAYS_S):
            return self.app.painted.cursor_at - due
        return None

    @contextmanager
    def longest_hold(self) -> Iterator[list[float]]:
        """Measure for how long, in seconds, the loop was not to be had at most; the one value is there at the end."""
        found: list[float] = []
        beating: asyncio.Task[None] = self.call(lambda: asyncio.create_task(self.app.beat()))
        self.call(self.app.beats.clear)
        started = time.perf_counter()
        yield found
        self.call(lambda: None)
        moments = [started, *self.app.beats, time.perf_counter()]
        self.loop.call_soon_threadsafe(beating.cancel)
        found.append(max(after - before for before, after in pairwise(moments)) - BEAT_S)


def on_stage(options: BrowseOptions, act: Callable[[Stage], None]) -> None:
    """Run the app until `act`, in a thread of its own, is through; it begins once there are rows."""
    with TemporaryDirectory(prefix="rtui-state-") as folder:
        asyncio.run(_play(options, act, Path(folder)))


async def _play(options: BrowseOptions, act: Callable[[Stage], None], folder: Path) -> None:
    session = BrowsingSession(replace(options, resume=False), state_folder=folder)
    app = WatchedApp(options, session)
    stage = Stage(app, session, asyncio.get_running_loop())
    failures: list[BaseException] = []

    def acting() -> None:
        try:
            stage.wait(lambda: app._dom_ready and stage.has_rows)
            app.look_at(stage.tree)
            act(stage)
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the main thread
            failures.append(error)
        stage.call(app.action_quit)

    thread = threading.Thread(target=acting, name="keyboard")
    thread.start()
    with contextlib.suppress(asyncio.CancelledError):
        await app.run_async(size=(COLUMNS, LINES))
    await asyncio.to_thread(thread.join)
    if failures:
        raise failures[0]
