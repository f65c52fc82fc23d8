"""What one does with values, on a real server, counted in keypresses beside the text that is typed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rtui.server.facts.preview.page import Meaning
from rtui.tui.browse.value_view import ValueView
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

MOST_KEYS = 6
"""Keypresses that a task may take."""


class Counting:
    """Presses keys and types text, counting the keys."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.pressed = 0

    async def press(self, *keys: str) -> None:
        self.pressed += len(keys)
        await self.visitor.press(*keys)

    async def into_value(self, name: str) -> None:
        """Go to a key by its name, and into its value."""
        await self.press("slash")
        await self.visitor.until(lambda: self.visitor.app.focused is self.visitor.browse.filter_input, "the filter")
        await self.visitor.paste(name)
        await self.press("enter")
        key = name.encode()
        await self.visitor.until(lambda: self.visitor.detail.key == key and self.visitor.detail.preview, "the key")
        await self.visitor.until(lambda: self.visitor.tree.has_focus, "the tree")
        await self.press("enter")
        await self.visitor.until(lambda: self.view.has_focus and self.view.item is not None, "the value")

    @property
    def view(self) -> ValueView:
        return self.visitor.pane.body


@pytest.mark.slow
async def test_a_field_in_a_hash_of_50_000(server: Server, tmp_path: Path) -> None:
    pipeline = server.client().pipeline(transaction=False)
    for start in range(0, 50_000, 5_000):
        pipeline.hset("shop:big", mapping={f"field:{n}": n for n in range(start, start + 5_000)})
    pipeline.execute()
    async with visiting(target_of(server), tmp_path) as visitor:
        await visitor.whole()
        user = Counting(visitor)
        await user.into_value("shop:big")
        await user.press("slash")
        await visitor.until(lambda: visitor.app.focused is visitor.pane.value.prompt, "the line to type in")
        await visitor.paste("field:49999")
        await user.press("enter")
        await visitor.until(lambda: user.view.item and user.view.item.name == b"field:49999", "the field")
        await visitor.until_shown("49999", "1 found")
        assert user.pressed <= MOST_KEYS


@pytest.mark.slow
async def test_the_third_field_as_a_command_that_reads_it(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    client.hset("it's a key", mapping={"a": 1, "b": 2, "$(id) 'c'": "third", "d": 4})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        user = Counting(visitor)
        await user.into_value("it's a key")
        await user.press("down", "down")
        await visitor.until(lambda: user.view.item and user.view.item.cell(Meaning.VALUE) == b"third", "the field")
        await user.press("C")
        await visitor.until(lambda: "HGET" in visitor.app.clipboard, "the copy")
        words = shlex.split(visitor.app.clipboard)
        assert words[-3:] == ["HGET", r'"it\x27s a key"', r'"$(id) \x27c\x27"']
        assert user.pressed <= MOST_KEYS


@pytest.mark.slow
async def test_the_content_of_one_session(valkey: Server, tmp_path: Path) -> None:
    valkey.client().set("session:abc", json.dumps({"user": 42, "cart": ["A-1", "B-7"]}))
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        user = Counting(visitor)
        await user.into_value("session:abc")
        await visitor.until_shown('"user": 42', '"A-1"', "JSON")
        assert user.pressed <= MOST_KEYS
        visitor.check_harmless()


@pytest.mark.slow
async def test_a_key_that_vanishes_or_changes_while_one_works_with_it(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    client.hset("key", mapping={f"field{n}": n for n in range(1_000)})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        user = Counting(visitor)
        await user.into_value("key")
        client.delete("key")
        await user.press("n")
        await visitor.until_shown("gone")
        client.rpush("key", "a", "b")
        await user.press("r")
        await visitor.until_shown("1–2 of 2")
        assert user.view.item is not None
        visitor.check_harmless()
