"""A key whose row is known takes one round trip or two, and its details are the same as without the row."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rtui.analysis.facts import KeyFacts, RowFacts
from rtui.server.facts.first_answers import MAX_AHEAD_BYTES, SIZE_HOLDS_S, TYPE_HOLDS_S, KnownKey
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.facts.preview.page import Preview
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.server.wire.own_reads import IDLE_NOTE
from tests.proxy import DelayProxy
from tests.server.every_type import fill
from tests.server.facts.test_key_facts import age
from tests.server.targets import connected, target_of
from tests.servers import Server

FAR_S = 0.005
"""Half of a round trip."""

ONE_TRIP = (
    b"string:embstr",
    b"string:binary",
    b"list:short",
    b"set:ints",
    b"set:words",
    b"zset:compact",
    b"hash:compact",
)
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
