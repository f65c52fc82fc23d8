from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import FilteredStore
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import CHUNK_NAMES, PackedNames
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.segments import Segment, Separators
from tests.conftest import examples, known
from tests.grammar import Grammar
from tests.keyspace.naive import (
    KEYS,
    SEPARATOR_SETS,
    Guess,
    Ticking,
    check_same,
    check_store,
    find,
    kept_below,
    split_names,
)


def filled(*keys: bytes) -> NamespaceStore:
    store = NamespaceStore(clock=Ticking())
    store.add(keys)
    return store


def open_everything(store: NamespaceStore) -> None:
    waiting = [store.root]
    while waiting:
        node = waiting.pop()
        finish(store.open(node))
        waiting += [node.namespace_at(ordinal) for ordinal in range(len(node.labels))]


def path(*names: bytes) -> tuple[Segment, ...]:
    return tuple(Segment(name, b":") for name in names)


def labels(node: Namespace) -> list[bytes]:
    return list(node.labels)


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(KEYS, max_size=8), max_size=5), SEPARATOR_SETS)
def test_opened_everywhere_or_nowhere_the_same_keys(batches: list[list[bytes]], separators: tuple[bytes, ...]) -> None:
    closed = NamespaceStore(Separators(separators))
    listed = NamespaceStore(Separators(separators), clock=Ticking())
    keys: list[bytes] = []
    for batch in batches:
        keys += batch
        closed.add(batch)
        listed.add(batch)
        open_everything(listed)
        check_store(closed, keys)
        check_store(listed, keys)
    open_everything(closed)
    assert [node.path() for node in listed_nodes(closed)] == [node.path() for node in listed_nodes(listed)]


