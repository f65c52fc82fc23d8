"""What a pass adds up to is what its keys add up to one by one, less what rtui itself has read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest
from msgspec import structs

from rtui.analysis.columns import ALL_COLUMNS, SAMPLED_COLUMNS, Columns
from rtui.analysis.report.document import HotSource, Report, Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.analysis.run import AnalysisRun
from rtui.server.facts.key_facts import key_facts
from rtui.server.hot.report import READS_COUNT
from rtui.server.inspection.largest import READ_BY_RTUI, READ_BY_RTUI_NOTE
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Connection
from rtui.table.aggregates import Aggregates
from rtui.table.schema import NEVER, keys_of
from tests.conftest import Pool
from tests.grammar import Grammar, load
from tests.server.inspection.kept import inspecting
from tests.server.targets import connected, target_of
from tests.servers import Server
from tests.table.naive import One, check

KEYS = 6_000

STARTED_S = 1_700_000_000.0


class Kept(Aggregates):
    """Keeps each key that comes as well."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(Separators(scope.separators), scope=scope, started_at_s=STARTED_S)
        self.records: list[One] = []

    def add_rows(self, made: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        table = made()
        super().add_rows(lambda: table, rows, asked_at_s)
        asked_ms = int(asked_at_s * 1000)
        for row, key in zip(table.iter_rows(named=True), keys_of(table), strict=True):
            expires_ms, length = row["expires_ms"], row["length"] if row["sampled"] else None
            left = -1 if expires_ms == NEVER else None if expires_ms is None else max(0, expires_ms - asked_ms)
            facts = left, row["memory_bytes"], row["idle_s"], length
            self.records.append(One(key, row["type"].encode(), *facts, asked_ms / 1000))


def fill(server: Server, seed: int) -> None:
    with socket.socket(socket.AF_UNIX) as to_server:
        to_server.connect(server.socket)
        load(to_server, Grammar(seed), KEYS)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [ALL_COLUMNS, SAMPLED_COLUMNS], ids=["all", "default"])
@pytest.mark.parametrize(("version", "seeds"), [("redis-7.0", (1, 2)), ("valkey-9.1", (3, 8))])
async def test_a_pass_adds_up_to_what_its_keys_do(
    pool: Pool, version: str, seeds: tuple[int, ...], columns: Columns
) -> None:
    server = pool.take(version, version)
    for seed in seeds:
        server.client().flushall()
        fill(server, seed)
        found = Kept(Scope(columns=columns, top=20))
        async with connected(target_of(server)) as connection:
            scan, pipeline = await inspecting(connection, found, columns=columns)
            await scan.run()
            pipeline.settle()
        assert found.keys == KEYS
        summary = finish(found.summary())
        for stats, kind in ((summary.root.stats, None), *((one.stats, one.name) for one in summary.types)):
            keys = [one for one in found.records if kind is None or one.kind == kind]
            exact = structs.replace(stats, idle=None)
            check(exact, [replace(one, idle_s=None) for one in keys], found.records)
        sizes = sorted((-(one.memory_bytes or 0), one.key) for one in found.records)[:20]
        assert [(-(one.memory_bytes or 0), one.key) for one in summary.big.by_memory] == sizes
        for key_type, listed in summary.big.by_type_length.items():
            lengths = [one.length for one in listed]
            assert lengths == sorted(lengths, key=lambda one: -(one or 0))
            known = [one.length or 0 for one in found.records if one.kind == key_type]
            assert (lengths[0] or 0) >= max(known)


@pytest.mark.parametrize("step", ["rtui.table.partial.Partial.add", "rtui.table.tops.TopKeys.take"])
@pytest.mark.parametrize("error", [pl.exceptions.ComputeError("no"), pl.exceptions.PanicException("gone")])
async def test_whatever_fails_in_polars_ends_the_analysis_with_its_message(
    valkey: Server, error: BaseException, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(step, fail)
    valkey.client().mset({f"user:{number}": "x" for number in range(3_000)})
    async with connected(target_of(valkey)) as connection:
        analysing = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        async with asyncio.timeout(20):
            await analysing.run()
    assert analysing.progress.state is ScanState.FAILED
    assert str(error) in (analysing.progress.reason or "")


LARGEST = [b"large:%d" % number for number in range(3)]
OTHERS = [b"small:%d" % number for number in range(20)]


@pytest.fixture(params=["redis-6.2", "redis-7.0"])
def touching(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """Servers on which reading a key counts as a use, with keys that nobody has used for different times."""
    name: str = request.param
    server = pool.take(name, name)
    client = server.client()
    for number, key in enumerate((*OTHERS, *LARGEST)):
        client.set(key, "x" * (50_000 if key in LARGEST else 10))
        client.execute_command("RESTORE", key, 0, client.dump(key), "REPLACE", "IDLETIME", 1_000 + 100 * number)
    return server


async def analysed(connection: Connection) -> Report:
    """The report of one pass that lists 3 keys."""
    analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, top=3))
    await analysis.run()
    assert analysis.report is not None
    return analysis.report


async def test_the_largest_keys_are_marked_and_do_not_lead_the_next_run(touching: Server) -> None:
    async with connected(target_of(touching)) as connection:
        first = await analysed(connection)
        second = await analysed(connection)
    assert {record.key: record.note for record in first.summary.big.by_memory} == dict.fromkeys(LARGEST, READ_BY_RTUI)
    assert READ_BY_RTUI_NOTE in first.head.notes
    assert all(int(touching.client().object("idletime", key)) < 1_000 for key in LARGEST)
    for report in (first, second):
        assert report.hot.source is HotSource.IDLE
        assert READS_COUNT in report.hot.better
    assert [one.record.key for one in first.hot.lists[0].keys] == OTHERS[:3]
    assert [one.record.key for one in second.hot.lists[0].keys] == OTHERS[:3]
    assert second.summary.root.stats.idle == first.summary.root.stats.idle
    assert "The idle times of 3 keys are those before rtui itself read them." in second.head.notes


async def test_keys_that_were_shown_in_this_session_do_not_lead_the_list(touching: Server) -> None:
    async with connected(target_of(touching)) as connection:
        await key_facts(connection, OTHERS[-1])
        report = await analysed(connection)
    assert [one.record.key for one in report.hot.lists[0].keys] == OTHERS[:3]
    assert "The idle time of 1 key is that before rtui itself read it." in report.head.notes


async def test_where_reading_is_no_use_nothing_is_marked(valkey: Server) -> None:
    valkey.client().set("large", "x" * 50_000)
    async with connected(target_of(valkey)) as connection:
        await key_facts(connection, b"large")
        report = await analysed(connection)
    assert [record.note for record in report.summary.big.by_memory] == [""]
    assert READ_BY_RTUI_NOTE not in report.head.notes
    assert READS_COUNT not in report.hot.better
    assert len(connection.own_reads) == 0
