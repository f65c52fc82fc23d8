"""Figures as text: counts, bytes, durations, shares, with marks for lower bounds and estimates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import floor, isfinite
from typing import Final, TypeAlias

from rtui.analysis.estimates import Estimate
from rtui.keyspace.text.display import SafeText


class Mark(StrEnum):
    """Whether a figure is exact, a lower bound or an estimate; written before the figure."""

    EXACT = ""
    AT_LEAST = "≥ "
    ABOUT = "≈ "


NOTHING: Final = SafeText("–")
"""Shown where there is no value; never a zero."""

OTHER: Final = SafeText("(other)")
"""Shown for all namespaces beyond the budget of nodes together."""

UNBOUNDED: Final = SafeText("∞")
"""Shown as the upper bound of a number that has none."""

_BYTE_UNITS: Final = (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
_COUNT_UNITS: Final = ("", "k", "M", "G", "T", "P", "E")

SHORT_FROM: Final = 1000
"""From here on an estimated count is rounded to three figures and a unit."""

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
YEAR_MS: Final = 365 * DAY_MS


def count(value: int, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a whole number with separators of thousands: `≥ 286,423`."""
    return SafeText(f"{mark}{value:,}")


def slots(ranges: Sequence[tuple[int, int]], most: int = 3) -> str:
    """Return ranges of slots, the first `most` of them: `slots 0–5460, 9000 and 2 more ranges`."""
    named = [f"{first}" if first == last else f"{first}–{last}" for first, last in ranges[:most]]
    more = len(ranges) - len(named)
    rest = f" and {counted(more, 'more range')}" if more else ""
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'slot' if is_one else 'slots'} {', '.join(named)}{rest}"


def counted(number: int, singular: str, mark: Mark = Mark.EXACT, *, plural: str = "") -> SafeText:
    """Return a number with its noun: `1 key`, `1,204 keys`, `≥ 2 entries`; `plural` where it is irregular."""
    return SafeText(f"{count(number, mark)} {noun(number, singular, plural)}")


def noun(number: float | Estimate, singular: str, plural: str = "") -> str:
    """Return a noun as it follows a number: `key` after 1, else `keys`, `entries`, `matches`, or `plural`."""
    if number == 1:
        return singular
    if plural:
        return plural
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        return f"{singular[:-1]}ies"
    return f"{singular}es" if singular.endswith(("s", "x", "ch", "sh")) else f"{singular}s"


def fact_name(fact: str) -> str:
    return {"ttl": "TTL", "idle": "idle time", "frequency": "access frequency"}.get(fact, fact)


def keys(number: int, mark: Mark = Mark.EXACT) -> SafeText:
    return counted(number, "key", mark)


