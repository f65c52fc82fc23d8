"""Names in segments, globs over them, and their natural order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.text.glob import (
    MAX_PATTERN_BYTES,
    MAX_STARS,
    GlobMatcher,
    PatternError,
    check_pattern,
    escape_glob,
    prefix_pattern,
)
from rtui.keyspace.text.matching import did_you_mean, natural, nearest_word
from rtui.keyspace.text.segments import Segment, Separators, SeparatorSpan, raw_java_name
from tests.keyspace.naive import naturally
from tests.servers import Server

COLON = Separators()

SHARDS = st.lists(
    st.sampled_from(
        [b":", b"::", b"/", b"{", b"}", b"{}", b"a", b"b", b"", b"\xff", b"\x00", b":{", b"}:", b"\n", b"^", b"]"]
    )
).map(b"".join)
"""Keys full of everything that matters for splitting."""

SEPARATOR_SETS = st.sampled_from(
    [
        (b":",), (b":", b"/"), (b"::",), (b":", b"::"), (b"::", b"/", b":a"), (b"\n",), (b"}:",), (b":{", b":"),
        (b"{",), (),
    ]
)  # fmt: skip


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
        (b"", [b""]), (b"plain", [b"plain"]), (b"shop:user:42", [b"shop", b"user", b"42"]), (b":", [b"", b""]),
        (b":::", [b"", b"", b"", b""]), (b":a", [b"", b"a"]), (b"a:", [b"a", b""]), (b"a::b", [b"a", b"", b"b"]),
        (b"{user:1}:cart", [b"{user:1}", b"cart"]), (b"a{b:c}d:e", [b"a{b:c}d", b"e"]),
        (b"x:a{b:c}d:e", [b"x", b"a{b:c}d", b"e"]), (b"{a:b}:{c:d}", [b"{a:b}", b"{c", b"d}"]),
        (b"{}:{a:b}", [b"{}", b"{a", b"b}"]), (b"{a:b", [b"{a", b"b"]), (b"{a:{b:c}:d", [b"{a:{b:c}", b"d"]),
        (b"a}:{b:c}", [b"a}", b"{b:c}"]), (b"\xff\xfe:\x00", [b"\xff\xfe", b"\x00"]),
    ],
)  # fmt: skip
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


SPECIALS = st.lists(st.sampled_from([b"*", b"?", b"[", b"]", b"\\", b"^", b"-", b"a", b"\xff", b"\n"]), max_size=8).map(
    b"".join
)


@given(SPECIALS, SPECIALS)
def test_an_escaped_name_means_itself_and_nothing_else(name: bytes, other: bytes) -> None:
    matches = GlobMatcher(escape_glob(name))
    assert matches(name)
    assert matches(other) is (other == name)


@given(st.binary(max_size=3 * MAX_PATTERN_BYTES))
def test_a_prefix_pattern_is_always_within_bounds(prefix: bytes) -> None:
    pattern = prefix_pattern(prefix)
    assert check_pattern(pattern) is pattern
    assert GlobMatcher(pattern)(prefix + b"x")
    if len(escape_glob(prefix)) < MAX_PATTERN_BYTES:
        assert pattern == escape_glob(prefix) + b"*"


def test_a_prefix_of_specials_is_shortened_between_escapes() -> None:
    pattern = prefix_pattern(b"*" * 1_000_000)
    assert len(pattern) <= MAX_PATTERN_BYTES
    assert pattern == rb"\*" * 255 + b"*"


def test_bounds() -> None:
    assert check_pattern(b"*" * MAX_STARS) == b"*" * MAX_STARS
    with pytest.raises(PatternError, match="17 stars"):
        check_pattern(b"*" * (MAX_STARS + 1))
    assert check_pattern(rb"\*" * 100) == rb"\*" * 100
    assert check_pattern(b"x" * MAX_PATTERN_BYTES)
    with pytest.raises(PatternError, match="513 bytes"):
        check_pattern(b"x" * (MAX_PATTERN_BYTES + 1))


def test_the_server_understands_escapes(server: Server) -> None:
    names = [b"a*", b"a?", b"a[b]", b"a\\", b"a^", b"a-b", b"ab", b"a\xff", b"a\n", b"[a]", b"]", b"\\*", b"aXb", b"*"]
    with server.client() as client:
        client.mset(dict.fromkeys(names, b""))
        for name in names:
            assert client.scan(0, match=escape_glob(name), count=1000)[1] == [name]
            found = set(client.scan(0, match=prefix_pattern(name), count=1000)[1])
            assert found == {other for other in names if other.startswith(name)}
        assert client.scan(0, match=b"a\\", count=1000)[1] == [b"a\\"]


ALPHABET = rb"ab-]^\*?[:" + b"\n"

pieces = st.lists(st.sampled_from([bytes((byte,)) for byte in ALPHABET]), max_size=9).map(b"".join)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (b"", b"", True), (b"", b"a", False), (b"*", b"", True), (b"user:*", b"user:", True),
        (b"user:*", b"user", False), (b"*:x:*", b"a:x:", True), (b"a*b*c", b"a--b--b--c", True),
        (b"a*b*c", b"a--c--b", False), (b"*ab", b"ab", True), (b"a*a", b"a", False), (b"a?c", b"a\nc", True),
        (b"a?c", b"ac", False), (rb"a\*c", b"a*c", True), (rb"a\*c", b"abc", False), (b"[a-c]x", b"bx", True),
        (b"[c-a]x", b"bx", True), (b"[^a]x", b"ax", False), (b"[^a]x", b"bx", True), (b"[]x", b"x", False),
        (rb"[\]]", b"]", True), (b"[ab", b"b", True), (b"a\\", b"a\\", True),
    ],
)  # fmt: skip
def test_known_cases(pattern: bytes, name: bytes, expected: bool) -> None:
    assert GlobMatcher(pattern)(name) is expected


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns=st.lists(pieces, min_size=20, max_size=20), names=st.sets(pieces, min_size=30, max_size=60))
def test_agrees_with_a_server(valkey: Server, patterns: list[bytes], names: set[bytes]) -> None:
    client = valkey.client()
    client.flushall()
    client.mset(dict.fromkeys(names, b""))
    for pattern in patterns:
        _, found = client.scan(0, match=pattern, count=1000)
        assert set(found) == set(filter(GlobMatcher(pattern), names)), pattern


def test_many_asterisks_on_a_long_name_take_no_time() -> None:
    assert not GlobMatcher(b"*a" * 16 + b"*b")(b"a" * 1_000_000)


WORDS = ("browse.filter", "browse.sort", "tree.columns", "tree.width")


def test_the_nearest_word_is_suggested() -> None:
    assert nearest_word("browse.filtr", WORDS) == "browse.filter"
    assert did_you_mean("tree.with", WORDS) == " Did you mean tree.width?"


def test_nothing_is_suggested_for_what_is_like_no_word() -> None:
    assert nearest_word("xyz", WORDS) is None
    assert did_you_mean("xyz", WORDS) == ""
    assert nearest_word("xyz", ()) is None


def test_how_much_alike_they_must_be_is_chosen() -> None:
    assert nearest_word("abxx", ["abyy"], least=0.5) == "abyy"
    assert nearest_word("abxx", ["abyy"], least=0.6) is None


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8), st.data())
def test_a_known_word_is_its_own_nearest(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    assert nearest_word(word, words) == word


ODD = st.lists(st.sampled_from(b"0019aZ:-_\0\x01\xc3\xff"), max_size=10).map(bytes)
LONG = st.tuples(st.integers(0, 300), st.integers(0, 10**400)).map(lambda one: b"0" * one[0] + b"%d" % one[1])
CROCKFORD = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
BASE62 = st.text("0123456789ABCDXYZabcdxyz", min_size=6, max_size=22).filter(lambda one: not one.isdigit())
HEX = st.text("0123456789abcdef", min_size=8, max_size=40).filter(lambda one: not one.isdigit())


@given(st.lists(ODD | LONG, unique=True))
def test_order_is_that_of_a_naive_model(names: list[bytes]) -> None:
    assert sorted(names, key=natural) == sorted(names, key=naturally)


@given(ODD | LONG | st.binary(max_size=12), ODD | LONG | st.binary(max_size=12))
def test_different_names_are_never_equal(one: bytes, other: bytes) -> None:
    assert (natural(one) == natural(other)) == (one == other)


@given(st.sampled_from([CROCKFORD, BASE62, HEX, st.uuids().map(str)]).flatmap(lambda one: st.lists(one, unique=True)))
def test_identifiers_are_in_the_order_of_their_bytes(identifiers: list[str]) -> None:
    names = [b"conv:" + one.encode() for one in identifiers]
    assert sorted(names, key=natural) == sorted(names)


def test_uuid_whose_groups_are_digits_is_no_number() -> None:
    names = [b"1234567f-0000-4000-8000-000000000000", b"12345678-0000-4000-8000-000000000000"]
    names += [b"02345678-9999-4000-8000-000000000000", b"ab345678-1000-4000-8000-000000000001"]
    assert sorted(names, key=natural) == sorted(names)


@pytest.mark.parametrize(
    "ascending",
    [
        (b"deploy:2", b"deploy:10", b"deploy:100"),
        (b"7", b"07", b"007", b"8"),
        (b"v10-1", b"v2-9", b"v2-10"),
        (b"1.9.0", b"1.10.0"),
        (b"2024-01-02T03:04:05Z", b"2024-01-12T03:04:05Z"),
        (b"node_2:a", b"node_10:a"),
        (b"1", b"2", b"0af", b"1e9"),
        (b"99999999999999999999", b"100000000000000000000"),
        (b"9" * 300, b"1" + b"0" * 300),
    ],
)
def test_is_ascending(ascending: tuple[bytes, ...]) -> None:
    for before, after in pairwise(ascending):
        assert natural(before) < natural(after)


@given(st.lists(ODD, unique=True))
def test_java_names_stand_behind_their_texts(texts: list[bytes]) -> None:
    names = [name for text in texts for name in (text, raw_java_name(text) or b"")]
    assert [name for name in sorted(names, key=natural) if name in texts] == sorted(texts, key=natural)
    assert len({*map(natural, names)}) == len(names)
    assert all(natural(text) < natural(raw_java_name(text) or b"") for text in texts)
