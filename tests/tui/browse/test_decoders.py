"""Decoders that are chosen by hand and remembered, and the rows of collections as what they mean."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rtui.keyspace.text.segments import Separators
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.browse.document import ChosenDecoders, DecoderScreen
from rtui.tui.browse.value_view import ItemKind, RowItem
from rtui.tui.kit.settings import SettingsFile
from rtui.values.server_encodings import longitude_latitude
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

LONG = b"\xac\xed\x00\x05sr\x00\x0ejava.lang.Long;\x8b\xe4\x90\xcc\x8f#\xdf\x02\x00\x01J\x00\x05valuexr\x00\x10"
LONG += b"java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\x00\x00xp"


def java_string(text: bytes) -> bytes:
    return b"\xac\xed\x00\x05t" + struct.pack(">H", len(text)) + text


@asynccontextmanager
async def at_value(
    server: Server, folder: Path, key: bytes, *, settings: SettingsFile | None = None, size: tuple[int, int] = (160, 48)
) -> AsyncIterator[Visitor]:
    """The value of a key, which has the keyboard."""
    target = Target(port=server.port)
    app = RtuiApp(BrowseOptions(target=target), settings=settings)
    async with visiting(target, folder, app=app, size=size) as visitor:
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.settled()
        await open_key(visitor, key)
        yield visitor


async def open_key(visitor: Visitor, key: bytes) -> None:
    while visitor.browse.focused is visitor.pane.body:
        await visitor.press("escape")
        await visitor.settled()
    visitor.browse.tree_pane.reveal(key)
    await visitor.until(lambda: visitor.row.key() == key, "the key")
    await visitor.settled()
    await visitor.until(lambda: visitor.detail.key == key and visitor.detail.preview is not None, "the value")
    await visitor.press("enter")
    await visitor.until(lambda: visitor.browse.focused is visitor.pane.body, "the keyboard at the value")
    await visitor.settled()


async def choose(visitor: Visitor, name: str) -> list[str]:
    """Choose a decoder by its name; what was offered."""
    await visitor.press("d")
    await visitor.until(lambda: isinstance(visitor.app.screen, DecoderScreen), "the list of decoders")
    screen = visitor.app.screen
    assert isinstance(screen, DecoderScreen)
    titles = [str(option.prompt) for option in screen.options.options]
    screen.options.highlighted = next(at for at, title in enumerate(titles) if title[2:].split(" (")[0] == name)
    await visitor.press("enter")
    await visitor.until(lambda: visitor.app.screen is visitor.browse, "the value")
    await visitor.settled()
    return titles


@pytest.mark.slow
async def test_a_decoder_that_recognises_nothing_is_chosen_by_name_and_remembered(
    valkey: Server, tmp_path: Path
) -> None:
    data = '{"数据": [1, 2]}'.encode("gbk")
    client = valkey.client()
    for number in (1, 2):
        client.set(f"user:{number}:profile", data)
    client.set("user:3:profile", b"\xff\xff\xff plain")
    client.set("user:3:other", data)
    settings = SettingsFile(tmp_path / "settings.toml")
    async with at_value(valkey, tmp_path, b"user:1:profile", settings=settings) as visitor:
        titles = await choose(visitor, "hex digits")
        assert titles.index("  all decoders:".strip()) < titles.index("  hex digits")
        assert len(titles) > 20
        await visitor.until_shown("by hand", "hex digits")
        assert "数据" not in visitor.text()
        assert "decoders" not in str(settings.settings.decoders)
        await choose(visitor, "GB18030")
        await visitor.until_shown('"数据"', "› JSON by hand", "for user:<id>:profile")
        await open_key(visitor, b"user:2:profile")
        await visitor.until_shown('"数据"', "by hand")
        await open_key(visitor, b"user:3:profile")
        await visitor.until_shown("chosen for user:<id>:profile")
        await open_key(visitor, b"user:3:other")
        assert "by hand" not in visitor.text()
    settings.flush()
    async with at_value(
        valkey, tmp_path, b"user:2:profile", settings=SettingsFile(tmp_path / "settings.toml")
    ) as again:
        await again.until_shown('"数据"', "by hand")
        await choose(again, "text")
        await again.until_shown("text by hand")
        await choose(again, "hex")
        await again.until(lambda: "by hand" not in again.text(), "the automatic choice")
        assert again.browse.settings.settings.decoders == {}


@pytest.mark.slow
async def test_a_decoder_of_a_field_holds_for_that_field_and_its_rows(valkey: Server, tmp_path: Path) -> None:
    packed = '{"a": "数据", "b": 2}'.encode("gbk")
    for number in (1, 2):
        valkey.client().hset(f"h:{number}", mapping={"blob": packed, "other": packed})
    async with at_value(valkey, tmp_path, b"h:1") as visitor:
        line = next(at for at, row in enumerate(visitor.pane.body.rows) if row.item and row.item.name == b"blob")
        visitor.pane.body.move_to(line)
        await visitor.press("enter")
        await visitor.until(lambda: visitor.pane.value.value.opened, "the field")
        await choose(visitor, "GB18030")
        await visitor.until_shown('"a"', "h:<id> › blob")
        await open_key(visitor, b"h:2")
        await visitor.until_shown("› JSON {2}")
        assert visitor.text().count("JSON {2}") == 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_rows_show_what_they_mean_and_copy_what_is_stored(
    valkey: Server, tmp_path: Path, size: tuple[int, int]
) -> None:
    stored = LONG + struct.pack(">q", 1_536_236_969_740)
    packed = gzip.compress(json.dumps({str(n): n for n in range(12)}).encode())
    client = valkey.client()
    client.hset("a", mapping={"at": stored, "packed": packed, "who": java_string(b"ann"), "plain": "text"})
    client.rpush("b", stored, packed, "plain")
    client.sadd("c", java_string(b"ann"), java_string(b"bob"))
    client.xadd("d", {"packed": packed, "plain": "text"})
    client.zadd("e", {java_string(b"ann"): 1.5})
    async with at_value(valkey, tmp_path, b"a", size=size) as visitor:
        await visitor.until_shown("2018-09-06", "gzip › JSON {12}", '"ann"', "text", "decoded d")
        line = next(at for at, row in enumerate(visitor.pane.body.rows) if row.item and row.item.name == b"at")
        visitor.pane.body.move_to(line)
        await visitor.press("y")
        await visitor.until(lambda: visitor.app.clipboard, "a copy")
        assert b"java.lang.Long" in visitor.app.clipboard.encode()
        await visitor.press("d")
        await visitor.until_shown("as stored d")
        assert "gzip ›" not in visitor.text()
        await visitor.press("d")
        await visitor.until_shown("gzip › JSON {12}")
        visitor.check_painted()
        for key, texts in {
            b"b": ("2018-09-06", "gzip › JSON {12}", "plain"),
            b"c": ('"ann"', '"bob"'),
            b"d": ("gzip › JSON {12}", "text"),
            b"e": ('"ann"', "1.5"),
        }.items():
            await open_key(visitor, key)
            await visitor.until_shown(*texts)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_scores_that_look_like_places_are_shown_as_such(
    valkey: Server, tmp_path: Path, size: tuple[int, int]
) -> None:
    client = valkey.client()
    client.geoadd("geo", [13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania", -0.1276, 51.5072, "London"])
    client.zadd("times", {f"t{n}": 1_700_000_000 + n for n in range(5)})
    client.zadd("micros", {f"t{n}": 1_700_000_000_123_456 + n for n in range(5)})
    async with at_value(valkey, tmp_path, b"geo", size=size) as visitor:
        await visitor.until_shown("longitude", "latitude", "13.361389", "38.115556", "look like geo positions")
        found = client.geopos("geo", "Palermo")[0]
        item = next(row.item for row in visitor.pane.body.rows if row.item and row.item.name == b"Palermo")
        assert longitude_latitude(item.cells[2]) == pytest.approx(found, abs=1e-12)  # type: ignore[arg-type]
        await visitor.press("d")
        await visitor.until_shown("score", "3479099956230698", "look like geo positions")
        assert "13.361389" not in visitor.text()
        await visitor.press("d", "s")
        await visitor.until_shown("Sort by", "latitude")
        await visitor.press("escape")
        await open_key(visitor, b"times")
        assert "longitude" not in visitor.text()
        await open_key(visitor, b"micros")
        await visitor.until_shown("may be geo positions, or", "1700000000123456")
        await visitor.press("d")
        await visitor.until_shown("latitude")


@pytest.mark.slow
async def test_bytes_that_look_like_a_bitmap_can_be_decoded_by_hand(valkey: Server, tmp_path: Path) -> None:
    valkey.client().set("key", bytes(4000) + b"\x01")
    async with at_value(valkey, tmp_path, b"key") as visitor:
        await visitor.until_shown("bits set in this window")
        await choose(visitor, "gzip")
        await visitor.until_shown("gzip by hand")
        document = visitor.pane.value.value.document
        assert document is not None
        assert document.found.has_failed
        assert visitor.browse.settings.settings.decoders == {}
        first = next(row for row in visitor.pane.body.rows if row.line and "gzip" in row.line[-1].text)
        assert document.found.notes[-1].startswith("".join(span.text for span in first.line).strip())


def test_a_place_is_the_pattern_of_a_key_and_a_field() -> None:
    decoders = ChosenDecoders(SettingsFile(), Separators((b":",)))
    assert decoders.place(b"user:42:profile", b"string") == "user:<id>:profile"
    assert decoders.place(b"user:\xff:\n", b"string") == r'"user:\xff:\n"'
    item = RowItem(ItemKind.ELEMENT)
    assert decoders.place(b"q:7", b"list", item) == "q:<id> › element"
    assert decoders.place(b"x" * 600, b"string") == ""


def test_a_choice_is_remembered_and_forgotten_but_not_text_and_hex(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    settings = SettingsFile(path)
    decoders = ChosenDecoders(settings, Separators((b":",)))
    places = ["user:<id>:profile", r'"user:\xff.\n"', "a.b 'c' [d] = #", "日本:<id> › 名"]
    for place in places:
        assert decoders.choose(place, "gzip › JSON")
        assert not decoders.choose(place, "hex")
    settings.flush()
    again = ChosenDecoders(SettingsFile(path), Separators((b":",)))
    assert [again.of(place) for place in places] == ["gzip › JSON"] * 4
    again.choose(places[0], None)
    assert again.of(places[0]) is None
