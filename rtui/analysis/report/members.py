"""The parts of a report: numbers and names as files have them, strings by pattern, expiries, the registry's findings.

Also the results of following references, which no report has.
"""

from __future__ import annotations

import math
from abc import ABCMeta
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rtui.analysis import estimates
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.keyspace.slots import SLOTS

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400

TTL_EDGES_S: Final = (MINUTE_S, 10 * MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 365 * DAY_S)
"""Borders of the time-to-live histogram in seconds: bin i holds values below edge i and not below the previous edge."""

TTL_EDGES_MS: Final = (0, *(edge * 1000 for edge in TTL_EDGES_S))
"""The same in milliseconds, and in front a bin for keys that do not expire."""

IDLE_EDGES_S: Final = (MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 90 * DAY_S)
"""Borders of the idle-time histogram in seconds."""

FREQUENCY_EDGES: Final = (1, 6, 10, 20, 50, 100, 255)
"""Borders of the histogram of LFU counters, 0 … 255; the last bin is the top of the counter alone."""

MOST_TINY: Final = 4
"""Bytes of a string that may stand for nothing: `null`, `nil`, `None`, `{}`, or an empty one."""

MOST_SHORT: Final = 64
"""Bytes of a value that a hash keeps in a listpack, by default (hash-max-listpack-value)."""

LENGTH_EDGES: Final = tuple(quarters << power for power in range(2, 13) for quarters in (4, 5, 6, 7))
"""Borders of the histogram of lengths of a type, from 16 on: bin i holds lengths certainly above edge i, and not
certainly above the next one. Lengths that differ by less than 2 % may count as equal."""

if TYPE_CHECKING:
    Name: TypeAlias = bytes
    Text: TypeAlias = str
    SlotCounts: TypeAlias = array[int]
else:
    Name = ABCMeta("Name", (), {"__doc__": "Bytes: a key, a segment, a type or an encoding as the server names it."})
    Text = ABCMeta("Text", (), {"__doc__": "Text for people, safe to show."})
    SlotCounts = ABCMeta("SlotCounts", (), {"__doc__": "An array of 64-bit numbers, one for each of the hash slots."})
    Name.register(bytes)
    Text.register(str)
    SlotCounts.register(array)

LARGEST_NUMBER: Final = 2.0**64
"""No number with a point is beyond this, on either side of zero."""

LARGEST_COUNT: Final = 2**63 - 1
Count: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]

Number: TypeAlias = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
"""A time in seconds, a share, or another number that is not whole."""

SlotNumber: TypeAlias = Annotated[int, Meta(ge=0, le=SLOTS - 1)]

Figure: TypeAlias = Count | Number | Estimate
"""A number that is exact (or, in a partial report, at least so much), or an estimate with its 95 % interval."""


TtlBins: TypeAlias = Annotated[
    tuple[Figure, ...], Meta(min_length=len(TTL_EDGES_S) + 1, max_length=len(TTL_EDGES_S) + 1)
]
IdleBins: TypeAlias = Annotated[
    tuple[Figure, ...], Meta(min_length=len(IDLE_EDGES_S) + 1, max_length=len(IDLE_EDGES_S) + 1)
]
LengthBins: TypeAlias = Annotated[tuple[Figure, ...], Meta(min_length=len(LENGTH_EDGES), max_length=len(LENGTH_EDGES))]
FrequencyBins: TypeAlias = Annotated[
    tuple[Figure, ...], Meta(min_length=len(FREQUENCY_EDGES) + 1, max_length=len(FREQUENCY_EDGES) + 1)
]


_TinyBins: TypeAlias = Annotated[
    tuple[Count, ...], Meta(min_length=len(TTL_EDGES_S) + 2, max_length=len(TTL_EDGES_S) + 2)
]


class StringReport(Struct, frozen=True, gc=False):
    """The strings of a pattern whose length was asked, chosen independently of it: all of them, or one in eight."""

    asked_keys: Count
    length_bytes: Count
    long_keys: Count
    """Those of more than MOST_SHORT bytes."""
    tiny_keys: Count
    """Those of at most MOST_TINY bytes."""
    tiny_ttl: _TinyBins
    """The tiny ones whose TTL is known: first those that do not expire, then by TTL_EDGES_S."""

    @property
    def mean(self) -> float:
        return self.length_bytes / self.asked_keys if self.asked_keys else 0.0


class ExpiryBin(Struct, frozen=True, gc=False):
    """Keys that expire within a range of absolute time."""

    start_s: Number
    """Seconds since the epoch."""
    width_s: Number
    keys: Figure
    memory_bytes: Figure | None


