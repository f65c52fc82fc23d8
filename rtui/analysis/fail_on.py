"""Thresholds on a comparison as they are written: `memory>+20%`, `shop:session keys>+10000`, `new-namespaces>0`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Final

from rtui.keyspace.display import display_text


class Measure(StrEnum):
    """What is compared."""

    KEYS = "keys"
    MEMORY = "memory"
    NO_TTL = "no-ttl"
    NEW = "new-namespaces"
    GONE = "gone-namespaces"


class Unit(StrEnum):
    """What the number counts."""

    PLAIN = ""
    PERCENT = "%"
    POINTS = "pt"


class FailOnError(ValueError):
    """An expression that can't be understood; the text is a safe sentence."""


@dataclass(frozen=True, slots=True)
class FailOn:
    """One threshold."""

    namespace: str | None
    """None for the whole keyspace."""
    measure: Measure
    comparison: str
    number: Fraction
    unit: Unit = Unit.PLAIN
    is_change: bool = True
    """Whether it is about the change, else about what is there after."""
    written: str = field(default="", compare=False)
    """As the user wrote it, where a user did."""

    def __str__(self) -> str:
        if self.written:
            return self.written
        where = "" if self.namespace is None else f"{self.namespace} "
        sign = ("-" if self.number < 0 else "+") if self.is_change else ""
        return f"{where}{self.measure}{self.comparison}{sign}{_decimal(abs(self.number))}{self.unit}"


_EXPRESSION: Final = re.compile(
    r"\s*(?:(?P<namespace>\S(?:.*\S)?)\s+)?(?P<measure>[a-z][a-z-]*)\s*(?P<comparison>[<>]=?)"
    r"\s*(?P<sign>[+-]?)(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?P<unit>%|pt|[KkMGT](?:i?B)?|B)?\s*",
    re.DOTALL,
)
_SCALES: Final = {
    Measure.KEYS: {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    Measure.MEMORY: {"B": 1, "K": 1 << 10, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40},
}

_WHICH_UNIT: Final = (
    "memory needs a unit: write 'memory{0}{1}{2}MiB' (or B, KiB, GiB, TiB) for a size, "
    "or 'memory{0}{3}{2}%' with a sign for a change in percent"
)


def parse_fail_on(text: str) -> FailOn:
    """Read `[NAMESPACE] MEASURE COMPARISON NUMBER[UNIT]`. Raises FailOnError, which says what is wrong.

    A number with a sign is about the change, one without about what is there after. Units are `%` (of what it was, or
    as a share), `pt` (percentage points, for a change of no-ttl), `k M G T` for keys. Memory must have one: `B`, or
    `KiB MiB GiB TiB` (`K`, `KB` and so on mean the same, 1,024 bytes and its powers).
    """
    found = _EXPRESSION.fullmatch(text)
    if found is None:
        raise FailOnError("write it like 'memory>+20%', 'shop:session keys>+10000' or 'no-ttl>+5pt'")
    if found["measure"] not in list(Measure):
        raise FailOnError(f"{display_text(found['measure'], limit=40)} is none of {', '.join(Measure)}")
    measure = Measure(found["measure"])
    number, is_change = Fraction(found["number"]), bool(found["sign"])
    unit = found["unit"] or ""
    if unit in list(Unit):
        kind = Unit(unit)
    else:
        kind, number = Unit.PLAIN, number * _scale(measure, unit)
    _check(measure, kind, is_change=is_change)
    signed = -number if found["sign"] == "-" else number
    if measure is Measure.MEMORY and not unit and number:
        raise FailOnError(_WHICH_UNIT.format(found["comparison"], found["sign"], found["number"], found["sign"] or "+"))
    return FailOn(found["namespace"], measure, found["comparison"], signed, kind, is_change, text.strip())


def _scale(measure: Measure, unit: str) -> int:
    scale = _SCALES.get(measure, {}).get(unit[0])
    if scale is None or (len(unit) > 1 and measure is not Measure.MEMORY):
        raise FailOnError(f"{measure} has no unit {unit}")
    return scale


def _check(measure: Measure, unit: Unit, *, is_change: bool) -> None:
    """Refuse what means nothing or two things."""
    if measure in {Measure.NEW, Measure.GONE}:
        if is_change or unit is not Unit.PLAIN:
            raise FailOnError(f"{measure} is a number without sign and unit, as in '{measure}>0'")
    elif measure is Measure.NO_TTL:
        if is_change and unit is not Unit.POINTS:
            raise FailOnError("a change of no-ttl is in percentage points, as in 'no-ttl>+5pt'")
        if not is_change and unit is not Unit.PERCENT:
            raise FailOnError("no-ttl is a share, as in 'no-ttl>50%'")
    elif unit is Unit.POINTS:
        raise FailOnError(f"{measure} is no share: write %, or a number")
    elif unit is Unit.PERCENT and not is_change:
        raise FailOnError(f"a change in percent has a sign, as in '{measure}>+20%'")


def _decimal(number: Fraction) -> str:
    """A number with at most nine decimals as it is written."""
    text = f"{number.numerator * 10**9 // number.denominator:010d}"
    return f"{text[:-9]}.{text[-9:]}".rstrip("0").rstrip(".")