def listed_nodes(store: NamespaceStore) -> list[Namespace]:
    found = []
    waiting = [store.root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += [node.namespace_at(node.labels.index(label)) for label in sorted(node.labels)]
    return found


def test_a_key_and_a_namespace_of_one_name() -> None:
    store = filled(b"user", b"user:1")
    assert labels(store.root) == [b"user:"]
    assert list(store.root.keys or ()) == [b"user"]


def test_empty_segments_are_real() -> None:
    store = filled(b"", b":", b"::", b"a:", b"a::b", b":a")
    open_everything(store)
    assert store.root.count == 6
    assert list(store.root.keys or ()) == [b""]
    empty = known(find(store, path(b"")))
    assert (empty.name, empty.path(), empty.count) == (b"", b":", 3)
    assert sorted(empty.keys or ()) == [b"", b"a"]
    a = known(find(store, path(b"a")))
    assert (list(a.keys or ()), labels(a)) == ([b""], [b":"])


def test_a_hash_tag_is_one_segment_only_where_redis_hashes_it() -> None:
    store = filled(b"{user:1}:cart", b"x{a}:{b:c}", b"y:{d:e}:f")
    open_everything(store)
    assert b"{user:1}:" in labels(store.root)
    assert labels(known(find(store, path(b"x{a}")))) == [b"{b:"]
    assert known(find(store, path(b"y", b"{d:e}"))).count == 1


def test_a_namespace_is_the_same_object_each_time() -> None:
    store = filled(b"a:b:c")
    node = store.root.namespace_at(0)
    store.add([b"a:b:d", b"a:x"])
    assert store.root.namespace_at(0) is node
    assert find(store, path(b"a")) is node
    assert (node.count, node.ordinal, node.segments()) == (3, 0, path(b"a"))


def test_separators_that_end_the_same_name_are_two_namespaces() -> None:
    store = NamespaceStore(Separators((b":", b"::", b"/")))
    store.add([b"a:1", b"a::1", b"a/1", b"a/2"])
    open_everything(store)
    nodes = [store.root.namespace_at(ordinal) for ordinal in range(3)]
    assert [(node.name, node.separator, node.count) for node in nodes] == [
        (b"a", b":", 1),
        (b"a", b"::", 1),
        (b"a", b"/", 2),
    ]


def test_keys_that_arrive_during_an_opening() -> None:
    keys = [b"a:%d:%d" % (number % 50, number) for number in range(3 * CHUNK_NAMES)]
    store = filled(*keys)
    node = store.root.namespace_at(0)
    opening = store.open(node)
    next(opening)
    assert (node.listed, node.opened) == (True, False)
    assert 0 < sum(node.count_at(ordinal) for ordinal in range(len(node.labels))) < len(keys)
    late = [b"a:0:late", b"a:new:1", b"a:leaf", b"b"]
    store.add(late)
    other = store.open(node)
    next(other)
    finish(opening)
    assert node.opened
    finish(other)
    check_store(store, keys + late)


def test_what_an_opening_hands_on_is_not_held_twice() -> None:
    keys = [b"a:%06d" % number for number in range(5 * CHUNK_NAMES)]
    store = filled(*keys)
    held = store.memory.held_bytes
    node = store.root.namespace_at(0)
    opening = store.open(node)
    next(opening)
    assert node.key_total > 0
    assert store.memory.held_bytes <= held + 1000
    finish(opening)
    assert node.key_total == len(keys)
    assert store.memory.held_bytes <= held + 1000


def test_opening_after_a_reset_does_nothing() -> None:
    store = filled(*[b"a:%d:x" % number for number in range(3 * CHUNK_NAMES)])
    node = store.root.namespace_at(0)
    opening = store.open(node)
    next(opening)
    store.complete = True
    store.reset()
    finish(opening)
    finish(store.open(node))
    assert (store.keys, store.memory.held_bytes, store.complete, len(store.root.labels)) == (0, 0, False, 0)


def test_a_hundred_thousand_segments_in_one_key() -> None:
    key = b":".join([b"s"] * 100_000)
    store = filled(key, b"s:x")
    node = store.root
    for _ in range(2_000):
        finish(store.open(node))
        node = node.namespace_at(0)
    assert node.count == 1
    assert node.path() == b"s:" * 2_000
    store.add([key, key])
    assert node.count == 3
    assert len(kept_below(node)) == 3


def test_a_megabyte_key() -> None:
    long = b"a:" + b"x" * 1_000_000
    store = filled(b"a:1", long, b"a:2")
    node = store.root.namespace_at(0)
    finish(store.open(node))
    assert [len(name) for name in node.keys or ()] == [1, 1_000_000, 1]


def test_revision_is_raised_by_every_change() -> None:
    store = NamespaceStore()
    seen = [store.revision]
    store.add([b"a:b"])
    seen.append(store.revision)
    finish(store.open(store.root.namespace_at(0)))
    seen.append(store.revision)
    store.expect(path(b"z"), Guess())
    seen.append(store.revision)
    store.drop_estimates()
    seen.append(store.revision)
    store.reset()
    seen.append(store.revision)
    assert seen == sorted(set(seen))


# repeats


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(KEYS, max_size=40), st.data(), SEPARATOR_SETS)
def test_settling_removes_repeats_everywhere(
    keys: list[bytes], data: st.DataObject, separators: tuple[bytes, ...]
) -> None:
    again = data.draw(st.lists(st.sampled_from(keys), max_size=20)) if keys else []
    store = NamespaceStore(Separators(separators), clock=Ticking())
    store.add(keys)
    nodes = [store.root, *(store.root.namespace_at(ordinal) for ordinal in range(len(store.root.labels)))]
    for node in data.draw(st.lists(st.sampled_from(nodes), max_size=3)):
        finish(store.open(node))
    store.add(again)
    store.repeats_possible = True
    assert finish(store.settle()) == len(keys) + len(again) - len(set(keys))
    assert not store.repeats_possible
    check_store(store, list(set(keys)))


@pytest.mark.usefixtures("tiny")
def test_a_namespace_opened_while_repeats_are_removed() -> None:
    keys = [b"a:%d:%d" % (number % 3, number) for number in range(40)]
    store = filled(*keys, *keys)
    store.repeats_possible = True
    settling = store.settle()
    for _ in range(4):
        next(settling)
    finish(store.open(store.root.namespace_at(0)))
    finish(settling)
    check_store(store, keys)


@pytest.mark.usefixtures("tiny")
def test_settling_finishes_an_opening_first() -> None:
    keys = [b"a:%d" % number for number in range(20)]
    store = filled(*keys)
    opening = store.open(store.root.namespace_at(0))
    next(opening)
    store.add(keys)
    store.repeats_possible = True
    assert finish(store.settle()) == len(keys)
    finish(opening)
    check_store(store, keys)


