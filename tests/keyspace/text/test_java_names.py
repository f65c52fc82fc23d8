"""Names that Java has serialised: split, shown, searched and turned back into their raw bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.plan import plan_of
from rtui.keyspace.rows.rows import RowKind, VisibleRows
from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.packed_names import Chunk, SplitNames, pack_inline
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import Display, display
from rtui.keyspace.text.glob import GlobMatcher, namespace_pattern
from rtui.keyspace.text.identifiers import KeySegments
from rtui.keyspace.text.segments import HEADER, MARK, Separators, java_text, raw_java_name, swapped

COLON = Separators((b":",))
LENGTH = st.sampled_from([b"\0\0", b"\0\1", b"\0\2", b"\0\3", b"\0\x3a", b"\xff:", b"\xff\xff"])
NEAR = st.tuples(LENGTH, st.binary(max_size=4) | st.sampled_from([b"x" * 58, b"x" * 65338, b"x" * 65535, b"x" * 65536]))
NAMES = (
    st.binary(max_size=12)
    | st.text("ab:1{}", max_size=8).map(str.encode)
    | st.text("ab:1{}é", max_size=8).map(lambda one: raw_java_name(one.encode()) or b"")
    | NEAR.map(lambda one: HEADER + one[0] + one[1])
)


def java(text: str) -> bytes:
    return raw_java_name(text.encode()) or b""


@given(NAMES, st.sampled_from([b":", b"/", b""]))
def test_swapping_twice_is_no_change(name: bytes, separator: bytes) -> None:
    other = swapped(name, separator)
    assert swapped(other, separator) == name
    assert len(other) == len(name)
    if separator and java_text(name) is not None:
        assert other == MARK + separator + name[7:]


@given(st.lists(NAMES, unique=True, max_size=20), st.booleans(), st.sampled_from([(b":",), (b":", b"/"), (b"t",), ()]))
def test_a_store_has_the_raw_names(names: list[bytes], is_split: bool, values: tuple[bytes, ...]) -> None:
    store = NamespaceStore(Separators(values))
    if is_split and values == (b":",):
        split = SplitNames(len(names), [], [], [], [])
        for name in names:
            head, found, rest = store.separators.split_first(name)
            inline = pack_inline([rest])
            if not found:
                split.flat.append(Chunk.of([name]))
            elif inline is not None:
                split.labels.append(head + found)
                split.inlines.append(inline)
            else:
                split.chunks.append((head + found, Chunk.of([rest])))
        store.add_split(split)
    else:
        store.add(names)
    assert store.keys == len(names)
    assert sorted(name for page in HeldNames(store).pages() for name in page) == sorted(names)
    rows = VisibleRows(store)
    finish(rows.expand_all(store.root))
    assert sorted(row.key() for row in rows.window(0, len(rows)) if row.kind is RowKind.KEY) == sorted(names)
    for name in names:
        row = finish(rows.reveal(name))
        assert row is not None
        assert row.key() == name


def test_names_of_different_length_are_in_one_namespace() -> None:
    store = NamespaceStore()
    texts = ["user:cache:1", "user:cache:10", "user:cache:100"]
    store.add([*map(java, texts), *map(str.encode, texts)])
    rows = VisibleRows(store)
    finish(rows.expand_all(store.root))
    shown = [(row.depth, display(row.name)) for row in rows.window(0, len(rows))]
    below = [(1, "user"), (2, "cache"), (3, "1"), (3, "10"), (3, "100")]
    assert shown[:5] == [(depth - 1, name) for depth, name in below]
    assert shown[5:] == [(0, "⛾"), *below]


@given(NAMES, st.integers(0, 5))
def test_segments_are_those_of_the_text(name: bytes, most: int) -> None:
    text, segments = java_text(name), KeySegments(COLON)
    if text is not None:
        expected = [(MARK, b":"), *segments.of(text, max(0, most - 1))][:most]
        assert list(segments.of(name, most)) == expected


@given(st.lists(NAMES, unique=True, min_size=2, max_size=2))
@pytest.mark.parametrize("ascii_only", [False, True])
def test_names_look_different(ascii_only: bool, names: list[bytes]) -> None:
    one, other = (Display(ascii_only).name(name, limit=1 << 20) for name in names)
    is_split_form = any(name.startswith(MARK) for name in names)
    assert one != other or is_split_form
    assert one.isascii() or not ascii_only


def test_how_a_name_is_shown() -> None:
    assert display(java("user:1")) == "⛾user:1"
    assert Display(ascii_only=True).name(java("user:1")) == "\\Juser:1"
    assert display("⛾user:1".encode()) == "\\u26feuser:1"
    assert Display(ascii_only=True).name(b"\\Juser:1") == "\\x5cJuser:1"
    assert display(HEADER + b"\0\4abc") == "\\xac\\xed␀␅t␀␄abc"
    assert display(java("user:" + "x" * 600), limit=20).startswith("⛾user:")


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("user", True),
        ("user:1", True),
        ("user:*", True),
        ("*:1", True),
        ("in:user", True),
        ("in:⛾user", True),
        ("pattern:user:<id>", True),
        ("re:^user:1$", True),
        ("!user:*", False),
        ("t", False),
        ("in:users", False),
        ("⛾user:*", True),
    ],
)
def test_a_query_sees_the_text(line: str, passes: bool) -> None:
    query, name = parse(line), java("user:1")
    assert NameFilter(query, COLON).keep([name]) == [name][:passes]
    if passes:
        match = plan_of(query, COLON).server.match
        assert match is None or GlobMatcher(match)(name)
    is_marked = "⛾" in line
    assert NameFilter(query, COLON).keep([b"user:1"]) == [b"user:1"][: passes and not is_marked]


@given(st.lists(st.text("ab:?*[é", max_size=6), max_size=3))
def test_the_pattern_of_a_namespace_matches_its_keys(parts: list[str]) -> None:
    text = ":".join(parts).encode()
    assert GlobMatcher(namespace_pattern(MARK + b":" + text))(raw_java_name(text + b"key") or b"")
