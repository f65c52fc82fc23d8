"""A store that is filled again, and filtered."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import FilteredStore
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import CHUNK_NAMES
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.segments import Segment, Separators
from tests.keyspace.naive import KEYS, SEPARATOR_SETS, Guess, Ticking, check_memory, check_store, kept_below

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


NEEDLES = st.sampled_from([b"", b"a", b":", b"a:", b"b:a", b"bb:", b"::", b"A:B", b"{", b":a:b", b"\xff"])


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), NEEDLES, st.booleans(), SEPARATOR_SETS)
def test_finds_all_keys_that_hold_the_bytes(
    data: st.DataObject, needle: bytes, ignore_case: bool, separators: tuple[bytes, ...]
) -> None:
    store = NamespaceStore(Separators(separators), clock=Ticking())
    keys = data.draw(st.lists(KEYS, max_size=40, unique=True))
    store.add(keys)
    for ordinal in data.draw(st.lists(st.integers(0, 5), max_size=3)):
        if ordinal < len(store.root.labels):
            finish(store.open(store.root.namespace_at(ordinal)))
    found = FilteredStore(store, needle, ignore_case=ignore_case)
    work = found.work()
    for _ in range(data.draw(st.integers(0, 4))):
        next(work, None)
    late = [key for key in data.draw(st.lists(KEYS, max_size=10, unique=True)) if key not in keys]
    store.add(late)
    if data.draw(st.booleans()) and len(store.root.labels):
        finish(store.open(store.root.namespace_at(0)))
    finish(work)
    after = [key + b":later" for key in (*keys, *late) if key + b":later" not in (*keys, *late)]
    store.add(after)
    expected = [
        key for key in (*keys, *late, *after) if (needle.lower() in key.lower() if ignore_case else needle in key)
    ]
    check_store(found, expected)
    assert found.not_searched == 0


def test_a_match_across_the_levels_of_the_tree() -> None:
    store = NamespaceStore()
    store.add([b"shop:user:1", b"shop:user:2", b"shop:cart:1", b"shopuser"])
    found = FilteredStore(store, b"op:us")
    finish(found.work())
    assert sorted(kept_below(found.root)) == [b"shop:user:1", b"shop:user:2"]
    assert found.keys == 2


def test_what_was_dropped_is_not_searched() -> None:
    store = NamespaceStore(budget_bytes=20_000)
    for start in range(0, 9000, 500):
        store.add([b"big:%06d" % number for number in range(start, start + 500)])
    store.add([b"small:1"])
    found = FilteredStore(store, b"1")
    finish(found.work())
    assert found.not_searched == 9000
    assert kept_below(found.root) == [b"small:1"]


@pytest.mark.parametrize("opened", [False, True])
def test_a_match_that_begins_in_the_prefix_of_packed_names(opened: bool) -> None:
    store = NamespaceStore()
    keys = [b"shop:%s%d" % (name, number) for number in range(20) for name in (b"user", b"Users", b"us")]
    store.add(keys)
    if opened:
        finish(store.open(store.root.namespace_at(0)))
    for needle, ignore_case in ((b"op:us", False), (b"P:USER", True), (b"shop:users1", True), (b":user1", False)):
        found = FilteredStore(store, needle, ignore_case=ignore_case)
        finish(found.work())
        matching = [key for key in keys if needle in key or (ignore_case and needle.lower() in key.lower())]
        assert sorted(kept_below(found.root)) == sorted(matching)


@pytest.mark.parametrize("slices", range(1, 5))
def test_it_begins_anew_with_its_store(slices: int) -> None:
    store = NamespaceStore(clock=Ticking())
    store.add([b"a:%d" % number for number in range(5000)])
    found = FilteredStore(store, b"1")
    work = found.work()
    for _ in range(slices):
        next(work, None)
    store.reset()
    store.add([b"b:1", b"b:2"])
    finish(work)
    assert kept_below(found.root) == [b"b:1"]


@pytest.mark.usefixtures("tiny")
def test_repeats_are_removed_from_matches_too() -> None:
    store = NamespaceStore(clock=Ticking())
    found = FilteredStore(store, b"a")
    finish(found.work())
    store.add([b"a:1", b"a:1", b"b:1", b"a:2"])
    store.repeats_possible = True
    finish(store.settle())
    assert Counter(kept_below(found.root)) == Counter([b"a:1", b"a:2"])
