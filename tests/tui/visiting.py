"""A user at the keyboard: the whole interface on a real server, driven by Pilot and waited for by what it shows."""

from __future__ import annotations

import asyncio
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from rich.segment import Segment
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget

from rtui.keyspace.rows.rows import Row, RowKind
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target, Timeouts
from rtui.tui.app import RtuiApp
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.screen import BrowseScreen
from tests.server.targets import impatient

W = TypeVar("W", bound=Widget)

PATIENCE_S: Final = 40.0
"""How long something may take to show; a test that waits so long fails."""

FIRST_LOOK_S: Final = 0.003
LONGEST_LOOK_S: Final = 0.015
"""How often the screen is looked at: at first, and when what is waited for takes longer."""

SIZE: Final = (160, 48)
"""Cells of the terminal, unless a test asks for others."""

HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of Unicode that may steer a terminal or a reader; nothing on a screen is of these."""


class Visitor:
    """Presses keys and waits for what must come of it; fails with what the screen shows instead."""

    def __init__(self, app: RtuiApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def browse(self) -> BrowseScreen:
        found = next((screen for screen in self.app.screen_stack if isinstance(screen, BrowseScreen)), None)
        assert found is not None, "not connected"
        return found

    @property
    def is_browsing(self) -> bool:
        """Whether the main screen is there and painted."""
        screen = self.app.screen
        return isinstance(screen, BrowseScreen) and any(tree.size.width for tree in screen.query(KeyTree))

    @property
    def session(self) -> BrowsingSession:
        """What the screen pulls from."""
        session = self.browse.session
        assert isinstance(session, BrowsingSession)
        return session

    @property
    def tree(self) -> KeyTree:
        return self.browse.query_one(KeyTree)

    @property
    def detail(self) -> Detail:
        """What is known of the thing under the cursor."""
        return self.browse.detail_pane.detail

    @property
    def row(self) -> Row:
        assert self.tree.cursor is not None
        return self.tree.cursor

    async def press(self, *keys: str) -> None:
        """Press keys one after the other and let each be taken up, without waiting for what comes of it."""
        for key in keys:
            self.app.post_message(events.Key(_character_to_key(key) if len(key) == 1 else key, _character(key)))
            await asyncio.sleep(0)

    async def paste(self, text: str) -> None:
        self.app.post_message(events.Paste(text))
        await asyncio.sleep(0)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                look_s = FIRST_LOOK_S
                while not holds():
                    if self.app._exception is not None:
                        raise self.app._exception
                    await asyncio.sleep(look_s)
                    look_s = min(1.25 * look_s, LONGEST_LOOK_S)
        except TimeoutError:
            pytest.fail(f"waited in vain: {what}; the screen shows\n{self.text()}")

    async def until_shown(self, *texts: str) -> None:
        """Wait until all of these stand on the screen."""

        def are_shown() -> bool:
            shown = self.text()
            return all(text in shown for text in texts)

        await self.until(are_shown, " and ".join(map(repr, texts)))

    async def connected(self) -> None:
        await self.until(lambda: self.is_browsing, "the main screen")

    async def whole(self) -> None:
        """Wait until the counts are totals, and shown."""
        await self.connected()
        await self.until(lambda: self.session.status.complete, "the end of the scan")
        await self.until(self._is_up_to_date, "rows")
        await self.until_shown("complete")

    def _is_up_to_date(self) -> bool:
        """Whether the rows are of what the store has now, not of an earlier scan."""
        store, cursor = self.session.store, self.tree.cursor
        return cursor.namespace.root is store.root if cursor is not None else not store.keys

    async def settled(self) -> None:
        """Wait until everything about the thing under the cursor is there and painted."""
        await self.until(self._is_settled, "the detail")
        await self.until(lambda: not self.app.screen._dirty_widgets, "a paint")

    def _is_settled(self) -> bool:
        detail, row = self.detail, self.tree.cursor
        if row is None or (detail.row != row and detail.key != row.key()):
            return False
        ready = detail.key is None or detail.failure is not None or detail.preview is not None
        return ready and not detail.is_fetching_page and self.browse.detail_pane.shown is detail

    def facts_missing(self) -> list[bytes]:
        """Keys in view of which nothing is known yet."""
        return self.browse.tree_pane._facts.due_again(self.tree.rows_in_view)

    async def down(self) -> bool:
        """Move to the next row and wait for its detail; False on the last row."""
        rows, before = self.tree.rows, self.tree.cursor
        if rows is None or self.tree.cursor_line + 1 >= len(rows):
            return False
        await self.press("down")
        await self.until(lambda: self.tree.cursor != before, "the next row")
        await self.settled()
        return True

    async def open(self) -> None:
        node, rows = self.row.namespace, self.tree.rows
        assert rows is not None
        await self.press("right")
        await self.until(lambda: rows.is_expanded(node), "an open namespace")

    async def filter(self, text: str) -> None:
        await self.press("slash")
        await self.until(lambda: self.app.focused is self.browse.filter_input, "the filter line")
        await self.paste(text)
        await self.until(lambda: self.browse.filter_input.value == text, "the typed text")
        await self.press("enter")
        await self.until(lambda: self.browse.focused is self.tree, "the tree")

    async def go(self, name: str) -> None:
        """Go to a key by typing its whole name into the filter."""
        await self.filter(name)
        key = name.encode()
        await self.until(lambda: self.is_at(key) and self._is_settled(), f"the key {name}")

    def _is_on_line(self, line: int) -> bool:
        return self.tree.cursor_line == line

    def is_at(self, key: bytes) -> bool:
        """Whether a key is under the cursor and in the details."""
        row = self.tree.cursor
        return row is not None and row.kind is RowKind.KEY and row.key() == key and self.detail.key == key

    async def go_to_namespace(self, name: bytes) -> None:
        """Go up from the last row to a namespace at the top."""
        assert self.tree.rows is not None
        await self.press("end")
        while not (self.row.kind is RowKind.NAMESPACE and self.row.depth == 0 and self.row.name == name):
            assert self.tree.cursor_line > 0, f"no namespace {name!r}"
            line = self.tree.cursor_line - 1
            await self.press("up")
            await self.until(partial(self._is_on_line, line), "the row above")
        await self.settled()

    def segments(self) -> Iterator[Segment]:
        """Everything that is painted, after the nets; control segments are codes of our own."""
        for strip in self._strips():
            yield from strip

    def text(self, widget: Widget | None = None) -> str:
        """What stands on the screen, or on a part of it."""
        lines = ["".join(segment.text for segment in strip if not segment.control) for strip in self._strips()]
        if widget is not None:
            region = widget.region
            lines = [line[region.x : region.right] for line in lines[region.y : region.bottom]]
        return "\n".join(line.rstrip() for line in lines)

    @property
    def pane(self) -> DetailPane:
        return self.browse.query_one(DetailPane)

    def _strips(self) -> list[Any]:
        with self.app._context():
            return list(self.app.screen._compositor.render_strips())

    def check_harmless(self) -> None:
        """Fail if anything on screen or in a screenshot could act on a terminal, on a reader or on a click."""
        self.check_painted()
        root = ET.fromstring(self.app.export_screenshot(simplify=True))  # noqa: S314 - our own
        for text in root.itertext():
            check_text(text.replace("\n", ""), self)

    def check_painted(self) -> None:
        """Fail if anything on screen could."""
        for segment in self.segments():
            if not segment.control:
                check_text(segment.text, self)
            meta = segment.style.meta if segment.style is not None else {}
            actions = [value for name, value in meta.items() if name == "@click"]
            assert not actions, f"a click would do {actions}"
            assert segment.style is None or segment.style.link is None, f"a link to {segment.style.link}"


def _character(key: str) -> str | None:
    """What a key types, None for one that only does something."""
    return key if len(key) == 1 else None


def check_text(text: str, visitor: Visitor | None = None) -> None:
    """Fail for text that could do something to a terminal or to a reader's eyes."""
    bad = [character for character in text if unicodedata.category(character) in HIDDEN]
    if bad:
        shown = "" if visitor is None else f"\n{visitor.text()!a}"
        pytest.fail(f"{bad!r} in {text!r}{shown}")


@contextmanager
def private_folders(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """Keep savepoints, profiles and themes of the user out of it, and the interface without pauses for eyes."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
            patch.setenv(variable, str(folder / variable.lower()))
        patch.delenv("NO_COLOR", raising=False)
        patch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
        patch.setattr("rtui.tui.browse.detail_fetcher.REST_S", 0.001)
        yield patch


@asynccontextmanager
async def visiting(
    target: Target, folder: Path, *, size: tuple[int, int] = SIZE, app: RtuiApp | None = None, **options: Any
) -> AsyncIterator[Visitor]:
    """The interface on a target, from its first paint on; what it raises is raised at the end."""
    with private_folders(folder):
        shown = app if app is not None else RtuiApp(BrowseOptions(target=target, **options))
        found = shown.options.target
        if found.way.timeouts == Timeouts():  # a busy machine may take long to answer
            shown.options = replace(shown.options, target=impatient(found, direct_s=PATIENCE_S))
        async with shown.run_test(size=size, notifications=True) as pilot:
            yield Visitor(shown, pilot)
