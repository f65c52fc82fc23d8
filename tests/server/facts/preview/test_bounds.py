"""However large a value is, a look at it brings little and says what it left out."""

from __future__ import annotations

import pytest
import redis

from rtui.analysis.facts import Reason
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.hashes import VALUES_BYTES
from rtui.server.facts.preview.page import Preview, PreviewKind, Unread
from rtui.server.guard.closed_list import MAX_RANDOM
from rtui.server.wire.capability import Capabilities
from tests.server.every_type import lists_names
from tests.server.facts.preview.pages import all_pages
from tests.server.targets import connected, target_of
from tests.server.watched import Watched
from tests.servers import Server

HUGE = 8_000_000
"""Bytes of a value that must stay on the server."""


async def looked(server: Server, key: bytes) -> tuple[Preview, int]:
    """The first page, and the bytes that facts and page brought."""
    async with connected(target_of(server)) as connection:
        watched = Watched(connection)
        capabilities = Capabilities()
        before = watched.bytes_in
        facts = await key_facts(watched, key, capabilities)
        shown = await key_preview(watched, facts, capabilities=capabilities)
        return shown, watched.bytes_in - before


def push(client: redis.Redis, kind: str, value: bytes) -> None:
    """Add one element to a collection."""
    writes = {"list": "RPUSH key", "set": "SADD key", "zset": "ZADD key 1", "stream": "XADD key * field"}
    client.execute_command(*writes[kind].split(), value)


async def test_a_huge_string_brings_one_window(server: Server) -> None:
    server.client().set("key", b"{" + b"x" * 10_000_000)
    shown, brought = await looked(server, b"key")
    assert shown.total == 10_000_001
    assert shown.next_page is not None
    assert brought < 6_000


async def test_one_huge_field_of_few_is_never_fetched(server: Server) -> None:
    server.client().hset("key", mapping={"huge": b"x" * HUGE, "small": "value"})
    shown, brought = await looked(server, b"key")
    assert dict(shown.rows) == {b"huge": Unread(HUGE), b"small": b"value"}  # type: ignore[arg-type]
    assert brought < 2_000


async def test_one_huge_field_of_many_is_never_fetched_where_names_can_be_listed(server: Server) -> None:
    client = server.client()
    client.hset("key", mapping={f"field{index}": index for index in range(5_000)})
    client.hset("key", "huge", b"x" * HUGE)
    if not lists_names(server):
        shown, brought = await looked(server, b"key")
        assert len(shown.rows) == MAX_RANDOM
        assert any("random sample" in note for note in shown.notes)
        assert brought < 20_000
        return
    async with connected(target_of(server)) as connection:
        watched = Watched(connection)
        before = watched.bytes_in
        pages = await all_pages(watched, b"key")
        assert watched.bytes_in - before < 500_000
    values = {row[0]: row[1] for page in pages for row in page.rows}
    assert values[b"huge"] == Unread(HUGE)
    assert len(values) == 5_001
    assert sum(isinstance(value, Unread) for value in values.values()) == 1


async def test_an_old_server_with_large_fields_is_not_paged(redis62: Server) -> None:
    redis62.client().hset("key", mapping={f"field{index}": b"x" * 50_000 for index in range(200)})
    shown, brought = await looked(redis62, b"key")
    assert len(shown.rows) == MAX_RANDOM
    assert {row[1] for row in shown.rows} == {Unread(50_000)}
    assert shown.next_page is None
    assert any("too large" in note for note in shown.notes)
    assert brought < 20_000


async def test_the_values_of_a_page_are_bounded_together(valkey: Server) -> None:
    valkey.client().hset("key", mapping={f"field{index}": b"x" * 15_000 for index in range(90)})
    shown, brought = await looked(valkey, b"key")
    read = [row for row in shown.rows if isinstance(row[1], bytes)]
    assert 0 < len(read) <= VALUES_BYTES // 15_000
    assert {row[1] for row in shown.rows if row not in read} == {Unread(15_000)}
    assert brought < VALUES_BYTES + 20_000


async def test_a_large_compact_set_is_sampled(server: Server) -> None:
    client = server.client()
    client.config_set("set-max-intset-entries", 100_000)
    client.sadd("key", 1 << 40, *range(40_000))
    assert client.object("encoding", "key") == b"intset"
    shown, brought = await looked(server, b"key")
    assert len(shown.rows) == MAX_RANDOM
    assert shown.next_page is None
    assert any("random sample" in note for note in shown.notes)
    assert brought < 10_000


