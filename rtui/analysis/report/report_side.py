"""One report of the two that are compared: what it says of a namespace, also of one that it does not have."""

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
    """What a report keeps apart and the other one counts among many names, so that it may belong there."""

    keys: float = 0.0
    memory: float = 0.0

    def __add__(self, other: Slack) -> Slack:
        return Slack(self.keys + other.keys, self.memory + other.memory)


ABSENT: Final = Readings(NONE, NONE, None)
"""Of a namespace that is certainly not there: no keys, no bytes, and of no keys no share."""


class ReportSide:
    """A report as something to ask."""

    def __init__(self, report: Report) -> None:
        coverage, columns = report.head.coverage, report.head.columns
        self.is_partial = coverage.kind is CoverageKind.PARTIAL
        self._lacks = {
            name for name in ("ttl", "memory") if name in columns and columns[name].state is not ColumnState.COMPLETE
        }
        self.unseen_keys = 0.0
        """As many may a namespace have that is not in the report; 0 where every key was seen."""
        if self.is_partial:
            self.unseen_keys = math.inf
        elif coverage.kind is CoverageKind.ESTIMATE:
            self.unseen_keys = wilson(0, coverage.keys).high * _most_keys(
                coverage.total_keys, report.summary.root.stats
            )

    def read(self, node: Node) -> Readings:
        """What it says of a namespace that it has."""
        stats = node.stats
        memory, share = stats.memory_bytes, stats.no_ttl_share
        lacking = self.is_partial or self._lacks_memory(stats)
        of_seen = self.is_partial or "ttl" in self._lacks
        return Readings(
            reading(stats.keys, at_least=self.is_partial),
            None if memory is None else reading(memory, at_least=lacking),
            None if share is None else share_reading(share, of_seen=of_seen),
        )

    def _lacks_memory(self, stats: Stats) -> bool:
        """Whether the sum leaves out keys."""
        if isinstance(stats.keys, Estimate):
            return "memory" in self._lacks
        return stats.memory_known_keys < stats.keys


@dataclass(frozen=True)
class ReportNamespace:
    """A namespace of either report, in one of them."""

    side: ReportSide
    node: Node | None
    """None where this report does not have it."""
    readings: Readings
    room: Slack = Slack()
    """What may belong here, or to what is below, in the words of the other report."""

    @cached_property
    def children(self) -> dict[Identity, Node]:
        """What this report has below."""
        below = () if self.node is None else self.node.children
        return {Identity(child.kind, child.name, child.separator): child for child in below}

    def below(self, name: Identity, apart: Collection[Identity]) -> ReportNamespace:
        """A namespace one level down; `apart` are those that the other report does not have."""
        child = self.children.get(name)
        room = self.room
        if is_collective(name):
            room = sum((_room_of(self.side.read(self.children[one])) for one in apart if one != name), room)
        if self._overflow is not None:
            room += _room_of(self.readings if name.kind is NodeKind.OTHER else self._overflow)
        found = self._absent(name) if child is None else self.side.read(child)
        return ReportNamespace(self.side, child, _with_room(found, room), room)

    @cached_property
    def _overflow(self) -> Readings | None:
        """What was beyond the budget here, and so may belong to any namespace beside it, or have come from there."""
        others = [child for name, child in self.children.items() if name.kind is NodeKind.OTHER]
        return self.side.read(others[0]) if others else None

    @cached_property
    def _many(self) -> Slack:
        """What stands here for many names."""
        return sum(
            (_room_of(self.side.read(child)) for child in self.children.values() if _is_pattern_of_many(child)), Slack()
        )

    def _absent(self, name: Identity) -> Readings:
        """What can be said of a namespace that this report does not have, though the other one has it."""
        if self.node is None:
            return self.readings
        hiding = [self._many]
        if is_collective(name):
            hiding.append(_room_of(self.readings))
        if self.side.unseen_keys:
            hiding.append(Slack(self.side.unseen_keys, math.inf))
        return _with_room(ABSENT, sum(hiding, Slack()))


def is_collective(node: Node | Identity) -> bool:
    """Whether it stands for names that another report may tell apart."""
    return node.kind is NodeKind.OTHER or _is_pattern_of_many(node)


def _is_pattern_of_many(node: Node | Identity) -> bool:
    return node.kind is NodeKind.PATTERN and node.name == MANY_NAMES


def _room_of(readings: Readings) -> Slack:
    return Slack(readings.keys.high, math.inf if readings.memory is None else readings.memory.high)


def _with_room(readings: Readings, room: Slack) -> Readings:
    """The same where so much more may belong to it."""
    if not room.keys:
        return readings
    keys, memory, share = readings.keys, readings.memory, readings.no_ttl
    return Readings(
        replace(keys, high=keys.high + room.keys),
        None if memory is None else replace(memory, high=memory.high + room.memory),
        None if share is None else replace(share, low=0.0, high=1.0),
    )


def _most_keys(total: object, root: Stats) -> float:
    """The most keys that the keyspace may have."""
    for figure in (total, root.keys):
        if isinstance(figure, Estimate):
            return figure.high
        if isinstance(figure, int | float):
            return float(figure)
    return math.inf
