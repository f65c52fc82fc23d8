"""Names as the store packs them, and those that match what somebody typed."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import MOST_FOUND, PAGE, HeldNames, NameSearch
from rtui.keyspace.store.packed_names import (
    CHUNK_BYTES,
    CHUNK_NAMES,
    MAX_INLINE_BYTES,
    MAX_INLINE_NAMES,
    Chunk,
    PackedNames,
    count_inline,
    pack_inline,
    unpack_inline,
)
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.matching import MOST_SPREAD, MatchKind, TextMatcher
from rtui.keyspace.text.segments import Separators
from tests.conftest import known

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
    assert {name for name in names if matcher.match(name, in_order=False) is not None} <= set(keys)
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
    assert sorted([name for page in held.pages() for name in page]) == sorted(names)
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


PACKED_NAMES = st.lists(st.binary(max_size=6) | st.sampled_from([b"", b"a", b"aa", b"A", b"x" * 50]), max_size=20)

in_tiny_chunks = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.usefixtures("tiny")
@in_tiny_chunks
@given(st.lists(PACKED_NAMES, max_size=6))
def test_names_come_back_in_order(batches: list[list[bytes]]) -> None:
    packed = PackedNames()
    for batch in batches:
        packed.extend(batch)
    names = [name for batch in batches for name in batch]
    assert len(packed) == len(names)
    assert list(packed) == names
    assert [packed[ordinal] for ordinal in range(len(names))] == names
    assert packed.names_at(range(len(names) - 1, -1, -1)) == names[::-1]
    for start in range(len(names)):
        first, chunk = next(packed.chunks(start))
        assert first <= start < first + len(chunk)
        assert chunk[start - first] == names[start]


@pytest.mark.usefixtures("tiny")
@in_tiny_chunks
@given(PACKED_NAMES, PACKED_NAMES, PACKED_NAMES)
def test_whole_chunks_are_adopted(before: list[bytes], adopted: list[bytes], after: list[bytes]) -> None:
    packed = PackedNames(before)
    given_away = PackedNames(adopted)
    for chunk in given_away.release():
        packed.adopt(chunk)
    packed.extend(after)
    assert list(packed) == before + adopted + after
    assert len(given_away) == 0
    assert given_away.size_bytes == 0


@pytest.mark.usefixtures("tiny")
@in_tiny_chunks
@given(st.lists(PACKED_NAMES, max_size=6), PACKED_NAMES)
def test_appending_chunks_is_the_same_as_extending(batches: list[list[bytes]], before: list[bytes]) -> None:
    appended, extended = PackedNames(before), PackedNames(before)
    for batch in batches:
        for chunk in PackedNames(batch).release():
            appended.append(chunk)
        extended.extend(batch)
        assert appended.size_bytes == extended.size_bytes
        assert chunks_of(appended) == chunks_of(extended)


def chunks_of(packed: PackedNames) -> list[tuple[int, bytes, array[int]]]:
    return [(first, chunk.blob, chunk.bounds) for first, chunk in packed.chunks()]


@pytest.mark.parametrize("base", [0, 1, 20, 21])
def test_offsets_move_up_to_the_end_of_a_chunk(base: int) -> None:
    names = [b"x" * 32] * (CHUNK_NAMES - 1 - base)
    appended, extended = PackedNames([b"y"] * base), PackedNames([b"y"] * base)
    (chunk,) = PackedNames(names).release()
    appended.append(chunk)
    extended.extend(names)
    assert chunks_of(appended) == chunks_of(extended)
    assert list(appended) == [b"y"] * base + names


@given(PACKED_NAMES, st.binary(max_size=3) | st.sampled_from([b"", b"a", b"aa"]))
@example([b"a", b"a", b"", b"baab"], b"aa")
def test_searching_a_chunk(names: list[bytes], needle: bytes) -> None:
    chunk = Chunk.of(names)
    assert chunk.names() == names
    assert chunk.containing(needle) == [place for place, name in enumerate(names) if needle in name]
    assert chunk.starting(needle) == [place for place, name in enumerate(names) if name.startswith(needle)]
    assert chunk.lowered().names() == [name.lower() for name in names]
    assert chunk.index(needle) == (names.index(needle) if needle in names else -1)


@given(st.lists(st.binary(max_size=MAX_INLINE_BYTES), min_size=1, max_size=MAX_INLINE_NAMES))
def test_an_inline_pack_comes_back(names: list[bytes]) -> None:
    packed = known(pack_inline(names))
    assert unpack_inline(packed) == names
    assert count_inline(packed) == len(names)


def test_an_inline_pack_is_small() -> None:
    assert pack_inline([b""] * (MAX_INLINE_NAMES + 1)) is None
    assert pack_inline([b"x" * (MAX_INLINE_BYTES + 1)]) is None
    assert pack_inline([b"a", b"x" * (MAX_INLINE_BYTES + 1)]) is None


def test_names_of_any_length_side_by_side() -> None:
    names = [b"a", b"x" * (CHUNK_BYTES + 1), b"", b"y" * CHUNK_BYTES, b"z" * 5_000_000, b"b"]
    packed = PackedNames(names)
    assert list(packed) == names
    assert [packed[ordinal] for ordinal in range(len(names))] == names


def test_two_bytes_a_name_besides_the_name() -> None:
    packed = PackedNames()
    for start in range(0, 100_000, 1000):
        packed.extend([b"%026d" % number for number in range(start, start + 1000)])
    assert packed.size_bytes == 100_000 * 28
    assert packed.full_chunks >= 100_000 // CHUNK_NAMES


def test_a_negative_ordinal_is_refused() -> None:
    with pytest.raises(IndexError):
        PackedNames([b"a"])[-1]
