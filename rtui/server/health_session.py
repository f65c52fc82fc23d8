"""How a server, or each node of a cluster, is: samples that are taken while somebody looks at them, read as panels.

What the servers say in INFO is read every few seconds anyway while they are browsed. These samples say what is wrong,
and are what is shown first; full ones are taken only between `begin` and `end`, and kept for the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from rtui.analysis.facts import Reason
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import Deployment
from rtui.server.wire.connection import State
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, start_supervised

if TYPE_CHECKING:  # imported when it is wanted: the first screen does without
    from rtui.analysis.health.panel import Panel
    from rtui.analysis.health.sample import Sample, Source
    from rtui.analysis.health.view import HealthView
    from rtui.analysis.report.document import Report
    from rtui.analysis.report.tables.table import Table
    from rtui.registry.registry import Registry
    from rtui.server.browsing_status import Trouble
    from rtui.server.health.watch import HealthWatch
    from rtui.server.wire.replies import Reply

MOST_NODES: Final = 100
"""Of a larger cluster the first so many nodes are judged while nobody looks."""

MOST_OBSERVED: Final = 24
"""So many samples of what a server says anyway are kept."""


class HealthSource(Protocol):
    """The health of a server, or of the nodes of a cluster; `revision` grows whenever something has changed."""

    @property
    def revision(self) -> int:
        """Grows with each sample."""

    @property
    def link(self) -> State:
        """How the connection is, of a cluster that to the server which the user named."""

    @property
    def nodes(self) -> Sequence[SafeText]:
        """The labels of the nodes that have been asked, one for a server that is no cluster; none before the first."""

    @property
    def nodes_table(self) -> Table | None:
        """The nodes of a cluster, each row about the label of its node; None for one server."""

    def panels(self, node: SafeText) -> Sequence[Panel]:
        """What is known of a node, by its samples so far."""

    def asked_at_s(self, node: SafeText) -> float | None:
        """When the last sample of a node was taken, in seconds since the epoch; None where there is none."""

    def first_at_s(self, node: SafeText) -> float | None:
        """When its first sample was taken that is kept."""

    def warning(self, node: SafeText) -> SafeText | None:
        """What no longer holds of the figures of a node, as a sentence: it was restarted."""

    def denied(self, node: SafeText) -> Collection[Source]:
        """What the user may not ask for."""

    def failure(self, node: SafeText | None) -> SafeText | None:
        """Why there is no newer sample of a node, a sentence; of None for why there is none of any."""

    def begin(self) -> None:
        """Take samples every few seconds, from now on."""

    def end(self) -> None:
        """Nobody looks any more."""

    def ask_now(self) -> None:
        """Take a sample of each node now."""

    def sample_lines(self) -> Sequence[str]:
        """All samples of the session as the lines of a file that rtui health opens; the first one is its header."""


class HealthSession:
    """The samples of each node since the session began, and what they say; raises nothing for servers that are lost."""

    trouble: Trouble | None = None
    """What is wrong with any of the nodes; None for nothing that is known."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        clock: Callable[[], float],
        report: Callable[[], Report | None],
        registry: Registry | None,
    ) -> None:
        """`report` returns the latest figures of the keyspace; `clock` gives seconds since the epoch."""
        self._deployment, self._clock, self._report, self._registry = deployment, clock, report, registry
        self._observed: dict[SafeText, list[Sample]] = {}
        """The samples of what servers say anyway, by the labels of their nodes."""
        self._wrong: dict[SafeText, SafeText] = {}
        """What is wrong with nodes, in a word."""
        self._revision = 0
        self._watch: HealthWatch | None = None
        """What takes full samples, from the first time on that somebody looks."""
        self._asking: asyncio.Task[None] | None = None
        self._stopped: SafeText | None = None
        """Why no samples are taken any more."""
        self._panels: dict[SafeText, tuple[int, Sequence[Panel]]] = {}
        """By node, with the revision that they are of."""

    @property
    def revision(self) -> int:
        """Grows with each sample, each failure, and with what is wrong."""
        return self._revision + (0 if self._watch is None else self._watch.revision)

    @property
    def link(self) -> State:
        """How the connection to the server is that the user named."""
        return self._deployment.home.link

    @property
    def _samples(self) -> Mapping[SafeText, Sequence[Sample]]:
        """What there is of each node: full samples, or else what it says anyway."""
        if self._watch is not None:
            full = {node.label: node.samples for node in self._watch.nodes if node.samples}
            if full:
                return full
        return self._observed

    @property
    def nodes(self) -> Sequence[SafeText]:
        """The nodes that have said something."""
        return tuple(self._samples)

    @property
    def nodes_table(self) -> Table | None:
        """The nodes of a cluster; None for one server."""
        if not self._deployment.is_cluster or not self._samples:
            return None
        from rtui.analysis.health.nodes import nodes_table  # noqa: PLC0415 - as above

        return nodes_table({node: samples[-1] for node, samples in self._samples.items()}, self._wrong)

    def asked_at_s(self, node: SafeText) -> float | None:
        """When the last sample was taken."""
        samples = self._samples.get(node)
        return samples[-1].at_ms / 1000 if samples else None

    def first_at_s(self, node: SafeText) -> float | None:
        """When the first sample was taken that is kept."""
        samples = self._samples.get(node)
        return samples[0].at_ms / 1000 if samples else None

    def denied(self, node: SafeText) -> Collection[Source]:
        """What the user may not ask for, by the last sample."""
        samples = self._samples.get(node)
        missing = samples[-1].missing if samples else {}
        return tuple(source for source, why in missing.items() if why.reason is Reason.DENIED)

    def failure(self, node: SafeText | None) -> SafeText | None:
        """Why a node has not answered last."""
        known = () if self._watch is None else self._watch.nodes
        failures = (one.failure for one in known if node in (None, one.label))
        return self._stopped or next((why for why in failures if why is not None), None)

    def _view(self, samples: Sequence[Sample]) -> HealthView:
        """Return all that is known of a node."""
        from rtui.analysis.health.view import HealthView  # noqa: PLC0415 - as above
        from rtui.registry.rules import RuleLevels  # noqa: PLC0415

        levels = RuleLevels() if self._registry is None else self._registry.rules
        return HealthView(tuple(samples), self._report(), self._registry, levels)

    def panels(self, node: SafeText) -> Sequence[Panel]:
        """What is known of a node, by its samples so far."""
        from rtui.analysis.findings.server import server_health  # noqa: PLC0415 - as above

        made_of, panels = self._panels.get(node, (-1, ()))
        revision, samples = self.revision, self._samples.get(node)
        if samples and made_of != revision:
            panels = server_health(self._view(samples)).panels
            self._panels[node] = revision, panels
        return panels

    def warning(self, node: SafeText) -> SafeText | None:
        """Say that the server was restarted while the samples were taken, or that another one answers."""
        from rtui.analysis.humanize import SECOND_MS, moment, short_duration  # noqa: PLC0415 - as above

        samples = self._samples.get(node)
        if not samples:
            return None
        view = self._view(samples)
        last = next((span for span in reversed(view.spans) if not span.is_same_run), None)
        if last is None:
            return None
        if last.is_other_server:
            since = moment(last.after.at_ms / 1000)
            return SafeText(f"Another server answers since {since} UTC, as after a failover: its counters are its own.")
        uptime_s = view.number("uptime_in_seconds")
        when = "" if uptime_s is None else f" {short_duration(int(uptime_s) * SECOND_MS)} ago"
        return SafeText(f"The server was restarted{when}: what it counts since its start began anew.")

    def begin(self) -> None:
        """Take full samples every few seconds."""
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
        """Take no more of them."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def close(self) -> None:
        """End everything."""
        task, self._asking = self._asking, None
        await end_task(task)

    def ask_now(self) -> None:
        """Take a sample of each node now, also of what was refused before."""
        if self._watch is not None:
            self._watch.ask_now()

    def sample_lines(self) -> Sequence[str]:
        """All samples that are kept, as the lines of a file."""
        from rtui.analysis.formats.samples import Header, header_line, sample_line  # noqa: PLC0415 - as above

        found = sorted((one for samples in self._samples.values() for one in samples), key=lambda one: one.at_ms)
        header = Header(began_ms=found[0].at_ms if found else 0, server=self._deployment.home.target.label)
        return [header_line(header), *map(sample_line, found)]

    async def observe(self) -> None:
        """Read what the servers have said in INFO anyway, and find out what is wrong, in a thread."""
        home = self._deployment.home
        nodes = await self._deployment.scanned() if self._deployment.is_cluster else ()
        said = [(one.connection.info, one.label) for one in nodes[:MOST_NODES]] or [(home.info, home.target.label)]
        at_ms = round(self._clock() * 1000)
        for sample in await asyncio.to_thread(_samples_of, [one for one in said if one[0]], at_ms):
            kept = self._observed.setdefault(SafeText(sample.node), [])
            kept.append(sample)
            del kept[:-MOST_OBSERVED]
        for gone in self._observed.keys() - {label for _, label in said}:
            del self._observed[gone]
        views = {node: self._view(samples) for node, samples in self._samples.items()}
        before = self._wrong, self.trouble
        self._wrong, self.trouble = await asyncio.to_thread(_wrong_with, views)
        if self._samples is self._observed or before != (self._wrong, self.trouble):
            self._revision += 1


def _samples_of(said: Sequence[tuple[Mapping[str, Reply], SafeText]], at_ms: int) -> list[Sample]:
    """Read what nodes have said in INFO; imports what that takes, in a thread."""
    from rtui.server.health_judging import sample_of_info  # noqa: PLC0415 - as above

    return [sample_of_info(replies, node, at_ms) for replies, node in said]


def _wrong_with(views: Mapping[SafeText, HealthView]) -> tuple[dict[SafeText, SafeText], Trouble | None]:
    """Return what is wrong with each node in a word, and the gravest of all."""
    from rtui.server.health_judging import wrong_with  # noqa: PLC0415 - as above

    return wrong_with(views)