def short_count(value: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a number in three figures and a decimal unit: `999`, `1.20k`, `29.5k`, `786k`, `1.00M`.

    Below a thousand it is whole. A lower bound is rounded down. More than all units is `> 999E`.
    """
    return SafeText(f"{mark}{_three_figures(value, 1000, _COUNT_UNITS, is_least=mark is Mark.AT_LEAST)}")


def size(value_bytes: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a number of bytes in three figures and a binary unit: `999 B`, `0.98 KiB`, `29.5 KiB`, `1.00 GiB`.

    Below a thousand bytes it is whole. A lower bound is rounded down. More than all units is `> 999 EiB`.
    """
    return SafeText(f"{mark}{_three_figures(value_bytes, 1024, _BYTE_UNITS, is_least=mark is Mark.AT_LEAST)}")


NumberFormat: TypeAlias = Callable[[float, Mark], SafeText]
_NUMBER_AND_UNIT: Final = re.compile(r"([0-9.,]+)(\D*)")


def estimated(figure: Estimate, format_number: NumberFormat) -> SafeText:
    """Return an estimate with its 95 % interval: `≈ 3.35 MiB (3.04–11.0 MiB)`, `≈27% (20–54%)`.

    One whose bounds are equal is exact: `60.0k`.
    """
    if figure.low == figure.high:
        return format_number(figure.value, Mark.EXACT)
    value = format_number(figure.value, Mark.ABOUT)
    if _needs_decimal(figure, format_number):
        value = SafeText(f"{Mark.ABOUT.strip()}{figure.value:.1%}")  # as fine as its interval
    return SafeText(f"{value} ({interval(figure, format_number)})")


def interval(figure: Estimate, format_number: NumberFormat) -> SafeText:
    """Return a 95 % interval: `3.04–11.0 MiB`, `7.6–8.4%`; a single figure where both ends are formatted alike."""
    low = format_number(figure.low, Mark.EXACT)
    high = format_number(figure.high, Mark.EXACT) if isfinite(figure.high) else UNBOUNDED
    if _needs_decimal(figure, format_number):
        return SafeText(f"{figure.low:.1%}–{figure.high:.1%}".replace("%–", "–"))
    if low == high:
        return low
    first, last = _NUMBER_AND_UNIT.fullmatch(low), _NUMBER_AND_UNIT.fullmatch(high)
    if first is not None and last is not None and first[2] == last[2]:
        low = SafeText(first[1])
    return SafeText(f"{low}–{high}")


def _needs_decimal(figure: Estimate, format_number: NumberFormat) -> bool:
    """Whether this is a share whose bounds are the same whole percent, 1 % at least."""
    is_between = 0.005 <= figure.low <= figure.high < 0.9995
    return format_number is share and is_between and share(figure.low) == share(figure.high)


def written(figure: float | Estimate, format_number: NumberFormat, mark: Mark = Mark.EXACT) -> SafeText:
    return estimated(figure, format_number) if isinstance(figure, Estimate) else format_number(figure, mark)


def written_keys(figure: float | Estimate, mark: Mark = Mark.EXACT) -> SafeText:
    return estimated(figure, short_count) if isinstance(figure, Estimate) else count(round(figure), mark)


def power_of_two(value: int) -> SafeText:
    """Return a power of two as a bound on an axis, in whole binary steps: `512`, `1Ki`, `64Mi`."""
    for power in range(len(_BYTE_UNITS) - 1, 0, -1):
        if value >= 1 << 10 * power:
            return SafeText(f"{value >> 10 * power}{_BYTE_UNITS[power].strip().removesuffix('B')}")
    return SafeText(str(value))


def _three_figures(value: float, step: int, units: tuple[str, ...], *, is_least: bool) -> str:
    """Return a number in the first unit of which it rounds to less than a thousand; a negative one as 0.

    There are at most three digits: from 1,000 bytes on a size is in KiB, `0.98 KiB` rather than `1017 B`.
    """
    scaled: float = min(max(value, 0), 1e30)
    for number, unit in enumerate(units):
        for places in (2, 1, 0) if number else (0,):
            steps = 10**places
            text = f"{floor(scaled * steps) / steps if is_least else scaled:.{places}f}"
            if scaled < 1000 and len(text) <= len("0.00") and text != "1000":
                return f"{text}{unit}"
        scaled /= step
    return f"> 999{units[-1]}"


def share(fraction: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a share in whole percent: `29%`, estimated `≈29%`; `<1%` and `>99%` where it is not none and not all."""
    percent = fraction * 100
    if 0 < percent <= 0.5:
        return SafeText("<1%")
    if percent >= 99.5 and fraction < 1:
        return SafeText(">99%")
    return SafeText(f"{mark.strip()}{percent:.0f}%")


def duration(ms: int) -> SafeText:
    """Return a duration in its two largest units: `29m 59s`, `3h`, `12d 4h`, `420ms`."""
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
    """Return a number of seconds as `duration` does, none as `0s`, less than a millisecond as `420µs`."""
    if 0 < value_s < 1 / SECOND_MS:
        return SafeText(f"{mark}{value_s * 1e6:.0f}µs" if value_s >= 1e-6 else "<1µs")
    return SafeText(f"{mark}{duration(int(value_s * SECOND_MS)) if value_s else '0s'}")


def short_duration(ms: int) -> SafeText:
    """Return a duration in its largest unit, for a column: `29m`, `3h`, `12d`."""
    return SafeText(duration(ms).split(" ", 1)[0])


def rate(per_minute: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a rate: `≥ 41/s`, `51/min`, `6/h`, `2/d`, and `0/min` for none."""
    if per_minute >= 10 * 60:
        return SafeText(f"{short_count(per_minute / 60, mark)}/s")
    if per_minute >= 1 or not per_minute:
        return SafeText(f"{short_count(per_minute, mark)}/min")
    if per_minute * 60 >= 1:
        return SafeText(f"{short_count(per_minute * 60, mark)}/h")
    return SafeText(f"{short_count(max(1, per_minute * 60 * 24), mark)}/d")


def ratio(value: float, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a factor: `1.0×`, `12×`."""
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


@dataclass(frozen=True, slots=True)
class Known:
    """A figure and how far it can be trusted."""

    value: float
    mark: Mark = Mark.EXACT


@dataclass(frozen=True, slots=True)
class NamespaceFigures:
    """What is known of a namespace; None for what is not."""

    memory_bytes: Known | None = None
    share: Known | None = None
    """Of the bytes of all keys, 0 … 1."""
    mean_bytes: Known | None = None
    no_ttl: Known | None = None
    """Share of the keys that never expire."""
    idle: Known | None = None
    """Share of the keys that nobody used for 30 days."""
    pattern: bytes | None = None
    """The pattern whose mean the figures rest on, where they are not its own."""
    has_changed: bool = False
    """Whether the namespace has another number of keys now than the report counted in it."""


NOTHING_KNOWN: Final = NamespaceFigures()
