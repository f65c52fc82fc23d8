"""Numbers of two reports as intervals that hold the truth, so that reports of any kind can be compared.

1,000 keys in an exact report are the interval 1,000 … 1,000, in a partial one 1,000 … ∞, and in an estimate the 95 %
interval. A number has changed where the two intervals do not overlap; else the change cannot be told from none.

A namespace that only one report has is compared, too. Say that the first report has `user:<id>` and the second one only
`user:<*>`, since its names were too many to keep apart. The keys of the first may be among those of `<*>`, so the
second report's interval for `user:<id>` goes from 0 to the keys of `user:<*>`, and the interval of `<*>` is wider by
them. The same holds for nodes beyond the budget (other), for a partial report, where any namespace may have been
missed, and for an estimate, which misses small ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

from rtui.analysis.estimates import Estimate, as_estimate, wilson
from rtui.analysis.report.document import ColumnState, CoverageKind, Node, NodeKind, Report, Step
from rtui.analysis.report.members import Figure
from rtui.keyspace.text.identifiers import NUMBER, PLACEHOLDERS, Identifiers

Bound: TypeAlias = Fraction | float
"""An end of an interval: an exact number, or infinity."""

_SHARE_STEPS: Final = 10**9
"""Shares are compared in billionths, so that 0.30 less 0.25 is five points and not a little less."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval."""

    low: Bound
    high: Bound

    def in_percent(self) -> Interval:
        return Interval(100 * self.low, 100 * self.high)


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of one report: `low` … `high` holds the truth, for certain or with 95 %."""

    figure: Figure
    """As the report has it."""
    low: float
    high: float
    """Infinite where nothing bounds it, as in a partial report."""
    is_present: bool = True
    """False for a namespace that the report does not have; the interval then covers keys it may have missed."""
    is_of_seen: bool = False
    """Whether it is a share of some keys only, so that the share of all keys may be any."""

    @property
    def value(self) -> int | float:
        return as_estimate(self.figure).value

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


def reading(figure: Figure, *, at_least: bool = False) -> Reading:
    known = as_estimate(figure)
    return Reading(figure, float(known.low), math.inf if at_least else float(known.high))


def share_reading(figure: Figure, *, of_seen: bool = False) -> Reading:
    return Reading(figure, 0.0, 1.0, is_of_seen=True) if of_seen else reading(figure)


class Direction(StrEnum):
    """How a number has changed."""

    GREW = "grew"
    SHRANK = "shrank"
    SAME = "same"
    """Both are exact and equal."""
    UNCLEAR = "not distinguishable"
    """The intervals overlap."""
    UNKNOWN = "unknown"
    """A report does not have the number."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A number before and after; None where a report does not have it."""

    before: Reading | None
    after: Reading | None

    @property
    def direction(self) -> Direction:
        before, after = self.before, self.after
        if before is None or after is None:
            return Direction.UNKNOWN
        if after.low > before.high:
            return Direction.GREW
        if after.high < before.low:
            return Direction.SHRANK
        return Direction.SAME if before.is_exact and after.is_exact else Direction.UNCLEAR

    def difference(self) -> Interval | None:
        if self.before is None or self.after is None:
            return None
        return Interval(
            _exact(self.after.low) - _exact(self.before.high), _exact(self.after.high) - _exact(self.before.low)
        )

    def growth(self) -> Interval | None:
        """Return the difference as a share of before, infinite from 0; None where a report does not have the number."""
        if self.before is None or self.after is None:
            return None
        low = _growth(_exact(self.before.high), _exact(self.after.low))
        return Interval(low, max(low, _growth(_exact(self.before.low), _exact(self.after.high))))

    def points(self) -> Interval | None:
        if self.before is None or self.after is None:
            return None
        low = _share(self.after.low) - _share(self.before.high)
        return Interval(low, _share(self.after.high) - _share(self.before.low)).in_percent()

    def level(self, *, in_percent: bool) -> Interval | None:
        if self.after is None:
            return None
        if in_percent:
            return Interval(_share(self.after.low), _share(self.after.high)).in_percent()
        return Interval(_exact(self.after.low), _exact(self.after.high))


def _exact(number: float) -> Bound:
    return Fraction(number) if math.isfinite(number) else number


def _share(number: float) -> Fraction:
    return Fraction(round(number * _SHARE_STEPS), _SHARE_STEPS)


def _growth(before: Bound, after: Bound) -> Bound:
    """Return the growth from one number to another, both at least 0; 0 from 0 to 0."""
    if before == after:
        return Fraction(0)
    if before == 0 or after == math.inf:
        return math.inf
    if before == math.inf:
        return Fraction(-1)
    return after / before - 1


@dataclass(frozen=True, slots=True)
class Slack:
    """The most keys and bytes that may belong to a namespace though its report counts them elsewhere."""

    keys: float = 0.0
    memory: float = 0.0

    def __add__(self, other: Slack) -> Slack:
        return Slack(self.keys + other.keys, self.memory + other.memory)


@dataclass(frozen=True, slots=True)
class Readings:
    """The compared numbers of one namespace in one report; None where they are not known."""

    keys: Reading
    memory: Reading | None
    no_ttl: Reading | None

    def as_slack(self) -> Slack:
        return Slack(self.keys.high, math.inf if self.memory is None else self.memory.high)

    def with_slack(self, slack: Slack) -> Readings:
        if not slack.keys:
            return self
        keys, memory, share = self.keys, self.memory, self.no_ttl
        return Readings(
            replace(keys, high=keys.high + slack.keys),
            None if memory is None else replace(memory, high=memory.high + slack.memory),
            None if share is None else replace(share, low=0.0, high=1.0),
        )


