"""The report of an analysis: the document behind every panel, report file and comparison.

Each attribute is a member of the JSON file (`rtui.analysis.formats.json`) under its own name or the one that its field
gives. The tree of namespaces alone has another form there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct, field

from rtui.analysis.columns import ALL_COLUMNS, Columns
from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.members import (
    LARGEST_COUNT,
    Count,
    ExpiryReport,
    Figure,
    FrequencyBins,
    IdleBins,
    LengthBins,
    Name,
    NamingReport,
    Number,
    RegistryReport,
    RuleSetting,
    SlotCounts,
    SlotNumber,
    StringReport,
    Text,
    TtlBins,
)
from rtui.keyspace.slots import SLOTS, each_slot
from rtui.keyspace.text.identifiers import ANY_NAMES, as_name
from rtui.keyspace.text.identifiers import NodeKind as NodeKind  # noqa: PLC0414 - a member of the document


class CoverageKind(StrEnum):
    """How much of the keyspace was inspected."""

    EXACT = "exact"
    """Every key that existed throughout the pass."""
    PARTIAL = "partial"
    """A pass that was broken off: counts and sums are at least so much, shares and quantiles are of what was seen."""
    ESTIMATE = "estimate"
    """A random sample of keys: every figure is an estimate with its 95 % interval."""


class ColumnState(StrEnum):
    """Whether a fact is known of every key."""

    COMPLETE = "complete"
    SOME = "some"
    """Of some keys only; the reason says which."""
    DENIED = "denied"
    """The user may not run the command."""
    UNSUPPORTED = "unsupported"
    """The server has no such command or keeps no such number."""
    NOT_ASKED = "not asked"
    """Asking would have changed or held up the server, or was not wanted."""


class ColumnReport(Struct, frozen=True, gc=False):
    """Of which keys a fact is known, and why not of all."""

    state: ColumnState
    reason: Text = ""
    """A safe sentence without a full stop; empty when complete."""


class ServerReport(Struct, frozen=True, gc=False):
    """The server of the report. Texts are safe to show."""

    label: Text
    """Host and port, or the path of the socket; never a password."""
    product: Text = ""
    version: Text = ""
    role: Text = ""
    db: Count = 0
    run_id: Text = ""
    cluster_enabled: bool = False
    maxmemory_policy: Text = ""
    used_memory_bytes: Count | None = None
    maxmemory_bytes: Count | None = None
    no_touch: Text = ""
    """Whether reading left idle times and frequencies alone: `on`, `denied`, `unknown command`."""


class Scope(Struct, frozen=True, gc=False):
    """The options of the analysis."""

    separators: tuple[Name, ...] = (b":",)
    match: Name | None = None
    key_type: Name | None = field(default=None, name="type")
    depth: Count | None = None
    """Levels of namespaces that are kept, None for all within the budget."""
    top: Count = 100
    pace: Text = "gentle"
    preset: Text = "rtui"
    columns: Columns = ALL_COLUMNS
    """Of which keys which facts were asked; in files of older versions always of all."""

    @property
    def is_filtered(self) -> bool:
        return self.match is not None or self.key_type is not None


class Coverage(Struct, frozen=True, gc=False):
    """The keys that the numbers are of."""

    kind: CoverageKind
    keys: Count
    """Keys that were inspected and were there."""
    fraction: Number | None = None
    """Share of the keyspace that was scanned, 0 … 1; 1.0 when exact, None where it is not known."""
    total_keys: Figure | None = None
    """Keys of the whole keyspace, None when not known."""
    vanished: Count = field(default=0, name="vanished_keys")
    """Keys that were deleted between SCAN and inspection."""
    unread: Count = field(default=0, name="unread_keys")
    """Keys whose names are too long to be sent in bulk: counted, nothing else is known of them."""
    repeats_possible: bool = False
    """Whether a key may have been counted twice: the server resized its table, or slots of a cluster moved."""
    reason: Text = ""

    @property
    def counted_keys(self) -> int:
        """The keys that namespaces and slots count: those inspected, and those of which only the name is known."""
        return self.keys + self.unread


class CostReport(Struct, frozen=True, gc=False):
    """What the analysis cost the server."""

    commands: Count = 0
    bytes_in: Count = 0
    bytes_out: Count = 0
    server_us: Number = 0.0
    is_measured: bool = False
    """Whether the server measured its time itself; else it is inferred from round trips."""
    elapsed_s: Number = 0.0

    @property
    def server_share(self) -> float:
        return min(1.0, self.server_us / 1e6 / self.elapsed_s) if self.elapsed_s > 0 else 0.0


class Head(Struct, frozen=True, gc=False):
    """Time, server, options, coverage and cost of the analysis."""

    made_at_s: Number
    """Seconds since the epoch, when the last key was inspected."""
    server: ServerReport
    scope: Scope
    coverage: Coverage
    cost: CostReport = CostReport()
    columns: dict[Text, ColumnReport] = {}
    """By the name of the fact: type, ttl, memory, idle, frequency, length, encoding."""
    notes: tuple[Text, ...] = ()
    rtui_version: Text = ""


class Quantiles(Struct, frozen=True, gc=False):
    """The spread of a size: bytes of memory, or a length."""

    mean: Figure
    p50: Figure
    p90: Figure
    p99: Figure
    max: Count
    """The largest that was seen: exact, or where not all keys were asked, at least."""
    error: Number = field(name="relative_error")
    """Relative error of the quantiles by their sketch, such as 0.01."""


class Stats(Struct, frozen=True, gc=False):
    """Totals of a set of keys."""

    keys: Figure
    share_keys: Figure = field(name="share_of_keys")
    """Of all keys, 0 … 1."""
    memory_bytes: Figure | None = None
    """Sum of MEMORY USAGE; None where it is not known of any of the keys."""
    share_memory: Figure | None = field(default=None, name="share_of_memory")
    memory_known_keys: Count = 0
    """Keys (of the sample, in an estimate) that the sum rests on: below the number of keys it is at least so much."""
    memory: Quantiles | None = field(default=None, name="memory_bytes_of_a_key")
    no_ttl_keys: Figure | None = None
    no_ttl_share: Figure | None = None
    """Of those keys whose TTL is known."""
    no_ttl_memory_bytes: Figure | None = None
    ttl: TtlBins | None = field(default=None, name="ttl_keys")
    """Keys that expire, by what is left of their life: one more than TTL_EDGES_S."""
    ttl_range_s: tuple[Number, Number] | None = None
    """The shortest and the longest life left of the inspected keys that expire, when they were asked."""
    soonest_expiry_s: Number | None = None
    idle: IdleBins | None = field(default=None, name="idle_keys")
    """Keys by idle time: one more than IDLE_EDGES_S; estimates where one key in eight was asked."""
    frequency: FrequencyBins | None = field(default=None, name="frequency_keys")
    """Keys by LFU counter: one more than FREQUENCY_EDGES; estimates where one key in eight was asked."""
    types: tuple[tuple[Name, Figure], ...] = ()
    """Keys by type as the server names it, most first."""
    strings: StringReport | None = field(default=None, name="string_lengths")
    """The lengths of strings, as they were counted; None where none was asked."""


class Step(NamedTuple):
    """One level of a path: what tells a namespace from its siblings."""

    name: bytes
    separator: bytes
    kind: NodeKind


class Node(Struct, frozen=True, gc=False):
    """A namespace or key pattern and everything below it."""

    name: Name
    """The segment; `<id>`, `<uuid>` and the like for a pattern. The root has the empty name."""
    separator: Name
    """What ends the segment; `b""` for the last segment of a key and for the root."""
    kind: NodeKind
    stats: Stats
    children: tuple[Node, ...] = ()
    """Most memory first (most keys where memory is not known)."""
    distinct: Figure | None = None
    """For a pattern, how many different segments it stands for, if they were counted."""
    holds_names: bool = False
    """Whether this is `<id>` and stands for names, too, since their number grows with the keys."""
    examples: tuple[Name, ...] = ()

    @property
    def is_of_names(self) -> bool:
        """Whether it stands for any segment that has no node of its own and no form: `<*>`, or `<id>` of names."""
        return self.kind is NodeKind.PATTERN and (self.name in ANY_NAMES or self.holds_names)

    @property
    def step(self) -> Step:
        return Step(self.name, self.separator, self.kind)

    @property
    def shown(self) -> bytes:
        """Its name as it is shown: that of a real segment `<id>` begins with a backslash."""
        return as_name(self.name) if self.kind is NodeKind.LITERAL else self.name

    def walk(self, path: tuple[Node, ...] = ()) -> Iterator[tuple[Node, ...]]:
        waiting = [(*path, self)]
        while waiting:
            here = waiting.pop()
            yield here
            waiting += [(*here, child) for child in reversed(here[-1].children)]


class TypeReport(Struct, frozen=True, gc=False):
    """All keys of one type."""

    name: Name = field(name="type")
    stats: Stats
    length: Quantiles | None
    unit: Text = field(name="length_unit")
    """The unit of a length: bytes, fields, members …"""
    lengths: LengthBins | None = field(default=None, name="length_keys")
    """Keys by LENGTH_EDGES; estimates where most keys were not asked, None where no length is known."""


class EncodingReport(Struct, frozen=True, gc=False):
    """Keys of one type in one encoding, as the server names both."""

    key_type: Name = field(name="type")
    encoding: Name
    keys: Figure
    """An estimate where only every n-th key was asked."""
    share: Figure = field(name="share_of_type")
    """Of the keys of this type, 0 … 1."""


class KeySizes(Struct, frozen=True, gc=False):
    """One histogram of `INFO keysizes`: exact, over the whole database, kept by the server itself."""

    name: Text
    """As the server names it: `distrib_strings_sizes`."""
    bins: tuple[tuple[Count, Count], ...]
    """(lower bound of the bin, keys)."""


class KeyRecord(Struct, frozen=True, gc=False):
    """One key of a list of biggest or hottest."""

    key: Name
    key_type: Name | None = field(default=None, name="type")
    memory_bytes: Count | None = None
    length: Count | None = None
    ttl_ms: Annotated[int, Meta(ge=-1, le=LARGEST_COUNT)] | None = None
    """-1: it does not expire."""
    idle_s: Count | None = None
    frequency: Count | None = None
    encoding: Name | None = None
    asked_at_s: Number = 0.0
    note: Text = ""
    """A safe sentence, such as why its memory was not asked."""

    @property
    def expires_at_s(self) -> float | None:
        return None if self.ttl_ms is None or self.ttl_ms < 0 else self.asked_at_s + self.ttl_ms / 1000


class BigReport(Struct, frozen=True, gc=False):
    """The biggest keys, largest first in each list. Complete only in an exact report.

    Where lengths are asked of some keys, the lists by length are complete but for the types in `length_not_asked`.
    Where names are very long, a list ends early; no key is left out above its last.
    """

    by_memory: tuple[KeyRecord, ...] = ()
    by_length: tuple[KeyRecord, ...] = ()
    """Only types whose length is a number of elements; strings are in `by_type_length`."""
    by_type_memory: dict[Name, tuple[KeyRecord, ...]] = {}
    by_type_length: dict[Name, tuple[KeyRecord, ...]] = {}
    over: dict[Name, Figure] = field(default={}, name="over_threshold")
    """By type, how many keys are above the thresholds of the preset in use."""
    length_not_asked: dict[Name, Count | None] = {}
    """By type, where the list by length may lack keys since not all were asked: how long those are at most, or null."""


class HotSource(StrEnum):
    """How hot keys were found, best source first."""

    SERVER = "the server's own hot-key report"
    FREQUENCY = "LFU counters (OBJECT FREQ)"
    IDLE = "idle time (OBJECT IDLETIME)"
    NONE = "nothing"


class HotKey(Struct, frozen=True, gc=False):
    """A key and its value in a list of hot keys."""

    record: KeyRecord
    value: Number
    at_least: bool = False
    """Whether the counter is at its maximum, so that the value may be higher and such keys have no rank."""


class HotList(Struct, frozen=True, gc=False):
    """Hot keys by one measure, hottest first."""

    title: Text
    unit: Text
    """`accesses/min`, `µs of CPU`, `bytes of network traffic`, `seconds idle`, `queries/s`."""
    keys: tuple[HotKey, ...]


class SlotLoad(Struct, frozen=True, gc=False):
    """Metrics of one slot from CLUSTER SLOT-STATS."""

    slot: SlotNumber
    values: dict[Text, Count]
    """By the server's name of the metric, such as key-count, cpu-usec, memory-bytes, network-bytes-in."""


