"""What a server says of its own keys: the distribution of their sizes, and how many bytes they can have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import KeySizes
from rtui.server.guard.command import Secret
from rtui.server.health.info import parse_key_sizes
from rtui.server.inspection.report_head import key_sizes, memory_bound, parse_memory_bound
from rtui.server.wire.capability import Capabilities
from tests.oracles.counted import report_on
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of
from tests.servers import Server

INFO = (
    b"# Keysizes\r\ndb0_distrib_strings_sizes:0=1,1=1,2K=1,512M=2\r\ndb0_distrib_lists_items:4=1\r\n"
    b"db12_distrib_hashes_items:1M=3\r\ndb0_\x1b[31m:1=1\r\ndb0_distrib_zsets_items:x=1,4=,-1=2,8=5\r\n"
)


async def sizes_of(server: Server, db: int, **login: object) -> tuple[KeySizes, ...]:
    async with connected(target_of(server, db=db, **login)) as connection:
        return await key_sizes(connection, Capabilities(), db)


async def test_key_sizes_of_each_version(server: Server) -> None:
    server.admin.mset({"empty": "", "small": "x", "large": "x" * 3000})
    server.admin.rpush("list", *range(5))
    keeps = server.product == "redis" and server.version >= (8, 0)
    strings = KeySizes("distrib_strings_sizes", ((0, 1), (1, 1), (2048, 1)))
    expected = (strings, KeySizes("distrib_lists_items", ((4, 1),))) if keeps else ()
    assert await sizes_of(server, 0) == expected
    assert await sizes_of(server, 1) == ()


async def test_key_sizes_are_empty_where_info_is_denied(redis810: Server) -> None:
    redis810.admin.set("key", "x")
    raw(redis810, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-info")
    assert await sizes_of(redis810, 0, user="few", password=Secret("word")) == ()


def test_key_sizes_are_of_one_database_and_only_what_is_understood() -> None:
    assert parse_key_sizes(INFO, 0) == (
        KeySizes("distrib_strings_sizes", ((0, 1), (1, 1), (2048, 1), (512 << 20, 2))),
        KeySizes("distrib_lists_items", ((4, 1),)),
        KeySizes("distrib_zsets_items", ((8, 5),)),
    )
    assert parse_key_sizes(INFO, 12) == (KeySizes("distrib_hashes_items", ((1 << 20, 3),)),)
    assert parse_key_sizes(INFO, 1) == ()


@given(st.binary(max_size=200), st.integers(0, 20))
def test_any_key_sizes_are_read_without_an_error(reply: bytes, db: int) -> None:
    parse_key_sizes(b"db%d_distrib_strings_sizes:" % db + reply, db)


MEMORY = b"# Memory\r\nused_memory:10000000\r\nused_memory_startup:1000000\r\nused_memory_dataset:%d\r\n"
KEYSPACE = b"# Keyspace\r\ndb0:keys=1000,expires=0,avg_ttl=0\r\ndb3:keys=5,expires=0,avg_ttl=0\r\n"


@pytest.mark.parametrize(
    ("memory", "keyspace", "bound"),
    [
        (MEMORY % 7_000_000, KEYSPACE, 7_032_000),
        (MEMORY % 8_990_000, KEYSPACE, 9_000_000),
        (MEMORY % 7_000_000, None, 9_000_000),
        (b"used_memory:500\r\n", KEYSPACE, 500),
        (b"used_memory:500\r\nused_memory_startup:900\r\n", KEYSPACE, 0),
        (None, KEYSPACE, None),
        (b"", b"", None),
    ],
)
def test_the_memory_bound_is_what_the_server_uses_for_keys(
    memory: bytes | None, keyspace: bytes | None, bound: int | None
) -> None:
    assert parse_memory_bound(memory, keyspace, 0) == bound


async def test_keys_of_many_sorts_stay_within_the_memory_bound(server: Server) -> None:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(4_000):  # so many that what the server uses beside the keys is little
        pipeline.set(b"s:%d" % number, b"v" * (number % 300), ex=None if number % 2 else 9_999)
        pipeline.hset(b"h:%d" % number, mapping={b"a": b"b" * 20, b"c": b"d" * 30})
        pipeline.rpush(b"l:%d" % number, *range(30))
    pipeline.set(b"giant", b"v" * 2_000_000)
    pipeline.execute()
    report = await report_on(target_of(server))
    whole = report.summary.root.stats.memory_bytes
    assert isinstance(whole, int)
    async with connected(target_of(server)) as connection:
        bound = await memory_bound(connection, Capabilities())
    assert bound is not None
    assert whole <= bound < 1.5 * whole
