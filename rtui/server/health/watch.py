"""Samples of a server, or of all nodes of a cluster, every few seconds.

All nodes are sampled in rounds, a few at a time. Larger clusters are sampled less often, and above `MOST_NODES` nodes
only the primaries. A node that does not answer keeps its samples, with the reason for the missing one; when it is back,
perhaps as another server, it continues the same history, in which the run id shows the change.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rtui.analysis.health.sample import LEAST_SAMPLES, MOST_SAMPLES, Sample, SampleHistory, Source
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import Deployment, ServerNode, round_s
from rtui.server.health.probe import EVERY_S as SOURCES_EVERY_S
from rtui.server.health.probe import HealthProbe
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, RtuiError

EVERY_S: Final = 5.0

LEAST_EVERY_S: Final = 1.0
"""The shortest time between rounds: all commands then take less than 1 ms of a server's time per second."""

MOST_NODES: Final = 100
"""In a cluster of more nodes only the primaries are sampled."""

LEAST_PAUSE_S: Final = 0.1
"""The shortest pause between rounds, however long one takes."""

AT_ONCE: Final = 8
"""The most nodes sampled at the same time."""


@dataclass(slots=True)
class NodeHealth:
    """The samples of one node."""

    label: SafeText
    """`host:port`, as in its samples."""
    id: str = ""
    history: SampleHistory = field(default_factory=SampleHistory)
    failure: SafeText | None = None
    """The reason why the last round has no sample of it, a sentence."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Oldest first; empty before its first reply."""
        return self.history.samples


class HealthWatch:
    """Samples every few seconds while `run` runs; all else may be read at any time."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sources_every_s: Mapping[Source, float] = SOURCES_EVERY_S,
    ) -> None:
        """`clock` returns seconds since the epoch; `sources_every_s` are the shortest times between readings."""
        self._sources_every_s = sources_every_s
        self.every_s = max(LEAST_EVERY_S, every_s)
        """Seconds between rounds; may be changed at any time."""
        self.nodes: tuple[NodeHealth, ...] = ()
        """The single server; in a cluster the primaries by their slots, each followed by its replicas."""
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
        """Caveats about all samples, in sentences."""
        topology = self._deployment.topology
        nodes = 0 if topology is None else sum(1 for _ in topology.nodes)
        if nodes <= MOST_NODES:
            return ()
        return (f"The cluster has {nodes:,} nodes: only primaries are polled, every {self.pause_s:g} s.",)

    @property
    def pause_s(self) -> float:
        return round_s(self.every_s, len(self.nodes))

    def ask_now(self) -> None:
        """Begin the next round now, requesting everything, also refused sources."""
        for _, probe in self._known.values():
            probe.ask_everything()
        self._wanted.set()

    async def run(self) -> None:
        """Sample in rounds until cancelled."""
        while True:
            await self.look()
            await self.pause()

    async def pause(self) -> None:
        """Wait until the next round is due, or requested."""
        left_s = self.pause_s - (self._monotonic() - self._began_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(LEAST_PAUSE_S, left_s)):
                await self._wanted.wait()

    async def look(self) -> None:
        """Sample all nodes once."""
        self._began_s = self._monotonic()
        self._wanted.clear()
        servers = await self._deployment.every_node(primaries_only_above=MOST_NODES)
        self._update_nodes(servers)
        limit = asyncio.Semaphore(AT_ONCE)

        async def ask(server: ServerNode) -> None:
            async with limit:
                await self._ask(server)

        await asyncio.gather(*map(ask, servers))
        await self._update_topology()

    def _update_nodes(self, servers: Sequence[ServerNode]) -> None:
        """Keep a history of each present node, and drop those of the others."""
        before, self._known = self._known, {}
        most = max(LEAST_SAMPLES, MOST_SAMPLES // max(1, len(servers)))
        for server in servers:
            found = before.get(server.id)
            if found is None or found[1].connection is not server.connection:
                node = NodeHealth(server.label, server.id) if found is None else found[0]
                given: dict[str, Any] = {"clock": self._clock, "monotonic": self._monotonic}
                given["every_s"] = self._sources_every_s
                ask = self._deployment.ask_sentinels if self._deployment.home.target.sentinels is not None else None
                found = node, HealthProbe(server.connection, server.label, ask_sentinels=ask, **given)
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

    async def _update_topology(self) -> None:
        """Read the topology again if a node reports another configuration."""
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
