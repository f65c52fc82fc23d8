"""Names that match what somebody typed: the order of matches, and the best ones out of a store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import MOST_FOUND, PAGE, HeldNames, NameSearch
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.matching import MOST_SPREAD, MatchKind, TextMatcher
from rtui.keyspace.text.segments import Separators

NAMES = st.text("abAB:{}é", max_size=12).map(str.encode)
TEXTS = st.text("abAB:é", min_size=1, max_size=4).map(str.encode)


def kind_of(text: str, name: str) -> MatchKind | None:
    found = TextMatcher(text.encode()).match(name.encode())
    return None if found is None else found.kind


def test_each_kind_of_match() -> None:
    assert kind_of("lock", "lock") is MatchKind.EXACT
    assert kind_of("lock", "lock:1") is MatchKind.WHOLE
    assert kind_of("user:7", "shop:user:7:cart") is MatchKind.WHOLE
    assert kind_of("lo", "lock:1") is MatchKind.START
    assert kind_of("us", "shop:user:1") is MatchKind.PART
    assert kind_of("us", "status") is MatchKind.INSIDE
    assert kind_of("us", "queue:sizes") is MatchKind.LETTERS
    assert kind_of("us", "u" + 20 * "x" + "s") is None
    assert kind_of("us", "shop") is None
    assert kind_of("US", "shop:user:1") is None
    assert kind_of("us", "SHOP:USER") is MatchKind.PART
    assert kind_of("é", "clé") is MatchKind.INSIDE


@given(NAMES, TEXTS)
def test_a_text_matches_the_names_that_contain_it_and_those_with_its_letters_in_order(name: bytes, text: bytes) -> None:
    matcher = TextMatcher(text)
    searched = name.lower() if text == text.lower() else name
    found = matcher.match(name)
    if text in searched:
        assert found is not None
        assert found.kind < MatchKind.LETTERS
        assert found == matcher.match(name, in_order=False)
        is_start, is_whole_name = searched.startswith(text), len(text) == len(name)
        assert (found.kind is MatchKind.EXACT) is is_whole_name
        assert not is_start or found.kind <= MatchKind.START
    else:
        rest = iter(searched)
        has_letters = all(letter in rest for letter in text)
        assert matcher.match(name, in_order=False) is None
        assert found is None or (has_letters and len(text) < found.spread <= MOST_SPREAD * len(text))
        assert bool(matcher.with_letters([name])) is has_letters


def store_of(names: list[bytes]) -> NamespaceStore:
    store = NamespaceStore()
    store.add(names)
    return store


def found_in(store: NamespaceStore, text: bytes) -> tuple[list[bytes], list[bytes]]:
    search = NameSearch(store, text)
    finish(search.work())
    return [name for _, name in search.namespaces], [name for _, name in search.keys]


@given(st.lists(NAMES, unique=True, max_size=40), TEXTS, st.booleans())
def test_it_finds_every_key_that_contains_the_text(names: list[bytes], text: bytes, is_opened: bool) -> None:
    store = store_of(names)
    if is_opened:
        waiting = [store.root]
        while waiting:
            node = waiting.pop()
            finish(store.open(node))
            waiting += map(node.namespace_at, range(len(node.labels)))
    namespaces, keys = found_in(store, text)
    matcher = TextMatcher(text)
    containing = [name for name in names if matcher.match(name, in_order=False) is not None]
    assert set(containing) <= set(keys)
    assert keys == sorted(keys, key=lambda key: (matcher.match(key), key))
    prefixes = set()
    for name in names:
        path = b""
        for segment in store.separators.segments(name):
            path += segment.name + segment.separator
            if segment.separator and matcher.match(path, in_order=False) is not None:
                prefixes.add(path)
                break
    assert prefixes <= set(namespaces)


def test_namespaces_nobody_has_opened_are_found_once() -> None:
    names = [b"shop:user:%d:cart" % number for number in range(5_000)]
    namespaces, keys = found_in(store_of(names), b"user")
    assert namespaces == [b"shop:user:"]
    assert len(keys) == MOST_FOUND
    assert found_in(store_of(names), b"shop")[0] == [b"shop:"]
    assert found_in(store_of(names), b"user:4999")[0] == [b"shop:user:4999:"]
    assert found_in(store_of(names), b"spus")[0] == [b"shop:user:"]


def test_it_says_of_how_many_keys_the_names_were_not_kept() -> None:
    store = NamespaceStore(budget_bytes=20_000)
    for start in range(0, 9000, 500):
        store.add([b"big:%06d" % number for number in range(start, start + 500)])
    store.add([b"small:1"])
    for text, found in ((b"1", [b"small:1"]), (b"xx", [])):
        search = NameSearch(store, text)
        finish(search.work())
        assert search.not_searched == 9000
        assert [name for _, name in search.keys] == found


def test_a_store_that_is_emptied_ends_the_search() -> None:
    store = store_of([b"%d:name" % number for number in range(20_000)])
    search = NameSearch(store, b"zz")
    work = search.work()
    next(work)
    store.reset()
    finish(work)
    assert search.keys == []


HELD = st.sets(st.lists(st.sampled_from([b"a", b"b", b"", b"cc", b"{x:y}"]), min_size=1, max_size=5).map(b":".join))


@given(HELD, st.lists(st.integers(0, 5), max_size=4))
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
