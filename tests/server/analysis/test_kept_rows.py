"""Whose rows a session keeps: those of its latest analysis, as long as the same run of the same server answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rtui.analysis.query.parsing import parse
from rtui.keyspace.slots import key_slot
from rtui.server.analysis.session import AnalysisSession
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.search.rows import RowsSearch
from rtui.server.search.search import Stage
from rtui.server.wire.connection import Online
from rtui.table.schema import keys_of
from tests.clusters import TestCluster
from tests.server.targets import eventually, target_of
from tests.servers import Server

KEYS = 3_000


@pytest.fixture(autouse=True)
def refreshed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


@asynccontextmanager
async def analysed(server: Server, folder: Path) -> AsyncIterator[BrowsingSession]:
    server.admin.mset({f"user:{number}": "x" for number in range(KEYS)})
    async with browsed(server, folder) as session:
        yield session


@asynccontextmanager
async def browsed(server: Server, folder: Path) -> AsyncIterator[BrowsingSession]:
    """A session after an analysis of all keys."""
    session = BrowsingSession(BrowseOptions(target_of(server), pace="full"), state_folder=folder)
    await session.start()
    try:
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        session.analysis.begin()
        await ended(session.analysis)
        yield session
    finally:
        await session.close()
        assert session.analysis.rows is None


async def ended(analysis: AnalysisSession) -> None:
    await eventually(lambda: analysis.report is not None and analysis.under_way is None)


def kept(session: BrowsingSession) -> list[bytes]:
    rows = session.analysis.rows
    return [] if rows is None else [key for one in rows.rows.chunks() for key in keys_of(one.columns(["name", "raw"]))]


async def test_rows_stay_with_the_run_of_the_server(valkey: Server, tmp_path: Path) -> None:
    async with analysed(valkey, tmp_path) as session:
        assert sorted(kept(session)) == sorted(b"user:%d" % number for number in range(KEYS))
        generation = session.status.generation
        valkey.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: session.status.generation > generation and isinstance(session.status.link, Online))
        assert len(kept(session)) == KEYS
        assert isinstance(session.search(parse("type:string")), RowsSearch)


async def test_rows_of_a_server_that_was_restarted_are_dropped(server: Server, tmp_path: Path) -> None:
    async with analysed(server, tmp_path) as session:
        rows = session.analysis.rows
        assert rows is not None
        server.restart()
        await eventually(lambda: session.status.outdated is not None)
        assert not isinstance(session.search(parse("type:string")), RowsSearch)
        assert session.analysis.rows is None
        assert not rows.rows.height


async def test_rows_are_those_before_until_the_same_was_asked_again(valkey: Server, tmp_path: Path) -> None:
    async with analysed(valkey, tmp_path) as session:
        before = session.analysis.rows
        assert before is not None
        valkey.admin.set("later", "x")
        session.analysis.begin_again()
        assert session.analysis.rows == before
        await eventually(lambda: session.analysis.under_way is None)
        await eventually(lambda: len(kept(session)) == KEYS + 1)
        assert not before.rows.height
        valkey.admin.set("later still", "x")
        session.analysis.begin_again()
        session.analysis.control.stop()
        await eventually(lambda: session.analysis.under_way is None)
        assert len(kept(session)) == KEYS + 1
        session.analysis.begin()
        await eventually(lambda: len(kept(session)) == KEYS + 2)


async def test_a_sample_keeps_no_rows(valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.analysis.session.ESTIMATE_KEYS", 200)
    async with analysed(valkey, tmp_path) as session:
        session.analysis.begin(estimate=True)
        await ended(session.analysis)
        assert session.analysis.rows is None


async def test_rows_of_an_analysis_that_begins_again_are_those_of_the_new_run(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({f"user:{number}": "x" for number in range(10 * KEYS)})
    async with analysed(valkey, tmp_path) as session:
        analysis = session.analysis
        analysis.control.pace = Pace.GENTLE
        analysis.begin()
        await eventually(lambda: kept(session))
        analysis.control.pause()
        assert analysis.under_way is not None
        valkey.restart()
        valkey.admin.mset({f"new:{number}": "x" for number in range(KEYS)})
        analysis.control.resume()
        await eventually(lambda: analysis.under_way is None)
        assert analysis.status.progress.state is ScanState.DONE
        assert sorted(kept(session)) == sorted(b"new:%d" % number for number in range(KEYS))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_rows_of_a_cluster_are_dropped_with_its_set_of_nodes(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(b"user:%d" % number for number in range(KEYS))
    first = cluster.members[0]
    async with browsed(cluster.members[1].server, tmp_path) as session:
        assert len(kept(session)) == KEYS
        node = session.search(parse(f"node:{first.server.host}:{first.server.port}"))
        assert isinstance(node, RowsSearch)
        node.prepare()
        await eventually(lambda: node.stage is Stage.OVER)
        slots = first.slots
        assert slots is not None
        assert {slots[0] <= key_slot(one.key) <= slots[1] for one in node.kept} == {True}
        assert 0 < node.count < KEYS
        replica = next(one.server for one in cluster.members if one.primary_id == first.id)
        replica.admin.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
        await eventually(lambda: replica.admin.info("replication")["role"] == "master")

        async with asyncio.timeout(20):
            while not (await session.deployment.look()).promoted:
                pass  # each look is a round trip
        assert session.analysis.rows is None
