"""Keys that come faster than the keyboard changes hands."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual.keys import _character_to_key

from rtui.tui.app import RtuiApp
from rtui.tui.help.screen import HelpScreen
from rtui.tui.kit.bars import FilterInput
from rtui.tui.kit.terminal import LONGEST_S, KeySerialiser
from tests.server.scanned import plant
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.browsing import browsing
from tests.tui.visiting import Visitor, visiting

NAMED = {"\r": "enter", "\x1b": "escape", "\t": "tab"}


def at_once(visitor: Visitor, text: str) -> None:
    """Press keys as they come in one packet from a terminal."""
    for character in text:
        name = NAMED[character] if character in NAMED else _character_to_key(character)
        visitor.app.post_message(events.Key(name, character))


async def test_a_filter_in_one_packet_with_the_key_that_opens_it(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "/queue")
        line = visitor.browse.query_one(FilterInput)
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert visitor.app.focused is line


async def test_the_key_that_ends_the_line_comes_last(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "/queue:1\r")
        await visitor.until(lambda: visitor.detail.key == b"queue:1", "the key of that name")


@pytest.mark.parametrize("keys", ["\r/", "\t/", "\t\x1b\t/", "\r\x1bl/", "\r/a\x1b/"], ids=repr)
async def test_what_follows_the_key_that_enters_a_value_is_for_the_value(
    valkey: Server, tmp_path: Path, keys: str
) -> None:
    valkey.admin.hset("queue:1", mapping={"a": "1", "b": "2"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("queue:1")
        at_once(visitor, keys + "field")
        prompt = visitor.pane.value.prompt
        await visitor.until(lambda: prompt.value == "field", "the text in the line")
        assert visitor.app.focused is prompt
        assert not visitor.browse.filter_input.is_open


@pytest.mark.parametrize("keys", ["\x1b/", "\t/", "h/", "/a\x1b\x1b/"], ids=repr)
async def test_what_follows_the_key_that_leaves_a_value_is_for_the_tree(
    valkey: Server, tmp_path: Path, keys: str
) -> None:
    valkey.admin.hset("queue:1", mapping={"a": "1", "b": "2"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("queue:1")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.focused is visitor.pane.body, "the value")
        at_once(visitor, keys + "queue")
        line = visitor.browse.filter_input
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert visitor.app.focused is line
        assert not visitor.pane.value.prompt.is_open


async def test_a_name_in_one_packet_with_the_key_that_asks_for_it(valkey: Server, tmp_path: Path) -> None:
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, ":help\r")
        await visitor.until(lambda: isinstance(visitor.app.screen, HelpScreen), "the help")


async def test_keys_behind_one_that_closes_a_screen_come_in_their_order(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "?\x1bs\r/queue")
        line = visitor.browse.filter_input
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert visitor.app.screen is visitor.browse


async def test_keys_wait_for_one_that_takes_long_and_keep_their_order() -> None:
    """The widget is busy for longer than anybody types, as on a machine that has much else to do."""
    now_s, is_over = [0.0], asyncio.Event()
    async with browsing() as user:
        app, tree = user.pilot.app, user.screen.tree_pane.key_tree
        assert isinstance(app, RtuiApp)
        app._keys = KeySerialiser(app, lambda: now_s[0])
        tree.call_later(is_over.wait)
        for character in "/lock":
            app.post_message(events.Key(_character_to_key(character), character))
            await asyncio.sleep(0)
            now_s[0] += LONGEST_S / 6
        is_over.set()
        await user.until(lambda: user.screen.filter_input.value == "lock")
        assert user.has_keyboard(user.screen.filter_input)


async def test_a_key_that_comes_back_when_all_is_taken_down_goes_nowhere(valkey: Server, tmp_path: Path) -> None:
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
    assert not visitor.app.screen_stack
    late = events.Key("q", "q")
    late._set_forwarded()
    await visitor.app.on_event(late)
