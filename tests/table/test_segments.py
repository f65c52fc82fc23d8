"""The segments of a column are those that each name has by itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.identifiers import LONGEST, Form, Identifiers, KeySegments
from rtui.keyspace.text.java_names import raw_java_name
from rtui.keyspace.text.segments import Separators
from rtui.table.schema import names_of
from rtui.table.segments import LONGEST_NAME, Kind, SegmentSplitter, name_hashes
from tests.grammar import Grammar

PART = st.one_of(
    st.sampled_from(["", "a", "user", "page_7", "7", "{a:b}", "{1}", "2001:db8::1", "1:2:3:4:5:6:7:a", "10.0.0.1"]),
    st.sampled_from(["550e8400-e29b-41d4-a716-446655440000", "2024-01-02", "é", "{", "}", "{}", "x" * 300]),
    st.text("ab01:{}-./", max_size=6),
)
KEY = st.one_of(
    st.lists(PART, min_size=1, max_size=5).map(lambda parts: ":".join(parts).encode()),
    st.lists(PART, min_size=1, max_size=5).map(lambda parts: raw_java_name("-".join(parts).encode()) or b""),
    st.binary(max_size=12),
)
SEPARATORS = st.one_of(
    st.sampled_from([(b":",), (b":", b"/"), (b"-",), (b".", b"-"), (b"::", b":"), (b"{",), (b"\xff", b"\xed\xa0")]),
    st.lists(st.text("ab:{-.", min_size=1, max_size=3).map(str.encode), max_size=3).map(tuple),
)
WORD = st.one_of(
    st.text("0123456789", max_size=9),
    st.text("abcdef0123456789", max_size=40),
    st.text("ABCDEF0123456789-", max_size=40),
    st.text("abzABZ019_-.:{}=@+/ é", max_size=50),
    st.text("zaZ09", min_size=19, max_size=28),
    st.from_regex(r"[A-Za-z]{0,5}[0-9]{0,8}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", fullmatch=True),
    st.text(max_size=8),
)


def table(keys: Iterable[bytes]) -> pl.DataFrame:
    return pl.DataFrame(list(names_of(list(keys))))


@given(st.lists(KEY, max_size=12), SEPARATORS, st.sampled_from([0, 1, 2, 32]))
def test_each_name_has_the_segments_that_it_has_alone(
    keys: list[bytes], separators: tuple[bytes, ...], depth: int
) -> None:
    splits = Separators(separators)
    expected = [list(KeySegments(splits).of(key, depth)) for key in keys]
    found = SegmentSplitter(splits, depth).split(table(keys))
    values = (b"", *splits.values)
    for first, count, pairs in zip(found.first, found.counts, expected, strict=True):
        places = np.arange(first, first + count)
        assert found.texts(places) == [name for name, _ in pairs]
        assert [values[code] for code in found.separators[places]] == [separator for _, separator in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("separators", [(b":",), (b"-",), (b".", b"_"), (b"|", b"/")])
def test_names_of_the_grammar_in_many_blocks(separators: tuple[bytes, ...]) -> None:
    keys = [name for _, name in Grammar(5, 300).drawn(20_000)]
    keys[::1000] = [key + b":" * 40 + b"y" * 5_000 + b":z" for key in keys[::1000]]
    splits = Separators(separators)
    by_segment = KeySegments(splits)
    found = SegmentSplitter(splits, 32).split(table(keys))
    for key, first, count in zip(keys, found.first, found.counts, strict=True):
        names = found.texts(np.arange(first, first + count))
        expected = [name for name, _ in by_segment.of(key, 32)]
        if len(key) <= LONGEST_NAME:
            assert names == expected
        else:
            assert [name if len(name) <= LONGEST else b"" for name in expected] == [
                name if len(name) <= LONGEST else b"" for name in names
            ]


def told(segment: bytes, kind: Kind, form: Form) -> bool:
    """Whether a kind says of a form what is so."""
    patterns = {Kind.ID: b"{id}", Kind.UUID: b"{uuid}", Kind.HASH: b"{hash}"}
    match kind:
        case Kind.UNSURE:
            return True
        case Kind.LONG:
            return len(segment) > LONGEST
        case Kind.NAME:
            return form.pattern is None and form.numbered is None
    return form.pattern == patterns[kind]


@given(st.lists(WORD.map(str.encode), min_size=1, max_size=50))
def test_kinds_say_nothing_that_forms_do_not(words: list[bytes]) -> None:
    identifiers = Identifiers(())
    found = SegmentSplitter(Separators(()), 32).split(table(words))
    for word, kind, coded in zip(words, found.kinds, found.is_coded, strict=True):
        assert told(word, Kind(kind), identifiers.form(word)), word
        assert coded == any(letter in b"0123456789=@" for letter in word)


@given(st.lists(WORD.map(str.encode), min_size=1, max_size=50))
def test_a_hash_is_of_the_bytes_alone(words: list[bytes]) -> None:
    found = SegmentSplitter(Separators((b"\0",)), 32).split(table(b"\0\0".join((word, b"x", word)) for word in words))
    of_words: dict[bytes, int] = {}
    for text, one in zip(found.texts(np.arange(len(found.starts))), found.hashes.tolist(), strict=True):
        assert of_words.setdefault(text, one) == one
    assert len(set(of_words.values())) == len(of_words)
    assert len(set(name_hashes(words).tolist())) == len(set(words))
