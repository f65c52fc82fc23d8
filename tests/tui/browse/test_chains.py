"""Namespaces that hold one other only, in one row of the tree."""

from __future__ import annotations

from dataclasses import replace

from rtui.server.scan.progress import Progress, ScanState
from tests.tui.browsing import BrowseUser, browsing
from tests.tui.fixed_session import COMPLETE, FixedSession

RUNNING = replace(COMPLETE, complete=False, progress=Progress(ScanState.RUNNING, 0.5))
NAMES = [*(b"app:v1:cache:%d" % n for n in range(5)), *(b"queue:%d" % n for n in range(9))]


def texts(user: BrowseUser) -> list[str]:
    lines = user.screen.tree_pane.key_tree.lines_in_view
    return ["".join(span.text for span in line).strip() for line in lines]


async def test_a_chain_is_one_row_that_opens_closes_copies_and_is_left_like_any() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("down", "enter")
        assert texts(user)[1].startswith("▾ app:v1:cache ")
        assert user.name == b"app:v1:cache:"
        assert user.screen._copies()[0].text.startswith("app:v1:cache:")
        shown = user.screen.detail_pane.detail.row
        assert shown is not None
        assert shown.namespace is user.cursor.namespace
        await user.press("right", "down")
        assert user.name == b"app:v1:cache:1"
        await user.press("backspace")
        assert user.name == b"app:v1:cache:"
        await user.press("left")
        assert [line.split(" ")[1] for line in texts(user)] == ["queue", "app:v1:cache"]


async def test_it_is_jumped_to_and_found_by_its_name() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("down", "enter", "home")
        await user.press("f", *"app:v", "escape")
        assert user.name == b"app:v1:cache:"
        await user.press("home", "slash", *"v1:ca")
        assert any(line.startswith("▾ app:v1:cache ") for line in texts(user))
        await user.press("escape")
        await user.go(b"app:v1:cache:4")
        assert user.name == b"app:v1:cache:4"


async def test_the_cursor_stays_on_what_it_was_on_when_a_chain_parts() -> None:
    session = FixedSession(RUNNING, NAMES)
    async with browsing(session) as user:
        await user.press("down", "enter")
        session.store.add([b"app:v2:x"])
        session.revision += 1
        await user.until(lambda: user.screen._shown[0] == session.revision)
        await user.settled()
        assert user.name == b"app:v1:cache:"
        assert [line.split(" ")[1] for line in texts(user)[:3]] == ["queue", "app", "v1:cache"]
        assert texts(user)[-1].split(" ")[1] == "v2"
