"""A fact of all keys of a namespace, asked of a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf

import pytest

from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.slices import finish
from rtui.keyspace.store.store import NamespaceStore
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.search.rows import KeptColumn
from rtui.server.search.run import NEVER, KeyColumn, cost_sentence
from rtui.server.wire.connection import Connection
from tests.server.targets import target_of
from tests.servers import Server

KEYS = 700


def fill(server: Server) -> NamespaceStore:
    client = server.admin
    for number in range(KEYS):
        client.set(b"box:%d" % number, b"x" * (10 * number), px=100_000 * (number + 1) if number % 3 else None)
    client.hset("box:hash", mapping={"a": "b"})
    client.set("box:deeper:key", "x")
    store = NamespaceStore()
    store.add(
        [*(b"box:%d" % number for number in range(KEYS)), b"box:hash", b"box:gone", b"box:deeper:key", b"other:1"]
    )
    finish(store.open(store.root.child(b"box:")))
    return store


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Connection]:
    connection = Connection(target_of(server))
    try:
        await connection.open()
        yield connection
    finally:
        await connection.close()


async def weights(server: Server, sort: Sort) -> dict[bytes, float]:
    store = fill(server)
    async with connected(server) as connection:
        column = KeyColumn(Deployment.over(connection), store, store.root.child(b"box:"), sort, pace=Pace.FULL)
        assert column.of == KEYS + 2
        await column.run()
        assert column.failure is None
        return column.weights


async def test_keys_are_weighed_by_memory(valkey: Server) -> None:
    found = await weights(valkey, Sort.MEMORY)
    assert set(found) == {*(b"%d" % number for number in range(KEYS)), b"hash"}
    truth = {name: valkey.admin.memory_usage(b"box:" + name) for name in found}
    assert {name: -value for name, value in found.items()} == truth


async def test_keys_are_weighed_by_when_they_expire(valkey: Server) -> None:
    found = await weights(valkey, Sort.TTL)
    lasting = [name for name, value in found.items() if value == NEVER]
    assert len(lasting) == len(range(0, KEYS, 3)) + 1
    expiring = sorted((name for name in found if found[name] < NEVER), key=lambda name: found[name])
    assert expiring == sorted(expiring, key=int)


async def test_keys_are_weighed_by_type(valkey: Server) -> None:
    found = await weights(valkey, Sort.TYPE)
    assert found[b"hash"] < found[b"1"] == found[b"2"] < inf


@pytest.mark.parametrize("sort", [Sort.MEMORY, Sort.IDLE])
async def test_what_is_refused_is_known_of_no_key(valkey: Server, sort: Sort) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-memory|usage", "-object|idletime")
    try:
        found = await weights(valkey, sort)
    finally:
        valkey.admin.execute_command("ACL", "SETUSER", "default", "+@all")
    assert set(found.values()) <= {inf}


async def test_other_work_is_suspended_meanwhile_also_when_it_is_broken_off(valkey: Server) -> None:
    store, suspensions = fill(valkey), []

    @contextmanager
    def suspended() -> Iterator[None]:
        suspensions.append("begin")
        try:
            yield
        finally:
            suspensions.append("end")

    async with connected(valkey) as connection:
        node = store.root.child(b"box:")
        column = KeyColumn(Deployment.over(connection), store, node, Sort.MEMORY, pace=Pace.GENTLE, suspended=suspended)
        await column.run()
        assert suspensions == ["begin", "end"]
        another = KeyColumn(Deployment.over(connection), store, node, Sort.TTL, pace=Pace.GENTLE, suspended=suspended)
        task = asyncio.create_task(another.run())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert suspensions == ["begin", "end"] * 2
        assert not another.weights
        (sent,) = await connection.run(guard.dbsize())
        assert sent == KEYS + 2


def test_the_cost_is_said_in_commands_and_seconds() -> None:
    assert cost_sentence(100_000, Sort.MEMORY, Pace.GENTLE) == (
        "TYPE and MEMORY USAGE of 100,000 keys, about 3s at gentle pace"
    )
    assert cost_sentence(10, Sort.TTL, Pace.FULL) == "PTTL of 10 keys"


@pytest.mark.parametrize("sort", [Sort.MEMORY, Sort.TTL, Sort.TYPE, Sort.IDLE])
async def test_the_rows_of_an_analysis_tell_the_same(valkey: Server, sort: Sort) -> None:
    store = fill(valkey)
    valkey.admin.set(b"box:\xff", "raw")
    store.add([b"box:\xff"])
    node = store.root.child(b"box:")
    async with connected(valkey) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, keep_rows=KEYS + 4))
        await run.run()
        assert run.rows is not None
        kept = KeptColumn(run.rows.rows, store, node, sort)
        await kept.run()
        asked = KeyColumn(Deployment.over(connection), store, node, sort, pace=Pace.FULL)
        await asked.run()
    assert kept.of == asked.of == KEYS + 3
    assert kept.weights.keys() == asked.weights.keys() == {*(b"%d" % one for one in range(KEYS)), b"hash", b"\xff"}
    if sort is Sort.IDLE:
        assert set(kept.weights.values()) <= {0.0, -1.0}
    else:
        assert kept.weights == pytest.approx(asked.weights, abs=0.5)


async def test_keys_that_an_analysis_has_not_seen_have_no_weight(valkey: Server) -> None:
    store = fill(valkey)
    async with connected(valkey) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, keep_rows=KEYS + 3))
        await run.run()
        store.add([b"box:later"])
        assert run.rows is not None
        kept = KeptColumn(run.rows.rows, store, store.root.child(b"box:"), Sort.MEMORY)
        await kept.run()
        assert b"later" not in kept.weights
        assert len(kept.weights) == KEYS + 1
