"""Words that look like something else than they are read as: what is said, and that ordinary names are left alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.query.hints import read_with_hints
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.query import Query
from rtui.keyspace.text.matching import edits
from tests.analysis.query.oracle import QUERY
from tests.grammar import CONVENTIONS, Grammar


def meant(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is meant by a line that can be read, surely and perhaps: the line with the part replaced."""
    reading = read_with_hints(line)
    assert not reading.problems
    query = reading.query

    def mended(problems: tuple[object, ...]) -> tuple[str, ...]:
        return tuple(
            line[: one.span.start] + one.meant[0] + line[one.span.end :]
            for one in (*query.hints, *query.doubts)
            if one in problems and one.meant
        )

    return mended(query.hints), mended(query.doubts)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # a mistyped name before a value that only a term has
        ("ttk:none", "ttl:none"),
        ("tl:10m..1h", "ttl:10m..1h"),
        ("cart tyep:zset", "cart type:zset"),
        ("typ:hash,set", "type:hash,set"),
        ("szie:1K..2K", "size:1K..2K"),
        ("!dile:30d..", "!idle>=30d"),
        ("ecn:listpack", "enc:listpack"),
        ("encoding:raw", "enc:raw"),
        ("namespace:shop", "in:shop"),
        ("slto:5", "slot:5"),
        # another operator
        ("ttl==none", "ttl:none"),
        ("TYPE=zset", "type:zset"),
        ("in=shop:user", "in:shop:user"),
        ("slot=5", "slot:5"),
        ("idle=30d", "idle<30d"),
        ("enc!=raw", "!enc:raw"),
        ("size=>1M", "size>=1M"),
        ("tyep=zset", "type:zset"),
        ("ttl=never", "ttl:none"),
        ("type=hashes", "type:hash"),
        # words between terms
        ("type:set && ttl:none", "type:set ttl:none"),
        ("type:set and ttl:none", "type:set ttl:none"),
        ("cart AND order", "cart order"),
        ("type:set OR type:zset", "type:set,zset"),
        ("len:1 || len:5..6", "len:1,5..6"),
        ("cart NOT type:set", "cart !type:set"),
        ("NOT ttl:none", "!ttl:none"),
        # characters around a term
        ("-type:set", "!type:set"),
        ("(type:set)", "type:set"),
        ("'ttl<1h'", "ttl<1h"),
        ("+len>5", "len>5"),
        # spaces
        ("ttl < 1h", "ttl<1h"),
        ("size >1M", "size>1M"),
        ("size>2 K", "size>2K"),
        ("type = set", "type:set"),
        ("idle>3 days", "idle>3d"),
        ("size>10 MB", "size>10M"),
        # terms without spaces between them, or of which no key passes both
        ("in:shop,type:zset", "in:shop type:zset"),
        ("type:set type:zset", "type:set,zset"),
        ("enc:raw enc:int cart", "enc:raw,int cart"),
        # a glob where names are taken as they are
        ("in:shop:*", "in:shop"),
        ("in:*:user", "*:user:*"),
    ],
)
def test_what_is_meant_is_said_beside_the_search(line: str, expected: str) -> None:
    sure, _ = meant(line)
    assert sure[:1] == (expected,)
    assert not read_with_hints(expected).problems


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tags:summer", "tag:summer"),
        ("slots:5", "slot:5"),
        ("sizes:10", "size:10"),
        ("ns:shop", "in:shop"),
        ("salt and pepper", "salt pepper"),
        ("[rate]", '"[rate]"'),
        ("page?q=1", '"page?q=1"'),
        ("Cart", "cart"),
        ("cart,", "cart"),
    ],
)
def test_what_may_be_an_ordinary_name_is_doubted_only_where_nothing_is_found(line: str, expected: str) -> None:
    sure, doubted = meant(line)
    assert sure == ()
    assert doubted[0] == expected


@pytest.mark.parametrize(
    "line",
    [
        *("user:42", "session:none", "id:5", "test:hash", "cart", "user:*:cart", '"tll:none"', '"AND"', "AND", "not"),
        *("re:^ttl=", "text:ttl=none", "glob:type=*", "type:string", "in:shop", "tag:AND", "@saved", "user:*"),
        *("text:[a]", "{type:hash}:x", "page?ttl=none", "2026-11-22", "a-b", "--", "rate(5m)"),
    ],
)
def test_nothing_is_said_of_what_is_plain(line: str) -> None:
    assert meant(line)[0] == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("type:string,ttl:none", "type:string ttl:none"),
        ("cart ttl:none;type:zset", "cart ttl:none type:zset"),
        ("ttl:none|len>5 x", "ttl:none len>5 x"),
        ("ttl: <1h", "ttl<1h"),
        ("cart type: zset x", "cart type:zset x"),
        ("len> 5", "len>5"),
    ],
)
def test_a_line_that_can_not_be_read_is_mended_beyond_one_word(line: str, expected: str) -> None:
    (problem, *_) = read_with_hints(line).problems
    assert line[: problem.span.start] + problem.meant[0] + line[problem.span.end :] == expected


@pytest.mark.parametrize("line", ["ttl=abc", "size=large", "idle:5x", "type:set !type:zset", "type:set,zset type:set"])
def test_no_value_is_made_up(line: str) -> None:
    query = read_with_hints(line).query
    assert query.hints == ()


def test_a_type_that_nobody_knows_is_doubted() -> None:
    (doubt,) = read_with_hints("type:graphdata").query.doubts
    assert "graphdata" in doubt.sentence


@given(QUERY)
def test_what_is_written_of_a_query_is_read_as_the_same_beside_any_hint(query: Query) -> None:
    assert read_with_hints(str(query)).query == query


@given(st.text("tlypesizhan:<>=!,(- 10mKORD.*[]'", max_size=30))
def test_what_is_suggested_can_be_read(line: str) -> None:
    query = read_with_hints(line).query
    for one in (*query.hints, *query.doubts):
        assert len(one.meant) <= 1
        for text in one.meant:
            assert parse(text).terms


@pytest.mark.parametrize("seed", range(5))
def test_names_of_real_keyspaces_are_no_near_misses(seed: int) -> None:
    names = [name.decode("utf-8", "replace") for _, name in Grammar(seed).drawn(400)]
    assert [name for name in names if read_with_hints(name).query.hints] == []


def test_names_of_conventions_and_their_beginnings_are_no_near_misses() -> None:
    for one in CONVENTIONS:
        name = re.sub(r"\{[^}]*\}", "7", one)
        for end in range(1, len(name) + 1):
            assert read_with_hints(name[:end]).query.hints == ()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("tll", "ttl", 1), ("tpye", "type", 1), ("", "abc", 3), ("a", "a", 0), ("szie", "size", 1), ("abc", "ca", 3)],
)
def test_edits(one: str, other: str, expected: int) -> None:
    assert edits(one, other) == edits(other, one) == expected


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_edits_are_a_distance(one: str, other: str) -> None:
    assert (edits(one, other) == 0) is (one == other)
    assert abs(len(one) - len(other)) <= edits(one, other) <= max(len(one), len(other))


def test_hints_do_not_make_queries_differ() -> None:
    query = read_with_hints("tll:none").query
    assert query.hints
    assert query == replace(query, hints=())
