"""Thresholds: of a comparison (`memory>+20%`, `shop:session keys>+10000`), and the sizes from which keys are big.

Which keys are big is said by presets, named after the vendors and tools that publish them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Final

from rtui.analysis.report.comparison import Comparison, NamespaceChange
from rtui.analysis.report.document import CoverageKind, NodeKind
from rtui.analysis.report.readings import Bound, FigureChange, Interval
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.types import HASH, LIST, SET, STRING

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The sizes above which a key of one type is big; None where a measure does not count."""

    length: int | None = None
    """Bytes of a string, else the number of elements."""
    memory_bytes: int | None = None

    def exceeded(self, memory_bytes: int | None, length: int | None) -> bool:
        return (self.length is not None and length is not None and length > self.length) or (
            self.memory_bytes is not None and memory_bytes is not None and memory_bytes > self.memory_bytes
        )


@dataclass(frozen=True, slots=True)
class Preset:
    """Thresholds of one origin."""

    name: str
    title: str
    source: str
    string_bytes: int
    elements: int | None = None
    """Of every type but strings and those in `by_type`."""
    memory_bytes: int | None = None
    """Of every type but strings."""
    by_type: dict[bytes, int | None] = field(default_factory=dict)
    """Elements of the types that have a number of their own; None where it does not count."""

    def limits(self, key_type: bytes | None) -> SizeLimits:
        if key_type == STRING.name:
            return SizeLimits(length=self.string_bytes)
        if key_type is None:
            return SizeLimits(memory_bytes=self.memory_bytes or self.string_bytes)
        return SizeLimits(length=self.by_type.get(key_type, self.elements), memory_bytes=self.memory_bytes)

    def is_big(self, key_type: bytes | None, memory_bytes: int | None, length: int | None) -> bool:
        """A string of unknown length is judged by its memory, which exceeds its length by some tens of bytes."""
        if key_type == STRING.name and length is None:
            length = memory_bytes
        return self.limits(key_type).exceeded(memory_bytes, length)


DEFAULT_PRESET: Final = "rtui"

_PRESETS: Final = (
    Preset(
        name=DEFAULT_PRESET,
        title="strings over 128 KiB, others over 10,000 elements or 1 MiB",
        source="rtui: reading or deleting more than this at once takes about a millisecond, of the server or of a "
        "gigabit link",
        string_bytes=128 * KIB,
        elements=10_000,
        memory_bytes=MIB,
    ),
    Preset(
        name="alibaba",
        title="strings over 5 MB, others over 10,000 elements or 100 MB",
        source="Alibaba Cloud Tair and Redis: Identify and handle large keys and hotkeys",
        string_bytes=5 * MIB,
        elements=10_000,
        memory_bytes=100 * MIB,
    ),
    Preset(
        name="alibaba-realtime",
        title="strings over 5 MB, others over 2,000 elements",
        source="Alibaba Cloud Tair and Redis: Real-time key statistics (bigkey-threshold); strings as in its guide to "
        "large keys",
        string_bytes=5 * MIB,
        elements=2_000,
    ),
    Preset(
        name="tencent",
        title="strings over 10 MB, others over 10,000 elements or 1,000 MB",
        source="Tencent Cloud Distributed Cache (TencentDB for Redis): Hot Key and Big Key",
        string_bytes=10 * MIB,
        elements=10_000,
        memory_bytes=1_000 * MIB,
    ),
    Preset(
        name="huawei",
        title="strings over 10 KB, others over 5,000 elements or 50 MB",
        source="Huawei Cloud Distributed Cache Service: What Are Big Keys and Hot Keys?",
        string_bytes=10 * KIB,
        elements=5_000,
        memory_bytes=50 * MIB,
    ),
    Preset(
        name="redisinsight",
        title="strings over 100,000 bytes, hashes over 5,000 fields, lists and sets over 1,000 elements",
        source="Redis Insight: thresholds of its recommendations",
        string_bytes=100_000,
        by_type={HASH.name: 5_000, LIST.name: 1_000, SET.name: 1_000},
    ),
)


