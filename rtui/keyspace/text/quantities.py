"""Durations, sizes, counts and moments as people write them, in queries and in registries.

Every number is whole: milliseconds, bytes, elements, milliseconds since the epoch. `Bounds` are inclusive on both
sides, however they were written (`>10m`, `10m..1h`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from rtui.keyspace.text.display import display_text

LARGEST: Final = (1 << 63) - 1


class ValueSyntaxError(ValueError):
    """A value that can't be read; the message names the expected form, in safe text without a full stop."""

    def __init__(self, expected: str, *meant: str) -> None:
        super().__init__(expected)
        self.meant = meant
        """Values that may have been meant, as they would be typed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Whole numbers from `low` to `high`, both included; None for an open side."""

    low: int | None = None
    high: int | None = None

    def __contains__(self, value: int) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Syntax:
    """The notation of one quantity."""

    what: str
    """The name of the quantity with its article: `a duration`."""
    parse: Callable[[str], int]
    """Reads a number; raises ValueSyntaxError."""
    write: Callable[[int], str]
    """Writes a number so that `parse` reads the same number."""
    units: tuple[str, ...]
    is_continuous: bool
    """Whether a range excludes its second value, as on a scale; a range of counts includes it."""
    between: str = ".."
    most: int = LARGEST

    def bounds(self, text: str) -> Bounds:
        """Read `10m`, `10m..1h`, `10m..` or `..1h`. Raises ValueSyntaxError."""
        first, dots, last = text.partition("..")
        if not dots and self.between != ".." and self.between in text[1:]:
            first, dots, last = text.partition(self.between)
        if not dots:
            value = self.parse(text)
            return Bounds(value, value)
        if not first and not last:
            raise ValueSyntaxError(f"a range has {self.what} on one side at least")
        low = self.parse(first) if first else None
        high = self._end(first, last) if last else None
        if high is not None and self.is_continuous:
            high -= 1
        if low is not None and high is not None and low > high:
            raise ValueSyntaxError("the first value of a range is the smaller one", f"{last}{dots}{first}")
        return Bounds(low, high)

    def _end(self, first: str, last: str) -> int:
        """Read the second value of a range; for moments on one day, only the first needs a date."""
        if self.parse is parse_moment and "T" in first and "T" not in last and ":" in last:
            last = f"{first.partition('T')[0]}T{last}"
        return self.parse(last)

    def compared(self, operator: str, text: str) -> Bounds:
        """Read the value behind `<`, `<=`, `>` or `>=`. Raises ValueSyntaxError."""
        value = self.parse(text)
        match operator:
            case "<":
                return Bounds(None, value - 1)
            case "<=":
                return Bounds(None, value)
            case ">":
                return Bounds(value + 1, None)
            case _:
                return Bounds(value, None)

    def written(self, bounds: Bounds) -> str:
        """Write bounds as an item of a list: `10m..1h`, `10m..`, `5`."""
        low, high = bounds.low, bounds.high
        if low is not None and low == high and not self.is_continuous:
            return self.write(low)
        end = "" if high is None else self.write(high + self.is_continuous)
        start = "" if low is None else self.write(low)
        if low is not None and high is not None and self.parse is parse_moment and start[:11] == end[:11]:
            end = end[11:]
        between = self.between if low is not None and high is not None else ".."
        return f"{start}{between}{end}"

    def comparison(self, bounds: Bounds) -> str:
        """Write bounds with one open side as a comparison, in the shorter of two ways: `>10m`, `<=5`."""
        if bounds.high is None:
            ways = (">=", bounds.low or 0), (">", (bounds.low or 0) - 1)
        else:
            ways = ("<", bounds.high + 1), ("<=", bounds.high)
        texts = [f"{operator}{self.write(value)}" for operator, value in ways if value >= 0]
        return min(texts, key=_clutter)


def _clutter(text: str) -> tuple[int, int]:
    """Return the number of digits to read, without zeros, and the length of the text."""
    return sum(character.isalnum() and character != "0" for character in text), len(text)


_NUMBER: Final = r"[0-9](?:[0-9_]*[0-9])?"
_SCALED: Final = re.compile(rf"({_NUMBER}(?:\.[0-9]+)?)([A-Za-z]*)")
_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_BYTES: Final = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_COUNTS: Final = {"": 1, "k": 1000, "M": 1_000_000, "G": 1_000_000_000}


