"""What a cluster is made of, read from replies, of real clusters, and of clusters of many simulated nodes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.connections import SeedFinder
from rtui.server.deployment.nodes import Deployment, ScannedCluster
from rtui.server.deployment.topology import ClusterWatch, Node, Topology, read_topology, slot_ranges, topology_change
from rtui.server.guard.command import Secret, find_spec, unpack_requests
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.node_scan import QUEUED
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import NODES_AT_ONCE, RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.command_log import CommandLog, Purpose
from rtui.server.wire.errors import ConnectFailure, FailureKind, Reply, ServerError
from rtui.server.wire.target import Target, Tls
from tests.clusters import TestCluster, cluster_of
from tests.conftest import known, require
from tests.fakes.cluster import Shape, SimulatedCluster, simulated
from tests.monitor import Recorder
from tests.servers import CHECKOUT, Server, certificates, free_port

A, B, C, D = (letter * 40 for letter in "abcd")
LINES = f"""\
{A} 10.0.0.1:6379@16379,one.example myself,master - 0 0 1 connected 0-5460 5462 [5461->-{B}] [7000-<-{B}]
{B} 10.0.0.2:6379@16379 master - 0 0 2 connected 5461 5463-10922
{C} 10.0.0.3:6379@16379,,shard-id=12 slave {A} 0 0 1 connected
{D} :0@0 master,fail,noaddr - 0 0 0 disconnected
"""


def described(owners: Mapping[int, str]) -> bytes:
    """What CLUSTER NODES says of primaries with these slots, an id each."""
    lines = []
    for port, owner in enumerate(sorted(set(owners.values())), start=7000):
        served = slot_ranges(slot for slot in sorted(owners) if owners[slot] == owner)
        slots = " ".join(f"{first}-{last}" if first < last else str(first) for first, last in served)
        lines.append(f"{owner} 127.0.0.1:{port}@1 master - 0 0 1 connected {slots}")
    return "\n".join(lines).encode()


owners = st.dictionaries(st.integers(0, SLOTS - 1), st.sampled_from((A, B, C, D)), min_size=1, max_size=200)


def read(reply: bytes, slots: Reply = None) -> Topology:
    return known(read_topology(reply, slots, asked=Target("192.0.2.9", 7001)))


def test_nodes_their_roles_and_their_slots() -> None:
    found = read(LINES.encode())
    first, second = found.shards
    assert first.primary == Node(A, "10.0.0.1", 6379)
    assert (first.slots, first.slot_count) == (((0, 5460), (5462, 5462)), 5462)
    assert [(one.id, one.primary_id, one.is_replica) for one in first.replicas] == [(C, A, True)]
    assert second.slots == ((5461, 5461), (5463, 10922))
    assert [(move.slot, move.source, move.destination) for move in found.moves] == [(5461, A, B), (7000, B, A)]
    assert found.uncovered == ((10923, 16383),)
    assert found.shard_of(C) is first
    assert found.shard_of(D) is None


def test_a_primary_is_given_up_once_its_replicas_are() -> None:
    line = "{} 127.0.0.1:{}@1 {} {} 0 0 1 disconnected {}"
    primary, other = line.format(A, 1, "master,fail", "-", "0-9"), line.format(B, 2, "master", "-", "10-19")
    for flags, expected in (("slave,fail", {A}), ("slave", set()), ("slave,fail?", set())):
        found = read("\n".join((primary, other, line.format(C, 3, flags, A, ""))).encode())
        assert found.given_up == expected
    assert read(f"{primary}\n{other}".encode()).given_up == {A}


def test_a_node_is_reached_where_it_wants_to_be() -> None:
    slots: Reply = [
        [0, 5460, [b"one.example", 6380, A.encode(), []], [None, 6381, C.encode()]],
        [5463, 10922, [b"?", 6379, B.encode(), [b"ip", b"10.0.0.2"]]],
        [1, b"rubbish"],
        b"rubbish",
    ]
    first, second = read(LINES.encode(), slots).shards
    assert (first.primary.host, first.primary.port) == ("one.example", 6380)
    assert (first.replicas[0].host, first.replicas[0].port) == ("192.0.2.9", 6381)
    assert (second.primary.host, second.primary.port) == ("10.0.0.2", 6379)


def test_the_node_that_answers_may_not_know_its_own_address() -> None:
    assert read(f"{A} :6379@1 myself,master - 0 0 1 connected 0-1".encode()).shards[0].primary.host == "192.0.2.9"


NULL_LINES = f"""\
{A} 10.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460
{B} 10.0.0.2:7002@17002 master - 0 0 2 connected 5461-16383
{C} 10.0.0.3:7003@17003 slave {B} 0 0 2 connected
{D} 10.0.0.4:7004@17004 master - 0 0 3 connected
"""


def null_slots(host: bytes | None, second_port: int = 7002, *metadata: Reply) -> Reply:
    """A reply to CLUSTER SLOTS in which no node says where it is but by its port."""
    first: Reply = [0, 5460, [host, 7001, A.encode(), *metadata]]
    second: Reply = [5461, 16383, [host, second_port, B.encode(), *metadata], [host, 7003, C.encode(), *metadata]]
    return [first, second]


def addresses(nodes: str, slots: Reply, asked: Target) -> dict[str, tuple[str, int]]:
    found = known(read_topology(nodes.encode(), slots, asked=asked))
    assert not any(node.is_down for node in found.nodes)
    return {node.id: (node.host, node.port) for node in found.nodes}


@pytest.mark.parametrize("host", [None, b""])
@pytest.mark.parametrize("metadata", [[], [b"ip", b"10.0.0.1"], {b"ip": b"10.0.0.1"}, []], ids=str)
@pytest.mark.parametrize("asked", [Target("lb.example", 443), Target("2001:db8::7", 7003)], ids=lambda one: one.host)
def test_a_null_endpoint_is_the_host_that_was_asked(host: bytes | None, metadata: Reply, asked: Target) -> None:
    found = addresses(NULL_LINES, null_slots(host, 7002, metadata), asked)
    without_slots = asked.host if host is None else "10.0.0.4"
    assert found == {A: (asked.host, 7001), B: (asked.host, 7002), C: (asked.host, 7003), D: (without_slots, 7004)}


def test_null_endpoints_have_the_port_of_the_reply_such_as_that_of_tls() -> None:
    slots: Reply = [[0, 9, [None, 17001, A.encode()], [None, 17002, B.encode()]]]
    found = addresses(NULL_LINES, slots, Target("tls.example", 17001))
    assert (found[A], found[B]) == (("tls.example", 17001), ("tls.example", 17002))


def test_nodes_of_the_same_port_are_not_all_at_the_host_that_was_asked() -> None:
    lines = NULL_LINES.replace("10.0.0.2:7002", "10.0.0.2:7003")
    found = addresses(lines, null_slots(None, 7003), Target("one.example", 7001))
    assert found[A] == ("one.example", 7001)
    assert (found[B], found[C]) == (("10.0.0.2", 7003), ("10.0.0.3", 7003))
    assert found[D] == ("one.example", 7004)


def test_a_unix_socket_has_no_host_that_null_could_mean() -> None:
    found = addresses(NULL_LINES, null_slots(None), Target(socket_path="/run/redis.sock"))
    assert found == {A: ("10.0.0.1", 7001), B: ("10.0.0.2", 7002), C: ("10.0.0.3", 7003), D: ("10.0.0.4", 7004)}
    alone = f"{A} :7001@17001 myself,master - 0 0 1 connected 0-16383"
    assert addresses(alone, None, Target(socket_path="/run/redis.sock")) == {A: ("127.0.0.1", 7001)}


def test_addresses_that_are_left_out_are_the_host_that_was_asked() -> None:
    lines = NULL_LINES.replace("10.0.0.", "").replace(" 1:", " :").replace(" 2:", " :").replace(" 3:", " :")
    for slots in (null_slots(None), ServerError("NOPERM no")):
        found = addresses(lines.replace(" 4:", " :"), slots, Target("lb.example", 7001))
        assert set(found.values()) == {("lb.example", port) for port in (7001, 7002, 7003, 7004)}


def test_what_is_unknown_is_reached_by_its_address() -> None:
    found = addresses(NULL_LINES, null_slots(b"?"), Target("lb.example", 7001))
    assert {host for host, _ in found.values()} == {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}


def test_names_of_hosts_are_shown_safely() -> None:
    found = read(f"{A} \x1b[31m.example:6379@1 master - 0 0 1 connected 0".encode())
    assert "\x1b" not in found.shards[0].primary.label
    assert Node(A, "2001:db8::1", 6379).label == "[2001:db8::1]:6379"


@pytest.mark.parametrize("reply", [ServerError("ERR no"), None, 7, [], b"", b"one two\n", b"\xff" * 40])
def test_what_is_no_cluster_is_none(reply: Reply) -> None:
    assert read_topology(reply) is None


@given(st.lists(st.sampled_from([*LINES.encode().split(b" "), b"\n", b" ", b"0-99999", b"\x00"])).map(b" ".join))
def test_rubbish_does_no_harm(reply: bytes) -> None:
    found = read_topology(reply, [[0, 1, [reply, 1, reply]]])
    assert found is None or all(0 <= slot < SLOTS for slot in found.owners)


@given(owners)
def test_every_slot_has_the_owner_that_was_said(said: dict[int, str]) -> None:
    found = read(described(said))
    assert dict(found.owners) == said
    assert sum(last - first + 1 for first, last in found.uncovered) == SLOTS - len(said)
    assert [shard.slots[0] for shard in found.shards] == sorted(shard.slots[0] for shard in found.shards)


@given(owners, owners)
def test_a_change_tells_each_slot_that_moved_and_nothing_else(before: dict[int, str], after: dict[int, str]) -> None:
    change = topology_change(read(described(before)), read(described(after)))
    moved = {slot: (before.get(slot), after.get(slot)) for slot in before.keys() | after.keys()}
    assert change.moved == {slot: pair for slot, pair in moved.items() if pair[0] != pair[1]}
    assert {node.id for node in change.came} == set(after.values()) - set(before.values())
    assert {node.id for node in change.went} == set(before.values()) - set(after.values())
    assert bool(change) == (before != after)


def test_a_replica_that_takes_over_is_promoted() -> None:
    after = LINES.replace(f"slave {A}", "master -").replace("myself,master", "myself,master,fail")
    change = topology_change(read(LINES.encode()), read(after.encode()))
    assert [node.id for node in change.promoted] == [C]


@pytest.mark.parametrize("cluster", ["redis-6.2", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_a_seed_that_is_down_is_skipped_and_a_replica_tells_as_well(cluster: TestCluster) -> None:
    log = CommandLog()
    watch = ClusterWatch([Target(port=free_port()), Target(port=cluster.members[-1].server.port)], log)
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
    return [(one.host, one.port) for one in [await finder.locate() for _ in range(count)]]


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


MANY = Shape(nodes=60, keys=2_000)


@asynccontextmanager
async def deployed(cluster: SimulatedCluster) -> AsyncIterator[Deployment]:
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
                assert known(deployment.topology).owners == cluster.owners(), what
                asked = cluster.figures()["calls"]["CLUSTER"] - before["calls"]["CLUSTER"]
                assert asked <= 10


async def test_a_slot_that_nobody_serves_does_not_have_every_node_asked() -> None:
    with simulated(MANY) as cluster:
        async with deployed(cluster) as deployment:
            cluster.kill()
            before = cluster.figures()
            await deployment.look()
            uncovered = [slot for slot in range(SLOTS) if slot not in known(deployment.topology).owners]
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
    coverage = known(analysis.report).head.coverage
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
