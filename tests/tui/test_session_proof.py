"""A whole session of the interface on every server version: what it sent, what it needed, what it left behind."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

import pytest

from rtui.server.facts.preview.page import PreviewKind
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import Secret, find_spec
from rtui.server.wire.identity import NoTouch
from tests.server import every_type
from tests.server.every_type import fill, lists_names
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.tour import BYSTANDERS, PLANTED_IDLE_S, WORD, Tour, minimal_user, plant, plant_idle, tour
from tests.tui.visiting import Visitor, check_text, visiting

NOT_FILLED = ("denied", "Not permitted", "no such command", "failed", "refused", "not asked")
"""Words of panels that miss something."""

ALWAYS_ASKED = frozenset(
    b"CLIENT PING INFO DBSIZE SCAN TYPE PTTL EXISTS MEMORY OBJECT STRLEN GETRANGE HLEN HSCAN LLEN LRANGE SCARD SSCAN"
    b" ZCARD ZRANGE XLEN XINFO XREVRANGE XPENDING".split()
)
"""What such a session has to ask on every version, or it was none."""


def _toured(server: Server, folder: Path, what: str, user: tuple[str, Secret] | None = None) -> Tour:
    """Take a tour in which the keyspace is large enough for a sample."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtui.server.browsing.first_rows.SAMPLE_FROM", BYSTANDERS)
        patch.setattr("rtui.server.browsing.first_rows.SAMPLE_KEYS", 100)
        return asyncio.run(tour(server, folder, what=what, user=user))


@pytest.mark.slow
def test_a_session_of_anybody(server: Server, tmp_path: Path) -> None:
    """On a server that counts each access of a key, and by a user without limits."""
    server.admin.config_set("maxmemory-policy", "allkeys-lfu")
    server.admin.config_set("lfu-log-factor", 0)
    server.admin.config_set("lfu-decay-time", 0)
    plant(server)
    done = _toured(server, tmp_path, "FREQ")
    done.check_what_was_sent()
    _check_that_all_was_used(done)
    _check_that_panels_are_filled(done)
    _check_that_previews_tell_of_touching(done)
    changed = {key for key, counter in done.after.items() if counter != done.before[key]}
    _check_what_was_touched(done, changed)


@pytest.mark.slow
def test_a_session_of_the_minimal_user(server: Server, tmp_path: Path) -> None:
    """By the user that `rtui acl` prints, on a server whose keys nobody has used for long."""
    plant(server)
    plant_idle(server)
    user = minimal_user(server)
    server.admin.execute_command("ACL", "LOG", "RESET")
    done = _toured(server, tmp_path, "IDLETIME", user)
    assert done.refused == []
    assert [argv for argv in done.wire if argv[0] == b"AUTH"] == [[b"AUTH", b"rtui", WORD.encode()]] * 2
    done.check_what_was_sent()
    _check_that_all_was_used(done)
    _check_that_panels_are_filled(done)
    _check_that_previews_tell_of_touching(done)
    assert min(done.before.values()) >= PLANTED_IDLE_S
    _check_what_was_touched(done, {key for key, idle_s in done.after.items() if idle_s < PLANTED_IDLE_S})


def _check_that_all_was_used(done: Tour) -> None:
    """The session was none of a few commands that would prove little, and all of them are in the command log."""
    assert done.logged == Counter(spec.name for argv in done.wire if (spec := find_spec(argv)) is not None)
    assert {argv[0] for argv in done.wire} >= ALWAYS_ASKED
    assert done.sampled > 0
    kinds = {preview.kind for preview in done.previews.values()}
    assert kinds >= set(PreviewKind) - {PreviewKind.NOTHING, PreviewKind.ARRAY, PreviewKind.DESCRIPTION}
    if done.server.product == "redis" and done.server.version >= (8, 8):
        assert kinds >= {PreviewKind.ARRAY, PreviewKind.DESCRIPTION}
    assert len(done.copied) == 4
    for text in done.copied:
        check_text(text)


def _check_that_panels_are_filled(done: Tour) -> None:
    for key, preview in done.previews.items():
        assert preview.refusal is None, (key, preview.refusal)
    for key, text in done.texts.items():
        for word in NOT_FILLED:
            assert word not in text, (key, text)
    for text in done.screens.values():
        title = text.splitlines()[0]
        for word in (f"{done.server.product} {'.'.join(map(str, done.server.version))}", "keys", "mem", "READ-ONLY"):
            assert word in title


def _check_what_was_touched(done: Tour, touched: set[bytes]) -> None:
    """Where looking leaves no trace nothing was touched, elsewhere just what was read, and nothing for being listed."""
    assert done.before.keys() - done.after.keys() <= {b"awkward:values:soon-gone"}
    read = _keys_read(done.wire)
    assert done.previews.keys() <= read
    assert not [key for key in read if key.startswith(b"bystander:")]
    assert len([key for key in done.after if key.startswith(b"bystander:")]) == BYSTANDERS
    assert touched == (set() if every_type.has_no_touch(done.server) else read & done.after.keys())


def _check_that_previews_tell_of_touching(done: Tour) -> None:
    touches = not every_type.has_no_touch(done.server)
    assert done.no_touch is (NoTouch.UNSUPPORTED if touches else NoTouch.ON)
    for key, preview in done.previews.items():
        assert preview.touched is touches, key
    assert ("counted as an access" in done.texts[b"string:int"]) is touches
    assert ("NO-TOUCH not supported" in done.screens["end"].splitlines()[0]) is touches


def _keys_read(commands: Iterable[list[bytes]]) -> set[bytes]:
    """The keys that a command was sent for which counts as an access where there is no NO-TOUCH."""
    names = {spec.name.split()[0].encode() for spec in TABLE if spec.touches}
    return {argv[2 if argv[0] == b"XINFO" else 1] for argv in commands if argv[0] in names}


LOGIN_WORD: Final = "a-word-for-tests"


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
    return Secret(LOGIN_WORD)


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
