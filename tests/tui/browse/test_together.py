"""Marked keys: Space marks them, the status bar counts them, and `U` says whether they may be used together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.browsing.status import BrowsingStatus, NodeStatus
from rtui.tui.browse.fact_lines import ONE_KEY, together_lines
from rtui.tui.browse.key_tree import MOST_MARKED
from rtui.tui.browse.tree_lines import MARKED
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.styled_text import line_width
from tests.tui.browse.test_ageing import row_text
from tests.tui.browse.test_panes import status
from tests.tui.browsing import browsing
from tests.tui.fixed_session import COMPLETE, FixedSession

KEYS = [b"user:42:profile", b"cart:42"]
CLUSTER = replace(
    COMPLETE,
    server=replace(COMPLETE.server, cluster_enabled=True),
    nodes=(
        NodeStatus("a" * 40, SafeText("10.0.0.1:6379"), ((0, 10_000),), None, 1),
        NodeStatus("b" * 40, SafeText("10.0.0.2:6379"), ((10_001, 16_000),), None, 1),
    ),
)


def said(keys: list[bytes], status: BrowsingStatus = CLUSTER, width: int = 84) -> str:
    """The text of the card on one line."""
    lines = together_lines(keys, status, Separators(), width)
    assert max(map(line_width, lines)) <= width
    return " ".join(" ".join("".join(span.text for span in line) for line in lines).split())


def test_keys_of_two_nodes_have_their_places_and_the_tag_that_would_allow_it() -> None:
    text = said(KEYS)
    assert text.startswith("Together: no. They lie in 2 slots of 2 nodes, and a cluster refuses")
    assert "9133 10.0.0.1:6379 user:42:profile 15749 10.0.0.2:6379 cart:42" in text
    assert "The hash tag {42} would put them into slot 8000: user:{42}:profile cart:{42}" in text


def test_keys_of_one_slot_may_be_used_together() -> None:
    text = said([b"{42}:a", b"{42}:b"])
    assert text.startswith("Together: yes. All lie in slot 8000")
    assert "hash tag" not in text


def test_without_a_common_identifier_that_is_said() -> None:
    assert "No identifier is in all of these names" in said([b"user:1", b"cart:2"])


def test_a_slot_that_nobody_serves_is_said_to_be_nobodys() -> None:
    key = next(b"key:%d" % at for at in range(10_000) if key_slot(b"key:%d" % at) > 16_000)
    text = said([*KEYS, key])
    assert f"{key_slot(key)} nobody {key.decode()}" in text
    assert "They lie in 3 slots, and" in text


def test_one_key_is_asked_for_others() -> None:
    assert said(KEYS[:1]) == f"{ONE_KEY} 9133 10.0.0.1:6379 user:42:profile"


def test_on_one_server_it_is_about_a_cluster_that_might_be() -> None:
    server = replace(COMPLETE, server=replace(COMPLETE.server, cluster_enabled=False))
    text = said(KEYS, server)
    assert text.startswith(
        "This server is not a cluster, so any keys can be used together. In a cluster: Together: no."
    )
    assert "10.0.0" not in text


@pytest.mark.parametrize("width", [20, 40, 84])
def test_hostile_names_stay_safe_in_any_width(width: int) -> None:
    keys = [b"\x1b[2J:42", b"\xe2\x80\xae:42:\xff" * 20, b""]
    assert not HOSTILE.search(said(keys, width=width))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_space_marks_keys_and_escape_takes_the_marks_away(size: tuple[int, int]) -> None:
    session = FixedSession(CLUSTER, [*KEYS, b"lock"])
    async with browsing(session, size=size) as user:
        assert "Use together" not in user.footer
        await user.go(KEYS[0])
        await user.press("space")
        await user.go(KEYS[1])
        await user.press("space")
        assert "2 marked" in status(user)
        assert MARKED.strip() in row_text(user, KEYS[1])
        assert "Use together" in user.footer
        await user.pilot.press("U")
        await user.until(lambda: isinstance(user.pilot.app.screen, TextCard))
        card = user.pilot.app.screen
        assert isinstance(card, TextCard)
        await user.until(lambda: bool(card.body.lines))
        assert "The hash tag {42}" in "".join(span.text for line in card.body.lines for span in line)
        await user.press("escape", "space")
        assert "1 marked" in status(user)
        await user.press("escape")
        assert "marked" not in status(user)
        assert MARKED.strip() not in row_text(user, KEYS[0])


async def test_no_more_can_be_marked_than_can_be_shown() -> None:
    async with browsing(FixedSession(CLUSTER, [b"key%03d" % at for at in range(MOST_MARKED + 1)])) as user:
        tree = user.screen.tree_pane.key_tree
        for _ in range(MOST_MARKED + 1):
            tree.action_open_close()
            tree.action_cursor_down()
        await user.settled()
        assert len(tree.marked) == MOST_MARKED
