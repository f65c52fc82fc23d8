"""What is copied of a value is what its label says, in every state, by what the server holds."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Unknown
from rtui.server.wire.target import Target
from rtui.tui.browse.shown_value import ShownValue
from rtui.tui.browse.value_copies import bytes_copy, copied_text, value_copies
from rtui.tui.browse.value_view import ItemKind, RowItem
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.clipboard import Copy
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.browse.test_decoders import at_value
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
        found = answer(text)
        assert found == (shown if "GETRANGE" in label else value)
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
        stored = shown.stored
        assert stored is not None
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
        item = visitor.pane.body.item
        assert item is not None
        assert item.kind is ItemKind.OFFER
        await visitor.press("enter")
        await visitor.until_shown("first", "n ›")
        await visitor.press("n")
        await visitor.until_shown("Read 1 item")
        assert visitor.detail.preview is not None
        assert visitor.detail.preview.offers[0].page.position == 1
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
