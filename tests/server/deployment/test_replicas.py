"""Reading from replicas and scanning them in place of their primaries, against the truth that the writer knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import CoverageKind
from rtui.cli.main import run
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment, ScannedCluster, ServerNode
from rtui.server.deployment.replicas import MOST_LAG_S, LagWatch, ReplicaFinder, Replication, read_replication
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.inspection.report_head import PROMOTED_NOTE
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import QuerySource, ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, ExitCode, FailureKind
from rtui.server.wire.identity import ServerIdentity, parse_identity
from rtui.server.wire.target import Target
from tests.clusters import Member, TestCluster
from tests.proxy import DelayProxy
from tests.server.browsing.test_session import browsing, whole
from tests.server.deployment.test_nodes import KEYS as NODE_KEYS
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
from tests.servers import Server, binaries, free_port, running

ONE_VERSION = pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), min_size=1, max_size=30))
def test_the_lag_is_that_of_the_last_moment_that_the_replica_has_reached(steps: list[tuple[int, int]]) -> None:
    watch, written, taken = LagWatch(), 0, 0
    history: list[int] = []
    for now, (more, behind) in enumerate(steps):
        written += more
        history.append(written)
        taken = max(taken, history[max(0, now - behind)])
        lag = watch.observe(written, taken, float(now))
        assert lag == now - max(at for at, offset in enumerate(history) if offset <= taken)
        assert lag <= behind


def test_a_replica_that_never_moves_is_further_and_further_behind() -> None:
    finder = ReplicaFinder(lambda: (Target(), [Target(port=1)]))
    primary = [Replication(is_replica=False, offset=100 * second) for second in range(1, 30)]
    replica = Replication(is_replica=True, is_linked=True, offset=5)
    judged = [finder.judge(replica, one, float(second)) for second, one in enumerate(primary)]
    assert judged.index(next(one for one in judged if one is not None)) == MOST_LAG_S + 1


LINES = st.sampled_from([b"role:slave", b"slave0:ip=a,port=1,state=online", b"slave0:ip=a,port=99999,state=online"])


@given(st.binary() | st.lists(LINES).map(b"\n".join))
def test_any_reply_is_read(reply: bytes) -> None:
    read_replication(reply)


def test_what_servers_say_of_replication() -> None:
    primary = (
        b"# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"
        b"slave0:ip=10.0.0.2,port=6380,state=online,offset=14,lag=1\r\n"
        b"slave1:ip=10.0.0.3,port=6381,state=wait_bgsave,offset=0,lag=0\r\nmaster_repl_offset:14\r\n"
    )
    assert read_replication(primary) == Replication(is_replica=False, is_linked=False, offset=14)
    assert parse_identity([primary]).replicas == (("10.0.0.2", 6380),)
    replica = (
        b"role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:9\r\n"
        b"master_replid:ab\r\nmaster_repl_offset:8\r\n"
    )
    assert read_replication(replica) == Replication(is_replica=True, is_linked=True, offset=9, stream="ab")
    assert parse_identity([replica + b"slave0:ip=10.0.0.2,port=6380,state=online\r\n"]).replicas == ()


async def test_what_was_left_is_not_asked_again_and_only_replicas_means_only_them() -> None:
    first, second = Target(port=1, replicas="only"), Target(port=2, replicas="only")
    finder = ReplicaFinder(lambda: (Target(replicas="only"), [first, second]))
    up = ServerIdentity(role="replica", primary_link_up=True)
    assert await finder.locate() == first
    assert finder.refuses(up) is None
    assert await finder.locate() == first  # it was connected to: the loss of a connection is no reason to leave it
    assert await finder.locate() == second  # but not to be reached is
    assert finder.refuses(ServerIdentity(role="primary")) is not None
    with pytest.raises(ConnectFailure, match="is no longer a replica") as failed:
        await finder.locate()
    assert failed.value.kind is FailureKind.NO_REPLICA
    assert await finder.locate() == first


async def test_a_replica_in_our_zone_is_asked_first() -> None:
    places = [Target(port=port) for port in (1, 2, 3)]
    finder = ReplicaFinder(lambda: (Target(zone="b"), places))
    in_a, in_b = (ServerIdentity(role="replica", primary_link_up=True, zone=SafeText(zone)) for zone in "ab")
    assert (await finder.locate()).port == 1
    refused = finder.refuses(in_a)
    assert refused is not None
    assert "is in zone a" in refused.happened
    assert (await finder.locate()).port == 2
    assert finder.refuses(in_b) is None
    finder.leave(SafeText("is far behind"))
    assert (await finder.locate()).port == 3  # of which nothing is known yet
    assert finder.refuses(in_a) is None  # there is no other one to be tried
    assert (await finder.locate()).port == 3


async def test_zones_that_servers_do_not_tell_are_no_reason_to_go_on() -> None:
    finder = ReplicaFinder(lambda: (Target(zone="b"), [Target(port=1), Target(port=2)]))
    assert (await finder.locate()).port == 1
    assert finder.refuses(ServerIdentity(role="replica", primary_link_up=True)) is None


@ONE_VERSION
async def test_a_cluster_is_scanned_on_its_replicas(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(NODE_KEYS)
    cluster.wait_ok()
    for member in cluster.members:
        if member.slots:
            member.server.admin.wait(1, 5_000)
    target = target_of(cluster.members[0].server, replicas="prefer")
    async with browsing(target, tmp_path) as session:
        await whole(session)
        assert session.store.keys == len(NODE_KEYS)
        nodes = await session.deployment.scanned()
        ports = {one.server.port for one in cluster.members if not one.slots}
        assert {one.connection.target.port for one in nodes} == ports
        assert all(one.primary is not None for one in nodes)
        assert session.status.progress.state is ScanState.DONE
        facts = await session.keys.key_facts(NODE_KEYS[0])  # of a single key the primary is asked
        assert int(facts.node.rpartition(":")[2]) not in ports


@ONE_VERSION
async def test_a_replica_that_dies_is_left_for_the_primary(cluster: TestCluster) -> None:
    first = cluster.members[0]
    replica = next(one for one in cluster.members if one.primary_id == first.id)
    async with deployed(target_of(cluster.members[1].server, replicas="prefer")) as deployment:
        node = (await deployment.scanned())[0]
        assert node.connection.target.port == replica.server.port
        replica.server.stop()
        await eventually(lambda: node.connection.target.port == first.server.port and node.connection.is_online)
        assert await node.connection.run(guard.ping()) == [b"PONG"]
        assert not deployment.replicas.is_asked(first.id)


@pytest.mark.slow
@ONE_VERSION
async def test_a_primary_that_was_a_replica_when_it_was_connected_to_is_asked_again_what_it_is(
    cluster: TestCluster,
) -> None:
    first, second = cluster.members[:2]
    replica = next(one for one in cluster.members if one.primary_id == first.id)
    async with deployed(target_of(second.server, replicas="prefer")) as deployment:
        await failed_over(replica.server, first.server)
        node = await deployment.scanned_node(first.id)  # by what was known before
        assert node.primary is not None
        assert (node.connection.target.port, node.connection.server.role) == (first.server.port, "replica")
        await failed_over(first.server, replica.server)
        with pytest.raises(ConnectionLost, match="no longer a replica"):
            await node.primary.caught_up(node.connection)
        await eventually(lambda: node.connection.is_online and node.connection.server.role == "primary")


async def failed_over(to: Server, before: Server) -> None:
    """Have a replica take over, and its primary follow it."""
    to.admin.execute_command("CLUSTER FAILOVER")
    await eventually(lambda: to.admin.role()[0] == b"master")
    await eventually(lambda: before.admin.info("replication").get("master_link_status") == "up")


@pytest.mark.slow
async def test_a_replica_without_its_primary_is_left_and_it_is_said(
    redis70: Server, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.deployment.replicas.CHECK_EVERY_S", 0.02)
    valkey.admin.replicaof("127.0.0.1", redis70.port)
    await eventually(lambda: valkey.admin.info("replication")["master_link_status"] == "up")
    await eventually(lambda: redis70.admin.info("replication").get("slave0", {}).get("state") == "online")
    try:
        async with deployed(target_of(redis70, replicas="prefer")) as deployment:
            (node,) = await deployment.scanned()
            assert node.connection.target.port == valkey.port
            assert node.primary is not None
            assert node.primary.label == deployment.home.target.label
            await eventually(lambda: deployment.replicas.lag_s("") is not None)
            valkey.admin.replicaof("127.0.0.1", free_port())
            await eventually(lambda: node.connection.target.port == redis70.port and node.connection.is_online)
            assert "no link to its primary" in str(deployment.notes)
    finally:
        valkey.admin.replicaof("NO", "ONE")


async def test_only_replicas_where_there_are_none(cluster_node: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.deployment.replicas.CHOICE_S", 0.01)
    async with deployed(target_of(cluster_node, replicas="only")) as deployment:
        (node,) = await deployment.scanned()
        await eventually(lambda: isinstance(node.connection.state, Lost) and node.connection.state.reason is not None)
        assert "No replica of" in str(node.connection.state)


def test_only_replicas_where_there_are_none_ends_before_it_begins(
    valkey: Server, cluster_node: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    for server in (valkey, cluster_node):
        for words in (["report", "-u", server.url], ["find", "-u", server.url, "type:string"]):
            assert run([*words, "--replicas", "only"]) == ExitCode.SERVER
            said = capsys.readouterr().err
            assert f"No replica of {server.host}:{server.port} is available." in said
            assert "--replicas prefer" in said


async def test_a_replica_that_was_named_is_the_one_that_is_asked(redis70: Server, valkey: Server) -> None:
    valkey.admin.replicaof("127.0.0.1", redis70.port)
    try:
        await eventually(lambda: valkey.admin.info("replication")["master_link_status"] == "up")
        async with deployed(target_of(valkey, replicas="only")) as deployment:
            deployment.require_replicas()
            (node,) = await deployment.scanned()
            assert node.connection is deployment.home
    finally:
        valkey.admin.replicaof("NO", "ONE")


async def test_only_replicas_of_one_server_without_any(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.deployment.replicas.CHOICE_S", 0.5)
    target = target_of(valkey, replicas="only")
    async with deployed(target) as deployment:
        with pytest.raises(ConnectFailure, match=r"No replica of .* is available"):
            await deployment.scanned()


async def test_one_server_without_replicas_is_asked_itself(valkey: Server) -> None:
    async with deployed(target_of(valkey, replicas="prefer")) as deployment:
        (node,) = await deployment.scanned()
        assert isinstance(deployment, Deployment)
        assert node.connection is deployment.home


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
