"""Reports made by hand by what is special in each, and reports of any kind, made of their types."""

from __future__ import annotations

from array import array
from math import inf
from typing import Final

from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import (
    BigReport,
    ClusterNode,
    ColumnReport,
    ColumnState,
    Head,
    KeyRecord,
    MovingSlot,
    Node,
    NodeKind,
    Quantiles,
    Report,
    Scope,
    SlotLoad,
    SlotsReport,
    SlotTag,
    Stats,
    Summary,
    TypeReport,
    UncoveredSlots,
)
from rtui.analysis.report.members import (
    FREQUENCY_EDGES,
    IDLE_EDGES_S,
    LENGTH_EDGES,
    TTL_EDGES_S,
    Cliff,
    EntryReport,
    ExpectationReport,
    Figure,
    Name,
    NamePlace,
    NameRuleReport,
    NamingReport,
    RegistryReport,
    Text,
    UnregisteredReport,
)
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText, display_text
from tests.made_report import (
    clustered_report,
    denied_report,
    empty_report,
    estimate_report,
    made_report,
    partial_report,
    sampled_report,
)

_EVERY_BYTE: Final = bytes(range(256))
_HOSTILE_NAMES: Final = (
    _EVERY_BYTE, b'"quoted\\"', b"\\x41", b"", b" ", "ключ:é".encode(), "a\u202eb\u200b\u0301".encode(),
    b"\x1b]0;owned\x07", b"\xed\xa0\x80",
)  # fmt: skip


def hostile_report() -> Report:
    """A report of names of any bytes, with every member that may be missing, and bounds that are not known."""
    exact = made_report()
    unbounded = Estimate(3.0, 3.0, inf)
    stats = Stats(
        keys=unbounded, share_keys=0.5, types=((b"\xff\x00", unbounded), (b"string", 1)), ttl=(unbounded,) * 8
    )
    children = tuple(
        Node(name, b"\x00\xff" if at % 2 else b"", NodeKind.LITERAL, stats) for at, name in enumerate(_HOSTILE_NAMES)
    )
    root = Node(b"", b"", NodeKind.LITERAL, stats, (Node(b"<id>", b"::", NodeKind.PATTERN, stats, children, 7),))
    records = tuple(KeyRecord(name, b"\xfe", 2**53, 0, -1, 1, 255, b"\x80", 1.5, "a note") for name in _HOSTILE_NAMES)
    head = replace(
        exact.head,
        scope=Scope((b":", b"\x00\xff", b'"'), b"\xff*\\", b"\xfe", 3, 5, "full", "custom"),
        columns={**exact.head.columns, "an odd column": ColumnReport(ColumnState.NOT_ASKED, "it is odd")},
        notes=("ключ ␛[31m", "two"),
    )
    summary = replace(
        exact.summary,
        root=root,
        types=(TypeReport(b"\xfe\x00", stats, None, "fields"),),
        big=replace(exact.summary.big, by_memory=records, by_type_memory={b"\xfe": records}, over={b"\xfe": unbounded}),
        hottest=records,
        expiry=replace(
            exact.summary.expiry,
            cliffs=(Cliff((b"\xff", b""), "\\xff:", 1.0, 2.0, unbounded, Estimate(0.0, 0.5, 1.0), None, 0.25),),
        ),
        slots=replace(
            exact.summary.slots,
            tags=(SlotTag(16_383, b"\xff}", unbounded, None, at_least=True),),
            owned=((0, 5_460), (16_383, 16_383)),
            unmeasured=exact.summary.slots.keys,
        ),
        folded=12,
    )
    hot = replace(
        exact.hot,
        age_s=None,
        slots=(SlotLoad(12_182, {"key-count": 3, "cpu-usec": 2**40}),),
        lfu=LfuSettings(),
        idle_basis=list(IdleBasis)[-1],
    )
    return replace(exact, head=head, summary=summary, hot=hot)


def registered_report() -> Report:
    """A partial report with what a registry says: broken expectations, one that is not known, unused patterns."""
    partial = partial_report()
    sampled = Estimate(40.0, 51.5, 63.0)
    expectations = (
        ExpectationReport("ttl-missing", "30m..2h", 120, 9_600, 1_000, (b"shop:session:1", b"\xff")),
        ExpectationReport("length-out-of-range", "<=1000", sampled, None, 125, (b"shop:session:2",)),
        ExpectationReport("size-out-of-range", "<=10K", None, None),
    )
    entries = (
        EntryReport(
            "shop:session:<id>", 1_000, 0.5, 1_000, 80_000, 0.6, 900, ((b"hash", 1_000),), expectations,
            (b"shop:session:1",), "Sessions", "accounts", "login", "", "shared.toml",
        ),
        EntryReport("old:<id>", 3, 0.0015, 3, None, None, types=((b"set", 2), (b"zset", 1)), deprecated="use new:<id>"),
        EntryReport("cart:<id>", 0, 0.0, 0, 0, 0.0, purpose="Carts | [link](x)", owner="shop"),
    )  # fmt: skip
    unregistered = (
        UnregisteredReport(b"shop:", 1, 700, 5_000, (b"shop:\x1b[31m",)),
        UnregisteredReport(b"tmp", 3, sampled, None),
    )
    registry = RegistryReport("Shop", "shop.toml", 1_003, 0.55, 80_000, 0.6, 997, 40_000, entries, unregistered)
    places = (
        NamePlace(b"shop:", "", 12, 800, (b"shop:A b",)),
        NamePlace(b"", "cart:<id>", 3, None),
        NamePlace(b"", "", 2, None, (b"\x00",)),
    )
    rules = (
        NameRuleReport("name-case", 17, 0.01, 800, places, 0, (b"shop:A b",)),
        NameRuleReport("name-control", sampled, 0.02, None, places[2:], 9),
        NameRuleReport("name-long", 0, 0.0, 0),
    )
    summary = replace(partial.summary, registry=registry, naming=NamingReport(rules))
    return replace(partial, summary=summary)


