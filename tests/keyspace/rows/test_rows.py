from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rtui.keyspace.rows import listing
from rtui.keyspace.rows.listing import BY_COUNT, Sort, WeightsAt
from rtui.keyspace.rows.rows import ALL_BELOW_LEVELS, Row, RowKind, VisibleRows
from rtui.keyspace.slices import Slices, finish
from rtui.keyspace.store.namespace import SHARD_ABOVE, Namespace
from rtui.keyspace.store.packed_names import CHUNK_NAMES
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.segments import Segment, Separators
from tests.conftest import examples
from tests.keyspace.naive import KEYS, SEPARATOR_SETS, Guess, Path, Ticking, check_store, divided, naturally


def everything(rows: VisibleRows) -> list[Row]:
    return [rows.row(index) for index in range(len(rows))]


def subject(row: Row) -> tuple[RowKind, Namespace, int]:
    """What a row stands for, whatever it is called: a chain that has parted has another name."""
    return row.kind, row.namespace, row.ordinal


class Browsing(RuleBasedStateMachine):
    """Adds, opens, expands, sorts and settles in any order and interleaved, and compares with a list of keys."""

    joins_chains = False

    def __init__(self) -> None:
        super().__init__()
        self.store = NamespaceStore(clock=Ticking())
        self.rows = VisibleRows(self.store, joins_chains=self.joins_chains)
        self.keys: list[bytes] = []
        self.work: list[Slices[object]] = []
        self.shown: list[Row] = []

    @precondition(lambda self: not self.keys)
    @rule(separators=SEPARATOR_SETS)
    def begin(self, separators: tuple[bytes, ...]) -> None:
        self.store = NamespaceStore(Separators(separators), clock=Ticking())
        self.rows = VisibleRows(self.store, joins_chains=self.joins_chains)
        self.work.clear()

    @rule(keys=st.lists(KEYS, max_size=12))
    def add(self, keys: list[bytes]) -> None:
        self.store.add(keys)
        if set(keys) & set(self.keys) or len(set(keys)) < len(keys):
            self.store.repeats_possible = True
        self.keys += keys

    def namespaces(self) -> list[Namespace]:
        return [row.namespace for row in everything(self.rows) if row.kind is RowKind.NAMESPACE]

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

    @rule(chance=st.randoms(use_true_random=False))
    def settle(self, chance: Random) -> None:
        repeated = len(self.keys) - len(set(self.keys))
        self.work.append(self.store.settle())
        before = self.store.keys
        while self.work:
            work = chance.choice(self.work)
            try:
                next(work)
            except StopIteration:
                self.work.remove(work)
            self.rows_are_numbered()
            if chance.random() < 0.2:
                self.rows.refresh()
        assert before - self.store.keys == repeated
        self.keys = list(dict.fromkeys(self.keys))
        self.rows.refresh()

    @rule()
    def reset(self) -> None:
        self.store.reset()
        self.keys.clear()
        self.rows.refresh()
        assert len(self.rows) == 0

    @rule(data=st.data())
    def refresh(self, data: st.DataObject) -> None:
        before = everything(self.rows)
        anchor = data.draw(st.sampled_from(before)) if before else None
        self.rows.refresh()
        after = everything(self.rows)
        known = set(map(subject, before))
        assert [one for one in map(subject, after) if one in known] == [*map(subject, before)]
        if anchor is not None:
            assert self.rows.index_of(anchor) == [*map(subject, after)].index(subject(anchor))

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
                assert above[-1].kind is RowKind.NAMESPACE
                assert self.rows.is_expanded(above[-1].namespace)
            node = self.rows.above(row)
            assert node is not None
            per_namespace.setdefault(node, []).append(row)
            above.append(row)
        for rows in per_namespace.values():
            kinds = [row.kind for row in rows]
            assert kinds == sorted(kinds, key=lambda kind: kind is RowKind.KEY)
            assert self.rows.end_sibling(rows[-1], last=False) == rows[0]
            assert self.rows.end_sibling(rows[0], last=True) == rows[-1]


