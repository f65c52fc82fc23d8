"""What stands beside a namespace leads on: to its biggest keys, to the keys of its patterns, to what is below it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtui.analysis.query.matches import Order
from rtui.analysis.query.terms import Fact
from rtui.tui.browse.value_rows import Item, ItemKind
from rtui.tui.find.screen import FindScreen
from tests.tui.analysed_session import analysed_session
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import COMPLETE, FixedSession


def item(user: BrowseUser) -> Item:
    found = user.screen.detail_pane.body.item
    assert found is not None
    return found


async def go_to_row(user: BrowseUser, kind: ItemKind) -> Item:
    """Go into the details, and down to the first row that stands for something of this kind."""
    if not user.has_keyboard(user.screen.detail_pane.body):
        await user.press("tab")
    body = user.screen.detail_pane.body
    while item(user).kind is not kind:
        line = body.cursor_line
        await user.press("down")
        assert body.cursor_line != line, f"no {kind}"
    return item(user)


async def found(user: BrowseUser) -> FindScreen:
    await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
    screen = user.pilot.app.screen
    assert isinstance(screen, FindScreen)
    return screen


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
@pytest.mark.parametrize("key", ["enter", "l", "right"])
async def test_a_big_key_is_gone_to_and_escape_comes_back(size: tuple[int, int], key: str) -> None:
    async with browsing(analysed_session(), size) as user:
        namespace = user.name
        biggest = await go_to_row(user, ItemKind.KEY)
        await user.press("down")
        second = item(user)
        assert second.kind is ItemKind.KEY
        assert second != biggest
        await user.pilot.press(key)
        await user.until(lambda: user.name == second.data and user.has_keyboard(user.screen.tree_pane.key_tree))
        await user.settled()
        await user.press("escape")
        assert user.name == namespace
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("escape")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_a_pattern_opens_its_keys() -> None:
    async with browsing(analysed_session()) as user:
        pattern = await go_to_row(user, ItemKind.PATTERN)
        assert pattern.behind is not None
        await user.pilot.press("enter")
        screen = await found(user)
        assert screen.search.query == pattern.behind.query
        assert "pattern:" in str(screen.search.query)


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_all_keys_are_listed_by_size_whatever_the_report_names(is_analysed: bool) -> None:
    async with browsing(analysed_session() if is_analysed else FixedSession()) as user:
        name = user.name
        await go_to_row(user, ItemKind.BY_SIZE)
        await user.pilot.press("enter")
        screen = await found(user)
        assert str(screen.search.query) == f"in:{name.decode()}"
        assert screen.search.order == Order(Fact.MEMORY, is_descending=True)
        assert screen.rows.sort == "size"
        assert "size" in screen.rows.columns


async def test_what_lies_below_is_gone_to() -> None:
    async with browsing() as user:
        child = await go_to_row(user, ItemKind.NAMESPACE)
        await user.press("enter")
        await user.until(lambda: user.name == child.data)
        await user.press("escape")
        assert child.data is not None
        assert child.data.startswith(user.name)
        assert user.name != child.data


async def test_left_goes_back_to_the_tree_and_right_goes_from_a_key_into_its_value() -> None:
    async with browsing() as user:
        await user.press("tab", "left")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)
        await user.go(b"shop:user:7:profile")
        await user.press("right")
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("h")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_names_and_queries_of_rows_are_copied() -> None:
    async with browsing(analysed_session()) as user:
        biggest = await go_to_row(user, ItemKind.KEY)
        await user.press("y")
        assert biggest.data is not None
        assert user.pilot.app.clipboard == biggest.data.decode()
        pattern = await go_to_row(user, ItemKind.PATTERN)
        await user.press("y")
        assert pattern.behind is not None
        assert user.pilot.app.clipboard == str(pattern.behind.query)


async def test_a_small_namespace_shows_its_biggest_keys_without_any_analysis() -> None:
    session = analysed_session()
    session.store.add([b"new:%d" % number for number in range(3)])
    async with browsing(session) as user:
        await user.press("f", *"new", "enter")
        assert "The analysis has no figures of it" in user.body
        assert "Biggest keys" in user.body  # few are asked at once
        assert "keys by size" not in user.body
        assert (await go_to_row(user, ItemKind.KEY)).data == b"new:0"


async def test_a_small_namespace_shows_its_biggest_keys_once_the_scan_has_ended() -> None:
    """Its own keys have all come before."""
    session = FixedSession(replace(COMPLETE, complete=False), [b"new:%d" % number for number in range(3)])
    async with browsing(session) as user:
        assert "3 keys directly below" in user.body
        assert "Biggest keys" not in user.body
        session.store.complete = True
        session.status = replace(session.status, complete=True)
        user.screen.show_changes()
        await user.until(lambda: "Biggest keys" in user.body)
