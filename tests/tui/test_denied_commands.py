"""Commands that the user is not allowed, one at a time: the session goes on, and the panel names what is missing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

import pytest

from rtui.server.guard.command import Secret
from tests.server.every_type import fill, lists_names
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

WORD: Final = "a-word-for-tests"


@dataclass(frozen=True, slots=True)
class Missing:
    """A command that is taken away, the key whose panel misses it, and what that panel says."""

    command: str
    key: str
    says: str


FACTS: Final = (
    Missing("type", "list:short", "type      denied"),
    Missing("pttl", "list:short", "TTL       denied"),
    Missing("memory", "list:short", "memory    denied"),
    Missing("object", "list:short", "encoding  denied"),
    Missing("object", "list:short", "idle      denied"),
    Missing("strlen", "string:raw", "length    denied"),
    Missing("hlen", "hash:compact", "length    denied"),
    Missing("llen", "list:short", "length    denied"),
    Missing("scard", "set:words", "length    denied"),
    Missing("zcard", "zset:compact", "length    denied"),
    Missing("xlen", "stream:plain", "length    denied"),
)
"""What the head of the panel misses."""

VALUES: Final = (
    Missing("getrange", "string:raw", "Not permitted"),
    Missing("hscan", "hash:table", "Not permitted"),
    Missing("lrange", "list:short", "Not permitted"),
    Missing("sscan", "set:table", "Not permitted"),
    Missing("zrange", "zset:compact", "Not permitted"),
    Missing("xrevrange", "stream:groups", "Not permitted"),
    Missing("xinfo", "stream:groups", ""),
    Missing("xpending", "stream:groups", ""),
    Missing("hstrlen", "hash:long", ""),
    Missing("hmget", "hash:long", ""),
)
"""What the body of the panel misses; without a text to be found the value is shown as far as it can be."""


def user(server: Server, *rules: str) -> Secret:
    """Make the user, who may do everything but what the rules take away."""
    server.admin.execute_command("ACL", "SETUSER", "some", "reset", "on", f">{WORD}", "~*", "+@all", *rules)
    return Secret(WORD)


async def look(visitor: Visitor, key: str) -> str:
    """Go to a key, or look at it again, and give what its panel says."""
    visitor.session.capabilities.forget()
    visitor.session.connection.forget_denied()
    if visitor.detail.key != key.encode():
        await visitor.go(key)
    since_s = time.time()

    def is_asked_again() -> bool:
        facts = visitor.detail.facts
        return facts is not None and facts.asked_at_s >= since_s

    await visitor.press("r")
    await visitor.until(is_asked_again, "another look")
    await visitor.settled()
    return visitor.text(visitor.pane)


@pytest.fixture(params=["redis62", "redis810", "valkey"])
def some_server(request: pytest.FixtureRequest) -> Server:
    """The oldest and the newest of each product."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.mark.slow
async def test_each_missing_command_is_named_and_the_session_goes_on(some_server: Server, tmp_path: Path) -> None:
    client = some_server.client()
    fill(some_server, client)
    target = target_of(some_server, user="some", password=user(some_server))
    async with visiting(target, tmp_path, size=(130, 30)) as visitor:
        await visitor.whole()
        for missing in sorted((*FACTS, *VALUES), key=attrgetter("key")):
            if visitor.detail.key != missing.key.encode():
                assert "denied" not in await look(visitor, missing.key), missing
            user(some_server, f"-{missing.command}")
            text = await look(visitor, missing.key)
            user(some_server)
            is_used = missing.command != "hscan" or lists_names(some_server)
            if missing.says and is_used:
                assert missing.says in text, (missing, text)
                assert missing.command in text.lower(), (missing, text)
            assert " 0 " not in text.splitlines()[2], (missing, text)
        visitor.check_harmless()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (("-info",), "keys"),
        (("-dbsize",), "keys"),
        (("-client",), "NO-TOUCH denied"),
        (("-info", "-dbsize", "-client", "-memory", "-object", "-command", "-hello"), "NO-TOUCH denied"),
    ],
    ids=["info", "dbsize", "client", "most"],
)
async def test_what_the_start_may_lack(valkey: Server, tmp_path: Path, rules: tuple[str, ...], says: str) -> None:
    fill(valkey, valkey.client())
    target = target_of(valkey, user="some", password=user(valkey, *rules))
    async with visiting(target, tmp_path) as visitor:
        await visitor.whole()
        await visitor.until_shown("string", "hash", "complete", says)
        title = visitor.text().splitlines()[0]
        assert " 0 keys" not in title
        assert "mem 0" not in title
        await visitor.go("list:short")
        text = visitor.text(visitor.pane)
        assert "list" in text
        assert ("memory    denied" in text) is ("-memory" in rules)


async def test_a_user_who_may_not_scan_is_told_so(valkey: Server, tmp_path: Path) -> None:
    fill(valkey, valkey.client())
    target = target_of(valkey, user="some", password=user(valkey, "-scan"))
    async with visiting(target, tmp_path) as visitor:
        await visitor.connected()
        await visitor.until_shown("The scan failed", "scan")
        await visitor.filter("list:short")
        await visitor.until_shown("list:short", "listpack", "5 items")
        user(valkey)
        await visitor.press("R")
        await visitor.whole()
