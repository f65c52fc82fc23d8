"""What a cluster is made of: shards with their nodes and slots, as one of its nodes tells, and what has changed since.

`read_topology` reads CLUSTER NODES, a line a node:

    <id> <host:port@bus,name> <flags> <primary's id or -> <ping> <pong> <epoch> <link> <slots…>

Slots are `0-5460`, `7000`, or `[5461->-<id>]` and `[5461-<-<id>]` for one that this node is just handing over or taking
in; only the node that answers tells the last two. CLUSTER SLOTS says beside it how each node wants to be reached: by an
address, by a name, or, with `cluster-preferred-endpoint-type unknown-endpoint`, by null: at the host that was asked, at
the port of the reply. What is no such line is left out, so that a reply that was tampered with costs its own lines and
no more.

`ClusterWatch` asks the seeds, and all nodes that are known, in random order, until one answers that all slots are
served; the one that has just failed comes last. While slots are not served, MOST_ASKED nodes are asked at most, and the
one that knows of most slots is believed: of 1,000 nodes not each is asked. Some connections stay open for the next
time.
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
from rtui.server.chance import new_random
from rtui.server.scan.slot_views import moving_slots, own_line, served_slots
from rtui.server.wire.command_log import CommandLog, Purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, FailureKind, RtuiError
from rtui.server.wire.failures import refusal
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import Logins, open_control_lane
from rtui.server.wire.replies import Reply, ServerError
from rtui.server.wire.target import DEFAULT_HOST, MAX_PORT, Target, address_text
from rtui.server.wire.ways import Address

SlotRanges = tuple[tuple[int, int], ...]
"""First and last slot of each range, in order, without gaps that could be closed."""

_ID: Final = re.compile(rb"[0-9a-f]{40}\Z")
_LINE: Final = re.compile(
    rb"([0-9a-f]{40}) ([^,@ ]*):([0-9]{1,5})(?:@[0-9]{1,6})?(?:,[^ ]*)?"
    rb" ([^ ]*) ([^ ]*) [^ ]* [^ ]* [^ ]* [^ ]*(?: (.*))?"
)
"""Groups: id, host, port, flags, primary's id, slots."""
_DOWN: Final = frozenset({b"fail", b"noaddr", b"handshake"})


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster, and where it is reached by the cluster's own account."""

    id: str
    host: str
    """An address or a name; empty for a node that does not know its own."""
    port: int
    is_replica: bool = False
    primary_id: str | None = None
    """Of a replica."""
    is_down: bool = False
    """Whether the cluster has given it up, or can't reach it yet."""
    is_suspect: bool = False
    """Whether the node that was asked has not heard of it for a while."""

    @property
    def label(self) -> SafeText:
        """`host:port`, as the user knows a target."""
        return address_text(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Shard:
    """A primary with its slots, and its replicas."""

    primary: Node
    slots: SlotRanges = ()
    replicas: tuple[Node, ...] = ()

    @property
    def slot_count(self) -> int:
        """How many slots it has."""
        return sum(last - first + 1 for first, last in self.slots)


@dataclass(frozen=True, slots=True)
class SlotMove:
    """A slot that is being handed over: its keys are on both nodes until that is done."""

    slot: int
    source: str
    """The id of the node that has it still."""
    destination: str
    """The id of the node that takes it in."""


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster as one node saw it."""

    shards: tuple[Shard, ...] = ()
    """In the order of their first slots; those without slots last."""
    moves: tuple[SlotMove, ...] = ()
    """Known of the node that was asked only."""
    owners: Mapping[int, str] = field(default_factory=dict, repr=False, compare=False)
    """The id of each slot's primary; a slot that nobody serves is not in it."""

    @property
    def nodes(self) -> Iterator[Node]:
        """All nodes, each primary before its replicas."""
        for shard in self.shards:
            yield shard.primary
            yield from shard.replicas

    @property
    def given_up(self) -> frozenset[str]:
        """The ids of the primaries that the cluster has given up, with all of their replicas."""
        return frozenset(
            shard.primary.id
            for shard in self.shards
            if shard.primary.is_down and all(replica.is_down for replica in shard.replicas)
        )

    @property
    def uncovered(self) -> SlotRanges:
        """The slots that no node serves."""
        return slot_ranges(slot for slot in range(SLOTS) if slot not in self.owners)

    def shard_of(self, node_id: str) -> Shard | None:
        """Return the shard that a node belongs to, None for a node that is not in the cluster any more."""
        for shard in self.shards:
            if node_id == shard.primary.id or any(node_id == one.id for one in shard.replicas):
                return shard
        return None


@dataclass(frozen=True, slots=True)
class TopologyChange:
    """What is different between two looks at a cluster."""

    moved: Mapping[int, tuple[str | None, str | None]] = field(default_factory=dict)
    """Slots that another primary serves now: the ids of the one before and of the one now; None for nobody."""
    came: tuple[Node, ...] = ()
    went: tuple[Node, ...] = ()
    promoted: tuple[Node, ...] = ()
    """Replicas that are primaries now."""

    def __bool__(self) -> bool:
        return bool(self.moved or self.came or self.went or self.promoted)


def read_topology(nodes: Reply, slots: Reply = None, *, asked: Target | None = None) -> Topology | None:
    """Read the replies to CLUSTER NODES and, where it was asked, CLUSTER SLOTS; None where the first is something else.

    `asked` is where the node was reached that answered: its host is that of null endpoints, and of the node itself
    where it does not know its own address. Asked by a unix socket there is no such host, and addresses take its place.
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
    """Return the id of the node that has answered CLUSTER NODES; None where it does not say."""
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
    """Return what is different in a later look at the same cluster."""
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
    """Read a line; the host is empty where it is not known."""
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
    """Return nodes where they want to be reached, by a reply to CLUSTER SLOTS and where the node of it was asked."""
    asked_host = "" if asked is None or asked.socket_path is not None else asked.host
    endpoints = dict(_endpoints(slots))
    # A server has one way to tell endpoints: nodes without slots, which are not in the reply, have none there either.
    elsewhere = None if None in {host for host, _ in endpoints.values()} else b"?"
    known = [(endpoints.get(one.id, (elsewhere, one.port)), one) for one in nodes]
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
    """Yield the id, host (`?`: not known; null or empty: that of the server that was asked) and port of each node."""
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
"""Nodes that answer and are asked at most while slots are not served, and connections that stay open."""


class ClusterWatch:
    """A cluster as it was when it was last looked at; `look` looks again, `close` ends it."""

    def __init__(self, seeds: Sequence[Target], log: CommandLog, *, logins: Logins | None = None) -> None:
        """`seeds` are nodes of one cluster, and the way to the first one is that to all nodes.

        `logins` makes the passwords where those expire; it is closed with the watch.
        """
        self.topology = Topology()
        self._seeds = seeds
        self._log, self._logins = log, logins
        self._lanes: dict[Target, Lane] = {}
        """Open connections, by where they lead; some may have ended since."""
        self._lock = asyncio.Lock()

    async def look(self, failed: Address | None = None) -> TopologyChange:
        """Ask what the cluster is made of now, `failed` last; raises ConnectFailure when no node answers."""
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
        """Return whom to ask, the first one first."""
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
        """How to connect to a node: like to the seeds."""
        return replace(self._seeds[0], host=node.host, port=node.port, socket_path=None, seeds=())

    async def close(self) -> None:
        """Close the connections."""
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
        if self._logins is not None:
            await self._logins.close()
