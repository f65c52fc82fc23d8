"""Clusters of many nodes, which a process simulates: what is asked of how many of them, and whether all keys come."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment, ScannedCluster
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.node_scan import QUEUED
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import NODES_AT_ONCE, RunControl
from rtui.server.scan.scan import Scan
from tests.fakes.cluster import Shape, SimulatedCluster, simulated
from tests.servers import CHECKOUT

MANY = Shape(nodes=60, keys=2_000)


@asynccontextmanager
async def deployed(cluster: SimulatedCluster) -> AsyncIterator[Deployment]:
    """An open deployment, closed at the end."""
    deployment = Deployment(cluster.target)
    try:
        await deployment.open()
        yield deployment
    finally:
        await deployment.close()


async def test_each_look_sees_what_has_changed_and_asks_few_nodes() -> None:
    with simulated(replace(MANY, replicas=1)) as cluster:
        async with deployed(cluster) as deployment:
            for change in (cluster.move, cluster.kill, cluster.add, cluster.remove):
                before = cluster.figures()
                what = change()
                found = await deployment.look()
                assert found.moved, what
                assert deployment.topology is not None
                assert deployment.topology.owners == cluster.owners(), what
                asked = cluster.figures()["calls"]["CLUSTER"] - before["calls"]["CLUSTER"]
                assert asked <= 10


async def test_a_slot_that_nobody_serves_does_not_have_every_node_asked() -> None:
    with simulated(MANY) as cluster:
        async with deployed(cluster) as deployment:
            cluster.kill()
            before = cluster.figures()
            await deployment.look()
            assert deployment.topology is not None
            uncovered = [slot for slot in range(SLOTS) if slot not in deployment.topology.owners]
            assert uncovered == before["uncovered"] != []
            after = cluster.figures()
            assert after["calls"]["CLUSTER"] - before["calls"]["CLUSTER"] <= 20
            assert after["most_connections"] - before["connections"] <= 10


@pytest.mark.parametrize(("is_slotted", "pace"), [(True, Pace.GENTLE), (False, Pace.FULL)])
async def test_each_key_comes_once(is_slotted: bool, pace: Pace) -> None:
    with simulated(replace(MANY, is_slotted=is_slotted)) as cluster:
        async with deployed(cluster) as deployment:
            found = Counter[bytes]()
            nodes = [
                ScanNode(one.connection, dialect_of(one.connection.server), one.id, slots=one.slots)
                for one in await deployment.scanned()
            ]
            scan = Scan(nodes, found.update, RunControl(pace))
            await scan.run()
        assert scan.progress.state is ScanState.DONE
        assert found == Counter(cluster.keys())


async def scan_of(deployment: Deployment, sink: Callable[[list[bytes]], None], pace: Pace = Pace.FULL) -> Scan:
    """A scan of all nodes, which covers slot by slot."""
    cluster = ScannedCluster(deployment)
    return Scan(cluster.scan_nodes(await deployment.scanned(), {}), sink, RunControl(pace), cluster=cluster)


@pytest.mark.parametrize("is_slotted", [True, False])
async def test_so_many_nodes_are_scanned_at_once_at_most_while_the_others_wait(is_slotted: bool) -> None:
    found, working, waiting = Counter[bytes](), set[int](), set[int]()

    def deliver(keys: list[bytes]) -> None:
        found.update(keys)
        working.add(sum(one.connection.bulk_turns for one in nodes))
        waiting.add(sum(one.waits_for == QUEUED for one in scan.nodes if one.state is ScanState.WAITING))

    with simulated(replace(MANY, is_slotted=is_slotted)) as cluster:
        async with deployed(cluster) as deployment:
            nodes = await deployment.scanned()
            scan = await scan_of(deployment, deliver)
            await scan.run()
        most_connections = cluster.figures()["most_connections"]
    assert scan.progress.state is ScanState.DONE
    assert found == Counter(cluster.keys())
    assert max(working) == NODES_AT_ONCE
    assert max(waiting) == MANY.nodes - NODES_AT_ONCE
    assert most_connections < 1 + MANY.nodes + 2 * NODES_AT_ONCE


async def test_a_stopped_scan_does_not_begin_with_the_nodes_that_wait() -> None:
    with simulated(MANY) as cluster:
        async with deployed(cluster) as deployment:
            scan = await scan_of(deployment, lambda _: scan.control.stop(), Pace.GENTLE)
            await scan.run()
    assert scan.progress.state is ScanState.STOPPED
    assert sum(node.cost.commands > 0 for node in scan.nodes) <= NODES_AT_ONCE


async def test_nodes_that_can_not_be_reached_keep_no_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.scan.cluster_scan.SETTLE_S", 1.0)
    found = Counter[bytes]()
    with simulated(MANY) as cluster:
        async with deployed(cluster) as deployment:
            await deployment.scanned()
            for _ in range(NODES_AT_ONCE + 4):
                cluster.kill()
            scan = await scan_of(deployment, found.update)
            await scan.run()
        served = cluster.owners()
        names = cluster.keys()
        assert found == Counter(key for key in names if key_slot(key) in served)
    uncovered = {slot for one in scan.uncovered for first, last in one.slots for slot in range(first, last + 1)}
    assert scan.progress.state is ScanState.STOPPED
    assert uncovered == {*range(SLOTS)} - served.keys()


@pytest.mark.parametrize("estimate_keys", [None, 500])
async def test_many_nodes_are_reported_on_with_few_connections_for_scanning(estimate_keys: int | None) -> None:
    with simulated(MANY) as cluster:
        async with deployed(cluster) as deployment:
            options = AnalysisOptions(pace=Pace.FULL, estimate_keys=estimate_keys)
            analysis = AnalysisRun(deployment.home, options, deployment=deployment)
            await analysis.run()
        most_connections = cluster.figures()["most_connections"]
    assert analysis.report is not None
    coverage = analysis.report.head.coverage
    assert coverage.kind is (CoverageKind.EXACT if estimate_keys is None else CoverageKind.ESTIMATE)
    assert coverage.total_keys == MANY.keys
    assert most_connections < 1 + MANY.nodes + 3 * NODES_AT_ONCE


FEW_FILES = """
import asyncio, resource, sys
from rtui.server.deployment.nodes import Deployment
from rtui.server.wire.errors import ConnectFailure
from rtui.server.wire.target import Target

async def nodes():
    deployment = Deployment(Target(port=int(sys.argv[1])))
    try:
        await deployment.open()
        return len(await deployment.scanned())
    except ConnectFailure as failed:
        return f"{failed.happened} {failed.remedy}"
    finally:
        await deployment.close()

resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[2])))
print(asyncio.run(nodes()))
"""
"""Prints of a cluster, at most 64 files being open and some more allowed, how many nodes it has a connection to."""


@pytest.mark.parametrize(
    ("most", "says"),
    [
        (400, "60"),
        (128, "The cluster has 60 primaries, which takes 170 files and connections open; this process may have 128."),
    ],
)
def test_as_many_files_are_allowed_as_a_cluster_takes_or_it_is_said(most: int, says: str) -> None:
    with simulated(MANY) as cluster:
        command = [sys.executable, "-c", FEW_FILES, str(cluster.port), str(most)]
        found = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    assert found.stdout.startswith(says)
    assert "ulimit -n" in found.stdout or says == "60"
