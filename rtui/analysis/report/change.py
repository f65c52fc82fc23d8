"""One number in two reports as intervals that hold the truth, so that reports of any kind can be compared.

1,000 keys in an exact report are the interval 1,000 … 1,000, in a partial one 1,000 … ∞, and in an estimate the 95 %
interval. A number has changed where the two intervals do not overlap; else the change cannot be told from none.
"""

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
    """A closed interval."""

    low: Bound
    high: Bound


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of one report: `low` … `high` holds the truth, for certain or with 95 %."""

    figure: Figure
    """As the report has it."""
    low: float
    high: float
    """Infinite where nothing bounds it, as in a partial report."""
    is_present: bool = True
    """False for a namespace that the report does not have; the interval then is what may have been missed."""
    is_of_seen: bool = False
    """Whether it is a share of some keys only, so that the share of all keys may be any."""

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
"""The reading of a namespace that is certainly not there."""


def reading(figure: Figure, *, at_least: bool = False) -> Reading:
    """Return the reading of a count or a sum; with `at_least` there may be more."""
    low, high = (figure.low, figure.high) if isinstance(figure, Estimate) else (float(figure), float(figure))
    return Reading(figure, low, math.inf if at_least else high)


def share_reading(figure: Figure, *, of_seen: bool = False) -> Reading:
    """Return the reading of a share; with `of_seen` it is of some keys only."""
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
class Change:
    """A number before and after; None where a report does not have it."""

    before: Reading | None
    after: Reading | None

    @property
    def direction(self) -> Direction:
        """The direction of the change; a change only where the intervals do not overlap."""
        before, after = self.before, self.after
        if before is None or after is None:
            return Direction.UNKNOWN
        if after.low > before.high:
            return Direction.GREW
        if after.high < before.low:
            return Direction.SHRANK
        return Direction.SAME if before.is_exact and after.is_exact else Direction.UNCLEAR

    def difference(self) -> Interval | None:
        """Return after minus before; None where a report does not have the number."""
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
        """Return the difference of two shares in percentage points."""
        if self.before is None or self.after is None:
            return None
        return Interval(
            100 * (_share(self.after.low) - _share(self.before.high)),
            100 * (_share(self.after.high) - _share(self.before.low)),
        )

    def level(self) -> Interval | None:
        """Return the number after."""
        return None if self.after is None else Interval(_exact(self.after.low), _exact(self.after.high))

    def level_percent(self) -> Interval | None:
        """Return the share after, in percent."""
        return None if self.after is None else Interval(100 * _share(self.after.low), 100 * _share(self.after.high))


def _exact(number: float) -> Bound:
    return Fraction(number) if math.isfinite(number) else number


def _share(number: float) -> Fraction:
    return Fraction(round(number * _SHARE_STEPS), _SHARE_STEPS)


def _growth(before: Bound, after: Bound) -> Bound:
    """Return the growth from one number to another, both at least 0; from 0 to 0 there is none."""
    if before == after:
        return Fraction(0)
    if before == 0 or after == math.inf:
        return math.inf
    if before == math.inf:
        return Fraction(-1)
    return after / before - 1
