"""Figures as people read them: counts, bytes, durations, shares, with marks that say how far each can be trusted."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from rtui.keyspace.display import SafeText


class Mark(StrEnum):
    """How far a figure can be trusted; it is written before the figure."""

    EXACT = ""
    AT_LEAST = "≥ "
    ABOUT = "≈ "


NOTHING: Final = SafeText("–")
"""Stands where there is no value to show; never a zero."""

UNBOUNDED: Final = SafeText("∞")
"""Stands for the upper bound of a number that may be any amount more."""

_BYTE_UNITS: Final = ("B", "K", "M", "G", "T", "P", "E")
_COUNT_UNITS: Final = ("", "k", "M", "G", "T", "P", "E")
_PERCENT_STEPS: Final = 100

SHORT_FROM: Final = 1000
"""From here on an estimated count is rounded to two or three figures and a unit."""

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
YEAR_MS: Final = 365 * DAY_MS


def count(value: int, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a whole number with thousands marked: `≥ 286,423`."""
    return SafeText(f"{mark}{value:,}")


def keys(number: int, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a number of keys: `1 key`, `1,204 keys`."""
    return SafeText(f"{count(number, mark)} {'key' if number == 1 else 'keys'}")


def short_count(value: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a number in at most four figures and a unit: `1.2k`, `786k`, `1.00M`."""
    return SafeText(f"{mark}{_scaled(value, 1000, _COUNT_UNITS)}")


def size(value_bytes: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a size in binary units: `128 B`, `1.9K`, `4.0G`."""
    text = _scaled(value_bytes, 1024, _BYTE_UNITS)
    return SafeText(f"{mark}{text.replace('B', ' B')}")


def _scaled(value: float, step: int, units: tuple[str, ...]) -> str:
    """Scale by `step` until three figures are left of the point."""
    scaled = float(max(value, 0))
    unit = 0
    while scaled >= step - 0.5 and unit < len(units) - 1:
        scaled /= step
        unit += 1
    if unit == 0:
        return f"{scaled:.0f}{units[0]}"
    if scaled < 9.995:
        return f"{scaled:.1f}{units[unit]}" if step == 1024 else f"{scaled:.2g}{units[unit]}"
    return f"{scaled:.0f}{units[unit]}"


def share(fraction: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a share in whole percent: `29%`, `<1%`; an inexact one says so: `≈29%`."""
    percent = fraction * _PERCENT_STEPS
    if 0 < percent < 0.5:
        return SafeText("<1%")
    return SafeText(f"{mark.strip()}{percent:.0f}%")


def duration(ms: int) -> SafeText:
    """Return a span of time in its two largest units: `29m 59s`, `3h`, `12d 4h`, `420ms`."""
    if ms < 0:
        return SafeText("0s")
    if ms < SECOND_MS:
        return SafeText(f"{ms}ms")
    steps = ((YEAR_MS, "y"), (DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m"), (SECOND_MS, "s"))
    for index, (unit_ms, name) in enumerate(steps):
        whole, rest = divmod(ms, unit_ms)
        if whole:
            minor_ms, minor_name = steps[index + 1] if index + 1 < len(steps) else (1, "")
            minor = rest // minor_ms if minor_name else 0
            return SafeText(f"{whole:,}{name} {minor}{minor_name}" if minor else f"{whole:,}{name}")
    return SafeText("0s")


def seconds(value_s: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a span of seconds as `duration` does, nothing as `0s`."""
    return SafeText(f"{mark}{duration(int(value_s * SECOND_MS)) if value_s else '0s'}")


def short_duration(ms: int) -> SafeText:
    """Return a span of time in its largest unit, for a column: `29m`, `3h`, `12d`."""
    return SafeText(duration(ms).split(" ", 1)[0])


def ratio(value: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return how many times something is: `1.0×`, `12×`."""
    return SafeText(f"{mark}{value:.1f}×" if value < 9.95 else f"{mark}{value:,.0f}×")


def decimal(value: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a number whole, or below ten with one figure after the point if it has any: `2,501`, `0.4`."""
    text = f"{value:,.0f}" if abs(value) >= 9.95 or float(value).is_integer() else f"{value:,.1f}"
    return SafeText(f"{mark}{text}")


def moment(epoch_s: float) -> SafeText:
    """Return a moment in UTC to the second: `2026-09-21 14:13:20`."""
    try:
        return SafeText(f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%d %H:%M:%S}")
    except (ValueError, OverflowError, OSError):
        return SafeText("beyond the calendar")
