from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import CHUNK_NAMES
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.segments import Segment
from tests.keyspace.naive import KEYS, Guess, Ticking, check_memory, check_store, kept_below

BIG = [b"big:%d:%06d" % (number % 7, number) for number in range(10 * CHUNK_NAMES)]
SMALL = [b"small:%03d" % number for number in range(300)]


def squeezed(keys: list[bytes], budget_bytes: int) -> NamespaceStore:
    store = NamespaceStore(budget_bytes=budget_bytes, clock=Ticking())
    for start in range(0, len(keys), 500):
        store.add(keys[start : start + 500])
    return store


def with_big_dropped() -> tuple[NamespaceStore, Namespace]:
    store = squeezed(SMALL + BIG, 100_000)
    node = store.root.namespace_at(1)
    assert store.needs_scan(node)
    return store, node


def test_the_largest_namespace_keeps_only_its_count() -> None:
    store, big = with_big_dropped()
    small = store.root.namespace_at(0)
    assert store.memory.dropped
    assert not store.memory.full
    assert store.memory.held_bytes <= 100_000
    assert (big.count, small.count, store.keys) == (len(BIG), len(SMALL), len(BIG) + len(SMALL))
    assert not store.needs_scan(small)
    finish(store.open(small))
    assert small.key_total == len(SMALL)
    finish(store.open(big))
    assert not big.listed


def test_a_scan_of_the_prefix_fills_it() -> None:
    store, big = with_big_dropped()
    refill = Refill(store, big)
    assert (big.listed, big.opened) == (True, False)
    refill.add([b"big:1:a", b"other:1"])
    refill.add([b"big:1:b", b"big:leaf"])
    store.add([b"big:seen by another scan", b"small:new"])
    assert big.count == len(BIG)
    refill.done()
    assert big.opened
    assert (big.count, len(big.labels), big.key_total) == (3, 1, 1)
    assert store.keys == 3 + len(SMALL) + 1
    store.add([b"big:1:a"])
    assert big.count == 3
    check_store(store, [b"big:1:a", b"big:1:b", b"big:leaf", *SMALL, b"small:new"])


def test_counts_grow_while_a_scan_finds_more_than_was_known() -> None:
    store = squeezed(BIG[:5000], 20_000)
    big = store.root.namespace_at(0)
    refill = Refill(store, big)
    refill.add(BIG[:4000])
    assert (big.count, store.keys) == (5000, 5000)
    refill.add(BIG[4000:6000])
    assert (big.count, store.keys) == (6000, 6000)


def test_a_scan_that_breaks_off_leaves_the_count() -> None:
    store, big = with_big_dropped()
    held = store.memory.held_bytes
    refill = Refill(store, big)
    refill.add([key for key in BIG if key.startswith(b"big:3:")])
    child = big.namespace_at(0)
    opening = store.open(child)
    next(opening)
    store.add([b"big:new", b"big:newer"])
    refill.abandon()
    finish(opening)
    finish(store.open(child))
    assert (big.count, big.listed, store.needs_scan(big)) == (len(BIG) + 2, False, True)
    assert store.keys == len(BIG) + len(SMALL) + 2
    assert store.memory.held_bytes == pytest.approx(held, abs=2_000)
    check_memory(store)
    refill.add(BIG)
    refill.done()
    assert big.count == len(BIG) + 2
    again = Refill(store, big)
    again.add(BIG)
    again.done()
    assert big.count == len(BIG)


def test_a_refill_of_a_store_that_was_reset_changes_nothing() -> None:
    store, big = with_big_dropped()
    refill = Refill(store, big)
    store.reset()
    refill.add(BIG)
    refill.done()
    refill.abandon()
    assert (store.keys, store.memory.held_bytes, len(store.root.labels)) == (0, 0, 0)


def test_only_what_needs_a_scan_is_refilled() -> None:
    store = squeezed([b"a:1"], 1_000)
    with pytest.raises(ValueError, match="needs a scan"):
        Refill(store, store.root.namespace_at(0))


def test_a_refill_under_a_tight_budget_drops_what_lies_below() -> None:
    store = squeezed(BIG, 100_000)
    big = store.root.namespace_at(0)
    refill = Refill(store, big)
    for start in range(0, len(BIG), 500):
        refill.add(BIG[start : start + 500])
    refill.done()
    assert store.memory.held_bytes <= 100_000
    assert [big.count_at(ordinal) for ordinal in range(7)] == [
        sum(key.startswith(b"big:%d:" % number) for key in BIG) for number in range(7)
    ]
    assert any(store.needs_scan(big.namespace_at(ordinal)) for ordinal in range(7))


def test_keys_of_the_root_beyond_the_budget_are_only_counted() -> None:
    keys = [b"%020d" % number for number in range(10_000)]
    store = squeezed(keys, 50_000)
    assert store.memory.full
    assert store.keys == len(keys)
    assert 0 < store.root.key_total < len(keys)
    assert store.root.key_total + store.root.unlisted == len(keys)
    assert store.memory.held_bytes < 70_000


def test_namespaces_beyond_the_budget_are_only_counted() -> None:
    keys = [b"%020d:x" % (number % 9_000) for number in range(20_000)]
    store = squeezed(keys, 50_000)
    root = store.root
    listed = sum(root.count_at(ordinal) for ordinal in range(len(root.labels)))
    assert store.keys == len(keys)
    assert listed + root.unlisted == len(keys)
    assert store.memory.held_bytes < 150_000
    counted_only = root.namespace_at(0)
    assert counted_only.count == 3
    assert store.needs_scan(counted_only)


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(KEYS, max_size=15), max_size=8), st.integers(0, 1500))
def test_counts_are_right_whatever_the_budget(batches: list[list[bytes]], budget_bytes: int) -> None:
    store = NamespaceStore(budget_bytes=budget_bytes, clock=Ticking())
    keys: list[bytes] = []
    for batch in batches:
        store.add(batch)
        keys += batch
        for ordinal in range(len(store.root.labels)):
            finish(store.open(store.root.namespace_at(ordinal)))
    assert store.keys == len(keys)
    check_memory(store)
    waiting = [store.root]
    while waiting:
        node = waiting.pop()
        prefix = node.path()
        if b"{" not in prefix:
            assert node.count <= sum(key.startswith(prefix) for key in keys)
        if node.children is None:
            assert len(kept_below(node)) == (0 if node.dropped else node.count)
            continue
        listed = sum(node.count_at(ordinal) for ordinal in range(len(node.labels))) + node.key_total
        assert listed + node.unlisted == node.count
        waiting += [node.namespace_at(ordinal) for ordinal in range(len(node.labels))]


def test_estimates_of_what_an_abandoned_refill_forgot_are_dropped() -> None:
    store, big = with_big_dropped()
    store.expect((Segment(b"big", b":"), Segment(b"expected", b":")), Guess())
    refill = Refill(store, big)
    assert b"expected:" in big.labels
    refill.abandon()
    again = Refill(store, big)
    again.add([b"big:1:a"])
    store.drop_estimates()
    assert big.labels == [b"1:"]
    again.done()
    check_memory(store)
    assert store.keys == 1 + len(SMALL)
