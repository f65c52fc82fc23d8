"""What an operator wants to know at night, and how many keypresses it takes beside the text that is typed.

The ten tasks are done one after the other by one user on a real server, each from the tree; `TASKS` has the counts. A
keyspace of 100,000 keys or more asks for one Enter more before a search, when it has said what that costs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from msgspec import structs

from rtui.keyspace.slots import key_slot
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.facts.preview.page import Meaning
from rtui.server.search.search import Stage
from rtui.server.wire.target import parse_target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.value_view import ValueView
from rtui.tui.find import FindScreen
from rtui.tui.goto import GotoScreen
from rtui.tui.server import ServerScreen
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting

MOST: Final = 6
"""Keypresses beside typed text."""

DAY_S: Final = 86_400


def plant(server: Server) -> None:
    """Fill a keyspace in which everything that is asked for is there."""
    pipeline = server.client().pipeline(transaction=False)
    for number in range(200):
        pipeline.set(f"shop:cache:product:{number}", "x", ex=None if number % 4 else 3600)
        pipeline.set(f"shop:session:{number}", "y", ex=120 if number % 10 == 0 else 7200)
    pipeline.set("shop:session:abc", json.dumps({"user": 42, "cart": ["A-1", "B-7"]}), ex=7200)
    pipeline.set("shop:user:8c1f77aa:profile", "z")
    for start in range(0, 50_000, 5_000):
        pipeline.hset("shop:big", mapping={f"field:{n}": n for n in range(start, start + 5_000)})
    pipeline.hset("it's a key", mapping={"a": 1, "b": 2, "$(id) 'c'": "third", "d": 4})
    for number in range(2):
        pipeline.set(f"{{campaign42}}:{number}", "z")
    for number in range(500):
        pipeline.set(f"lock:{number}", "")
    pipeline.execute()


class Operator:
    """Counts keypresses; text is typed in one go."""

    def __init__(self, visitor: Visitor, server: Server) -> None:
        self.visitor = visitor
        self.server = server
        self.presses = 0

    async def press(self, *keys: str) -> None:
        self.presses += len(keys)
        await self.visitor.press(*keys)

    async def query(self, text: str) -> None:
        """Type a query or a name, and end it with Enter."""
        visitor = self.visitor
        await self.press("slash")
        await visitor.until(lambda: visitor.app.focused is visitor.browse.filter_input, "the line to type in")
        await visitor.paste(text)
        await visitor.until(lambda: visitor.browse.filter_input.value == text, "the typed text")
        await self.press("enter")

    async def found(self) -> set[bytes]:
        """Wait for the end of a search, and return what it has found."""
        visitor = self.visitor

        def is_over() -> bool:
            screen = visitor.app.screen
            return (
                isinstance(screen, FindScreen)
                and screen.search.stage is Stage.OVER
                and len(screen.rows) == screen.search.count
            )

        await visitor.until(is_over, "the end of the search")
        screen = visitor.app.screen
        assert isinstance(screen, FindScreen)
        return {record.key for record in screen.rows.shown()}

    @property
    def value(self) -> ValueView:
        """The rows of the value."""
        return self.visitor.pane.body

    async def into_value(self, name: str) -> None:
        """Go to a key by its name, and into its value."""
        visitor, key = self.visitor, name.encode()
        await self.query(name)
        await visitor.until(lambda: visitor.is_at(key) and visitor.detail.preview, "the key")
        await self.press("enter")
        await visitor.until(lambda: visitor.app.focused is self.value and self.value.item is not None, "the value")

    async def asked_every_key(self) -> None:
        """Analyse, to the end."""
        visitor = self.visitor
        await self.press("a")
        await visitor.until(lambda: isinstance(visitor.app.screen, AnalyseScreen), "the analysis")
        before = visitor.session.analysis.report
        await self.press("r")
        await visitor.until(lambda: visitor.session.analysis.report not in (None, before), "figures")
        await visitor.until(lambda: not visitor.session.analysis.status.is_under_way, "the end of the analysis")
        screen = visitor.app.screen
        assert isinstance(screen, AnalyseScreen)
        await visitor.until(lambda: screen.report is not None and screen.report is screen.source.report, "its figures")

    async def leave(self) -> None:
        """Go back to the tree as it was at first; uncounted."""
        visitor = self.visitor
        while not (
            visitor.is_browsing
            and visitor.app.focused is visitor.tree
            and visitor.browse.tree_pane.names.needle is None
        ):
            screen, focused = visitor.app.screen, visitor.app.focused
            await visitor.press("escape")
            await visitor.pilot.pause()
            assert (screen, focused) != (visitor.app.screen, visitor.app.focused) or visitor.is_browsing
        await visitor.press("home")


async def biggest_namespace(user: Operator) -> None:
    await user.asked_every_key()
    await user.press("escape")
    await user.visitor.until(lambda: user.visitor.is_browsing, "the tree")
    await user.press("greater_than_sign", "greater_than_sign", "home")
    await user.visitor.until(lambda: user.visitor.row.name == b"shop", "the namespace with most bytes")
    first = re.compile(r"Biggest keys.*\n.*│ +big +hash")
    await user.visitor.until(lambda: first.search(user.visitor.text()), "its biggest key")


async def without_ttl(user: Operator) -> None:
    await user.query("in:shop:cache ttl:none")
    assert await user.found() == {b"shop:cache:product:%d" % number for number in range(200) if number % 4}


async def one_session(user: Operator) -> None:
    await user.into_value("shop:session:abc")
    await user.visitor.until_shown('"user": 42', '"A-1"', "JSON")


async def soon_gone(user: Operator) -> None:
    await user.query("ttl<10m")
    assert await user.found() == {b"shop:session:%d" % number for number in range(0, 200, 10)}


async def third_field(user: Operator) -> None:
    await user.into_value("it's a key")
    await user.press("down", "down")
    item = user.value
    await user.visitor.until(lambda: item.item and item.item.cell(Meaning.VALUE) == b"third", "the third field")
    await user.press("C")
    await user.visitor.until(lambda: "HGET" in user.visitor.app.clipboard, "the copy")
    words = shlex.split(user.visitor.app.clipboard)
    assert words[-3:] == ["HGET", r'"it\x27s a key"', r'"$(id) \x27c\x27"']


async def one_slot(user: Operator) -> None:
    await user.query(f"slot:{key_slot(b'{campaign42}:0')}")
    assert await user.found() >= {b"{campaign42}:0", b"{campaign42}:1"}


async def since_yesterday(user: Operator) -> None:
    session = user.visitor.session
    assert session.analysed is not None
    today = session.analysed.report
    kept = KeptReports(session.target.label, session.target.db)
    for file in kept.files():
        file.path.unlink()
    head = structs.replace(today.head, made_at_s=today.head.made_at_s - DAY_S)
    kept.keep(structs.replace(today, head=head))
    user.server.client().mset({f"lock:new:{number}": "x" for number in range(40)})
    await user.asked_every_key()
    await user.press("D")
    await user.visitor.until_shown("▲ 40")


async def piece_of_a_name(user: Operator) -> None:
    visitor = user.visitor
    await user.press("slash")
    await visitor.until(lambda: visitor.app.focused is visitor.browse.filter_input, "the line to type in")
    await visitor.paste("8c1f")
    names = visitor.browse.tree_pane.names
    await visitor.until(lambda: names.needle == b"8c1f" and not names.is_searching, "the end of the search")
    await user.press("down", "end")
    await visitor.until(lambda: visitor.detail.key == b"shop:user:8c1f77aa:profile", "the key")


async def one_field(user: Operator) -> None:
    visitor = user.visitor
    await user.into_value("shop:big")
    await user.press("slash")
    await visitor.until(lambda: visitor.app.focused is visitor.pane.value.prompt, "the line to type in")
    await visitor.paste("field:49999")
    await user.press("enter")
    await visitor.until(lambda: user.value.item and user.value.item.name == b"field:49999", "the field")
    await visitor.until_shown("49999", "1 match ·")


async def who_sends_keys(user: Operator) -> None:
    visitor = user.visitor
    report = user.server.client()
    report.client_setname("nightly-report")
    report.keys("shop:session:*")
    await user.press("colon")
    await visitor.until(lambda: isinstance(visitor.app.screen, GotoScreen), "the line")
    await visitor.paste("clients")
    await visitor.until_shown("Clients of the server")
    await user.press("enter")
    await visitor.until(lambda: isinstance(visitor.app.screen, ServerScreen), "the clients")
    await visitor.until_shown("Clients sending KEYS")
    await user.press("left_square_bracket")
    await visitor.until_shown("Clients sending KEYS 1", "nightly-report")


class Task(NamedTuple):
    """A question, how it is answered, and in how many keypresses."""

    question: str
    steps: Callable[[Operator], Awaitable[None]]
    presses: int
    keys: str


TASKS: Final = (
    Task("which namespace eats the memory, and its biggest key", biggest_namespace, 6, "a r Escape > > Home"),
    Task("all keys without TTL under a cache", without_ttl, 2, "/ in:… ttl:none Enter"),
    Task("one session's content", one_session, 3, "/ name Enter, Enter"),
    Task("what expires in ten minutes", soon_gone, 2, "/ ttl<10m Enter"),
    Task("the third field as a command", third_field, 6, "/ name Enter, Enter ↓ ↓ C"),
    Task("two keys in one slot", one_slot, 2, "/ slot:… Enter"),
    Task("what changed since yesterday", since_yesterday, 3, "a r D"),
    Task("a key by a piece of its name", piece_of_a_name, 3, "/ piece ↓ End"),
    Task("a field in a hash of 50,000", one_field, 5, "/ name Enter, Enter / field Enter"),
    Task("who sends KEYS", who_sends_keys, 3, ": clients Enter ["),
)


@pytest.mark.slow
async def test_the_ten_tasks(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with visiting(parse_target(valkey.url), tmp_path, keep=True) as visitor:
        await visitor.whole()
        user, counted = Operator(visitor, valkey), {}
        for task in TASKS:
            user.presses = 0
            await task.steps(user)
            counted[task.question] = user.presses
            visitor.check_painted()
            await user.leave()
    assert counted == {task.question: task.presses for task in TASKS}
    assert max(counted.values()) <= MOST
