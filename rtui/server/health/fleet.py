"""The health of many servers, each asked over one quiet connection, in turns that are spread in time.

A target is a server, a cluster, which counts as all of its nodes, or a service of Sentinels; with `*` in place of the
service it is all of theirs. A cluster of which several nodes are named is asked once. Nobody waits for a server that
does not answer: an attempt counts among those under way for a moment only, ends after a time limit, and is repeated
after pauses that grow. The last two samples of a node are kept: more would take gigabytes for a thousand servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from rtui.analysis.findings.server import server_findings
from rtui.analysis.formats.fleet import FleetServer
from rtui.analysis.health.sample import Source
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import FILES_PER_NODE_BY_SSH, OTHER_FILES, Deployment
from rtui.server.files import allow_open_files
from rtui.server.health.probe import EVERY_S as SOURCES_EVERY_S
from rtui.server.health.watch import HealthWatch, NodeHealth
from rtui.server.user.known_servers import united
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import failure_of
from rtui.server.wire.target import Target, Timeouts

if TYPE_CHECKING:
    from rtui.registry.registry import Registry

EVERY_S: Final = 5.0
"""The shortest time between two samples of a server."""

POLLS_PER_S: Final = 32.0
"""The most servers that are asked a second: each takes 2 to 4 ms of a processor here."""

CONNECTS_PER_S: Final = 100.0
"""The most connections that are begun a second."""

AT_ONCE: Final = 32
"""The most attempts that are begun before one of them has ended, or takes longer than `HOLD_S`."""

HOLD_S: Final = 0.3
"""An attempt that takes longer is to a server that does not answer, or is far away: others need not wait for it."""

LIMIT_S: Final = 5.0
"""The time that a server has to accept a connection and to answer, unless set otherwise."""

LONGEST_PAUSE_S: Final = 60.0
"""The longest pause between two attempts at an unreachable server."""

NEW_SERVICES_S: Final = 60.0
"""How often Sentinels are asked for services that are new."""

HEARTBEAT_S: Final = 60.0
"""Polls find out sooner whether a server is there."""

SELDOM_S: Final[Mapping[Source, float]] = {
    **SOURCES_EVERY_S,
    **dict.fromkeys((Source.CLIENTS, Source.COMMAND_STATS, Source.ERROR_STATS, Source.KEY_SIZES), 60.0),
    **dict.fromkeys((Source.LATENCY_STATS, Source.SETTINGS), 300.0),
}
"""Sources that are read less often than of a single server, since reading their replies takes most of the time here:
a list of 500 clients takes ten times as long as all else."""

LEAST_SHARE: Final = 0.2
"""The least part of the time between two samples: rates over less would be rough."""

KEPT: Final = 2
"""Samples of a node that are kept: rates need two."""


class _Entry:
    """A target with its connections; `poll` it again and again, `close` it at the end."""

    def __init__(self, target: Target, fleet: Fleet) -> None:
        self.target = target
        self.is_over = False
        """Whether another entry asks the same cluster."""
        self.failed = 0
        """Attempts in a row that have failed."""
        self.failure: SafeText | None = None
        """Why there is no connection, a sentence."""
        self.mentions: dict[str, Target] = {}
        """The targets that name nodes of this cluster, by the ids of the nodes."""
        self.deployment: Deployment | None = None
        self._watch: HealthWatch | None = None
        self._fleet = fleet
        self._judged: dict[SafeText, FleetServer] = {}

    @property
    def is_services(self) -> bool:
        return self.target.sentinels is not None and self.target.sentinels.service == "*"

    async def poll(self) -> None:
        """Ask the server, or each node of the cluster, for a sample; raises nothing."""
        failure = await failure_of(self._ask(), name="rtui fleet")
        if failure is None:
            self.failed, self.failure = 0, None
        else:
            self.failed += 1
            self.failure = failure.happened
            await self.close()
        self._fleet.revision += 1

    async def _ask(self) -> None:
        if self.is_services:
            await self._find_services()
            return
        if self._watch is None:
            await self._open()
        if self._watch is not None:
            await self._watch.look()

    async def _find_services(self) -> None:
        from rtui.server.deployment.sentinel import services  # noqa: PLC0415 - redis-py, for those who have Sentinels

        found, sentinels = await services(self.target, self._fleet.log), self.target.sentinels
        assert sentinels is not None  # noqa: S101 - `is_services`
        self._fleet.add(replace(self.target, sentinels=replace(sentinels, service=name)) for name in found)

    async def _open(self) -> None:
        """Connect; raises RtuiError. Ends this entry if another one asks the same cluster."""
        limit_s = self._fleet.limit_s
        within = Timeouts.within(limit_s)
        way = replace(
            self.target.way, timeouts=replace(within, ssh_s=max(within.ssh_s, self.target.way.timeouts.ssh_s))
        )
        target = replace(self.target, way=way)
        deployment = self.deployment = Deployment(target, self._fleet.log, heartbeat_s=HEARTBEAT_S)
        try:
            async with asyncio.timeout(way.connect_s if way.via else limit_s):
                await deployment.open()
        except TimeoutError:
            state = deployment.home.state
            if isinstance(state, Lost) and state.reason is not None:
                raise state.reason from None
            raise RtuiError("No answer", f"{target.label} does not answer within {limit_s:g} s.") from None
        if deployment.topology is not None:
            ids = {node.id for node in deployment.topology.nodes}
            other = self._fleet.asks(ids, self)
            (self if other is None else other).mentions[deployment.home_id] = self.target
            if other is not None:
                self.is_over = True
                await self.close()
                return
        self._watch = HealthWatch(deployment, clock=self._fleet.clock, sources_every_s=SELDOM_S)

    async def close(self) -> None:
        deployment, self.deployment, self._watch = self.deployment, None, None
        if deployment is not None:
            await deployment.close()

    def asks(self, ids: set[str]) -> bool:
        """Whether this is a cluster that has any of these nodes."""
        topology = None if self.deployment is None or self._watch is None else self.deployment.topology
        return topology is not None and any(node.id in ids for node in topology.nodes)

    def servers(self) -> Iterator[FleetServer]:
        """Yield the server, or each node of the cluster, with its findings."""
        nodes = () if self._watch is None else self._watch.nodes
        if nodes:
            self._judged = {node.label: self._server(node) for node in nodes}
            for node in nodes:
                yield replace(self._judged[node.label], failure=node.failure)
        elif self.failure is not None and self._judged:
            for one in self._judged.values():
                yield replace(one, failure=self.failure)
        elif self.failure is not None or not self.is_services:
            name, label = self._name(self.target.label, self.target), self.target.label
            yield FleetServer(name, label, self.target.labels, failure=self.failure)

    def _server(self, node: NodeHealth) -> FleetServer:
        """Return a node with its findings, which are looked for once for each sample."""
        node.history.keep_last(KEPT)
        samples, known = node.samples, self._judged.get(node.label)
        if known is not None and samples and known.view is not None and known.view.latest is samples[-1]:
            return known
        mention = self.mentions.get(node.id, self.target)
        labels = {**dict(self.target.labels), **dict(mention.labels)}
        found = FleetServer(self._name(node.label, mention), node.label, tuple(labels.items()))
        if not samples:
            return found
        view = HealthView.of(samples, None, self._fleet.registry_of(self.target))
        return replace(found, view=view, found=server_findings(view))

    def target_of(self, address: SafeText) -> Target | None:
        """Return how to open the server, or node of the cluster, with this address; None if it is not here."""
        deployment, nodes = self.deployment, () if self._watch is None else self._watch.nodes
        if deployment is not None and deployment.is_cluster:
            found = next((node for node in nodes if node.label == address), None)
            return None if found is None else replace(deployment.target_of(found.id), way=self.target.way)
        return self.target if self.target.label == address else None

    def _name(self, label: SafeText, named: Target) -> SafeText:
        """Return the name of the profile, if there is one; of a cluster with the address of the node."""
        if named.name is None:
            return label
        is_cluster = self.deployment is not None and self.deployment.is_cluster
        return SafeText(f"{named.name} {label}" if is_cluster else named.name)


class Fleet:
    """Many servers: `look` asks each once, `run` again and again; `close` it at the end."""

    def __init__(
        self,
        targets: Sequence[Target],
        log: CommandLog | None = None,
        *,
        registry_of: Callable[[Target], Registry | None] = lambda _target: None,
        limit_s: float | None = None,
        every_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`limit_s` is the time for connecting, and for an answer; `every_s` the least time between samples."""
        self.log = CommandLog() if log is None else log
        self.registry_of, self.limit_s, self.clock = registry_of, limit_s or LIMIT_S, clock
        self.revision = 0
        """Grows with every answer, and every failure."""
        self._least_s = every_s or EVERY_S
        self._entries: dict[str, _Entry] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._wanted = asyncio.Event()
        self._pollers: dict[str, asyncio.Task[None]] = {}
        self._is_running = False
        self._rng = Random()
        self.add(targets)

    def add(self, targets: Iterable[Target]) -> None:
        """Add targets that are not there yet."""
        for target in united(targets):
            if target.label not in self._entries:
                self._entries[target.label] = entry = _Entry(target, self)
                if self._is_running:
                    self._start(entry)
        files = (FILES_PER_NODE_BY_SSH if one.target.way.via else 1 for one in self._entries.values())
        allow_open_files(sum(files) + OTHER_FILES)

    @property
    def every_s(self) -> float:
        """The time between two samples of a server."""
        return max(self._least_s, len(self._entries) / POLLS_PER_S)

    @property
    def servers(self) -> list[FleetServer]:
        """All servers, in the order in which they were named; a node that two entries have is in it once."""
        found: dict[SafeText, FleetServer] = {}
        for entry in list(self._entries.values()):
            if not entry.is_over:
                for one in entry.servers():
                    found.setdefault(one.address, one)
        return list(found.values())

    def target_of(self, address: SafeText) -> Target | None:
        """Return how to open one of the servers."""
        found = (entry.target_of(address) for entry in self._entries.values() if not entry.is_over)
        return next((target for target in found if target is not None), None)

    def asks(self, ids: set[str], besides: _Entry) -> _Entry | None:
        """Return the entry of a cluster that has any of these nodes."""
        return next((one for one in self._entries.values() if one is not besides and one.asks(ids)), None)

    async def look(self, *, only_answering: bool = False) -> None:
        """Ask every server once, many of them at the same time, also the services that Sentinels name only now.

        With `only_answering` unreachable servers are not tried again.
        """
        asked = {label for label, entry in self._entries.items() if only_answering and entry.failed}
        while new := [label for label, entry in self._entries.items() if label not in asked and not entry.is_over]:
            asked.update(new)
            await asyncio.gather(*(self._poll(self._entries[label]) for label in new))

    async def _poll(self, entry: _Entry) -> None:
        """Poll an entry once it is its turn; one that takes long does not hold up the others."""
        async with self._gate:
            task = asyncio.create_task(entry.poll(), name="rtui fleet")
            try:
                await asyncio.wait([task], timeout=HOLD_S)
            except asyncio.CancelledError:
                task.cancel()
                raise
        try:
            await task
        finally:
            task.cancel()

    async def run(self) -> None:
        """Ask every server again and again, in turns spread over the time between two samples, until cancelled."""
        self._is_running = True
        try:
            for entry in list(self._entries.values()):
                self._start(entry)
                await asyncio.sleep(1 / CONNECTS_PER_S)
            await asyncio.Event().wait()
        finally:
            self._is_running = False
            pollers, self._pollers = list(self._pollers.values()), {}
            for task in pollers:
                task.cancel()
            await asyncio.gather(*pollers, return_exceptions=True)

    def _start(self, entry: _Entry) -> None:
        label = entry.target.label
        if label not in self._pollers:
            self._pollers[label] = asyncio.create_task(self._poll_on(entry, len(self._pollers)), name="rtui fleet")

    async def _poll_on(self, entry: _Entry, place: int) -> None:
        """Poll an entry again and again, always at the same place within the time between two samples."""
        await self._poll(entry)
        loop = asyncio.get_running_loop()
        phase = place / max(1, len(self._entries))
        while not entry.is_over:
            every_s = NEW_SERVICES_S if entry.is_services and not entry.failed else self.every_s
            if entry.failed:
                longest_s = max(every_s, LONGEST_PAUSE_S)
                pause_s = min(longest_s, every_s * 2.0 ** min(entry.failed - 1, 16)) * self._rng.uniform(0.5, 1.0)
            else:
                pause_s = (1 - (loop.time() / every_s - phase) % 1) * every_s
                pause_s += every_s if pause_s < every_s * LEAST_SHARE else 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wanted.wait()
            await self._poll(entry)

    def ask_now(self) -> None:
        """Ask every server now, also those that were unreachable."""
        wanted, self._wanted = self._wanted, asyncio.Event()
        wanted.set()

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(entry.close() for entry in self._entries.values()))
