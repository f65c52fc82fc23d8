"""The health of a server, or of each node of a cluster: samples from the server or a file, read as panels.

INFO is read every few seconds anyway while a server is browsed. Samples of these replies show problems, and are shown
first; full samples are taken only between `begin` and `end`, and kept for the session. Most modules that read samples
are imported when there are some: the first screen works without them.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rtui.analysis.facts import Reason
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import guard
from rtui.server.deployment.nodes import NODES_A_ROUND, Deployment, ServerNode, round_s
from rtui.server.scan.page import key_count
from rtui.server.wire.capability import Capabilities, Feature
from rtui.server.wire.connection import Connection, Online, State
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, RtuiError
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.supervised_tasks import end_task, for_each, start_supervised

if TYPE_CHECKING:
    from rtui.analysis.findings.server import HealthComparison, NodeComparison
    from rtui.analysis.formats.samples import SamplesFile
    from rtui.analysis.health.panel import Panel
    from rtui.analysis.health.sample import Sample, Source
    from rtui.analysis.health.view import HealthView
    from rtui.analysis.report.document import Report
    from rtui.analysis.report.tables.table import Table
    from rtui.registry.registry import Registry
    from rtui.server.health.watch import HealthWatch
    from rtui.server.wire.errors import Reply

REFRESH_EVERY_S: Final = 3.0
"""The shortest time between two INFO commands to a server."""

MOST_OBSERVED: Final = 24
"""The most samples kept of INFO that is read anyway."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The gravest problem of a server."""

    word: str
    """The rule that finds it, such as `memory-near-limit`."""
    is_error: bool
    """Whether it is an error, not a warning."""
    more: int = 0


