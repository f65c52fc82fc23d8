from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import FilteredStore
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators
from tests.keyspace.naive import KEYS, SEPARATOR_SETS, Ticking, check_store, kept_below

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