def parse_duration(text: str) -> int:
    """Return milliseconds: `10m`, `1h30m`, `90` (seconds)."""
    parts, end, total = [], 0, Fraction(0)
    while found := _SCALED.match(text, end):
        parts.append(found)
        end = found.end()
        unit = found[2].lower()
        if not unit and len(parts) == 1 and end == len(text):
            unit = "s"
        if unit not in _MS:
            wrong = display_text(found[2])
            raise ValueSyntaxError(
                f"“{wrong}” is no unit of time: there are ms, s, m, h, d, w and y",
                f"{found[1]}m" if len(parts) == 1 else "1h30m",
            )
        total += Fraction(found[1].replace("_", "")) * _MS[unit]
    if not parts or end != len(text):
        raise ValueSyntaxError("a duration is written as 30s, 10m, 1h30m or 7d", "10m")
    return _whole(total)


def write_duration(ms: int) -> str:
    """Write milliseconds: `1h30m`, `7d`, `0s`."""
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        whole, ms = divmod(ms, _MS[unit])
        text += f"{whole}{unit}" if whole else ""
    return text or "0s"


def parse_size(text: str) -> int:
    """Return bytes: `1M` and `1MiB` are 1,048,576."""
    found = _SCALED.fullmatch(text)
    unit = re.sub(r"(?<=[KMGT])I?B$", "", found[2].upper()) if found else ""
    if found is None or unit not in _BYTES:
        raise ValueSyntaxError("a size is written as 512, 64K, 1M or 2G", f"{found[1]}M" if found else "1M")
    return _whole(Fraction(found[1].replace("_", "")) * _BYTES[unit])


def write_size(value: int) -> str:
    """Write bytes in the largest unit that gives a whole number: `64K`, `1M`, `1000`."""
    unit = next((unit for unit in "TGMK" if value and value % _BYTES[unit] == 0), "")
    return f"{value // _BYTES[unit]}{unit}"


def parse_count(text: str) -> int:
    """Return a whole number: `10000`, `10_000`, `10k`."""
    found = _SCALED.fullmatch(text)
    unit = found[2] if found else ""
    unit = {"K": "k", "m": "M", "g": "G"}.get(unit, unit)
    if found is None or unit not in _COUNTS:
        raise ValueSyntaxError("a number is written as 500, 10000, 10k or 2M", f"{found[1]}k" if found else "1000")
    value = Fraction(found[1].replace("_", "")) * _COUNTS[unit]
    if value.denominator != 1:
        raise ValueSyntaxError("it is a whole number")
    return _whole(value)


def _whole(value: Fraction) -> int:
    if value > LARGEST:
        raise ValueSyntaxError("the number is too large")
    return round(value)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?)?Z?"
)


def parse_moment(text: str) -> int:
    """Return milliseconds since the epoch of a moment in UTC: `2026-11-22T21:31`, `2026-11-22`."""
    found = _MOMENT.fullmatch(text)
    try:
        if found is None:
            raise ValueSyntaxError("a moment is written as 2026-11-22 or 2026-11-22T21:31, in UTC", "2026-11-22T21:31")
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueSyntaxError:
        raise
    except ValueError:
        raise ValueSyntaxError("there is no such day or time") from None
    since = (moment - _EPOCH) // timedelta(milliseconds=1) + int((found[7] or "0").ljust(3, "0"))
    if since < 0:
        raise ValueSyntaxError("it is before 1970")
    return since


def write_moment(ms: int) -> str:
    """Write milliseconds since the epoch in UTC, without seconds and fractions that are zero."""
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        moment = datetime.max.replace(tzinfo=UTC)
    if ms % 60_000 == 0:
        return f"{moment:%Y-%m-%dT%H:%M}"
    text = f"{moment:%Y-%m-%dT%H:%M:%S}"
    return text if ms % 1000 == 0 else f"{text}.{ms % 1000:03}"


LAST_MOMENT: Final = parse_moment("9999-12-31T23:59")
"""The end of the calendar, in milliseconds since the epoch."""

DURATION: Final = Syntax("a duration", parse_duration, write_duration, ("s", "m", "h", "d"), is_continuous=True)
SIZE: Final = Syntax("a size", parse_size, write_size, ("K", "M", "G"), is_continuous=False)
COUNT: Final = Syntax("a number", parse_count, str, ("k", "M"), is_continuous=False)
COUNTER: Final = Syntax("a number from 0 to 255", parse_count, str, (), is_continuous=False, most=255)
MOMENT: Final = Syntax("a moment", parse_moment, write_moment, (), is_continuous=True, most=LAST_MOMENT)
