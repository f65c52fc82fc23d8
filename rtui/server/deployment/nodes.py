"""The servers behind a target: one server, or the nodes of a cluster, and the choice of the server for each question.

`Deployment.home` is the connection to the server that the user named. If that is a node of a cluster, and the user does
not want that node only, the cluster's topology is read on it: CLUSTER NODES and CLUSTER SLOTS. From then on a question
about a key goes to the primary of its slot (`for_key`), a scan to one node of each shard (`ScannedCluster`). After a
MOVED reply `look` reads the topology again, from any node that answers; connections to nodes that are gone are closed.
Connections to nodes (`connections`) use the options of the first one: TLS, SSH hosts, proxy, address map, and expiring
passwords.

If the home server of a cluster can't be reached, the connection tries other nodes (`connections`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import guard
from rtui.server.deployment.connections import NodeConnections, SeedFinder, connection_to
from rtui.server.deployment.replicas import FollowedPrimary, ReplicaConnections, no_replica_failure
from rtui.server.deployment.topology import (
    ClusterWatch,
    Node,
    Shard,
    SlotMove,
    SlotRanges,
    Topology,
    TopologyChange,
    own_node_id,
    read_topology,
    topology_change,
)
from rtui.server.files import allow_open_files
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import QuerySource, ScanNode
from rtui.server.wire.command_log import CommandLog, Purpose, for_purpose
from rtui.server.wire.connection import HEARTBEAT_S, Connection, Lost, State
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, ServerError
from rtui.server.wire.failures import refusal
from rtui.server.wire.opening import Locator, Logins
from rtui.server.wire.supervised_tasks import failure_of, for_each
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.health.sample import SentinelView

FILES_PER_NODE: Final = 2
"""The open files of the connections to a node: one for questions about single keys, one for scans. A replica in its
place needs two more."""

FILES_PER_NODE_BY_SSH: Final = 6
"""The same if each is carried by an SSH process, with a socket and two pipes."""

OTHER_FILES: Final = 50
"""Other open files: reports, and connections that are made anew."""

NODES_A_ROUND: Final = 100
"""The nodes that can be asked something every few seconds; a larger cluster takes longer for each round."""


def round_s(every_s: float, nodes: int) -> float:
    """Return the seconds from a round of questions to the next."""
    return every_s * max(1.0, nodes / NODES_A_ROUND)


@dataclass(frozen=True, slots=True)
class ServerNode:
    """A server to scan: the only one, or one for each shard of a cluster."""

    connection: Connection
    """Open, or reconnecting: see its `state`."""
    id: str = ""
    """The id of the shard's primary; empty for a server outside a cluster."""
    label: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change
    """`host:port` of the scanned server."""
    slots: SlotRanges | None = None
    """The slots of its shard; None for a server without slots."""
    primary: FollowedPrimary | None = None
    """The primary of a scanned replica; None if the primary itself is scanned."""


