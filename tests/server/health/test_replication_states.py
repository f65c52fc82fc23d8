"""Replication and quorums driven into states, and found: broken links, resyncs, lost nodes and Sentinels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from rtui.analysis.findings.server import ServerHealth, server_health
from rtui.analysis.health.panel import Line, State
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Table
from rtui.server.deployment.nodes import Deployment
from rtui.server.health.lists import MAX_PEERS, parse_peers
from rtui.server.health.watch import HealthWatch
from rtui.server.wire.target import Target, parse_target
from tests.clusters import TestCluster, Watched, watched
from tests.conftest import require
from tests.proxy import DelayProxy
from tests.server.health.driven import Given, Looking, looking, number
from tests.server.targets import eventually, target_of
from tests.servers import Server, running

QUICKLY = ("--repl-diskless-sync-delay", "0", "--repl-backlog-size", "16kb")


def says(server: Server, name: str, value: object) -> bool:
    """Whether INFO replication has this value."""
    return bool(server.admin.info("replication").get(name) == value)


@asynccontextmanager
async def replicating(server: Server) -> AsyncIterator[tuple[Server, Server, DelayProxy]]:
    """A primary, and a replica of it that goes through a proxy; both are in step."""
    with ExitStack() as stack:
        primary = stack.enter_context(running(server.binary, *QUICKLY))
        async with DelayProxy(primary.port, records=False) as proxy:
            replica = stack.enter_context(running(server.binary, *QUICKLY))
            replica.admin.replicaof("127.0.0.1", proxy.port)
            await eventually(lambda: says(replica, "master_link_status", "up"))
            await in_step(primary)
            yield primary, replica, proxy


async def in_step(primary: Server) -> None:
    """Wait until the replica has acknowledged everything."""

    def acknowledged() -> bool:
        told = primary.admin.info("replication")
        one = told.get("slave0")
        return one is not None and one["state"] == "online" and one["offset"] == told["master_repl_offset"]

    await eventually(acknowledged)


def write(server: Server, count: int) -> None:
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(count):
            pipeline.set(f"key:{number}", "x" * 1_000)
        pipeline.execute()


def looks_like(looked: Looking, line_id: str) -> object:
    return looked.line("replication", line_id).value


@pytest.mark.slow
async def test_a_replica_behind_a_slow_link(server: Server) -> None:
    """Its acknowledgements come, and what is written does not get to it."""
    async with replicating(server) as (primary, _, proxy), looking(primary) as looked:
        await looked.look()
        assert looked.broken == []
        proxy.hold_replies()
        write(primary, 200)
        await looked.look()
        assert "replica-lagging" not in looked.broken, "one sample may have met a burst"
        await looked.look()
        assert "replica-lagging" in looked.broken
        line = looked.wrong("replication", "replica_behind")
        assert number(line) > 190_000
        assert "at the current write rate" in line.said
        assert "% of the backlog" in looked.finding("replica-lagging").title
        assert looked.table("replication", "replicas").rows[0][2] == line.value
        proxy.release_replies()
        await in_step(primary)
        await looked.look()
        assert "replica-lagging" not in looked.broken


@pytest.mark.slow
async def test_a_replica_that_acknowledges_nothing(server: Server) -> None:
    given: Given = {"replica-lagging": {"lag": 1_000}}
    async with replicating(server) as (primary, replica, _), looking(primary, given) as looked:
        replica.freeze()
        await eventually(lambda: primary.admin.info("replication")["slave0"]["lag"] >= 2)
        await looked.look()
        replica.thaw()
        assert looked.broken == ["replica-lagging"]
        assert number(looked.wrong("replication", "replica_lag")) >= 2


@pytest.mark.slow
async def test_a_link_that_is_down_and_a_replica_that_is_lost(server: Server) -> None:
    async with replicating(server) as (primary, replica, proxy), looking(primary) as looked, looking(replica) as other:
        await looked.look()
        await other.look()
        assert (looked.broken, other.broken) == ([], [])
        assert other.line("replication", "master_link_status").state is State.NORMAL
        await proxy.refuse()
        proxy.cut()
        await eventually(lambda: says(replica, "master_link_status", "down"))
        await eventually(lambda: says(primary, "connected_slaves", 0))
        await looked.look()
        await other.look()
        assert looked.broken == ["replica-missing"]
        assert looked.wrong("replication", "connected_slaves").value == 0
        assert other.broken == ["replication-broken"]
        assert other.wrong("replication", "master_link_status", State.BAD).value == "down"
        assert other.line("replication", "role").value == "replica"
        assert other.line("replication", "primary").value == f"127.0.0.1:{proxy.port}"


@pytest.mark.slow
async def test_resyncs_and_a_backlog_that_is_too_short(server: Server) -> None:
    async with replicating(server) as (primary, replica, proxy), looking(primary) as looked:
        proxy.cut()
        await eventually(lambda: primary.admin.info("stats")["sync_partial_ok"] >= 1)
        await in_step(primary)
        await looked.look()
        assert looks_like(looked, "sync_full") == 1
        assert looks_like(looked, "sync_partial_ok") == 1
        assert looks_like(looked, "backlog_seconds") is None
        write(primary, 100)
        await in_step(primary)
        await looked.look()
        assert looked.broken == ["backlog-short"]
        assert 1 < number(looked.wrong("replication", "backlog_seconds")) < 6
        refused = number(looked.line("replication", "sync_partial_err"))
        await proxy.refuse()
        proxy.cut()
        await eventually(lambda: says(replica, "master_link_status", "down"))
        write(primary, 100)
        await proxy.resume()
        await eventually(lambda: primary.admin.info("stats")["sync_full"] == 2)
        await in_step(primary)
        await looked.look()
        assert looks_like(looked, "sync_partial_err") == refused + 1
        assert "the backlog was too short" in looked.line("replication", "sync_partial_err").said


@pytest.mark.slow
async def test_a_failover_that_is_seen(server: Server) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(running(server.binary, *QUICKLY))
        second = stack.enter_context(running(server.binary, *QUICKLY))
        second.admin.replicaof("127.0.0.1", first.port)
        await eventually(lambda: says(second, "master_link_status", "up"))
        await in_step(first)
        async with looking(first) as old, looking(second) as new:
            await old.look()
            await new.look()
            first.admin.execute_command("FAILOVER")
            await eventually(lambda: says(second, "role", "master"))
            await eventually(lambda: says(first, "master_link_status", "up"))
            await old.look()
            await new.look()
            assert (old.broken, new.broken) == ([], [])
    assert looks_like(old, "role") == "replica"
    assert str(old.line("replication", "role").said).startswith("primary until ")
    assert looks_like(new, "role") == "primary"
    assert str(new.line("replication", "role").said).startswith("replica until ")
    assert looks_like(old, "primary") == f"127.0.0.1:{second.port}"


@pytest.mark.slow
async def test_replicas_that_synchronise_in_full_again_and_again(redis810: Server) -> None:
    async with replicating(redis810) as (primary, replica, proxy), looking(primary) as looked:
        await looked.look()
        assert looked.broken == []
        for _ in range(5):
            replica.admin.replicaof("no", "one")
            write(replica, 1)  # data that the primary does not have
            replica.admin.replicaof("127.0.0.1", proxy.port)
            await eventually(lambda: says(replica, "master_link_status", "up"))
        await in_step(primary)
        async with looking(primary) as later:
            await later.look()
        await looked.look()
    assert looked.broken == later.broken == ["replication-flapping"]
    assert later.finding("replication-flapping").title.startswith("5 repeated full resynchronisations since ")


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
