"""Names that are held have the patterns that an analysis finds, and it is said where not all of them were read."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.analysis.report.document import CoverageKind, Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators
from rtui.table.aggregates import Aggregates
from rtui.tui.browse.schema import NamePatterns

SEGMENTS = st.one_of(
    st.sampled_from([b"user", b"shop", b"", b"orders", b"{user:7}"]),
    st.integers(0, 9).map(lambda number: b"%d" % number),
    st.integers(0, 99).map(lambda number: b"page_%d" % number),
    st.binary(max_size=4),
)
NAMES = st.lists(st.lists(SEGMENTS, min_size=1, max_size=4).map(b":".join), unique=True, max_size=60)


def store_of(names: list[bytes], budget_bytes: int | None = None) -> NamespaceStore:
    store = NamespaceStore() if budget_bytes is None else NamespaceStore(budget_bytes=budget_bytes)
    store.add(names)
    return store


@settings(max_examples=30, deadline=None)
@given(NAMES, st.booleans())
def test_they_are_those_of_an_analysis(names: list[bytes], is_opened: bool) -> None:
    store = store_of(names)
    if is_opened:
        for label in list(store.root.labels):
            finish(store.open(store.root.child(label)))
    counted = Aggregates(Separators(), scope=Scope(), started_at_s=0.0)
    if names:
        counted.add_unread(names)
    patterns = NamePatterns(store, is_complete=True)
    report = finish(patterns.work())
    assert report.summary.root == finish(counted.summary()).root
    assert patterns.read == report.head.coverage.unread == len(names)
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert patterns.fraction == (1.0 if names else 0.0)


def test_names_beyond_the_memory_budget_are_known_to_be_missing() -> None:
    store = store_of([b"user:%d:%064d" % (number % 7, number) for number in range(20_000)], budget_bytes=200_000)
    report = finish(NamePatterns(store, is_complete=True).work())
    coverage = report.head.coverage
    assert coverage.kind is CoverageKind.PARTIAL
    assert coverage.total_keys == store.keys == 20_000
    assert coverage.unread < 20_000


def test_more_names_are_read_when_it_is_worth_it() -> None:
    store = store_of([b"user:%d" % number for number in range(100)])
    patterns = NamePatterns(store, is_complete=False)
    finish(patterns.work())
    assert not patterns.is_due(store, is_complete=False)
    store.add([b"user:%d" % number for number in range(100, 150)])
    assert not patterns.is_due(store, is_complete=False)
    store.add([b"user:150"])
    assert patterns.is_due(store, is_complete=False)
    assert patterns.is_due(store, is_complete=True)
    assert patterns.is_of(store)
    store.reset()
    assert not patterns.is_of(store)
    assert patterns.is_due(store, is_complete=False)


def test_after_a_scan_any_change_is_worth_it() -> None:
    store = store_of([b"a", b"b"])
    patterns = NamePatterns(store, is_complete=True)
    finish(patterns.work())
    assert not patterns.is_due(store, is_complete=True)
    store.add([b"c"])
    assert patterns.is_due(store, is_complete=True)
    assert patterns.is_due(store_of([b"a", b"b"]), is_complete=True)
