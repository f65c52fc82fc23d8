"""The functions of rtui that one real key, field of INFO or finding passes from the socket to its painted line.

Counted is each function of Python, once, that takes or returns something that holds the mark; the compiled engine is
not seen. With a bound of 0 they are listed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

import rtui
from rtui.server.options import BrowseOptions
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.browsing import is_settled, until

ROOT = str(Path(rtui.__file__).parent)
pytestmark = pytest.mark.slow

MARK = "walk7q"
PAINTED = "SanitisingFilter.apply"
DEPTH, MOST = 3, 200
"""How deep values are looked into, and how many members of each."""

TRIES = 5


class Walk:
    """The functions that took or returned a value that holds `mark`, in the order in which they first did."""

    def __init__(self, mark: str, *, aside: tuple[str, ...] = ()) -> None:
        """Functions of modules whose path begins with one of `aside` are not on the way."""
        self._text, self._bytes, self._aside = mark, mark.encode(), aside
        self.functions: dict[str, None] = {}
        self.is_painted = False

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Look at every call of a function of rtui until the mark is painted, in all threads that begin meanwhile."""
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _look(self, frame: FrameType, event: str, value: object) -> None:
        code = frame.f_code
        if self.is_painted or event not in {"call", "return"} or not code.co_filename.startswith(ROOT):
            return
        place, name = code.co_filename[len(ROOT) + 1 :], code.co_qualname
        if name.endswith(">") or place.startswith(self._aside) or f"{name} ({place})" in self.functions:
            return
        taken = [frame.f_locals.get(one) for one in code.co_varnames[: code.co_argcount]]
        if any(self._holds(one, DEPTH) for one in ([value] if event == "return" else taken)):
            self.functions[f"{name} ({place})"] = None
            self.is_painted = name == PAINTED

    def _holds(self, value: Any, depth: int) -> bool:
        if isinstance(value, str):
            return self._text in value
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes in bytes(value)
        members: Iterable[Any] = ()
        if isinstance(value, tuple | list | set | frozenset):
            members = value
        elif isinstance(value, dict):
            members = chain(value, value.values())
        elif isinstance(value, msgspec.Struct):
            members = (getattr(value, one) for one in value.__struct_fields__)
        elif is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__slots__"):
            members = (getattr(value, one.name, None) for one in fields(value))
        return depth > 0 and any(self._holds(one, depth - 1) for one in islice(members, MOST))


@asynccontextmanager
async def shown(server: Server) -> AsyncIterator[Pilot[int]]:
    """The tree of a server, at rest."""
    app = RtuiApp(BrowseOptions(target_of(server)))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen) and is_settled(app.screen))
        yield pilot


def fill(server: Server) -> None:
    client = server.client()
    for number in range(50):
        client.set(f"{MARK}:{number}", "x" * 1000)
        client.set(f"apple:{number}", "x" * 2000)
    client.set("big", b"x" * 3_000_000)


async def analysed(pilot: Pilot[int], panel: str) -> None:
    """Analyse every key and show a panel."""
    await pilot.press("a")
    await until(pilot, lambda: isinstance(pilot.app.screen, AnalyseScreen))
    await pilot.press("r", panel)
    screen = pilot.app.screen
    assert isinstance(screen, AnalyseScreen)
    await until(pilot, lambda: screen.source.report is not None and screen.source.status.progress.state.is_over)


async def hold(most: int, way: Callable[[Walk], Awaitable[object]], mark: str, *, aside: tuple[str, ...] = ()) -> None:
    """Fail where no way of five tries has at most `most` functions: a repaint that comes in between adds others."""
    for _ in range(TRIES):
        walk = Walk(mark, aside=aside)
        await way(walk)
        assert walk.is_painted
        if len(walk.functions) <= most:
            return
    assert len(walk.functions) <= most, "\n".join(walk.functions)


async def test_a_key_to_its_row(valkey: Server) -> None:
    valkey.client().mset({"apple": 1, MARK: 2})

    async def way(walk: Walk) -> None:
        with walk.followed():
            async with shown(valkey):
                pass

    await hold(53, way, MARK)


async def test_a_key_to_the_memory_panel(valkey: Server) -> None:
    fill(valkey)

    async def way(walk: Walk) -> None:
        async with shown(valkey) as pilot:
            with walk.followed():
                await analysed(pilot, "2")
                await until(pilot, lambda: walk.is_painted)

    await hold(95, way, MARK, aside=("tui/browse/", "keyspace/rows/", "keyspace/store/"))


async def test_a_field_of_info_to_the_server_screen(valkey: Server) -> None:
    valkey.admin.config_set("maxmemory-policy", "volatile-ttl")

    async def way(walk: Walk) -> None:
        async with shown(valkey) as pilot:
            with walk.followed():
                await pilot.press("!", "2")
                await until(pilot, lambda: walk.is_painted)

    await hold(100, way, "volatile-ttl", aside=("tui/browse/",))


async def test_a_rule_to_the_findings_panel(valkey: Server) -> None:
    fill(valkey)

    async def way(walk: Walk) -> None:
        async with shown(valkey) as pilot:
            with walk.followed():
                await analysed(pilot, "1")
                await until(pilot, lambda: walk.is_painted)

    await hold(57, way, "key-big")
