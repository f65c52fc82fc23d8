"""The first screen: the tree where the server answers at once, else what is being connected to."""

from __future__ import annotations

import asyncio

from rtui.server.options import BrowseOptions
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect.screen import ConnectScreen
from tests.tui.browsing import until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import SIZE


class SlowSession(FixedSession):
    """Connects when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_connect = asyncio.Event()
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1
        await self.may_connect.wait()
        await super().start()


async def test_a_server_that_answers_at_once_shows_its_tree_first() -> None:
    app = RtuiApp(BrowseOptions(), FixedSession())
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        assert [type(screen) for screen in app.screen_stack] == [BrowseScreen]


async def test_a_slow_server_is_named_until_it_answers() -> None:
    session = SlowSession()
    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=SIZE) as pilot:
        assert isinstance(app.screen, ConnectScreen)
        session.may_connect.set()
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
    assert session.starts == 1


async def test_what_fails_at_once_is_told_and_tried_again() -> None:
    session = FixedSession()
    session.failure = ConnectFailure(FailureKind.REFUSED, "Nothing listens there.", "Check the port.")
    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=SIZE) as pilot:
        screen = app.screen
        assert isinstance(screen, ConnectScreen)
        await until(pilot, lambda: screen.card.has_class("-failed"))
        session.failure = None
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
