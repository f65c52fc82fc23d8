"""How the change of a figure is written: in words, and as JSON.

In JSON `null` is not known, and in `high` that nothing bounds it.
"""

from __future__ import annotations

import math
from typing import Any

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import ColumnState
from rtui.analysis.report.readings import Bound, Direction, FigureChange, Interval, Reading
from rtui.keyspace.text.display import SafeText


def count_text(value: float, mark: Mark) -> SafeText:
    """Return a number of keys."""
    return humanize.short_count(value, mark) if mark is Mark.ABOUT else humanize.count(round(value), mark)


def both_text(
    change: FigureChange, spell: humanize.NumberFormat, states: tuple[ColumnState | None, ColumnState | None]
) -> str:
    """Return a number before and after, `1,000 → 1,200`, once where both are the same; `states` are of its columns."""
    before, after = _reading_text(change.before, spell, states[0]), _reading_text(change.after, spell, states[1])
    return before if before == after else f"{before} → {after}"


def _reading_text(found: Reading | None, spell: humanize.NumberFormat, state: ColumnState | None) -> str:
    if found is None:
        return "denied" if state is ColumnState.DENIED else humanize.NOTHING
    if not found.is_present and not found.is_exact:
        return "?" if found.high == math.inf else f"≤ {spell(found.high, Mark.EXACT)}"
    value = found.value
    if isinstance(found.figure, Estimate):
        return humanize.estimated(Estimate(found.low, value, found.high), spell)
    if found.high == math.inf:
        return spell(value, Mark.AT_LEAST)
    return spell(value, Mark.EXACT) + (" of those seen" if found.is_of_seen else "")


def growth_text(change: FigureChange) -> str:
    """Return the growth in percent."""
    growth = change.growth()
    return _change_text(change, growth and growth.in_percent(), "%")


def points_text(change: FigureChange) -> str:
    """Return the change of a share in percentage points."""
    return _change_text(change, change.points(), " pt")


def _change_text(change: FigureChange, found: Interval | None, unit: str) -> str:
    plain = {Direction.UNKNOWN: humanize.NOTHING, Direction.SAME: "=", Direction.UNCLEAR: Direction.UNCLEAR.value}
    if found is None or change.direction in plain:
        return plain.get(change.direction, humanize.NOTHING)
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
    if 0 < abs(number) < 0.05:  # it would be rounded to 0
        return "+<0.1" if number > 0 else "-<0.1"
    return f"{number:+,.1f}" if abs(number) < 10 else f"{number:+,.0f}"


def change_record(change: FigureChange) -> dict[str, Any]:
    """Return a change as JSON has it: its verdict, both figures, and how far they are apart."""
    return {
        "verdict": change.direction.value,
        "before": _reading(change.before),
        "after": _reading(change.after),
        "difference": _interval(change.difference()),
        "growth": _interval(change.growth()),
    }


def _reading(found: Reading | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"value": found.value, "low": _bound(found.low), "high": _bound(found.high), "is_present": found.is_present}


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else {"low": _bound(found.low), "high": _bound(found.high)}


def _bound(bound: Bound) -> int | float | None:
    """A JSON number, whole where it is; infinity has none."""
    number = float(bound)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
