"""Keys that come split already make the same tree as keys that the store splits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import FilteredStore
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import CHUNK_NAMES, PackedNames
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.segments import Separators
from tests.examples import examples
from tests.grammar import Grammar
from tests.keyspace.naive import KEYS, Guess, Ticking, check_same, check_store, find, split_names

ONE_BYTE = st.sampled_from([(b":",), (b":",), (b":", b"/"), (b"/", b":", b"\xff"), (b"{",), ()])

STEPS = st.lists(
    st.tuples(st.sampled_from(["open", "begin", "drop", "refill", "fill", "done", "settle", "expect", "forget"]), KEYS)
    | st.tuples(st.just("add"), st.lists(KEYS, max_size=12)),
    max_size=12,
)


class Driven:
    """A store that is driven step by step, with the node that a step is about found by the segments of a key."""

    def __init__(self, separators: Separators, *, splits: bool) -> None:
        self.store = NamespaceStore(separators, clock=Ticking())
        self.changes = self.store.watch()
        self.filtered = FilteredStore(self.store, b"a")
        finish(self.filtered.work())
        self.refill: Refill | None = None
        self.splits = splits

    def add(self, keys: list[bytes]) -> None:
        if self.splits:
            self.store.add_split(split_names(keys, self.store.separators))
        else:
            self.store.add(keys)

    def take(self, step: str, key: bytes) -> None:
        store = self.store
        path = [segment for segment in store.separators.segments(key) if segment.separator]
        node = find(store, path[:1]) or store.root
        if step == "open":
            finish(store.open(node))
        elif step == "begin":
            next(store.open(node), None)
        elif step == "drop" and node is not store.root and node.children is None:
            store.forget(node)
        elif step == "refill" and node.dropped and node.children is None:
            self.refill = Refill(store, node)
        elif step == "fill" and self.refill is not None:
            self.refill.add([key])
        elif step == "done" and self.refill is not None:
            self.refill.done()
        elif step == "settle":
            store.repeats_possible = True
            finish(store.settle())
        elif step == "expect" and path:
            store.expect(path, Guess())
        elif step == "forget":
            store.drop_estimates()


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(300))
@given(ONE_BYTE, STEPS)
def test_the_same_tree_whatever_is_done_to_it(
    separators: tuple[bytes, ...], steps: list[tuple[str, bytes | list[bytes]]]
) -> None:
    plain, split = (Driven(Separators(separators), splits=splits) for splits in (False, True))
    for step, about in steps:
        for driven in (plain, split):
            if isinstance(about, list):
                driven.add(about)
            else:
                driven.take(step, about)
        check_same(plain.store, split.store)
        check_same(plain.filtered, split.filtered)
        for grown in ("grown", "reshaped"):
            paths = [{node.path() for node in getattr(driven.changes, grown)} for driven in (plain, split)]
            assert paths[0] == paths[1]


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ONE_BYTE, st.lists(st.lists(KEYS, max_size=8), max_size=5))
def test_counts_labels_and_names_are_those_of_the_model(
    separators: tuple[bytes, ...], batches: list[list[bytes]]
) -> None:
    store = NamespaceStore(Separators(separators))
    for batch in batches:
        store.add_split(split_names(batch, store.separators))
    check_store(store, [key for batch in batches for key in batch])


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget_bytes", [None, 250_000, 60_000])
def test_a_keyspace_of_the_grammar_within_a_budget(seed: int, budget_bytes: int | None) -> None:
    keys = [write[1] for write in Grammar(seed, 300).writes(30_000) if isinstance(write[1], bytes)]
    plain, split = (NamespaceStore(budget_bytes=budget_bytes) for _ in range(2))
    for number, start in enumerate(range(0, len(keys), 1000)):
        batch = keys[start : start + 1000]
        plain.add(batch)
        split.add_split(split_names(batch, split.separators))
        if number == 10:
            for store in (plain, split):
                finish(store.open(store.root.child(min(store.root.labels))))
    check_same(plain, split)


def test_once_memory_is_full_keys_are_only_counted() -> None:
    stores = [NamespaceStore(budget_bytes=5_000) for _ in range(2)]
    batches = [[b"%d:%d" % (part, number) for number in range(20)] for part in range(40)]
    batches += [[b"flat", *(b"7:%d" % number for number in range(30))], [b"new:1", b"5:x", b"late:%d" % 2]]
    for batch in batches:
        stores[0].add(batch)
        stores[1].add_split(split_names(batch, stores[1].separators))
        check_same(*stores)
    assert stores[1].memory.full
    assert stores[1].root.unlisted > 0
    assert stores[1].keys == sum(map(len, batches))


def test_a_chunk_goes_on_where_the_last_one_ended() -> None:
    store = NamespaceStore()
    for start in range(0, 5 * CHUNK_NAMES, 700):
        store.add_split(split_names([b"a:%d" % number for number in range(start, start + 700)], store.separators))
    kept = store.root.namespace_at(0).suffixes
    assert isinstance(kept, PackedNames)
    assert [len(chunk) for _, chunk in kept.chunks()][:5] == [CHUNK_NAMES] * 5


def test_keys_of_opened_namespaces_go_down_to_its_children() -> None:
    store = NamespaceStore()
    store.add([b"a:b:1", b"a:c"])
    node = store.root.namespace_at(0)
    finish(store.open(node))
    changes = store.watch()
    store.add_split(split_names([b"a:b:2", b"a:d:3", b"a:d:4", b"z", *(b"a:e%d" % n for n in range(9))], Separators()))
    assert (node.count, node.key_total, node.labels) == (14, 10, [b"b:", b"d:"])
    assert changes.grown == {store.root, node}
    assert isinstance(node.namespace_at(1), Namespace)


def test_matches_of_a_filter_grow_with_keys_that_come_split() -> None:
    store = NamespaceStore()
    found = FilteredStore(store, b"P:1", ignore_case=True)
    finish(found.work())
    keys = [b"shop:%d" % number for number in range(20)] + [b"p:1", b"ship:2", b"p1", b"top:10"]
    store.add_split(split_names(keys, store.separators))
    assert sorted(found.root.labels) == [b"p:", b"shop:", b"top:"]
    assert found.keys == 11 + 1 + 1
