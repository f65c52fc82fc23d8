"""Turning the pages shows exactly the whole value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.server.facts.preview.page import PreviewKind, PreviewRow
from rtui.server.wire.connection import Connection
from tests.server.facts.preview.pages import all_pages, all_rows
from tests.server.targets import connected, target_of
from tests.servers import Server

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
