"""What an operator wants to know at night, and how many keypresses it takes beside the text that is typed.

| task | keys |
|---|---|
| all keys without TTL under a cache | `/`, the terms, Enter |
| what expires in ten minutes | `/`, the term, Enter |
| a key by a piece of its name | `/`, the piece, ↓, End |
| two keys in one slot | `/`, the term, Enter |

A keyspace of 100,000 keys or more asks for one Enter more, when it has said what the search costs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from rtui.keyspace.slots import key_slot
from rtui.server.key_search import Stage
from rtui.server.wire.target import parse_target
from rtui.tui.find.screen import FindScreen
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

MOST: Final = 6
"""Keypresses beside typed text."""


class Operator:
    """Counts keypresses; text is typed in one go."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.presses = 0

    async def press(self, *keys: str) -> None:
        """Press keys, and see what each has done before the next."""
        for key in keys:
            await self.visitor.pilot.press(key)
            self.presses += 1

    async def type(self, text: str) -> None:
        """Type a text."""
        await self.visitor.paste(text)
        await self.visitor.until(lambda: self.visitor.browse.filter_input.value == text, "the typed text")

    async def found(self) -> FindScreen:
        """Wait for the end of a search."""

        def is_over() -> bool:
            screen = self.visitor.app.screen
            return isinstance(screen, FindScreen) and screen.search.stage is Stage.OVER and not screen._dirty_widgets

        await self.visitor.until(is_over, "the end of the search")
        screen = self.visitor.app.screen
        assert isinstance(screen, FindScreen)
        await self.visitor.until(lambda: len(screen.rows) == screen.search.count, "its rows")
        assert self.presses <= MOST
        return screen


@asynccontextmanager
async def at_work(server: Server, folder: Path) -> AsyncIterator[Operator]:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(200):
        pipeline.set(f"shop:cache:product:{number}", "x", ex=None if number % 4 else 3600)
        pipeline.set(f"shop:session:{number}", "y", ex=120 if number % 10 == 0 else 7200)
    pipeline.set("shop:user:8c1f77aa:profile", "z")
    for number in range(2):
        pipeline.set(f"{{campaign42}}:{number}", "z")
    pipeline.execute()
    async with visiting(parse_target(server.url), folder) as visitor:
        await visitor.whole()
        yield Operator(visitor)


def names(screen: FindScreen) -> set[bytes]:
    return {record.key for record in screen.rows.shown()}


async def test_all_keys_without_ttl_under_a_cache(valkey: Server, tmp_path: Path) -> None:
    async with at_work(valkey, tmp_path) as operator:
        await operator.press("slash")
        await operator.type("in:shop:cache ttl:none")
        await operator.press("enter")
        found = await operator.found()
        assert names(found) == {b"shop:cache:product:%d" % number for number in range(200) if number % 4}


async def test_what_expires_in_ten_minutes(valkey: Server, tmp_path: Path) -> None:
    async with at_work(valkey, tmp_path) as operator:
        await operator.press("slash")
        await operator.type("ttl<10m")
        await operator.press("enter")
        found = await operator.found()
        assert names(found) == {b"shop:session:%d" % number for number in range(0, 200, 10)}


async def test_a_key_by_a_piece_of_its_name(valkey: Server, tmp_path: Path) -> None:
    async with at_work(valkey, tmp_path) as operator:
        visitor = operator.visitor
        await operator.press("slash")
        await operator.type("8c1f")
        await visitor.until(lambda: not visitor.browse.tree_pane.names.is_searching, "the end of the search")
        await operator.press("down", "end")
        await visitor.until(lambda: visitor.detail.key == b"shop:user:8c1f77aa:profile", "the key")
        assert operator.presses <= MOST


async def test_two_keys_in_one_slot(valkey: Server, tmp_path: Path) -> None:
    async with at_work(valkey, tmp_path) as operator:
        await operator.press("slash")
        await operator.type(f"slot:{key_slot(b'{campaign42}:0')}")
        await operator.press("enter")
        found = await operator.found()
        assert names(found) >= {b"{campaign42}:0", b"{campaign42}:1"}
