from __future__ import annotations

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
from rtui.keyspace.text.matching import did_you_mean, nearest_word
from tests.servers import Server

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
        (b"", b"", True),
        (b"", b"a", False),
        (b"*", b"", True),
        (b"user:*", b"user:", True),
        (b"user:*", b"user", False),
        (b"*:x:*", b"a:x:", True),
        (b"a*b*c", b"a--b--b--c", True),
        (b"a*b*c", b"a--c--b", False),
        (b"*ab", b"ab", True),
        (b"a*a", b"a", False),
        (b"a?c", b"a\nc", True),
        (b"a?c", b"ac", False),
        (rb"a\*c", b"a*c", True),
        (rb"a\*c", b"abc", False),
        (b"[a-c]x", b"bx", True),
        (b"[c-a]x", b"bx", True),
        (b"[^a]x", b"ax", False),
        (b"[^a]x", b"bx", True),
        (b"[]x", b"x", False),
        (rb"[\]]", b"]", True),
        (b"[ab", b"b", True),
        (b"a\\", b"a\\", True),
    ],
)
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