class Health(ABC):
    """The health of a server, or of the nodes of a cluster; `revision` grows with every change."""

    file: SafeText | None = None
    """The name of the samples' file and their time; None for live servers."""

    def __init__(self, report: Callable[[], Report | None], registry: Registry | None) -> None:
        """`report` returns the latest figures of the keyspace."""
        self._report, self._registry = report, registry
        self._problems: dict[SafeText, SafeText] = {}
        """The gravest problem of each node that has one, in a word."""
        self._panels: dict[SafeText, tuple[int, Sequence[Panel]]] = {}
        """The panels of each node, with the revision that they were made of."""

    @property
    @abstractmethod
    def revision(self) -> int:
        """Grows with each sample, each failure, and each change of the problems."""

    @property
    @abstractmethod
    def link(self) -> State:
        """The state of the connection, in a cluster to the server that the user named."""

    @property
    @abstractmethod
    def is_cluster(self) -> bool:
        """Whether there are several nodes, or may be."""

    @property
    @abstractmethod
    def label(self) -> SafeText:
        """The server or cluster that the user named."""

    @property
    @abstractmethod
    def known(self) -> Mapping[SafeText, Sequence[Sample]]:
        """The samples of each node, oldest first."""

    def compared(self, _node: SafeText) -> NodeComparison | None:
        """The changes since earlier samples of a node; None if there are none to compare with."""
        return None

    def failure(self, _node: SafeText | None) -> SafeText | None:
        """Why there is no newer sample of a node, a sentence; for None, of any node."""
        return None

    def begin(self) -> None:  # noqa: B027 - samples out of a file are all there
        """Take samples every few seconds from now on."""

    def end(self) -> None:  # noqa: B027
        """Take no more samples."""

    def ask_now(self) -> None:  # noqa: B027
        """Take a sample of each node now, also of refused sources."""

    @property
    def nodes(self) -> Sequence[SafeText]:
        """The labels of the nodes with samples, one for a single server; empty before the first sample."""
        return tuple(self.known)

    @property
    def nodes_table(self) -> Table | None:
        """The nodes of a cluster; None for one server."""
        if not self.is_cluster or not self.known:
            return None
        from rtui.analysis.health.panel import nodes_table  # noqa: PLC0415 - as below

        return nodes_table({node: samples[-1] for node, samples in self.known.items()}, self._problems)

    def asked_at_s(self, node: SafeText) -> float | None:
        """The time of the last sample, in seconds since the epoch."""
        samples = self.known.get(node)
        return samples[-1].at_ms / 1000 if samples else None

    def first_at_s(self, node: SafeText) -> float | None:
        """The time of the first sample kept, in seconds since the epoch."""
        samples = self.known.get(node)
        return samples[0].at_ms / 1000 if samples else None

    def denied(self, node: SafeText) -> Collection[Source]:
        samples = self.known.get(node)
        missing = samples[-1].missing if samples else {}
        return tuple(source for source, why in missing.items() if why.reason is Reason.DENIED)

    def _view(self, samples: Sequence[Sample]) -> HealthView:
        from rtui.analysis.health.view import HealthView  # noqa: PLC0415 - as above

        return HealthView.of(tuple(samples), self._report(), self._registry)

    def panels(self, node: SafeText) -> Sequence[Panel]:
        """The panels of a node, by its samples so far."""
        from rtui.analysis.findings.server import server_health  # noqa: PLC0415 - as above

        made_of, panels = self._panels.get(node, (-1, ()))
        revision, samples = self.revision, self.known.get(node)
        if samples and made_of != revision:
            panels = server_health(self._view(samples)).panels
            self._panels[node] = revision, panels
        return panels

    def warning(self, node: SafeText) -> SafeText | None:
        """Say that the server was restarted between the samples, or that another one answers; None otherwise."""
        from rtui.analysis.humanize import SECOND_MS, moment, short_duration  # noqa: PLC0415 - as above

        samples = self.known.get(node)
        if not samples:
            return None
        view = self._view(samples)
        last = next((span for span in reversed(view.spans) if not span.is_same_run), None)
        if last is None:
            return None
        if last.is_other_server:
            since = moment(last.after.at_ms / 1000)
            return SafeText(f"A different server since {since} UTC, as after a failover; its counters start anew.")
        uptime_s = view.number("uptime_in_seconds")
        when = "" if uptime_s is None else f" {short_duration(int(uptime_s) * SECOND_MS)} ago"
        return SafeText(f"The server was restarted{when}; its counters start anew.")

    def sample_lines(self) -> Sequence[str]:
        """All samples kept, as the lines of a file."""
        from rtui.analysis.formats.samples import SamplesHeader, header_line, sample_line  # noqa: PLC0415 - as above

        found = sorted((sample for samples in self.known.values() for sample in samples), key=lambda one: one.at_ms)
        header = SamplesHeader(began_ms=found[0].at_ms if found else 0, server=self.label)
        return [header_line(header), *(sample_line(sample, header) for sample in found)]


