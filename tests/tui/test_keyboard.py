"""Who has the keyboard, and what becomes of keys at a bad moment; what can be clicked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import RenderableType
from textual import events
from textual.events import MouseScrollDown
from textual.keys import _character_to_key
from textual.screen import Screen

from rtui.analysis.report.document import Node, NodeKind
from rtui.keyspace.rows.listing import Sort
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.panel import ReportStates
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect import DatabasesScreen, ServersScreen
from rtui.tui.find import FindScreen
from rtui.tui.goto import GotoScreen
from rtui.tui.help import HelpScreen
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.choice import SwitchScreen
from rtui.tui.kit.command import Condition, Owner
from rtui.tui.kit.command_screen import CommandScreen, FocusScreen
from tests.made_report import estimate_report, made_report
from tests.snapshots.test_screens import SCANNING
from tests.tui.analyse.analysing import AnalyseUser, FixedAnalysis, analysing
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize("key", ["r", "e"])
async def test_the_table_keeps_the_focus_through_a_second_pass(key: str) -> None:
    async with analysing(FixedAnalysis(estimate_report())) as user:  # which another one replaces without a question
        await user.press(key)
        user.source.put(None)
        await user.until_shown("Reading the first keys")
        await user.until(lambda: not user.screen.view.table.display)
        user.source.put(made_report())
        await user.until_shown("shop:")
        await user.press("down", "down")
        body = user.screen.view.table.body
        await user.until(lambda: user.screen.focused is body and body.cursor_line == 2)
        await user.press("up")
        await user.until(lambda: body.cursor_line == 1)


async def test_keys_before_the_first_figures_count() -> None:
    async with analysing(FixedAnalysis()) as user:
        await user.press("r", "down", "down", "down", "up")
        assert user.source.asked == ["begin"]
        user.source.put(made_report())
        await user.until_shown("shop:")
        await user.until(lambda: user.screen.view.table.body.cursor_line == 2)


def type_at_once(user: BrowseUser, *keys: str) -> None:
    """Have keys arrive in one packet."""
    for key in keys:
        user.pilot.app.post_message(
            events.Key(_character_to_key(key) if len(key) == 1 else key, None if len(key) > 1 else key)
        )


@pytest.mark.usefixtures("patience")
async def test_what_is_typed_at_once_behind_a_key_that_opens_a_line_is_in_the_line() -> None:
    async with browsing() as user:
        app = user.screen.app
        type_at_once(user, ":", *"db3")
        await user.until(lambda: isinstance(app.screen, GotoScreen) and app.screen.line.value == "db3")
        await user.press("escape")
        type_at_once(user, "?", "/", *"memory")
        await user.until(lambda: isinstance(app.screen, HelpScreen) and app.screen.search_input.value == "memory")
        await user.until(lambda: app.focused is not None and app.focused.id == "help-search")


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have keys wait for as long as it takes."""
    monkeypatch.setattr("rtui.tui.kit.terminal.HELD_S", 1e9)
    monkeypatch.setattr("rtui.tui.kit.terminal.LONGEST_S", 1e9)


