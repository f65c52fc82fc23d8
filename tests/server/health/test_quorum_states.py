"""Nodes of clusters, and Sentinels, that are lost on purpose: seen by the others, found, and told on the panel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rtui.analysis.findings.server import ServerHealth, server_health
from rtui.analysis.health.panel import Line, State
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Table
from rtui.server.deployment.nodes import Deployment
from rtui.server.health.lists import MAX_PEERS, parse_peers
from rtui.server.health.watch import HealthWatch
from rtui.server.wire.target import Target, parse_target
from tests.clusters import TestCluster
from tests.conftest import require
from tests.sentinels import Watched, watched
from tests.server.targets import eventually, target_of


class Rounds:
    """Looks at all nodes when a test says so; everything is asked each time."""

    def __init__(self, deployment: Deployment) -> None:
        self.watch = HealthWatch(deployment)

    async def look(self) -> None:
        self.watch.ask_now()
        await self.watch.look()

    def health(self, label: str = "") -> ServerHealth:
        """How a node is; of a service itself."""
        node = next(node for node in self.watch.nodes if label in ("", node.label))
        return server_health(HealthView(node.samples))

    def broken(self, label: str = "") -> list[str]:
        return [one.rule for one in self.health(label).found.findings]

    def line(self, line_id: str, label: str = "") -> Line:
        lines = [line for panel in self.health(label).panels for line in panel.lines]
        return next(line for line in lines if line.id == line_id)

    def table(self, table_id: str, label: str = "") -> Table:
        tables = [table for panel in self.health(label).panels for table in panel.tables]
        return next(table for table in tables if table.id == table_id)


@asynccontextmanager
async def rounds(target: Target) -> AsyncIterator[Rounds]:
    deployment = Deployment(target)
    await deployment.open()
    try:
        yield Rounds(deployment)
    finally:
        await deployment.close()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-6.2", "valkey-9.1"], indirect=True)
async def test_a_node_of_a_cluster_that_hangs(cluster: TestCluster) -> None:
    first, second, third = (one.server for one in cluster.members[:3])
    lost = next(one.server for one in cluster.members if one.primary_id == cluster.node_id(third))
    label = f"127.0.0.1:{first.port}"

    def is_failed() -> bool:
        told = [str(first.admin.execute_command("CLUSTER NODES")), str(second.admin.execute_command("CLUSTER NODES"))]
        return all("fail" in one for one in told)

    def is_well() -> bool:
        return "fail" not in str(first.admin.execute_command("CLUSTER NODES"))

    async with rounds(target_of(first)) as looked:
        await looked.look()
        assert looked.broken(label) == []
        assert looked.line("nodes_out_of_reach", label).state is State.NORMAL
        assert len(looked.table("peers", label).rows) == 6
        lost.freeze()
        try:
            await eventually(is_failed)
            only = Deployment.over(await looked.watch._deployment.connection_of(cluster.node_id(first)))
            alone = Rounds(only)
            await alone.look()
        finally:
            lost.thaw()
        assert alone.broken() == ["cluster-node-down"]
        line = alone.line("nodes_out_of_reach")
        assert (line.value, line.state) == (1, State.WARN)
        assert "3 of 3 primaries with slots are reachable; a failover needs 2 of them" in line.said
        states = {row[0]: row[2] for row in alone.table("peers").rows}
        assert states.pop(f"127.0.0.1:{lost.port}".encode()) in ("suspect", "down")
        assert set(states.values()) == {"ok"}
        await eventually(is_well)
        await looked.look()
        assert looked.broken(label) == []


@pytest.mark.slow
async def test_sentinels_that_do_not_answer() -> None:
    with watched(require("valkey-9.1")) as service:
        target = parse_target(service.url)
        async with rounds(target) as looked:
            await looked.look()
            assert looked.broken() == []
            line = looked.line("sentinels_answering")
            assert (line.value, line.state) == (3, State.NORMAL)
            assert line.said == "of 3; a failover needs 2"
            primary = f"127.0.0.1:{service.servers[0].port}"
            assert [row[1:] for row in looked.table("sentinels").rows] == [("master", primary, 2, 3, 1)] * 3
            end(service, 2)
            await looked.look()
        found = looked.health().found.findings[0]
        assert (found.rule, found.title) == ("sentinels-failing", "1 of 3 Sentinels answer, and a failover needs 2")
        assert looked.line("sentinels_answering").state is State.WARN


def end(service: Watched, count: int) -> None:
    """Have so many Sentinels end."""
    for sentinel in service.sentinels[-count:]:
        sentinel.shutdown(nosave=True)


ID = b"07c37dfeb235213a872192d90877d0cd55635b91"


def test_lines_of_every_kind() -> None:
    lines = (
        ID + b" 127.0.0.1:30004@31004,name slave " + ID + b" 0 1426238317239 4 connected",
        ID + b" 127.0.0.1:30002@31002 master,fail? - 0 1 2 disconnected 5461-10922 [93->-" + ID + b"]",
        ID + b" :0 slave,fail,noaddr " + ID + b" 0 1 2 disconnected",
        ID + b" \x1b[31m:1@2 myself,master - 0 0 1 connected 0-5460 7000",
        b"",
        b"too short",
    )
    peers = parse_peers(b"\n".join(lines))
    assert [one.state for one in peers] == ["ok", "suspect", "down", "ok"]
    assert [one.slots for one in peers] == [0, 5_462, 0, 5_462]
    assert [one.is_linked for one in peers] == [True, False, False, True]
    assert [one.is_self for one in peers] == [False, False, False, True]
    assert peers[0].address == b"127.0.0.1:30004"
    assert len(parse_peers(lines[0] + b"\n" * 3 + (lines[0] + b"\n") * 900)) <= MAX_PEERS + 1
