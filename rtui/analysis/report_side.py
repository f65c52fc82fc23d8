"""One report of the two that are compared: what it says of a namespace, also of one that it does not have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from rtui.analysis.change import NONE, Reading, reading, share_reading
from rtui.analysis.estimate import Estimate, wilson
from rtui.analysis.report import ColumnState, CoverageKind, Node, NodeKind, Report, Stats

MANY_NAMES: Final = b"{*}"
"""The pattern for segments of too many different names: a namespace may be among them in one report only."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The compared numbers of one namespace in one report; None where they are not known."""

    keys: Reading
    memory: Reading | None
    no_ttl: Reading | None


ABSENT: Final = Readings(NONE, NONE, None)
"""Of a namespace that is certainly not there: no keys, no bytes, and of no keys no share."""


class Side:
    """A report as something to ask."""

    def __init__(self, report: Report) -> None:
        self._coverage = report.head.coverage
        self._is_partial = self._coverage.kind is CoverageKind.PARTIAL
        self._is_estimate = self._coverage.kind is CoverageKind.ESTIMATE
        columns = report.head.columns
        self._lacks = {
            name for name in ("ttl", "memory") if name in columns and columns[name].state is not ColumnState.COMPLETE
        }
        self._population = _highest(self._coverage.total_keys, report.summary.root.stats)

    def read(self, node: Node) -> Readings:
        """What it says of a namespace that it has."""
        stats = node.stats
        memory, share = stats.memory_bytes, stats.no_ttl_share
        lacking = self._is_partial or self._lacks_memory(stats)
        of_seen = self._is_partial or "ttl" in self._lacks
        return Readings(
            reading(stats.keys, at_least=self._is_partial),
            None if memory is None else reading(memory, at_least=lacking),
            None if share is None else share_reading(share, of_seen=of_seen),
        )

    def absent(self, parent: Node | None, above: Readings, missing: Node) -> Readings:
        """What can be said of a namespace that it does not have, though the other report has it as `missing`.

        `above` is what it says of the namespace above, `parent` that namespace where it has it.
        """
        if parent is None:
            return above
        if self._is_partial:
            return _at_most(math.inf, math.inf)
        keys, memory = 0.0, 0.0
        if _is_collective(missing):
            keys, memory = above.keys.high, math.inf if above.memory is None else above.memory.high
        for child in parent.children:
            if _is_collective(child):
                hiding = self.read(child)
                keys += hiding.keys.high
                memory += math.inf if hiding.memory is None else hiding.memory.high
        if self._is_estimate:
            keys = max(keys, wilson(0, self._coverage.keys).high * self._population)
            memory = math.inf
        return _at_most(keys, memory) if keys else ABSENT

    def _lacks_memory(self, stats: Stats) -> bool:
        """Whether the sum leaves out keys."""
        if isinstance(stats.keys, Estimate):
            return "memory" in self._lacks
        return stats.memory_known_keys < stats.keys


def _at_most(keys: float, memory: float) -> Readings:
    return Readings(Reading(0, 0.0, keys, is_present=False), Reading(0, 0.0, memory, is_present=False), None)


def _is_collective(node: Node) -> bool:
    """Whether it stands for names that another report may tell apart."""
    return node.kind is NodeKind.OTHER or (node.kind is NodeKind.PATTERN and node.name == MANY_NAMES)


def _highest(total: object, root: Stats) -> float:
    """The most keys that the keyspace may have."""
    for figure in (total, root.keys):
        if isinstance(figure, Estimate):
            return figure.high
        if isinstance(figure, int | float):
            return float(figure)
    return math.inf
