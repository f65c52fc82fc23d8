"""Counts what a registry says of inspected keys: by entry and expectation, by rule about names and namespace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy

from rtui.analysis.aggregate.figures import Figures
from rtui.analysis.aggregate.naming_counts import CountedName, NamingCounts
from rtui.analysis.aggregate.registered import CountedBreach, CountedEntries, EntryCounts
from rtui.analysis.aggregate.registered_report import registry_report
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.report.document import Node
from rtui.analysis.report.members import NamingReport, RegistryReport
from rtui.keyspace.slices import Slicer, Slices
from rtui.registry.registry import Registry


class RegistryCounts:
    """What is counted by one registry; parts that it has nothing about are left out."""

    def __init__(self, registry: Registry, *, is_sample: bool = False) -> None:
        self.registry = registry
        self.is_sample = is_sample
        """Whether the keys are a random sample, whose bytes are to be estimated."""
        self.entries = EntryCounts(registry.entries, is_sample=is_sample)
        self.naming = NamingCounts(registry, is_sample=is_sample)
        self._copies = 0
        """Copies being made."""
        self._held: deque[Callable[[], None]] = deque()
        """Adds what came meanwhile."""

    def copy(self, slicer: Slicer) -> Slices[RegistryCounts]:
        """Return counts of the same keys; what is added until it is made is not in it."""
        self.add_held()
        made = copy(self)
        made._held = deque()
        self._copies += 1
        try:
            made.entries = yield from self.entries.copy(slicer)
            made.naming = yield from self.naming.copy(slicer)
        finally:
            self._copies -= 1
        while self._held and not self._copies:
            self._held.popleft()()
            yield from slicer.pause()
        return made

    def add_held(self) -> None:
        """Add what came while a copy was made that nobody waited for."""
        while self._held and not self._copies:
            self._held.popleft()()

    def _add(self, work: Callable[[], None]) -> None:
        """Add something, after what is held, and not before copies are made."""
        self.add_held()
        if self._copies:
            self._held.append(work)
        else:
            work()

    def add(self, batch: InspectedBatch, found: Sequence[int] | None = None) -> None:
        """Count a batch of keys; `found` has the entry of each, or NO_PATTERN, where it is known."""
        entries = self.registry.matcher.match_page(batch.keys) if found is None else found
        self._add(lambda: self._add_batch(batch, entries))

    def _add_batch(self, batch: InspectedBatch, found: Sequence[int]) -> None:
        self.entries.add(batch, found)
        if self.naming.is_wanted:
            self.naming.add(batch.keys, found, batch.memory_bytes)

    def add_counted(self, counted: CountedEntries) -> None:
        """Add keys that were counted elsewhere, by entry."""
        self._add(lambda: self.entries.add_counted(counted))

    def add_broken(self, counted: Sequence[CountedBreach]) -> None:
        """Add that keys that were counted elsewhere break something, by entry."""
        self._add(lambda: self.entries.add_broken(counted))

    def add_names(self, counted: Sequence[CountedName]) -> None:
        """Add keys by what is found of their names that were counted elsewhere."""
        self._add(lambda: self.naming.add_counted(counted))

    def reports(
        self, root: Node, figures: Figures, slicer: Slicer, *, samples_lengths: bool
    ) -> Slices[tuple[RegistryReport | None, NamingReport | None]]:
        """Return the parts of a report, of which `root` is the tree of namespaces; None for what the registry lacks.

        `samples_lengths` is whether the length was asked of keys that were chosen at random.
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
