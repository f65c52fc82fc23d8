"""What follows from the samples of a server, or of the nodes of a cluster, whether they are taken or out of a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from rtui.analysis.facts import Reason
from rtui.keyspace.text.display import SafeText

if TYPE_CHECKING:  # imported when it is wanted: the first screen does without
    from rtui.analysis.findings.server_comparison import NodeComparison
    from rtui.analysis.health.panel import Panel
    from rtui.analysis.health.sample import Sample, Source
    from rtui.analysis.health.view import HealthView
    from rtui.analysis.report.document import Report
    from rtui.analysis.report.tables.table import Table
    from rtui.registry.registry import Registry


class SampledHealth(ABC):
    """Most of a `HealthSource`."""

    file: SafeText | None = None
    """What it is out of and of when, where that is a file."""

    def __init__(self, report: Callable[[], Report | None], registry: Registry | None) -> None:
        """`report` returns the latest figures of the keyspace."""
        self._report, self._registry = report, registry
        self._wrong: dict[SafeText, SafeText] = {}
        """What is wrong with nodes, in a word."""
        self._panels: dict[SafeText, tuple[int, Sequence[Panel]]] = {}
        """By node, with the revision that they are of."""

    @property
    @abstractmethod
    def revision(self) -> int:
        """Grows with each sample, each failure, and with what is wrong."""

    @property
    @abstractmethod
    def is_cluster(self) -> bool:
        """Whether there are several nodes, or may be."""

    @property
    @abstractmethod
    def label(self) -> SafeText:
        """What the user named."""

    @property
    @abstractmethod
    def known(self) -> Mapping[SafeText, Sequence[Sample]]:
        """The samples of each node, oldest first."""

    def compared(self, _node: SafeText) -> NodeComparison | None:
        """None: there are no earlier samples."""
        return None

    @property
    def nodes(self) -> Sequence[SafeText]:
        """The nodes that have said something."""
        return tuple(self.known)

    @property
    def nodes_table(self) -> Table | None:
        """The nodes of a cluster; None for one server."""
        if not self.is_cluster or not self.known:
            return None
        from rtui.analysis.health.panel import nodes_table  # noqa: PLC0415 - as below

        return nodes_table({node: samples[-1] for node, samples in self.known.items()}, self._wrong)

    def asked_at_s(self, node: SafeText) -> float | None:
        """When the last sample was taken."""
        samples = self.known.get(node)
        return samples[-1].at_ms / 1000 if samples else None

    def first_at_s(self, node: SafeText) -> float | None:
        """When the first sample was taken that is kept."""
        samples = self.known.get(node)
        return samples[0].at_ms / 1000 if samples else None

    def denied(self, node: SafeText) -> Collection[Source]:
        """What the user may not ask for, by the last sample."""
        samples = self.known.get(node)
        missing = samples[-1].missing if samples else {}
        return tuple(source for source, why in missing.items() if why.reason is Reason.DENIED)

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
        revision, samples = self.revision, self.known.get(node)
        if samples and made_of != revision:
            panels = server_health(self._view(samples)).panels
            self._panels[node] = revision, panels
        return panels

    def warning(self, node: SafeText) -> SafeText | None:
        """Say that the server was restarted while the samples were taken, or that another one answers."""
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
            return SafeText(f"Another server answers since {since} UTC, as after a failover: its counters are its own.")
        uptime_s = view.number("uptime_in_seconds")
        when = "" if uptime_s is None else f" {short_duration(int(uptime_s) * SECOND_MS)} ago"
        return SafeText(f"The server was restarted{when}: what it counts since its start began anew.")

    def sample_lines(self) -> Sequence[str]:
        """All samples that are kept, as the lines of a file."""
        from rtui.analysis.formats.samples import Header, header_line, sample_line  # noqa: PLC0415 - as above

        found = sorted((one for samples in self.known.values() for one in samples), key=lambda one: one.at_ms)
        header = Header(began_ms=found[0].at_ms if found else 0, server=self.label)
        return [header_line(header), *(sample_line(one, header) for one in found)]
