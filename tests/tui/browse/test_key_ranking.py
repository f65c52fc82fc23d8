"""Keys sorted by what has to be asked of each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from textual.widgets import OptionList

from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import RowKind
from rtui.tui.browse import row_work
from rtui.tui.kit.choice import ChoiceScreen
from tests.tui.browsing import BrowseUser, browsing
from tests.tui.fixed_session import COMPLETE, FixedSession, kind_of, memory_of

NAMES = [b"box:%s" % (b"x" * n) for n in range(1, 30)] + [b"box:%d" % n for n in range(12)]
NAMES += [b"box:profile%d" % n for n in range(3)] + [b"other:1"]
BY_NAME = sorted(NAMES[29:41], key=len)


def keys_listed(user: BrowseUser) -> list[bytes]:
    rows = user.screen.tree_pane.names.rows
    return [row.key() for row in rows.window(0, len(rows)) if row.kind is RowKind.KEY]


def header(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.tree_pane.header.lines for span in line)


async def sort_by(user: BrowseUser, sort: Sort) -> None:
    user.screen.tree_pane.work.sort_by(sort)
    await user.settled()


@pytest.mark.parametrize(
    ("sort", "key"),
    [(Sort.MEMORY, lambda key: -memory_of(key)), (Sort.IDLE, lambda key: -len(key)), (Sort.TYPE, kind_of)],
)
async def test_keys_are_sorted_by_what_is_asked_of_them(sort: Sort, key: Callable[[bytes], object]) -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("enter")
        by_name = keys_listed(user)
        await sort_by(user, sort)
        listed = keys_listed(user)
        assert listed != by_name
        assert listed == sorted(by_name, key=key)  # type: ignore[arg-type]
        assert user.session.asked == [f"{sort.value} of b'box:'"]
        await sort_by(user, Sort.NAME)
        assert keys_listed(user) == by_name


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_idle_times_stand_beside_keys_that_are_sorted_by_them(width: int) -> None:
    async with browsing(FixedSession(COMPLETE, NAMES), (width, 40)) as user:
        await user.press("enter")
        assert ("idle" in header(user)) is (width == 200)  # there is room for it in any order
        await sort_by(user, Sort.IDLE)
        user.screen.flush()
        assert "idle ↓" in header(user)

        def says_idle_time() -> bool:
            user.screen.flush()
            return "33s" in "".join(span.text for span in user.screen.tree_pane.key_tree.lines_in_view[1])

        await user.until(says_idle_time)


async def test_what_is_opened_later_is_sorted_alike() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await sort_by(user, Sort.MEMORY)
        assert user.session.asked == []
        await user.press("enter")
        listed = keys_listed(user)
        assert listed == sorted(listed, key=lambda key: -memory_of(key))


async def test_the_cursor_stays_on_its_key() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.go(b"box:7")
        await sort_by(user, Sort.MEMORY)
        assert user.name == b"box:7"


async def test_before_many_keys_are_asked_it_is_said_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_work, "FEW_KEYS", 10)
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("enter")
        user.screen.tree_pane.work.sort_by(Sort.MEMORY)
        await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
        shown = user.screen.app.screen.query_one(OptionList).get_option_at_index(0).prompt
        assert "TYPE and MEMORY USAGE of 44 keys" in str(shown)
        assert user.session.asked == []
        by_name = keys_listed(user)
        await user.pilot.press("escape")
        await user.settled()
        assert user.session.asked == []
        assert keys_listed(user) == by_name
        user.screen.flush()
        assert "keys by name, s asks" in header(user)
        await user.pilot.press("s", "enter")
        await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
        await user.pilot.press("enter")
        await user.settled()
        assert keys_listed(user) == sorted(by_name, key=lambda key: -memory_of(key))
        assert "keys by name" not in header(user)


async def test_more_keys_than_can_be_remembered_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_work, "MOST_WEIGHED", 40)
    async with browsing(FixedSession(COMPLETE, NAMES), notifications=True) as user:
        await user.press("enter")
        await sort_by(user, Sort.TTL)
        assert user.session.asked == []
        assert "too many" in str([one.message for one in user.screen.app._notifications])


async def test_escape_ends_it_and_keys_stay_by_name() -> None:
    session = FixedSession(COMPLETE, NAMES)
    session.holds_columns = asyncio.Event()
    async with browsing(session) as user:
        await user.press("enter")
        by_name = keys_listed(user)
        user.screen.tree_pane.work.sort_by(Sort.MEMORY)
        await user.until(lambda: user.screen.tree_pane.ranking.is_under_way)
        user.screen.flush()
        assert "asked 0 of 44 keys" in header(user)
        await user.press("escape")
        assert not user.screen.tree_pane.ranking.is_under_way
        assert keys_listed(user) == by_name
