"""How many bytes the keys of a database can have, by what servers say of their memory."""

from __future__ import annotations

import pytest

from rtui.server.inspection.server_figures import memory_bound, parse_memory_bound
from rtui.server.wire.capability import Capabilities
from tests.oracles.analysed import report_on
from tests.server.targets import connected, target_of
from tests.servers import Server

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
def test_the_bound_is_what_the_server_uses_for_keys(
    memory: bytes | None, keyspace: bytes | None, bound: int | None
) -> None:
    assert parse_memory_bound(memory, keyspace, 0) == bound


async def test_keys_of_many_sorts_stay_within_it(server: Server) -> None:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(3_000):
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
