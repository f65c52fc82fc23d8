"""What a key points to, by the page of its value that is read, and who should point to it."""

from __future__ import annotations

import json
from functools import partial
from typing import Literal

import pytest

from rtui.analysis.facts import Unknown
from rtui.registry.load import read_registry
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.keys import are_there, presence_query
from rtui.server.facts.preview.value_reader import ValueReader
from rtui.server.facts.references import KeyReferences, Link, key_references
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import ServerIdentity
from tests.server.targets import connected, target_of
from tests.servers import Server

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
