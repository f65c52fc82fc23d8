"""Reading what a cluster is made of, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slots import SLOTS
from rtui.server.deployment.topology import Node, Topology, read_topology, slot_ranges, topology_change
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.target import Target

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
    found = read_topology(reply, slots, asked=Target("192.0.2.9", 7001))
    assert found is not None
    return found


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
    found = read_topology(nodes.encode(), slots, asked=asked)
    assert found is not None
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
