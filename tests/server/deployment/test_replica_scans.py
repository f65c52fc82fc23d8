"""Scans of replicas in place of their primaries, against the truth that the primaries' writer knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.cli.main import run
from rtui.keyspace.slots import key_slot
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment, ScannedCluster, ServerNode
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.inspection.report_head import PROMOTED_NOTE
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import QuerySource, ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from tests.clusters import Member, TestCluster
from tests.proxy import DelayProxy
from tests.server.browsing.test_session import browsing, whole
from tests.server.deployment.test_nodes import deployed
from tests.server.scan.test_cluster_scan import (
    KEYS,
    Counted,
    asked_for,
    busiest,
    delivered,
    fill,
    interrupted,
    of_every_kind,
)
from tests.server.targets import asked_by, eventually, numbered, plant, target_of
from tests.servers import Server, binaries, running

VERSIONS = ["redis-7.0", "redis-8.10", "valkey-9.1"]
ALONE = KEYS // 2
"""Keys of one primary."""


def replica_of(cluster: TestCluster, primary: Member) -> Member:
    return next(one for one in cluster.members if one.primary_id == primary.id)


@asynccontextmanager
async def scan_of_replicas(cluster: TestCluster, counted: Counted, pace: Pace = Pace.GENTLE) -> AsyncIterator[Scan]:
    """A scan of a replica of each primary."""

    def queries_of(node: ServerNode) -> QuerySource:
        queries = counted.queries(node.connection)
        assert queries is not None
        return queries

    async with deployed(target_of(cluster.members[0].server, replicas="prefer")) as deployment:
        nodes = await deployment.scanned()
        ports = {one.server.port for one in cluster.members if one.primary_id is not None}
        assert {one.connection.target.port for one in nodes} == ports
        asks = counted.kind not in {"pure", "names"}
        whole = ScannedCluster(deployment, queries_of if asks else None)
        counted.control.pace = pace
        scanned = whole.scan_nodes(nodes, {})
        with asked_by(counted.asker):
            yield Scan(scanned, counted.take, counted.control, cluster=whole, **counted.options())


def finished(scan: Scan, counted: Counted, names: set[bytes]) -> None:
    counted.check(names)
    assert scan.state is ScanState.DONE, scan.progress.reason
    assert not scan.uncovered


@of_every_kind(*VERSIONS)
async def test_every_key_once(cluster: TestCluster, kind: str) -> None:
    names, counted = fill(cluster), Counted(kind)  # what has just been written is there, however late it comes
    async with scan_of_replicas(cluster, counted, Pace.FULL) as scan:
        await scan.run()
    finished(scan, counted, names)
    assert not scan.progress.notes


@pytest.mark.slow
@of_every_kind(*VERSIONS)
async def test_slots_that_move_while_replicas_are_scanned(cluster: TestCluster, kind: str) -> None:
    names, counted = fill(cluster), Counted(kind)
    first, third = cluster.members[0].server, cluster.members[2].server
    async with scan_of_replicas(cluster, counted) as scan, interrupted(scan, counted):
        for source, target, bounds in ((first, third, (4000, 5400)), (third, first, (15_000, 16_383))):
            for slot in busiest(names, *bounds, 6):
                await asyncio.to_thread(cluster.move_slots, [slot], source, target, batch=1)
    finished(scan, counted, names)


@pytest.mark.slow
@of_every_kind(*VERSIONS)
async def test_a_slot_that_is_half_moved(cluster: TestCluster, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its node's replica lists what is left, and does not know of the rest, nor that it is being moved."""
    monkeypatch.setattr("rtui.server.scan.cluster_scan.VIEW_EVERY_S", 0.2)
    names, counted = fill(cluster), Counted(kind)
    source, target = cluster.members[0].server, cluster.members[1].server
    (slot,) = busiest(names, 5000, 5461, 1)
    held = [b"{%b}:%d" % (next(key for key in names if key_slot(key) == slot), number) for number in range(10)]
    cluster.fill(held)
    cluster.begin_moves([slot], source, target)
    cluster.move_keys(slot, source, target, 6)
    counted.pauses_at = 2 * KEYS
    async with scan_of_replicas(cluster, counted, Pace.FULL) as scan:
        running_scan = asyncio.create_task(scan.run())
        await delivered(counted, len(names) + 4)
        views = asked_for(source, "cluster|nodes")
        await eventually(lambda: scan.state.is_over or asked_for(source, "cluster|nodes") > views + 2)
        assert not scan.state.is_over
        await asyncio.to_thread(cluster.move_slots, [slot], source, target)
        await running_scan
    finished(scan, counted, names.union(held))


