"""Keeps what is shown of the servers fresh while a keyspace is browsed: memory, load, size, and the cluster's nodes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from rtui.server import guard
from rtui.server.browsing_status import NodeStatus
from rtui.server.deployment.nodes import Deployment, ServerNode
from rtui.server.health_session import HealthSession
from rtui.server.key_questions import AskedServer
from rtui.server.passes import Passes
from rtui.server.scan.page import key_count
from rtui.server.scan.progress import ScanState
from rtui.server.wire.capability import Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ConnectionLost
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.supervised_tasks import for_each

REFRESH_EVERY_S: Final = 3.0
"""How often the server is asked for memory and load."""

STATUS_S: Final = 0.25
"""How often states of nodes are put together anew."""

NODES_A_ROUND: Final = 100
"""The states of so many nodes at a time, and of a larger cluster each round of questions takes as much longer."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the nodes of a cluster have together; what one does not tell is None."""

    used_memory_bytes: int | None
    maxmemory_bytes: int | None
    """None, too, where one has no limit."""
    ops_per_s: int | None


class ServerWatch:
    """Asks every few seconds, while `run` runs; everything else may be read at any time."""

    def __init__(self, deployment: Deployment, home: AskedServer, passes: Passes, health: HealthSession) -> None:
        """`health` learns what the nodes say of themselves."""
        self.size: int | None = None
        """Keys of the database by the servers' own count; None where one does not tell."""
        self.revision = 0
        """Grows when the size has changed."""
        self.rescans = 0
        """What hardly ever changes is asked again when this has grown."""
        self._deployment, self._home, self._passes, self._health = deployment, home, passes, health
        self._nodes: Sequence[ServerNode] = ()
        self._load: Load | None = None
        """That of all nodes of a cluster; None before it was asked for."""
        self._sizes: dict[str, int | None] = {}
        """Keys of each node."""
        self._statuses: tuple[NodeStatus, ...] = ()
        self._statuses_due_s = 0.0
        self._next_status = 0
        """Of which node the state is put together next, in the order of their slots."""
        self._epoch: object = None
        """By what the home node numbers the cluster's configurations; with another one the topology is looked at."""

    @property
    def identity(self) -> ServerIdentity:
        """The home server, with memory and load of all nodes of a cluster together where all are known."""
        server, load = self._deployment.home.server, self._load
        if load is None or not self._deployment.is_cluster:
            return server
        return replace(
            server,
            used_memory_bytes=load.used_memory_bytes,
            maxmemory_bytes=load.maxmemory_bytes,
            ops_per_s=load.ops_per_s,
        )

    @property
    def nodes(self) -> tuple[NodeStatus, ...]:
        """Each node of a cluster that is asked for its keys; none for one server.

        Screens ask for it with every frame, and a cluster may have a thousand nodes: each state is at most STATUS_S old
        for each NODES_A_ROUND of them.
        """
        now_s = time.monotonic()
        if now_s >= self._statuses_due_s:
            self._statuses, self._statuses_due_s = self._node_statuses(), now_s + STATUS_S
        return self._statuses

    def _node_statuses(self) -> tuple[NodeStatus, ...]:
        """Return all states: those of nodes that are new and of the next NODES_A_ROUND put together now."""
        topology = self._deployment.topology
        shards = () if topology is None else tuple(shard for shard in topology.shards if shard.slots)
        known = {one.id: one for one in self._statuses}
        begin = self._next_status if self._next_status < len(shards) else 0
        self._next_status = begin + NODES_A_ROUND
        due = {shard.primary.id for shard in shards[begin : begin + NODES_A_ROUND]}
        due |= {shard.primary.id for shard in shards if shard.primary.id not in known}
        scan = self._passes.shown.scan
        progress = {one.id: one for one in (() if scan is None else scan.progress_of(due))}
        known |= {
            shard.primary.id: NodeStatus(
                shard.primary.id,
                shard.primary.label,
                shard.slots,
                self._deployment.link_of(shard.primary.id),
                self._sizes.get(shard.primary.id),
                self._deployment.replicas.lag_s(shard.primary.id),
                progress.get(shard.primary.id),
            )
            for shard in shards
            if shard.primary.id in due
        }
        return tuple(known[shard.primary.id] for shard in shards)

    @for_purpose(Purpose.SERVER)
    async def run(self) -> None:
        """Probe the capabilities, and refresh memory, load and size every few seconds."""
        for number in count():
            with contextlib.suppress(ConnectionLost):
                await self._refresh()
            if number:  # what it takes is imported then, and not while the first screen comes
                await self._health.observe()
            await asyncio.sleep(REFRESH_EVERY_S * max(1.0, len(self._nodes) / NODES_A_ROUND))

    async def _refresh(self) -> None:
        connection, capabilities = self._home.connection, self._home.capabilities
        await connection.online()
        await capabilities.probe(connection)
        await self._home.read_lfu(self.rescans)
        if capabilities.allows(Feature.INFO):
            await connection.refresh()
        await self._follow_cluster()
        if not capabilities.allows(Feature.DBSIZE):
            return
        shown = self._passes.shown
        scanned = shown if shown.progress.state is ScanState.DONE else None
        size = await (self._total_size() if self._deployment.is_cluster else self._size_of(connection))
        if shown.first_page.is_uncounted and not size:
            return
        if scanned is not None and size is not None:
            scanned.observe_size(size)
        if size is not None and size != self.size:
            self.size = size
            self.revision += 1

    async def _size_of(self, connection: Connection) -> int | None:
        (reply,) = await connection.run(guard.dbsize())
        self._home.capabilities.record(Feature.DBSIZE, reply)
        return key_count(reply)

    async def _total_size(self) -> int | None:
        """Ask all nodes that are online for their keys, memory and load, and return the keys of all."""

        async def ask(one: ServerNode) -> None:
            self._sizes[one.id] = None
            with contextlib.suppress(ConnectionLost):
                if one.connection.is_online:
                    await one.connection.refresh()
                    self._sizes[one.id] = await self._size_of(one.connection)

        self._nodes = await self._deployment.scanned()
        await for_each(self._nodes, ask)
        servers = [one.connection.server for one in self._nodes]
        self._load = Load(
            used_memory_bytes=_total([one.used_memory_bytes for one in servers]),
            maxmemory_bytes=_total([one.maxmemory_bytes or None for one in servers]),
            ops_per_s=_total([one.ops_per_s for one in servers]),
        )
        return _total([self._sizes[one.id] for one in self._nodes])

    async def _follow_cluster(self) -> None:
        """Look at the topology again where the home node tells of another configuration."""
        server = self._home.connection.server
        now = self._home.connection.generation, server.cluster_epoch, server.cluster_known_nodes
        if self._deployment.is_cluster and self._epoch not in (None, now):
            with contextlib.suppress(ConnectFailure):
                await self._deployment.look()
        self._epoch = now


def _total(parts: Sequence[int | None]) -> int | None:
    """Return the sum; None where a part is not known."""
    return None if None in parts else sum(part for part in parts if part is not None)
