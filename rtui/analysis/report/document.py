"""What one analysis of a keyspace says: the document behind every panel, report file and comparison."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import IdleBasis, LfuSettings

SCHEMA: Final = 1
"""Version of the document; it grows with every change that an older reader would misread."""

Figure: TypeAlias = int | float | Estimate
"""A number that is exact (or, in a partial report, at least so much), or an estimate with its 95 % interval."""

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400

TTL_EDGES_S: Final = (MINUTE_S, 10 * MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 365 * DAY_S)
"""Borders of the time-to-live histogram in seconds: bin i holds what is below edge i and not below the one before."""

IDLE_EDGES_S: Final = (MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 90 * DAY_S)
"""Borders of the idle-time histogram in seconds."""

FREQUENCY_EDGES: Final = (1, 6, 10, 20, 50, 100, 255)
"""Borders of the histogram of LFU counters, 0 … 255; the last bin is the top of the counter alone."""


class CoverageKind(StrEnum):
    """How much of the keyspace the numbers rest on."""

    EXACT = "exact"
    """Every key that was there from beginning to end."""
    PARTIAL = "partial"
    """A pass that was broken off: counts and sums are at least so much, shares and quantiles are of what was seen."""
    ESTIMATE = "estimate"
    """Keys from random places: every figure is an estimate with its 95 % interval."""


class ColumnState(StrEnum):
    """Whether a fact was had of every key."""

    COMPLETE = "complete"
    SOME = "some"
    """Of some keys only; the reason says which."""
    DENIED = "denied"
    """The user may not ask it."""
    UNSUPPORTED = "unsupported"
    """The server has no such command or keeps no such number."""
    NOT_ASKED = "not asked"
    """Asking would have changed or held up the server."""


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """What became of one fact."""

    state: ColumnState
    reason: str = ""
    """A safe sentence without a full stop; empty when complete."""


@dataclass(frozen=True, slots=True)
class ServerReport:
    """Who was asked. Texts are safe to show."""

    label: str
    """Host and port, or the path of the socket; never a password."""
    product: str = ""
    version: str = ""
    role: str = ""
    db: int = 0
    run_id: str = ""
    cluster_enabled: bool = False
    maxmemory_policy: str = ""
    used_memory_bytes: int | None = None
    maxmemory_bytes: int | None = None
    no_touch: str = ""
    """Whether reading left idle times and frequencies alone: `on`, `denied`, `unknown command`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What was asked for."""

    separators: tuple[bytes, ...] = (b":",)
    match: bytes | None = None
    kind: bytes | None = None
    """Only keys of this type."""
    depth: int | None = None
    """Levels of namespaces that are kept, None for all within the budget."""
    top: int = 100
    """Keys in each list of biggest and hottest."""
    pace: str = "gentle"
    preset: str = "rtui"
    """Name of the thresholds above which a key is big."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the numbers rest on."""

    kind: CoverageKind
    keys: int
    """Keys that were inspected and were there."""
    fraction: float | None = None
    """How much of the keyspace was gone through, 0 … 1, None where nobody knows; 1.0 when exact."""
    total_keys: Figure | None = None
    """Keys of the whole keyspace, None when not known."""
    vanished: int = 0
    """Keys that went between the listing and the look."""
    unread: int = 0
    """Keys whose names are too long to be sent in bulk: counted, nothing else is known of them."""
    repeats_possible: bool = False
    """Whether a key may have been counted twice, since the server resized its table."""
    reason: str = ""
    """Why it is partial; a safe sentence without a full stop."""

    @property
    def counted_keys(self) -> int:
        """The keys that namespaces and slots count: those inspected, and those of which only the name is known."""
        return self.keys + self.unread


@dataclass(frozen=True, slots=True)
class CostReport:
    """What the analysis cost the server."""

    commands: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    server_us: float = 0.0
    is_measured: bool = False
    """Whether the server told its time itself; else it follows from round trips."""
    elapsed_s: float = 0.0

    @property
    def server_share(self) -> float:
        """Share of the server's one thread while it ran, 0 … 1."""
        return min(1.0, self.server_us / 1e6 / self.elapsed_s) if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Head:
    """When, where, how much and at what cost."""

    made_at_s: float
    """Seconds since the epoch, when the last key was inspected."""
    server: ServerReport
    scope: Scope
    coverage: Coverage
    cost: CostReport = CostReport()
    columns: dict[str, ColumnReport] = field(default_factory=dict)
    """By the name of the fact: type, ttl, memory, idle, frequency, length, encoding."""
    notes: tuple[str, ...] = ()
    """What one has to know to read the numbers; safe sentences."""
    rtui_version: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The spread of a size: bytes of memory, or a length."""

    mean: Figure
    p50: Figure
    p90: Figure
    p99: Figure
    max: int
    """The largest that was seen: exact, or in an estimate at least."""
    error: float
    """Relative error of the quantiles by their sketch, such as 0.01."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What a set of keys adds up to."""

    keys: Figure
    share_keys: Figure
    """Of all keys, 0 … 1."""
    memory_bytes: Figure | None = None
    """Sum of MEMORY USAGE; None where it is not known of any of the keys."""
    share_memory: Figure | None = None
    memory_known_keys: int = 0
    """Keys (of the sample, in an estimate) that the sum rests on: below the number of keys it is at least so much."""
    memory: Quantiles | None = None
    no_ttl_keys: Figure | None = None
    no_ttl_share: Figure | None = None
    """Of those keys whose TTL is known."""
    no_ttl_memory_bytes: Figure | None = None
    ttl: tuple[Figure, ...] | None = None
    """Keys that expire, by what is left of their life: one more than TTL_EDGES_S."""
    soonest_expiry_s: float | None = None
    """Seconds since the epoch."""
    idle: tuple[Figure, ...] | None = None
    """Keys by idle time: one more than IDLE_EDGES_S."""
    frequency: tuple[Figure, ...] | None = None
    """Keys by LFU counter: one more than FREQUENCY_EDGES."""
    types: tuple[tuple[bytes, Figure], ...] = ()
    """Keys by type as the server names it, most first."""


