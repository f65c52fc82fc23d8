"""Text that tries something, thrown at every place that shows data: nothing of it reaches the terminal as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import redis
from textual.filter import LineFilter

from rtui.keyspace.rows.rows import RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.kit.clipboard import OSC52_BYTES, SelectScreen
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import Visitor, check_text, visiting
from tests.wire import Listener, answering

PAYLOADS: Final = (
    b"a[/]b", b"[@click=app.quit]x[/]", b"[bold red]y", b"[a='b", b"$var ${x} %s {0}", b"\x1b[31mred",
    b"\x1b]0;title\x07", b"\x1b]52;c;cm0gLXJmIC8K\x1b\\", b"\x1b]8;;http://example.org\x1b\\link", b"\xc2\x9b31m",
    b"\x9b31m", b"\x90q\x9c", b"\xe2\x80\xaegnirts", b"\xe2\x81\xa6isolated", b"zero\xe2\x80\x8bwidth",
    b"line\nbreak\r\nand\ttab", b"line\xe2\x80\xa8separator", b"nul\x00nul", b"\xff\xfe\xfd", b"\xed\xa0\x80",
    b"a" + "\u0301".encode() * 60, "\u0301".encode(), b"\xf3\xa0\x81\x81tag", b"back\\slash\\x1b \"quotes\" 'more'",
)  # fmt: skip
"""Markup, escape sequences, C1 controls, bidi, line ends, NUL, what is no UTF-8, marks, tags."""

LONG: Final = b"\x1b[1m" * 250_000
"""A name of a megabyte."""

ONE_LINE: Final = b" ".join(PAYLOADS).replace(b"\r", b"").replace(b"\n", b"")
"""All of it where a line end would end the message."""


class Netless(RtuiApp):
    """The interface without its last net, so that what is safe is so by itself."""

    def get_line_filters(self) -> list[LineFilter]:
        return []


def netless(target: Target, **options: object) -> RtuiApp:
    return Netless(BrowseOptions(target=target, **options))  # type: ignore[arg-type]


def plant(client: redis.Redis) -> None:
    """Use each payload as a name of everything that has a name, and as a value of everything that has values."""
    pipeline = client.pipeline(transaction=False)
    for number, text in enumerate(PAYLOADS):
        pipeline.set(b"s:" + text, text)
        pipeline.set(text + b":n" + text + b":" + text, text)
        pipeline.hset("values:hash", text, text)
        pipeline.rpush("values:list", text)
        pipeline.sadd("values:set", text)
        pipeline.zadd("values:zset", {text: number})
        pipeline.xadd("values:stream", {text: text})
        if number % 6 == 0:
            pipeline.xgroup_create("values:stream", text, "0")
            pipeline.execute_command("XREADGROUP", "GROUP", text, text, "COUNT", 1, "STREAMS", "values:stream", ">")
    pipeline.set("values:json", b'{"a\\u001b[31m": "[/]\xe2\x80\xae\xc2\x9b31m", "b": "[@click=app.quit]x[/]"}')
    pipeline.set("values:all", b"\n".join(PAYLOADS))
    pipeline.set(LONG, LONG)
    pipeline.execute()


@pytest.mark.slow
async def test_names_and_values(valkey: Server, tmp_path: Path) -> None:
    plant(valkey.client())
    target = target_of(valkey)
    async with visiting(target, tmp_path, app=netless(target), size=(140, 40)) as visitor:
        await visitor.whole()
        await visitor.settled()
        kinds = set()
        while True:
            if visitor.row.kind is RowKind.NAMESPACE and visitor.row.depth < 2:
                await visitor.open()
            visitor.check_painted()
            if visitor.detail.preview is not None:
                kinds.add(visitor.detail.preview.kind.value)
                if visitor.row.key().startswith(b"values:"):
                    visitor.check_harmless()
                if visitor.row.key() == b"values:stream":
                    await _see_all_of_the_body(visitor)
            if not await visitor.down():
                break
        assert kinds >= {"text", "hash", "list", "set", "zset", "stream"}


async def _see_all_of_the_body(visitor: Visitor) -> None:
    await visitor.press("enter")
    await visitor.until(lambda: visitor.app.focused is visitor.pane.body, "the detail")
    while visitor.pane.body.scroll_offset.y < visitor.pane.body.max_scroll_y:
        before = visitor.pane.body.scroll_offset.y
        await visitor.press("pagedown")
        await visitor.until(lambda before=before: visitor.pane.body.scroll_offset.y > before, "the next screenful")  # type: ignore[misc]
        visitor.check_harmless()
    await visitor.press("escape")
    await visitor.until(lambda: visitor.app.focused is visitor.tree, "the tree")


@pytest.mark.slow
async def test_what_is_made_of_a_name(valkey: Server, tmp_path: Path) -> None:
    """Slot, jump, copies and what is said of them, help and palette over it, in small and large."""
    client = valkey.client()
    target = target_of(valkey)
    for name in (ONE_LINE.replace(b":", b""), LONG, b"a\r\nb"):
        client.flushall()
        client.set(name, name)
        async with visiting(target, tmp_path, app=netless(target), size=(100, 40)) as visitor:
            await visitor.whole()
            await visitor.until(lambda: visitor.tree.cursor is not None, "a row")
            await visitor.settled()
            is_too_long = len(name) > OSC52_BYTES
            copied = "the limit is" if is_too_long else "Sent to the terminal"
            for keys, shown in (("2", "CRC16"), ("1", "Value"), ("y", copied), ("i", "commands")):
                await visitor.press(keys)
                await visitor.until_shown(shown)
                visitor.check_harmless()
                if not visitor.is_browsing:
                    await visitor.press("escape")
                    await visitor.until(lambda: visitor.is_browsing, "the tree")
            check_text(visitor.app.clipboard)
            for opening in ("Y", "question_mark", "ctrl+p", "c"):
                await visitor.press(opening)
                await visitor.until(lambda: not visitor.is_browsing, opening)
                visitor.check_harmless()
                if opening == "Y":
                    await visitor.press("down", "down", "enter")
                if opening == "Y" and is_too_long:
                    await visitor.until(lambda: isinstance(visitor.app.screen, SelectScreen), "the text")
                    visitor.check_harmless()
                if opening != "Y" or is_too_long:
                    await visitor.press("escape")
                await visitor.until(lambda: visitor.is_browsing, "the tree")
                visitor.check_harmless()
            check_text(visitor.app.clipboard)
            await visitor.pilot.resize_terminal(60, 20)
            visitor.check_harmless()


@pytest.mark.slow
async def test_what_is_typed(valkey: Server, tmp_path: Path) -> None:
    """A line that is typed shows what was typed, so this is for the net to catch; then the server is asked for it."""
    client = valkey.client()
    plant(client)
    text = ONE_LINE.decode("utf-8", "surrogateescape").replace("*", "")[:300]
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        for typed in (text, "[@click=app.quit]*", "\x1b[31m"):
            await visitor.press("slash")
            await visitor.until(lambda: visitor.app.focused is visitor.browse.filter_input, "the filter line")
            await visitor.paste(typed)
            await visitor.until(lambda: visitor.browse.filter_input.value, "the text")
            visitor.check_harmless()
            await visitor.press("enter")
            await visitor.until(lambda: visitor.app.focused is visitor.tree, "the tree")
            await visitor.until(lambda: visitor.session.status.complete, "the end of the scan")
            visitor.check_harmless()
            await visitor.press("escape")
            await visitor.whole()


async def test_what_it_was_started_with(valkey: Server, tmp_path: Path) -> None:
    text = ONE_LINE.decode("utf-8", "surrogateescape")
    target = target_of(valkey, name=text)
    plant(valkey.client())
    app = netless(target, theme=text, separators=(b"\x1b[", b"[/]"), match=b"*[^b]*\x1b*")
    async with visiting(target, tmp_path, app=app) as visitor:
        await visitor.whole()
        await visitor.until_shown("there is no theme called")
        visitor.check_harmless()


@pytest.mark.parametrize("target", [
    Target(socket_path="/tmp/" + ONE_LINE.decode("utf-8", "surrogateescape").replace("\x00", "")),  # noqa: S108 - nowhere
    Target(socket_path="/nowhere/[@click=app.quit]x[/]\x1b[31m"),
    Target(host="\x1b[31m[@click=app.quit]x[/].invalid"),
], ids=["all", "path", "host"])  # fmt: skip
async def test_a_target_that_is_not_there(tmp_path: Path, target: Target) -> None:
    async with visiting(target, tmp_path, app=netless(target)) as visitor:
        await visitor.until_shown("Try again")
        visitor.check_harmless()


@asynccontextmanager
async def hostile_server(at_once: bytes | None = None) -> AsyncIterator[Target]:
    """A server whose every word tries something; with `at_once` that is all it ever says."""
    word = b"$%d\r\n%b\r\n" % (len(ONE_LINE), ONE_LINE)
    info = b"redis_version:%b\r\nrole:%b\r\nos:%b\r\nrun_id:%b\r\nmaxmemory_policy:%b\r\n" % ((ONE_LINE,) * 5)
    known = {
        b"PING": b"+PONG\r\n",
        b"INFO": b"$%d\r\n%b\r\n" % (len(info), info),
        b"SCAN": b"*2\r\n$1\r\n0\r\n*2\r\n" + word + b"$5\r\nplain\r\n",
        b"TYPE": b"+" + ONE_LINE + b"\r\n",
        b"OBJECT": word,
        b"CLIENT": b"+OK\r\n",
    }

    async with Listener(answering(lambda argv: at_once or known.get(argv[0], b"-ERR " + ONE_LINE + b"\r\n"))) as server:
        yield server.target


async def test_what_a_server_says_of_itself_and_in_errors(tmp_path: Path) -> None:
    async with hostile_server() as target, visiting(target, tmp_path, app=netless(target)) as visitor:
        await visitor.connected()
        await visitor.until(lambda: visitor.tree.cursor is not None, "a row")
        await visitor.settled()
        visitor.check_harmless()
        while await visitor.down():
            visitor.check_harmless()
        await visitor.press("r", "R")
        await visitor.settled()
        visitor.check_harmless()


@pytest.mark.parametrize(
    "code", [b"ERR", b"NOAUTH", b"NOPERM", b"LOADING", b"MISCONF", b"\x1b[31m", b"DENIED"], ids=repr
)
async def test_what_a_server_says_when_it_refuses(tmp_path: Path, code: bytes) -> None:
    async with (
        hostile_server(b"-" + code + b" " + ONE_LINE + b"\r\n") as target,
        visiting(target, tmp_path, app=netless(target)) as visitor,
    ):
        expected = "is loading" if code == b"LOADING" else "Try again"
        await visitor.until(lambda: visitor.is_browsing or expected in visitor.text(), "an answer")
        visitor.check_harmless()


def test_the_payloads_try_something() -> None:
    """A check that lets all of it through would prove nothing."""
    hostile = [text for text in PAYLOADS if text.isascii() and not text.decode().isprintable()]
    assert len(hostile) > 5
    for text in hostile:
        with pytest.raises(pytest.fail.Exception):
            check_text(SafeText(text.decode()))
