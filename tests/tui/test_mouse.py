"""What can be clicked: the footer, tabs, titles of columns, the name of the server, the database, state and pace."""

from __future__ import annotations

import pytest
from textual.events import MouseScrollDown

from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.connect.places import DatabasesScreen, ServersScreen
from rtui.tui.goto.screen import GotoScreen
from rtui.tui.help.screen import HelpScreen
from rtui.tui.kit.bars import Bar
from tests.snapshots.test_screens import SCANNING
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import FixedSession


async def click_on(user: BrowseUser, bar: Bar, text: str) -> None:
    """Click on the middle of a text in a bar."""
    line = "".join(span.text for span in bar.lines[0])
    assert text in line, line
    await user.pilot.click(bar, offset=(line.index(text) + len(text) // 2, 0))
    await user.pilot.pause()


@pytest.mark.parametrize(("text", "screen"), [("10.0.0.5", ServersScreen), ("db0", DatabasesScreen)])
async def test_the_title_leads_to_other_servers_and_databases(text: str, screen: type) -> None:
    async with browsing() as user:
        await click_on(user, user.screen.title_bar, text)
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, screen))


async def test_what_only_tells_does_nothing() -> None:
    async with browsing() as user:
        await click_on(user, user.screen.title_bar, "READ-ONLY")
        await click_on(user, user.screen.status_bar, "complete")
        assert user.pilot.app.screen is user.screen
        assert user.session.asked == []


async def test_state_and_pace_of_a_scan() -> None:
    async with browsing(FixedSession(SCANNING)) as user:
        status = user.screen.status_bar
        pace = user.session.control.pace
        await click_on(user, status, "pace")
        assert user.session.control.pace is pace.faster()
        await click_on(user, status, "scan")
        await click_on(user, status, "paused")
        assert user.session.asked == [ScanState.PAUSED.value, ScanState.RUNNING.value]


async def test_the_footer() -> None:
    async with browsing() as user:
        await click_on(user, user.screen.footer_bar, "Help")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, HelpScreen))
        await user.pilot.press("escape")
        await click_on(user, user.screen.footer_bar, "Analyse")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, AnalyseScreen))


async def test_the_wheel_scrolls_the_list_of_what_can_be_gone_to() -> None:
    async with browsing() as user:
        await user.pilot.press("colon")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, GotoScreen))
        screen = user.pilot.app.screen
        assert isinstance(screen, GotoScreen)
        before = screen.list.scroll_offset.y
        await user.pilot._post_mouse_events([MouseScrollDown], screen.list, (5, 5))
        await until(user.pilot, lambda: screen.list.scroll_offset.y > before)
