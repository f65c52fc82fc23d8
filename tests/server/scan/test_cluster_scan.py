"""Scans of real clusters whose slots move, whose nodes die and come, against the truth that their writer knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtui.analysis.report.document import Scope
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators
from rtui.server.deployment.topology import ClusterWatch
from rtui.server.inspection.engine_inspection import InspectingEngine
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.cluster_scan import ClusterScan
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode, SplitSink
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.scan.slot_ledger import ClusterSlots
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from rtui.table.aggregates import Aggregates
from tests.clusters import TestCluster, set_slots
from tests.conftest import known
from tests.server.targets import Seen, asked_by, eventually, numbered
from tests.servers import Server

KEYS = 12_000


class Primaries:
    """What a scan has to know of a cluster, with connections that are closed at the end."""

    def __init__(self, cluster: TestCluster, stack: AsyncExitStack, counted: Counted) -> None:
        self._stack, self._counted = stack, counted
        self._watch = ClusterWatch([Target(port=one.server.port) for one in cluster.members], CommandLog())
        stack.push_async_callback(self._watch.close)

    async def owners(self) -> Mapping[int, str]:
        await self._watch.look()
        return self._watch.topology.owners

    @property
    def members(self) -> frozenset[str]:
        return frozenset(node.id for node in self._watch.topology.nodes)

    @property
    def given_up(self) -> frozenset[str]:
        return self._watch.topology.given_up

    async def node(self, node_id: str) -> ScanNode:
        shard = known(self._watch.topology.shard_of(node_id))
        connection = Connection(self._watch.target_of(shard.primary))
        self._stack.push_async_callback(connection.close)
        await connection.open()
        queries = self._counted.queries(connection)
        return ScanNode(connection, dialect_of(connection.server), node_id, queries=queries)


@dataclass
class Counted:
    """What a scan has delivered, in one of these ways."""

    kind: str
    seen: Seen = field(default_factory=Seen)
    store: NamespaceStore = field(default_factory=NamespaceStore)
    findings: Aggregates = field(init=False)
    nodes: list[ScanNode] = field(default_factory=list)
    """The nodes that are scanned at first."""
    control: RunControl = field(default_factory=RunControl)
    pauses_at: int = KEYS + 1
    """A scan that lists names is paused once so many were delivered: it ends before anything else gets a turn."""

    def __post_init__(self) -> None:
        self.findings = Aggregates(Separators(), scope=Scope(), started_at_s=0.0)

    @property
    def keys(self) -> int:
        """How many keys were delivered; of those inspected how many were there."""
        return {"pure": self.seen.keys.total(), "names": self.store.keys}.get(self.kind, self.findings.keys)

    @property
    def asker(self) -> str:
        """Who asks about the keys."""
        return "python" if self.kind == "inspected in Python" else "engine"

    def options(self) -> dict[str, Any]:
        if self.kind != "names":
            return {}

        def add(*split: Any) -> None:
            self.store.add_split(*split)
            self._pause()

        return {"split_sink": SplitSink(self.store.separators.values, add)}

    def take(self, keys: Any) -> None:
        """Take a page of names that was listed by the pure path."""
        (self.store.add if self.kind == "names" else self.seen)(keys)
        self._pause()

    def _pause(self) -> None:
        if self.keys >= self.pauses_at:
            self.control.pause()

    def queries(self, connection: Connection) -> InspectionPipeline | None:
        if self.kind not in {"inspected", "inspected in Python"}:
            return None
        plan = InspectionPlan(Capabilities(), connection.server, connection.no_touch)
        return InspectionPipeline(plan, self.findings, by_engine=InspectingEngine)

    def check(self, names: set[bytes]) -> None:
        """Each key once."""
        if self.kind == "pure":
            assert not self.seen.repeated
            assert set(self.seen.keys) == names
        assert self.keys == len(names)
        assert not self.findings.vanished_keys


@asynccontextmanager
async def scan_of(cluster: TestCluster, counted: Counted, pace: Pace = Pace.FULL) -> AsyncIterator[Scan]:
    async with AsyncExitStack() as stack:
        primaries = Primaries(cluster, stack, counted)
        node_ids = dict.fromkeys((await primaries.owners()).values())
        counted.nodes = [await primaries.node(node_id) for node_id in node_ids]
        counted.control.pace = pace
        stack.enter_context(asked_by(counted.asker))
        yield Scan(counted.nodes, counted.take, counted.control, cluster=primaries, **counted.options())


async def delivered(counted: Counted, keys: int) -> None:
    """Wait until so many keys were delivered."""
    await eventually(lambda: counted.keys >= keys)


@asynccontextmanager
async def interrupted(scan: Scan, counted: Counted) -> AsyncIterator[None]:
    """Run a scan that pauses for the block, once a part of its keys was delivered."""
    counted.pauses_at = KEYS // 8
    running = asyncio.create_task(scan.run())
    await delivered(counted, KEYS // 8)
    counted.control.pause()
    counted.pauses_at = KEYS + 1
    yield
    counted.control.resume()
    await running


def fill(cluster: TestCluster, count: int = KEYS) -> set[bytes]:
    names = numbered(count)
    cluster.fill(names)
    return set(names)


def busiest(keys: set[bytes], first: int, last: int, count: int) -> list[int]:
    """Slots between two that have keys."""
    return sorted({key_slot(key) for key in keys if first <= key_slot(key) <= last})[:: max(1, KEYS // 30 // count)][
        :count
    ]


def disturb(cluster: TestCluster, keys: set[bytes]) -> None:
    """Move some slots from the second primary to the third one, and kill the first once its replica has all."""
    dying, source, target = (member.server for member in cluster.members[:3])
    assert dying.admin.wait(1, 5_000) == 1
    cluster.move_slots(busiest(keys, 6000, 10_000, 4), source, target)
    dying.stop()


KINDS = ("pure", "names", "inspected", "inspected in Python")


def of_every_kind(*versions: str) -> Callable[[Any], Any]:
    """Let a test run on clusters of these versions with each kind of scan; without --thorough with one pair in six."""

    def marked(test: Any) -> Any:
        for mark in (
            pytest.mark.parametrize("cluster", versions, indirect=True),
            pytest.mark.parametrize("kind", KINDS),
            pytest.mark.sampled("cluster", "kind", one_in=6),
        ):
            test = mark(test)
        return test

    return marked


@pytest.mark.slow
@of_every_kind("redis-6.2", "redis-8.10", "valkey-9.1")
async def test_slots_that_move_while_they_are_scanned(cluster: TestCluster, kind: str) -> None:
    names, counted = fill(cluster), Counted(kind)
    first, third = cluster.members[0].server, cluster.members[2].server
    async with scan_of(cluster, counted, Pace.GENTLE) as scan:
        running = asyncio.create_task(scan.run())
        await delivered(counted, KEYS // 4)
        for source, target, bounds in ((first, third, (4000, 5400)), (third, first, (15_000, 16_383))):
            for slot in busiest(names, *bounds, 6):
                await asyncio.to_thread(cluster.move_slots, [slot], source, target)
        await running
    counted.check(names)
    assert scan.state is ScanState.DONE, scan.progress.reason
    assert not scan.uncovered
    assert [node.state for node in scan.nodes] == [ScanState.DONE] * 3
    assert scan.progress.fraction == 1.0


@pytest.mark.slow
@of_every_kind("redis-7.0", "redis-8.10", "valkey-9.1")
async def test_a_primary_dies_and_its_replica_takes_over(cluster: TestCluster, kind: str) -> None:
    names, counted = fill(cluster), Counted(kind)
    dying = cluster.members[0]
    assert dying.server.admin.wait(1, 5_000) == 1
    async with scan_of(cluster, counted, Pace.GENTLE) as scan, interrupted(scan, counted):
        dying.server.stop()
    counted.check(names)
    assert scan.state is ScanState.DONE
    assert scan.progress.reason is None
    assert {node.id for node in scan.nodes} > {dying.id}
    assert len(scan.nodes) == 4


@pytest.mark.slow
@pytest.mark.sampled("cluster", "kind")
@pytest.mark.parametrize("kind", ["names", "inspected", "inspected in Python"])
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_nodes_whose_cursors_are_no_positions_any_more_are_scanned_plainly(
    cluster: TestCluster, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine has begun is gone on with in Python."""
    names, counted = fill(cluster), Counted(kind)
    unlike: list[Connection] = []

    async def found(connection: Connection, size: int | None) -> int:
        connection.cursors_are_positions = connection not in unlike
        return 0

    monkeypatch.setattr("rtui.server.scan.node_scan.prove_cursors", found)
    async with scan_of(cluster, counted, Pace.GENTLE) as scan, interrupted(scan, counted):
        for node in counted.nodes:  # of some, all keys may have come by now
            unlike.append(node.connection)
            cluster.server(node.id or "").admin.client_kill_filter(_type="normal", skipme=True)
    counted.check(names)
    assert scan.state is ScanState.DONE, scan.progress.reason
    assert ScanNote.UNPROVEN in scan.progress.notes


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_slots_that_nobody_serves_any_more_are_named(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the cluster itself says that nobody is left who could serve them."""
    monkeypatch.setattr("rtui.server.scan.cluster_scan.SETTLE_S", 600.0)
    monkeypatch.setattr("rtui.server.scan.cluster_scan.GIVEN_UP_S", 0.5)
    names, counted = fill(cluster), Counted("pure")
    async with scan_of(cluster, counted, Pace.GENTLE) as scan, interrupted(scan, counted):
        for member in cluster.members:
            if cluster.members[0].id in {member.id, member.primary_id}:
                member.server.stop()
    assert scan.state is ScanState.STOPPED
    (uncovered,) = scan.uncovered
    assert uncovered.node_id == cluster.members[0].id
    missing = names - set(counted.seen.keys)
    assert missing
    assert all(any(first <= key_slot(key) <= last for first, last in uncovered.slots) for key in missing)
    assert not counted.seen.repeated
    assert f"of 127.0.0.1:{cluster.members[0].server.port} were not covered" in known(scan.progress.reason)


@pytest.mark.parametrize("kind", ["pure", "names"])
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_scan_that_is_stopped_ends_without_holding_the_event_loop(
    cluster: TestCluster, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.scan.cluster_scan.SETTLE_S", 1.0)
    waits: list[float] = []
    wait_for_stop = RunControl.wait_for_stop

    async def counted_wait(control: RunControl, seconds: float) -> None:
        waits.append(seconds)
        await wait_for_stop(control, seconds)

    fill(cluster)
    counted = Counted(kind, pauses_at=KEYS // 4)
    async with scan_of(cluster, counted, Pace.GENTLE) as scan:
        running = asyncio.create_task(scan.run())
        await delivered(counted, KEYS // 4)
        monkeypatch.setattr(RunControl, "wait_for_stop", counted_wait)
        scan.control.stop()
        await running
    assert scan.state is ScanState.STOPPED
    assert counted.keys < KEYS
    assert len(waits) <= len(scan.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-8.10"], indirect=True)
async def test_a_node_that_is_restarted_goes_on(cluster: TestCluster) -> None:
    names, counted = fill(cluster), Counted("pure")
    server = cluster.members[1].server
    server.admin.config_set("cluster-node-timeout", 60_000)
    async with scan_of(cluster, counted, Pace.GENTLE) as scan, interrupted(scan, counted):
        server.admin.save()
        server.stop()
        server.launch()
        await asyncio.to_thread(server.wait_ready)
    counted.check(names)
    assert scan.state is ScanState.DONE, scan.progress.reason
    assert ScanNote.NODE_RESTARTED in scan.progress.notes


def asked_for(server: Server, command: str) -> int:
    return int(server.admin.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])


@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_keys_of_a_slot_that_only_the_node_that_takes_it_in_knows_of_may_be_missing(cluster: TestCluster) -> None:
    """As after a failover in the middle: the keys that have moved are on a node that does not serve their slot."""
    names, counted = fill(cluster), Counted("pure")
    source, target = cluster.members[0].server, cluster.members[1].server
    (slot,) = busiest(names, 0, 5460, 1)
    held = {b"{%b}:%d" % (next(key for key in names if key_slot(key) == slot), number) for number in range(10)}
    cluster.fill(held)
    cluster.begin_moves([slot], source, target)
    assert cluster.move_keys(slot, source, target, 6) == 6
    cluster.cancel_moves([slot], source)
    async with scan_of(cluster, counted) as scan:
        await scan.run()
    assert scan.state is ScanState.DONE, scan.progress.reason
    assert ScanNote.TAKING_IN in scan.progress.notes
    assert {key for key in names if key_slot(key) != slot} <= set(counted.seen.keys) <= names | held


@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_a_slot_that_a_node_only_seems_to_take_in_is_covered(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a move that was given up before its first key: the mark stays until somebody takes it away."""
    monkeypatch.setattr("rtui.server.scan.cluster_scan.VIEW_EVERY_S", 0.2)
    names, counted = fill(cluster), Counted("pure")
    set_slots(cluster.members[1].server, busiest(names, 0, 5460, 3), "IMPORTING", cluster.members[0].id)
    async with scan_of(cluster, counted) as scan:
        await scan.run()
    counted.check(names)
    assert scan.state is ScanState.DONE, scan.progress.reason


async def test_nodes_whose_keys_are_to_be_asked_about_are_waited_for_though_every_slot_was_visited() -> None:
    """Unless the cluster has given them up."""
    scanned = SimpleNamespace(id="a", connection=SimpleNamespace(target=Target()))
    node = SimpleNamespace(node=scanned, pipeline=SimpleNamespace(waiting=1))
    for given_up, waiting, is_given_up in ((set(), 1, False), ({"a"}, 1, True), (set(), 0, True)):
        node.pipeline.waiting = waiting
        slots, cluster = ClusterSlots(0, only=frozenset()), SimpleNamespace(given_up=given_up)
        scan = ClusterScan(slots, cast(Any, cluster), RunControl(), [cast(Any, node)], cast(Any, None))
        assert scan._is_given_up() == is_given_up
