"""A key whose row is known costs one round trip or two; what a key points to, and who should point to it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from typing import Literal

import pytest

from rtui.analysis.facts import KeyFacts, RowFacts, Unknown
from rtui.registry.load import read_registry
from rtui.server.facts.first_answers import MAX_AHEAD_BYTES, SIZE_HOLDS_S, TYPE_HOLDS_S, KnownKey
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.facts.keys import are_there, presence_query
from rtui.server.facts.preview.page import Preview
from rtui.server.facts.preview.value_reader import ValueReader
from rtui.server.facts.references import KeyReferences, Link, key_references
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.own_reads import IDLE_NOTE
from tests.proxy import DelayProxy
from tests.server.every_type import fill
from tests.server.facts.test_key_facts import age
from tests.server.targets import connected, target_of
from tests.servers import Server

FAR_S = 0.005
"""Half of a round trip."""

ONE_TRIP = (
    b"string:embstr", b"string:binary", b"list:short", b"set:ints", b"set:words", b"zset:compact", b"hash:compact",
)  # fmt: skip
"""Keys whose rows are enough to ask for their first page."""


UNSTEADY = (b"hash:table", b"hash:template", b"hash:expires")
"""Keys of which a page is a random sample on some versions, or which change by themselves."""


async def details(
    connection: Connection, key: bytes, row: RowFacts | None, *, later_s: float = 0.0
) -> tuple[KeyFacts, Preview]:
    """What is shown of a key, by a row that was fetched so long before."""
    known = None if row is None else KnownKey(row, row.asked_at_s + later_s)
    capabilities = Capabilities()
    facts = await key_facts(connection, key, capabilities, known=known)
    return facts, await key_preview(connection, facts, capabilities=capabilities, known=known)


async def trips(proxy: DelayProxy, connection: Connection, row: RowFacts | None, *, later_s: float = 0.0) -> int:
    """Count the round trips of the details of a key."""
    assert row is not None
    (counted,) = proxy.round_trips
    before = counted.count
    facts, preview = await details(connection, row.key, row, later_s=later_s)
    assert not facts.is_gone
    assert preview.refusal is None
    return counted.count - before


def timeless(facts: KeyFacts) -> KeyFacts:
    """The facts without what depends on the moment or on earlier reads."""
    return replace(facts, asked_at_s=0.0, idle_s=0, ttl_ms=0, notes=())


@pytest.mark.parametrize("server", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_details_of_small_known_keys_take_one_round_trip_and_are_the_same(server: Server) -> None:
    kinds = fill(server, server.client())
    keys = sorted(key for key, kind in kinds.items() if kind != b"stream" and key not in UNSTEADY)
    async with (
        DelayProxy(server.port, FAR_S) as proxy,
        connected(target_of(server, host="127.0.0.1", port=proxy.port, tls=None)) as connection,
    ):
        for row in await row_facts(connection, ONE_TRIP):
            assert await trips(proxy, connection, row) == 1, row.key
        rows = {row.key: row for row in await row_facts(connection, keys, with_more=True)}
        assert await trips(proxy, connection, rows[b"list:long"]) == 2
    async with connected(target_of(server)) as connection:
        for key, row in rows.items():
            facts, preview = await details(connection, key, row)
            plain, shown = await details(connection, key, None)
            assert (timeless(facts), preview) == (timeless(plain), shown)


async def test_old_rows_and_large_values_are_asked_step_by_step(redis70: Server) -> None:
    client = redis70.client()
    client.rpush("list", *range(10))
    client.rpush("large", *(b"%0*d" % (MAX_AHEAD_BYTES // 50, number) for number in range(100)))
    async with (
        DelayProxy(redis70.port, FAR_S) as proxy,
        connected(target_of(redis70, host="127.0.0.1", port=proxy.port)) as connection,
    ):
        row, large = await row_facts(connection, [b"list", b"large"])
        assert await trips(proxy, connection, large) == 2
        assert await trips(proxy, connection, row, later_s=SIZE_HOLDS_S + 1) == 2
        assert await trips(proxy, connection, row, later_s=TYPE_HOLDS_S + 1) == 3


async def test_a_key_that_has_become_another_one_is_shown_as_that(redis70: Server) -> None:
    client = redis70.client()
    client.rpush("key", *range(10))
    client.set("gone", 1)
    async with connected(target_of(redis70)) as connection:
        row, gone = await row_facts(connection, [b"key", b"gone"])
        client.delete("key", "gone")
        client.zadd("key", {"member": 7})
        facts, preview = await details(connection, b"key", row)
        assert (facts.type, facts.length) == (b"zset", 1)
        assert isinstance(facts.memory_bytes, int)
        assert preview.rows == ((0, b"member", 7.0),)
        assert (await details(connection, b"gone", gone))[0].is_gone


@pytest.mark.parametrize("denied", ["lrange", "llen", "memory", "type"])
async def test_what_is_denied_is_missed_as_without_a_row(redis70: Server, denied: str) -> None:
    client = redis70.client()
    client.rpush("key", *range(10))
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", f"-{denied}")
    async with connected(target_of(redis70)) as connection:
        (row,) = await row_facts(connection, [b"key"])
    async with connected(target_of(redis70, user="some", password=Secret("word"))) as connection:
        facts, preview = await details(connection, b"key", row)
    async with connected(target_of(redis70, user="some", password=Secret("word"))) as connection:
        plain, shown = await details(connection, b"key", None)
    assert (timeless(facts), preview) == (timeless(plain), shown)


async def test_who_moves_on_at_once_still_learns_when_a_key_was_used(redis70: Server) -> None:
    redis70.client().set("key", "value")
    age(redis70, b"key", 230)
    async with (
        DelayProxy(redis70.port) as proxy,
        connected(target_of(redis70, host="127.0.0.1", port=proxy.port)) as connection,
    ):
        (row,) = await row_facts(connection, [b"key"])
        proxy.hold_replies()
        task = asyncio.create_task(key_facts(connection, b"key", known=KnownKey(row, row.asked_at_s)))
        await proxy.wait_held(1)
        task.cancel()
        proxy.release_replies()
        facts = await key_facts(connection, b"key")
    assert isinstance(facts.idle_s, int)
    assert facts.idle_s >= 230
    assert facts.notes == (IDLE_NOTE,)


REGISTRY = read_registry(
    """
