"""What a report says of one number, as the interval in which the truth lies: so reports of any kind compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypeAlias

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.members import Figure

Bound: TypeAlias = Fraction | float
"""An end of an interval: an exact number, or infinity."""

_SHARE_STEPS: Final = 10**9
"""Shares are compared in billionths, so that 0.30 less 0.25 is five points and not a little less."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both within it."""

    low: Bound
    high: Bound


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of one report: `low` … `high` holds the truth, for certain or with 95 %."""

    figure: Figure
    """As the report has it."""
    low: float
    high: float
    """Infinity where nothing bounds it, as in a report that was broken off."""
    is_present: bool = True
    """False for a namespace that the report does not have: then it is what may have been missed."""
    is_of_seen: bool = False
    """Whether it is a share of some keys only, which says nothing of all."""

    @property
    def value(self) -> int | float:
        """The figure as one number."""
        return self.figure.value if isinstance(self.figure, Estimate) else self.figure

    @property
    def is_exact(self) -> bool:
        """Whether it is this very number."""
        return self.low == self.high

    @property
    def is_estimate(self) -> bool:
        """Whether it comes from a sample."""
        return isinstance(self.figure, Estimate)


NONE: Final = Reading(0, 0.0, 0.0, is_present=False)
"""Of a namespace that is not there, for certain."""


def reading(figure: Figure, *, at_least: bool = False) -> Reading:
    """A count or a sum; `at_least` says that there may be more than that."""
    low, high = (figure.low, figure.high) if isinstance(figure, Estimate) else (float(figure), float(figure))
    return Reading(figure, low, math.inf if at_least else high)


def share_reading(figure: Figure, *, of_seen: bool = False) -> Reading:
    """A share; `of_seen` says that it holds of some keys only and of all it may be any."""
    return Reading(figure, 0.0, 1.0, is_of_seen=True) if of_seen else reading(figure)


class Direction(StrEnum):
    """What two readings of one number say together."""

    GREW = "grew"
    SHRANK = "shrank"
    SAME = "same"
    """Both are exact and equal."""
    UNCLEAR = "not distinguishable"
    """The intervals overlap."""
    UNKNOWN = "unknown"
    """One of the reports does not have it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One number before and after; None where a report does not have it."""

    before: Reading | None
    after: Reading | None

    @property
    def direction(self) -> Direction:
        """A change only where the intervals do not overlap."""
        before, after = self.before, self.after
        if before is None or after is None:
            return Direction.UNKNOWN
        if after.low > before.high:
            return Direction.GREW
        if after.high < before.low:
            return Direction.SHRANK
        return Direction.SAME if before.is_exact and after.is_exact else Direction.UNCLEAR

    def difference(self) -> Interval | None:
        """How much more it is after than before; None when a report does not have it."""
        if self.before is None or self.after is None:
            return None
        return Interval(
            _exact(self.after.low) - _exact(self.before.high), _exact(self.after.high) - _exact(self.before.low)
        )

    def growth(self) -> Interval | None:
        """By what share of what it was it is more; infinite from nothing to something. None as for the difference."""
        if self.before is None or self.after is None:
            return None
        low = _growth(_exact(self.before.high), _exact(self.after.low))
        return Interval(low, max(low, _growth(_exact(self.before.low), _exact(self.after.high))))

    def points(self) -> Interval | None:
        """The difference of two shares in percentage points."""
        if self.before is None or self.after is None:
            return None
        return Interval(
            100 * (_share(self.after.low) - _share(self.before.high)),
            100 * (_share(self.after.high) - _share(self.before.low)),
        )

    def level(self) -> Interval | None:
        """What it is after, whatever it was before."""
        return None if self.after is None else Interval(_exact(self.after.low), _exact(self.after.high))

    def level_percent(self) -> Interval | None:
        """The share that it is after, in percent."""
        return None if self.after is None else Interval(100 * _share(self.after.low), 100 * _share(self.after.high))


def _exact(number: float) -> Bound:
    return Fraction(number) if math.isfinite(number) else number


def _share(number: float) -> Fraction:
    return Fraction(round(number * _SHARE_STEPS), _SHARE_STEPS)


def _growth(before: Bound, after: Bound) -> Bound:
    """Growth from one number to another, both at least 0; nothing of nothing is no growth."""
    if before == after:
        return Fraction(0)
    if before == 0 or after == math.inf:
        return math.inf
    if before == math.inf:
        return Fraction(-1)
    return after / before - 1
