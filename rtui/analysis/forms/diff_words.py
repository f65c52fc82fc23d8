"""The words of a comparison: one number before and after, and how it changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from rtui.analysis import words
from rtui.analysis.change import Bound, Change, Interval, Reading, Verdict
from rtui.analysis.estimate import Estimate
from rtui.analysis.report import ColumnState, CoverageKind, Head
from rtui.analysis.words import Mark
from rtui.keyspace.display import SafeText

ARROW: Final = " → "

Speller: TypeAlias = Callable[[float, Mark], SafeText]
"""Writes a number in its unit with the mark that says how far it can be trusted."""

LEAST_PERCENT: Final = 0.05
"""Less than this would be written as nothing."""


def count(value: float, mark: Mark) -> SafeText:
    """A number of keys."""
    return words.short_count(value, mark) if mark is Mark.ABOUT else words.count(round(value), mark)


def head_text(head: Head) -> str:
    """When, where, and what the numbers rest on."""
    server, coverage = head.server, head.coverage
    keys = words.keys(coverage.keys)
    rests_on = {CoverageKind.EXACT: f"{keys}, exact", CoverageKind.PARTIAL: f"≥ {keys}, partial"}
    parts = (
        f"{words.moment(head.made_at_s)} UTC",
        server.label,
        f"{server.product} {server.version}".strip(),
        f"db{server.db}",
        rests_on.get(coverage.kind, f"estimate from {keys}"),
    )
    return " · ".join(part for part in parts if part)


def both_text(change: Change, spell: Speller, states: tuple[ColumnState | None, ColumnState | None]) -> str:
    """A number before and after: `1,000 → 1,200`; once where it is the same. `states` are those of its columns."""
    before, after = (
        _reading_text(one, spell, state) for one, state in zip((change.before, change.after), states, strict=True)
    )
    return before if before == after else before + ARROW + after


def _reading_text(found: Reading | None, spell: Speller, state: ColumnState | None) -> str:
    if found is None:
        return "denied" if state is ColumnState.DENIED else words.NOTHING
    if not found.is_present and not found.is_exact:
        return "?" if found.high == math.inf else f"≤ {spell(found.high, Mark.EXACT)}"
    value = found.value
    if found.is_estimate:
        return words.estimated(Estimate(found.low, value, found.high), spell)
    if found.high == math.inf:
        return spell(value, Mark.AT_LEAST)
    return spell(value, Mark.EXACT) + (" of those seen" if found.is_of_seen else "")


def growth_text(change: Change) -> str:
    """How much it grew or shrank, in percent of what it was."""
    growth = change.growth()
    return _change_text(change, growth and Interval(100 * growth.low, 100 * growth.high), "%")


def points_text(change: Change) -> str:
    """How a share changed, in percentage points."""
    return _change_text(change, change.points(), " pt")


def _change_text(change: Change, found: Interval | None, unit: str) -> str:
    plain = {Verdict.UNKNOWN: words.NOTHING, Verdict.SAME: "=", Verdict.UNCLEAR: Verdict.UNCLEAR.value}
    if found is None or change.verdict in plain:
        return plain.get(change.verdict, words.NOTHING)
    if found.low == math.inf:
        return "from nothing"
    low, high = _signed(found.low), _signed(found.high)
    if found.high == math.inf:
        return f"{Mark.AT_LEAST}{low}{unit}"
    if found.low == found.high:
        return f"{low}{unit}"
    return f"{Mark.ABOUT}{low}{unit}" if low == high else f"{Mark.ABOUT}{low} … {high}{unit}"


def _signed(bound: Bound) -> str:
    number = float(bound)
    if number == math.inf:
        return "∞"
    if 0 < abs(number) < LEAST_PERCENT:
        return "+<0.1" if number > 0 else "-<0.1"
    return f"{number:+,.1f}" if abs(number) < 10 else f"{number:+,.0f}"
