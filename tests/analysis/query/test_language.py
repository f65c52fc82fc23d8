"""The language of queries: what may stand at the cursor, and words that look like something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.query.hints import Vocabulary, complete, read_with_hints
from rtui.analysis.query.parsing import MAX_LINE, MAX_TERMS, QueryError, parse, read
from rtui.analysis.query.query import Query, QuerySpan, Term
from rtui.analysis.query.terms import TERMS, NumberKeyword
from rtui.keyspace.text.display import HOSTILE
from rtui.keyspace.text.matching import edits
from rtui.keyspace.text.quantities import Bounds
from tests.analysis.query.oracle import QUERY
from tests.grammar import CONVENTIONS, Grammar

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@given(QUERY)
def test_what_is_written_is_read_as_the_same(query: Query) -> None:
    assert parse(str(query)) == query


@given(QUERY)
def test_what_is_written_is_safe_to_show(query: Query) -> None:
    assert HOSTILE.search(str(query)) is None


@given(st.text(max_size=40) | st.text('abtlsize:<>=!",\\ 10mkM*.-{}', max_size=40))
@example("!")
@example('"')
@example("ttl:..")
@example("type:,")
@example('in:"a"b')
@example("len>99999999999999999999")
@example("expires:0000-00-00")
@example("\ud800")
def test_any_line_can_be_read(line: str) -> None:
    reading = read_with_hints(line)
    for problem in (*reading.problems, *reading.query.hints, *reading.query.doubts):
        assert 0 <= problem.span.start < problem.span.end <= len(line) + 1
        assert problem.sentence.endswith((".", "?"))
        assert HOSTILE.search(problem.sentence) is None
    assert parse(str(reading.query)) == reading.query


@given(QUERY)
def test_words_are_where_their_spans_say(query: Query) -> None:
    line = str(query)
    for term in parse(line).terms:
        assert parse(line[term.span.start : term.span.end]).terms == (term,)


@pytest.mark.parametrize(
    ("line", "term"),
    [
        ("cart", Term("text", (b"cart",))),
        ("user:42", Term("text", (b"user:42",))),
        ('"two words"', Term("text", (b"two words",))),
        (r'"\xff\"a"', Term("text", (b'\xff"a',))),
        ('"a*"', Term("text", (b"a*",))),
        ("user:*:cart", Term("glob", (b"user:*:cart",))),
        ("user:[0-9]", Term("glob", (b"user:[0-9]",))),
        ("a[b", Term("text", (b"a[b",))),
        ("!user:*", Term("glob", (b"user:*",), is_negated=True)),
        (r"re:^user:\d+$", Term("re", (rb"^user:\d+$",))),
        ("ttl:none", Term("ttl", (NumberKeyword.NONE,))),
        ("TTL:None", Term("ttl", (NumberKeyword.NONE,))),
        ("ttl<10m", Term("ttl", (Bounds(None, 10 * MINUTE - 1),))),
        ("ttl<=10m", Term("ttl", (Bounds(None, 10 * MINUTE),))),
        ("ttl<600", Term("ttl", (Bounds(None, 10 * MINUTE - 1),))),
        ("ttl>30d", Term("ttl", (Bounds(30 * DAY + 1, None),))),
        ("ttl:10m..1h30m", Term("ttl", (Bounds(10 * MINUTE, 90 * MINUTE - 1),))),
        ("ttl:1h..", Term("ttl", (Bounds(HOUR, None),))),
        ("ttl:none,..1h", Term("ttl", (NumberKeyword.NONE, Bounds(None, HOUR - 1)))),
        ("size>1M", Term("size", ((Bounds((1 << 20) + 1, None)),))),
        ("size:1.5KiB", Term("size", (Bounds(1536, 1536),))),
        ("len>10000", Term("len", (Bounds(10_001, None),))),
        ("len>10_000", Term("len", (Bounds(10_001, None),))),
        ("len>=10k", Term("len", (Bounds(10_000, None),))),
        ("len:1..10,20", Term("len", (Bounds(1, 10), Bounds(20, 20)))),
        ("freq>100", Term("freq", (Bounds(101, None),))),
        ("slot:2734", Term("slot", (Bounds(2734, 2734),))),
        ("slot:0-5460", Term("slot", (Bounds(0, 5460),))),
        ("slot:0..5460,16383", Term("slot", (Bounds(0, 5460), Bounds(16383, 16383)))),
        ("type:hash,set", Term("type", (b"hash", b"set"))),
        ('type:"hsh"', Term("type", (b"hsh",))),
        ("type:MyModule-x", Term("type", (b"MyModule-x",))),
        ("enc:listpack", Term("enc", (b"listpack",))),
        ("tag:campaign42", Term("tag", (b"campaign42",))),
        ('in:"a,b",c', Term("in", (b"a,b", b"c"))),
        ("pattern:user:<id>:orders", Term("pattern", (b"user:<id>:orders",))),
        ("expires:2026-11-22T21:31..21:33", Term("expires", (Bounds(1_795_383_060_000, 1_795_383_180_000 - 1),))),
        ("expires<2026-11-22", Term("expires", (Bounds(None, 1_795_305_600_000 - 1),))),
    ],
)
def test_what_a_word_says(line: str, term: Term) -> None:
    assert parse(line).terms == (term,)
    assert read_with_hints(line).query.hints == ()


@pytest.mark.parametrize(
    "line",
    [
        *(
            "cart", "user:*:cart", "!ttl:none", "ttl<10m", "ttl>30d", "ttl:10m..1h", "size>1M", "size:1K..64K",
            "len>10000",
        ),
        *("len>0", "type:hash,set", "idle>30d", "slot:2734", "slot:0-5460", "pattern:user:<id>:orders", "in:shop:user"),
        *("expires:2026-11-22T21:31..21:33", "expires>=2026-11-22T21:31", "glob:a", '"type:hash"', "re:(?i)cart"),
    ],
)  # fmt: skip
def test_lines_stay_as_they_are_typed(line: str) -> None:
    assert str(parse(line)) == line


@pytest.mark.parametrize(
    ("line", "marked", "meant"),
    [
        ("tll<10m", "tll", ("ttl",)),
        ("length>5", "length", ("len",)),
        ("memory>=1M", "memory", ("size",)),
        ("xyzzy<5", "xyzzy", ()),
        ("type:hsh", "hsh", ("hash",)),
        ("type:hash,sett", "sett", ("set",)),
        ("enc:listpak", "listpak", ("listpack",)),
        ("type:strings", "strings", ("string",)),
        ("type:hashes", "hashes", ("hash",)),
        ("type:sorted_set", "sorted_set", ("zset",)),
        ("type:JSON", "JSON", ("ReJSON-RL",)),
        ("type:ZSET,hash", "ZSET", ("zset",)),
        ("type:list|stream", "list|stream", ("list,stream",)),
        ("enc:integer", "integer", ("int",)),
        ("ttl:forever", "ttl:forever", ("ttl:none",)),
        ("TTL:NULL", "TTL:NULL", ("ttl:none",)),
        ("!ttl:-1", "!ttl:-1", ("!ttl:none",)),
        ("ttl>=none", "ttl>=none", ("ttl:none",)),
        ("ttl:noen", "ttl:noen", ("ttl:none",)),
        ("ttl:some", "ttl:some", ("!ttl:none",)),
        ("!ttl:some", "!ttl:some", ("ttl:none",)),
        ("idle:>2h", "idle:>2h", ("idle>2h",)),
        ("len:>=5", "len:>=5", ("len>=5",)),
        ("ttl<10x", "10x", ("10m",)),
        ("ttl:1h..10m", "1h..10m", ("10m..1h",)),
        ("ttl:10m", "ttl:10m", ("ttl<10m", "ttl>10m")),
        ("!ttl:10m", "!ttl:10m", ("!ttl<10m", "!ttl>10m")),
        ("size>1Q", "1Q", ("1M",)),
        ("len>many", "many", ("1000",)),
        ("freq>300", "300", ()),
        ("slot:16384", "16384", ()),
        ("slot<5", "<", ()),
        ("type:", "type:", ("type:hash", "type:hash,set")),
        ("!", "!", ()),
        ('"abc', '"abc', ('"abc"',)),
        ('x "a"b', "b", ()),
        (r'"\q"', r'"\q"', ()),
        ("re:(", "(", ()),
        ("pattern:a\\", "a\\", ()),
        ("*" * 17, "*" * 17, ()),
        ("expires<tomorrow", "tomorrow", ("2026-11-22T21:31",)),
        ("expires<2026-02-30", "2026-02-30", ()),
    ],
)
def test_a_wrong_term_is_marked_with_what_was_meant(line: str, marked: str, meant: tuple[str, ...]) -> None:
    with pytest.raises(QueryError) as raised:
        parse(f"cart {line}")
    problem = raised.value.problem
    assert f"cart {line}"[problem.span.start : problem.span.end] == marked
    assert problem.meant == meant
    assert str(raised.value) == problem.sentence


def test_right_terms_of_a_wrong_line_are_read() -> None:
    reading = read("cart type:hsh ttl:none size>")
    assert reading.query == parse("cart ttl:none")
    assert [problem.span for problem in reading.problems] == [QuerySpan(10, 13), QuerySpan(23, 28)]


@pytest.mark.parametrize("line", ["user:hash", "tape:1", "session:none", "types:foo:bar"])
def test_names_with_colons_are_no_terms(line: str) -> None:
    assert parse(line).terms == (Term("text", (line.encode(),)),)


def test_lines_are_bounded() -> None:
    with pytest.raises(QueryError, match="too long"):
        parse("a " * MAX_LINE)
    with pytest.raises(QueryError, match=f"more than {MAX_TERMS} terms"):
        parse(" ".join(f"a{number}" for number in range(MAX_TERMS + 1)))
    with pytest.raises(QueryError, match="more than 512 values"):
        parse(f"in:{','.join(f'a{number}' for number in range(513))}")


def test_an_empty_line_finds_everything() -> None:
    assert parse("  ") == Query()


def test_examples_are_right() -> None:
    for name, one in TERMS.items():
        for text in one.examples:
            assert [term.name for term in parse(text).terms] == [name]


def beginning(*names: bytes) -> Callable[[bytes], Iterable[bytes]]:
    """Names by what they begin with."""
    return lambda prefix: (name for name in names if name.startswith(prefix))


VOCABULARY = Vocabulary(
    namespaces=beginning(b"shop", b"shop:user", b"shop:a b", b"app\xff"),
    patterns=beginning(b"user:<id>:orders"),
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
        ("pattern:user:", "user:", ["user:<id>:orders"]),
        ("re:x", "x", []),
    ],
)
def test_what_comes_next(line: str, replaced: str, candidates: list[str]) -> None:
    found = complete(line, len(line), VOCABULARY)
    assert line[found.span.start : found.span.end] == replaced
    assert [one.text for one in found.candidates][: max(1, len(candidates))] == candidates


def test_the_term_at_the_cursor_is_explained() -> None:
    assert "remaining TTL" in complete("cart ttl<", 9).help
    assert complete("cart ttl<", 4).help == ""


@given(st.text('abtlsize:<>=!",\\ 10mk*{}é', max_size=30), st.integers(-1, 32))
def test_a_candidate_replaces_what_was_typed(line: str, cursor: int) -> None:
    found = complete(line, cursor, VOCABULARY)
    assert 0 <= found.span.start <= found.span.end == max(0, min(cursor, len(line)))
    for one in found.candidates:
        assert HOSTILE.search(one.text) is None


@pytest.mark.parametrize("line", ["type:h", "cart tt", "enc:em", "in:app", "in:shop:a", "pattern:u", "!type:ha"])
def test_whole_candidates_are_right(line: str) -> None:
    found = complete(line, len(line), VOCABULARY)
    assert found.candidates
    for one in found.candidates:
        if one.is_whole:
            assert not read(line[: found.span.start] + one.text).problems


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
        ("tags:summer", "tag:summer"), ("slots:5", "slot:5"), ("sizes:10", "size:10"), ("ns:shop", "in:shop"),
        ("salt and pepper", "salt pepper"), ("[rate]", '"[rate]"'), ("page?q=1", '"page?q=1"'), ("Cart", "cart"),
        ("cart,", "cart"),
    ],
)  # fmt: skip
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
    assert read_with_hints(line).query.hints == ()


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