class NodeLoad(Struct, frozen=True, gc=False):
    """What a node of a cluster says that the commands on its most loaded slots took."""

    node: Text
    cpu_us: Count
    """CPU time in all, since the node counts it."""
    at_least: bool = False
    """Whether there may be more slots than it was asked for."""


class HotReport(Struct, frozen=True, gc=False):
    """The hottest keys from the best source there is."""

    source: HotSource = HotSource.NONE
    about: Text = ""
    """What the source measures and since when; a safe sentence."""
    age_s: Number | None = None
    better: tuple[Text, ...] = ()
    """Why a better source is missing and what would enable it, each a safe sentence."""
    lists: tuple[HotList, ...] = ()
    slots: tuple[SlotLoad, ...] = ()
    lfu: LfuSettings | None = None
    idle_basis: IdleBasis = IdleBasis.ACCESS
    nodes: tuple[NodeLoad, ...] = ()

    @property
    def ranks_by_use(self) -> bool:
        """Whether it says which keys are used most, not only which were used last."""
        return self.source in (HotSource.SERVER, HotSource.FREQUENCY)


class SlotTag(Struct, frozen=True, gc=False):
    """A hash tag that loads a slot."""

    slot: SlotNumber
    tag: Name
    keys: Figure
    memory_bytes: Figure | None
    at_least: bool = False
    """Whether counting began after its first key, so that it may be more."""