@pytest.mark.slow
@of_every_kind(*VERSIONS)
async def test_a_replica_dies_and_its_primary_is_scanned(cluster: TestCluster, kind: str) -> None:
    names, counted = fill(cluster), Counted(kind)
    dying, primary = replica_of(cluster, cluster.members[1]), cluster.members[1]
    async with scan_of_replicas(cluster, counted) as scan, interrupted(scan, counted):
        (asked,) = [one for one in scan.nodes if one.label.endswith(f":{dying.server.port}")]
        is_midway = 0 < (asked.fraction or 0) < 1  # the engine may be ahead of a busy event loop
        dying.server.stop()
    finished(scan, counted, names)
    assert not is_midway or ScanNote.NODE_REPLICA_LEFT in scan.progress.notes
    assert not is_midway or f"127.0.0.1:{primary.server.port}" in {one.label for one in scan.nodes}


@pytest.mark.slow
@of_every_kind(*VERSIONS)
async def test_a_replica_is_promoted(cluster: TestCluster, kind: str) -> None:
    names, counted = fill(cluster), Counted(kind)
    promoted = replica_of(cluster, cluster.members[0])
    async with scan_of_replicas(cluster, counted) as scan, interrupted(scan, counted):
        promoted.server.admin.execute_command("CLUSTER FAILOVER")
        await eventually(lambda: promoted.server.admin.role()[0] == b"master")
    finished(scan, counted, names)
    assert promoted.id in {node.id for node in scan.nodes}


@pytest.mark.slow
@pytest.mark.parametrize("cluster", VERSIONS, indirect=True)
async def test_a_primary_dies_whose_replica_is_scanned(cluster: TestCluster) -> None:
    names, counted = fill(cluster), Counted("pure")
    promoted = replica_of(cluster, cluster.members[0])
    async with scan_of_replicas(cluster, counted) as scan, interrupted(scan, counted):
        cluster.members[0].server.stop()
    finished(scan, counted, names)
    assert promoted.id in {node.id for node in scan.nodes}


@contextmanager
def replicated(version: str) -> Iterator[tuple[Server, Server]]:
    """A primary that is no node of a cluster, and a replica of it."""
    binary = binaries()[version]
    with running(binary, "--repl-diskless-sync-delay", "0") as primary, running(binary) as replica:
        yield primary, replica


async def follow(replica: Server, primary: Server, port: int | None = None) -> None:
    """Make a server a replica, by another port than the primary's own if need be."""
    replica.admin.replicaof(primary.host, port or primary.port)
    await eventually(lambda: replica.admin.info("replication")["master_link_status"] == "up")
    await eventually(lambda: primary.admin.info("replication").get("slave0", {}).get("state") == "online")


def scan_of(node: ServerNode, counted: Counted) -> Scan:
    assert node.primary is not None
    whole = ScanNode(node.connection, dialect_of(node.connection.server), primary=node.primary)
    control = RunControl(Pace.GENTLE)
    return Scan([whole], counted.seen, control, on_restart=lambda _: counted.seen.keys.clear())


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", VERSIONS)
async def test_one_server_by_a_replica_that_was_behind(version: str, tmp_path: Path) -> None:
    with replicated(version) as (primary, replica):
        async with DelayProxy(primary.port, records=False) as link:
            await follow(replica, primary, link.port)
            link.hold_replies()
            names = plant(primary, numbered(ALONE))
            async with deployed(target_of(primary, replicas="only")) as deployment:
                (node,) = await deployment.scanned()
                assert node.connection.target.port == replica.port
                counted = Counted("pure")
                scan = scan_of(node, counted)
                running_scan = asyncio.create_task(scan.run())
                asked = asked_for(replica, "info")
                await eventually(lambda: scan.state.is_over or asked_for(replica, "info") > asked + 3)
                assert not scan.state.is_over
                assert not counted.keys
                link.release_replies()
                await running_scan
                counted.check(names)
                assert scan.state is ScanState.DONE


