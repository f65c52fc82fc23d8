"""What lies inside a namespace, and when it is worth another look."""

from __future__ import annotations

from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.namespace_figures import Known
from rtui.keyspace.slices import finish
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Segment
from rtui.tui.browse.namespace_lines import ChildCount, ChildCounts, CountedState, count_children
from rtui.tui.browse.tree_lines import known_count


def shop(*, opened: bool) -> NamespaceStore:
    store = NamespaceStore()
    store.add([b"shop:user:%d" % number for number in range(6)] + [b"shop:lock:1", b"shop:open"])
    if opened:
        finish(store.open(store.root.child(b"shop:")))
    return store


def inside(store: NamespaceStore) -> ChildCounts | None:
    return finish(count_children(store.root.child(b"shop:"), store.separators))


def test_looking_does_not_need_an_open_namespace() -> None:
    closed, opened = inside(shop(opened=False)), inside(shop(opened=True))
    assert (
        closed == opened == ChildCounts((ChildCount(b"user:", 6), ChildCount(b"lock:", 1)), namespaces=2, keys=1, of=8)
    )


def test_a_sample_that_knows_of_more_is_told_as_an_estimate() -> None:
    store = shop(opened=True)
    store.expect([Segment(b"shop", b":"), Segment(b"lock", b":")], Estimate(80, 90, 100))
    found = inside(store)
    assert found is not None
    assert found.parts == (ChildCount(b"lock:", 90, is_estimate=True), ChildCount(b"user:", 6))


def test_a_namespace_that_grows_is_looked_into_again_and_every_change_of_totals_counts() -> None:
    node = shop(opened=True).root.child(b"shop:")
    last = CountedState(node, 1_000, opened=True, complete=False)
    assert not CountedState(node, 1_120, opened=True, complete=False).is_due(last)
    assert CountedState(node, 1_130, opened=True, complete=False).is_due(last)
    assert CountedState(node, 1_001, opened=True, complete=True).is_due(last)
    assert not CountedState(node, 1_000, opened=True, complete=True).is_due(last)
    assert CountedState(node, 1_000, opened=False, complete=True).is_due(last)


def test_few_keys_are_asked_once_their_number_is_a_total() -> None:
    node = shop(opened=True).root.child(b"shop:")
    last = CountedState(node, 8, opened=True, complete=False)
    now = CountedState(node, 8, opened=True, complete=True)
    assert now.is_due(last)
    assert not now.is_due(now)
    assert not last.is_due(last)


def test_children_of_a_namespace_that_is_being_divided_are_not_called_totals() -> None:
    store = NamespaceStore(clock=iter(range(10**6)).__next__)
    store.add([b"shop:user:%d" % number for number in range(40_000)])
    store.complete = True
    shop = store.root.child(b"shop:")
    work = store.open(shop)
    next(work)
    user = shop.child(b"user:")
    assert known_count(shop, complete=True).mark is Mark.EXACT
    assert (known_count(user, complete=True).mark, user.count < 40_000) == (Mark.AT_LEAST, True)
    finish(work)
    assert known_count(user, complete=True) == Known(40_000, Mark.EXACT)