async def test_a_large_compact_hash_is_sampled_in_a_bounded_walk(server: Server) -> None:
    client = server.client()
    for setting in ("hash-max-ziplist-entries", "hash-max-ziplist-value"):
        client.config_set(setting, 10_000)
    client.hset("key", mapping={f"field{index}": b"x" * 200 for index in range(2_000)})
    assert client.object("encoding", "key") in (b"ziplist", b"listpack")
    async with connected(target_of(server)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, b"key")
        watched.runs.clear()
        before = watched.bytes_in
        shown = await key_preview(watched, facts)
        assert watched.bytes_in - before < 20_000
    assert {row[1] for row in shown.rows} == {b"x" * 200}
    assert (len(shown.rows), shown.next_page) == (MAX_RANDOM, None)
    assert any("random sample" in note for note in shown.notes)
    assert watched.runs == [["HRANDFIELD", "TYPE"]]


@pytest.mark.parametrize("kind", ["list", "set", "zset", "stream"])
async def test_huge_elements_are_left_where_they_are(server: Server, kind: str) -> None:
    client = server.client()
    for index in range(2):
        push(client, kind, b"%d" % index + b"x" * HUGE)
    shown, brought = await looked(server, b"key")
    assert shown.kind is PreviewKind.NOTHING
    assert shown.refusal is not None
    assert shown.refusal.reason is Reason.TOO_LARGE
    assert "MiB" in shown.refusal.detail
    assert brought < 2_000


@pytest.mark.parametrize("kind", ["list", "set", "zset", "stream"])
async def test_large_elements_come_few_at_a_time(server: Server, kind: str) -> None:
    client = server.client()
    for index in range(100):  # a table of which no part is being moved: SSCAN brings whole buckets
        push(client, kind, b"%d" % index + b"x" * 100_000)
    shown, brought = await looked(server, b"key")
    assert shown.rows
    assert any("KiB" in note for note in shown.notes)
    assert shown.next_page is not None
    assert brought < 3 << 20


async def test_a_stream_of_large_entries_is_not_described_since_two_would_come_along(valkey: Server) -> None:
    for _ in range(3):
        push(valkey.client(), "stream", b"x" * 600_000)
    valkey.client().xgroup_create("key", "group", "0")
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        shown = await key_preview(watched, await key_facts(watched, b"key"))
    assert len(shown.rows) == 1
    assert any("groups are not listed" in note for note in shown.notes)
    assert not any("XINFO STREAM" in run for run in watched.runs)


async def test_a_small_compact_hash_takes_one_round_trip(valkey: Server) -> None:
    valkey.client().hset("key", mapping={"field": "value", "other": "value"})
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, b"key")
        watched.runs.clear()
        assert len((await key_preview(watched, facts)).rows) == 2
    assert watched.runs == [["HSCAN", "TYPE"]]


async def test_a_collection_of_very_many_brings_one_page(server: Server) -> None:
    client = server.client()
    numbers = list(range(50_000))
    client.rpush("list", *numbers)
    client.sadd("set", *(f"member{number}" for number in numbers))
    client.zadd("zset", {f"member{number}": number for number in numbers})
    client.hset("hash", mapping=dict.fromkeys((f"field{number}" for number in numbers), "value"))
    for key in (b"list", b"set", b"zset", b"hash"):
        shown, brought = await looked(server, key)
        assert shown.total == 50_000
        assert 0 < len(shown.rows) <= 200
        assert shown.next_page is not None
        assert brought < 20_000


async def test_without_memory_usage_pages_are_small_and_say_why(valkey: Server) -> None:
    client = valkey.client()
    client.rpush("key", *range(100))
    client.sadd("words", *(f"word {index}" for index in range(60)))
    client.execute_command("ACL", "SETUSER", "default", "-memory|usage", "-object|encoding")
    shown, _ = await looked(valkey, b"key")
    assert len(shown.rows) == 10
    assert any("not known" in note for note in shown.notes)
    shown, _ = await looked(valkey, b"words")
    assert len(shown.rows) == 10
    assert any("random sample" in note for note in shown.notes)