class SlotsReport(Struct, frozen=True, gc=False):
    """Load by hash slot: on a cluster as it is, else as it would be."""

    keys: SlotCounts = field(default_factory=lambda: array("Q", bytes(8 * SLOTS)))
    """Keys (of the sample, in an estimate) of each of the 16,384 slots."""
    memory_bytes: SlotCounts | None = None
    """Bytes of each slot, None where memory is known of no key."""
    tags: tuple[SlotTag, ...] = ()
    owned: tuple[tuple[SlotNumber, SlotNumber], ...] | None = field(default=None, name="owned_slots")
    """Slots of the nodes that were asked, as inclusive pairs; None outside a cluster."""
    listed: tuple[tuple[SlotNumber, SlotNumber], ...] | None = field(default=None, name="listed_slots")
    """Where nodes list slot by slot and have not listed all: the slots that are done, others can't be compared yet.

    None elsewhere: all of the keys, or an even part of those of each slot."""
    unmeasured: SlotCounts | None = field(default=None, name="keys_without_memory")
    """Keys of each slot that its bytes leave out, since nobody knows theirs; None where there is no such key."""

    @property
    def compared(self) -> tuple[tuple[int, int], ...] | None:
        """The slots whose loads can be compared, as inclusive pairs; None for all."""
        return self.owned if self.listed is None else self.listed

    def bytes_in(self, first: int, last: int) -> tuple[int | None, bool]:
        """The bytes of slots `first` … `last`, None where nobody knows any, and whether that is of all their keys."""
        keys = sum(self.keys[first : last + 1])
        left_out = 0 if self.unmeasured is None else sum(self.unmeasured[first : last + 1])
        if self.memory_bytes is None or (keys and left_out >= keys):
            return None, False
        return sum(self.memory_bytes[first : last + 1]), not left_out


