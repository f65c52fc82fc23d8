"""What may stand at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.query.completion import Vocabulary, complete
from rtui.analysis.query.parsing import read
from rtui.keyspace.text.display import HOSTILE


def beginning(*names: bytes) -> Callable[[bytes], Iterable[bytes]]:
    """Names by what they begin with."""
    return lambda prefix: (name for name in names if name.startswith(prefix))


VOCABULARY = Vocabulary(
    namespaces=beginning(b"shop", b"shop:user", b"shop:a b", b"app\xff"),
    patterns=beginning(b"user:{id}:orders"),
    tags=beginning(b"campaign42"),
    types=(b"hash", b"MyType"),
)


@pytest.mark.parametrize(
    ("line", "replaced", "candidates"),
    [
        ("tt", "tt", ["ttl:none", "ttl<", "ttl>", "ttl:"]),
        ("!tt", "tt", ["ttl:none", "ttl<", "ttl>", "ttl:"]),
        ("cart siz", "siz", ["size:", "size<", "size>"]),
        ("slo", "slo", ["slot:"]),
        ("cart", "cart", []),
        ("type:", "", ["hash", "MyType", "string", "list", "set", "zset", "stream"]),
        ("type:hash,s", "s", ["string", "set", "stream"]),
        ("type:my", "my", ["MyType"]),
        ("enc:list", "list", ["listpack", "listpackex"]),
        ("ttl:", "", ["none"]),
        ("ttl:no", "no", ["none"]),
        ("ttl<10", "10", ["10s", "10m", "10h", "10d"]),
        ("ttl:10m..1", "10m..1", ["10m..1s", "10m..1m", "10m..1h", "10m..1d"]),
        ("size>1", "1", ["1K", "1M", "1G"]),
        ("len>5,", "", []),
        ("in:shop:", "shop:", ["shop:user", '"shop:a b"']),
        ("in:ap", "ap", ['"app\\xff"']),
        ("tag:c", "c", ["campaign42"]),
        ("pattern:user:", "user:", ["user:{id}:orders"]),
        ("re:x", "x", []),
    ],
)
def test_what_comes_next(line: str, replaced: str, candidates: list[str]) -> None:
    found = complete(line, len(line), VOCABULARY)
    assert line[found.span.start : found.span.end] == replaced
    assert [one.text for one in found.candidates][: max(1, len(candidates))] == candidates


def test_the_term_at_the_cursor_is_explained() -> None:
    assert "time to live" in complete("cart ttl<", 9).help
    assert complete("cart ttl<", 4).help == ""


@given(st.text('abtlsize:<>=!",\\ 10mk*{}é', max_size=30), st.integers(-1, 32))
def test_a_candidate_replaces_what_was_typed(line: str, cursor: int) -> None:
    found = complete(line, cursor, VOCABULARY)
    at = max(0, min(cursor, len(line)))
    assert 0 <= found.span.start <= found.span.end == at
    for one in found.candidates:
        assert HOSTILE.search(one.text) is None


@pytest.mark.parametrize("line", ["type:h", "cart tt", "enc:em", "in:app", "in:shop:a", "pattern:u", "!type:ha"])
def test_whole_candidates_are_right(line: str) -> None:
    found = complete(line, len(line), VOCABULARY)
    assert found.candidates
    for one in found.candidates:
        if one.is_whole:
            assert not read(line[: found.span.start] + one.text).problems
