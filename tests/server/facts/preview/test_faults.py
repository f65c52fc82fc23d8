"""Keys that vanish or change, commands that are denied, connections that end."""

from __future__ import annotations

import pytest

from rtui.analysis.facts import Reason
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.page import PreviewKind
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.errors import ConnectionLost
from tests.proxy import DelayProxy
from tests.server.every_type import VECTOR_SETS, fill
from tests.server.facts.preview.pages import looked_at
from tests.server.targets import connected, target_of
from tests.server.watched import Watched
from tests.servers import Server


async def test_a_key_that_vanishes_before_its_preview_is_gone(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        facts = [await key_facts(connection, key) for key in types]
        client.flushall()
        for one in facts:
            shown = await key_preview(connection, one)
            assert shown.kind is PreviewKind.NOTHING
            assert shown.refusal is not None
            assert shown.refusal.reason is Reason.GONE


async def test_a_key_that_was_gone_already_says_so_without_asking(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, b"absent")
        watched.runs.clear()
        shown = await key_preview(watched, facts)
    assert shown.refusal is not None
    assert shown.refusal.reason is Reason.GONE
    assert watched.runs == []


async def test_a_key_whose_name_another_one_has_taken_is_gone_and_says_so(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        facts = [await key_facts(connection, key) for key in types]
        client.flushall()
        for key, kind in types.items():
            client.execute_command(*(("SET", key, 1) if kind != b"string" else ("RPUSH", key, 1)))
        for one in facts:
            shown = await key_preview(connection, one)
            assert shown.refusal is not None, one.key
            assert shown.refusal.reason is Reason.GONE
            assert "the name now belongs to another key" in shown.refusal.detail


async def test_a_key_that_vanishes_within_a_preview_is_no_error(valkey: Server) -> None:
    client = valkey.client()
    for write in (1, 2):
        client.hset("key", mapping={f"field{index}": "x" * 100 for index in range(30)})
        async with connected(target_of(valkey)) as connection:
            watched = Watched(connection)
            facts = await key_facts(watched, b"key")
            watched.before[2 + write] = lambda: client.delete("key")
            shown = await key_preview(watched, facts)
        assert not watched.before
        assert shown.kind is PreviewKind.HASH
        assert len(shown.rows) == 30
        assert b"x" not in b"".join(row[1] for row in shown.rows if isinstance(row[1], bytes))


@pytest.mark.parametrize("kind", ["string", "list"])
async def test_a_page_behind_the_end_of_a_value_that_shrank_says_so(valkey: Server, kind: str) -> None:
    client = valkey.client()
    client.execute_command(*(["SET", "key", "x" * 9_000] if kind == "string" else ["RPUSH", "key", *range(300)]))
    async with connected(target_of(valkey)) as connection:
        facts = await key_facts(connection, b"key")
        following = (await key_preview(connection, facts)).next_page
        assert following is not None
        client.delete("key")
        client.execute_command(*(["SET", "key", "x"] if kind == "string" else ["RPUSH", "key", 1]))
        shown = await key_preview(connection, facts, following)
    assert shown.refusal is None
    assert any("shorter" in note for note in shown.notes)
    assert shown.page.previous is not None


READS = {
    b"string:raw": "getrange",
    b"hash:table": "hscan",
    b"list:long": "lrange",
    b"set:table": "sscan",
    b"zset:skiplist": "zrange",
    b"stream:plain": "xrevrange",
}


@pytest.mark.parametrize("key", READS)
async def test_a_denied_read_is_a_refusal_of_the_value_alone(valkey: Server, key: bytes) -> None:
    client = valkey.client()
    fill(valkey, client)
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", f"-{READS[key]}")
    async with connected(target_of(valkey, user="some", password=Secret("word"))) as connection:
        capabilities = Capabilities()
        shown = await looked_at(connection, key, capabilities)
        assert shown.refusal is not None
        assert shown.refusal.reason is Reason.DENIED
        watched = Watched(connection)
        again = await looked_at(watched, key, capabilities)
        assert again.refusal == shown.refusal
        assert not any(READS[key].upper() in run for run in watched.runs)


DETAILS = ("hstrlen", "hmget", "hpttl", "xinfo|stream", "xinfo|groups", "xinfo|consumers", "xpending")
"""Commands that only add something to a preview."""


@pytest.mark.parametrize("rule", DETAILS)
async def test_a_denied_detail_costs_that_detail(valkey: Server, rule: str) -> None:
    client = valkey.client()
    fill(valkey, client)
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", f"-{rule}")
    async with connected(target_of(valkey, user="some", password=Secret("word"))) as connection:
        for key in (b"hash:table", b"stream:groups"):
            shown = await looked_at(connection, key)
            assert shown.refusal is None
            assert shown.rows


@VECTOR_SETS
async def test_a_vector_set_needs_a_right_of_its_own(server: Server) -> None:
    client = server.client()
    client.execute_command("VADD", "key", "VALUES", 2, 1, 1, "element")
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "%R~*", "+@all")
    async with connected(target_of(server, user="some", password=Secret("word"))) as connection:
        shown = await looked_at(connection, b"key")
    assert shown.kind is PreviewKind.DESCRIPTION
    assert shown.refusal is not None
    assert shown.refusal.reason is Reason.DENIED


async def test_a_connection_cut_within_a_reply_is_lost_and_comes_back(server: Server) -> None:
    server.client().set("key", b"x" * 60_000)
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        facts = await key_facts(connection, b"key")
        proxy.cut_after(10_000)
        with pytest.raises(ConnectionLost):
            await key_preview(connection, facts, window_bytes=65_536)
        connection.retry_now()
        await connection.online()
        shown = await key_preview(connection, facts, window_bytes=65_536)
        assert shown.window is not None
        assert len(shown.window.data) == 60_000
