"""What can be clicked: the footer, tabs, titles of columns, the name of the server, the database, state and pace."""

from __future__ import annotations

import pytest
from textual.events import MouseScrollDown

from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.connect import DatabasesScreen, ServersScreen
from rtui.tui.find import FindScreen
from rtui.tui.goto import GotoScreen
from rtui.tui.help import HelpScreen
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


async def test_titles_of_columns_sort_a_page_of_a_value_and_turn_it_round() -> None:
    async with browsing() as user:
        await user.go(b"shop:user:7:profile")
        body = user.screen.detail_pane.body
        line = next(at for at, row in enumerate(body.rows) if row.column_ends)
        assert "field" in "".join(span.text for span in body.rows[line].line)
        for wanted in ("field ↑", "field ↓"):
            await user.pilot.click(body, offset=(3, line - body.scroll_offset.y))
            await user.until(lambda wanted=wanted: wanted in user.body)  # type: ignore[misc]


async def test_the_page_of_a_value_is_turned_beside_its_tabs() -> None:
    async with browsing(FixedSession(names=[b"jobs"])) as user:
        tabs = user.screen.detail_pane._tabs
        text = "".join(span.text for span in tabs.lines[1])
        assert "1–100 of 300" in text
        await user.pilot.click(tabs, offset=(text.index("n ›"), 1))
        await user.until(lambda: "101–200 of 300" in "".join(span.text for span in tabs.lines[1]))


@pytest.mark.parametrize("opens", [AnalyseScreen, FindScreen])
async def test_the_server_in_every_title_leads_to_others(opens: type) -> None:
    async with browsing() as user:
        await user.pilot.press("a" if opens is AnalyseScreen else "K")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, opens))
        bar = user.pilot.app.screen.query_one("#title", Bar)
        await until(user.pilot, lambda: bool(bar.lines))
        await click_on(user, bar, "10.0.0.5")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, ServersScreen))


async def test_the_line_about_a_row_of_a_small_terminal_leads_to_its_details() -> None:
    async with browsing(size=(80, 24)) as user:
        await click_on(user, user.screen.detail_pane.summary, "shop")
        await user.until(lambda: user.has_keyboard(user.screen.detail_pane.body))