def preset_names() -> tuple[str, ...]:
    return tuple(one.name for one in _PRESETS)


def preset(name: str) -> Preset:
    for one in _PRESETS:
        if one.name == name:
            return one
    raise KeyError(f"there is no preset {name!r}; there are {', '.join(preset_names())}")


class ThresholdMeasure(StrEnum):
    """The measure that is compared."""

    KEYS = "keys"
    MEMORY = "memory"
    NO_TTL = "no-ttl"
    NEW = "new-namespaces"
    GONE = "gone-namespaces"
    NEW_FINDINGS = "new-findings"
    NEW_ERRORS = "new-errors"
    GROWN_FINDINGS = "grown-findings"
    GONE_FINDINGS = "gone-findings"


NAMESPACES: Final = frozenset({ThresholdMeasure.NEW, ThresholdMeasure.GONE})

FINDINGS: Final = frozenset({
    ThresholdMeasure.NEW_FINDINGS, ThresholdMeasure.NEW_ERRORS, ThresholdMeasure.GROWN_FINDINGS,
    ThresholdMeasure.GONE_FINDINGS,
})  # fmt: skip


class ThresholdUnit(StrEnum):
    """The unit of the number."""

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
    measure: ThresholdMeasure
    relation: str
    number: Fraction
    unit: ThresholdUnit = ThresholdUnit.PLAIN
    is_change: bool = True
    """Whether the number is a change, else a value of the second report."""
    written: str = field(default="", compare=False)


