"""Who has the keyboard, and what becomes of keys that come at a bad moment: a screen that comes, goes or is covered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import RenderableType
from textual import events
from textual.command import CommandPalette
from textual.screen import Screen

from rtui.analysis.report.document import Node, NodeKind
from rtui.tui.analyse.panel import PanelStates
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.columns import ColumnsScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.help.screen import HelpScreen
from rtui.tui.kit.command import Condition, Owner
from rtui.tui.kit.command_screen import CommandScreen, FocusScreen
from tests.made_report import estimate_report, made_report
from tests.tui.analyse.analysing import Analyst, analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis
from tests.tui.browsing import browsing
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize("key", ["r", "e"])
async def test_the_table_keeps_the_focus_through_a_second_pass(key: str) -> None:
    async with analysing(FixedAnalysis(estimate_report())) as desk:  # which another one replaces without a question
        await desk.press(key)
        desk.source.put(None)
        await desk.until_shown("Asking the first keys")
        await desk.until(lambda: not desk.screen.table.display)
        desk.source.put(made_report())
        await desk.until_shown("shop:")
        await desk.press("down", "down")
        body = desk.screen.table.body
        await desk.until(lambda: body.has_focus and body.cursor_line == 2)
        await desk.press("up")
        await desk.until(lambda: body.cursor_line == 1)


async def test_keys_before_the_first_figures_count() -> None:
    async with analysing(FixedAnalysis()) as desk:
        await desk.press("r", "down", "down", "down", "up")
        assert desk.source.asked == ["begin"]
        desk.source.put(made_report())
        await desk.until_shown("shop:")
        await desk.until(lambda: desk.screen.table.body.cursor_line == 2)


async def test_nothing_is_painted_when_nothing_changes_that_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FixedAnalysis(made_report())
    async with analysing(source) as desk:
        app = desk.screen.app
        await desk.until(lambda: not desk.screen._dirty_widgets and desk.screen._seen == source.revision)
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
            desk.screen.flush()
            browse.flush()
            await desk.until(lambda: browse._shown[0] == session.revision and desk.screen._seen == source.revision)
        assert [shown for shown in painted if shown is not None] == []


def screens() -> list[CommandScreen[None] | AnalyseScreen]:
    return [BrowseScreen(FixedSession()), AnalyseScreen(FixedAnalysis(made_report()), states=PanelStates())]


@pytest.mark.parametrize("at", [0, 1], ids=["browse", "analyse"])
async def test_no_command_reaches_a_screen_that_is_not_there_yet(at: int) -> None:
    async with browsing() as desk:
        screen = screens()[at]
        for command in screen.SCREEN_COMMANDS:
            if command.owner is not Owner.APP:
                assert not await desk.screen.app.run_action(command.action, screen)
                assert not await desk.screen.app.run_action(command.id, screen)


async def test_no_command_reaches_a_screen_under_another() -> None:
    async with analysing(FixedAnalysis(made_report())) as desk:
        app = desk.screen.app
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
        assert app.screen is desk.screen


async def test_no_command_reaches_a_screen_that_is_taken_down() -> None:
    async with analysing(FixedAnalysis(made_report())) as desk:
        app, screen = desk.screen.app, desk.screen
        screen.dismiss(None)
        for command in screen.SCREEN_COMMANDS:
            if command.owner is not Owner.APP:
                assert not await app.run_action(command.action, screen)
        await desk.until(lambda: not screen.is_attached)
        screen.flush()
        await screen.run_action("panel.next_list")


async def test_a_screen_is_left_once() -> None:
    async with analysing(FixedAnalysis(made_report())) as desk:
        app = desk.screen.app
        before = len(app.screen_stack)
        desk.screen.dismiss(None)
        desk.screen.dismiss(None)
        await desk.until(lambda: len(app.screen_stack) == before - 1)
        assert isinstance(app.screen, BrowseScreen)


@pytest.mark.parametrize("keys", [(), ("question_mark",), ("c",), ("tab",), ("Y",)], ids=" ".join)
async def test_the_keyboard_comes_back_when_the_terminal_was_too_small_for_anything(keys: tuple[str, ...]) -> None:
    async with browsing() as desk:
        app = desk.screen.app
        await desk.pilot.press(*keys)
        await desk.until(lambda: app.focused is not None)
        for size in ((10, 1), (3, 3), (60, 12), (120, 36), (70, 20)):
            await desk.pilot.resize_terminal(*size)
            await desk.until(lambda size=size: app.screen.size == size)  # type: ignore[misc]
            await desk.until(lambda: app.focused is not None)
            screen = app.screen
            assert isinstance(screen, FocusScreen)
        await desk.until(lambda: app.focused is not None and app.focused.display and bool(app.focused.region.area))


@pytest.mark.parametrize("key", ["ctrl+p", "t", "y", "c", "question_mark"])
async def test_nothing_breaks_in_the_smallest_of_terminals(key: str) -> None:
    async with browsing(notifications=True) as desk:
        app = desk.screen.app
        await desk.pilot.press(key)
        for size in ((10, 1), (3, 3), (1, 1), (60, 12), (2, 40), (120, 36)):
            await desk.pilot.resize_terminal(*size)
            await desk.until(lambda size=size: app.screen.size == size)  # type: ignore[misc]
            await desk.pilot.press("o", "down", "pagedown", "pageup", "up")
        await desk.pilot.press("escape")
        await desk.until(lambda: app.screen is desk.screen)


async def test_the_terminal_may_lose_the_focus() -> None:
    async with browsing() as desk:
        app = desk.screen.app
        await desk.press("tab")
        focused = app.focused
        app.app_focus = False
        assert app.focused is None
        app.app_focus = True
        await desk.until(lambda: app.focused is focused)


async def test_a_terminal_that_was_resized_over_a_covered_screen_is_found_again() -> None:
    async with analysing(FixedAnalysis(made_report())) as desk:
        app = desk.screen.app
        browse = next(screen for screen in app.screen_stack if isinstance(screen, BrowseScreen))
        await desk.pilot.resize_terminal(70, 20)
        await desk.until(lambda: app.screen.size == (70, 20))
        await desk.pilot.press("a")
        await desk.until(lambda: app.screen is browse)
        await desk.until(lambda: browse.has_class("-narrow"))
        await desk.until(lambda: browse.tree_pane.region.width == 70)


@pytest.mark.parametrize("key", ["ctrl+p", "t"])
async def test_a_second_click_beside_the_palette_leaves_what_is_under_it(key: str) -> None:
    async with browsing() as desk:
        app = desk.screen.app
        await desk.pilot.press(key)
        await desk.until(lambda: isinstance(app.screen, CommandPalette) and bool(app.screen.region))
        for _ in range(2):
            for kind in (events.MouseDown, events.MouseUp):
                app.post_message(kind(None, 0, 35, 0, 0, 1, False, False, False, 0, 35))
        await desk.until(lambda: app.screen is desk.screen)
        await desk.settled()
        assert app.screen is desk.screen


@pytest.mark.parametrize("key", ["question_mark", "c"])
async def test_what_lies_under_a_small_window_goes_on(key: str) -> None:
    async with browsing() as desk:
        await desk.pilot.press(key)
        app = desk.screen.app
        await desk.until(lambda: isinstance(app.screen, HelpScreen | ColumnsScreen))
        assert desk.screen in app._background_screens


def notices(desk: Analyst) -> list[str]:
    return [str(notice.message) for notice in desk.screen.app._notifications]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("enter", "enter"), "is a pattern: it stands for all names that differ only there"),
        (("4", *["right_square_bracket"] * 3), "is a namespace: the Memory panel shows"),
        (("4", *["right_square_bracket"] * 4), "A row of “time to live” only adds up keys"),
        (("5",), "only counts its keys"),
        (("6",), "A row of “types” only adds up keys"),
    ],
    ids=["pattern", "namespace", "bucket", "slot", "type"],
)
async def test_enter_says_what_a_row_is_that_leads_nowhere(keys: tuple[str, ...], said: str) -> None:
    async with analysing(FixedAnalysis(made_report())) as desk:
        await desk.until_shown("shop:")
        await desk.press(*keys)
        await desk.until(lambda: Condition.ON_ENTRY not in desk.screen.conditions)
        await desk.until(lambda: not any("Open" in span.text for span in desk.screen.footer_bar.lines[0]))
        before = desk.screen.view.state
        await desk.press("enter")
        await desk.until(lambda: any(said in notice for notice in notices(desk)))
        assert desk.screen.view.state == before


async def test_a_key_in_a_table_of_namespaces_opens() -> None:
    report = made_report()
    step = Node(b"config", b"", NodeKind.LITERAL, report.summary.root.children[0].stats)
    root = replace(report.summary.root, children=(step, *report.summary.root.children))
    async with analysing(FixedAnalysis(replace(report, summary=replace(report.summary, root=root)))) as desk:
        await desk.until_shown("config")
        await desk.until(lambda: Condition.ON_ENTRY in desk.screen.conditions)
        desk.screen.table.body.move_to(desk.rows.index("config"))
        await desk.until(lambda: Condition.ON_ENTRY in desk.screen.conditions)
        await desk.press("enter")
        await desk.until(lambda: isinstance(desk.screen.app.screen, BrowseScreen))


async def test_a_filter_of_a_list_of_the_largest_says_so() -> None:
    async with analysing(FixedAnalysis(made_report())) as desk:
        await desk.until_shown("shop:")
        await desk.press("2", "slash", *"shop")
        await desk.until_shown(f"rows with shop among the {len(desk.screen.table.rows.table.rows)} largest")
        await desk.press(*"zzz")
        await desk.until_shown("No row among the")
        await desk.press("escape", "1", "slash", *"shop")
        await desk.until_shown("rows with shop")
        assert "among the" not in desk.text
