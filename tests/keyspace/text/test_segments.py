from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.segments import Segment, Separators, SeparatorSpan

COLON = Separators()

SHARDS = st.lists(
    st.sampled_from(
        [b":", b"::", b"/", b"{", b"}", b"{}", b"a", b"b", b"", b"\xff", b"\x00", b":{", b"}:", b"\n", b"^", b"]"]
    )
).map(b"".join)
"""Keys full of everything that matters for splitting."""

SEPARATOR_SETS = st.sampled_from(
    [
        (b":",),
        (b":", b"/"),
        (b"::",),
        (b":", b"::"),
        (b"::", b"/", b":a"),
        (b"\n",),
        (b"}:",),
        (b":{", b":"),
        (b"{",),
        (),
    ]
)


def names(key: bytes, values: tuple[bytes, ...] = (b":",)) -> list[bytes]:
    return [segment.name for segment in Separators(values).segments(key)]


def reference_parts(key: bytes, separators: tuple[bytes, ...]) -> list[bytes]:
    """Split byte by byte, straight from the rules."""
    opening = key.find(b"{")
    closing = key.find(b"}", opening + 1) if opening >= 0 else -1
    tag = range(opening, closing + 1) if closing > opening + 1 else range(0)
    parts = [b""]
    at = 0
    while at < len(key):
        for separator in sorted(separators, key=len, reverse=True):
            taken = range(at, at + len(separator))
            if key.startswith(separator, at) and not any(place in tag for place in taken):
                parts.append(b"")
                at += len(separator)
                break
        else:
            parts[-1] += key[at : at + 1]
            at += 1
    return parts


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        (b"", [b""]),
        (b"plain", [b"plain"]),
        (b"shop:user:42", [b"shop", b"user", b"42"]),
        (b":", [b"", b""]),
        (b":::", [b"", b"", b"", b""]),
        (b":a", [b"", b"a"]),
        (b"a:", [b"a", b""]),
        (b"a::b", [b"a", b"", b"b"]),
        (b"{user:1}:cart", [b"{user:1}", b"cart"]),
        (b"a{b:c}d:e", [b"a{b:c}d", b"e"]),
        (b"x:a{b:c}d:e", [b"x", b"a{b:c}d", b"e"]),
        (b"{a:b}:{c:d}", [b"{a:b}", b"{c", b"d}"]),
        (b"{}:{a:b}", [b"{}", b"{a", b"b}"]),
        (b"{a:b", [b"{a", b"b"]),
        (b"{a:{b:c}:d", [b"{a:{b:c}", b"d"]),
        (b"a}:{b:c}", [b"a}", b"{b:c}"]),
        (b"\xff\xfe:\x00", [b"\xff\xfe", b"\x00"]),
    ],
)
def test_colon(key: bytes, parts: list[bytes]) -> None:
    assert names(key) == parts


def test_longest_separator_wins() -> None:
    assert names(b"a::b:c->d", (b":", b"::", b"->")) == [b"a", b"b", b"c", b"d"]
    assert names(b"a:::b", (b"::",)) == [b"a", b":b"]


def test_segments_tell_the_separator_that_ended_them() -> None:
    assert list(Separators((b":", b"/")).segments(b"a/b:c")) == [
        Segment(b"a", b"/"),
        Segment(b"b", b":"),
        Segment(b"c", b""),
    ]


def test_a_separator_that_runs_into_the_tag_gives_way_to_a_shorter_one() -> None:
    assert names(b"a:{b}", (b":{", b":")) == [b"a", b"{b}"]
    assert names(b"{a}:b}:c", (b"}:",)) == [b"{a}:b", b"c"]


def test_without_separators_every_key_is_one_segment() -> None:
    assert names(b"a:b", ()) == [b"a:b"]
    assert Separators(()).group_batch([b"a:b", b"{"]) == ([b"a:b", b"{"], [])


def test_cut_from_an_offset() -> None:
    assert COLON.cut(b"a:b:c", 2) == SeparatorSpan(3, 4)
    assert COLON.cut(b"a:b:c", 4) is None
    assert COLON.cut(b"{a}:{b:c}", 4, brace_before=True) == SeparatorSpan(6, 7)


def test_values_are_ordered_and_each_once() -> None:
    assert Separators((b":", b"::", b":")).values == (b"::", b":")
    assert Separators((b":", b"/")) == Separators([b"/", b":"])
    assert hash(Separators((b":", b"/"))) == hash(Separators([b"/", b":"]))


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one byte"):
        Separators((b":", b""))


@given(SHARDS, SEPARATOR_SETS)
def test_parts_follow_the_rules(key: bytes, values: tuple[bytes, ...]) -> None:
    assert names(key, values) == reference_parts(key, values)


@given(SHARDS, SEPARATOR_SETS)
def test_segments_joined_are_the_key(key: bytes, values: tuple[bytes, ...]) -> None:
    assert b"".join(name + separator for name, separator in Separators(values).segments(key)) == key


@given(SHARDS, SEPARATOR_SETS)
def test_splitting_suffix_by_suffix_gives_the_same_parts(key: bytes, values: tuple[bytes, ...]) -> None:
    separators = Separators(values)
    heads = []
    rest, brace_before = key, False
    while True:
        head, separator, rest = separators.split_first(rest, brace_before=brace_before)
        heads.append(head)
        if not separator:
            break
        brace_before = brace_before or b"{" in head + separator
    assert heads == names(key, values)


@given(st.lists(SHARDS), SEPARATOR_SETS, st.booleans())
def test_a_batch_is_grouped_as_it_splits_one_by_one(
    suffixes: list[bytes], values: tuple[bytes, ...], brace_before: bool
) -> None:
    separators = Separators(values)
    split = [separators.split_first(suffix, brace_before=brace_before) for suffix in suffixes]
    expected: dict[bytes, tuple[bytes, Counter[bytes]]] = {}
    for head, separator, rest in split:
        if separator:
            expected.setdefault(head + separator, (separator, Counter()))[1][rest] += 1
    unsplit, groups = separators.group_batch(suffixes, brace_before=brace_before)
    assert Counter(unsplit) == Counter(head for head, separator, _ in split if not separator)
    assert {label: (separator, Counter(rests)) for label, separator, rests in groups} == expected
    assert len(groups) == len(expected)


def test_a_batch_keeps_its_order_but_for_names_whose_tag_holds_a_separator() -> None:
    suffixes = [b"a:3", b"{b:c}", b"{b:c}:1", b"a:1", b"z", b"{b:2", b"y", b"{b:c}:0", b"a:2"]
    assert COLON.group_batch(suffixes) == (
        [b"z", b"y", b"{b:c}"],
        [(b"a:", b":", [b"3", b"1", b"2"]), (b"{b:c}:", b":", [b"1", b"0"]), (b"{b:", b":", [b"2"])],
    )


@pytest.mark.parametrize("values", [(b":",), (b":", b"/"), (b"::", b":")])
@pytest.mark.parametrize("opening", [b"", b"{", b"{}", b"{t}"])
def test_a_hundred_thousand_segments(values: tuple[bytes, ...], opening: bytes) -> None:
    key = opening + b":".join([b"abcdefghi"] * 100_000)
    assert len(names(key, values)) == 100_000


def test_a_megabyte_without_a_separator() -> None:
    key = b"x" * 1_000_000
    assert names(key) == [key]
    assert Separators((b"::", b":")).group_batch([key]) == ([key], [])
