"""A whole session of the interface on every server version: what it sent, what it needed, what it left behind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from rtui.server.facts.preview.page import PreviewKind
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import Secret, find_spec
from rtui.server.wire.identity import NoTouch
from tests.server import every_type
from tests.servers import Server
from tests.tui.tour import BYSTANDERS, PLANTED_IDLE_S, WORD, Tour, minimal_user, plant, plant_idle, tour
from tests.tui.visiting import check_text

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