SlotRanges: TypeAlias = tuple[tuple[SlotNumber, SlotNumber], ...]


class ClusterNode(Struct, frozen=True, gc=False):
    """A node of a cluster that was asked for the keys of its slots."""

    id: Text
    label: Text
    """Host and port; of the primary, also where a replica was asked."""
    role: Text = ""
    product: Text = ""
    version: Text = ""
    slots: SlotRanges = ()
    """The slots that it served when the analysis began."""
    keys: Figure | None = None
    """Those inspected in its slots, and those of which only the name is known; in an estimate what it counts itself.

    None where nothing of it was read."""
    memory_bytes: Figure | None = None
    """Of those whose memory is known; None in an estimate."""
    memory_known_keys: Count = 0
    no_ttl_share: Figure | None = None
    """Of those keys whose TTL is known."""
    fraction: Number | None = None
    """Share of it that was scanned, 0 … 1; None where it is not known."""
    cost: CostReport = CostReport()
    failure: Text = ""

    @property
    def slot_count(self) -> int:
        return sum(last - first + 1 for first, last in self.slots)

    @property
    def served(self) -> Iterator[int]:
        return each_slot(self.slots)


class UncoveredSlots(Struct, frozen=True, gc=False):
    """Slots of which not all keys were seen."""

    slots: SlotRanges
    node: Text = ""
    """Host and port of the node that serves them; empty where none does."""
    reason: Text = ""


