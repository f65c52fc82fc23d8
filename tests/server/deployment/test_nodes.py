"""The servers behind a target: nodes of a cluster, and services that Sentinels watch over, in a failover too."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.slots import key_slot
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.connections import MOST_IDLE, NodeConnections, connection_to
from rtui.server.deployment.nodes import Deployment
from rtui.server.deployment.sentinel import PrimaryFinder
from rtui.server.deployment.topology import Node
from rtui.server.guard.command import Secret
from rtui.server.options import AnalysisOptions
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Closed, Connection, Lost, Online
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, ServerError
from rtui.server.wire.failures import demoted_failure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.target import AddressMap, Login, ReplicaPolicy, Target, Way, parse_target
from tests.clusters import SERVICE, TestCluster, cluster_of, sentinel_of, watched
from tests.conftest import require
from tests.server.targets import connected, eventually, failing, impatient, target_of
from tests.servers import Server, free_port
from tests.ssh_host import SshHost, ssh_children

KEYS = [b"key:%d" % number for number in range(50)]


@asynccontextmanager
async def deployed(target: Target, **options: Any) -> AsyncIterator[Deployment]:
    deployment = Deployment(target, **options)
    try:
        await deployment.open()
        yield deployment
    finally:
        await deployment.close()


async def answered(connection: Connection, key: bytes) -> object:
    """What a server answers to EXISTS."""
    (reply,) = await connection.run(guard.exists(key))
    return reply


@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_each_key_is_asked_at_its_node(cluster: TestCluster) -> None:
    cluster.fill(KEYS)
    for seed in (cluster.members[0], cluster.members[-1]):
        async with deployed(target_of(seed.server)) as deployment:
            assert deployment.is_cluster
            for key in KEYS:
                assert await answered(await deployment.for_key(key), key) == 1
            nodes = await deployment.scanned()
            wanted = [(one.id, (one.slots,)) for one in cluster.members if one.slots is not None]
            assert [(one.id, one.slots) for one in nodes] == wanted
            assert [one.connection.target.port for one in nodes] == [
                one.server.port for one in cluster.members if one.slots
            ]
            assert not any(one.connection.redirects for one in nodes)
            assert not await deployment.look()
            assert not deployment.revision > 1


async def test_one_server_is_its_own_only_node(valkey: Server) -> None:
    async with deployed(target_of(valkey)) as deployment:
        (only,) = await deployment.scanned()
        assert only.connection is deployment.home is await deployment.for_key(b"any")
        assert (only.id, only.slots, deployment.is_cluster) == ("", None, False)


async def test_insisting_on_a_cluster_that_is_none_fails(valkey: Server) -> None:
    with pytest.raises(ConnectFailure, match="is not a cluster node") as failed:
        async with deployed(target_of(valkey, cluster=True)):
            pass
    assert failed.value.kind is FailureKind.CLUSTER


async def test_of_a_cluster_one_node_only(cluster_node: Server) -> None:
    async with deployed(target_of(cluster_node, only_node=True)) as deployment:
        (only,) = await deployment.scanned()
        assert only.connection is deployment.home
        assert not deployment.notes


async def test_who_may_not_read_the_topology_sees_one_node_and_is_told(cluster_node: Server) -> None:
    cluster_node.admin.acl_setuser(
        "app", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all", "-cluster"]
    )
    target = target_of(cluster_node, user="app", password=Secret("secret"))
    async with deployed(target) as deployment:
        assert not deployment.is_cluster
        assert "NOPERM" in str(deployment.notes)
    with pytest.raises(ConnectFailure) as failed:
        async with deployed(target_of(cluster_node, user="app", password=Secret("secret"), cluster=True)):
            pass
    assert failed.value.kind is FailureKind.NOPERM


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_seed_that_is_down_is_skipped(cluster: TestCluster) -> None:
    live = cluster.members[1].server
    async with deployed(Target(port=free_port(), seeds=(("127.0.0.1", live.port),))) as deployment:
        assert deployment.home.target.port == live.port
        assert len(await deployment.scanned()) == 3
    with pytest.raises(ConnectFailure) as failed:
        async with deployed(Target(port=free_port(), seeds=(("127.0.0.1", free_port()),))):
            pass
    assert failed.value.kind is FailureKind.REFUSED


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_slot_that_has_moved_is_noticed_and_found(cluster: TestCluster) -> None:
    first, second, *_ = cluster.members
    key = next(key for key in KEYS if first.slots and first.slots[0] <= key_slot(key) <= first.slots[1])
    async with deployed(target_of(first.server)) as deployment:
        before = await deployment.for_key(key)
        for member in (second, first):
            member.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "NODE", second.id)
        try:
            refused = await answered(before, key)
            assert isinstance(refused, ServerError)
            assert refused.code == "MOVED"
            assert before.redirects == 1
            await eventually_moved(deployment, key, second.id)
            assert await answered(await deployment.for_key(key), key) == 0
            assert deployment.revision > 1
        finally:
            for member in (first, second):
                member.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "NODE", first.id)


async def eventually_moved(deployment: Deployment, key: bytes, node_id: str) -> None:
    """Look until the slot of a key is a node's."""
    async with asyncio.timeout(20):
        while deployment.owner_of(key) != node_id:
            await deployment.look()


