"""Back and forward through where the user has been: places, bounds, and what it asks of a server."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.history import KEPT, History, PanelPlace, Place, TreePlace
from rtui.tui.log.screen import LogScreen
from tests.tui.browsing import browsing, until
from tests.tui.fixed_session import FixedSession
from tests.tui.goto.test_goto import call_up, enter


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
        assert [one.message for one in user.pilot.app._notifications] == ["There is no place before this one."]
