from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.glob import (
    MAX_PATTERN_BYTES,
    MAX_STARS,
    PatternError,
    check_pattern,
    containing_pattern,
    escape_glob,
    is_literal,
    literal_name,
    prefix_pattern,
)
from tests.servers import Server

SPECIALS = st.lists(st.sampled_from([b"*", b"?", b"[", b"]", b"\\", b"^", b"-", b"a", b"\xff", b"\n"]), max_size=8).map(
    b"".join
)


@given(SPECIALS)
def test_an_escaped_name_is_literal_and_means_itself(name: bytes) -> None:
    assert is_literal(escape_glob(name))
    assert literal_name(escape_glob(name)) == name


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (b"", b""),
        (b"user:1", b"user:1"),
        (b"a]", b"a]"),
        (rb"a\*b", b"a*b"),
        (rb"a\b", b"ab"),
        (b"a\\", b"a\\"),
        (rb"a\\*", None),
        (b"*", None),
        (b"a?", None),
        (b"[a]", None),
        (b"\n*", None),
    ],
)
def test_literal_name(pattern: bytes, name: bytes | None) -> None:
    assert literal_name(pattern) == name
    assert is_literal(pattern) is (name is not None)


@given(st.binary(max_size=3 * MAX_PATTERN_BYTES))
def test_a_prefix_pattern_is_always_within_bounds(prefix: bytes) -> None:
    pattern = prefix_pattern(prefix)
    assert check_pattern(pattern) is pattern
    literal = literal_name(pattern[:-1])
    assert literal is not None
    assert prefix.startswith(literal)
    if len(escape_glob(prefix)) < MAX_PATTERN_BYTES:
        assert literal == prefix


def test_a_prefix_of_specials_is_shortened_between_escapes() -> None:
    pattern = prefix_pattern(b"*" * 1_000_000)
    assert len(pattern) <= MAX_PATTERN_BYTES
    assert literal_name(pattern[:-1]) == b"*" * 255


def test_bounds() -> None:
    assert check_pattern(b"*" * MAX_STARS) == b"*" * MAX_STARS
    with pytest.raises(PatternError, match="17 stars"):
        check_pattern(b"*" * (MAX_STARS + 1))
    assert check_pattern(rb"\*" * 100) == rb"\*" * 100
    assert check_pattern(b"x" * MAX_PATTERN_BYTES)
    with pytest.raises(PatternError, match="513 bytes"):
        check_pattern(b"x" * (MAX_PATTERN_BYTES + 1))


def test_containing_pattern() -> None:
    assert containing_pattern(b"a*b") == rb"*a\*b*"
    with pytest.raises(PatternError):
        containing_pattern(b"x" * MAX_PATTERN_BYTES)


def test_an_unclosed_mess_is_judged_at_once() -> None:
    assert is_literal(b"\\a" * 500_000)
    assert is_literal(b"a" * 1_000_000)


def test_the_server_understands_escapes(server: Server) -> None:
    names = [b"a*", b"a?", b"a[b]", b"a\\", b"a^", b"a-b", b"ab", b"a\xff", b"a\n", b"[a]", b"]", b"\\*", b"aXb", b"*"]
    with server.client() as client:
        client.mset(dict.fromkeys(names, b""))
        for name in names:
            assert client.scan(0, match=escape_glob(name), count=1000)[1] == [name]
            found = set(client.scan(0, match=prefix_pattern(name), count=1000)[1])
            assert found == {other for other in names if other.startswith(name)}
            found = set(client.scan(0, match=containing_pattern(name), count=1000)[1])
            assert found == {other for other in names if name in other}
        assert client.scan(0, match=b"a\\", count=1000)[1] == [literal_name(b"a\\")]