@pytest.mark.slow
async def test_a_home_that_dies_is_replaced_and_its_slots_are_found_again() -> None:
    with cluster_of(require("valkey-9.1"), replicas=1) as cluster:
        cluster.fill(KEYS)
        first = cluster.members[0]
        key = next(key for key in KEYS if first.slots and first.slots[0] <= key_slot(key) <= first.slots[1])
        async with deployed(target_of(first.server)) as deployment:
            node = (await deployment.scanned())[0]
            first.server.stop()
            await eventually(lambda: isinstance(node.connection.state, Lost))
            await deployment.home.online()
            assert deployment.home.target.port != first.server.port
            async with asyncio.timeout(20):
                while deployment.owner_of(key) == first.id:
                    await deployment.look()
                    await asyncio.sleep(0.05)
            assert await answered(await deployment.for_key(key), key) == 1


async def test_passwords_that_expire_are_shared_by_all_nodes(cluster_node: Server, tmp_path: Path) -> None:
    cluster_node.admin.acl_setuser("app", enabled=True, passwords=["+first"], keys=["*"], commands=["+@all"])
    made = tmp_path / "made"
    command = Secret(f"echo x >> {made}; echo first")
    async with deployed(target_of(cluster_node, user="app", login=Login(command=command))) as deployment:
        (node,) = await deployment.scanned()
        assert node.connection is not deployment.home
        assert await answered(node.connection, b"key") == 0
        assert not await deployment.look()
    assert made.read_text().split() == ["x"]


async def test_a_slot_that_nobody_serves_says_so(cluster_node: Server) -> None:
    slot = key_slot(b"key")
    async with deployed(target_of(cluster_node)) as deployment:
        cluster_node.admin.execute_command("CLUSTER DELSLOTS", slot)
        try:
            assert await deployment.look()
            with pytest.raises(ConnectionLost, match=f"serves slot {slot}"):
                await deployment.for_key(b"key")
        finally:
            cluster_node.admin.execute_command("CLUSTER ADDSLOTS", slot)


@asynccontextmanager
async def connections(
    server: Server, ids: Sequence[str], *, is_needed: Callable[[str], bool] = lambda _: False
) -> AsyncIterator[tuple[NodeConnections, dict[str, Node]]]:
    """Connections to nodes of these ids, which all are one server, and the nodes; `a` is the home connection's."""
    target = target_of(server)
    nodes = {one: Node(one, target.host, target.port) for one in ids}
    async with connected(target) as home:
        found = NodeConnections(home, connection_to, nodes.get, is_needed)
        found.know_home("a", home.generation)
        try:
            yield found, nodes
        finally:
            await found.close()


async def test_the_home_connection_serves_its_node_unless_a_scan_needs_one(valkey: Server) -> None:
    async with connections(valkey, "ab") as (nodes, _):
        home = await nodes.connection("a")
        assert nodes.link("a") is None
        other = await nodes.connection("b")
        assert other is not home
        assert await nodes.connection("b") is other
        assert isinstance(nodes.link("b"), Online)
        nodes.keep_open("a")
        own = await nodes.connection("a")
        assert own is not home
        assert own.is_online
        nodes.forget("a")
        assert await nodes.connection("a") is home
        await eventually(lambda: isinstance(own.state, Closed))


async def test_after_a_reconnect_nobody_knows_which_node_the_home_connection_leads_to(valkey: Server) -> None:
    async with connections(valkey, "a") as (nodes, known):
        home = await nodes.connection("a")
        assert nodes.target_of(known["a"]) is home.target
        nodes.know_home("a", home.generation - 1)
        assert await nodes.connection("a") is not home
        assert nodes.target_of(known["a"]) is not home.target


async def test_of_many_connections_those_stay_that_were_used_last_or_are_needed(valkey: Server) -> None:
    ids = [f"n{number}" for number in range(MOST_IDLE)]
    scanned, needed, more = ["s1", "s2"], ["r"], ["m1", "m2"]
    every = [*scanned, *needed, *ids, *more]
    async with connections(valkey, every, is_needed=needed.__contains__) as (nodes, _):
        for one in scanned:
            nodes.keep_open(one)
        opened = {one: await nodes.connection(one) for one in [*scanned, *needed, *ids]}
        assert not any(isinstance(one.state, Closed) for one in opened.values())
        assert await nodes.connection(ids[0]) is opened[ids[0]]  # so it is not the one that was used longest ago
        for one in more:
            opened[one] = await nodes.connection(one)
        gone = ids[1:3]
        await eventually(lambda: all(isinstance(opened[one].state, Closed) for one in gone))
        assert [one for one in every if nodes.link(one) is None] == gone
        assert await nodes.connection(gone[0]) is not opened[gone[0]]


