"""Reports of any kind, made of their types: whatever a report may hold, some of these hold."""

from __future__ import annotations

from array import array
from math import inf

from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import (
    BigReport,
    ClusterNode,
    ColumnReport,
    Head,
    KeyRecord,
    MovingSlot,
    Node,
    Quantiles,
    Report,
    SlotLoad,
    SlotsReport,
    SlotTag,
    Stats,
    Summary,
    TypeReport,
    UncoveredSlots,
)
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, LENGTH_EDGES, TTL_EDGES_S, Figure, Name, Text
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText, display_text

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