class Timeline(Struct, frozen=True, gc=False):
    """Coming expiries of the keys below one namespace, soonest first, empty bins left out."""

    path: tuple[Name, ...]
    """Segment names from the first level on; empty for the whole keyspace."""
    label: Text
    bins: tuple[ExpiryBin, ...]

    @property
    def end_s(self) -> float:
        return self.bins[-1].start_s + self.bins[-1].width_s if self.bins else 0.0

    def columns(self, from_s: float, to_s: float, n: int) -> tuple[ExpiryBin, ...]:
        """Cut the time between two moments into n columns of equal width, empty ones too.

        A bin that reaches over a border gives each column the part that lies in it, as if its keys were spread evenly.
        The parts of estimates are taken for independent. Memory is None where it is not known of any bin.
        """
        if n < 1 or to_s <= from_s:
            return ()
        width = (to_s - from_s) / n
        parts: list[list[tuple[ExpiryBin, float]]] = [[] for _ in range(n)]
        for one in self.bins:
            end = one.start_s + one.width_s
            first = max(0, math.floor((one.start_s - from_s) / width))
            for column in range(first, min(n, math.ceil((end - from_s) / width))):
                begin = from_s + column * width
                overlap = min(end, begin + width) - max(one.start_s, begin)
                if overlap > 0:
                    parts[column].append((one, overlap / one.width_s))
        knows_memory = any(one.memory_bytes is not None for one in self.bins)
        return tuple(
            ExpiryBin(
                start_s=from_s + column * width,
                width_s=width,
                keys=_sum([(one.keys, part) for one, part in inside]),
                memory_bytes=_sum([(one.memory_bytes or 0, part) for one, part in inside]) if knows_memory else None,
            )
            for column, inside in enumerate(parts)
        )


class Cliff(Struct, frozen=True, gc=False):
    """A range of time in which far more keys of a namespace expire than around it."""

    path: tuple[Name, ...]
    label: Text
    """The namespace as it is shown: `shop:session`, `all keys`."""
    start_s: Number
    end_s: Number
    """Both in seconds since the epoch."""
    keys: Figure
    share: Figure = msgspec.field(name="share_of_namespace")
    """Of all keys of the namespace, 0 … 1."""
    memory_bytes: Figure | None
    expected_keys: Figure
    """Keys that would expire in that range if it were like the ranges around it."""

    def meets(self, start_s: float, end_s: float) -> bool:
        return self.start_s < end_s and start_s < self.end_s


class ExpiryReport(Struct, frozen=True, gc=False):
    """What expires when. What does not expire is in the stats of the namespaces."""

    timelines: tuple[Timeline, ...] = ()
    """The whole keyspace first, then the namespaces with most keys that expire."""
    cliffs: tuple[Cliff, ...] = ()
    false_alarms: Number = msgspec.field(default=0.0, name="expected_false_alarms")
    """How many cliffs a keyspace of even expiries is expected to show by chance."""


def _sum(parts: list[tuple[Figure, float]]) -> Figure:
    """Add parts of figures: whole numbers as such where nothing is cut, estimates with their intervals."""
    if any(isinstance(figure, Estimate) for figure, _ in parts):
        known = [as_estimate(figure).scaled(part) for figure, part in parts]
        value = math.fsum(one.value for one in known)
        below = math.hypot(*(one.value - one.low for one in known))
        above = math.hypot(*(one.high - one.value for one in known))
        return Estimate(max(0.0, value - below), value, value + above)
    return sum(figure if part == 1 else figure * part for figure, part in parts if not isinstance(figure, Estimate))


TEXT_LIMIT: Final = 1_000


class RuleSetting(Struct, frozen=True, gc=False):
    """What a registry sets of a rule."""

    severity: Text
    parameters: dict[Text, bool | int | float | tuple[Text, ...]] = {}
    """Those that are set: durations in milliseconds, sizes in bytes."""


class LongName(Struct, frozen=True, gc=False):
    """A name that is too long to be kept as an example."""

    beginning: Name
    length: Count


class ExpectationReport(Struct, frozen=True, gc=False):
    """One thing that a pattern expects of its keys, and how many of them break it."""

    rule: Text
    """The id of the rule: type-wrong, ttl-missing, ttl-too-long, ttl-too-short, ttl-unexpected, size-out-of-range or
    length-out-of-range."""
    expected: Text
    """As the registry has it: `hash or string`, `30m..2h`."""
    keys: Figure | None
    """Keys that break it; None where the fact is known of no key."""
    memory_bytes: Figure | None
    """Bytes of those among them whose memory is known."""
    known_keys: Count = 0
    """Inspected keys of the pattern whose fact is known: if those are not all, there may be more that break it."""
    examples: tuple[Name, ...] = ()
    long_names: tuple[LongName, ...] = ()
    """Some of those whose names are too long for that."""


class EntryReport(Struct, frozen=True, gc=False):
    """A registered pattern and its keys. Texts are those of the registry."""

    pattern: Text
    keys: Figure
    share_keys: Figure
    """Of all keys, 0 … 1."""
    inspected_keys: Count
    """Keys that were looked at: in an estimate those of the sample."""
    memory_bytes: Figure | None
    """None where it is known of none of its keys."""
    share_memory: Figure | None
    memory_known_keys: Count = 0
    """Inspected keys whose memory is known: if those are not all, the bytes are at least so many."""
    types: tuple[tuple[Name, Figure], ...] = ()
    """Keys by type as the server names it, most first."""
    expectations: tuple[ExpectationReport, ...] = ()
    examples: tuple[Name, ...] = ()
    purpose: Text = ""
    owner: Text = ""
    scene: Text = ""
    deprecated: Text = ""
    """What to use instead; empty where it is not to be retired."""
    origin: Text = ""
    """The included registry that it is from; empty for one of the file itself."""