async def test_a_node_that_is_gone_or_down(valkey: Server) -> None:
    async with connections(valkey, "a") as (nodes, known):
        with pytest.raises(ConnectionLost, match="no longer in the cluster"):
            await nodes.connection("b")
        known["b"] = Node("b", "127.0.0.1", free_port())
        down = await nodes.connection("b")
        assert isinstance(down.state, Lost)
        assert isinstance(nodes.link("b"), Lost)


async def test_closing_ends_all_but_the_home_connection(valkey: Server) -> None:
    async with connections(valkey, "abc") as (nodes, _):
        home, second, third = [await nodes.connection(one) for one in "abc"]
        nodes.forget("b")
        await nodes.close()
        assert isinstance(second.state, Closed)
        assert isinstance(third.state, Closed)
        assert home.is_online


async def soon(pause_s: float) -> None:
    assert pause_s >= 0
    await asyncio.sleep(0)


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", ["redis-7.0", "valkey-9.1"])
async def test_a_service_is_reached_and_followed_over_a_failover(version: str) -> None:
    with watched(require(version)) as service:
        primary, replica = service.servers
        connection = connection_to(parse_target(service.url.replace("//", f"//127.0.0.1:{free_port()},")))
        await connection.open()
        try:
            assert (connection.target.port, connection.server.role) == (primary.port, "primary")
            assert connection.target.label.startswith(f"{SERVICE}@127.0.0.1:")
            primary.stop(signal.SIGKILL)
            async with asyncio.timeout(30):
                while not (connection.target.port == replica.port and isinstance(connection.state, Online)):
                    connection.retry_now()
                    await asyncio.sleep(0.05)
            assert connection.server.role == "primary"
            assert connection.generation >= 2
        finally:
            await connection.close()


@pytest.mark.slow
async def test_scans_of_a_service_ask_its_replica_where_that_is_wanted() -> None:
    with watched(require("valkey-9.1")) as service:
        primary, replica = service.servers
        primary.admin.mset({f"key:{number}": "x" for number in range(500)})
        uses: tuple[ReplicaPolicy, ...] = ("prefer", "only", "never")
        for use in uses:
            asked, role = (primary, "primary") if use == "never" else (replica, "replica")
            async with deployed(replace(parse_target(service.url), replicas=use)) as deployment:
                (node,) = await deployment.scanned()
                assert (use, node.connection.target.port) == (use, asked.port)
                analysis = AnalysisRun(deployment.home, AnalysisOptions(), deployment=deployment)
                await analysis.run()
            assert analysis.report is not None
            head = analysis.report.head
            assert (head.coverage.kind, head.coverage.keys, head.server.role) == (CoverageKind.EXACT, 500, role)
            assert any("those of this replica" in note for note in head.notes) is (role == "replica")
            assert head.server.label.startswith(f"{SERVICE}@")


@pytest.mark.slow
async def test_scans_of_a_service_ask_its_replica_and_the_primary_where_it_was_promoted() -> None:
    with watched(require("redis-7.0")) as service:
        primary, replica = service.servers
        async with deployed(replace(parse_target(service.url), replicas="only")) as deployment:
            (node,) = await deployment.scanned()
            assert (node.connection.target.port, node.connection.server.role) == (replica.port, "replica")
            assert (deployment.home.target.port, deployment.home.server.role) == (primary.port, "primary")
            assert node.label == f"127.0.0.1:{replica.port}"
        async with deployed(replace(parse_target(service.url), replicas="prefer")) as deployment:
            (node,) = await deployment.scanned()
            assert (node.connection.target.port, node.connection.server.role) == (replica.port, "replica")
            primary.stop()
            async with asyncio.timeout(30):
                while (node.connection.is_online, node.connection.server.role) != (True, "primary"):
                    deployment.home.retry_now()
                    node.connection.retry_now()
                    await asyncio.sleep(0.05)
            assert node.connection.target.port == replica.port


