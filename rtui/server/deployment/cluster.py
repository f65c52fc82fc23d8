"""Finds out what a cluster is made of, from any of its nodes that answers, and again whenever somebody asks.

redis-py's `NodesManager` asks the seeds that the user gave, later all nodes that are known, until one answers; the one
that has just failed comes last. It gets a few of them at a time: while nobody serves a slot it goes on to the next one,
and would ask each of 1,000 nodes, over a connection of its own. Two questions on the connection to a node that answers
complete the picture, see `topology`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from redis.asyncio.cluster import ClusterNode, NodesManager
from redis.cluster import PRIMARY
from redis.exceptions import RedisClusterException, RedisError

from rtui.keyspace.text.display import display_text
from rtui.server.chance import new_random
from rtui.server.deployment.guarded import GuardedConnection
from rtui.server.deployment.topology import Node, Topology, TopologyChange, read_topology, topology_change
from rtui.server.wire.command_log import CommandLog, Purpose
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.failures import refusal
from rtui.server.wire.opening import CONNECT_TIMEOUT_S, Logins
from rtui.server.wire.replies import ServerError
from rtui.server.wire.target import Target
from rtui.server.wire.ways import Address

ASKED_AT_MOST: Final = 3
"""So many nodes are asked at most what slots there are, once one of them has answered."""


class ClusterWatch:
    """A cluster as it was when it was last looked at; `look` looks again, `close` ends it."""

    def __init__(
        self,
        seeds: Sequence[Target],
        log: CommandLog,
        *,
        logins: Logins | None = None,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        """`seeds` are nodes of one cluster, and the way to the first one is that to all nodes.

        `logins` makes the passwords where those expire; it is closed with the watch.
        """
        self.topology = Topology()
        self.asked: Address | None = None
        """The node that told the topology."""
        self._target = seeds[0]
        options: dict[str, Any] = {
            "connection_class": GuardedConnection,
            "target": self._target,
            "log": log,
            "logins": logins,
            "purpose": Purpose.SERVER,
            "timeout_s": timeout_s,
        }
        self._seeds: list[Address] = [(seed.host, seed.port) for seed in seeds]
        self._options = options
        self._manager = NodesManager(
            [], require_full_coverage=False, connection_kwargs=options, dynamic_startup_nodes=False
        )
        self._logins = logins
        self._lock = asyncio.Lock()

    async def look(self, failed: Address | None = None) -> TopologyChange:
        """Ask what the cluster is made of now, `failed` last; raises ConnectFailure when no node answers."""
        async with self._lock:
            try:
                await self._find_nodes(failed)
                found = await self._ask()
            except (RedisError, RedisClusterException, OSError, IndexError) as error:
                raise self._failure(error) from error
            before, self.topology = self.topology, found
            return topology_change(before, found)

    async def _find_nodes(self, failed: Address | None) -> None:
        """Have redis-py find all nodes; raises its error where no node answers."""
        known = [(node.host, int(node.port)) for node in self._manager.nodes_cache.values()]
        new_random("topology").shuffle(known)
        addresses = sorted(dict.fromkeys([*known, *self._seeds]), key=lambda address: address == failed)
        for at in range(0, len(addresses), ASKED_AT_MOST):
            nodes = [ClusterNode(*address, **self._options) for address in addresses[at : at + ASKED_AT_MOST]]
            self._manager.startup_nodes = {node.name: node for node in nodes}
            try:
                await self._manager.initialize()
            except RedisClusterException:
                if at + ASKED_AT_MOST >= len(addresses):
                    raise
            else:
                return
            finally:
                await asyncio.gather(*(node.disconnect() for node in nodes))

    async def _ask(self) -> Topology:
        """Ask the first node that answers, primaries before replicas; raises RedisError of the last one."""
        last: Exception = RedisClusterException("no node is known")
        for node in sorted(self._manager.nodes_cache.values(), key=lambda one: one.server_type != PRIMARY):
            try:
                replies = [await node.execute_command(f"CLUSTER {what}") for what in ("NODES", "SLOTS")]
            except (RedisError, OSError) as error:
                last = error
                continue
            found = read_topology(*replies, asked_host=node.host)
            if found is not None:
                self.asked = node.host, int(node.port)
                return found
        raise last

    def _failure(self, error: BaseException) -> ConnectFailure:
        """Return why nothing was found out: why the last node could not be reached, else what was missing."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ConnectFailure):
                return cause
            if isinstance(cause, ServerError):
                return refusal(self._target, cause) or self._unknown(str(cause))
            cause = cause.__cause__
        if isinstance(error, IndexError):  # redis-py wants a first primary, and there is none
            return self._unknown("No node of the cluster serves any slot.")
        return self._unknown(display_text(str(error)))

    def _unknown(self, happened: str) -> ConnectFailure:
        remedy = "`redis-cli --cluster check` on one of the nodes says more."
        return ConnectFailure(FailureKind.CLUSTER, f"{self._target.label}: {happened}", remedy)

    def target_of(self, node: Node) -> Target:
        """How to connect to a node: like to the seeds."""
        return replace(self._target, host=node.host, port=node.port, socket_path=None)

    async def close(self) -> None:
        """Close the connections."""
        await self._manager.aclose()
        if self._logins is not None:
            await self._logins.close()
