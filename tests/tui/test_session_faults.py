"""What goes wrong between rtui and the server: the screen says so, and goes on when it can."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from rich.text import Text

from rtui.keyspace.text.display import HOSTILE
from rtui.keyspace.text.glob import PatternError
from rtui.server.options import BrowseOptions
from rtui.server.wire.connection import Lost, Online
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.find import FindScreen
from rtui.tui.kit.command_screen import failure_notice, failure_text
from tests.conftest import Pool
from tests.proxy import DelayProxy
from tests.server.every_type import fill
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import Visitor, visiting

MANY = 3_000


def plant(server: Server, prefix: str = "user") -> None:
    server.admin.mset({f"{prefix}:{number}": "x" for number in range(MANY)})


def is_lost(visitor: Visitor) -> bool:
    return isinstance(visitor.session.status.link, Lost) and "connection lost" in visitor.text()


def is_online(visitor: Visitor) -> bool:
    return isinstance(visitor.session.status.link, Online) and "connection lost" not in visitor.text()


@pytest.mark.sampled("some_server")
async def test_cut_while_it_scans(some_server: Server, tmp_path: Path) -> None:
    plant(some_server)
    async with DelayProxy(some_server.port) as proxy, visiting(Target(port=proxy.port), tmp_path) as visitor:
        await visitor.whole()
        proxy.cut_after(20_000)
        await visitor.press("R")
        await visitor.until(lambda: not visitor.session.status.complete, "a new scan")
        await visitor.whole()
        assert proxy.accepted > 2
        assert visitor.session.store.keys == MANY
        await visitor.until_shown("3,000")
        proxy.hold_replies()
        await visitor.press("R")
        await visitor.until(lambda: not visitor.session.status.complete, "a new scan")
        await proxy.refuse()
        proxy.cut()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        await visitor.until(lambda: re.search(r"try ([2-9]|[0-9]{2})", visitor.text()), "more than one try")
        await proxy.resume()
        await visitor.whole()
        await visitor.until(lambda: is_online(visitor), "the return")
        assert visitor.session.store.keys == MANY


@pytest.mark.sampled("some_server")
async def test_cut_while_a_value_is_read(some_server: Server, tmp_path: Path) -> None:
    fill(some_server, some_server.client())
    async with DelayProxy(some_server.port) as proxy, visiting(Target(port=proxy.port), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("list:long")
        await visitor.settled()
        proxy.hold_replies()
        await visitor.press("n")
        await visitor.until(lambda: visitor.detail.is_fetching_page, "a page on its way")
        await proxy.wait_held(1)
        await proxy.refuse()
        proxy.cut()
        await visitor.until(lambda: visitor.detail.failure is not None, "why there is no page")
        await visitor.until(lambda: is_lost(visitor), "the loss")
        before = visitor.session.store.root
        await visitor.press("up", "down", "y", "2", "1", "greater_than_sign", "question_mark", "escape", "p", "R")
        await proxy.resume()
        await visitor.until(lambda: is_online(visitor), "the return")
        await visitor.until(lambda: visitor.session.store.root is not before, "another scan")
        await visitor.whole()
        await visitor.go("hash:compact")
        await visitor.until_shown("field4")


@pytest.mark.sampled("some_server")
async def test_restarted(some_server: Server, tmp_path: Path) -> None:
    plant(some_server, "before")
    target = Target(port=some_server.port)
    async with visiting(target, tmp_path) as visitor:
        await visitor.whole()
        await visitor.until_shown("before")
        some_server.stop()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        some_server.start()
        plant(some_server, "after")
        await visitor.until(lambda: is_online(visitor), "the return")
        await visitor.press("R")
        await visitor.whole()
        await visitor.until_shown("after")
        assert "before" not in visitor.text(visitor.tree)


async def test_far_away(valkey: Server, tmp_path: Path) -> None:
    fill(valkey, valkey.client())
    async with DelayProxy(valkey.port, 0.05) as proxy, visiting(Target(port=proxy.port), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("list:long")
        await visitor.until_shown("100 of 300")
        for _ in range(4):
            await visitor.press("down", "up")
        await visitor.settled()


async def test_silent_and_back(valkey: Server, tmp_path: Path) -> None:
    """A server that hangs: keys still move the cursor, and what was asked comes when it goes on."""
    fill(valkey, valkey.client())
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("hash:compact")
        valkey.freeze()
        try:
            await visitor.press("down")
            await visitor.until(
                lambda: visitor.detail.key != b"hash:compact" and visitor.detail.preview is None, "a move"
            )
            line = visitor.tree.cursor_line
            await visitor.press("up", "up")
            await visitor.until(lambda: visitor.tree.cursor_line != line, "another move")
        finally:
            valkey.thaw()
        await visitor.settled()


async def test_it_says_that_the_server_loads(pool: Pool, tmp_path: Path) -> None:
    server = pool.take("loading", "redis-7.0")
    plant(server)
    server.admin.save()
    server.stop()
    server.args = ("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
    server.launch()
    try:
        async with visiting(target_of(server), tmp_path) as visitor:
            await visitor.until(lambda: "loading" in visitor.text() or "Try again" in visitor.text(), "an answer")
            while "Try again" in visitor.text():
                await visitor.press("enter")
                await visitor.until(lambda: "Connecting" not in visitor.text(), "an answer")
            await visitor.until_shown("is loading its data")
            hasty = server.client(username="default")
            await asyncio.to_thread(hasty.config_set, "key-load-delay", 0)
            hasty.close()
            await visitor.whole()
            await visitor.until_shown("3,000")
    finally:
        server.args = ()
        server.restart()


async def test_nobody_there_then_somebody(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with DelayProxy(valkey.port) as proxy:
        await proxy.refuse()
        async with visiting(Target(port=proxy.port), tmp_path) as visitor:
            await visitor.until_shown("Try again")
            await proxy.resume()
            await visitor.press("enter")
            await visitor.whole()


def names(visitor: Visitor) -> str:
    return visitor.text(visitor.tree)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_restarted_empty_and_what_was_seen_before_says_so(
    some_server: Server, tmp_path: Path, size: tuple[int, int]
) -> None:
    """Nothing on the screen is told as if it held: neither counts, nor facts, nor the error of the time between."""
    plant(some_server)
    some_server.admin.set("plain", "x")
    async with visiting(target_of(some_server), tmp_path, size=size) as visitor:
        await visitor.whole()
        await visitor.go("plain")
        await visitor.settled()
        some_server.stop()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        await visitor.press("r")
        await visitor.until(lambda: visitor.detail.failure is not None, "why there is no answer")
        some_server.start()
        await visitor.until(lambda: is_online(visitor), "the return")
        await visitor.until_shown("The server was restarted.", "Press R to rescan.", "outdated", "0 keys")
        assert "complete" not in visitor.text()
        await visitor.until(lambda: visitor.detail.failure is None, "an answer instead of the error")
        await visitor.until(lambda: "gone" in names(visitor), "the key that is gone")
        await visitor.press("R")
        await visitor.whole()
        await visitor.until_shown("db0 is empty")
        assert "restarted" not in visitor.text()


async def test_a_lost_connection_that_comes_back_clears_its_error(valkey: Server, tmp_path: Path) -> None:
    fill(valkey, valkey.client())
    async with DelayProxy(valkey.port) as proxy, visiting(Target(port=proxy.port), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("hash:compact")
        await visitor.settled()
        await proxy.refuse()
        proxy.cut()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        await visitor.press("r")
        await visitor.until(lambda: visitor.detail.failure is not None, "why there is no answer")
        await proxy.resume()
        await visitor.until(lambda: is_online(visitor), "the return")
        await visitor.until_shown("field4", "complete")
        assert visitor.detail.failure is None
        assert "restarted" not in visitor.text()


async def type_query(user: Visitor, text: str) -> None:
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
        await user.until_shown("Keys matching user")
        await user.press("escape", "colon")
        await user.until_shown("enter opens")
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


HELD = "s3cret\x1b]0;owned\x07"


def fail(password: str) -> None:
    raise KeyError(password)


def caught() -> Exception:
    try:
        fail(HELD)
    except KeyError as error:
        return error
    raise AssertionError


def test_a_failure_says_where_but_no_value() -> None:
    text = failure_text(caught())
    assert "KeyError" in text
    assert "in fail" in text
    assert "s3cret" not in text
    assert all(not HOSTILE.search(line) for line in text.split("\n"))


async def test_the_application_ends_with_those_words_and_without_a_traceback() -> None:
    app = RtuiApp(BrowseOptions(), FixedSession())
    left: list[object] = []
    with pytest.raises(KeyError):
        async with app.run_test() as pilot:
            await pilot.pause()
            app._handle_exception(caught())
            left = list(app._exit_renderables)
    assert [type(one) for one in left] == [Text]
    assert "s3cret" not in str(left[0])
    assert app.return_code == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionLost("the server closed the connection"), "the server closed the connection"),
        (PatternError("a pattern has at most 16 stars"), "a pattern has at most 16 stars"),
        (KeyError(HELD), "a fault of rtui itself (KeyError)."),
    ],
)
def test_a_notice_repeats_only_words_meant_to_be_read(error: Exception, text: str) -> None:
    assert failure_notice(error) == text
