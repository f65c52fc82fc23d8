"""Cursors are proven before one is made up: Redis and Valkey always pass, and servers with other cursors never do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.scan.cursor import POSITION_END, BeginningWatch, Dialect
from rtui.server.scan.cursor_proof import (
    ABOVE_BUCKETS,
    PROVED_FROM,
    are_positions,
    known_dialect,
    places,
    prove_cursors,
)
from rtui.server.scan.sampling import Sample
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError
from tests.fakes.base import FakeKey, FakeServer
from tests.fakes.servers import ElastiCacheServerless, HuaweiProxy, RedisEnterprise, TencentProxy
from tests.proxy import DelayProxy
from tests.server.scan.table import Dict
from tests.server.scanned import numbered, plant
from tests.server.targets import connected, target_of, until
from tests.servers import Server

SEEDS = st.integers(0, 1 << 32)
KEYS = {b"a:%d" % number: FakeKey() for number in range(600)}


def pages(scan: Callable[[int], tuple[int, list[bytes]]], cursors: list[int]) -> list[Reply]:
    """What SCAN answers to each of the cursors, and to each with the bit changed."""
    found = [scan(one) for cursor in cursors for one in (cursor, cursor ^ ABOVE_BUCKETS)]
    return [[b"%d" % after, [*keys]] for after, keys in found]


@given(SEEDS, st.integers(PROVED_FROM, 2000), st.integers(-2, 2), st.integers(0, 3000))
def test_every_table_passes_also_one_that_is_rehashed(seed: int, keys: int, bits: int, rehashed: int) -> None:
    rng = Random(seed)
    hashes = {b"%d" % index: rng.randrange(POSITION_END) for index in range(keys)}
    table = Dict(hashes, keys.bit_length() + bits)
    table.resize(keys.bit_length() + 1)
    table.rehash(rehashed)
    cursors = places(Dialect.STANDALONE, rng)
    assert are_positions(Dialect.STANDALONE, cursors, pages(lambda cursor: table.scan(cursor, 1), cursors))


@given(SEEDS)
def test_cursors_that_count_pages_do_not(seed: int) -> None:
    cursors = places(Dialect.STANDALONE, Random(seed))
    assert not are_positions(Dialect.STANDALONE, cursors, pages(lambda cursor: (cursor + 1, [b"a"]), cursors))


@given(SEEDS)
def test_a_server_where_made_up_cursors_end_the_scan_does_not(seed: int) -> None:
    cursors = places(Dialect.STANDALONE, Random(seed))
    replies = pages(lambda cursor: (0 if cursor else 8, [b"a"]), cursors)
    assert not are_positions(Dialect.STANDALONE, cursors, replies)


def test_errors_and_nonsense_do_not_and_a_busy_server_proves_nothing() -> None:
    wrong: list[Reply] = [ServerError("ERR invalid cursor"), b"no page", None, [b"1", [7]]]
    for reply in wrong:
        assert not are_positions(Dialect.STANDALONE, [0], [reply, reply])
    busy = ServerError("BUSY Redis is busy running a script")
    with pytest.raises(ServerBusyError):
        are_positions(Dialect.STANDALONE, [0], [busy, busy])


@pytest.mark.parametrize("count", [0, 1, 3, 40, 600])
async def test_every_server_passes_however_many_keys_it_has(server: Server, count: int) -> None:
    plant(server, numbered(count))
    async with connected(target_of(server)) as connection:
        for _ in range(5):
            connection.cursors_are_positions = None
            await prove_cursors(connection, None)
            assert known_dialect(connection) is Dialect.STANDALONE
            if count > PROVED_FROM:
                assert connection.cursors_are_positions


async def test_a_node_of_a_cluster_passes(cluster_node: Server) -> None:
    pipeline = cluster_node.admin.pipeline(transaction=False)
    for number in range(600):
        pipeline.set(f"{{{number % 7}}}:{number}", "x")
    pipeline.execute()
    async with connected(target_of(cluster_node)) as connection:
        before = known_dialect(connection)
        assert await prove_cursors(connection, 600) > 0
        assert connection.cursors_are_positions
        assert known_dialect(connection) is before
        assert before.is_ordered


@pytest.mark.parametrize(
    "kind", [RedisEnterprise, TencentProxy, HuaweiProxy, ElastiCacheServerless], ids=lambda kind: kind.__name__
)
async def test_what_only_says_that_it_is_redis_fails(kind: type[FakeServer]) -> None:
    async with kind(KEYS) as server, connected(server.target) as connection:
        assert await prove_cursors(connection, len(KEYS)) > 0
        assert known_dialect(connection) is Dialect.OPAQUE


async def test_it_is_asked_once_a_connection(server: Server) -> None:
    plant(server, numbered(600))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        assert await prove_cursors(connection, 600) > 0
        assert await prove_cursors(connection, 600) == 0
        generation = connection.generation
        proxy.cut()
        await until(connection, lambda: connection.generation > generation and connection.is_online)
        assert connection.cursors_are_positions is None
        assert await prove_cursors(connection, 600) > 0


async def test_small_keyspaces_are_not_asked(server: Server) -> None:
    plant(server, numbered(10))
    async with connected(target_of(server)) as connection:
        assert await prove_cursors(connection, 10) == 0


async def test_it_takes_one_round_trip(server: Server) -> None:
    plant(server, numbered(600))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        before = proxy.round_trips[0].count
        await prove_cursors(connection, 600)
        assert proxy.round_trips[0].count == before + 1


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 40))
def test_a_scan_that_begins_again_is_noticed_and_no_other(first: int, count: int, later: int) -> None:
    names = numbered(300)
    watch = BeginningWatch(names[:first])
    for start in range(first, 300, count):
        assert not watch.observe(names[start : start + count])
    again = [watch.observe(names[start : start + count]) for start in range(0, 300, count)]
    assert any(again)
    assert again.index(True) * count <= max(first, 70)
    assert not BeginningWatch(names[:10]).observe(names[later + 10 : later + 20])


def test_a_key_that_comes_twice_is_no_new_beginning() -> None:
    names = numbered(100)
    watch = BeginningWatch(names[:20])
    assert not any(watch.observe([names[at], names[20 + at]]) for at in range(9))


@given(SEEDS, st.integers(2, 6))
def test_a_sample_of_one_shard_of_several_is_noticed(seed: int, shards: int) -> None:
    rng = Random(seed)
    table = Dict({b"%d" % index: rng.randrange(POSITION_END) for index in range(20_000)}, 15)
    taken = Sample()
    for _ in range(200):
        start = rng.randrange(POSITION_END)
        cursor, keys = table.scan(Dialect.STANDALONE.cursor(start), 10)
        taken.add([start], [[b"%d" % cursor, [*keys]]])
    assert taken.contradiction(20_000) is None
    assert taken.contradiction(None) is None
    assert taken.contradiction(100, 4_000_000) is None  # it grows
    assert "DBSIZE" in str(taken.contradiction(20_000 * shards))


def test_the_bit_that_is_changed_is_above_every_table() -> None:
    assert guard.scan(ABOVE_BUCKETS | ((1 << 40) - 1), count=1)
