"""MATCH patterns decided here, beside what a server decides."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.keyspace.text.glob import Matcher
from tests.servers import Server

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
    assert Matcher(pattern)(name) is expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns=st.lists(pieces, min_size=20, max_size=20), names=st.sets(pieces, min_size=30, max_size=60))
def test_agrees_with_a_server(valkey: Server, patterns: list[bytes], names: set[bytes]) -> None:
    client = valkey.client()
    client.flushall()
    client.mset(dict.fromkeys(names, b""))
    for pattern in patterns:
        _, found = client.scan(0, match=pattern, count=1000)
        assert set(found) == set(filter(Matcher(pattern), names)), pattern


def test_many_asterisks_on_a_long_name_take_no_time() -> None:
    assert not Matcher(b"*a" * 16 + b"*b")(b"a" * 1_000_000)