class NodeKind(StrEnum):
    """What a namespace in the report stands for."""

    LITERAL = "literal"
    """Keys with exactly this segment here."""
    PATTERN = "pattern"
    """Keys whose segment here is an identifier, or one of too many names: `{id}`, `{*}`."""
    OTHER = "other"
    """What was beyond the budget of nodes."""


@dataclass(frozen=True, slots=True)
class Node:
    """A namespace or key pattern and everything below it."""

    name: bytes
    """The segment; `{id}`, `{uuid}` and the like for a pattern. The root has the empty name."""
    separator: bytes
    """What ends the segment; `b""` for the last segment of a key and for the root."""
    kind: NodeKind
    stats: Stats
    children: tuple[Node, ...] = ()
    """Most memory first (most keys where memory is not known)."""
    distinct: int | None = None
    """For a pattern, at least how many different names it stands for, if they were counted."""

    def walk(self, path: tuple[Node, ...] = ()) -> Iterator[tuple[Node, ...]]:
        """Yield the path of every node from this one down, itself first."""
        here = (*path, self)
        yield here
        for child in self.children:
            yield from child.walk(here)


@dataclass(frozen=True, slots=True)
class TypeReport:
    """All keys of one type."""

    name: bytes
    stats: Stats
    length: Quantiles | None
    unit: str
    """What a length counts: bytes, fields, members …"""


@dataclass(frozen=True, slots=True)
class EncodingReport:
    """Keys of one type in one encoding, as the server names both."""

    kind: bytes
    encoding: bytes
    keys: Figure
    """An estimate where only every n-th key was asked."""
    share: Figure
    """Of the keys of this type, 0 … 1."""


@dataclass(frozen=True, slots=True)
class KeySizes:
    """One histogram of `INFO keysizes`: exact, over the whole database, kept by the server itself."""

    name: str
    """As the server names it: `distrib_strings_sizes`."""
    bins: tuple[tuple[int, int], ...]
    """(lower bound of the bin, keys)."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One key of a list of biggest or hottest."""

    key: bytes
    kind: bytes | None = None
    memory_bytes: int | None = None
    length: int | None = None
    ttl_ms: int | None = None
    """-1: it does not expire."""
    idle_s: int | None = None
    frequency: int | None = None
    """The LFU counter, 0 … 255."""
    encoding: bytes | None = None
    asked_at_s: float = 0.0
    note: str = ""
    """What one has to know of it, such as why its memory was not asked; a safe sentence."""

    @property
    def expires_at_s(self) -> float | None:
        """Seconds since the epoch, None when it does not expire or nobody knows."""
        return None if self.ttl_ms is None or self.ttl_ms < 0 else self.asked_at_s + self.ttl_ms / 1000


@dataclass(frozen=True, slots=True)
class BigReport:
    """The biggest keys, largest first in each list. Complete only in an exact report.

    Where names are very long, a list ends early; no key is left out above its last.
    """

    by_memory: tuple[KeyRecord, ...] = ()
    by_length: tuple[KeyRecord, ...] = ()
    """Only types whose length is a number of elements; strings are in `by_type_length`."""
    by_type_memory: dict[bytes, tuple[KeyRecord, ...]] = field(default_factory=dict)
    by_type_length: dict[bytes, tuple[KeyRecord, ...]] = field(default_factory=dict)
    over: dict[bytes, Figure] = field(default_factory=dict)
    """By type, how many keys are above the thresholds of the preset in use."""


class HotSource(StrEnum):
    """Where the knowledge about hot keys comes from, best first."""

    SERVER = "the server's own hot-key report"
    FREQUENCY = "LFU counters (OBJECT FREQ)"
    IDLE = "idle time (OBJECT IDLETIME)"
    NONE = "nothing"


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key and how hot it is by the source of its list."""

    record: KeyRecord
    value: float
    """In the unit of the list."""
    at_least: bool = False
    """Whether the truth may be any amount above: the counter is at its top, so such keys have no rank."""


@dataclass(frozen=True, slots=True)
class HotList:
    """Hot keys by one measure, hottest first."""

    title: str
    unit: str
    """`accesses/min`, `µs of CPU`, `bytes of network traffic`, `seconds idle`, `queries/s`."""
    keys: tuple[HotKey, ...]


@dataclass(frozen=True, slots=True)
class SlotLoad:
    """What a server counts of one slot: CLUSTER SLOT-STATS."""

    slot: int
    values: dict[str, int]
    """By the server's name of the metric, such as key-count, cpu-usec, memory-bytes, network-bytes-in."""


