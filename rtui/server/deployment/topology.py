"""The topology of a cluster: shards with their nodes and slots, as one of its nodes reports them, and its changes.

`read_topology` reads CLUSTER NODES, a line a node:

    <id> <host:port@bus,name> <flags> <primary's id or -> <ping> <pong> <epoch> <link> <slots…>

Slots are `0-5460`, `7000`, or `[5461->-<id>]` and `[5461-<-<id>]` for a slot that this node is migrating or importing;
only the answering node reports the last two. CLUSTER SLOTS adds the preferred endpoint of each node: an address, a
name, or, with `cluster-preferred-endpoint-type unknown-endpoint`, null: the host that was asked, with the port of the
reply. Other lines are ignored, so that a reply that was tampered with costs its own lines and no more.

`ClusterWatch` asks the seeds, and all known nodes, in random order, until one reports that all slots are served; the
node that has just failed comes last. While slots are not served, MOST_ASKED nodes are asked at most, and the one that
knows most slots is believed: of 1,000 nodes not each is asked. Some connections stay open for the next time.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import guard
from rtui.server.scan.slot_ledger import moving_slots, own_line, served_slots
from rtui.server.wall_clock import new_random
from rtui.server.wire.command_log import CommandLog, Purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, FailureKind, Reply, RtuiError, ServerError
from rtui.server.wire.failures import refusal
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import Logins, open_control_lane
from rtui.server.wire.target import DEFAULT_HOST, MAX_PORT, Address, Target, address_text

SlotRanges = tuple[tuple[int, int], ...]
"""First and last slot of each range, in order, adjacent ranges joined."""

_ID: Final = re.compile(rb"[0-9a-f]{40}\Z")
_LINE: Final = re.compile(
    rb"([0-9a-f]{40}) ([^,@ ]*):([0-9]{1,5})(?:@[0-9]{1,6})?(?:,[^ ]*)?"
    rb" ([^ ]*) ([^ ]*) [^ ]* [^ ]* [^ ]* [^ ]*(?: (.*))?"
)
"""Groups: id, host, port, flags, primary's id, slots."""
_DOWN: Final = frozenset({b"fail", b"noaddr", b"handshake"})


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster, with the address that the cluster announces."""

    id: str
    host: str
    """An address or a name; empty for a node that does not know its own."""
    port: int
    is_replica: bool = False
    primary_id: str | None = None
    is_down: bool = False
    """Whether the cluster has marked it as failed, or can't reach it yet."""
    is_suspect: bool = False
    """Whether the answering node has not heard from it for a while."""

    @property
    def label(self) -> SafeText:
        return address_text(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Shard:
    """A primary with its slots, and its replicas."""

    primary: Node
    slots: SlotRanges = ()
    replicas: tuple[Node, ...] = ()

    @property
    def slot_count(self) -> int:
        return sum(last - first + 1 for first, last in self.slots)


@dataclass(frozen=True, slots=True)
class SlotMove:
    """A slot that is being moved: its keys are on both nodes until that is done."""

    slot: int
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster as one node saw it."""

    shards: tuple[Shard, ...] = ()
    """In the order of their first slots; shards without slots last."""
    moves: tuple[SlotMove, ...] = ()
    """The slots that the answering node is moving."""
    owners: Mapping[int, str] = field(default_factory=dict, repr=False, compare=False)
    """The id of each slot's primary; unserved slots are absent."""

    @property
    def nodes(self) -> Iterator[Node]:
        for shard in self.shards:
            yield shard.primary
            yield from shard.replicas

    @property
    def given_up(self) -> frozenset[str]:
        """The ids of the primaries that are down with all of their replicas."""
        return frozenset(
            shard.primary.id
            for shard in self.shards
            if shard.primary.is_down and all(replica.is_down for replica in shard.replicas)
        )

    @property
    def uncovered(self) -> SlotRanges:
        return slot_ranges(slot for slot in range(SLOTS) if slot not in self.owners)

    def shard_of(self, node_id: str) -> Shard | None:
        """Return the shard that a node belongs to, None if the node has left the cluster."""
        for shard in self.shards:
            if node_id == shard.primary.id or any(node_id == replica.id for replica in shard.replicas):
                return shard
        return None


@dataclass(frozen=True, slots=True)
class TopologyChange:
    """The differences between two topologies of a cluster."""

    moved: Mapping[int, tuple[str | None, str | None]] = field(default_factory=dict)
    """Slots with another primary: the ids of the old and the new one; None for no primary."""
    came: tuple[Node, ...] = ()
    went: tuple[Node, ...] = ()
    promoted: tuple[Node, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.moved or self.came or self.went or self.promoted)


def read_topology(nodes: Reply, slots: Reply = None, *, asked: Target | None = None) -> Topology | None:
    """Read the replies to CLUSTER NODES and, optionally, CLUSTER SLOTS; None if the first is anything else.

    `asked` is the target of the answering node: its host replaces null endpoints, and the unknown address of the node
    itself. For a unix socket there is no such host, and the announced addresses are used.
    """
    if not isinstance(nodes, bytes):
        return None
    lines = [
        match for match in map(_LINE.fullmatch, nodes.splitlines()) if match is not None and int(match[3]) <= MAX_PORT
    ]
    read = {match[1].decode(): (_node(match), match) for match in lines}
    reached = _reached([node for node, _ in read.values()], slots, own_node_id(nodes), asked)
    found: dict[str, tuple[Node, list[bytes]]] = {}
    moves: list[SlotMove] = []
    for node_id, (_, line) in read.items():
        served = line[6].split(b" ") if line[6] else []
        found[node_id] = reached[node_id], served
        moves += _moves(node_id, served)
    replicas: dict[str | None, list[Node]] = {}
    for node, _ in found.values():
        if node.is_replica:
            replicas.setdefault(node.primary_id, []).append(node)
    owners: dict[int, str] = {}
    shards: list[Shard] = []
    for node, served in found.values():
        if node.is_replica:
            continue
        ranges, others = tuple(served_slots(served)), tuple(replicas.get(node.id, ()))
        for first, last in ranges:
            owners.update(dict.fromkeys(range(first, last + 1), node.id))
        if ranges or others or not node.is_down:
            shards.append(Shard(node, ranges, others))
    shards.sort(key=lambda shard: (shard.slots[0] if shard.slots else (SLOTS, SLOTS), shard.primary.id))
    return Topology(tuple(shards), tuple(moves), owners) if found else None


def own_node_id(nodes: Reply) -> str | None:
    """Return the id of the node that answered CLUSTER NODES, or None."""
    own = own_line(nodes) if isinstance(nodes, bytes) else None
    return own[0].decode() if own is not None and _ID.match(own[0]) else None


def slot_ranges(slots: Iterator[int]) -> SlotRanges:
    """Return slots, given in order, as ranges."""
    ordered = list(slots)
    if not ordered:
        return ()
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return tuple(zip(starts, ends, strict=True))


def topology_change(before: Topology, after: Topology) -> TopologyChange:
    """Return the differences in a later topology of the same cluster."""
    moved: dict[int, tuple[str | None, str | None]] = {}
    if before.owners != after.owners:
        was, now = before.owners.get, after.owners.get
        moved = {slot: (was(slot), now(slot)) for slot in range(SLOTS) if was(slot) != now(slot)}
    old, new = ({node.id: node for node in topology.nodes} for topology in (before, after))
    return TopologyChange(
        moved=moved,
        came=tuple(node for node in new.values() if node.id not in old),
        went=tuple(node for node in old.values() if node.id not in new),
        promoted=tuple(
            node for node in new.values() if node.id in old and old[node.id].is_replica and not node.is_replica
        ),
    )


def _node(line: re.Match[bytes]) -> Node:
    """Read a line; the host is empty if it is unknown."""
    flags, primary_id = line[4].split(b","), line[5]
    is_replica = b"slave" in flags
    return Node(
        line[1].decode(),
        line[2].decode("utf-8", "surrogateescape"),
        int(line[3]),
        is_replica,
        primary_id.decode() if is_replica and _ID.match(primary_id) else None,
        is_down=line[3] == b"0" or not _DOWN.isdisjoint(flags),
        is_suspect=b"fail?" in flags,
    )


def _reached(nodes: Iterable[Node], slots: Reply, own_id: str | None, asked: Target | None) -> dict[str, Node]:
    """Return the nodes with the addresses at which they want to be reached.

    `slots` is a reply to CLUSTER SLOTS, `asked` the target of the answering node.
    """
    asked_host = "" if asked is None or asked.socket_path is not None else asked.host
    endpoints = dict(_endpoints(slots))
    # A server has one way to tell endpoints: nodes without slots, which are not in the reply, have none there either.
    elsewhere = None if None in {host for host, _ in endpoints.values()} else b"?"
    known = [(endpoints.get(node.id, (elsewhere, node.port)), node) for node in nodes]
    ports = Counter(port for (_, port), one in known if not one.is_down)
    found: dict[str, Node] = {}
    for (host, told_port), one in known:
        # Nodes of the same port can't all be at the host that was asked: they are where they say.
        is_told_apart = one.id == own_id or ports[told_port] == 1
        port = told_port
        if host == b"?":  # it is to be reached by a name, and has none or has told this node none yet
            at, port = one.host, one.port
        elif host:
            at = host.decode("utf-8", "surrogateescape")
        else:
            at = asked_host if asked_host and one.host and is_told_apart else one.host
        at = at or ("" if one.is_down else asked_host or DEFAULT_HOST)
        found[one.id] = replace(one, host=at, port=port)
    return found


def _endpoints(reply: Reply) -> Iterator[tuple[str, tuple[bytes | None, int]]]:
    """Yield id, host and port of each node; the host is `?` if unknown, null or empty for the host that was asked."""
    for shard in reply if isinstance(reply, list) else ():
        for node in shard[2:] if isinstance(shard, list) else ():
            match node:
                case [bytes() | None as host, int(port), bytes(node_id), *_] if 0 < port <= MAX_PORT:
                    yield node_id.decode("utf-8", "replace"), (host, port)


def _moves(node_id: str, fields: list[bytes]) -> Iterator[SlotMove]:
    for slot, is_leaving, other in moving_slots(fields):
        if _ID.match(other.encode()):
            yield SlotMove(slot, *((node_id, other) if is_leaving else (other, node_id)))


MOST_ASKED: Final = 3
"""The most answering nodes that are asked while slots are not served, and the connections that stay open."""


class ClusterWatch:
    """A cluster as it was last seen; `look` updates it, `close` ends it."""

    def __init__(self, seeds: Sequence[Target], log: CommandLog, *, logins: Logins | None = None) -> None:
        """`seeds` are nodes of one cluster, and the first one's options hold for all nodes.

        `logins` provides expiring passwords; it is closed with the watch.
        """
        self.topology = Topology()
        self._seeds = seeds
        self._log, self._logins = log, logins
        self._lanes: dict[Target, Lane] = {}
        """Open connections by target; some may have ended since."""
        self._lock = asyncio.Lock()

    async def look(self, failed: Address | None = None) -> TopologyChange:
        """Read the topology, asking `failed` last; raises ConnectFailure if no node answers."""
        async with self._lock:
            best, last, answered = None, None, 0
            for target in self._candidates(failed):
                try:
                    found = await self._ask(target)
                except RtuiError as error:
                    last = error
                    continue
                answered += 1
                if best is None or len(found.owners) > len(best.owners):
                    best = found
                if not best.uncovered or answered == MOST_ASKED:
                    break
            if best is None:
                raise last if isinstance(last, ConnectFailure) else self._unknown(self._seeds[0], str(last))
            before, self.topology = self.topology, best
            return topology_change(before, best)

    def _candidates(self, failed: Address | None) -> list[Target]:
        self._lanes = {target: lane for target, lane in self._lanes.items() if lane.is_open}
        known = [self.target_of(node) for node in self.topology.nodes if not node.is_down]
        new_random("topology").shuffle(known)
        has_enough = len(self._lanes) >= MOST_ASKED
        return sorted(
            dict.fromkeys([*known, *self._seeds]),
            key=lambda one: ((one.host, one.port) == failed, has_enough and one not in self._lanes),
        )

    async def _ask(self, target: Target) -> Topology:
        """Ask one node; raises ConnectFailure and ConnectionLost."""
        lane = self._lanes.get(target)
        if lane is None:
            lane = await open_control_lane(target, self._log, self._logins)
            self._lanes[target] = lane
        with sent_for(Purpose.SERVER):
            nodes, slots = await lane.run(guard.cluster_nodes(), guard.cluster_slots())
        if isinstance(nodes, ServerError):
            lane.close()
            if self._logins is not None and nodes.code == "NOAUTH":
                self._logins.refused()
            raise refusal(target, nodes) or self._unknown(target, str(nodes))
        found = read_topology(nodes, slots, asked=target)
        if found is None or not found.owners:
            raise self._unknown(target, "It knows of no node that serves any slot.")
        return found

    def _unknown(self, target: Target, happened: str) -> ConnectFailure:
        remedy = "`redis-cli --cluster check` on one of the nodes says more."
        return ConnectFailure(FailureKind.CLUSTER, f"{target.label}: {display_text(happened)}", remedy)

    def target_of(self, node: Node) -> Target:
        return replace(self._seeds[0], host=node.host, port=node.port, socket_path=None, seeds=())

    async def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
        if self._logins is not None:
            await self._logins.close()
