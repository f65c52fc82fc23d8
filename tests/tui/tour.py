"""One long session in which everything is used once, and all that can be known of it afterwards."""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from click.testing import CliRunner

from rtui.cli.allowed import acl_command
from rtui.demo.keyspaces import awkward
from rtui.keyspace.rows.rows import RowKind
from rtui.server.facts.preview.page import Preview
from rtui.server.guard.command import Secret, find_spec
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.wire.identity import NoTouch
from rtui.server.wire.target import Target
from rtui.tui.help import HelpScreen
from rtui.tui.kit.choice import ChoiceScreen, SwitchScreen
from tests.conftest import known
from tests.monitor import Recorded, Recorder, escapes_quotes
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.guard.harmless import is_harmless
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

BYSTANDERS: Final = 200
"""Keys that are listed and never gone to."""

WORD: Final = "a-word-for-tests"
"""The password of the minimal user."""

PLANTED_IDLE_S: Final = 100_000
"""For so long nobody has used a key, as far as the server knows."""

SIZE: Final = (130, 24)
"""A small terminal is painted soon."""

NOT_MONITORED: Final = frozenset({b"AUTH", b"HELLO", b"CLIENT", b"CONFIG"})
"""What MONITOR does not tell, besides commands that they do not know: those are tried on the probe's key."""

NOT_WALKED: Final = frozenset({b"bystander", b"names", b"tags", b"deep", b"long"})
"""Namespaces that the walk leaves closed: many keys of one type."""

SHORT: Final = NOT_WALKED | {b"awkward"}
"""What a short walk leaves closed: it goes over an ordinary key of each type and encoding, and those at the top."""

WALKED: Final = ("redis-6.2", "redis-8.10", "valkey-9.1")
"""Servers on which a user without a name walks over everything: the oldest, and the newest of each product."""


@dataclass(slots=True)
class Witnessed:
    """What a session did to a server."""

    server: Server
    wire: list[list[bytes]] = field(default_factory=list)
    """Every command, as it went over the wire."""
    seen: list[Recorded] = field(default_factory=list)
    """Every command from the network, as the server tells another client."""
    refused: list[object] = field(default_factory=list)
    """The server's log of what its users were not allowed."""
    before: dict[bytes, int] = field(default_factory=dict)
    """Idle time or frequency of each key."""
    after: dict[bytes, int] = field(default_factory=dict)
    copied: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def visited(
        self, folder: Path, what: str, user: tuple[str, Secret] | None, size: tuple[int, int]
    ) -> AsyncIterator[tuple[Visitor, DelayProxy]]:
        """A user at this server, watched at the server and on the wire; `what` is FREQ or IDLETIME."""
        self.before = await asyncio.to_thread(usage, self.server, what)
        name, password = user if user is not None else (None, None)
        with Recorder(self.server) as recorder:
            async with DelayProxy(self.server.port) as proxy:
                target = Target(port=proxy.port, user=name, password=password)
                async with visiting(target, folder, size=size) as visitor:
                    yield visitor, proxy
                self.wire = proxy.commands()
        self.seen = [one for one in recorder.commands if one.client.startswith("127.0.0.1:")]
        self.after = await asyncio.to_thread(usage, self.server, what)
        self.refused = list(self.server.admin.execute_command("ACL", "LOG"))

    async def copy(self, visitor: Visitor, is_back: Callable[[], bool]) -> None:
        """Copy what is under the cursor in every way, and keep it."""
        await visitor.press("y")
        await visitor.until(lambda: visitor.app.clipboard, "a copy")
        self.copied.append(visitor.app.clipboard)
        for steps in range(3):
            await visitor.press("Y")
            await visitor.until(lambda: isinstance(visitor.app.screen, ChoiceScreen), "what can be copied")
            visitor.app._clipboard = ""
            await visitor.press(*["down"] * steps, "enter")
            await visitor.until(lambda: is_back() and visitor.app.clipboard, "a copy")
            self.copied.append(visitor.app.clipboard)

    def check_what_was_sent(self, untold: frozenset[bytes] = NOT_MONITORED) -> None:
        """Everything on the wire is on the list and harmless, and MONITOR at the server has told of nothing else."""
        for argv in self.wire:
            assert find_spec(argv) is not None, argv
            assert is_harmless(argv), argv
        sent = Counter(map(tuple, self.wire))
        # the others are redacted, or not told
        seen = Counter(recorded.argv for recorded in self.seen if recorded.name not in {"AUTH", "HELLO"})
        if escapes_quotes(self.server):
            assert seen <= sent
            assert {argv[0] for argv in sent - seen if PROBE_KEY not in argv} <= untold
        assert {argv[0] for argv in seen} <= {argv[0] for argv in sent}
        assert seen.total() > 0.95 * sent.total()


