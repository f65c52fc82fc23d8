"""Keys that come faster than the keyboard changes hands."""

from __future__ import annotations

from pathlib import Path

from textual import events
from textual.keys import _character_to_key

from rtui.tui.kit.bars import FilterInput
from tests.server.scanned import plant
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting


def at_once(visitor: Visitor, text: str) -> None:
    """Press keys as they come in one packet from a terminal."""
    for character in text:
        name = "enter" if character == "\r" else _character_to_key(character)
        visitor.app.post_message(events.Key(name, character))


async def test_a_filter_in_one_packet_with_the_key_that_opens_it(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "/queue")
        line = visitor.browse.query_one(FilterInput)
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert line.has_focus


async def test_the_key_that_ends_the_line_comes_last(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "/queue:1\r")
        await visitor.until(lambda: visitor.detail.key == b"queue:1", "the key of that name")


async def test_a_key_that_comes_back_when_all_is_taken_down_goes_nowhere(valkey: Server, tmp_path: Path) -> None:
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
    assert not visitor.app.screen_stack
    late = events.Key("q", "q")
    late._set_forwarded()
    await visitor.app.on_event(late)