class Deployment:
    """The servers behind a target; `open` it once, `close` it at the end. Everything runs on one event loop."""

    def __init__(
        self,
        target: Target,
        log: CommandLog | None = None,
        *,
        home: Connection | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        """`home` is a connection to a single server, without a cluster; raises TargetError for unusable credentials.

        `heartbeat_s` is the time of silence after which a connection sends PING.
        """
        is_alone = home is not None or target.only_node
        self._seeds = None if is_alone or target.sentinels is not None else SeedFinder(target)
        self._heartbeat_s = heartbeat_s
        self.home = connection_to(target, log, locator=self._seeds, heartbeat_s=heartbeat_s) if home is None else home
        """The connection to the server that the user named: a single one, or any node of the cluster."""
        self.log = self.home.log
        self.topology: Topology | None = None
        """The last known topology; None for a single server, and if only one node is shown."""
        self.notes: dict[SafeText, None] = {}
        """Notes on why only one node of a cluster is shown, and on replicas that were left."""
        self.revision = 0
        self.on_change: list[Callable[[], object]] = []
        """Callbacks, without arguments, after each such change."""
        self.replicas = ReplicaConnections(
            self._places, lambda finder: self._connect(self.home.target, finder), self.connection_of, self.notes
        )
        """The connections of scans to replicas, if the user allows those."""
        self._is_alone = is_alone
        self._nodes = NodeConnections(self.home, self._connect, self._node, self.replicas.is_asked)
        self._watch: ClusterWatch | None = None
        self._looking: asyncio.Task[TopologyChange] | None = None

    @classmethod
    def over(cls, connection: Connection) -> Deployment:
        return cls(connection.target, home=connection)

    @property
    def is_cluster(self) -> bool:
        return self.topology is not None

    @property
    def home_id(self) -> str:
        """The id of the cluster node that the user named, when it was last read; empty for a single server."""
        return self._nodes.home_id

    async def open(self) -> None:
        """Connect, and detect a cluster; raises ConnectFailure and ConnectionLost."""
        attempts = 1 if self._seeds is None else self._seeds.count
        for attempt in range(1, attempts + 1):
            try:
                await self.home.open()
                break
            except ConnectFailure as failed:
                if attempt == attempts or not failed.kind.is_of_one_server:
                    raise
        if self._seeds is not None:
            self.home.on_change.append(self._home_changed)
            self._home_changed()
        await self.find_cluster()

    def _home_changed(self) -> None:
        if self._seeds is not None and self.home.is_online:
            self._seeds.succeeded()

    @for_purpose(Purpose.SERVER)
    async def find_cluster(self) -> None:
        """Read the topology if the open home connection leads to a cluster and all of it is wanted.

        Raises ConnectFailure if the user requires a cluster and there is none, and if it has too many nodes.
        """
        target, server = self.home.target, self.home.server
        if self._is_alone or not (target.cluster or server.cluster_enabled):
            return
        if server.cluster_enabled is False:
            happened = f"{target.label} is not a cluster node."
            raise ConnectFailure(FailureKind.CLUSTER, happened, "Leave -c out to see the keys of this server.")
        generation = self.home.generation
        replies = await self.home.run(guard.cluster_nodes(), guard.cluster_slots())
        found = read_topology(*replies, asked=target)
        if found is None or not found.owners:
            self._give_up(replies[0] if isinstance(replies[0], ServerError) else None)
            return
        self._allow_connections([shard for shard in found.shards if shard.slots])
        self._nodes.know_home(own_node_id(replies[0]) or "", generation)
        self._update(found)

    def _allow_connections(self, shards: Sequence[Shard]) -> None:
        """Raise the limit of open files to connect to these shards; raises ConnectFailure if refused."""
        asks_replicas = self.home.target.replicas != "never"
        nodes = sum(2 if asks_replicas and shard.replicas else 1 for shard in shards)
        needed = nodes * (FILES_PER_NODE_BY_SSH if self.home.target.way.via else FILES_PER_NODE) + OTHER_FILES
        most = allow_open_files(needed)
        if most is not None:
            happened = (
                f"The cluster has {len(shards):,} primaries, which takes {needed:,} files and connections open; this "
                f"process may have {most:,}."
            )
            fewer = "leave replicas alone (--replicas never), " if nodes > len(shards) else ""
            remedy = f"Raise the limit (ulimit -n {2 * needed}), {fewer}or see one node only (--only-node)."
            raise ConnectFailure(FailureKind.LIMIT, happened, remedy)

    def _give_up(self, error: ServerError | None) -> None:
        """Show one node only, or raise ConnectFailure if the user requires all."""
        target = self.home.target
        why = "no node of it serves any slot" if error is None else f"it answers {display_text(str(error))}"
        if target.cluster:
            known = None if error is None else refusal(target, error)
            remedy = "`rtui acl` prints the permissions that rtui needs; `redis-cli --cluster check` checks a cluster."
            happened = f"{target.label} does not report its cluster topology: {why}."
            raise known or ConnectFailure(FailureKind.CLUSTER, happened, remedy)
        note = f"Only this node is shown, since it does not report its cluster topology: {why}."
        self.notes[display_text(note)] = None

    async def look(self) -> TopologyChange:
        """Read the topology again; concurrent callers share one read. Raises ConnectFailure."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="rtui topology")
        return await asyncio.shield(self._looking)

    @for_purpose(Purpose.SERVER)
    async def _look(self) -> TopologyChange:
        if self.topology is None:
            return TopologyChange()
        if self._watch is None:
            seeds = [self._nodes.target_of(node) for node in self.topology.nodes if not node.is_down]
            self._watch = ClusterWatch(seeds, self.log, logins=self._shared_logins())
        await self._watch.look()
        return self._update(self._watch.topology)

    def _update(self, found: Topology) -> TopologyChange:
        """Adopt a topology, and close the connections to nodes that are gone or have moved."""
        before, self.topology = self.topology or Topology(), found
        change, known = topology_change(before, found), {node.id: node for node in before.nodes}
        if self._seeds is not None:
            self._seeds.learn(node for node in found.nodes if not node.is_down)
        for node in found.nodes:
            was = known.get(node.id)
            if was is not None and (was.host, was.port) != (node.host, node.port):
                self._nodes.forget(node.id)
        for node in change.went:
            self._nodes.forget(node.id)
            self.replicas.forget(node.id)
        if change or before.moves != found.moves:
            self.revision += 1
            for call in tuple(self.on_change):
                call()
        return change

    def label_of(self, node_id: str) -> SafeText:
        """Return the label of a node's connection, `host:port via bastion`; empty for an unknown node."""
        node = self._node(node_id)
        return SafeText("") if node is None else self._nodes.target_of(node).label

    def target_of(self, node_id: str) -> Target:
        """Return how to reach a node of the cluster, and where that fails the others."""
        node = self._node(node_id)
        if node is None or self.topology is None:
            return self.home.target
        others = [(one.host, one.port) for one in self.topology.nodes if one is not node and not one.is_down]
        return replace(self._nodes.target_of(node), seeds=tuple(others))

    def link_of(self, node_id: str) -> State | None:
        """Return the state of the connection to a node; None if it has none."""
        found = self.replicas.connection(node_id)
        return self._nodes.link(node_id) if found is None else found.link

    def _node(self, node_id: str) -> Node | None:
        nodes = () if self.topology is None else self.topology.nodes
        return next((node for node in nodes if node.id == node_id), None)

    async def ask_sentinels(self) -> tuple[SentinelView, ...]:
        """Ask the Sentinels about the service; empty if the target has none."""
        from rtui.server.deployment.sentinel import PrimaryFinder  # noqa: PLC0415 - redis-py, for those who have Sentinels

        locator = self.home.locator
        return await locator.views() if isinstance(locator, PrimaryFinder) else ()

    async def scanned(
        self, *, only_primaries: bool = False, only: Collection[str] | None = None
    ) -> tuple[ServerNode, ...]:
        """Return the servers to scan, without shards that have no slots; with `only_primaries` no replicas.

        Of a cluster with `only`, return those of these primaries, also without slots.

        Each has been tried once: unreachable ones are tried again and again, see the connection's `state`.
        """
        if self.topology is None:
            return (await self._chosen_node("", self.home.target.label, None, only_primaries=only_primaries),)
        shards = [
            shard for shard in self.topology.shards if (shard.slots if only is None else shard.primary.id in only)
        ]
        return tuple(await for_each(shards, partial(self._scanned_node, only_primaries=only_primaries)))

    @property
    def _is_replica(self) -> bool:
        """Whether the user has named a replica, which is used itself then."""
        return self.home.server.role == "replica"

    def require_replicas(self) -> None:
        """Raise ConnectFailure if only replicas may be scanned, and there are none."""
        if self.home.target.replicas != "only":
            return
        if self.topology is not None:
            shards = [shard for shard in self.topology.shards if shard.slots]
            lacking = [shard.primary.label for shard in shards if all(node.is_down for node in shard.replicas)]
        else:
            lacking = (
                [] if self._is_alone or self._is_replica or self.home.server.replicas else [self.home.target.label]
            )
        if lacking:
            raise no_replica_failure(lacking)

    async def first_scanned(self) -> ServerNode:
        """Return one of the servers to scan: that of the home server's shard, if it has slots."""
        if self.topology is None:
            return await self._chosen_node("", self.home.target.label, None)
        home = self.topology.shard_of(self._nodes.home_id)
        shards = [shard for shard in self.topology.shards if shard.slots]
        shard = home if home is not None and home.slots else shards[0]
        return await self._scanned_node(shard)

    async def scanned_node(self, node_id: str, *, only_primaries: bool = False) -> ServerNode:
        """Return the server to scan for one primary; raises ConnectionLost for a primary that is gone."""
        shard = None if self.topology is None else self.topology.shard_of(node_id)
        if shard is None:
            raise ConnectionLost("The node is no longer in the cluster.")
        return await self._scanned_node(shard, only_primaries=only_primaries)

    async def every_node(self, *, primaries_only_above: int) -> tuple[ServerNode, ...]:
        """Return the server, or all nodes of the cluster that are not down, each primary before its replicas.

        A cluster of more nodes is reduced to its primaries. The connections stay open, and each has been tried once.
        """
        if self.topology is None:
            return (ServerNode(self.home, label=self.home.target.label),)
        known = tuple(self.topology.nodes)
        has_all = len(known) <= primaries_only_above
        nodes = [node for node in known if not node.is_down and (has_all or not node.is_replica)]

        async def opened(node: Node) -> ServerNode | None:
            with contextlib.suppress(ConnectionLost):
                connection = await self.connection_of(node.id)
                if connection is not self.home:
                    self._nodes.keep_open(node.id)
                return ServerNode(connection, node.id, node.label)
            return None

        return tuple(node for node in await for_each(nodes, opened) if node is not None)

    async def _scanned_node(self, shard: Shard, *, only_primaries: bool = False) -> ServerNode:
        """Return the server to scan for a shard, tried once."""
        primary = shard.primary
        return await self._chosen_node(primary.id, primary.label, shard.slots, only_primaries=only_primaries)

    async def _chosen_node(
        self, primary_id: str, label: SafeText, slots: SlotRanges | None, *, only_primaries: bool = False
    ) -> ServerNode:
        """Return the primary, or one of its replicas, as the user chose; a single server that is a replica, itself.

        Raises ConnectFailure if only replicas of a single server are allowed, and there is none.
        """
        is_server = self.topology is None
        may_ask = not is_server or not (self._is_alone or self.home.server.cluster_enabled or self._is_replica)
        if may_ask and not only_primaries and self.home.target.replicas != "never":
            found = await self.replicas.asked(primary_id)
            if found is not None:
                state = found.connection.state
                if self.topology is None and isinstance(state, Lost) and isinstance(state.reason, ConnectFailure):
                    raise state.reason
                return ServerNode(found.connection, primary_id, found.connection.target.label, slots, found.primary)
        self._nodes.keep_open(primary_id)
        return ServerNode(await self.connection_of(primary_id), primary_id, label, slots)

    def _connect(self, target: Target, locator: Locator | None = None) -> Connection:
        """Return a connection with the passwords of the home connection; the locator, if any, chooses its addresses."""
        logins = self._shared_logins()
        return connection_to(target, self.log, locator=locator, logins=logins, heartbeat_s=self._heartbeat_s)

    def _shared_logins(self) -> Logins | None:
        return None if self.home.logins is None else self.home.logins.shared()

    def _places(self, primary_id: str) -> tuple[Target, Sequence[Target]]:
        home = self.home.target
        if self.topology is None:
            replica = replace(home, socket_path=None, seeds=(), sentinels=None)
            return home, [replace(replica, host=host, port=port) for host, port in self.home.server.replicas]
        shard = self.topology.shard_of(primary_id)
        if shard is None:
            raise ConnectFailure(FailureKind.CLUSTER, "The node is no longer in the cluster.")
        live = [node for node in shard.replicas if not node.is_down]
        return self._nodes.target_of(shard.primary), [self._nodes.target_of(node) for node in live]

    @for_purpose(Purpose.SERVER)
    async def moves_of(self, node_ids: Iterable[str]) -> tuple[SlotMove, ...]:
        """Ask primaries for their slots that are being moved, which only they know; lost ones are left out."""

        async def ask(node_id: str) -> tuple[SlotMove, ...]:
            with contextlib.suppress(ConnectionLost):
                (reply,) = await (await self.connection_of(node_id)).run(guard.cluster_nodes())
                found = read_topology(reply)
                return () if found is None else found.moves
            return ()

        found = await asyncio.gather(*map(ask, node_ids))
        return tuple(dict.fromkeys(move for moves in found for move in moves))

    def owner_of(self, key: bytes) -> str:
        """Return the id of the node that serves a key's slot; empty for a single server.

        Raises ConnectionLost if no node does.
        """
        if self.topology is None:
            return ""
        slot = key_slot(key)
        owner = self.topology.owners.get(slot)
        if owner is None:
            raise ConnectionLost(f"No node of the cluster serves slot {slot}.")
        return owner

    async def for_key(self, key: bytes) -> Connection:
        """Return the connection to the node that serves a key's slot, which may be lost; raises ConnectionLost."""
        return await self.connection_of(self.owner_of(key))

    async def connection_of(self, node_id: str) -> Connection:
        """Return the connection to a node, opened with the first call; "" is the only server. Raises ConnectionLost.

        If the node can't be reached, the connection's `state` tells, and it goes on trying.
        """
        return await self._nodes.connection(node_id) if node_id else self.home

    async def close(self) -> None:
        """Close all connections."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        await self.replicas.close()
        if self._watch is not None:
            await failure_of(self._watch.close(), name="rtui topology")
        await self._nodes.close()
        await self.home.close()


class ScannedCluster:
    """A cluster that is scanned; implements `scan.node.Cluster`."""

    def __init__(
        self,
        deployment: Deployment,
        queries_of: Callable[[ServerNode], QuerySource] | None = None,
        *,
        only_primaries: bool = False,
    ) -> None:
        """`queries_of` returns the queries about the keys of a node; `only_primaries` applies to nodes that join."""
        self._deployment, self._queries_of, self._only_primaries = deployment, queries_of, only_primaries

    def scan_node(self, node: ServerNode, size: int | None = None) -> ScanNode:
        """Return a server to be scanned from its beginning; an unreachable one is assumed to be like home."""
        is_known = node.connection.server.version is not None
        server = node.connection.server if is_known else self._deployment.home.server
        queries = None if self._queries_of is None else self._queries_of(node)
        return ScanNode(
            *(node.connection, dialect_of(server), node.id),
            slots=node.slots,
            size=size,
            queries=queries,
            primary=node.primary,
        )

    def scan_nodes(self, nodes: Sequence[ServerNode], sizes: Mapping[str, int | None]) -> list[ScanNode]:
        """Return the initial servers of a scan; `sizes` are their numbers of keys by id."""
        return [self.scan_node(one, sizes.get(one.id)) for one in nodes]

    async def owners(self) -> Mapping[int, str]:
        """Return the ids of the nodes that serve each slot now; raises ConnectFailure."""
        await self._deployment.look()
        topology = self._deployment.topology
        return {} if topology is None else topology.owners

    @property
    def given_up(self) -> frozenset[str]:
        """The ids of the primaries that are down with all of their replicas."""
        topology = self._deployment.topology
        return frozenset() if topology is None else topology.given_up

    async def node(self, node_id: str) -> ScanNode:
        """Return a node that has joined, to be scanned from its beginning; raises ConnectionLost if it is gone."""
        return self.scan_node(await self._deployment.scanned_node(node_id, only_primaries=self._only_primaries))