_NONE: Final = Reading(0, 0.0, 0.0, is_present=False)
_ID: Final = b"<id>"
_FORM: Final = Identifiers().form
ABSENT: Final = Readings(_NONE, _NONE, None)
"""Readings of a namespace that is certainly not there: no keys, no bytes, and no share of them."""


class ReportSide:
    """A report, read namespace by namespace."""

    def __init__(self, report: Report) -> None:
        coverage, columns = report.head.coverage, report.head.columns
        self._is_partial = coverage.kind is CoverageKind.PARTIAL
        self._lacks = {
            name for name in ("ttl", "memory") if name in columns and columns[name].state is not ColumnState.COMPLETE
        }
        self.unseen_keys = math.inf if self._is_partial else 0.0
        """The most keys of a namespace that the report does not have; 0 where every key was seen."""
        if coverage.kind is CoverageKind.ESTIMATE:
            total = report.summary.root.stats.keys if coverage.total_keys is None else coverage.total_keys
            self.unseen_keys = wilson(0, coverage.keys).high * as_estimate(total).high

    def read(self, node: Node) -> Readings:
        stats = node.stats
        memory, share = stats.memory_bytes, stats.no_ttl_share
        if isinstance(stats.keys, Estimate):
            leaves_out_keys = "memory" in self._lacks
        else:
            leaves_out_keys = stats.memory_known_keys < stats.keys
        of_seen = self._is_partial or "ttl" in self._lacks
        return Readings(
            reading(stats.keys, at_least=self._is_partial),
            None if memory is None else reading(memory, at_least=self._is_partial or leaves_out_keys),
            None if share is None else share_reading(share, of_seen=of_seen),
        )


@dataclass(frozen=True)
class ReportNamespace:
    """A namespace that either report has, as one of them sees it."""

    side: ReportSide
    node: Node | None
    readings: Readings
    slack: Slack = Slack()
    """Keys and bytes of the other report's namespaces that may belong to this one, or to one below it."""

    @cached_property
    def children(self) -> dict[Step, Node]:
        below = () if self.node is None else self.node.children
        return {child.step: child for child in below}

    def below(self, name: Step, apart: Collection[Step], *, is_of_names: bool) -> ReportNamespace:
        """Return a namespace one level down; `apart` are the names that the other report does not have.

        `is_of_names` is whether it stands for names without a node of their own in either report.
        """
        child = self.children.get(name)
        slack = self.slack
        is_collective = name.kind is NodeKind.OTHER or is_of_names
        if is_collective or NUMBER in name.name:
            others = [one for one in apart if one != name and _may_be_in(one, name, is_of_names=is_of_names)]
            slack = sum((self.side.read(self.children[one]).as_slack() for one in others), slack)
        if self._overflow is not None:
            slack += (self.readings if name.kind is NodeKind.OTHER else self._overflow).as_slack()
        if child is not None:
            found = self.side.read(child)
        elif self.node is None:
            found = self.readings
        else:
            patterns = [
                child
                for step, child in self.children.items()
                if child.kind is NodeKind.PATTERN and _may_be_in(name, step, is_of_names=child.is_of_names)
            ]
            hiding = sum((self.side.read(child).as_slack() for child in patterns), Slack())
            if is_collective:
                hiding += self.readings.as_slack()
            if self.side.unseen_keys:
                hiding += Slack(self.side.unseen_keys, math.inf)
            found = ABSENT.with_slack(hiding)
        return ReportNamespace(self.side, child, found.with_slack(slack), slack)

    @cached_property
    def _overflow(self) -> Readings | None:
        """The keys beyond the budget of nodes here, which may belong to any sibling; None if there are none."""
        others = [child for name, child in self.children.items() if name.kind is NodeKind.OTHER]
        return self.side.read(others[0]) if others else None


Sides: TypeAlias = tuple[ReportNamespace, ReportNamespace]


def below(sides: Sides, name: Step, apart: tuple[Collection[Step], Collection[Step]]) -> Sides:
    """Return a namespace one level down; `apart` are the names that only the first, only the second report has."""
    is_of_names = any(name in side.children and side.children[name].is_of_names for side in sides)
    return (
        sides[0].below(name, apart[0], is_of_names=is_of_names),
        sides[1].below(name, apart[1], is_of_names=is_of_names),
    )


def _may_be_in(name: Step, pattern: Step, *, is_of_names: bool) -> bool:
    """Tell whether keys of a name in one report may be counted in a pattern beside it in the other.

    Which names are in the pattern for too many different ones (`is_of_names`) differs from report to report, and names
    that differ in their numbers only have a pattern once they are many.
    """
    if pattern.kind is NodeKind.OTHER:
        return True
    if name.kind is NodeKind.OTHER or name.separator != pattern.separator:
        return False
    if is_of_names:
        return name.kind is NodeKind.LITERAL or name.name == _ID or name.name not in PLACEHOLDERS
    return name.kind is NodeKind.LITERAL and NUMBER in pattern.name and _FORM(name.name).numbered == pattern.name
