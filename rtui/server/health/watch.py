"""Samples of a server, or of all nodes of a cluster, every few seconds.

All nodes are asked in rounds, a few at a time. Larger clusters are asked less often, and of those with more than
`MOST_NODES` nodes the primaries alone. A node that does not answer keeps the samples that it has, with why there is no
new one; one that has come back, perhaps as another server, goes on with the same history, in which the run id says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rtui.analysis.health.sample import LEAST_SAMPLES, MOST_SAMPLES, Sample, SampleHistory
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import Deployment, ServerNode, round_s
from rtui.server.health.probe import HealthProbe
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, RtuiError

EVERY_S: Final = 5.0
"""How often a server is asked where nobody says."""

LEAST_EVERY_S: Final = 1.0
"""No server is asked more often: then all that is asked stays below 1 ms of its time a second."""

MOST_NODES: Final = 100
"""Of a larger cluster the primaries alone are asked."""

LEAST_PAUSE_S: Final = 0.1
"""Between rounds, however long one takes."""

AT_ONCE: Final = 8
"""Nodes that are asked side by side."""


@dataclass(slots=True)
class NodeHealth:
    """What is known of one node."""

    label: SafeText
    """`host:port`, as its samples call it."""
    id: str = ""
    """Of a node of a cluster."""
    history: SampleHistory = field(default_factory=SampleHistory)
    failure: SafeText | None = None
    """Why there is no sample of the last round, a sentence."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Oldest first; none before it has answered."""
        return self.history.samples


class HealthWatch:
    """Asks every few seconds while `run` runs; all else may be read at any time."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self.every_s = max(LEAST_EVERY_S, every_s)
        """Seconds between rounds; may be changed at any time."""
        self.nodes: tuple[NodeHealth, ...] = ()
        """Of one server itself; of a cluster the primaries by their slots, each with its replicas after it."""
        self.revision = 0
        """Grows with each sample, and each failure."""
        self.on_sample: list[Callable[[Sample], object]] = []
        """Called with each sample."""
        self._deployment, self._clock, self._monotonic = deployment, clock, monotonic
        self._known: dict[str, tuple[NodeHealth, HealthProbe]] = {}
        self._epoch: object = None
        self._wanted = asyncio.Event()
        self._began_s = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to know of all samples, sentences."""
        topology = self._deployment.topology
        nodes = 0 if topology is None else sum(1 for _ in topology.nodes)
        if nodes <= MOST_NODES:
            return ()
        return (f"The cluster has {nodes:,} nodes: only its primaries are asked, every {self.pause_s:g} s.",)

    @property
    def pause_s(self) -> float:
        """Seconds between rounds of as many nodes as there are."""
        return round_s(self.every_s, len(self.nodes))

    def ask_now(self) -> None:
        """Begin the next round now, in which everything is asked, also what was refused."""
        for _, probe in self._known.values():
            probe.ask_everything()
        self._wanted.set()

    async def run(self) -> None:
        """Ask in rounds until cancelled."""
        while True:
            await self.look()
            await self.pause()

    async def pause(self) -> None:
        """Wait until the next round is due, or wanted now."""
        left_s = self.pause_s - (self._monotonic() - self._began_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(LEAST_PAUSE_S, left_s)):
                await self._wanted.wait()

    async def look(self) -> None:
        """Ask all nodes once."""
        self._began_s = self._monotonic()
        self._wanted.clear()
        servers = await self._deployment.every_node(primaries_only_above=MOST_NODES)
        self._follow(servers)
        limit = asyncio.Semaphore(AT_ONCE)

        async def ask(server: ServerNode) -> None:
            async with limit:
                await self._ask(server)

        await asyncio.gather(*map(ask, servers))
        await self._follow_cluster()

    def _follow(self, servers: Sequence[ServerNode]) -> None:
        """Have a history of each node that is there now, and none of the others."""
        before, self._known = self._known, {}
        most = max(LEAST_SAMPLES, MOST_SAMPLES // max(1, len(servers)))
        for server in servers:
            found = before.get(server.id)
            if found is None or found[1].connection is not server.connection:
                node = NodeHealth(server.label, server.id) if found is None else found[0]
                clocks = {"clock": self._clock, "monotonic": self._monotonic}
                ask = self._deployment.ask_sentinels if self._deployment.home.target.sentinels is not None else None
                found = node, HealthProbe(server.connection, server.label, ask_sentinels=ask, **clocks)
            found[0].history.most = most
            self._known[server.id] = found
        self.nodes = tuple(node for node, _ in self._known.values())

    async def _ask(self, server: ServerNode) -> None:
        node, probe = self._known[server.id]
        try:
            sample = await probe.sample()
        except ConnectionLost as lost:
            state = server.connection.state
            reason: RtuiError = state.reason if isinstance(state, Lost) and state.reason is not None else lost
            node.failure = reason.happened
        else:
            node.failure = None
            node.history.add(sample)
            for call in tuple(self.on_sample):
                call(sample)
        self.revision += 1

    async def _follow_cluster(self) -> None:
        """Look at the topology again where a node tells of another configuration."""
        if self._deployment.topology is None:
            return
        latest = [node.samples[-1].info for node in self.nodes if node.samples and node.failure is None]
        epochs = frozenset((info.get("cluster_current_epoch"), info.get("cluster_known_nodes")) for info in latest)
        now = epochs, frozenset(node.label for node in self.nodes if node.failure is not None)
        if self._epoch not in (None, now):
            try:
                await self._deployment.look()
            except ConnectFailure:
                return
        self._epoch = now