@pytest.mark.usefixtures("tiny")
def test_keys_that_arrive_while_repeats_are_removed() -> None:
    keys = [b"a:%d" % number for number in range(10)] + [b"%d" % number for number in range(10)]
    late = [b"late", b"a:late", b"a:later:on"]
    for slices in range(100):
        store = filled(*keys, *keys)
        store.repeats_possible = True
        settling = store.settle()
        for _ in range(slices):
            next(settling, None)
        store.add(late)
        finish(settling)
        check_store(store, keys + late)


@pytest.mark.usefixtures("tiny")
def test_settling_keeps_the_order_of_keys() -> None:
    store = filled(b"c", b"a", b"b", b"a", b"d", b"c", b"e")
    store.repeats_possible = True
    finish(store.settle())
    assert list(store.root.keys or ()) == [b"c", b"a", b"b", b"d", b"e"]


def test_settling_without_repeats_possible_looks_at_nothing() -> None:
    store = filled(b"a", b"a")
    assert finish(store.settle()) == 0
    assert store.keys == 2


@pytest.mark.usefixtures("tiny")
def test_settling_a_store_that_was_reset_meanwhile() -> None:
    store = filled(*[b"a:%d" % (number % 20) for number in range(40)])
    store.repeats_possible = True
    settling = store.settle()
    next(settling)
    store.reset()
    store.add([b"z:1"])
    held = store.memory.held_bytes
    finish(settling)
    assert (store.keys, store.memory.held_bytes) == (1, held)


# estimates


def test_what_is_expected_is_listed_before_any_key() -> None:
    store = NamespaceStore()
    store.expect(path(b"shop"), Guess(value=90))
    store.expect(path(b"shop", b"user"), Guess(value=60))
    store.expect(path(b"shop", b"gone"), Guess(value=1))
    shop = store.root.namespace_at(0)
    assert (shop.name, shop.count, shop.estimate) == (b"shop", 0, Guess(value=90))
    assert store.keys == 0
    store.add([b"shop:user:1", b"shop:cart:1"])
    finish(store.open(shop))
    assert Counter(labels(shop)) == Counter([b"user:", b"gone:", b"cart:"])
    user = known(find(store, path(b"shop", b"user")))
    assert (user.count, user.estimate) == (1, Guess(value=60))


def test_what_was_only_expected_disappears() -> None:
    store = NamespaceStore()
    for name in (b"a", b"b", b"c"):
        store.expect(path(name), Guess())
        store.expect(path(name, b"x"), Guess())
    store.add([b"b:x:1", b"c:y"])
    held_nodes = [store.root.namespace_at(ordinal) for ordinal in range(3)]
    finish(store.open(held_nodes[2]))
    changes = store.watch()
    store.drop_estimates()
    assert labels(store.root) == [b"b:", b"c:"]
    assert [node.ordinal for node in held_nodes] == [-1, 0, 1]
    assert [node.estimate for node in held_nodes[1:]] == [None, None]
    assert labels(held_nodes[2]) == []
    assert changes.reshaped == {store.root, held_nodes[2]}
    finish(store.open(held_nodes[1]))
    assert labels(held_nodes[1]) == [b"x:"]


def test_what_is_exact() -> None:
    store = filled(*[b"a:%d:x" % (number % 3) for number in range(3 * CHUNK_NAMES)])
    a = store.root.namespace_at(0)
    assert not a.is_exact(complete=store.complete)
    store.complete = True
    opening = store.open(a)
    next(opening)
    assert a.is_exact(complete=store.complete)
    child = a.namespace_at(0)
    assert not child.is_exact(complete=store.complete)
    finish(opening)
    assert child.is_exact(complete=store.complete)


def test_a_namespace_with_an_estimate_weighs_what_is_expected_until_more_is_seen() -> None:
    store = NamespaceStore()
    store.expect(path(b"a"), Guess(value=2))
    assert store.root.weights([0]) == [2]
    store.add([b"a:%d" % number for number in range(5)])
    assert store.root.weights([0]) == [5]


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
