"""Finding out what a real cluster is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.deployment.connections import SeedFinder
from rtui.server.deployment.topology import ClusterWatch, Node
from rtui.server.guard.command import Secret, find_spec, unpack_requests
from rtui.server.wire.command_log import CommandLog, Purpose
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.target import Target, Tls
from tests.certificates import certificates
from tests.clusters import TestCluster, cluster_of
from tests.conftest import require
from tests.monitor import Recorder
from tests.servers import Server, free_port


@pytest.mark.parametrize("cluster", ["redis-6.2", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_a_seed_that_is_down_is_skipped_and_a_replica_tells_as_well(cluster: TestCluster) -> None:
    log = CommandLog()
    seeds = [Target(port=free_port()), Target(port=cluster.members[-1].server.port)]
    watch = ClusterWatch(seeds, log)
    with Recorder(cluster.members[0].server) as recorder:
        change = await watch.look()
        assert not await watch.look()
        await watch.close()
    assert {node.id for node in change.came} == {member.id for member in cluster.members}
    assert [shard.primary.id for shard in watch.topology.shards] == [one.id for one in cluster.members if one.slots]
    assert [shard.slots for shard in watch.topology.shards] == [(one.slots,) for one in cluster.members if one.slots]
    assert not watch.topology.uncovered
    first = watch.topology.shards[0].primary
    assert watch.target_of(first).port == cluster.server(first.id).port
    assert [one.argv for one in recorder.commands if find_spec(one.argv) is None] == []
    asked = {argv for entry in log.entries for argv in unpack_requests(entry.request)}
    assert {(b"CLUSTER", b"SLOTS"), (b"CLUSTER", b"NODES")} <= asked
    assert all(entry.is_over and not entry.error for entry in log.entries if entry.purpose is Purpose.SERVER)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_failover_is_noticed(cluster: TestCluster) -> None:
    first, *others = cluster.members
    watch = ClusterWatch([Target(port=one.server.port) for one in others], CommandLog())
    await watch.look()
    first.server.stop()
    promoted: set[str] = set()
    async with asyncio.timeout(20):
        while not promoted:
            change = await watch.look((first.server.host, first.server.port))
            promoted = {node.id for node in change.promoted}
            await asyncio.sleep(0.05)
    await watch.close()
    assert {one.primary_id for one in others if one.id in promoted} == {first.id}
    assert set(change.moved.values()) == {(first.id, promoted.pop())}
    assert not watch.topology.uncovered


async def test_what_is_no_cluster_says_so(valkey: Server) -> None:
    watch = ClusterWatch([Target(port=valkey.port)], CommandLog())
    with pytest.raises(ConnectFailure, match="cluster support disabled") as failed:
        await watch.look()
    assert failed.value.kind is FailureKind.CLUSTER
    await watch.close()


async def test_a_wrong_password_is_that_of_the_cluster(valkey: Server) -> None:
    watch = ClusterWatch([Target(port=valkey.port, password=Secret("not this"))], CommandLog())
    with pytest.raises(ConnectFailure) as failed:
        await watch.look()
    assert failed.value.kind is FailureKind.WRONGPASS
    await watch.close()


async def test_without_any_node_the_reason_is_that_of_the_last_one() -> None:
    watch = ClusterWatch([Target(port=free_port()), Target(port=free_port())], CommandLog())
    with pytest.raises(ConnectFailure) as failed:
        await watch.look()
    assert failed.value.kind is FailureKind.REFUSED
    await watch.close()


@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_a_seed_by_a_unix_socket_leads_to_the_other_nodes(cluster: TestCluster) -> None:
    """Once the node of the socket has gone, the others are still asked where they are."""
    watch = ClusterWatch(
        [Target(socket_path="/nowhere/redis.sock"), Target(port=cluster.members[0].server.port)], CommandLog()
    )
    await watch.look()
    ports = {node.id: node.port for node in watch.topology.nodes}
    assert ports == {member.id: member.server.port for member in cluster.members}
    assert not await watch.look()
    await watch.close()


@pytest.mark.slow
async def test_a_name_of_this_machine_is_asked_as_a_name() -> None:
    """`localhost` stays the name that the certificate is checked against, also of nodes whose endpoint is null."""
    tls = certificates("subjectAltName=DNS:localhost")
    with cluster_of(require("redis-8.6"), "--cluster-preferred-endpoint-type", "unknown-endpoint", tls=tls) as cluster:
        seed = Target("localhost", cluster.members[0].server.port, tls=Tls(cacert=str(tls.ca)))
        watch = ClusterWatch([seed], CommandLog())
        await watch.look()
        assert not await watch.look((seed.host, seed.port))
        await watch.close()
        members = {("localhost", member.server.port) for member in cluster.members}
    assert {(node.host, node.port) for node in watch.topology.nodes} == members


SEEDED = Target(host="a", port=1, seeds=(("b", 2), ("c", 3)), user="app", socket_path="/run/a")


async def attempts(finder: SeedFinder, count: int) -> list[tuple[str, int]]:
    """Where so many attempts go that all fail but the last."""
    targets = [await finder.locate() for _ in range(count)]
    return [(one.host, one.port) for one in targets]


async def test_failed_attempts_go_round_and_the_one_that_succeeded_is_tried_first() -> None:
    finder = SeedFinder(SEEDED)
    assert finder.count == 3
    assert await attempts(finder, 5) == [("a", 1), ("b", 2), ("c", 3), ("a", 1), ("b", 2)]
    finder.succeeded()
    assert await attempts(finder, 2) == [("b", 2), ("c", 3)]


async def test_nodes_that_were_told_of_are_reached_as_the_user_reached_the_first() -> None:
    finder = SeedFinder(SEEDED)
    finder.learn([Node("1", "b", 2), Node("2", "d", 4)])
    targets = [await finder.locate() for _ in range(finder.count)]
    assert [(one.host, one.port) for one in targets] == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    assert {one.user for one in targets} == {"app"}
    assert targets[-1].socket_path is None
    assert not targets[-1].seeds


@given(st.lists(st.lists(st.integers(0, 9), unique=True)))
def test_an_address_is_known_once(learned: Sequence[Sequence[int]]) -> None:
    finder = SeedFinder(Target(host="n", port=0))
    for ports in learned:
        finder.learn([Node(str(port), "n", port) for port in ports])
    assert finder.count == len({0, *(port for ports in learned for port in ports)})
