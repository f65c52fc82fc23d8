"""Back and forward through where the user has been, and Escape, which leads to the tree step by step."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find import FindScreen
from rtui.tui.kit.command_screen import KEPT, History, PanelPlace, Place, TreePlace
from rtui.tui.log import LogScreen
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.visiting_analysis import ask
from tests.tui.browsing import browsing, until
from tests.tui.fixed_session import FixedSession
from tests.tui.test_goto import call_up, enter
from tests.tui.visiting import Visitor, visiting


def place(number: int) -> TreePlace:
    return TreePlace(b"%d" % number)


def test_back_and_forward() -> None:
    history = History()
    history.leave(place(1))
    history.leave(place(2))
    assert history.back(place(3)) == place(2)
    assert history.back(place(2)) == place(1)
    assert history.back(place(1)) is None
    assert history.forward(place(1)) == place(2)
    assert history.forward(place(2)) == place(3)
    assert history.forward(place(3)) is None
    assert history.back(place(3)) == place(2)
    history.leave(place(2))
    assert history.forward(place(4)) is None
    assert history.back(place(4)) == place(2)


@given(st.lists(st.integers(0, 300), max_size=300))
def test_it_is_bounded_and_goes_through_all_that_is_kept(left: list[int]) -> None:
    history = History()
    here: Place = place(-1)
    for number in left:
        history.leave(place(number))
    been = []
    while (before := history.back(here)) is not None:
        been.append(before)
        here = before
    once = [number for at, number in enumerate(left) if not at or left[at - 1] != number]
    assert been == [place(number) for number in reversed(once[-KEPT:])]
    again = []
    while (after := history.forward(here)) is not None:
        again.append(after)
        here = after
    assert again == ([*reversed(been[:-1]), place(-1)] if been else [])


async def test_through_tree_details_panel_and_log() -> None:
    async with browsing() as user:
        app, pilot = user.pilot.app, user.pilot
        await call_up(user)
        await enter(user, "key shop:user:7:profile", lambda: user.name == b"shop:user:7:profile")
        await user.press("enter")
        assert user.has_keyboard(user.screen.detail_pane.body)
        await call_up(user)
        await enter(user, "panel expiry", lambda: isinstance(app.screen, AnalyseScreen))
        await pilot.press("3")
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        await pilot.press("alt+left")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        assert isinstance(app.screen, AnalyseScreen)
        assert app.screen.place == PanelPlace("big", app.screen.view.state)
        await pilot.press("ctrl+o")
        assert app.screen.view.panel.id == "expiry"
        await pilot.press("alt+left")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        await user.settled()
        assert user.name == b"shop:user:7:profile"
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("alt+left")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)
        assert user.name == b"shop:user:7:profile"
        await user.press("alt+left")
        assert user.name == b"shop:"
        for _ in range(3):
            await pilot.press("alt+right")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        for _ in range(2):
            await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        assert user.session.asked == []


async def test_a_filter_comes_back_with_its_place() -> None:
    async with browsing() as user:
        await user.press("slash", *"failed", "enter")
        await user.until(lambda: user.screen.tree_pane.names.needle == b"failed")
        await user.press("end")
        await user.until(lambda: user.name == b"jobs:failed")
        await call_up(user)
        await enter(user, "ns shop:cache", lambda: user.name == b"shop:cache:")
        assert user.screen.tree_pane.names.needle is None
        await user.press("alt+left")
        await user.until(lambda: user.screen.tree_pane.names.needle == b"failed" and user.name == b"jobs:failed")
        assert user.session.asked == []


async def test_a_key_of_a_filter_is_gone_back_to_also_where_the_search_for_it_takes_longer() -> None:
    session = FixedSession()
    session.store.clock = itertools.count().__next__
    async with browsing(session) as user:
        await user.press("slash", *"failed", "enter", "end")
        await user.until(lambda: user.name == b"jobs:failed")
        await call_up(user)
        await enter(user, "ns shop:cache", lambda: user.name == b"shop:cache:")
        await user.pilot.press("alt+left", "enter")
        await user.until(lambda: user.has_keyboard(user.screen.detail_pane.body))
        assert user.screen.tree_pane.names.needle == b"failed"
        assert user.name == b"jobs:failed"


async def test_nothing_before_is_said_once() -> None:
    async with browsing(notifications=True) as user:
        await user.press("alt+left")
        assert [one.message for one in user.pilot.app._notifications] == ["Nothing to go back to."]


MOST_STEPS = 8
"""Nobody is deeper in than that."""

PLACES = {
    "a row": ("down",),
    "details": ("f", *"list", "escape", "enter"),
    "another tab": ("f", *"list", "escape", "enter", "2"),
    "finding in a value": ("f", *"list", "escape", "enter", "slash", "x"),
    "going in a value": ("f", *"list", "escape", "enter", "o", "1"),
    "columns": ("c",),
    "sorting": ("s",),
    "jumping": ("f", "l"),
    "a filter being typed": ("slash", *"user"),
    "a filter": ("slash", *"user", "enter", "down"),
    "copying": ("Y",),
    "help": ("question_mark",),
    "commands": ("ctrl+p", *"sort"),
    "going to anything": ("colon", *"user"),
    "a key by name": ("colon", *"list", "enter"),
    "themes": ("t",),
    "servers": ("O",),
    "databases": ("B",),
    "the log": ("L",),
    "a filter of the log": ("L", "slash", *"scan", "enter"),
    "an entry of the log": ("L", "enter"),
    "the log over the analysis": ("a", "L", "enter"),
    "the analysis": ("a",),
    "memory, zoomed": ("a", "2", "enter"),
    "big keys": ("a", "3", "right_square_bracket", "down"),
    "a key from the analysis": ("a", "3", "enter"),
    "hot keys": ("a", "4"),
    "expiry": ("a", "5"),
    "slots": ("a", "6"),
    "types, filtered": ("a", "7", "slash", *"list", "enter"),
    "a file to write": ("a", "7", "w", *"x.csv"),
    "what is asked": ("a", "c"),
    "help over the analysis": ("a", "question_mark"),
    "back and forward": ("a", "3", "alt+left", "alt+left", "alt+right"),
}
"""How to get somewhere from the tree without a scan."""

PARTS = 4
"""They are gone to in so many sessions."""


def scans(server: Server) -> int:
    stats = server.admin.info("commandstats")
    return int(stats.get("cmdstat_scan", {"calls": 0})["calls"])


def fill(server: Server) -> None:
    server.admin.mset({f"user:{number}:name": "x" for number in range(300)})
    server.admin.rpush("list", *range(500))


async def at_the_tree(visitor: Visitor, name: str) -> None:
    """Press Escape until nothing is left to go back to."""
    for _ in range(MOST_STEPS):
        await visitor.press("escape")
        for _ in range(3):
            await visitor.pilot.pause()
        screen = visitor.app.screen
        if isinstance(screen, BrowseScreen) and screen.focused is screen.tree_pane.key_tree:
            await visitor.settled()
            if not screen.search.can_clear and not screen.search.returns_to:
                return
    pytest.fail(f"{name} leads nowhere:\n{visitor.text()}")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_from_anywhere(valkey: Server, tmp_path: Path, part: int) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.press("a")
        await ask(visitor)
        await at_the_tree(visitor, "the analysis")
        before = scans(valkey)
        for name, keys in [*PLACES.items()][part::PARTS]:
            for key in keys:
                await visitor.press(key)
                for _ in range(3):
                    await visitor.pilot.pause()
            await at_the_tree(visitor, name)
            assert scans(valkey) == before, name
        assert visitor.session.status.match is None


@pytest.mark.slow
async def test_a_filter_from_the_command_line_stays(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36), match=b"user:1*") as visitor:
        await visitor.whole()
        before = scans(valkey)
        await visitor.press("escape")
        await visitor.filter("name")
        await visitor.until(lambda: visitor.browse.tree_pane.names.needle == b"name", "the names")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.browse.tree_pane.names.needle is None, "the tree")
        await visitor.press("escape")
        await visitor.settled()
        assert visitor.session.status.match == b"user:1*"
        assert scans(valkey) == before
        await visitor.filter("user:3*")
        await visitor.until(lambda: visitor.session.store.keys == 11, "another filter")
        await visitor.whole()
        before = scans(valkey)
        await visitor.press("escape")
        await visitor.settled()
        assert scans(valkey) == before


@pytest.mark.slow
async def test_a_glob_over_all_keys_costs_its_own_scan_only(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.filter("user:3*")
        await visitor.until(lambda: visitor.session.store.keys == 11, "what is filtered")
        await visitor.whole()
        before = scans(valkey)
        await visitor.press("escape")
        await visitor.until(lambda: visitor.session.store.keys == 301, "all keys")
        await visitor.whole()
        assert visitor.session.status.match is None
        assert scans(valkey) == before


@pytest.mark.slow
async def test_found_keys_are_left_without_another_scan(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.filter("type:list len>100")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the found keys")
        await visitor.until(
            lambda: len(found(visitor).rows) == 1 and found(visitor).search.progress.state.is_over, "the list"
        )
        before = scans(valkey)
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.detail.key == b"list", "the key")
        await visitor.settled()
        await visitor.press("escape")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the found keys again")
        await at_the_tree(visitor, "found keys")
        assert scans(valkey) == before


def found(visitor: Visitor) -> FindScreen:
    screen = visitor.app.screen
    assert isinstance(screen, FindScreen)
    return screen
