"""A user who presses anything: random keys, clicks, sizes, data and faults, in an order that a seed gives again.

`RTUI_MONKEY_SEED=7` has one seed walked again, `RTUI_MONKEY_STEPS=5000` sets how long each walk is,
`RTUI_MONKEY_SEEDS=200` how many there are:

    RTUI_MONKEY_SEEDS=50 RTUI_MONKEY_STEPS=2000 pytest tests/tui/test_monkey.py

On a server keys change all the time meanwhile (`Churn`), every command is judged on its way (`tests.proxy`), and
how long the event loop was held is measured (`tests.holds`): `RTUI_MONKEY_REPORT=FILE` has a line for each walk
written there, and `RTUI_MONKEY_HOLD_MS=100` has a walk fail in which the loop's thread worked longer without a break.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import string
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from types import TracebackType
from typing import Final, Self, TypeAlias

import redis
from textual import events
from textual.app import App
from textual.geometry import Size
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from rtui.keyspace.rows.rows import VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.command_screen import FocusScreen, is_ready
from rtui.tui.navigation import all_commands
from tests.servers import Server

STEPS: Final = int(os.environ.get("RTUI_MONKEY_STEPS", "150"))
"""How many things are done in a walk."""

QUIT_KEYS: Final = frozenset(key for command in all_commands() if command.id == "quit" for key in command.keys)
"""Pressed at the end only."""

BOUND_KEYS: Final = sorted({key for command in all_commands() for key in command.keys} - QUIT_KEYS)
"""Every key that does something anywhere."""

OTHER_KEYS: Final = (
    *string.ascii_letters, *string.digits, *"*?[]\\:{}'\"%-_=+,.;<>|~`!@#$^&()é日\u0301", "ctrl+a", "ctrl+d", "ctrl+k",
    "ctrl+u", "ctrl+w", "delete", "insert", "f2", "f12", "shift+up", "shift+down", "shift+left", "ctrl+right",
)  # fmt: skip
"""Keys that mean something in a line of text or nothing at all."""

SIZES: Final = ((10, 3), (1, 1), (24, 6), (40, 12), (80, 24), (99, 30), (100, 30), (120, 36), (200, 50), (300, 100))

NAMES: Final = (b"shop", b"user", b"cart", b"\x1b[31m", b"[/]", b"", b"42", b"7", b"deadbeef", b"x" * 300, b"{tag}")

PLACES: Final = (
    *(
        "clients", "memory", "big", "hot", "expiry", "slots", "types", "command log", "tree", "db 1", "db 0", "log",
        "many",
    ),
    *("theme dark", "key shop", "ns many", "cmd sort", "help", "\x1b[31m", "columns", "watch"),
)  # fmt: skip
"""What is typed behind a colon."""

QUERIES: Final = (
    *("ttl:none", "in:many size>1", "type:hash,string len>0", "in:shop ttl<10m", "!type:string", "slot:0-8000", "user"),
    *(
        "many:1:*", "re:^shop", "idle<1h", "freq>1", "enc:listpack", "tag:tag", "size>1Q", "pattern:many:<id>:<id>",
        "][",
    ),
)  # fmt: skip
"""What is typed behind a slash."""

CHURN_S: Final = 0.02
"""Between changes of a live keyspace."""

Deed: TypeAlias = Callable[[], Awaitable[None]]


class MonkeyError(AssertionError):
    """Something that must always hold does not."""


class Monkey:
    """Does things to an application, and to the server behind it where there is one."""

    def __init__(self, pilot: Pilot[int], seed: int, server: Server | None = None) -> None:
        self.pilot = pilot
        self.app: App[int] = pilot.app
        self.seed = seed
        self.random = random.Random(seed)
        self.server = server
        self.log: deque[str] = deque(maxlen=60)
        self._thaw: asyncio.TimerHandle | None = None
        self._has_quit = False
        self._leave = self.app.action_quit
        setattr(self.app, "action_quit", self._take_leave)  # noqa: B010 - a method of an instance
        self._deeds: dict[Deed, int] = {
            self.press_bound: 50, self.press_other: 8, self.press_many: 8, self.scroll: 10, self.click: 10,
            self.resize: 5, self.wait: 12, self.go: 3, self.query: 3,
        }  # fmt: skip
        if server is not None:
            self._deeds |= {self.write: 8, self.flush: 1, self.kill: 2, self.hold: 1, self.freeze: 1}

    async def walk(self, steps: int = STEPS) -> None:
        """Do so many things, then quit; MonkeyError, with the seed and the last deeds, when something is wrong."""
        deeds, weights = list(self._deeds), list(self._deeds.values())
        try:
            for _ in range(steps):
                (deed,) = self.random.choices(deeds, weights)
                await deed()
                if self._has_quit:
                    return
                self.check_alive()
                if self.random.random() < 0.1:
                    await self.settle()
            await self.settle()
            if not self._has_quit:
                await self.quit()
        except MonkeyError as wrong:
            raise MonkeyError(f"{wrong}\nseed {self.seed}, the last deeds: {' | '.join(self.log)}") from None
        finally:
            self._go_on()

    async def _take_leave(self) -> None:
        """Quit as the application does, by a click on its footer or from the palette, too: the walk ends then."""
        self._has_quit = True
        await self._leave()

    # what it does

    async def press(self, key: str) -> None:
        character = key if len(key) == 1 else None
        self.app.post_message(events.Key(_character_to_key(key) if character else key, character))
        await asyncio.sleep(0)

    async def press_bound(self) -> None:
        """Press a key that means something somewhere."""
        key = self.random.choice(BOUND_KEYS)
        self.note(key)
        await self.press(key)

    async def press_other(self) -> None:
        """Press any other key, but none that quits unless it is typed into a line."""
        key = self.random.choice(OTHER_KEYS)
        if key not in QUIT_KEYS or isinstance(self.app.focused, Input):
            self.note(key)
            await self.press(key)

    async def press_many(self) -> None:
        """Press several keys that come in one packet."""
        keys = self.random.choices(BOUND_KEYS, k=self.random.randrange(2, 12))
        self.note("+".join(keys))
        for key in keys:
            character = key if len(key) == 1 else None
            self.app.post_message(events.Key(_character_to_key(key) if character else key, character))
        await asyncio.sleep(0)

    async def go(self) -> None:
        await self._type("colon", self.random.choice(PLACES))

    async def query(self) -> None:
        """Look for keys, if there is a tree; elsewhere it is a filter."""
        await self._type("slash", self.random.choice(QUERIES))

    async def _type(self, key: str, text: str) -> None:
        """Press a key that opens a line, paste a text and press Enter, each when the one before is dealt with."""
        self.note(f"{key} {text!r} enter")
        await self.press(key)
        await self.pilot.pause()
        if isinstance(self.app.focused, Input):
            self.app.post_message(events.Paste(text))
            await self.pilot.pause()
            await self.press("enter")

    async def scroll(self) -> None:
        kind = self.random.choice((events.MouseScrollDown, events.MouseScrollUp))
        x, y = self._somewhere()
        self.note(f"{kind.__name__} {x},{y}")
        for _ in range(self.random.randrange(1, 6)):
            self.app.post_message(kind(None, x, y, 0, 0, 0, False, False, False, x, y))
        await asyncio.sleep(0)

    async def click(self) -> None:
        """Click somewhere, sometimes twice."""
        x, y = self._somewhere()
        times = self.random.choice((1, 1, 2))
        self.note(f"click {x},{y} ×{times}")
        self.app.post_message(events.MouseMove(None, x, y, 0, 0, 0, False, False, False, x, y))
        for _ in range(times):
            self.app.post_message(events.MouseDown(None, x, y, 0, 0, 1, False, False, False, x, y))
            self.app.post_message(events.MouseUp(None, x, y, 0, 0, 1, False, False, False, x, y))
        await asyncio.sleep(0)

    async def resize(self) -> None:
        """Give the terminal another size, not waiting for what comes of it."""
        size = Size(*self.random.choice(SIZES))
        self.note(f"size {size.width}x{size.height}")
        driver = self.app._driver
        if driver is not None:
            driver._size = size
        self.app.post_message(events.Resize(size, size))
        await asyncio.sleep(0)

    async def wait(self) -> None:
        await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01, 0.05, 0.12)))

    async def write(self) -> None:
        keys = [b":".join(self.random.choices(NAMES, k=self.random.randrange(1, 5))) for _ in range(8)]
        many = {b"many:%d:%d" % (self.random.randrange(4), self.random.randrange(9_999)): b"x" for _ in range(50)}
        self.note("write")

        def change(client: redis.Redis) -> None:
            pipeline = client.pipeline(transaction=False)
            pipeline.delete(*keys)
            pipeline.set(keys[0], b"text")
            pipeline.hset(keys[1], mapping={b"a": b"1", b"b": b"2"})
            pipeline.rpush(keys[2], *many)
            pipeline.zadd(keys[3], {b"m": 1.5})
            pipeline.xadd(keys[4], {b"f": b"v"})
            pipeline.set(keys[5], b"soon gone", px=self.random.randrange(20, 3_000))
            pipeline.mset(many)
            pipeline.delete(*self.random.sample(sorted(many), 10))
            pipeline.execute(raise_on_error=False)

        await self._do(change)

    async def flush(self) -> None:
        self.note("flush")
        await self._do(lambda client: client.flushall())

    async def kill(self) -> None:
        """Cut all connections."""
        self.note("kill")
        await self._do(lambda client: client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))

    async def hold(self) -> None:
        """Have the server answer nobody for a moment."""
        self.note("hold")
        await self._do(lambda client: client.execute_command("CLIENT", "PAUSE", "200", "ALL"))

    async def freeze(self) -> None:
        """Stop the process of the server for a moment."""
        if self.server is not None and self._thaw is None:
            self.note("freeze")
            self.server.freeze()
            self._thaw = asyncio.get_running_loop().call_later(0.3, self._go_on)

    async def quit(self) -> None:
        """Leave, agreeing to whatever is asked before."""
        for key in ("ctrl+q", "y", "enter", "ctrl+q", "ctrl+q"):
            await self.press(key)
            for _ in range(400):
                await asyncio.sleep(0.01)
                if not self.app.is_running or self.app._exit:
                    return
                if key != "ctrl+q":
                    break
        raise MonkeyError("it can't be quit")

    # what must hold

    def check_alive(self) -> None:
        """Fail if the application has ended or has nothing to show."""
        error = self.app._exception
        if error is not None:
            raise MonkeyError(f"{type(error).__name__}: {error}") from error
        if self.app._exit or not self.app.is_running:
            raise MonkeyError("it has left without being asked to")
        if not self.app.screen_stack:
            raise MonkeyError("there is no screen")

    async def settle(self) -> None:
        """Wait until what was done is dealt with, and look at all that must hold then."""
        self._go_on()
        await asyncio.wait_for(self.pilot.pause(), 30)
        if self._has_quit:
            return
        self.check_alive()
        try:
            async with asyncio.timeout(30):
                while not self._has_keyboard():  # a screen that has just come gets it with its next messages
                    await self.pilot.pause()
        except TimeoutError:
            screen = self.app.screen
            raise MonkeyError(f"the keyboard is nobody's on {screen}: {screen.focused}") from None
        for browse in self.app.screen_stack:
            if isinstance(browse, BrowseScreen):
                check_counts(browse.session.store)
                rows = browse.tree_pane.key_tree.rows
                if rows is not None:
                    check_rows(rows)

    def _has_keyboard(self) -> bool:
        """Whether a widget of the screen has the focus, or the screen needs none."""
        screen = self.app.screen
        if not isinstance(screen, FocusScreen) or not is_ready(screen):
            return True
        focused = screen.focused
        if focused is None:
            return screen.focus_home is None  # while connecting, keys are the screen's alone
        return focused.is_attached and focused.screen is screen

    def note(self, deed: str) -> None:
        self.log.append(deed)

    def _somewhere(self) -> tuple[int, int]:
        width, height = self.app.size
        return self.random.randrange(max(1, width)), self.random.randrange(max(1, height))

    async def _do(self, deed: Callable[[redis.Redis], object]) -> None:
        """Have another client of the server do something, unless the server is stopped."""
        if self.server is not None and self._thaw is None:
            client = self.server.admin
            with contextlib.suppress(redis.RedisError):
                await asyncio.to_thread(deed, client)

    def _go_on(self) -> None:
        if self._thaw is not None and self.server is not None:
            self._thaw.cancel()
            self._thaw = None
            self.server.thaw()


class Churn:
    """Another client that changes keys all the time, in a thread, while the block runs."""

    def __init__(self, server: Server, seed: int) -> None:
        self._client = server.client()
        self._random = random.Random(seed)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._change, name="churn", daemon=True)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join(30)

    def _change(self) -> None:
        number = self._random.randrange
        while not self._ends.wait(CHURN_S):
            names = [b"live:%d:%d" % (number(20), number(2_000)) for _ in range(40)]
            pipeline = self._client.pipeline(transaction=False)
            pipeline.mset(dict.fromkeys(names[:10], b"x" * number(500)))
            pipeline.set(names[10], b"soon gone", px=number(20, 2_000))
            pipeline.hset(names[11], mapping={name: name for name in names})
            pipeline.rpush(names[12], *names)
            pipeline.zadd(names[13], {name: at for at, name in enumerate(names)})
            pipeline.xadd(names[14], {b"field": names[0]})
            pipeline.expire(names[15], number(1, 100_000))
            pipeline.rename(names[0], names[16])
            pipeline.delete(*names[20:])
            with contextlib.suppress(redis.RedisError):
                pipeline.execute(raise_on_error=False)
                self.rounds += 1


def check_counts(store: NamespaceStore) -> None:
    """Fail unless the children of each namespace that is divided add up to it."""
    waiting = [store.root]
    while waiting:
        node = waiting.pop()
        if node.children is None or not node.opened:
            continue
        below = sum(node.count_at(ordinal) for ordinal in range(len(node.labels)))
        named = node.key_total + node.unlisted
        if node.count != below + named:
            raise MonkeyError(f"{node.path()!r} counts {node.count}, in it are {below} and {named}")
        waiting += [child for child in node.children.values() if isinstance(child, Namespace)]


def check_rows(rows: VisibleRows) -> None:
    """Fail unless each of the first rows is found where it is listed."""
    for index, row in enumerate(islice(rows.window(0, 60), len(rows))):
        if rows.index_of(row) != index:
            raise MonkeyError(f"row {index}, {row.key()!r}, is found at {rows.index_of(row)}")