class BrowsingChains(Browsing):
    """The same where namespaces that hold one other only are shown with it in one row."""

    joins_chains = True

    @invariant()
    def names_lead_to_keys(self) -> None:
        """The names of the rows above a row, and its own, are the segments of what it stands for."""
        above: list[Row] = []
        for row in everything(self.rows):
            del above[row.depth :]
            start = b"" if not above else above[-1].key()
            rest = row.key()[len(start) :]
            assert row.key().startswith(start)
            assert rest.startswith(row.name)
            assert len(rest) - len(row.name) == (0 if row.kind is RowKind.KEY else len(row.namespace.separator))
            above.append(row)

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def reveal(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.keys))
        row = finish(self.rows.reveal(key))
        assert row is not None
        assert row.key() == key
        self.rows.refresh()
        assert everything(self.rows)[self.rows.index_of(row) or 0] == row


TestBrowsingChains = pytest.mark.usefixtures("tiny")(BrowsingChains.TestCase)
TestBrowsingChains.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)

TestBrowsing = pytest.mark.usefixtures("tiny")(Browsing.TestCase)
TestBrowsing.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


def rows_over(keys: list[bytes]) -> VisibleRows:
    store = NamespaceStore(clock=Ticking())
    store.add(keys)
    return VisibleRows(store)


def names(rows: VisibleRows) -> list[bytes]:
    return [row.name for row in everything(rows)]


def named(rows: VisibleRows, *path: bytes) -> Namespace:
    """The namespace at a path, expanded down to it."""
    node = rows.store.root
    for name in path:
        node = node.child(name + b":")
        finish(rows.expand(node))
    return node


def test_namespaces_by_count_then_by_name_and_keys_by_name() -> None:
    rows = rows_over([b"z", b"b:1", b"c:1", b"c:2", b"a:1", b"y"])
    assert names(rows) == [b"c", b"a", b"b", b"y", b"z"]


def test_an_expected_namespace_is_sorted_by_what_is_expected() -> None:
    store = NamespaceStore()
    store.add([b"b:1", b"b:2"])
    store.expect((Segment(b"a", b":"),), Guess(value=90))
    assert names(VisibleRows(store)) == [b"a", b"b"]


def test_what_arrives_is_listed_after_its_kind_until_sorted_again() -> None:
    rows = rows_over([b"b:1", b"k2"])
    rows.store.add([b"a:1", b"a:2", b"k1"])
    key = rows.row(1)
    rows.refresh()
    assert rows.index_of(key) == 2
    assert names(rows) == [b"b", b"a", b"k2", b"k1"]
    rows.refresh()
    assert rows.index_of(key) == 2
    finish(rows.sort(Sort.COUNT))
    assert names(rows) == [b"a", b"b", b"k1", b"k2"]
    finish(rows.sort(Sort.NAME))
    assert names(rows) == [b"a", b"b", b"k1", b"k2"]
    rows.store.add([b"0:1", b"k0"])
    rows.refresh()
    assert names(rows) == [b"a", b"b", b"0", b"k1", b"k2", b"k0"]


def test_what_disappears_leaves_the_others_in_place() -> None:
    store = NamespaceStore()
    for number, name in enumerate([b"d", b"c", b"b", b"a"]):
        store.expect((Segment(name, b":"),), Guess(value=number))
    rows = VisibleRows(store)
    finish(rows.expand(store.root.child(b"b:")))
    finish(rows.expand(store.root.child(b"c:")))
    store.add([b"c:1", b"d:1", b"d:2", b"a:1", b"e:1", b"k"])
    rows.refresh()
    assert names(rows) == [b"a", b"b", b"c", b"1", b"d", b"e", b"k"]
    anchor = rows.row(4)
    store.drop_estimates()
    rows.refresh()
    assert rows.index_of(anchor) == 3
    assert names(rows) == [b"a", b"c", b"1", b"d", b"e", b"k"]
    assert not rows.is_expanded(store.root.child(b"a:"))


def in_order(order: Sort) -> Callable[[bytes], Any]:
    return bytes if order is Sort.NAME_BYTES else naturally


@pytest.mark.parametrize("order", [order for order in Sort if order is not Sort.NAME_BYTES])
def test_numbers_that_stand_alone_are_listed_by_their_value(order: Sort) -> None:
    store = NamespaceStore()
    store.add([b"user:%b" % name for name in (b"10", b"9a", b"2", b"02", b"1", b"10b", b"v-10", b"v-9", b"a", b"")])
    store.add([b"page10:x", b"page9:x", b"page_10:x", b"page_9:x"])
    rows = VisibleRows(store)
    finish(rows.expand(store.root.child(b"user:")))
    finish(rows.sort(order))
    listed = [row.name for row in everything(rows) if row.kind is RowKind.KEY]
    assert listed == [b"", b"1", b"2", b"02", b"10", b"10b", b"9a", b"a", b"v-9", b"v-10"]
    listed = [row.name for row in everything(rows) if row.name.startswith(b"page")]
    assert listed == [b"page10", b"page9", b"page_9", b"page_10"]