class MovingSlot(Struct, frozen=True, gc=False):
    """A slot that was being moved when the report was made: its keys were on two nodes."""

    slot: SlotNumber
    node: Text
    """Host and port of the node that served it still."""
    to: Text
    """Host and port of the node that was to have it."""


class ClusterReport(Struct, frozen=True, gc=False):
    """The cluster of a report on all of its nodes."""

    nodes: tuple[ClusterNode, ...]
    """In the order of their first slots."""
    uncovered: tuple[UncoveredSlots, ...] = ()
    moving: tuple[MovingSlot, ...] = field(default=(), name="moving_slots")

    def owner_of(self, slot: int) -> ClusterNode | None:
        return next((node for node in self.nodes if any(first <= slot <= last for first, last in node.slots)), None)


class SummaryLists(Struct, frozen=True, kw_only=True, gc=False):
    """Totals and lists of the inspected keys, apart from the namespaces."""

    types: tuple[TypeReport, ...] = ()
    """Most keys first."""
    encodings: tuple[EncodingReport, ...] = ()
    big: BigReport = BigReport()
    hottest: tuple[KeyRecord, ...] = ()
    """By LFU counter, highest first, else by idle time, least first; which of them is in the head's columns.

    Of the keys that were asked: one in eight, if the head's scope says so.
    """
    expiry: ExpiryReport = ExpiryReport()
    slots: SlotsReport = field(default_factory=SlotsReport)
    folded: Count = field(default=0, name="folded_keys")
    """Keys in nodes that stand for what was beyond the budget of nodes."""
    registry: RegistryReport | None = None
    """None where there was no registry, or no pattern in it."""
    naming: NamingReport | None = None
    """None where there was no registry, or all of its rules about names are off."""
    rules: dict[Text, RuleSetting] = {}


class Summary(SummaryLists, frozen=True):
    """What the inspected keys add up to."""

    root: Node


class Report(Struct, frozen=True, gc=False):
    """A whole report."""

    head: Head
    summary: Summary
    hot: HotReport = HotReport()
    keysizes: tuple[KeySizes, ...] = ()
    cluster: ClusterReport | None = None
    """None where one server was asked, be it one node of a cluster."""
