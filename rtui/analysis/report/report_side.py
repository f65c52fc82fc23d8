"""One of two compared reports: its numbers of a namespace as intervals, also of a namespace that it does not have.

Say that the first report has `user:{id}` and the second one only `user:{*}`, since its names were too many to keep
apart. The keys of the first may be among those of `{*}`, so the second report's interval for `user:{id}` goes from 0 to
the keys of `user:{*}`, and the interval of `{*}` is wider by them. The same holds for what exceeded the budget of nodes
(other), for a partial report, where any namespace may have been missed, and for an estimate, which misses small ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from rtui.analysis.estimates import Estimate, wilson
from rtui.analysis.report.change import NONE, Reading, reading, share_reading
from rtui.analysis.report.document import ColumnState, CoverageKind, Node, NodeKind, Report, Stats

MANY_NAMES: Final = b"{*}"
"""The pattern for segments of too many different names: which they are differs from report to report."""


class Identity(NamedTuple):
    """What tells a namespace from its siblings."""

    kind: NodeKind
    name: bytes
    separator: bytes


@dataclass(frozen=True, slots=True)
class Readings:
    """The compared numbers of one namespace in one report; None where they are not known."""

    keys: Reading
    memory: Reading | None
    no_ttl: Reading | None


@dataclass(frozen=True, slots=True)
class Slack:
    """The most keys and bytes that may belong to a namespace though its report counts them elsewhere."""

    keys: float = 0.0
    memory: float = 0.0

    def __add__(self, other: Slack) -> Slack:
        return Slack(self.keys + other.keys, self.memory + other.memory)


ABSENT: Final = Readings(NONE, NONE, None)
"""Readings of a namespace that is certainly not there: no keys, no bytes, and no share of them."""


class ReportSide:
    """A report, read namespace by namespace."""

    def __init__(self, report: Report) -> None:
        coverage, columns = report.head.coverage, report.head.columns
        self.is_partial = coverage.kind is CoverageKind.PARTIAL
        self._lacks = {
            name for name in ("ttl", "memory") if name in columns and columns[name].state is not ColumnState.COMPLETE
        }
        self.unseen_keys = 0.0
        """The most keys of a namespace that the report does not have; 0 where every key was seen."""
        if self.is_partial:
            self.unseen_keys = math.inf
        elif coverage.kind is CoverageKind.ESTIMATE:
            self.unseen_keys = wilson(0, coverage.keys).high * _most_keys(
                coverage.total_keys, report.summary.root.stats
            )

    def read(self, node: Node) -> Readings:
        """Return the readings of a namespace of this report."""
        stats = node.stats
        memory, share = stats.memory_bytes, stats.no_ttl_share
        if isinstance(stats.keys, Estimate):
            leaves_out_keys = "memory" in self._lacks
        else:
            leaves_out_keys = stats.memory_known_keys < stats.keys
        of_seen = self.is_partial or "ttl" in self._lacks
        return Readings(
            reading(stats.keys, at_least=self.is_partial),
            None if memory is None else reading(memory, at_least=self.is_partial or leaves_out_keys),
            None if share is None else share_reading(share, of_seen=of_seen),
        )


@dataclass(frozen=True)
class ReportNamespace:
    """A namespace that either report has, as one of them sees it."""

    side: ReportSide
    node: Node | None
    """None where this report does not have the namespace."""
    readings: Readings
    slack: Slack = Slack()
    """What may belong to this namespace, or to one below it, of the other report's namespaces."""

    @cached_property
    def children(self) -> dict[Identity, Node]:
        """The namespaces directly below in this report."""
        below = () if self.node is None else self.node.children
        return {Identity(child.kind, child.name, child.separator): child for child in below}

    def below(self, name: Identity, apart: Collection[Identity]) -> ReportNamespace:
        """Return a namespace one level down; `apart` are the names that the other report does not have."""
        child = self.children.get(name)
        slack = self.slack
        if is_collective(name):
            slack = sum((_slack_of(self.side.read(self.children[one])) for one in apart if one != name), slack)
        if self._overflow is not None:
            slack += _slack_of(self.readings if name.kind is NodeKind.OTHER else self._overflow)
        found = self._absent(name) if child is None else self.side.read(child)
        return ReportNamespace(self.side, child, _with_slack(found, slack), slack)

    @cached_property
    def _overflow(self) -> Readings | None:
        """Readings of what was beyond the budget of nodes here, so that it may belong to any sibling."""
        others = [child for name, child in self.children.items() if name.kind is NodeKind.OTHER]
        return self.side.read(others[0]) if others else None

    @cached_property
    def _many(self) -> Slack:
        """What the patterns of many names here hold."""
        patterns = [child for child in self.children.values() if _is_pattern_of_many(child)]
        return sum((_slack_of(self.side.read(child)) for child in patterns), Slack())

    def _absent(self, name: Identity) -> Readings:
        """Return the readings of a namespace below this one that only the other report has."""
        if self.node is None:
            return self.readings
        hiding = [self._many]
        if is_collective(name):
            hiding.append(_slack_of(self.readings))
        if self.side.unseen_keys:
            hiding.append(Slack(self.side.unseen_keys, math.inf))
        return _with_slack(ABSENT, sum(hiding, Slack()))


def is_collective(node: Node | Identity) -> bool:
    """Tell whether a namespace stands for names that another report may keep apart."""
    return node.kind is NodeKind.OTHER or _is_pattern_of_many(node)


def _is_pattern_of_many(node: Node | Identity) -> bool:
    return node.kind is NodeKind.PATTERN and node.name == MANY_NAMES


def _slack_of(readings: Readings) -> Slack:
    return Slack(readings.keys.high, math.inf if readings.memory is None else readings.memory.high)


def _with_slack(readings: Readings, slack: Slack) -> Readings:
    """Return readings with higher upper bounds, since so much more may belong to the namespace."""
    if not slack.keys:
        return readings
    keys, memory, share = readings.keys, readings.memory, readings.no_ttl
    return Readings(
        replace(keys, high=keys.high + slack.keys),
        None if memory is None else replace(memory, high=memory.high + slack.memory),
        None if share is None else replace(share, low=0.0, high=1.0),
    )


def _most_keys(total: object, root: Stats) -> float:
    """Return the most keys that the keyspace may have."""
    for figure in (total, root.keys):
        if isinstance(figure, Estimate):
            return figure.high
        if isinstance(figure, int | float):
            return float(figure)
    return math.inf
