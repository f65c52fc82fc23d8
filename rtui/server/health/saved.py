"""The samples of a file in place of a server: the same panels, of when they were taken; nothing is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rtui.analysis import humanize
from rtui.analysis.findings.server_comparison import HealthComparison, NodeComparison, compare_health
from rtui.analysis.formats.samples import SamplesFile
from rtui.analysis.health.sample import Sample
from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import Registry
from rtui.server.health.session import Health, wrong_with
from rtui.server.wire.connection import Online


class SavedHealth(Health):
    """The health of servers by a file that holds a sample at least."""

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
        super().__init__(lambda: report, registry)
        self._known = _by_label(found)
        self._label = display_text(found.header.server, limit=300)
        views = {node: self._view(samples) for node, samples in self._known.items()}
        self._wrong, _ = wrong_with(views)
        self.comparison: HealthComparison | None = None
        if before is not None:
            then = [replace(self._view(samples), report=None) for samples in _by_label(before).values()]
            self.comparison = compare_health(then, list(views.values()))
        self.file = SafeText(f"{display_text(name, limit=80)} · {_when(self._known)}")

    @property
    def is_cluster(self) -> bool:
        """Whether there are samples of several nodes."""
        return len(self._known) > 1

    @property
    def label(self) -> SafeText:
        """What was asked for when they were taken."""
        return self._label

    @property
    def known(self) -> Mapping[SafeText, Sequence[Sample]]:
        """All samples."""
        return self._known

    @property
    def ended_at_s(self) -> float:
        """When the last sample was taken."""
        return max(samples[-1].at_ms for samples in self._known.values()) / 1000

    def compared(self, node: SafeText) -> NodeComparison | None:
        """What has changed since the earlier samples of a node."""
        known = () if self.comparison is None else self.comparison.nodes
        return next((one for one in known if one.node == node), None)

    def begin(self) -> None:
        """Do nothing: all samples are there."""

    def end(self) -> None:
        """Do nothing."""

    def ask_now(self) -> None:
        """Do nothing: there is no server to ask."""


def _by_label(found: SamplesFile) -> dict[SafeText, tuple[Sample, ...]]:
    return {SafeText(node): samples for node, samples in found.nodes.items()}


def _when(known: Mapping[SafeText, Sequence[Sample]]) -> SafeText:
    """Return from when to when samples are, and how many: `62 samples, 2026-09-21 14:13:20 to 14:18:20 UTC`."""
    first = humanize.moment(min(samples[0].at_ms for samples in known.values()) / 1000)
    last = humanize.moment(max(samples[-1].at_ms for samples in known.values()) / 1000)
    count = humanize.counted(sum(map(len, known.values())), "sample")
    if first == last:
        return SafeText(f"{count}, {last} UTC")
    return SafeText(f"{count}, {first} to {last[11:] if first[:10] == last[:10] else last} UTC")