class UnregisteredReport(Struct, frozen=True, gc=False):
    """A namespace or pattern of the report whose keys no entry of the registry describes, or the rest of such keys."""

    namespace: Name
    """How its keys begin, or a whole key."""
    place: Count
    """Its index in the list of namespaces, each followed by those below it; 0 for the rest, which is in no other."""
    keys: Figure
    """An estimate where it was seen from examples that some of its keys are registered."""
    memory_bytes: Figure | None
    examples: tuple[Name, ...] = ()
    long_names: tuple[LongName, ...] = ()
    """Some of the keys without pattern whose names are too long for that; with the rest only."""


class RegistryReport(Struct, frozen=True, gc=False):
    """What the keys of a keyspace are by the registry."""

    title: Text
    file: Text
    """The name of the file, without its folder."""
    registered_keys: Figure
    registered_share: Figure
    """Of all keys, 0 … 1."""
    registered_memory_bytes: Figure | None
    registered_memory_share: Figure | None
    unregistered_keys: Figure
    unregistered_memory_bytes: Figure | None
    entries: tuple[EntryReport, ...]
    unregistered: tuple[UnregisteredReport, ...] = ()
    """Largest first, together as many as `unregistered_keys`. The last may be the rest: keys whose names are too long
    to be examples, or of namespaces that are not told apart."""


class NamePlace(Struct, frozen=True, gc=False):
    """Keys of one namespace or pattern whose names break one rule."""

    namespace: Name
    """How the keys begin; empty for keys without namespace, and for those of a pattern."""
    pattern: Text
    keys: Figure
    memory_bytes: Figure | None
    examples: tuple[Name, ...] = ()
    long_names: tuple[LongName, ...] = ()
    """Some of the keys whose names are too long to be examples."""


class NameRuleReport(Struct, frozen=True, gc=False):
    """One rule about names, and the keys that break it."""

    rule: Text
    keys: Figure
    share_keys: Figure
    """Of all keys, 0 … 1."""
    memory_bytes: Figure | None
    places: tuple[NamePlace, ...] = ()
    other_keys: Figure = 0
    examples: tuple[Name, ...] = ()


class NamingReport(Struct, frozen=True, gc=False):
    """Which of the naming rules are broken."""

    rules: tuple[NameRuleReport, ...]
    """Every rule that is not off, also those that no key breaks, in their order."""


MOST_EXAMPLES: Final = 5


@dataclass
class CheckedReference:
    """One reference of a pattern, and the keys of it that were looked at."""

    pattern: str
    """As the registry has it; not safe to show."""
    glob: bytes
    source: str
    """The source of references in a key: `member`, `field:userId`."""
    target: str
    """The pattern of the keys it points to, or of the twin key."""
    is_twin: bool = False
    matching: int = 0
    looked_at: int = 0
    """Keys of it that were read: all, or chosen at random."""
    values: int = 0
    broken_values: int = 0
    """Values that lead to no key; for a twin, values that are missing there or only there."""
    broken_keys: int = 0
    unknown: int = 0
    """Values of which nobody knows, since asking was refused."""
    skipped: int = 0
    """Keys that could not be read, or only in part."""
    examples: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Some of the broken keys, each with the missing key or with the value that differs in the twin."""

    @property
    def is_sample(self) -> bool:
        return self.looked_at < self.matching

    @property
    def broken(self) -> Figure:
        if not self.is_sample or not self.looked_at:
            return self.broken_keys
        return estimates.count_among(self.broken_keys, self.looked_at, self.matching)

    def add(self, key: bytes, values: int, broken: list[bytes], *, unknown: int = 0) -> None:
        self.values += values
        self.unknown += unknown
        self.broken_values += len(broken)
        self.broken_keys += bool(broken)
        if broken and len(self.examples) < MOST_EXAMPLES:
            self.examples.append((key, broken[0]))


@dataclass
class ReferenceChecks:
    """All references of a registry."""

    references: list[CheckedReference] = field(default_factory=list)
    keys: int = 0
    is_complete: bool = False
    failure: str = ""
    touched: int = 0
    """Keys whose reading the server counted as a use."""

    @property
    def dangling(self) -> list[CheckedReference]:
        return [one for one in self.references if one.broken_keys and not one.is_twin]

    @property
    def unlike(self) -> list[CheckedReference]:
        return [one for one in self.references if one.broken_keys and one.is_twin]


def weight_of(one: EntryReport | UnregisteredReport) -> tuple[float, float]:
    return (0.0 if one.memory_bytes is None else as_estimate(one.memory_bytes).value), as_estimate(one.keys).value