@dataclass(slots=True)
class Tour(Witnessed):
    """What a session did to a server, and what it showed."""

    texts: dict[bytes, str] = field(default_factory=dict)
    """What the details of each key said."""
    previews: dict[bytes, Preview] = field(default_factory=dict)
    screens: dict[str, str] = field(default_factory=dict)
    """What stood on the screen at some moments."""
    no_touch: NoTouch = NoTouch.UNSUPPORTED
    sampled: int = 0
    logged: Counter[str] = field(default_factory=Counter)
    """How often each command was sent, by the command log."""
    closed: frozenset[bytes] = NOT_WALKED
    """Namespaces that were left closed."""


def plant(server: Server) -> None:
    """A key of every type, names and values that break careless tools, and some in which nobody takes an interest."""
    client = server.client()
    every_type.fill(server, client)
    pipeline = client.pipeline(transaction=False)
    for group in awkward.write_groups(Random(1)):
        for write in (*group.own, *group.shared):
            pipeline.execute_command(*write)
    for number in range(BYSTANDERS):
        pipeline.set(b"bystander:%d" % number, b"x")
    pipeline.execute(raise_on_error=False)
    client.close()


def plant_idle(server: Server) -> None:
    """Let nobody have used any key for long."""
    admin = server.admin
    keys = list(admin.scan_iter(count=1000))
    pipeline = admin.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command("DUMP", key)
        pipeline.pttl(key)
    replies = pipeline.execute()
    for key, payload, ttl_ms in zip(keys, replies[::2], replies[1::2], strict=True):
        pipeline.execute_command("RESTORE", key, max(ttl_ms, 0), payload, "REPLACE", "IDLETIME", PLANTED_IDLE_S)
    pipeline.execute()


def usage(server: Server, what: str) -> dict[bytes, int]:
    """Idle time or frequency of every key; asking changes neither."""
    admin = server.admin
    keys = list(admin.scan_iter(count=1000))
    pipeline = admin.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command("OBJECT", what, key)
    replies = pipeline.execute(raise_on_error=False)
    return {key: reply for key, reply in zip(keys, replies, strict=True) if isinstance(reply, int)}


def minimal_user(server: Server) -> tuple[str, Secret]:
    """Make the user that `rtui acl` prints for this version."""
    result = CliRunner().invoke(acl_command, ["--for", server.name])
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    server.admin.execute_command(*[f">{WORD}" if word == ">PASSWORD" else word for word in shlex.split(line)])
    return "rtui", Secret(WORD)


async def tour(server: Server, folder: Path, *, what: str, user: tuple[str, Secret] | None = None) -> Tour:
    """Take the whole tour, its walk a long one where that says more than a short one; `what` is FREQ or IDLETIME."""
    closed = NOT_WALKED if user is None and server.name in WALKED else SHORT
    done = Tour(server, closed=closed)
    async with done.visited(folder, what, user, SIZE) as (visitor, proxy):
        await _everything(visitor, proxy, done)
        for entry in visitor.session.log.entries:
            done.logged.update(entry.counts)
        assert not visitor.session.log.dropped
    return done


async def _everything(visitor: Visitor, proxy: DelayProxy, done: Tour) -> None:
    await visitor.whole()
    await _hold_the_scan(visitor, proxy)
    done.screens["overview"] = visitor.text()
    await _walk(visitor, done)
    await _look_at_bystanders(visitor)
    await _arrange(visitor)
    await _filter(visitor)
    await _read(visitor)
    await _ask_for_help(visitor)
    done.no_touch = visitor.session.connection.no_touch
    done.sampled = visitor.session.status.sampled
    done.screens["end"] = visitor.text()
    await done.copy(visitor, lambda: visitor.is_browsing)
    await visitor.press("q")
    await visitor.until(lambda: not visitor.app.is_running, "the end")