MADE: Final[dict[str, Report]] = {
    "exact": made_report(), "estimate": estimate_report(), "sampled": sampled_report(), "partial": partial_report(),
    "denied": denied_report(), "empty": empty_report(), "hostile": hostile_report(), "clustered": clustered_report(),
    "registered": registered_report(),
}  # fmt: skip


numbers = st.integers(0, 2**53)
floats = st.floats(0, 2.0**53, allow_nan=False, allow_infinity=False)
texts: st.SearchStrategy[str] = st.text(max_size=20).map(display_text)
names = st.binary(max_size=12)
estimates = st.builds(Estimate, floats, floats, floats | st.just(inf))
figures: st.SearchStrategy[Figure] = numbers | floats | estimates


def histogram(edges: tuple[int, ...]) -> st.SearchStrategy[tuple[Figure, ...] | None]:
    """Figures for every bin, or none."""
    length = len(edges) + 1
    return st.none() | st.lists(figures, min_size=length, max_size=length).map(tuple)


st.register_type_strategy(Estimate, estimates)
st.register_type_strategy(str, texts)
st.register_type_strategy(SafeText, texts)
st.register_type_strategy(bytes, names)
st.register_type_strategy(Name, names)
st.register_type_strategy(Text, texts)
st.register_type_strategy(int, numbers)
st.register_type_strategy(float, floats)

quantiles = st.builds(Quantiles, mean=figures, p50=figures, p90=figures, p99=figures)
stats = st.builds(
    Stats,
    keys=figures,
    memory=st.none() | quantiles,
    ttl=histogram(TTL_EDGES_S),
    idle=histogram(IDLE_EDGES_S),
    frequency=histogram(FREQUENCY_EDGES),
    types=st.lists(st.tuples(names, figures), max_size=2).map(tuple),
)
lengths = st.lists(figures, min_size=len(LENGTH_EDGES), max_size=len(LENGTH_EDGES)).map(tuple)
types = st.builds(
    TypeReport, name=names, stats=stats, length=st.none() | quantiles, unit=texts, lengths=st.none() | lengths
)
nodes = st.recursive(
    st.builds(Node, stats=stats, children=st.just(())),
    lambda below: st.builds(Node, stats=stats, children=st.lists(below, max_size=3).map(tuple)),
    max_leaves=5,
)
records = st.builds(KeyRecord, ttl_ms=st.none() | st.integers(-1, 2**53))
lists = st.dictionaries(names, st.lists(records, max_size=2).map(tuple), max_size=2)
big = st.builds(
    BigReport,
    by_memory=st.lists(records, max_size=2).map(tuple),
    by_type_memory=lists,
    by_type_length=lists,
    over=st.dictionaries(names, figures, max_size=2),
)
columns = st.dictionaries(texts, st.from_type(ColumnReport), max_size=3)
tags = st.builds(SlotTag, slot=st.integers(0, SLOTS - 1))


@st.composite
def slots(draw: st.DrawFn) -> SlotsReport:
    """A few loaded slots."""
    keys = array("Q", bytes(8 * SLOTS))
    for slot, count in draw(st.dictionaries(st.integers(0, SLOTS - 1), st.integers(0, 2**64 - 1), max_size=3)).items():
        keys[slot] = count
    owned = st.none() | st.lists(st.tuples(st.integers(0, 9), st.integers(10, SLOTS - 1)), max_size=2).map(tuple)
    return SlotsReport(
        keys, draw(st.sampled_from((None, keys))), draw(st.lists(tags, max_size=2).map(tuple)), draw(owned)
    )


st.register_type_strategy(BigReport, big)
heads = st.builds(Head, columns=columns, notes=st.lists(texts, max_size=2).map(tuple), cost=..., rtui_version=texts)
st.register_type_strategy(Head, heads)
st.register_type_strategy(KeyRecord, records)
st.register_type_strategy(Stats, stats)
st.register_type_strategy(Quantiles, quantiles)
st.register_type_strategy(SlotsReport, slots())
st.register_type_strategy(Node, nodes)
summaries = st.builds(
    Summary,
    types=st.lists(types, max_size=2).map(tuple),
    encodings=...,
    big=big,
    hottest=st.lists(records, max_size=2).map(tuple),
    expiry=...,
    slots=slots(),
    folded=numbers,
)
st.register_type_strategy(Summary, summaries)
slot_numbers = st.integers(0, SLOTS - 1)
slot_ranges = st.lists(st.tuples(slot_numbers, slot_numbers), max_size=3).map(tuple)
cluster_nodes = st.builds(ClusterNode, label=texts, slots=slot_ranges, keys=figures, cost=..., failure=texts)
st.register_type_strategy(ClusterNode, cluster_nodes)
uncovered = st.builds(UncoveredSlots, slots=slot_ranges, node=texts, reason=texts)
st.register_type_strategy(UncoveredSlots, uncovered)
st.register_type_strategy(MovingSlot, st.builds(MovingSlot, slot=slot_numbers))
st.register_type_strategy(SlotLoad, st.builds(SlotLoad, slot=slot_numbers))


reports = st.from_type(Report)
"""Any report."""