_EXPRESSION: Final = re.compile(
    r"\s*(?:(?P<place>\S(?:.*\S)?)\s+)?(?P<measure>[a-z][a-z0-9_-]*)\s*(?P<relation>[<>]=?)"
    r"\s*(?P<sign>[+-]?)(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?P<unit>%|pt|[KkMGT](?:i?B)?|B|[um]s|[smhd])?\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A threshold as it is written, before its measure is known: `[PLACE] MEASURE COMPARISON NUMBER[UNIT]`."""

    place: str | None
    measure: str
    relation: str
    sign: str
    """`+` or `-` for a change, empty for a value."""
    number: Fraction
    digits: str
    unit: str
    """As it is written; may be empty."""


def parse_expression(text: str, examples: str) -> Expression:
    found = _EXPRESSION.fullmatch(text)
    if found is None:
        raise FailOnError(f"write it like {examples}")
    measure, digits = found["measure"], found["number"]
    return Expression(
        found["place"], measure, found["relation"], found["sign"], Fraction(digits), digits, found["unit"] or ""
    )


_SCALES: Final = {
    ThresholdMeasure.KEYS: {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    ThresholdMeasure.MEMORY: {"B": 1, "K": 1 << 10, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40},
}

_WHICH_UNIT: Final = (
    "memory needs a unit: write 'memory{0}{1}{2}MiB' (or B, KiB, GiB, TiB) for a size, "
    "or 'memory{0}{3}{2}%' with a sign for a change in percent"
)


def parse_fail_on(text: str) -> FailOn:
    """Parse `[NAMESPACE] MEASURE COMPARISON NUMBER[UNIT]`. Raises FailOnError with the fault.

    A number with a sign is a change, one without a value of the second report. Units are `%` (of the earlier value, or
    as a share), `pt` (percentage points, for a change of no-ttl), `k M G T` for keys. Memory must have one: `B`, or
    `KiB MiB GiB TiB` (`K`, `KB` and so on mean the same, 1,024 bytes and its powers).
    """
    found = parse_expression(text, "'memory>+20%', 'shop:session keys>+10000' or 'no-ttl>+5pt'")
    if found.measure not in list(ThresholdMeasure):
        raise FailOnError(f"{display_text(found.measure, limit=40)} is not one of {', '.join(ThresholdMeasure)}")
    measure, unit = ThresholdMeasure(found.measure), found.unit
    number, is_change = found.number, bool(found.sign)
    if unit in list(ThresholdUnit):
        kind = ThresholdUnit(unit)
    else:
        kind, scale = ThresholdUnit.PLAIN, _SCALES.get(measure, {}).get(unit[0])
        if scale is None or (len(unit) > 1 and measure is not ThresholdMeasure.MEMORY):
            raise FailOnError(f"{measure} has no unit {unit}")
        number *= scale
    _check(measure, kind, is_change=is_change)
    if measure in FINDINGS and found.place is not None:
        raise FailOnError(f"{measure} applies to all keys: write it without a namespace, as in '{measure}>0'")
    signed = -number if found.sign == "-" else number
    if measure is ThresholdMeasure.MEMORY and not unit and number:
        raise FailOnError(_WHICH_UNIT.format(found.relation, found.sign, found.digits, found.sign or "+"))
    return FailOn(found.place, measure, found.relation, signed, kind, is_change, text.strip())


def _check(measure: ThresholdMeasure, unit: ThresholdUnit, *, is_change: bool) -> None:
    if measure in NAMESPACES or measure in FINDINGS:
        if is_change or unit is not ThresholdUnit.PLAIN:
            raise FailOnError(f"{measure} is a count without sign or unit, as in '{measure}>0'")
    elif measure is ThresholdMeasure.NO_TTL:
        if is_change and unit is not ThresholdUnit.POINTS:
            raise FailOnError("a change of no-ttl is in percentage points, as in 'no-ttl>+5pt'")
        if not is_change and unit is not ThresholdUnit.PERCENT:
            raise FailOnError("no-ttl is a share, as in 'no-ttl>50%'")
    elif unit is ThresholdUnit.POINTS:
        raise FailOnError(f"{measure} is no share: write %, or a number")
    elif unit is ThresholdUnit.PERCENT and not is_change:
        raise FailOnError(f"a change in percent needs a sign, as in '{measure}>+20%'")


class Outcome(StrEnum):
    """Whether a threshold is reached."""

    REACHED = "reached"
    NOT_REACHED = "not reached"
    UNKNOWN = "not checked"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of one threshold."""

    expression: SafeText
    outcome: Outcome
    why: str


_RELATIONS: Final = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def judge(
    threshold: FailOn,
    comparison: Comparison,
    depth: int | None = None,
    findings: Mapping[ThresholdMeasure, Interval] | None = None,
) -> Judgement:
    """Return whether a threshold is reached.

    It can't be judged where the number is not known, or where the threshold lies within the number's interval. `depth`
    bounds how far down namespaces are counted that came or went; `findings` are the numbers of findings.
    """
    expression = display_text(threshold.written)
    if threshold.measure in FINDINGS:
        return _compared(threshold, (findings or {}).get(threshold.measure), "there may be more, see the notes")
    change = comparison.root if threshold.namespace is None else comparison.find(threshold.namespace)
    if change is None:
        deeper = "" if comparison.levels is None else f" in the levels that both have ({comparison.levels})"
        return Judgement(expression, Outcome.UNKNOWN, f"neither report has a namespace of this name{deeper}")
    if threshold.measure in NAMESPACES:
        return _compared(threshold, *_counted(threshold.measure, change, comparison, depth))
    return _compared(threshold, *_measured(threshold, change, comparison))


def _compared(threshold: FailOn, found: Interval | None, doubt: str) -> Judgement:
    """Return whether a number reaches the threshold; `doubt` is why it may not be known, or not closely enough."""
    expression = display_text(threshold.written)
    if found is None:
        return Judgement(expression, Outcome.UNKNOWN, doubt)
    outcome = outcome_of(threshold.relation, threshold.number, found)
    words = _in_words(threshold, found)
    return Judgement(expression, outcome, f"it is {words}; {doubt}" if outcome is Outcome.UNKNOWN else f"it is {words}")


def outcome_of(relation: str, number: Bound, found: Interval) -> Outcome:
    holds = _RELATIONS[relation]
    at_ends = {holds(found.low, number), holds(found.high, number)}
    if len(at_ends) == 2:
        return Outcome.UNKNOWN
    return Outcome.REACHED if at_ends == {True} else Outcome.NOT_REACHED


def _in_words(threshold: FailOn, found: Interval) -> str:
    """Return a number with its unit: `25%`, `3 new`, `between -3% and 28%`."""
    measure = threshold.measure
    if measure in NAMESPACES or measure in FINDINGS:
        return f"{bounds_text(found)} {measure.partition('-')[0]}"
    suffix = {ThresholdUnit.PERCENT: "%", ThresholdUnit.POINTS: " pt"}.get(threshold.unit)
    if suffix is None:
        noun = "byte" if measure is ThresholdMeasure.MEMORY else "key"
        suffix = f" {noun}" if abs(found.low) == abs(found.high) == 1 else f" {noun}s"
    return bounds_text(found, suffix)


def _measured(threshold: FailOn, change: NamespaceChange, comparison: Comparison) -> tuple[Interval | None, str]:
    numbers: FigureChange = {
        ThresholdMeasure.KEYS: change.keys,
        ThresholdMeasure.MEMORY: change.memory,
        ThresholdMeasure.NO_TTL: change.no_ttl,
    }[threshold.measure]
    if threshold.unit is ThresholdUnit.POINTS:
        found = numbers.points()
    elif not threshold.is_change:
        found = numbers.level(in_percent=threshold.unit is ThresholdUnit.PERCENT)
    elif threshold.unit is ThresholdUnit.PERCENT:
        growth = numbers.growth()
        found = growth and growth.in_percent()
    else:
        found = numbers.difference()
    if found is not None:
        kinds = {comparison.before.coverage.kind, comparison.after.coverage.kind}
        if CoverageKind.PARTIAL in kinds:
            return found, "a report is partial"
        if CoverageKind.ESTIMATE in kinds:
            return found, "the estimate is not precise enough"
        return found, "a report does not have it for all keys"
    if numbers.after is None:
        name, head, keys = "second", comparison.after, change.keys.after
    else:
        name, head, keys = "first", comparison.before, change.keys.before
    if change.path and keys is not None and not keys.is_present:
        return None, f"the {name} report has no such namespace"
    column = head.columns.get("ttl" if threshold.measure is ThresholdMeasure.NO_TTL else threshold.measure.value)
    reason = f" ({column.state}{': ' if column.reason else ''}{display_text(column.reason)})" if column else ""
    return None, f"the {name} report does not have it{reason}"


def _counted(
    measure: ThresholdMeasure, change: NamespaceChange, comparison: Comparison, depth: int | None
) -> tuple[Interval | None, str]:
    """Return how many namespaces came or went below one (not those within a new one), and why it may not suffice."""
    if comparison.levels == 0:
        return None, "the reports use different separators"
    is_new = measure is ThresholdMeasure.NEW
    below = [one for one in change.outlined(depth) if one.path and one is not change]
    verdicts = [one.is_new if is_new else one.is_gone for one in below]
    sure, maybe = verdicts.count(True), verdicts.count(None)
    head = comparison.after if is_new else comparison.before
    unseen = head.coverage.kind is not CoverageKind.EXACT or any(one.path[-1].kind is NodeKind.OTHER for one in below)
    return Interval(Fraction(sure), math.inf if unseen else Fraction(sure + maybe)), "more may have been missed"


def bounds_text(found: Interval | None, suffix: str = "") -> str:
    """An interval in words: `+25%`, `between -3% and +28%`, `at least 12`."""
    if found is None:
        return ""
    if found.low == math.inf:
        return "something from nothing"
    ends = (float(found.low), float(found.high))
    low, high = (f"{end:,.6g}" if abs(end) < 1e6 else f"{end:,.0f}" for end in ends)
    if found.low == found.high:
        return f"{low}{suffix}"
    if found.high == math.inf:
        return f"at least {low}{suffix}"
    if found.low == -math.inf:
        return f"at most {high}{suffix}"
    return f"between {low}{suffix} and {high}{suffix}"
