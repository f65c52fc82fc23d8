"""Counts inspected keys by a registry: by entry and expectation, by naming rule and namespace."""

from __future__ import annotations

from copy import copy

from rtui.analysis.report.document import Node
from rtui.analysis.report.figures import Figures
from rtui.analysis.report.members import NamingReport, RegistryReport
from rtui.keyspace.slices import Slicer, Slices
from rtui.registry.registry import Registry
from rtui.table.naming_counts import NamingCounts
from rtui.table.registered import EntryCounts
from rtui.table.registered_report import registry_report


class RegistryCounts:
    """The counts for one registry, without the parts that it does not define."""

    def __init__(self, registry: Registry, *, is_sample: bool = False) -> None:
        self.registry = registry
        self.is_sample = is_sample
        """Whether the keys are a random sample, whose bytes are to be estimated."""
        self.entries = EntryCounts(registry.entries)
        self.naming = NamingCounts(registry)

    def copy(self, slicer: Slicer) -> Slices[RegistryCounts]:
        """Return counts of the same keys; nothing may be added meanwhile."""
        made = copy(self)
        made.entries = yield from self.entries.copy(slicer)
        made.naming = yield from self.naming.copy(slicer)
        return made

    def merge(self, other: RegistryCounts) -> None:
        """Add the counts of other keys by the same registry."""
        self.entries.merge(other.entries)
        self.naming.merge(other.naming)

    def reports(
        self, root: Node, figures: Figures, slicer: Slicer, *, samples_lengths: bool
    ) -> Slices[tuple[RegistryReport | None, NamingReport | None]]:
        """Return the registry's and the naming section of a report with namespaces `root`; None for a part it does not
        define.

        `samples_lengths`: lengths were asked of randomly chosen keys only.
        """
        registered = naming = None
        if self.registry.entries:
            registered = yield from registry_report(
                self.registry, self.entries, root, figures, slicer, samples_lengths=samples_lengths
            )
        if self.naming.is_wanted:
            keys = self.entries.keys_by_entry()
            naming = yield from self.naming.report(figures, keys.__getitem__, slicer)
        return registered, naming
