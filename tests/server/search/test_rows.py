"""Searches among rows that were kept find what a search of the server finds, as it was then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Any

import polars as pl
import pytest

from rtui.analysis.columns import EVERYTHING, SAMPLED_COLUMNS
from rtui.analysis.humanize import Mark
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.plan import PlaceError, ShardPlace
from rtui.analysis.query.query import MatchOrder
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import Scope
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.segments import Separators, raw_java_name
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions, FindOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.search.rows import KeptColumn, RowsSearch
from rtui.server.search.run import NEVER, KeyColumn, KeySearch, cost_sentence
from rtui.server.search.search import LISTED, Search, Stage
from rtui.server.wire.connection import Closed, Connection
from rtui.table import rows
from rtui.table.kept_rows import PassRows
from rtui.table.rows import KeptRows
from rtui.table.schema import SCHEMA, keys_of, names_of
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server

COLON = Separators()
LINES = (
    "", "cart", "Cart", "user:*:cart", "user:?:[a-z]*", "*é*", r"re:^user:\d+", "re:^.{7}$", "in:user", "!in:user",
    "in:{a", "pattern:user:<id>:cart", "tag:a:b", "slot:0-8000", "type:hash", "!type:hash size>100", "ttl:none",
    "ttl<2h", "ttl:1h..10d cart", "expires>2026-01-01", "enc:listpack,embstr", "idle<1d", "len:3",
    "len>2 type:string,zset", "size>10G",
)  # fmt: skip


@pytest.fixture
def filled(valkey: Server) -> Iterator[Server]:
    """A server with keys of odd names and several types."""
    with valkey.client() as client:
        for number in range(60):
            client.set(f"user:{number}:cart", "v" * number, px=3_600_000 * (number + 1) if number % 3 else None)
            client.hset(f"user:{number}", mapping={"a": 1, "b": 2, "c": number})
        for name in (
            b"Cart",
            b"caf\xc3\xa9",
            b"\xff\xfe:cart",
            b"{a:b}:c",
            b"{a:c",
            b"a\nb",
            raw_java_name(b"user:7:cart") or b"",
        ):
            client.zadd(name, {"x": 1, "y": 2})
    yield valkey


def rows_of(server: Server, **more: Any) -> KeptRows:
    """The rows of all keys, by what redis-py is told."""
    with server.client() as client:
        keys = [bytes(key) for key in client.scan_iter(count=1000)]
        lengths = {b"string": client.strlen, b"hash": client.hlen, b"zset": client.zcard}
        types = [bytes(client.type(key)) for key in keys]
        idle = [client.object("idletime", key) for key in keys]
        facts = {
            "type": [one.decode() for one in types],
            "encoding": [client.object("encoding", key).decode() for key in keys],
            "expires_ms": [client.pexpiretime(key) for key in keys],
            "memory_bytes": [client.memory_usage(key) for key in keys],
            "length": [lengths[one](key) for one, key in zip(types, keys, strict=True)],
            "idle_s": idle,
            "slot": [key_slot(key) for key in keys],
            **more,
        }
    name, raw = names_of(keys)
    columns = [pl.Series(c, facts.get(c, [None] * len(keys)), dtype=SCHEMA[c]) for c in list(SCHEMA)[2:]]
    rows = KeptRows(1 << 30, 1 << 30)
    rows.append(pl.DataFrame([name, raw, *columns]))
    rows.finish(time.time(), is_all=True)
    return rows


def in_rows(rows: KeptRows, line: str, **more: Any) -> RowsSearch:
    return RowsSearch(PassRows(rows, Scope(columns=EVERYTHING)), parse(line), COLON, Closed, **more)


async def ended(search: Search) -> Search:
    search.prepare()
    await eventually(lambda: search.stage is Stage.OVER)
    assert search.failure is None
    await search.close()
    return search


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", [None, MatchOrder(Fact.NAME), MatchOrder(Fact.TTL, is_descending=True), MatchOrder(Fact.LENGTH)]
)
async def test_rows_and_the_server_give_the_same_matches(filled: Server, order: MatchOrder | None) -> None:
    rows = rows_of(filled)
    async with connected(target_of(filled)) as connection:
        for line in LINES:
            columns = (Fact.TYPE, Fact.TTL, Fact.MEMORY, Fact.ENCODING, Fact.LENGTH)
            options = FindOptions(columns=columns, limit=LISTED, order=order, pace=Pace.FULL)
            asked = await ended(KeySearch(Deployment.over(connection), parse(line), options))
            found = await ended(in_rows(rows, line, order=order, columns=columns))
            assert (line, found.count, found.mark) == (line, asked.count, asked.mark)
            known = {one.key: (one.key_type, one.memory_bytes, one.encoding, one.length) for one in asked.kept}
            assert {one.key: (one.key_type, one.memory_bytes, one.encoding, one.length) for one in found.kept} == known
            expiries = {one.key: one.expires_at_s for one in asked.kept}
            for one in found.kept:
                assert (one.expires_at_s is None) is (expiries[one.key] is None)
                assert abs((one.expires_at_s or 0) - (expiries[one.key] or 0)) < 1
            if order is not None and order.fact is not Fact.LENGTH:
                keys = [
                    (order.key(one)[0], one.key) if order.fact is Fact.NAME else one.expires_at_s for one in found.kept
                ]
                by = [
                    (order.key(one)[0], one.key) if order.fact is Fact.NAME else one.expires_at_s for one in asked.kept
                ]
                assert keys == pytest.approx(by) if order.fact is Fact.TTL else keys == by
            assert found.cost.commands == 0
            assert found.progress.state is ScanState.DONE


async def test_what_has_expired_since_is_left_out_and_what_is_unknown_is_said(filled: Server) -> None:
    rows = rows_of(filled, memory_bytes=[None, 500] * 63 + [None])
    assert rows.ended_s is not None
    later = rows.ended_s + 5 * 3_600
    found = await ended(in_rows(rows, "user:*:cart size>100", clock=lambda: later))
    said = " ".join(found.notes)
    assert found.mark is Mark.AT_LEAST
    assert "keys not checked (size>100): the analysis has no MEMORY USAGE of them." in said
    alone = await ended(in_rows(rows_of(filled, memory_bytes=[None] + [500] * 126), "size>100"))
    said = "1 key not checked (size>100): the analysis has no MEMORY USAGE of it."
    assert said in " ".join(alone.notes)
    everything = await ended(in_rows(rows, "user:*:cart", clock=lambda: later))
    assert everything.mark is Mark.EXACT
    assert everything.count == 61 - 3  # with the one that Java has serialised
    assert "3 keys have expired since and are excluded." in " ".join(everything.notes)


@pytest.mark.parametrize(
    ("line", "scope", "order", "why"),
    [
        ("cart size>1K ttl:none len>3 idle<1d type:set", Scope(columns=EVERYTHING), None, None),
        ("freq>3 size>1K cart", Scope(columns=EVERYTHING), None, "the analysis knows OBJECT FREQ of no key."),
        ("len>3", Scope(columns=SAMPLED_COLUMNS), None, " of some keys only."),
        (
            "cart",
            Scope(columns=SAMPLED_COLUMNS),
            MatchOrder(Fact.IDLE),
            "the analysis knows OBJECT IDLETIME of some keys",
        ),
        ("cart", Scope(columns=SAMPLED_COLUMNS), MatchOrder(Fact.NAME), None),
        ("cart", Scope(match=b"user:*"), None, "the analysis was of user:* only."),
        ("cart type:hash", Scope(match=b"user:*", key_type=b"hash"), None, "the analysis was of user:* only."),
        ("user:* cart type:hash", Scope(match=b"user:*", key_type=b"hash"), None, None),
    ],
)
def test_what_the_server_has_to_answer(
    filled: Server, line: str, scope: Scope, order: MatchOrder | None, why: str | None
) -> None:
    found = PassRows(rows_of(filled), scope).why_not(parse(line), order)
    assert (found is None) if why is None else (why in str(found))


async def test_columns_that_are_not_known_of_all_keys_are_said_and_not_counted_as_asked(filled: Server) -> None:
    columns = (Fact.MEMORY, Fact.IDLE, Fact.FREQUENCY)
    kept = PassRows(rows_of(filled), Scope(columns=SAMPLED_COLUMNS))
    search = RowsSearch(kept, parse("cart"), COLON, Closed, columns=columns)
    assert search.columns == (Fact.MEMORY,)
    said = "OBJECT IDLETIME, OBJECT FREQ: not known of all keys; press R to read it."
    assert search.notes == (said,)
    assert in_rows(rows_of(filled), "cart", columns=(Fact.IDLE,)).notes == ()


async def test_a_node_stands_for_its_slots(filled: Server) -> None:
    rows = rows_of(filled)
    shards = [ShardPlace(("a:1",), ((0, 8_000),)), ShardPlace(("b:1", "b:2"), ((8_001, 16_383),))]
    found = await ended(in_rows(rows, "node:b:2", shards=shards))
    by_slots = await ended(in_rows(rows, "slot:8001-16383"))
    assert found.count == by_slots.count > 0
    with pytest.raises(PlaceError):
        in_rows(rows, "node:c:1", shards=shards)


async def test_a_search_can_be_paused_and_ended(filled: Server) -> None:
    search = in_rows(rows_of(filled), "cart")
    search.control.pause()
    search.prepare()
    await eventually(lambda: search.progress.state is ScanState.PAUSED)
    assert search.stage is Stage.RUNNING
    search.control.stop()
    await eventually(lambda: search.stage is Stage.OVER)
    assert search.progress.state is ScanState.STOPPED
    assert search.mark is Mark.AT_LEAST
    await search.close()


async def test_rows_of_an_analysis_that_was_ended_say_so(filled: Server) -> None:
    part = KeptRows(1 << 30, 1 << 30)
    part.append(next(rows_of(filled).chunks()).columns(SCHEMA).cast(SCHEMA)[:50])
    part.finish(time.time(), is_all=False)
    found = await ended(in_rows(part, ""))
    assert (found.count, found.mark) == (50, Mark.AT_LEAST)
    assert "The analysis had not seen all keys when it ended." in " ".join(found.notes)


@pytest.mark.parametrize("order", [None, MatchOrder(Fact.NAME)])
async def test_rows_of_an_analysis_under_way_are_found_as_they_come(
    filled: Server, order: MatchOrder | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.search.rows.FOLLOW_S", 0.001)
    monkeypatch.setattr(rows, "CHUNK_ROWS", 30)
    table = next(rows_of(filled).chunks()).columns(SCHEMA).cast(SCHEMA)
    part = KeptRows(1 << 30, 1 << 30)
    part.append(table[:25])
    search = in_rows(part, "", order=order)
    search.prepare()
    for start in range(25, table.height, 25):
        await eventually(lambda: search.count == part.height)
        assert (search.stage, search.mark, search.progress.fraction) == (Stage.RUNNING, Mark.AT_LEAST, None)
        assert "The analysis is running: only keys seen so far are searched." in search.notes
        part.append(table[start : start + 25])
    part.finish(time.time(), is_all=True)
    await eventually(lambda: search.stage is Stage.OVER)
    assert (search.count, search.mark, search.notes) == (table.height, Mark.EXACT, ())
    keys = [record.key for record in search.kept]
    assert keys == (keys_of(table) if order is None else sorted(keys_of(table), key=natural))
    await search.close()


async def test_a_search_ends_where_rows_are_dropped(filled: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.search.rows.FOLLOW_S", 0.001)
    part = KeptRows(1 << 30, 1 << 30)
    part.append(next(rows_of(filled).chunks()).columns(SCHEMA).cast(SCHEMA)[:50])
    search = in_rows(part, "")
    search.prepare()
    await eventually(lambda: search.count == 50)
    part.close("the test has ended them")
    await eventually(lambda: search.stage is Stage.OVER)
    assert (search.count, search.mark) == (50, Mark.AT_LEAST)
    assert "The rows of the analysis are no longer kept: the test has ended them." in search.notes
    await search.close()


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
async def connected_client(server: Server) -> AsyncIterator[Connection]:
    connection = Connection(target_of(server))
    try:
        await connection.open()
        yield connection
    finally:
        await connection.close()


async def weights(server: Server, sort: Sort) -> dict[bytes, float]:
    store = fill(server)
    async with connected_client(server) as connection:
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
    assert len([name for name, value in found.items() if value == NEVER]) == len(range(0, KEYS, 3)) + 1
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

    async with connected_client(valkey) as connection:
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
    async with connected_client(valkey) as connection:
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
    async with connected_client(valkey) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, keep_rows=KEYS + 3))
        await run.run()
        store.add([b"box:later"])
        assert run.rows is not None
        kept = KeptColumn(run.rows.rows, store, store.root.child(b"box:"), Sort.MEMORY)
        await kept.run()
        assert b"later" not in kept.weights
        assert len(kept.weights) == KEYS + 1