@pytest.mark.usefixtures("tiny")
@given(st.lists(KEYS, max_size=60, unique=True), SEPARATOR_SETS, st.sampled_from(Sort), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sorted_as_a_naive_model_sorts(
    keys: list[bytes], separators: tuple[bytes, ...], order: Sort, is_reversed: bool
) -> None:
    store = NamespaceStore(Separators(separators), clock=Ticking())
    store.add(keys)
    other = Sort.NAME if order is Sort.COUNT else Sort.COUNT
    rows = VisibleRows(store, sort=other)
    assert finish(rows.expand_all(store.root))
    finish(rows.sort(order, is_reversed=is_reversed))
    tree = divided(keys, store.separators)
    expected: list[tuple[int, bytes]] = []

    def walk(path: Path) -> None:
        namespaces, leaves = tree[path]

        def place(one: Segment) -> tuple[float, object]:
            return (-namespaces[one] if order in BY_COUNT else 0, in_order(order)(one.name))

        for segment in sorted(namespaces, key=place)[:: -1 if is_reversed else 1]:
            expected.append((len(path), segment.name))
            walk((*path, segment))
        expected.extend((len(path), name) for name in sorted(leaves, key=in_order(order))[:: -1 if is_reversed else 1])

    walk(())
    assert [(row.depth, row.name) for row in everything(rows)] == expected


@pytest.mark.parametrize("order", [Sort.NAME, Sort.COUNT])
@pytest.mark.parametrize("keys", [b"%d", b"%d:x"])
def test_no_step_of_sorting_reads_more_names_than_a_batch(
    order: Sort, keys: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = NamespaceStore(clock=Ticking())
    store.add([keys % number for number in range(2 * listing.PER_BUCKET)])
    rows, read, most = VisibleRows(store), 0, 0

    def counted(name: bytes) -> bytes:
        nonlocal read
        read += 1
        return natural(name)

    monkeypatch.setattr(listing, "natural", counted)
    for _ in rows.sort(order):
        most, read = max(most, read), 0
    assert 0 < most <= listing.BATCH


def test_the_last_order_asked_for_is_the_one() -> None:
    rows = rows_over([b"b:1", b"b:2", b"a:1"])
    by_name = rows.sort(Sort.NAME)
    next(by_name)
    finish(rows.sort(Sort.COUNT))
    finish(by_name)
    assert names(rows) == [b"b", b"a"]
    usual = rows.sort(Sort.NAME)
    next(usual)
    finish(rows.sort(Sort.NAME, is_reversed=True))
    finish(usual)
    assert names(rows) == [b"b", b"a"]


def test_sorting_lists_what_has_just_arrived() -> None:
    rows = rows_over([b"b:1", b"k"])
    rows.store.add([b"a:1", b"a:2", b"j"])
    finish(rows.sort(Sort.NAME))
    assert names(rows) == [b"a", b"b", b"j", b"k"]


def test_sorting_after_something_disappeared() -> None:
    store = NamespaceStore(clock=Ticking())
    for name in (b"d", b"c", b"b", b"a"):
        store.expect((Segment(name, b":"),), Guess())
    store.add([b"d:1", b"b:1", b"b:2", b"a:1"])
    rows = VisibleRows(store)
    for name in (b"a", b"b", b"c", b"d"):
        named(rows, name)
    store.drop_estimates()
    finish(rows.sort(Sort.COUNT))
    assert names(rows) == [b"b", b"1", b"2", b"a", b"1", b"d", b"1"]
    assert [rows.index_of(row) for row in everything(rows)] == list(range(7))


def test_what_disappears_while_rows_are_sorted() -> None:
    store = NamespaceStore(clock=Ticking())
    for name in (b"d", b"c", b"b", b"a"):
        store.expect((Segment(name, b":"),), Guess())
    store.add([b"d:1", b"b:1"])
    rows = VisibleRows(store)
    sorting = rows.sort(Sort.NAME)
    next(sorting)
    store.drop_estimates()
    finish(sorting)
    assert names(rows) == [b"b", b"d"]
    assert [rows.index_of(row) for row in everything(rows)] == [0, 1]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("slices", range(12))
def test_what_disappears_while_a_namespace_is_expanded(slices: int) -> None:
    store = NamespaceStore(clock=Ticking())
    for name in (b"4", b"3", b"2", b"1", b"0"):
        store.expect((Segment(b"a", b":"), Segment(name, b":")), Guess())
    store.add([b"a:3:x", b"a:1:x", b"a:6:x", b"a:5:x", b"a:2:x"])
    rows = VisibleRows(store, sort=Sort.NAME)
    work = rows.expand(store.root.namespace_at(0))
    for _ in range(slices):
        next(work, None)
    store.drop_estimates()
    finish(work)
    assert names(rows) == [b"a", b"1", b"2", b"3", b"5", b"6"]
    assert [rows.index_of(row) for row in everything(rows)] == list(range(6))


def test_a_namespace_expanded_once_more_is_sorted_again() -> None:
    rows = rows_over([b"a:x:1"])
    a = named(rows, b"a")
    rows.collapse(a)
    rows.store.add([b"a:w:1", b"a:w:2"])
    finish(rows.expand(a))
    assert names(rows) == [b"a", b"w", b"x"]


def test_a_namespace_that_has_just_arrived_can_be_expanded() -> None:
    rows = rows_over([b"b:1"])
    rows.store.add([b"a:1", b"c:1"])
    named(rows, b"c")
    assert [(row.name, row.depth) for row in everything(rows)] == [(b"b", 0), (b"a", 0), (b"c", 0), (b"1", 1)]


def test_rows_are_the_same_however_they_come_to_be_listed() -> None:
    rows = rows_over([b"a:1", b"a:b:1"])
    a = named(rows, b"a")
    assert rows.row(0) == rows.row_of(a)
    assert rows.row(0) != rows.row(1)
    assert rows.row(2) == finish(rows.key_row(a, b"1"))
    assert {rows.row(0), rows.row_of(a)} == {rows.row(0)}
    assert [row.key() for row in everything(rows)] == [b"a:", b"a:b:", b"a:1"]
    assert finish(rows.key_row(a, b"2")) is None


def test_a_key_that_was_renumbered_is_found_by_its_name() -> None:
    rows = rows_over([b"x", b"x", b"y", b"z"])
    z = rows.row(3)
    rows.store.repeats_possible = True
    finish(rows.store.settle())
    assert rows.index_of(z) == 2
    assert names(rows) == [b"x", b"y", b"z"]


def test_what_is_expanded_below_stays_so() -> None:
    rows = rows_over([b"a:b:1", b"a:b:2", b"c"])
    b = named(rows, b"a", b"b")
    a = rows.store.root.namespace_at(0)
    assert len(rows) == 5
    rows.collapse(a)
    assert names(rows) == [b"a", b"c"]
    assert rows.index_of(rows.row_of(b)) is None
    rows.store.add([b"a:b:3"])
    rows.refresh()
    finish(rows.expand(a))
    assert names(rows) == [b"a", b"b", b"1", b"2", b"3", b"c"]


def test_a_namespace_is_listed_before_all_of_it_is_divided() -> None:
    rows = rows_over([b"a:%06d" % number for number in range(3 * CHUNK_NAMES)])
    a = rows.store.root.namespace_at(0)
    work = rows.expand(a)
    next(work)
    rows.refresh()
    assert 1 < len(rows) < 3 * CHUNK_NAMES
    assert rows.is_expanded(a)
    finish(work)
    assert len(rows) == 1 + 3 * CHUNK_NAMES
    assert rows.row(3 * CHUNK_NAMES).name == b"%06d" % (3 * CHUNK_NAMES - 1)


def test_expanding_what_is_expanded_moves_nothing() -> None:
    rows = rows_over([b"a:x:1"])
    a = named(rows, b"a")
    rows.store.add([b"a:w:1", b"a:w:2"])
    rows.refresh()
    finish(rows.expand(a))
    assert names(rows) == [b"a", b"x", b"w"]


def test_a_namespace_filled_by_a_scan_is_sorted_when_expanded_again() -> None:
    store = NamespaceStore(budget_bytes=10_000)
    for start in range(0, 3 * CHUNK_NAMES, 500):
        store.add([b"a:%d:%d" % (number % 2, number) for number in range(start, start + 500)])
    rows = VisibleRows(store)
    a = store.root.namespace_at(0)
    finish(rows.expand(a))
    assert names(rows) == [b"a"]
    refill = Refill(store, a)
    refill.add([b"a:1:1", b"a:2:1", b"a:2:2"])
    rows.refresh()
    assert names(rows) == [b"a", b"1", b"2"]
    refill.done()
    finish(rows.expand(a))
    assert names(rows) == [b"a", b"2", b"1"]
    finish(rows.expand(a))
    assert names(rows) == [b"a", b"2", b"1"]


def test_only_what_is_listed_can_be_expanded() -> None:
    rows = rows_over([b"a:b:1"])
    finish(rows.store.open(rows.store.root.namespace_at(0)))
    inner = rows.store.root.namespace_at(0).namespace_at(0)
    with pytest.raises(ValueError, match="not expanded"):
        rows.expand(inner)
    finish(rows.expand(rows.store.root.namespace_at(0)))
    rows.store.reset()
    with pytest.raises(ValueError, match="not expanded"):
        rows.expand(inner)


def test_open_all_below_says_when_it_stops() -> None:
    rows = rows_over([b"a:%d:%d:x" % (number % 5, number) for number in range(50)])
    a = rows.store.root.namespace_at(0)
    assert not finish(rows.expand_all(a, most_rows=20))
    assert 20 <= len(rows) <= 30
    assert finish(rows.expand_all(a))
    assert len(rows) == 1 + 5 + 50 + 50


def test_open_all_below_a_hundred_thousand_segments() -> None:
    rows = rows_over([b":".join([b"s"] * 100_000), b"s:s:s"])
    assert not finish(rows.expand_all(rows.store.root))
    assert len(rows) == ALL_BELOW_LEVELS + 1
    deepest = rows.row(ALL_BELOW_LEVELS - 1)
    assert deepest.depth == ALL_BELOW_LEVELS - 1
    assert rows.index_of(deepest) == ALL_BELOW_LEVELS - 1
    assert [row.depth for row in rows.window(ALL_BELOW_LEVELS - 1, 5)] == [ALL_BELOW_LEVELS - 1, 2]


def test_rows_of_a_store_that_was_reset_are_gone_at_once() -> None:
    rows = rows_over([b"a:b:1", b"k"])
    a = named(rows, b"a")
    shown = everything(rows)
    rows.store.reset()
    assert len(rows) == 0
    assert rows.window(0, 10) == []
    assert [rows.index_of(row) for row in shown] == [None] * 3
    assert [row.key() for row in shown] == [b"a:", b"a:b:", b"k"]
    rows.collapse(a)
    rows.store.add([b"z"])
    rows.refresh()
    assert rows.index_of(shown[0]) is None
    assert names(rows) == [b"z"]


def test_open_all_below_ends_with_a_reset() -> None:
    rows = rows_over([b"a:%d:x" % number for number in range(50)])
    work = rows.expand_all(rows.store.root)
    next(work)
    rows.store.reset()
    rows.refresh()
    assert not finish(work)


def test_revealing_a_key_expands_the_way_to_it() -> None:
    rows = rows_over([b"a:b:c", b"a:b:d", b"x", b"a:"])
    row = finish(rows.reveal(b"a:b:d"))
    assert row is not None
    assert row.key() == b"a:b:d"
    assert rows.index_of(row) is not None
    assert finish(rows.reveal(b"x")) == rows.row(len(rows) - 1)
    empty = finish(rows.reveal(b"a:"))
    assert empty is not None
    assert empty.key() == b"a:"
    for missing in (b"a:b:e", b"q:r", b"y", b""):
        assert finish(rows.reveal(missing)) is None


@pytest.mark.usefixtures("tiny")
@given(
    st.lists(st.sampled_from([b"a", b"ab", b"b", b"B", b"bb", b"bc", b""]), min_size=1, max_size=12, unique=True),
    st.lists(st.sampled_from([b"a", b"ab", b"B", b"b", b"abc"]), max_size=5, unique=True),
    st.sampled_from([b"a", b"b", b"bc", b"B", b"", b"z"]),
    st.sampled_from(Sort),
    st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_jumping_among_siblings(
    keys: list[bytes], namespaces: list[bytes], prefix: bytes, order: Sort, data: st.DataObject
) -> None:
    store = NamespaceStore(clock=Ticking())
    store.add([b"n:" + key for key in keys] + [b"n:" + name + b":x" for name in namespaces] + [b"other"])
    rows = VisibleRows(store, sort=order)
    finish(rows.expand(store.root.namespace_at(0)))
    store.add([b"n:bd", b"n:be:x"])
    rows.refresh()
    siblings = everything(rows)[1:-1]
    start = data.draw(st.integers(0, len(siblings) - 1))

    def starts(row: Row) -> bool:
        return row.name.lower().startswith(prefix.lower())

    ahead = siblings[start:] + siblings[:start]
    found = finish(rows.find_sibling(siblings[start], prefix))
    assert found == next((row for row in ahead if starts(row)), None)


def test_keys_that_are_listed_are_not_objects() -> None:
    store = NamespaceStore()
    for start in range(0, 100_000, 1000):
        store.add([b"a:%08d" % number for number in range(start, start + 1000)])
    rows = VisibleRows(store)
    held = store.memory.held_bytes
    named(rows, b"a")
    assert len(rows) == 100_001
    assert store.memory.held_bytes < held + 10_000
    assert rows.row(77_778).name == b"%08d" % 77_777


def test_what_was_forgotten_is_freed_bit_by_bit() -> None:
    store = NamespaceStore()
    rows = VisibleRows(store)
    for start in range(0, 3 * SHARD_ABOVE, 1000):
        store.add([b"a:%d:%d" % (number, number % 7) for number in range(start, start + 1000)])
    a = named(rows, b"a")
    below = [a.namespace_at(ordinal) for ordinal in range(0, len(a.labels), 1000)]
    for node in below[::2]:
        finish(rows.expand(node))
    store.reset()
    rows.refresh()
    kept = 0
    while a.children is not None or any(node.children or node.suffixes for node in below):
        kept += 1
        store.add([b"k%d" % kept])
    assert kept > 1
    assert a.labels == []
    assert all(node.keys is None for node in below)
    check_store(store, [b"k%d" % number for number in range(1, kept + 1)])


@given(st.lists(st.sampled_from([b"x", b"y", b"z", b"a:1", b"a:2", b"a:3"]), max_size=20))
def test_what_is_remembered_of_a_row_is_never_found_for_another_name(keys: list[bytes]) -> None:
    rows = rows_over(keys)
    remembered = {row: row.key() for row in everything(rows)}
    rows.store.repeats_possible = True
    finish(rows.store.settle())
    rows.refresh()
    for row in everything(rows):
        assert remembered.get(row, row.key()) == row.key()


def chained(keys: list[bytes]) -> VisibleRows:
    store = NamespaceStore()
    store.add(keys)
    return VisibleRows(store, joins_chains=True)


DEEP = [b"a:b:c:1", b"a:b:c:2", b"z:1", b"z:2", b"z:3", b"z:4"]


def test_namespaces_that_hold_one_other_only_are_one_row_once_they_are_opened() -> None:
    rows = chained(DEEP)
    assert names(rows) == [b"z", b"a"]
    finish(rows.expand(rows.row(1).namespace))
    assert [(row.depth, row.name) for row in everything(rows)] == [(0, b"z"), (0, b"a:b:c"), (1, b"1"), (1, b"2")]
    assert rows.row(1).key() == b"a:b:c:"
    rows.collapse(rows.row(1).namespace)
    assert names(rows) == [b"z", b"a:b:c"]
    finish(rows.expand(rows.store.root.child(b"a:")))
    assert names(rows) == [b"z", b"a:b:c", b"1", b"2"]


@pytest.mark.parametrize("more", [b"a:x", b"a:b:x", b"a:b:c:x", b"a:x:y", b"a:b:x:y"])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_chain_parts_where_something_else_comes(more: bytes, is_open: bool) -> None:
    rows = chained(DEEP)
    finish(rows.expand(rows.row(1).namespace))
    if not is_open:
        rows.collapse(rows.row(1).namespace)
    key = b"a:b:c:2"
    rows.store.add([more])
    rows.refresh()
    row = finish(rows.reveal(key))
    assert row is not None
    shown = everything(rows)
    assert shown[rows.index_of(row) or 0].key() == key
    assert finish(rows.reveal(more)) is not None
    assert more in [one.key() for one in everything(rows)]
    assert len({one.key() for one in shown}) == len(shown)


@pytest.mark.parametrize("more", [b"a:x", b"a:b:x"])
def test_a_key_that_comes_into_a_chain_is_revealed_before_the_next_refresh(more: bytes) -> None:
    rows = chained(DEEP)
    finish(rows.expand(rows.row(1).namespace))
    rows.store.add([more])
    row = finish(rows.reveal(more))
    assert row is not None
    assert row.key() == more


@pytest.mark.parametrize("more", [b"a:x", b"a:b:x"])
def test_the_row_of_a_collapsed_chain_stays_where_it_parts(more: bytes) -> None:
    rows = chained(DEEP)
    finish(rows.expand(rows.row(1).namespace))
    rows.collapse(rows.row(1).namespace)
    row = rows.row(1)
    rows.store.add([more])
    rows.refresh()
    assert rows.row(rows.index_of(row) or 0).key() == b"a:b:c:"
    assert not rows.is_expanded(row.namespace)


def test_a_namespace_that_goes_takes_the_rest_of_its_chain_with_it() -> None:
    rows = chained(DEEP)
    finish(rows.expand(rows.row(1).namespace))
    rows.store.forget(rows.store.root.child(b"a:").child(b"b:"))
    assert names(rows) == [b"z", b"a:b"]
    assert not rows.is_expanded(rows.row(1).namespace)


def test_a_chain_is_jumped_to_by_all_of_its_name() -> None:
    rows = chained([*DEEP, b"y:1", b"y:2"])
    finish(rows.expand(rows.store.root.child(b"a:")))
    for typed in (b"a", b"a:", b"a:b", b"A:B:c"):
        found = finish(rows.find_sibling(rows.row(0), typed))
        assert found is not None
        assert found.name == b"a:b:c"
    assert finish(rows.find_sibling(rows.row(0), b"a:c")) is None


def test_a_very_deep_name_is_several_chains() -> None:
    rows = chained([b":".join([b"a"] * 200), b":".join([b"a"] * 199 + [b"b"])])
    finish(rows.expand_all(rows.store.root))
    assert [row.depth for row in everything(rows)] == [0, 1, 2, 3, 4, 4]
    assert rows.row(4).key() == b":".join([b"a"] * 200)


@pytest.mark.usefixtures("tiny")
@given(st.lists(KEYS, max_size=40, unique=True), SEPARATOR_SETS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_key_can_be_reached_through_chains(keys: list[bytes], separators: tuple[bytes, ...]) -> None:
    store = NamespaceStore(Separators(separators), clock=Ticking())
    store.add(keys)
    rows = VisibleRows(store, joins_chains=True)
    assert finish(rows.expand_all(store.root))
    assert sorted(row.key() for row in everything(rows) if row.kind is RowKind.KEY) == sorted(keys)
    for row in everything(rows):
        if row.kind is RowKind.NAMESPACE:
            below = [one for one in everything(rows) if rows.parent_row(one) == row]
            assert len(below) != 1 or below[0].kind is RowKind.KEY


class Lengths:
    """Weighs everything by the length of its name, the longest first; of names that begin with x nothing is known."""

    def namespaces(self, node: Namespace, sort: Sort) -> WeightsAt:
        return lambda ordinals: [weigh(node.labels[ordinal]) for ordinal in ordinals]

    def keys(self, node: Namespace, sort: Sort) -> WeightsAt:
        return lambda ordinals: [weigh(node.key_at(ordinal)) for ordinal in ordinals]


def weigh(name: bytes) -> float:
    return inf if name.startswith(b"x") else -len(name)


WEIGHED = st.lists(st.text("axy019:", min_size=1, max_size=9).map(str.encode), max_size=60, unique=True)


@pytest.mark.usefixtures("tiny")
@given(WEIGHED, st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_weighed_is_sorted_by_weight_then_by_name_and_the_unknown_comes_last(
    keys: list[bytes], is_reversed: bool
) -> None:
    store = NamespaceStore(clock=Ticking())
    store.add(keys)
    rows = VisibleRows(store, weigher=Lengths())
    assert finish(rows.expand_all(store.root))
    finish(rows.sort(Sort.MEMORY, is_reversed=is_reversed))
    groups: dict[tuple[Namespace | None, RowKind], list[bytes]] = {}
    for row in everything(rows):
        label = row.name if row.kind is RowKind.KEY else row.namespace.label
        groups.setdefault((rows.above(row), row.kind), []).append(label)
    for found in groups.values():
        expected = sorted(found, key=lambda name: (weigh(name), naturally(name.removesuffix(b":"))))
        known = [name for name in expected if weigh(name) < inf]
        assert found == [*(known[::-1] if is_reversed else known), *expected[len(known) :]]