@pytest.mark.slow
async def test_a_sentinel_a_wrong_service_and_a_disagreement_explain_themselves() -> None:
    with watched(require("redis-7.0")) as service:
        first = service.ports[0]
        failed = await failing(connection_to(Target(port=first)))
        assert failed.kind is FailureKind.SENTINEL
        assert f"sentinel://127.0.0.1:{first}/{SERVICE}" in failed.remedy
        failed = await failing(connection_to(parse_target(service.url + "2")))
        assert failed.kind is FailureKind.NO_PRIMARY
        assert failed.happened.count("does not know the service") == 3
        assert failed.remedy.startswith(f"They know {SERVICE}: ")
        service.sentinels[1].execute_command("SENTINEL", "REMOVE", SERVICE)
        service.sentinels[1].execute_command("SENTINEL", "MONITOR", SERVICE, "127.0.0.1", service.servers[1].port, "2")
        target = parse_target(service.url)
        assert target.sentinels is not None
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        assert (await finder.locate()).port in {server.port for server in service.servers}
        assert finder.note is not None
        assert f"127.0.0.1:{service.ports[1]} says 127.0.0.1:{service.servers[1].port}" in finder.note
        await finder.close()


@pytest.mark.slow
async def test_sentinels_that_hang_or_are_down_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.deployment.sentinel.ANSWER_TIMEOUT_S", 0.5)
    with watched(require("redis-7.0")) as service:
        dead = free_port()
        target = impatient(parse_target(service.url.replace("//", f"//127.0.0.1:{dead},")), direct_s=600, reply_s=600)
        assert target.sentinels is not None
        hanging = [sentinel.info("server")["process_id"] for sentinel in service.sentinels[:2]]
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        try:
            for pid in hanging:
                os.kill(pid, signal.SIGSTOP)
            async with asyncio.timeout(60):
                assert (await finder.locate()).port == service.servers[0].port
        finally:
            for pid in hanging:
                os.kill(pid, signal.SIGCONT)
        said = [finder.said[f"127.0.0.1:{port}"] for port in (dead, *service.ports)]  # type: ignore[index]
        address = f"127.0.0.1:{service.servers[0].port}"
        assert said == [f"Nothing listens on 127.0.0.1:{dead}", *["no answer within 1 s"] * 2, address]
        assert finder.note is None
        await finder.close()


async def test_without_a_sentinel_each_says_why() -> None:
    ports = free_port(), free_port()
    failed = await failing(connection_to(parse_target(f"sentinel://127.0.0.1:{ports[0]},[::1]:{ports[1]}/{SERVICE}")))
    assert failed.kind is FailureKind.NO_PRIMARY
    assert f"127.0.0.1:{ports[0]}: Nothing listens on 127.0.0.1:{ports[0]};" in failed.happened
    assert failed.happened.count("..") == 0
    assert f" [::1]:{ports[1]}: " in failed.happened


async def test_a_sentinel_that_wants_a_password_says_how_one_is_given(valkey: Server) -> None:
    valkey.admin.execute_command("CONFIG", "SET", "requirepass", "secret")
    failed = await failing(connection_to(parse_target(f"sentinel://127.0.0.1:{valkey.port}/{SERVICE}")))
    assert "--sentinel-askpass" in failed.remedy


async def test_sentinels_are_reached_by_the_way_of_the_servers(bastion: SshHost, redis70: Server) -> None:
    with sentinel_of(redis70.binary, redis70.port) as (port, _):
        mapped = AddressMap((f"sentinel.invalid:7=127.0.0.1:{port}",))
        target = replace(parse_target(f"sentinel://sentinel.invalid:7/{SERVICE}"), way=Way(("bastion",), mapped))
        assert target.sentinels is not None
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        assert (await finder.locate()).port == redis70.port
        assert any(f"-W 127.0.0.1:{port} -- bastion" in line for line in ssh_children().values())
        await finder.close()
        await eventually(lambda: not ssh_children())


async def test_a_server_that_is_no_sentinel_says_so(valkey: Server) -> None:
    failed = await failing(connection_to(parse_target(f"sentinel://127.0.0.1:{valkey.port}/{SERVICE}")))
    assert failed.kind is FailureKind.NO_PRIMARY
    assert f"127.0.0.1:{valkey.port}: is no Sentinel" in failed.happened


async def test_a_primary_that_is_a_replica_now_is_not_believed(redis70: Server) -> None:
    class Stale:
        note = None

        async def locate(self) -> Target:
            return Target(port=redis70.port)

        def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
            return demoted_failure(Target(port=redis70.port)) if server.role == "replica" else None

        async def close(self) -> None:
            pass

    redis70.admin.replicaof("127.0.0.1", free_port())
    given_up = Connection(Target(port=redis70.port), locator=Stale(), sleep=soon)
    with pytest.raises(ConnectFailure, match="is a replica now"):
        await given_up.open()
    await given_up.close()
    connection = Connection(Target(port=redis70.port), locator=Stale())
    opening = asyncio.create_task(connection.open())
    await eventually(lambda: "is a replica now" in str(connection.state))
    redis70.admin.replicaof("NO", "ONE")
    connection.retry_now()
    await opening
    assert connection.server.role == "primary"
    await connection.close()
