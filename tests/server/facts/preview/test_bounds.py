"""Turning the pages of a value shows all of it, and a look at it brings little, however large it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.analysis.facts import Reason, Unknown
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.hashes import VALUES_BYTES, read_field
from rtui.server.facts.preview.page import Preview, PreviewKind, PreviewRow, Unread
from rtui.server.facts.preview.value_reader import ValueReader
from rtui.server.guard.closed_list import MAX_RANDOM
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from tests.server.every_type import lists_names
from tests.server.targets import Watched, connected, target_of
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
    redis62.client().hset("key", mapping={f"field{index}": b"x" * 50_000 for index in range(400)})
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
    assert not shown.rows
    assert brought < 2_000
    if shown.kind is PreviewKind.NOTHING:
        assert shown.refusal is not None
        assert shown.refusal.reason is Reason.TOO_LARGE
        assert "MiB" in shown.refusal.detail
    else:
        assert kind in ("set", "zset")
        assert any("only members of up to 64 bytes" in note for note in shown.notes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["set", "zset"])
async def test_the_short_neighbours_of_a_huge_member_are_listed(server: Server, kind: str) -> None:
    client = server.client()
    small = [b"%d" % number + b"y" * number for number in range(60)]
    for value in (*small, b"x" * 9 * HUGE):
        push(client, kind, value)
    shown, brought = await looked(server, b"key")
    assert sorted(row[-1 if kind == "set" else 1] for row in shown.rows) == sorted(small)  # type: ignore[type-var]
    assert brought < 20_000
    assert shown.refusal is None
    assert [offer.page.on_purpose for offer in shown.offers] == [1, 61]


@pytest.mark.slow
@pytest.mark.sampled("kind")
@pytest.mark.parametrize("kind", ["list", "set", "zset", "stream"])
async def test_elements_are_read_on_purpose_and_what_is_huge_is_not_kept(server: Server, kind: str) -> None:
    client = server.client()
    huge = 70 << 20
    for value in [b"small%d" % number for number in range(30)]:
        push(client, kind, value)
    push(client, kind, b"x" * huge)
    for value in [b"later%d" % number for number in range(30)]:
        push(client, kind, value)
    async with connected(target_of(server)) as connection:
        facts = await key_facts(connection, b"key")
        refused = await key_preview(connection, facts)
        assert all("MiB on average, at most all" in offer.said or "Read " in offer.said for offer in refused.offers)
        one, many = refused.offers
        assert one.page.on_purpose == 1
        first = await key_preview(connection, facts, one.page)
        assert first.rows
        everything = await key_preview(connection, facts, many.page)
    cells = [cell for row in everything.rows for cell in row]
    assert Unread(huge, was_read=True) in cells
    small = {cell for cell in cells if isinstance(cell, bytes) and cell.startswith((b"small", b"later"))}
    assert len(small) >= (49 if kind == "stream" else 60)
    assert everything.refusal is None


@pytest.mark.slow
async def test_beyond_the_limit_no_element_is_offered(valkey: Server) -> None:
    for _ in range(3):
        push(valkey.client(), "list", b"x" * (50 << 20))
    shown, brought = await looked(valkey, b"key")
    assert shown.offers == ()
    assert brought < 2_000


@pytest.mark.parametrize("fields", [60, 150, 300])
async def test_all_names_of_a_few_hundred_are_found_where_names_can_not_be_listed(redis62: Server, fields: int) -> None:
    client = redis62.client()
    for number in range(fields):
        client.hset("key", f"field{number}", b"x" * 100_000)
    shown, brought = await looked(redis62, b"key")
    assert {row[0] for row in shown.rows} == {b"field%d" % number for number in range(fields)}
    assert {row[1] for row in shown.rows} == {Unread(100_000)}
    assert brought < 400_000


@pytest.mark.slow
async def test_a_large_field_is_read_only_up_to_what_was_agreed(valkey: Server) -> None:
    valkey.client().hset("key", mapping={"large": b"x" * (3 << 20), "small": b"y"})
    async with connected(target_of(valkey)) as connection:
        facts = await key_facts(connection, b"key")
        reader = ValueReader(Querier(connection, Capabilities()), facts)
        refused = await read_field(reader, b"large")
        assert isinstance(refused, Unknown)
        agreed = await read_field(reader, b"large", 3 << 20)
        assert agreed == b"x" * (3 << 20)


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


FEW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
"""How hard the properties try: each example talks to a server."""

BYTES = st.binary(max_size=40)
MANY = st.sampled_from([0, 1, 99, 100, 101, 250, 700])


def on(server: Server, look: Callable[[Connection], Awaitable[Any]]) -> Any:
    """Run one look at a server from a test that is not a coroutine."""
    import asyncio

    async def run() -> Any:
        async with connected(target_of(server)) as connection:
            return await look(connection)

    return asyncio.run(run())


def padded(some: list[bytes], many: int) -> list[bytes]:
    """Some odd values among many plain ones, none twice."""
    return list(dict.fromkeys([*some, *(b"plain %d" % index for index in range(many))]))


@FEW
@given(data=st.binary(min_size=1, max_size=3_000), window=st.integers(4, 400))
def test_windows_of_a_string_are_the_string(server: Server, data: bytes, window: int) -> None:
    server.client().set("key", data)

    async def look(connection: Connection) -> list[Any]:
        return await all_pages(connection, b"key", window_bytes=window)

    pages = on(server, look)
    assert b"".join(page.window.data for page in pages) == data
    assert [page.window.offset_bytes for page in pages] == [page.page.position for page in pages]


@FEW
@given(text=st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=900), window=st.integers(4, 100))
def test_windows_of_a_text_are_whole_characters(valkey: Server, text: str, window: int) -> None:
    valkey.client().set("key", "." + text)

    async def look(connection: Connection) -> list[Any]:
        return await all_pages(connection, b"key", window_bytes=window)

    pages = on(valkey, look)
    assert {page.kind for page in pages} == {PreviewKind.TEXT}
    assert "".join(page.window.data.decode() for page in pages) == "." + text


def rows_of(server: Server) -> list[PreviewRow]:
    async def look(connection: Connection) -> list[PreviewRow]:
        return await all_rows(connection, b"key")

    found: list[PreviewRow] = on(server, look)
    return found


@FEW
@given(items=st.lists(BYTES, min_size=1), many=MANY)
def test_pages_of_a_list_are_the_list(server: Server, items: list[bytes], many: int) -> None:
    client = server.client()
    client.delete("key")
    whole = [*items, *(b"plain %d" % index for index in range(many))]
    client.rpush("key", *whole)
    assert rows_of(server) == list(enumerate(whole))


@FEW
@given(members=st.lists(BYTES, min_size=1), many=MANY)
def test_pages_of_a_set_are_the_set(server: Server, members: list[bytes], many: int) -> None:
    client = server.client()
    client.delete("key")
    whole = padded(members, many)
    client.sadd("key", *whole)
    assert Counter(row[0] for row in rows_of(server)) == Counter(whole)


@FEW
@given(names=st.lists(BYTES, min_size=1), many=MANY)
def test_pages_of_a_hash_are_the_hash(server: Server, names: list[bytes], many: int) -> None:
    client = server.client()
    client.delete("key")
    whole = {name: b"value of " + name for name in padded(names, many)}
    client.execute_command("HSET", "key", *(part for pair in whole.items() for part in pair))
    assert Counter((row[0], row[1]) for row in rows_of(server)) == Counter(whole.items())


@FEW
@given(
    scores=st.dictionaries(BYTES, st.floats(allow_nan=False) | st.integers(-(1 << 60), 1 << 60), min_size=1), many=MANY
)
def test_pages_of_a_sorted_set_are_the_sorted_set(server: Server, scores: dict[bytes, float], many: int) -> None:
    client = server.client()
    client.delete("key")
    whole = {b"plain %d" % index: index / 7 for index in range(many)} | scores
    client.zadd("key", whole)
    rows = rows_of(server)
    assert {row[1]: row[2] for row in rows} == {member: float(score) for member, score in whole.items()}
    assert [row[0] for row in rows] == list(range(len(whole)))
    assert [row[1] for row in rows] == client.zrange("key", 0, -1)


@FEW
@given(entries=st.lists(st.lists(st.tuples(BYTES, BYTES), min_size=1, max_size=3), min_size=1), many=MANY)
def test_pages_of_a_stream_are_the_stream(server: Server, entries: list[list[tuple[bytes, bytes]]], many: int) -> None:
    client = server.client()
    client.delete("key")
    whole = [*entries, *([(b"plain", b"%d" % index)] for index in range(many))]
    pipeline = client.pipeline(transaction=False)
    for index, fields in enumerate(whole):
        # Two entries in each millisecond, so that pages end at both halves of an id.
        pipeline.execute_command(
            "XADD", "key", f"{index // 2}-{index % 2 + 1}", *(part for pair in fields for part in pair)
        )
    pipeline.execute()
    expected = [
        (b"%d-%d" % (index // 2, index % 2 + 1) if place == 0 else None, name, value)
        for index, fields in reversed(list(enumerate(whole)))
        for place, (name, value) in enumerate(fields)
    ]
    assert rows_of(server) == expected


async def test_pages_of_an_array_are_its_elements(redis810: Server) -> None:
    client = redis810.client()
    last = (1 << 64) - 2
    dense = {index: b"dense %d" % index for index in range(150)}
    whole = dense | {index * index: b"sparse %d" % index for index in range(13, 113)} | {last: b"last"}
    for index, element in whole.items():
        client.execute_command("ARSET", "key", index, element)
    async with connected(target_of(redis810)) as connection:
        pages = await all_pages(connection, b"key")
    assert [row for page in pages for row in page.rows] == sorted(whole.items())
    assert pages[0].total == len(whole)


@pytest.mark.parametrize("kind", ["string", "list", "set", "hash", "zset", "stream"])
async def test_pages_lead_back(valkey: Server, kind: str) -> None:
    client = valkey.client()
    numbers = [f"{index:05}" for index in range(700)]
    if kind == "string":
        client.set("key", "".join(numbers) * 5)
    elif kind == "stream":
        for number in numbers:
            client.xadd("key", {"number": number}, id=f"{int(number) + 1}-0")
    elif kind in ("hash", "zset"):
        write = {"hash": "HSET", "zset": "ZADD"}[kind]
        client.execute_command(write, "key", *(number for one in numbers for number in (one, one)))
    else:
        client.execute_command({"list": "RPUSH", "set": "SADD"}[kind], "key", *numbers)
    async with connected(target_of(valkey)) as connection:
        pages = await all_pages(connection, b"key")
    assert len(pages) > 3
    assert [page.page.number for page in pages] == list(range(1, len(pages) + 1))
    for before, after in pairwise(pages):
        assert after.page.previous == before.page
    assert pages[0].page.previous is None


MOST_PAGES = 2_000
"""Where a walk that does not end is given up."""


async def looked_at(connection: Connection, key: bytes, capabilities: Capabilities | None = None) -> Preview:
    return await key_preview(connection, await key_facts(connection, key, capabilities), capabilities=capabilities)


async def all_pages(connection: Connection, key: bytes, *, window_bytes: int = 4096) -> list[Preview]:
    capabilities = Capabilities()
    facts = await key_facts(connection, key, capabilities)
    pages: list[Preview] = []
    page = None
    for _ in range(MOST_PAGES):
        shown = await key_preview(connection, facts, page, capabilities=capabilities, window_bytes=window_bytes)
        pages.append(shown)
        page = shown.next_page
        if page is None:
            return pages
    raise AssertionError(f"more than {MOST_PAGES} pages")


async def all_rows(connection: Connection, key: bytes) -> list[PreviewRow]:
    """The rows of every page; of a random sample that comes before the pages, none."""
    pages = await all_pages(connection, key)
    following = pages[0].next_page
    if following is not None and following.whole_values:
        pages = pages[1:]
    return [row for page in pages for row in page.rows]