[[pattern]]
pattern = "user:<userId>:orders"
references = [{ from = "member", to = "order:<member>", twin = "order:index:user:<userId>" }]
[[pattern]]
pattern = "user:list"
references = [{ from = "member", to = "user:<member>" }]
[[pattern]]
pattern = "order:index:user:<userId>"
[[pattern]]
pattern = "order:<id>"
placeholders = { id = "int" }
references = [{ from = "json:userId", to = "user:<value>" }, { from = "json:lines[].dish", to = "dish:<value>" }]
[[pattern]]
pattern = "user:index:email:<email>"
references = [{ from = "value", to = "user:<value>" }]
[[pattern]]
pattern = "session:<id>"
references = [
    { from = "field:userId", to = "user:<value>" },
    { from = "fields", to = "f:<field>" },
    { from = "key", to = "lock:<id>" },
]
[[pattern]]
pattern = "queue:<name>"
references = [{ from = "member", to = "<member>" }]
[[pattern]]
pattern = "user:<id>"
"""
)
LONG = 300


def plant(server: Server) -> None:
    admin = server.admin
    admin.sadd("user:5:orders", "17", "19")
    admin.sadd("user:list", "5", "6")
    admin.set("order:17", json.dumps({"userId": 5, "lines": [{"dish": "a"}, {"dish": "b"}], "note": "x" * 9_000}))
    admin.set("user:index:email:ann@example.com", "5")
    admin.set("user:index:email:bob@example.com", "7" * 70_000)
    admin.hset("session:x", mapping={"userId": "6"})
    admin.hset("session:long", mapping={f"n{at}": "v" * 100 for at in range(LONG)})
    admin.hset("session:long", "userId", "5")
    admin.rpush("queue:all", "order:17", "gone:1")
    admin.sadd("queue:many", *(f"k:{at}" for at in range(LONG)))
    admin.set("order:18", "{no json")
    for name in ("user:5", "dish:a", "lock:x"):
        admin.set(name, "{}")


async def found(connection: Connection, key: bytes, capabilities: Capabilities | None = None) -> KeyReferences:
    capabilities = Capabilities() if capabilities is None else capabilities
    facts = await key_facts(connection, key, capabilities)
    preview = await key_preview(connection, facts, capabilities=capabilities)
    querier = Querier(connection, capabilities)
    return await key_references(ValueReader(querier, facts), REGISTRY, preview, partial(are_there, querier))


def pairs(links: tuple[Link, ...]) -> set[tuple[bytes, str, object]]:
    return {(one.key, one.source, one.is_there) for one in links}


async def test_the_references_of_keys_of_each_type(valkey: Server) -> None:
    plant(valkey)
    async with connected(target_of(valkey)) as connection:
        orders = await found(connection, b"user:5:orders")
        assert pairs(orders.outgoing) == {(b"order:17", "member", True), (b"order:19", "member", False)}
        assert (orders.dangling, pairs(orders.twins)) == (1, {(b"order:index:user:5", "twin", False)})

        order = await found(connection, b"order:17")
        assert pairs(order.outgoing) == {
            (b"user:5", "json:userId", True),
            (b"dish:a", "json:lines[].dish", True),
            (b"dish:b", "json:lines[].dish", False),
        }
        assert (await found(connection, b"order:18")).notes == ("the value is not JSON",)

        user = await found(connection, b"user:5")
        assert (b"user:list", "member", True) in pairs(user.incoming)
        assert {one.value for one in user.incoming} == {b"5"}
        assert not user.is_declared

        session = await found(connection, b"session:x")
        assert pairs(session.outgoing) == {
            (b"user:6", "field:userId", False),
            (b"f:userId", "fields", False),
            (b"lock:x", "key", True),
        }
        long = await found(connection, b"session:long")
        assert (b"user:5", "field:userId", True) in pairs(long.outgoing)
        assert "of the page of the value that is shown" in long.notes

        queue = await found(connection, b"queue:all")
        assert [(one.key, one.is_there) for one in queue.outgoing] == [(b"order:17", True), (b"gone:1", False)]
        email = await found(connection, b"user:index:email:ann@example.com")
        assert pairs(email.outgoing) == {(b"user:5", "value", True)}
        long_email = await found(connection, b"user:index:email:bob@example.com")
        assert (long_email.outgoing, long_email.notes) == ((), ("the value is too long",))
        assert (await found(connection, b"nobody:knows")).outgoing == ()

        capabilities = Capabilities()
        names = [b"k:%d" % at for at in range(250)] + [b"user:5", b"x" * 70_000]
        there = await are_there(Querier(connection, capabilities), names)
        assert [name for name, one in there.items() if one is True] == [b"user:5"]
        assert isinstance(there[b"x" * 70_000], Unknown)


async def test_what_may_not_be_asked_is_not_known(valkey: Server) -> None:
    plant(valkey)
    valkey.admin.acl_setuser("looker", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-exists"], reset=True)
    async with connected(target_of(valkey, user="looker", password=None)) as connection:
        links = (await found(connection, b"user:5:orders")).outgoing
        assert len(links) == 2
        assert all(isinstance(one.is_there, Unknown) for one in links)


@pytest.mark.parametrize(
    ("product", "version", "command"),
    [("redis", (5, 0, 14), "TYPE"), ("redis", (6, 2, 0), "EXISTS"), ("valkey", (8, 0), "EXISTS"), (None, None, "TYPE")],
)
def test_what_asks_is_no_use_of_the_key(
    product: Literal["redis", "valkey"] | None, version: tuple[int, ...] | None, command: str
) -> None:
    assert presence_query(ServerIdentity(product=product, version=version)).spec.name == command
