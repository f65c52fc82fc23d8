"""The compiled engine groups names as `Separators` splits them."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.keyspace.slices import finish
from rtui.keyspace.store import packed_names
from rtui.keyspace.store.packed_names import MAX_INLINE_BYTES, MAX_INLINE_NAMES, SplitNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators
from rtui.server.engine._name_table import NameTable
from tests.conftest import examples, known
from tests.grammar import Grammar
from tests.keyspace.naive import check_same

SEPARATOR_SETS = st.sampled_from([(b":",), (b":", b"/"), (), (b"{",), (b"}", b":"), (b"\0",), (b"\xff", b":", b"a")])
NAMES = st.lists(
    st.sampled_from([b":", b":", b"/", b"{", b"}", b"a", b"b", b"bb", b"", b"\xff", b"\0", b"x" * 70]), max_size=7
).map(b"".join)


def drained(table: NameTable) -> list[SplitNames]:
    parts = []
    while (part := table.drain()) is not None:
        parts.append(part)
    return parts


def grouped(parts: list[SplitNames]) -> dict[bytes, list[bytes]]:
    found: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for part in parts:
        assert part.count == sum(len(names) for _, names in part.batches()) > 0
        for label, names in part.batches():
            found[label] += names
        for chunk in [*part.flat, *(chunk for _, chunk in part.chunks)]:
            assert chunk.bounds[0] == 0
            assert chunk.bounds[-1] == len(chunk.blob)
            assert 0 < len(chunk) <= packed_names.CHUNK_NAMES
            assert len(chunk.blob) <= packed_names.CHUNK_BYTES or len(chunk) == 1
        for inline in part.inlines:
            assert 0 < inline[0] <= packed_names.MAX_INLINE_NAMES
    return found


def expected(names: list[bytes], separators: Separators) -> dict[bytes, list[bytes]]:
    found: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for name in names:
        head, separator, rest = separators.split_first(name)
        found[head + separator if separator else b""].append(rest if separator else name)
    return found


@given(SEPARATOR_SETS, st.lists(st.lists(NAMES, max_size=20), max_size=4))
@example((b":",), [[b"{a:b}:c", b"{a:b:c", b"{}:a", b"a}:{b:c}d", b"", b":", b"::", b"a{b:}c:d"]])
def test_names_are_split_as_separators_do(separators: tuple[bytes, ...], batches: list[list[bytes]]) -> None:
    table = NameTable(separators)
    for batch in batches:
        table.add(batch)
        assert len(table) == len(batch)
        assert table.swap() == bool(batch)
        assert len(table) == 0
        assert grouped(drained(table)) == expected(batch, Separators(separators))


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(3))
def test_a_keyspace_of_the_grammar(seed: int) -> None:
    names = list({write[1] for write in Grammar(seed).writes(20_000) if isinstance(write[1], bytes)})
    Random(seed).shuffle(names)
    table = NameTable((b":",))
    for start in range(0, len(names), 1000):
        table.add(names[start : start + 1000])
    assert table.swap()
    assert grouped(drained(table)) == expected(names, Separators())


def test_long_names_and_full_chunks() -> None:
    names = [b"a:" + b"x" * 65_535, b"a:" + b"x" * 65_536, b"a:y", b"z" * 70_000, b"b" * 70_000 + b":c"]
    names += [b"c:%05d" % number for number in range(5_000)] + [b"%d" % number for number in range(5_000)]
    table = NameTable((b":",))
    table.add(names)
    table.swap()
    parts = drained(table)
    assert grouped(parts) == expected(names, Separators())
    assert max(part.count for part in parts) < 5_000
    offsets = [chunk.bounds.typecode for part in parts for label, chunk in part.chunks if label == b"a:"]
    assert offsets == ["H", "Q", "H"]


def test_few_and_short_names_are_inline() -> None:
    table = NameTable((b":",))
    many = [b"many:%d" % number for number in range(MAX_INLINE_NAMES + 1)]
    few = [b"few:%d" % number for number in range(MAX_INLINE_NAMES)]
    table.add([*many, *few, b"short:" + b"x" * MAX_INLINE_BYTES, b"long:" + b"x" * (MAX_INLINE_BYTES + 1)])
    table.swap()
    (part,) = drained(table)
    assert part.labels == [b"few:", b"short:"]
    assert [label for label, _ in part.chunks] == [b"many:", b"long:"]


def test_what_is_added_while_draining_waits_for_its_turn() -> None:
    table = NameTable((b":",))
    assert not table.swap()
    table.add([b"a:%d" % number for number in range(10_000)])
    assert table.swap()
    first = known(table.drain())
    table.add([b"b:1"])
    assert not table.swap()
    assert first.count + sum(part.count for part in drained(table)) == 10_000
    assert table.swap()
    (second,) = drained(table)
    assert (second.labels, second.inlines) == ([b"b:"], [b"\1\0011"])


def test_a_flood_of_namespaces_comes_in_parts() -> None:
    table = NameTable((b":",))
    for _ in range(2):
        table.add([b"%d:x" % number for number in range(50_000)])
        table.swap()
        parts = drained(table)
        assert [label for part in parts for label in part.labels] == [b"%d:" % number for number in range(50_000)]
        assert max(part.count for part in parts) <= 512


def test_clearing_forgets_what_was_added_and_taken() -> None:
    table = NameTable((b":",))
    table.add([b"a:1"])
    table.swap()
    table.add([b"b:1"])
    table.clear()
    assert table.drain() is None
    assert not table.swap()
    table.add([b"c:1"])
    assert table.swap()
    assert [part.labels for part in drained(table)] == [[b"c:"]]


@settings(max_examples=20)
@given(st.lists(NAMES, max_size=30))
def test_only_bytes_and_separators_of_one_byte(names: list[bytes]) -> None:
    with pytest.raises(ValueError, match="more than one byte"):
        NameTable((b"::",))
    table = NameTable(())
    with pytest.raises(TypeError):
        table.add([*names, "text"])  # type: ignore[list-item]
    assert len(table) == len(names)


@settings(max_examples=examples(200))
@given(SEPARATOR_SETS, st.lists(st.lists(NAMES, max_size=30), max_size=6), st.integers(0, 5))
def test_a_store_filled_with_them(separators: tuple[bytes, ...], batches: list[list[bytes]], opened: int) -> None:
    filled(separators, batches, opened)


@pytest.mark.parametrize("budget_bytes", [None, 250_000])
def test_a_store_filled_with_a_keyspace_of_the_grammar(budget_bytes: int | None) -> None:
    keys = [write[1] for write in Grammar(5, 200).writes(30_000) if isinstance(write[1], bytes)]
    filled((b":",), [keys[start : start + 500] for start in range(0, len(keys), 500)], 20, budget_bytes)


def filled(
    separators: tuple[bytes, ...], batches: list[list[bytes]], opened: int, budget_bytes: int | None = None
) -> None:
    """Fill two stores, one of them with keys that come split, and compare them."""
    table = NameTable(separators)
    plain, split = (NamespaceStore(Separators(separators), budget_bytes=budget_bytes) for _ in range(2))
    for number, batch in enumerate(batches):
        plain.add(batch)
        table.add(batch)
        table.swap()
        for part in drained(table):
            split.add_split(part)
        if number == opened:
            for store in (plain, split):
                for label in sorted(store.root.labels)[:3]:
                    finish(store.open(store.root.child(label)))
    check_same(plain, split)
