"""A server that does not answer for a while: every key is still obeyed, and the screen says what is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.server.wire.target import Target
from rtui.tui.find.screen import FindScreen
from tests.proxy import DelayProxy
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting


async def type_query(user: Visitor, text: str) -> None:
    """Open the query line and type."""
    await user.until(lambda: user.app.screen is user.browse, "the tree")
    await user.press("slash")
    await user.until(lambda: user.app.focused is user.browse.filter_input, "the query line")
    await user.paste(text)


async def test_keys_are_obeyed_while_nothing_is_answered(
    redis70: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.tui.kit.status_lines.SILENT_S", 0.001)
    redis70.client().mset({f"{word}:{number}": "x" for word in ("cart", "user") for number in range(50)})
    async with DelayProxy(redis70.port) as proxy, visiting(Target(port=proxy.port), tmp_path, size=(80, 24)) as user:
        await user.whole()
        proxy.hold_replies()
        await user.press("right", "down")
        await user.until(lambda: user.row.depth == 1, "a key of the namespace")
        await user.until_shown("no answer for")
        await user.press("enter")
        await user.until_shown("fetching…")
        await user.press("escape")
        await user.press("down")
        await user.until(lambda: user.tree.cursor_line == 2, "the next key")
        await type_query(user, "user")
        await user.until_shown("Names with user")
        await user.press("escape", "colon")
        await user.until_shown("enter goes")
        await user.press("escape", "question_mark")
        await user.until_shown("Help")
        await user.press("escape")
        await type_query(user, "ttl:none")
        await user.press("enter")
        await user.until(lambda: isinstance(user.app.screen, FindScreen), "the list of what is found")
        await user.until_shown("no answer for")
        proxy.release_replies()
        await user.until_shown("100 keys")
        await user.until(lambda: "no answer" not in user.text(), "a server that answers")