@pytest.mark.slow
async def test_a_replica_that_stays_behind_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.deployment.replicas.CHOICE_S", 0.2)
    with replicated("valkey-9.1") as (primary, replica):
        async with DelayProxy(primary.port, records=False) as link:
            await follow(replica, primary, link.port)
            link.hold_replies()
            plant(primary, numbered(ALONE))
            async with browsing(target_of(primary, replicas="prefer"), tmp_path) as session:
                await whole(session)
                assert session.store.keys == ALONE
                assert not session.deployment.replicas.is_asked("")
                assert "no replica was in sync" in str(session.status.notes)


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_replica_that_was_away_does_not_hide_keys(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back before anybody looks, but its primary has sent it all keys anew."""
    monkeypatch.setattr("rtui.server.deployment.replicas.CHECK_EVERY_S", 600)
    with replicated(version) as (primary, replica):
        names = plant(primary, numbered(ALONE))
        await follow(replica, primary)
        async with deployed(target_of(primary, replicas="prefer")) as deployment:
            (node,) = await deployment.scanned()
            counted = Counted("pure")
            scan = scan_of(node, counted)
            running_scan = asyncio.create_task(scan.run())
            await delivered(counted, ALONE // 4)
            replica.admin.replicaof("NO", "ONE")
            replica.admin.flushall()
            await follow(replica, primary)
            await running_scan
            counted.check(names)
            assert scan.state is ScanState.DONE
            assert ScanNote.REPLICA_LEFT in scan.progress.notes
            assert node.connection.target.port == primary.port


async def test_an_analysis_of_a_replica_says_so() -> None:
    with replicated("valkey-9.1") as (primary, replica):
        plant(primary, numbered(4 * ALONE))
        await follow(replica, primary)
        async with deployed(target_of(primary, replicas="prefer")) as deployment:
            run = AnalysisRun(deployment.home, AnalysisOptions(pace=Pace.FULL), deployment=deployment)
            await run.run()
        report = run.report
        assert report is not None
        assert (report.summary.root.stats.keys, report.head.coverage.kind) == (4 * ALONE, CoverageKind.EXACT)
        assert report.head.server.role == "replica"
        assert any("those of this replica" in note for note in report.head.notes)
        assert REPLICA_NOTE in report.hot.about


async def test_an_analysis_of_a_replica_that_is_promoted_still_says_whose_idle_times_they_are() -> None:
    with replicated("valkey-9.1") as (primary, replica):
        plant(primary, numbered(4 * ALONE))
        await follow(replica, primary)
        async with deployed(target_of(replica)) as deployment:
            run = AnalysisRun(deployment.home, AnalysisOptions(pace=Pace.GENTLE), deployment=deployment)
            running_run = asyncio.create_task(run.run())
            await eventually(lambda: run.progress.keys > ALONE)
            replica.admin.replicaof("NO", "ONE")
            replica.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await running_run
        assert run.report is not None
        assert run.report.head.server.role == "primary"
        assert run.report.head.coverage.kind is CoverageKind.EXACT
        assert PROMOTED_NOTE in run.report.head.notes


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", VERSIONS)
async def test_one_server_whose_replica_dies(version: str) -> None:
    with replicated(version) as (primary, replica):
        names = plant(primary, numbered(ALONE))
        await follow(replica, primary)
        async with deployed(target_of(primary, replicas="prefer")) as deployment:
            (node,) = await deployment.scanned()
            assert isinstance(deployment, Deployment)
            assert node.connection.target.port == replica.port
            counted = Counted("pure")
            scan = scan_of(node, counted)
            running_scan = asyncio.create_task(scan.run())
            await delivered(counted, ALONE // 4)
            replica.stop()
            await running_scan
            counted.check(names)
            assert scan.progress.notes == (ScanNote.REPLICA_LEFT,)
            assert node.connection.target.port == primary.port


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_what_is_not_said_otherwise_asks_replicas(cluster: TestCluster, capsys: pytest.CaptureFixture[str]) -> None:
    fill(cluster)
    assert run(["report", cluster.members[0].server.url, "--format", "json", "--no-keep", "--pace", "full"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["head"]["coverage"]["kind"] == "exact"
    assert report["head"]["coverage"]["keys"] == KEYS
    assert {node["role"] for node in report["cluster"]["nodes"]} == {"replica"}