class HealthSession(Health):
    """The samples of each node since the session began, and their findings; raises nothing for lost servers."""

    trouble: Trouble | None = None
    """The gravest known problem of any node; None if there is none."""

    def __init__(
        self,
        deployment: Deployment,
        capabilities: Capabilities,
        *,
        clock: Callable[[], float],
        report: Callable[[], Report | None],
        registry: Registry | None,
    ) -> None:
        """`capabilities` belong to the server that the user named; `clock` returns seconds since the epoch.

        `report` returns the latest figures of the keyspace.
        """
        super().__init__(report, registry)
        self._deployment, self._capabilities, self._clock = deployment, capabilities, clock
        self.sizes: dict[str, int | None] = {}
        """The number of keys of each cluster node by its id; None if it does not report it."""
        self._load: dict[str, Any] = {}
        """The sums of memory and load over a cluster's nodes; empty before the first reading."""
        self._epoch: object = None
        """The home node's configuration epoch; when it changes, the topology is read again."""
        self._observed: dict[SafeText, list[Sample]] = {}
        """Samples of INFO that is read anyway, by the labels of nodes."""
        self._revision = 0
        self._watch: HealthWatch | None = None
        """Takes full samples, once they have been wanted."""
        self._asking: asyncio.Task[None] | None = None
        self._stopped: SafeText | None = None

    @property
    def revision(self) -> int:
        return self._revision + (0 if self._watch is None else self._watch.revision)

    @property
    def link(self) -> State:
        return self._deployment.home.link

    @property
    def is_cluster(self) -> bool:
        return self._deployment.is_cluster

    @property
    def label(self) -> SafeText:
        return self._deployment.home.target.label

    @property
    def known(self) -> Mapping[SafeText, Sequence[Sample]]:
        """The full samples of each node if there are any, else those of INFO."""
        if self._watch is not None:
            full = {node.label: node.samples for node in self._watch.nodes if node.samples}
            if full:
                return full
        return self._observed

    @property
    def identity(self) -> ServerIdentity:
        """The home server; in a cluster with memory and load of all nodes together if they are known."""
        home = self._deployment.home.server
        return replace(home, **self._load) if self._load and self._deployment.is_cluster else home

    @property
    def pause_s(self) -> float:
        return round_s(REFRESH_EVERY_S, len(self.sizes))

    def failure(self, node: SafeText | None) -> SafeText | None:
        known = () if self._watch is None else self._watch.nodes
        failures = (node_health.failure for node_health in known if node in (None, node_health.label))
        return self._stopped or next((why for why in failures if why is not None), None)

    def begin(self) -> None:
        from rtui.server.health.watch import HealthWatch  # noqa: PLC0415 - as above

        if self._watch is None:
            self._watch = HealthWatch(self._deployment, clock=self._clock)
        if self._asking is None:
            self._stopped = None
            self._asking = start_supervised(self._watch.run(), name="rtui health", failed=self._failed)

    def _failed(self, error: RtuiError) -> None:
        self._stopped = error.happened
        self._revision += 1

    def end(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def close(self) -> None:
        task, self._asking = self._asking, None
        await end_task(task)

    def ask_now(self) -> None:
        if self._watch is not None:
            self._watch.ask_now()

    async def refresh(self) -> None:
        """Send INFO to the home server; read the topology if that reports another configuration.

        Raises ConnectionLost.
        """
        home = self._deployment.home
        if self._capabilities.allows(Feature.INFO):
            await home.refresh()
        now = home.generation, home.server.cluster_epoch, home.server.cluster_known_nodes
        if self._deployment.is_cluster and self._epoch not in (None, now):
            with contextlib.suppress(ConnectFailure):
                await self._deployment.look()
        self._epoch = now

    async def count_keys(self) -> int | None:
        """Return the number of keys; in a cluster of all online nodes, reading their memory and load, too.

        Returns None if any does not report it. Raises ConnectionLost.
        """
        if not self._capabilities.allows(Feature.DBSIZE):
            return None
        if not self._deployment.is_cluster:
            return await self._size_of(self._deployment.home)

        async def ask(one: ServerNode) -> int | None:
            with contextlib.suppress(ConnectionLost):
                if one.connection.is_online:
                    await one.connection.refresh()
                    return await self._size_of(one.connection)
            return None

        nodes = await self._deployment.scanned()
        sizes = await for_each(nodes, ask)
        self.sizes = {one.id: size for one, size in zip(nodes, sizes, strict=True)}
        servers = [node.connection.server for node in nodes]
        self._load = {
            "used_memory_bytes": _total([server.used_memory_bytes for server in servers]),
            "maxmemory_bytes": _total([server.maxmemory_bytes or None for server in servers]),  # 0 is no limit
            "ops_per_s": _total([server.ops_per_s for server in servers]),
        }
        return _total(sizes)

    async def _size_of(self, connection: Connection) -> int | None:
        (reply,) = await connection.run(guard.dbsize())
        self._capabilities.record(Feature.DBSIZE, reply)
        return key_count(reply)

    async def observe(self) -> None:
        """Make samples of the latest INFO replies, and look for problems in a thread."""
        home = self._deployment.home
        nodes = await self._deployment.scanned() if self._deployment.is_cluster else ()
        said = [(one.connection.info, one.label) for one in nodes[:NODES_A_ROUND]] or [(home.info, home.target.label)]
        at_ms = round(self._clock() * 1000)
        for sample in await asyncio.to_thread(_samples_of, [reply for reply in said if reply[0]], at_ms):
            kept = self._observed.setdefault(SafeText(sample.node), [])
            kept.append(sample)
            del kept[:-MOST_OBSERVED]
        for gone in self._observed.keys() - {label for _, label in said}:
            del self._observed[gone]
        views = {node: self._view(samples) for node, samples in self.known.items()}
        before = self._problems, self.trouble
        self._problems, self.trouble = await asyncio.to_thread(problems_of, views)
        if self.known is self._observed or before != (self._problems, self.trouble):
            self._revision += 1


class SavedHealth(Health):
    """The health of servers by a file that holds at least one sample."""

    revision = 1
    link = Online()

    def __init__(
        self,
        found: SamplesFile,
        name: str,
        *,
        report: Report | None = None,
        registry: Registry | None = None,
        before: SamplesFile | None = None,
    ) -> None:
        """`name` is that of the file; `before` holds earlier samples to compare with."""
        from rtui.analysis.findings.server import compare_health  # noqa: PLC0415 - as above
        from rtui.analysis.humanize import counted, moment  # noqa: PLC0415

        super().__init__(lambda: report, registry)
        self._known = {SafeText(node): samples for node, samples in found.nodes.items()}
        self._label = display_text(found.header.server, limit=300)
        views = {node: self._view(samples) for node, samples in self._known.items()}
        self._problems, _ = problems_of(views)
        self.comparison: HealthComparison | None = None
        if before is not None:
            then = [replace(self._view(samples), report=None) for samples in before.nodes.values()]
            self.comparison = compare_health(then, list(views.values()))
        first = moment(min(samples[0].at_ms for samples in self._known.values()) / 1000)
        last = moment(self.ended_at_s)
        until = "" if first == last else f" to {last[11:] if first[:10] == last[:10] else last}"
        count = counted(sum(map(len, self._known.values())), "sample")
        self.file = SafeText(f"{display_text(name, limit=80)} · {count}, {first}{until} UTC")

    @property
    def is_cluster(self) -> bool:
        return len(self._known) > 1

    @property
    def label(self) -> SafeText:
        return self._label

    @property
    def known(self) -> Mapping[SafeText, Sequence[Sample]]:
        return self._known

    @property
    def ended_at_s(self) -> float:
        return max(samples[-1].at_ms for samples in self._known.values()) / 1000

    def compared(self, node: SafeText) -> NodeComparison | None:
        known = () if self.comparison is None else self.comparison.nodes
        return next((comparison for comparison in known if comparison.node == node), None)


def _samples_of(said: Sequence[tuple[Mapping[str, Reply], SafeText]], at_ms: int) -> list[Sample]:
    """Return samples of replies to INFO; runs in a thread, with imports that take time."""
    from rtui.server.health.info import sample_of_info  # noqa: PLC0415 - as above

    return [sample_of_info(replies, node, at_ms) for replies, node in said]


def problems_of(views: Mapping[SafeText, HealthView]) -> tuple[dict[SafeText, SafeText], Trouble | None]:
    """Return the gravest problem of each node that has one, in a word, and the gravest of all; None if there is none.

    The rules about changes over time need several samples.
    """
    from rtui.analysis.findings.server import headline, server_findings  # noqa: PLC0415 - as above
    from rtui.registry.rules import Severity  # noqa: PLC0415 - as above

    judged = {node: server_findings(view) for node, view in views.items()}
    found = {node: one for node, one in judged.items() if one.findings}
    if not found:
        return {}, None
    worst = max(found.values(), key=lambda one: one.findings[0].severity is Severity.ERROR)
    others = {finding.rule for each in found.values() for finding in each.findings} - {worst.findings[0].rule}
    trouble = Trouble(headline(worst), worst.findings[0].severity is Severity.ERROR, len(others))
    return {node: headline(one) for node, one in found.items()}, trouble


def _total(parts: Sequence[int | None]) -> int | None:
    return None if None in parts else sum(part for part in parts if part is not None)
