"""The names that a store holds are all of its names, whatever of it is open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import PAGE, HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators

NAMES = st.sets(st.lists(st.sampled_from([b"a", b"b", b"", b"cc", b"{x:y}"]), min_size=1, max_size=5).map(b":".join))


@given(NAMES, st.lists(st.integers(0, 5), max_size=4))
def test_all_names_are_there_once(names: set[bytes], opened: list[int]) -> None:
    store = NamespaceStore(Separators())
    store.add(sorted(names))
    node = store.root
    for at in opened:
        finish(store.open(node))
        if not node.labels:
            break
        node = node.namespace_at(at % len(node.labels))
    held = HeldNames(store)
    found = [name for page in held.pages() for name in page]
    assert sorted(found) == sorted(names)
    assert held.missing == 0
    below = [name for page in HeldNames(store, node).pages() for name in page]
    assert sorted(below) == sorted(name for name in names if name.startswith(node.path()))


def test_pages_are_small_and_what_is_not_held_is_counted() -> None:
    store = NamespaceStore(Separators(), budget_bytes=20_000)
    store.add([b"shop:%d" % number for number in range(1_000)])
    store.add([b"app:%d" % number for number in range(4_000)])
    held = HeldNames(store)
    pages = list(held.pages())
    assert max(map(len, pages)) <= PAGE
    assert sum(map(len, pages)) + held.missing == 5_000
    assert held.missing > 0


def test_it_ends_where_the_store_is_emptied() -> None:
    store = NamespaceStore(Separators())
    store.add([b"shop:%d" % number for number in range(5_000)])
    pages = HeldNames(store).pages()
    assert next(page for page in pages if page)
    store.reset()
    assert list(pages) == []