@dataclass(frozen=True, slots=True)
class HotReport:
    """The hottest keys from the best source there is."""

    source: HotSource = HotSource.NONE
    about: str = ""
    """What the source measures and since when; a safe sentence."""
    age_s: float | None = None
    """How old the source's numbers are; None where that means nothing."""
    better: tuple[str, ...] = ()
    """Why a better source is missing and what would enable it, each a safe sentence."""
    lists: tuple[HotList, ...] = ()
    slots: tuple[SlotLoad, ...] = ()
    """The most loaded slots where the server counts them."""
    lfu: LfuSettings | None = None
    idle_basis: IdleBasis = IdleBasis.ACCESS


@dataclass(frozen=True, slots=True)
class ExpiryBin:
    """Keys that expire within a stretch of absolute time."""

    start_s: float
    """Seconds since the epoch."""
    width_s: float
    keys: Figure
    memory_bytes: Figure | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Coming expiries of the keys below one namespace, soonest first, empty bins left out."""

    path: tuple[bytes, ...]
    """Segment names from the first level on; empty for the whole keyspace."""
    label: str
    """The path as it is shown."""
    bins: tuple[ExpiryBin, ...]


@dataclass(frozen=True, slots=True)
class Cliff:
    """A stretch of time in which far more keys of a namespace expire than around it."""

    path: tuple[bytes, ...]
    label: str
    """The namespace as it is shown: `shop:session`, `all keys`."""
    start_s: float
    end_s: float
    """Both in seconds since the epoch."""
    keys: Figure
    share: Figure
    """Of all keys of the namespace, 0 … 1."""
    memory_bytes: Figure | None
    expected_keys: Figure
    """As many would expire in that stretch if it were like its neighbours."""


@dataclass(frozen=True, slots=True)
class ExpiryReport:
    """What expires when. What does not expire is in the stats of the namespaces."""

    timelines: tuple[Timeline, ...] = ()
    """The whole keyspace first, then the namespaces with most keys that expire."""
    cliffs: tuple[Cliff, ...] = ()
    """Most keys first."""
    false_alarms: float = 0.0
    """How many cliffs a keyspace of even expiries is expected to show by chance."""


@dataclass(frozen=True, slots=True)
class SlotTag:
    """A hash tag that loads a slot."""

    slot: int
    tag: bytes
    """What stands between the braces."""
    keys: Figure
    memory_bytes: Figure | None
    at_least: bool = False
    """Whether it was not followed from its first key on, so that it may be more."""


@dataclass(frozen=True, slots=True)
class SlotsReport:
    """Load by hash slot: on a cluster as it is, else as it would be."""

    keys: array[int] = field(default_factory=lambda: array("Q", bytes(8 * 16384)))
    """Keys (of the sample, in an estimate) of each of the 16,384 slots."""
    memory_bytes: array[int] | None = None
    """Bytes of each slot, None where memory is known of no key."""
    tags: tuple[SlotTag, ...] = ()
    """The heaviest hash tags, most keys first."""
    owned: tuple[tuple[int, int], ...] | None = None
    """Slots of the node that was asked, as inclusive pairs; None outside a cluster."""
    unmeasured: array[int] | None = None
    """Keys of each slot that its bytes leave out, since nobody knows theirs; None where there is no such key."""

    def bytes_in(self, first: int, last: int) -> tuple[int | None, bool]:
        """The bytes of slots `first` … `last`, None where nobody knows any, and whether that is of all their keys."""
        keys = sum(self.keys[first : last + 1])
        left_out = 0 if self.unmeasured is None else sum(self.unmeasured[first : last + 1])
        if self.memory_bytes is None or (keys and left_out >= keys):
            return None, False
        return sum(self.memory_bytes[first : last + 1]), not left_out


@dataclass(frozen=True, slots=True)
class Summary:
    """What the inspected keys add up to."""

    root: Node
    types: tuple[TypeReport, ...] = ()
    """Most keys first."""
    encodings: tuple[EncodingReport, ...] = ()
    big: BigReport = field(default_factory=BigReport)
    hottest: tuple[KeyRecord, ...] = ()
    """By LFU counter, highest first, else by idle time, least first; which of them is in the head's columns."""
    expiry: ExpiryReport = field(default_factory=ExpiryReport)
    slots: SlotsReport = field(default_factory=SlotsReport)
    folded: int = 0
    """Keys in nodes that stand for what was beyond the budget of nodes."""


@dataclass(frozen=True, slots=True)
class Report:
    """All of it."""

    head: Head
    summary: Summary
    hot: HotReport = field(default_factory=HotReport)
    keysizes: tuple[KeySizes, ...] = ()
