from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rtui.keyspace.namespace import Namespace
from rtui.keyspace.ordering import Sort
from rtui.keyspace.rows import Kind, Row, VisibleRows
from rtui.keyspace.segments import Separators
from rtui.keyspace.slices import Slices, finish
from rtui.keyspace.store import NamespaceStore
from tests.keyspace.naive import KEYS, SEPARATOR_SETS, Ticking, check_store


def everything(rows: VisibleRows) -> list[Row]:
    return [rows.row(index) for index in range(len(rows))]


class Browsing(RuleBasedStateMachine):
    """Adds, openings, expansions, sorting and settling in any order and interleaved, against a list of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.store = NamespaceStore(clock=Ticking())
        self.rows = VisibleRows(self.store)
        self.keys: list[bytes] = []
        self.work: list[Slices[object]] = []
        self.shown: list[Row] = []

    @precondition(lambda self: not self.keys)
    @rule(separators=SEPARATOR_SETS)
    def begin(self, separators: tuple[bytes, ...]) -> None:
        self.store = NamespaceStore(Separators(separators), clock=Ticking())
        self.rows = VisibleRows(self.store)
        self.work.clear()

    @rule(keys=st.lists(KEYS, max_size=12))
    def add(self, keys: list[bytes]) -> None:
        self.store.add(keys)
        if set(keys) & set(self.keys) or len(set(keys)) < len(keys):
            self.store.repeats_possible = True
        self.keys += keys

    def namespaces(self) -> list[Namespace]:
        return [row.namespace for row in everything(self.rows) if row.kind is Kind.NAMESPACE]

    @precondition(lambda self: self.namespaces())
    @rule(data=st.data())
    def expand(self, data: st.DataObject) -> None:
        self.work.append(self.rows.expand(data.draw(st.sampled_from(self.namespaces()))))

    @precondition(lambda self: self.namespaces())
    @rule(data=st.data())
    def open_unseen(self, data: st.DataObject) -> None:
        self.work.append(self.store.open(data.draw(st.sampled_from(self.namespaces()))))

    @precondition(lambda self: self.namespaces())
    @rule(data=st.data())
    def collapse(self, data: st.DataObject) -> None:
        self.rows.collapse(data.draw(st.sampled_from(self.namespaces())))
        self.shown = everything(self.rows)

    @rule(most_rows=st.integers(1, 30))
    def expand_all(self, most_rows: int) -> None:
        self.work.append(self.rows.expand_all(self.store.root, most_rows=most_rows))

    @rule()
    def collapse_all(self) -> None:
        self.rows.collapse_all()
        assert all(row.depth == 0 for row in everything(self.rows))

    @rule(order=st.sampled_from(Sort))
    def sort(self, order: Sort) -> None:
        self.work.append(self.rows.sort(order))

    @precondition(lambda self: self.work)
    @rule(data=st.data(), slices=st.integers(1, 5))
    def work_on(self, data: st.DataObject, slices: int) -> None:
        work = data.draw(st.sampled_from(self.work))
        for _ in range(slices):
            try:
                next(work)
            except StopIteration:
                self.work.remove(work)
                break

    @rule()
    def settle(self) -> None:
        for work in self.work:
            finish(work)
        self.work.clear()
        repeated = len(self.keys) - len(set(self.keys))
        assert finish(self.store.settle()) == repeated
        self.keys = list(dict.fromkeys(self.keys))
        self.rows.refresh()

    @rule()
    def reset(self) -> None:
        self.store.reset()
        self.keys.clear()
        assert self.rows.refresh().changed
        assert len(self.rows) == 0

    @rule(data=st.data())
    def refresh(self, data: st.DataObject) -> None:
        before = everything(self.rows)
        anchor = data.draw(st.sampled_from(before)) if before else None
        change = self.rows.refresh(anchor)
        after = everything(self.rows)
        known = set(before)
        assert [row for row in after if row in known] == before
        assert change.changed == (len(after) > len(before))
        if anchor is not None:
            assert after.index(anchor) == before.index(anchor) + change.shift

    @invariant()
    def store_is_right(self) -> None:
        check_store(self.store, self.keys)

    @invariant()
    def rows_are_numbered(self) -> None:
        rows = everything(self.rows)
        assert len(set(rows)) == len(rows)
        assert [self.rows.index_of(row) for row in rows] == list(range(len(rows)))
        assert self.rows.window(0, len(rows) + 1) == rows
        middle = len(rows) // 2
        assert self.rows.window(middle, 3) == rows[middle : middle + 3]

    @invariant()
    def rows_are_a_tree(self) -> None:
        above: list[Row] = []
        per_namespace: dict[Namespace, list[Row]] = {}
        for row in everything(self.rows):
            del above[row.depth :]
            assert len(above) == row.depth
            assert self.rows.parent_row(row) == (above[-1] if above else None)
            if above:
                assert above[-1].kind is Kind.NAMESPACE
                assert self.rows.is_expanded(above[-1].namespace)
            node = row.namespace if row.kind is Kind.KEY else row.namespace.parent
            assert node is not None
            per_namespace.setdefault(node, []).append(row)
            above.append(row)
        for rows in per_namespace.values():
            kinds = [row.kind for row in rows]
            assert kinds == sorted(kinds, key=lambda kind: kind is Kind.KEY)
            assert self.rows.first_sibling(rows[-1]) == rows[0]
            assert self.rows.last_sibling(rows[0]) == rows[-1]


TestBrowsing = pytest.mark.usefixtures("tiny")(Browsing.TestCase)
TestBrowsing.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def rows_over(keys: list[bytes]) -> VisibleRows:
    store = NamespaceStore(clock=Ticking())
    store.add(keys)
    rows = VisibleRows(store)
    rows.refresh()
    return rows


def names(rows: VisibleRows) -> list[bytes]:
    return [row.name for row in everything(rows)]


def test_counts_of_rows() -> None:
    rows = rows_over([b"a:1", b"a:2", b"b", b"a"])
    assert Counter(names(rows)) == Counter({b"a": 2, b"b": 1})
