"""The main screen on fixed values, and how to wait for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from rtui.keyspace.rows.rows import Row
from rtui.registry.registry import Registry
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.settings import SettingsFile
from tests.conftest import known
from tests.tui.fixed_session import FixedSession

MOST_LOOKS = 300
"""How often a condition is looked at before it counts as not coming."""


class BrowseUser:
    """A screen, its session, and a hand on the keyboard."""

    def __init__(self, pilot: Pilot[int], screen: BrowseScreen, session: FixedSession) -> None:
        self.pilot = pilot
        self.screen = screen
        self.session = session

    @property
    def cursor(self) -> Row:
        return known(self.screen.tree_pane.key_tree.cursor)

    @property
    def name(self) -> bytes:
        """The full name of what is under the cursor."""
        return self.cursor.key()

    @property
    def listed(self) -> list[bytes]:
        """The rows in view."""
        return [row.key() for row in self.screen.tree_pane.key_tree.rows_in_view]

    @property
    def footer(self) -> str:
        return "".join(span.text for line in self.screen.footer_bar.lines for span in line)

    @property
    def body(self) -> str:
        """What the body of the details says."""
        return "\n".join("".join(span.text for span in line) for line in self.screen.detail_pane.body.lines)

    def has_keyboard(self, widget: Widget) -> bool:
        """Whether the next key is for this widget, though it may not know it yet."""
        return self.screen.focused is widget

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settled()

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(self.pilot, holds)

    async def settled(self) -> None:
        """Wait until nothing more comes of what was pressed."""
        await self.until(lambda: is_settled(self.screen))

    async def go(self, key: bytes) -> None:
        """Open what a key lies in and go to it."""
        self.screen.tree_pane.reveal(key)
        await self.until(lambda: self.name == key and is_settled(self.screen))


async def until(pilot: Pilot[int], holds: Callable[[], bool]) -> None:
    """Wait for a condition and for what it shows to be painted."""
    for _ in range(MOST_LOOKS):
        await pilot.pause()
        if holds():
            return
    pytest.fail("it never came")


def is_settled(screen: BrowseScreen) -> bool:
    """Whether nothing more will come of what was pressed."""
    detail, tree = screen.detail_pane.detail, screen.tree_pane.key_tree
    is_complete = detail.key is None or detail.preview is not None or detail.failure is not None
    has_facts = not screen.tree_pane._facts.due_again(tree.rows_in_view)
    is_idle = not any(worker.is_running for worker in screen.app.workers)
    is_shown = detail.row == tree.cursor or (detail.row is None and detail.key is not None)
    if screen.tree_pane.is_schema:
        schema = screen.tree_pane.schema
        is_shown = not schema.is_reading and (detail.level and detail.level.level) is schema.cursor
    return is_shown and is_complete and has_facts and is_idle and screen.detail_pane.shown is detail


@asynccontextmanager
async def browsing(
    session: FixedSession | None = None,
    size: tuple[int, int] = (120, 36),
    *,
    notifications: bool = False,
    settings: SettingsFile | None = None,
    registry: Registry | None = None,
) -> AsyncIterator[BrowseUser]:
    """Open the main screen and wait until it rests."""
    session = FixedSession() if session is None else session
    app = RtuiApp(BrowseOptions(target=Target(host="10.0.0.5"), registry=registry), session, settings=settings)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        assert isinstance(app.screen, BrowseScreen)
        user = BrowseUser(pilot, app.screen, session)
        await user.settled()
        yield user
