"""What becomes of a threshold: reached, not reached, or not to be judged by what the reports know."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from rtui.analysis.change import Bound, Change, Interval
from rtui.analysis.diff import Diff, NamespaceChange
from rtui.analysis.fail_on import FailOn, Measure, Unit
from rtui.analysis.report import CoverageKind, Head, NodeKind
from rtui.keyspace.display import SafeText, display_text


class Outcome(StrEnum):
    """What an expression comes to."""

    REACHED = "reached"
    NOT_REACHED = "not reached"
    UNKNOWN = "can't be judged"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one threshold."""

    expression: SafeText
    outcome: Outcome
    why: str
    """A safe sentence without a full stop."""


_COMPARISONS: Final[dict[str, Callable[[Bound, Bound], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def judge(threshold: FailOn, diff: Diff, depth: int | None = None) -> Judgement:
    """Say whether a threshold is reached. Pure.

    What is not known, and what lies within an interval, is neither reached nor passed. `depth` bounds how far down
    namespaces are counted that came or went.
    """
    expression = display_text(str(threshold))
    change = diff.root if threshold.namespace is None else diff.find(threshold.namespace)
    if change is None:
        deeper = "" if diff.levels is None else f" in the levels that both have ({diff.levels})"
        return Judgement(expression, Outcome.UNKNOWN, f"neither report has a namespace of this name{deeper}")
    if threshold.measure in {Measure.NEW, Measure.GONE}:
        found, doubt = _counted(threshold.measure, change, diff, depth)
        words = f"{_bounds(found)} {threshold.measure.removesuffix('-namespaces')}"
    else:
        found, doubt = _measured(threshold, change, diff)
        words = _bounds(found, _suffix(threshold, found)) if found else ""
    if found is None:
        return Judgement(expression, Outcome.UNKNOWN, doubt)
    holds = _COMPARISONS[threshold.comparison]
    at_ends = {holds(found.low, threshold.number), holds(found.high, threshold.number)}
    if len(at_ends) == 2:
        return Judgement(expression, Outcome.UNKNOWN, f"it is {words}; {doubt}")
    outcome = Outcome.REACHED if at_ends == {True} else Outcome.NOT_REACHED
    return Judgement(expression, outcome, f"it is {words}")


def _measured(threshold: FailOn, change: NamespaceChange, diff: Diff) -> tuple[Interval | None, str]:
    """The interval to compare, and why it may not suffice."""
    numbers: Change = {
        Measure.KEYS: change.keys,
        Measure.MEMORY: change.memory,
        Measure.NO_TTL: change.no_ttl,
    }[threshold.measure]
    found = _interval(threshold, numbers)
    if found is not None:
        return found, _doubt(diff.before, diff.after)
    lacking = [(name, head) for name, head, one in _sides(diff, numbers) if one is None]
    name, head = lacking[-1]
    if change.path and _is_missing(change, name):
        return None, f"the {name} report has no such namespace"
    column = head.columns.get("ttl" if threshold.measure is Measure.NO_TTL else threshold.measure.value)
    reason = f" ({column.state}{': ' if column.reason else ''}{display_text(column.reason)})" if column else ""
    return None, f"the {name} report does not know it{reason}"


def _sides(diff: Diff, numbers: Change) -> tuple[tuple[str, Head, object], ...]:
    return ("first", diff.before, numbers.before), ("second", diff.after, numbers.after)


def _is_missing(change: NamespaceChange, name: str) -> bool:
    keys = change.keys.before if name == "first" else change.keys.after
    return keys is not None and not keys.is_present


def _interval(threshold: FailOn, numbers: Change) -> Interval | None:
    if threshold.unit is Unit.POINTS:
        return numbers.points()
    if not threshold.is_change:
        return numbers.level_percent() if threshold.unit is Unit.PERCENT else numbers.level()
    if threshold.unit is Unit.PERCENT:
        growth = numbers.growth()
        return None if growth is None else Interval(100 * growth.low, 100 * growth.high)
    return numbers.difference()


def _counted(measure: Measure, change: NamespaceChange, diff: Diff, depth: int | None) -> tuple[Interval | None, str]:
    """How many namespaces came or went below one, those within a new one not counted; and why it may not suffice."""
    if diff.levels == 0:
        return None, "the reports split names at different separators"
    is_new = measure is Measure.NEW
    below = [one for one in change.outlined(depth) if one.path and one is not change]
    verdicts = [one.is_new if is_new else one.is_gone for one in below]
    sure, maybe = verdicts.count(True), verdicts.count(None)
    head = diff.after if is_new else diff.before
    unseen = head.coverage.kind is not CoverageKind.EXACT or any(one.path[-1].kind is NodeKind.OTHER for one in below)
    return Interval(Fraction(sure), math.inf if unseen else Fraction(sure + maybe)), "more may have been missed"


def _doubt(before: Head, after: Head) -> str:
    kinds = {before.coverage.kind, after.coverage.kind}
    if CoverageKind.PARTIAL in kinds:
        return "a report is partial"
    if CoverageKind.ESTIMATE in kinds:
        return "the estimate is not close enough"
    return "a report does not know it of all keys"


def _suffix(threshold: FailOn, found: Interval) -> str:
    if threshold.unit is Unit.PLAIN:
        noun = "byte" if threshold.measure is Measure.MEMORY else "key"
        return f" {noun}" if abs(found.low) == abs(found.high) == 1 else f" {noun}s"
    return threshold.unit.value if threshold.unit is Unit.PERCENT else " pt"


def _bounds(found: Interval | None, suffix: str = "") -> str:
    """An interval in words: `+25%`, `between -3% and +28%`, `at least 12`."""
    if found is None:
        return ""
    if found.low == math.inf:
        return "something where nothing was"
    low, high = _number(found.low), _number(found.high)
    if found.low == found.high:
        return f"{low}{suffix}"
    if found.high == math.inf:
        return f"at least {low}{suffix}"
    if found.low == -math.inf:
        return f"at most {high}{suffix}"
    return f"between {low}{suffix} and {high}{suffix}"


def _number(bound: Bound) -> str:
    number = float(bound)
    return f"{number:,.6g}" if abs(number) < 1e6 else f"{number:,.0f}"