async def _hold_the_scan(visitor: Visitor, proxy: DelayProxy) -> None:
    """Scan again, slowly enough to pause it, to go on and to change the pace."""
    proxy.hold_replies()
    await visitor.press("R")
    await visitor.until(lambda: not visitor.session.store.complete, "a new scan")
    await visitor.press("p", "plus", "plus", "minus")
    await visitor.until(lambda: visitor.session.control.pace is Pace.NORMAL, "change the pace")
    proxy.release_replies()
    await visitor.until(lambda: visitor.session.status.progress.state is ScanState.PAUSED, "a pause")
    await visitor.until_shown("paused", "pace normal")
    await visitor.press("p")
    await visitor.whole()
    await visitor.press("i")
    await visitor.until_shown("commands")


async def _walk(visitor: Visitor, done: Tour) -> None:
    """Go over every key of every type, and turn the pages of its value."""
    await visitor.press("home")
    await visitor.until(lambda: visitor.tree.cursor_line == 0, "the first row")
    await visitor.settled()
    while True:
        if visitor.row.kind is RowKind.KEY:
            await _look(visitor, done)
        elif visitor.row.name not in done.closed:
            await visitor.open()
        if not await visitor.down():
            return


async def _look(visitor: Visitor, done: Tour) -> None:
    detail = visitor.detail
    assert detail.preview is not None, detail.failure
    assert detail.key is not None
    done.previews[detail.key] = detail.preview
    done.texts[detail.key] = visitor.text(visitor.pane)
    for turn in ("n", "b"):
        preview = known(visitor.detail.preview)
        if (preview.next_page if turn == "n" else preview.page.previous) is not None:
            await visitor.press(turn)
            await visitor.until(partial(_is_turned, visitor, preview), "another page")
            await visitor.settled()


def _is_turned(visitor: Visitor, before: Preview) -> bool:
    return visitor.detail.preview is not before


async def _look_at_bystanders(visitor: Visitor) -> None:
    """List a namespace, its facts included, without going to any of its keys."""
    await visitor.go_to_namespace(b"bystander")
    await visitor.open()
    await visitor.until_shown("string         none")
    await visitor.press("left")


async def _arrange(visitor: Visitor) -> None:
    """Sort, choose columns, jump, page."""
    await visitor.press("greater_than_sign", "S", "less_than_sign", "c")
    await visitor.until(lambda: isinstance(visitor.app.screen, SwitchScreen), "the columns")
    await visitor.press("enter", "enter", "escape")
    await visitor.until(lambda: visitor.is_browsing, "the tree")
    await visitor.press("home", "f")
    await visitor.until_shown("jump to _")
    await visitor.press(*"str", "enter")
    await visitor.until(lambda: visitor.row.name == b"string", "the jump")
    await visitor.press("pagedown", "pageup", "right_curly_bracket", "left_curly_bracket", "end", "u", "home")
    await visitor.settled()


async def _filter(visitor: Visitor) -> None:
    """Filter by a glob, by a part of a name, and by a name."""
    await visitor.filter("hash:*")
    await visitor.until(lambda: visitor.session.status.match == b"hash:*", "the filter")
    await visitor.whole()
    await visitor.press("escape")
    await visitor.until(lambda: visitor.session.status.match is None, "no filter")
    await visitor.whole()
    await visitor.filter("skip")
    await visitor.until_shown("Keys matching skip", "skiplist")
    await visitor.press("escape")
    await visitor.go("hash:table")
    await visitor.settled()


async def _read(visitor: Visitor) -> None:
    """Use the detail panel."""
    await visitor.press("enter")
    await visitor.until(lambda: visitor.app.focused is visitor.pane.body, "the detail")
    await visitor.press("2")
    await visitor.until_shown("bytes hashed")
    await visitor.press("1", "pagedown", "end", "home", "left_square_bracket", "right_square_bracket", "r")
    await visitor.settled()
    await visitor.press("escape")
    await visitor.until(lambda: visitor.app.focused is visitor.tree, "the tree")


async def _ask_for_help(visitor: Visitor) -> None:
    await visitor.press("question_mark")
    await visitor.until(lambda: isinstance(visitor.app.screen, HelpScreen), "the help")
    await visitor.press("escape", "ctrl+p")
    await visitor.until(lambda: not visitor.is_browsing, "the palette")
    await visitor.press("escape", "t")
    await visitor.until(lambda: not visitor.is_browsing, "the themes")
    await visitor.press("escape")
    await visitor.until(lambda: visitor.is_browsing, "the tree")
