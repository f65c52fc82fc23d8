"""What is copied of a value is what its label says, in every state, by what the server holds."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import random
import re
import struct
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Unknown
from rtui.keyspace.text.segments import Separators
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.browse.document import ChosenDecoders, DecoderScreen
from rtui.tui.browse.shown_value import ShownValue
from rtui.tui.browse.value_copies import bytes_copy, copied_text, value_copies
from rtui.tui.browse.value_view import ItemKind, RowItem
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.settings import SettingsFile
from rtui.values.server_encodings import longitude_latitude
from tests.conftest import known
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

KEY = b"copied"
CUT_JSON = json.dumps({"a": [{f"{n:06}": n} for n in range(30_000)], "é": None}).encode()
TEXT = "".join(f"line {n} of a text — é\n" for n in range(9_000)).encode()
BYTES = random.Random(7).randbytes(90_000)
MANY = b"[" + b"1, " * 700_000 + b"1]"
LOOSE = json.dumps([base64.b64encode(random.Random(n).randbytes(30)).decode() for n in range(6_000)]).encode()


def plain(text: str, label: str) -> bytes:
    """The bytes that a copied text stands for."""
    return ast.literal_eval("b" + text) if "as escaped bytes" in label else text.encode()


def answer(command: str) -> bytes:
    """What a command that was copied for a shell prints there."""
    return subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout.removesuffix(b"\n")


def judge(copy: Copy, value: bytes, decoded: bytes, shown: bytes) -> None:
    """Fail unless what a copy holds is what it says of a string."""
    label, text = copy.title, copy.text
    if label.startswith("redis-cli: GET"):
        assert answer(text) == (shown if "GETRANGE" in label else value)
    elif "as JSON with …" in label:
        assert json.loads(text)
        assert "…" in text
    elif label == "all that is in it, as JSON":
        assert "…" not in text
        assert json.loads(text) in (json.loads(decoded), *_parts(json.loads(decoded)))
    elif label.startswith("all of it"):
        assert plain(text, label) == (value if "stored" in label else decoded)
    elif label.startswith(("the first", "bytes ")):
        whole = value if "stored" in label else decoded
        part = plain(text, label)
        assert 0 < len(part) < len(whole)
        assert part == shown if "stored" in label else whole.startswith(part)
        assert copy.note
        assert label.startswith(copy.note.split(",")[0])
    elif label.startswith("line"):
        line = plain(text, label)
        is_part = "as far as it was read" in label
        lines = decoded.split(b"\n")
        assert any(one.startswith(line) or one.endswith(line) for one in lines) if is_part else line in lines
    elif re.match(r"these \d+ bytes", label):
        assert plain(text, label) in decoded
    else:
        assert label.startswith(("value", "name")), label


def _parts(value: object) -> list[object]:
    below = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    return [*below, *(part for one in below for part in _parts(one))]


def rows(visitor: Visitor) -> list[RowItem | None]:
    """Some of the rows that stand for something: the first, the last, and a few between."""
    items = [row.item for row in visitor.pane.body.rows if row.item is not None]
    return [*items[:4], *items[4 :: max(1, len(items) // 5)], *items[-1:], None]


def copies_of(visitor: Visitor, item: RowItem | None, server: Server) -> list[Copy]:
    """What is offered of a row; what would be read first is read at once."""

    def read(make: Callable[[bytes], bytes | Unknown]) -> bytes:
        made = make(bytes(server.client().get(KEY) or b""))  # type: ignore[arg-type]
        assert isinstance(made, bytes)
        return made

    found = value_copies(Target(port=server.port), visitor.pane.value.value, item, read)
    read_first = [one for one in found if one.start is not None]
    there = [one for one in found if one.start is None]
    return [*there, *(bytes_copy(one.title, one.start()) for one in read_first if one.start is not None)]  # type: ignore[arg-type]


STATES = {
    "small JSON": (b'{"a": [1, 2, {"b": null}], "c": "\\u001b"}', None, ()),
    "JSON that is cut": (CUT_JSON, None, ()),
    "JSON that is cut, partly folded": (CUT_JSON, None, ("down", "space")),
    "JSON that is cut, as text": (CUT_JSON, None, ("d", "d", "enter")),
    "the second page of a text": (TEXT, None, ("n",)),
    "a text": (TEXT, None, ()),
    "bytes": (BYTES, None, ()),
    "JSON through layers": (base64.b64encode(gzip.compress(CUT_JSON[:200] + b'"]}')), CUT_JSON[:200] + b'"]}', ()),
    "layers that are cut": (gzip.compress(LOOSE), LOOSE, ()),
    "layers with more in them than is read": (gzip.compress(MANY), MANY, ()),
    "one line": (b"plain", None, ()),
    "found in a text": (TEXT, None, ("slash", *"line 7000", "enter")),
    "an empty string": (b"", None, ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("state", list(STATES))
async def test_what_is_copied_of_a_string_is_what_it_is_called(valkey: Server, tmp_path: Path, state: str) -> None:
    value, decoded, keys = STATES[state]
    valkey.client().set(KEY, value)
    async with visiting(Target(port=valkey.port), tmp_path) as visitor:
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.settled()
        await visitor.press("enter")
        await visitor.until(lambda: visitor.detail.preview is not None, "the value")
        for key in keys:
            await visitor.press(key)
            await visitor.settled()
        shown: ShownValue = visitor.pane.value.value
        stored = known(shown.stored)
        assert value[stored.offset_bytes :].startswith(stored.data)
        labels: list[str] = []
        for item in rows(visitor):
            for copy in copies_of(visitor, item, valkey):
                if copy.title != "name of the key":
                    judge(copy, value, value if decoded is None else decoded, stored.data)
                    labels.append(copy.title)
        assert any(label.startswith("all of it, as it is stored") for label in labels)
        assert shown.is_all_stored or any(label.startswith(("the first", "bytes ")) for label in labels)


@pytest.mark.slow
async def test_the_rest_is_read_before_all_of_it_is_copied(valkey: Server, tmp_path: Path) -> None:
    valkey.client().set(KEY, CUT_JSON)
    async with visiting(Target(port=valkey.port), tmp_path) as visitor:
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.settled()
        await visitor.press("enter", "Y")
        await visitor.until(lambda: isinstance(visitor.app.screen, ChoiceScreen), "the choice")
        await visitor.until_shown("all of it, as it is stored: 546 KiB is read first")
        titles = [str(option.prompt) for option in visitor.app.screen.query_one("OptionList").options]  # type: ignore[attr-defined]
        at = next(at for at, title in enumerate(titles) if "is read first" in title)
        await visitor.press(*("down",) * at, "enter")
        await visitor.until(lambda: visitor.app.clipboard == CUT_JSON.decode(), "all of it")
        await visitor.until_shown("546 KiB, all of it")


@given(st.binary() | st.text().map(str.encode))
def test_a_copied_text_stands_for_its_bytes_and_steers_no_terminal(data: bytes) -> None:
    text = copied_text(data)
    assert text.encode() == data or ast.literal_eval("b" + text) == data
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("text", ["👩\u200d👧", "a\u00a0b", "全角\u3000空白", "\u0645\u06cc\u200c\u062e"])
def test_text_with_joiners_and_spaces_is_copied_as_it_is(text: str) -> None:
    assert copied_text(text.encode()) == text


def _one_key(kind: str, client: redis.Redis) -> None:
    """Write a collection of elements of every sort that copying may take for another one."""
    odd = [b"plain", b"with 'quotes' \"and\" \\", b"\xff\x00\x1b", "日本 e\u0301".encode(), b"", b"two\nlines", b" "]
    for number, value in enumerate(odd):
        writes: dict[str, list[bytes | str | int]] = {
            "hash": ["HSET", KEY, value, value + b"!"],
            "list": ["RPUSH", KEY, value],
            "set": ["SADD", KEY, value],
            "zset": ["ZADD", KEY, f"{number}.5", value],
            "stream": ["XADD", KEY, f"{number + 1}-1", value or b"f", value],
        }
        client.execute_command(*writes[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hash", "list", "set", "zset", "stream"])
async def test_what_is_copied_of_a_row_is_what_the_server_holds(valkey: Server, tmp_path: Path, kind: str) -> None:
    client = valkey.client()
    _one_key(kind, client)
    async with visiting(Target(port=valkey.port), tmp_path) as visitor:
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.settled()
        await visitor.press("enter")
        await visitor.until(lambda: visitor.detail.preview is not None, "the value")
        await visitor.settled()
        items = list(dict.fromkeys(row.item for row in visitor.pane.body.rows if row.item is not None))
        assert len(items) == 7
        for item in items:
            copies = {one.title.split(", as escaped")[0]: one.text for one in copies_of(visitor, item, valkey)}
            copied = {
                title: plain(text, "as escaped bytes" if text.startswith('"') else "") for title, text in copies.items()
            }
            what = {"hash": "value", "list": "item", "stream": "value"}.get(kind, "member")
            assert copied[what] == item.data
            (command,) = (text for title, text in copies.items() if title.startswith("redis-cli"))
            found = answer(command)
            held = {
                "set": b"1",
                "zset": copied.get("score"),
                "stream": b"\n".join(cell for cell in item.cells if isinstance(cell, bytes)),
            }
            assert found == held.get(kind, item.data)


HUGE = 12 << 20


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_enter_reads_items_that_may_be_large_and_shows_the_small_ones(
    valkey: Server, tmp_path: Path, size: tuple[int, int]
) -> None:
    client = valkey.client()
    client.rpush("list", b"first", b"x" * HUGE, b"third")
    async with at_value(valkey, tmp_path, b"list", size=size) as visitor:
        await visitor.until_shown("Too large to read", "Read 1 item: 4.00 MiB on", "Read 3 items: at most all 12.0 MiB")
        assert known(visitor.pane.body.item).kind is ItemKind.OFFER
        await visitor.press("enter")
        await visitor.until_shown("first", "n ›")
        await visitor.press("n")
        await visitor.until_shown("Read 1 item")
        assert known(visitor.detail.preview).offers[0].page.position == 1
        await visitor.press("b")
        await visitor.until_shown("first")
        await visitor.press("n")
        await visitor.until_shown("Read 2 items")
        await visitor.press("down", "enter")
        await visitor.until_shown("third")
        assert "xxxx" in visitor.text()
        visitor.check_painted()


@pytest.mark.slow
async def test_a_large_field_is_read_after_a_question(valkey: Server, tmp_path: Path) -> None:
    valkey.client().hset("hash", mapping={"large": b"x" * HUGE})
    async with at_value(valkey, tmp_path, b"hash") as visitor:
        await visitor.until_shown("(12.0 MiB, not read)")
        await visitor.press("enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, ChoiceScreen), "the question")
        await visitor.until_shown("field large", "Read 12.0 MiB")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "that it is left")
        assert not visitor.pane.value.value.opened
        await visitor.press("enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, ChoiceScreen), "the question")
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.pane.value.value.opened, "the field")
        assert visitor.pane.value.value.opened[0].document.data == b"x" * HUGE


@pytest.mark.slow
async def test_a_key_that_vanishes_or_changes_while_one_works_with_it(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    client.hset("key", mapping={f"field{n}": n for n in range(1_000)})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("key")
        await visitor.press("enter")
        view = visitor.pane.body
        await visitor.until(lambda: visitor.app.focused is view and view.item is not None, "the value")
        client.delete("key")
        await visitor.press("n")
        await visitor.until_shown("gone")
        client.rpush("key", "a", "b")
        await visitor.press("r")
        await visitor.until_shown("1–2 of 2")
        assert view.item is not None
        visitor.check_harmless()


async def test_a_key_that_was_replaced_by_another_type_shows_that_one(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    client.rpush("jobs", *range(300))
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.go("jobs")
        await visitor.press("right")
        await visitor.until(lambda: visitor.app.focused is visitor.pane.body, "the value")
        client.delete("jobs")
        client.hset("jobs", mapping={"status": "moved"})
        await visitor.press("n")
        await visitor.until(lambda: visitor.detail.facts is not None and visitor.detail.facts.type == b"hash", "a hash")
        await visitor.until_shown("status", "moved")


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
        document = known(visitor.pane.value.value.document)
        assert document.found.has_failed
        assert visitor.browse.settings.settings.decoders == {}
        first = next(row for row in visitor.pane.body.rows if row.line and "gzip" in row.line[-1].text)
        assert document.found.notes[-1].startswith("".join(span.text for span in first.line).strip())


def test_a_place_is_the_pattern_of_a_key_and_a_field() -> None:
    decoders = ChosenDecoders(SettingsFile(), Separators((b":",)))
    assert decoders.place(b"user:42:profile", b"string") == "user:<id>:profile"
    assert decoders.place(b"user:\xff:\n", b"string") == r'"user:\xff:\n"'
    assert decoders.place(b"q:7", b"list", RowItem(ItemKind.ELEMENT)) == "q:<id> › element"
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