class SlowLookUps(FixedSession):
    """Says only then whether a key exists when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def lookup(self, name: bytes) -> bool | None:
        await self.may_answer.wait()
        return await super().lookup(name)


@pytest.mark.usefixtures("patience")
async def test_enter_behind_a_name_waits_for_its_row() -> None:
    session = SlowLookUps()
    async with browsing(session) as user:
        body = user.screen.detail_pane.body
        type_at_once(user, "/", *"plain", "enter", "enter")
        await user.until(lambda: not user.screen.filter_input.is_open)
        assert not user.has_keyboard(body)
        session.may_answer.set()
        await user.until(lambda: user.has_keyboard(body))
        assert user.name == b"plain"


@pytest.mark.usefixtures("patience")
async def test_escape_does_not_wait_for_a_name_that_is_looked_up() -> None:
    async with browsing(SlowLookUps()) as user:
        type_at_once(user, "/", *"plain", "enter", "enter", "escape", "question_mark")
        await user.until(lambda: isinstance(user.screen.app.screen, HelpScreen))


@pytest.mark.usefixtures("patience")
async def test_enter_behind_the_beginning_of_a_name_is_for_the_row_that_has_it() -> None:
    async with browsing() as user:
        type_at_once(user, "f", *"pl", "enter", "enter")
        await user.until(lambda: user.has_keyboard(user.screen.detail_pane.body))
        assert user.name == b"plain"


async def test_nothing_is_painted_when_nothing_changes_that_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FixedAnalysis(made_report())
    async with analysing(source) as user:
        app = user.screen.app
        await user.until(lambda: not user.screen._dirty_widgets and user.screen._seen == source.revision)
        browse = next(screen for screen in app.screen_stack if isinstance(screen, BrowseScreen))
        session = browse.session
        assert isinstance(session, FixedSession)
        painted: list[object] = []
        display = app._display

        def count(screen: Screen[Any], shown: RenderableType | None) -> None:
            painted.append(shown)
            display(screen, shown)

        monkeypatch.setattr(app, "_display", count)
        for _ in range(3):
            source.revision += 1
            session.store.add([b"another:%d" % session.revision])
            session.revision += 1
            user.screen.flush()
            browse.flush()
            await user.until(lambda: browse._shown[0] == session.revision and user.screen._seen == source.revision)
        assert [shown for shown in painted if shown is not None] == []


def screens() -> list[CommandScreen[None] | AnalyseScreen]:
    return [BrowseScreen(FixedSession()), AnalyseScreen(FixedAnalysis(made_report()), states=ReportStates())]


@pytest.mark.parametrize("at", [0, 1], ids=["browse", "analyse"])
async def test_no_command_reaches_a_screen_that_is_not_there_yet(at: int) -> None:
    async with browsing() as user:
        screen = screens()[at]
        for command in screen.SCREEN_COMMANDS:
            if command.owner is not Owner.APP:
                assert not await user.screen.app.run_action(command.action, screen)
                assert not await user.screen.app.run_action(command.id, screen)


async def test_no_command_reaches_a_screen_under_another() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        app = user.screen.app
        browse = next(screen for screen in app.screen_stack if isinstance(screen, BrowseScreen))
        session = browse.session
        assert isinstance(session, FixedSession)
        line = browse.tree_pane.key_tree.cursor_line
        for command in browse.SCREEN_COMMANDS:
            if command.owner is not Owner.APP:
                assert not await app.run_action(command.action, browse)
                assert not await app.run_action(command.id, browse)
                assert not await app.run_action(command.id, browse.tree_pane.key_tree)
        assert session.asked == []
        assert browse.tree_pane.key_tree.cursor_line == line
        assert app.screen is user.screen


async def test_a_screen_that_is_taken_down_is_left_once_and_no_command_reaches_it() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        app, screen = user.screen.app, user.screen
        before = len(app.screen_stack)
        screen.dismiss(None)
        screen.dismiss(None)
        for command in screen.SCREEN_COMMANDS:
            if command.owner is not Owner.APP:
                assert not await app.run_action(command.action, screen)
        await user.until(lambda: not screen.is_attached)
        assert len(app.screen_stack) == before - 1
        assert isinstance(app.screen, BrowseScreen)
        screen.flush()
        await screen.run_action("panel.next_list")


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(), ("question_mark",), ("c",), ("tab",), ("Y",)], ids=" ".join)
async def test_the_keyboard_comes_back_when_the_terminal_was_too_small_for_anything(keys: tuple[str, ...]) -> None:
    async with browsing() as user:
        app = user.screen.app
        await user.pilot.press(*keys)
        await user.until(lambda: app.focused is not None)
        for size in ((10, 1), (3, 3), (60, 12), (120, 36), (70, 20)):
            await user.pilot.resize_terminal(*size)
            await user.until(lambda size=size: app.screen.size == size)  # type: ignore[misc]
            await user.until(lambda: app.focused is not None)
            assert isinstance(app.screen, FocusScreen)
        await user.until(lambda: app.focused is not None and app.focused.display and bool(app.focused.region.area))


@pytest.mark.slow
@pytest.mark.sampled("key")
@pytest.mark.parametrize("key", ["ctrl+p", "t", "y", "c", "question_mark"])
async def test_nothing_breaks_in_the_smallest_of_terminals(key: str) -> None:
    async with browsing(notifications=True) as user:
        app = user.screen.app
        await user.pilot.press(key)
        for size in ((10, 1), (3, 3), (1, 1), (60, 12), (2, 40), (120, 36)):
            await user.pilot.resize_terminal(*size)
            await user.until(lambda size=size: app.screen.size == size)  # type: ignore[misc]
            await user.pilot.press("o", "down", "pagedown", "pageup", "up")
        await user.pilot.press("escape")
        await user.until(lambda: app.screen is user.screen)


async def test_the_terminal_may_lose_the_focus() -> None:
    async with browsing() as user:
        app = user.screen.app
        await user.press("tab")
        focused = app.focused
        app.app_focus = False
        assert app.focused is None
        app.app_focus = True
        await user.until(lambda: app.focused is focused)


async def test_a_terminal_that_was_resized_over_a_covered_screen_is_found_again() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        app = user.screen.app
        browse = next(screen for screen in app.screen_stack if isinstance(screen, BrowseScreen))
        await user.pilot.resize_terminal(70, 20)
        await user.until(lambda: app.screen.size == (70, 20))
        await user.pilot.press("a")
        await user.until(lambda: app.screen is browse)
        await user.until(lambda: browse.has_class("-narrow"))
        await user.until(lambda: browse.tree_pane.region.width == 70)


@pytest.mark.parametrize("key", ["ctrl+p", "t"])
async def test_a_second_click_beside_the_palette_leaves_what_is_under_it(key: str) -> None:
    async with browsing() as user:
        app = user.screen.app
        await user.pilot.press(key)
        await user.until(lambda: isinstance(app.screen, GotoScreen) and bool(app.screen.region))
        for _ in range(2):
            for kind in (events.MouseDown, events.MouseUp):
                app.post_message(kind(None, 0, 35, 0, 0, 1, False, False, False, 0, 35))
        await user.until(lambda: app.screen is user.screen)
        await user.settled()
        assert app.screen is user.screen


@pytest.mark.parametrize("key", ["question_mark", "c"])
async def test_what_lies_under_a_small_window_goes_on(key: str) -> None:
    async with browsing() as user:
        await user.pilot.press(key)
        app = user.screen.app
        await user.until(lambda: isinstance(app.screen, HelpScreen | SwitchScreen))
        assert user.screen in app._background_screens


def notices(user: AnalyseUser) -> list[str]:
    return [str(notice.message) for notice in user.screen.app._notifications]


@pytest.mark.slow
async def test_enter_shows_the_keys_that_a_row_is_about() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.until_shown("shop:")
        for keys, query in (
            (("enter", "enter"), "pattern:shop:session:<uuid>"),
            (("5", *["right_square_bracket"] * 3), "ttl:none"),
            (("right_square_bracket",), "expires:"),
            (("6",), "slot:"),
            (("right_square_bracket",), "tag:"),
            (("7",), "type:"),
            (("right_square_bracket",), "enc:"),
        ):
            await user.press(*keys)
            await user.until(lambda: any("Open" in span.text for span in user.screen.footer_bar.lines[0]))
            await user.press("enter")
            await user.until(lambda: isinstance(user.screen.app.screen, FindScreen))
            found = user.screen.app.screen
            assert isinstance(found, FindScreen)
            assert query in str(found.search.query)
            await user.press("escape")
            await user.until(lambda: user.screen.app.screen is user.screen)


async def test_a_key_in_a_table_of_namespaces_opens() -> None:
    report = made_report()
    step = Node(b"config", b"", NodeKind.LITERAL, report.summary.root.children[0].stats)
    root = replace(report.summary.root, children=(step, *report.summary.root.children))
    async with analysing(FixedAnalysis(replace(report, summary=replace(report.summary, root=root)))) as user:
        await user.until_shown("config")
        await user.until(lambda: Condition.ON_ENTRY in user.screen.conditions)
        user.screen.view.table.body.move_to(user.rows.index("config"))
        await user.until(lambda: Condition.ON_ENTRY in user.screen.conditions)
        await user.press("enter")
        await user.until(lambda: isinstance(user.screen.app.screen, BrowseScreen))


async def test_a_filter_of_a_list_of_the_largest_says_so() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.until_shown("shop:")
        await user.press("3", "slash", *"shop")
        await user.until_shown(f"rows with shop among the {len(user.screen.view.table.rows.table.rows)} largest")
        await user.press(*"zzz")
        await user.until_shown("No row among the")
        await user.press("escape", "2", "slash", *"shop")
        await user.until_shown("rows with shop")
        assert "among the" not in user.text


async def test_keys_that_are_typed_without_a_pause_choose_what_they_say() -> None:
    async with browsing() as user:
        for keys, sort in (("sj\r", Sort.NAME), ("sgjj\r", Sort.MEMORY), ("sGk\r", Sort.IDLE), ("sGg\r", Sort.COUNT)):
            for key in keys:
                name = "enter" if key == "\r" else _character_to_key(key)
                user.pilot.app.post_message(events.Key(name, None if key == "\r" else key))
            await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
            await user.until(lambda sort=sort: user.screen.tree_pane.names.rows.sort_order is sort)  # type: ignore[misc]


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
