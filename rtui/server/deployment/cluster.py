"""Finds out what a cluster is made of, from any of its nodes that answers, and again whenever somebody asks.

Asked are the seeds, and all nodes that are known, in random order, until one answers that all slots are served; the one
that has just failed comes last. While slots are not served, MOST_ASKED nodes are asked at most, and the one that knows
of most slots is believed: of 1,000 nodes not each is asked. Some connections stay open for the next time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rtui.keyspace.text.display import display_text
from rtui.server import guard
from rtui.server.chance import new_random
from rtui.server.deployment.topology import Node, Topology, TopologyChange, read_topology, topology_change
from rtui.server.wire.command_log import CommandLog, Purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, FailureKind, RtuiError
from rtui.server.wire.failures import refusal
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import Logins, open_control_lane
from rtui.server.wire.replies import ServerError
from rtui.server.wire.target import Target
from rtui.server.wire.ways import Address

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
