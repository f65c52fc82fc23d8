"""Queries decided key by key and as conditions on rows, against the plainest means."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, product
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.deciding import NameFilter, fact_tests, name_test
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.patterns import RegexError, ascii_regex, compiled
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.terms import ENCODINGS, Fact, NumberKeyword
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import Separators, raw_java_name
from rtui.keyspace.types import TYPES
from rtui.table.kept_rows import condition_of
from rtui.table.schema import NEVER, SCHEMA, names_of
from tests.analysis.query.oracle import NAMES, QUERY, TERM, applies, is_glob, named
from tests.analysis.query.test_matching import NAME, SEPARATORS
from tests.table.test_rows import passing_by

NOW_MS = 1_790_000_000_123

SNIPPETS = (
    *(
        b"", b"a", b"A", b"user", b"User", b":", b"::", b"/", b"{", b"}", b"{user:7}", b"[", b"]", b"\\", b"*", b"?",
        b"42",
    ),
    *(
        "é".encode(),
        "É".encode(),
        "ключ".encode(),
        "日本".encode(),
        "\u212a".encode(),
        "\u017f".encode(),
        b"\xff",
        b"\xc3",
    ),
    *(b"\xa9", b"\x00", b"\n", b" ", b"\x0b", b"-", b"550e8400-e29b-41d4-a716-446655440000", b"cart", b"\xe2\x9b\xbe"),
)  # fmt: skip
KEY = st.one_of(
    NAME,
    NAMES,
    st.lists(st.sampled_from(SNIPPETS), max_size=6).map(b"".join),
    st.lists(st.sampled_from(SNIPPETS), max_size=4).map(lambda parts: raw_java_name(b"".join(parts)) or b""),
)
GLOB = st.lists(
    st.sampled_from([*SNIPPETS, b"*", b"*", b"?", b"[a-c]", b"[^a]", b"[^\xc3]", b"[\xa9-\xff]", b"[]", b"\\*", b"[a"]),
    max_size=6,
).map(b"".join)


@dataclass(frozen=True)
class Row:
    """One key and what is known of it."""

    key: bytes
    type: str | None = None
    encoding: str | None = None
    expires_ms: int | None = None
    memory_bytes: int | None = None
    length: int | None = None
    idle_s: int | None = None
    frequency: int | None = None
    slot: int | None = None

    def value(self, fact: Fact) -> bytes | int | None:
        """What the tests of a search are given; None where it is not known."""
        found = getattr(self, fact.column)
        if isinstance(found, str):
            return found.encode()
        if fact is Fact.TTL and found is not None:
            return NO_EXPIRY if found == NEVER else max(0, found - NOW_MS)
        assert found is None or isinstance(found, int)
        return found


def unknown_or(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


def near(query: Query, name: str, scale: int = 1, offset: int = 0) -> st.SearchStrategy[int]:
    """Numbers at the edges of the terms of a name, and others."""
    ranges = [one for term in query.terms if term.name == name for one in term.values if isinstance(one, Bounds)]
    edges = [edge for one in ranges for edge in (one.low, one.high) if edge is not None]
    close = [max(0, edge // scale + offset + more) for edge in edges for more in (-1, 0, 1)]
    return st.sampled_from([value for value in [0, 1, 255, *close] if value < 1 << 63])


def rows(query: Query, keys: st.SearchStrategy[bytes]) -> st.SearchStrategy[Row]:
    """Draw a row that a query may be about."""

    def names(term: str, known: list[str]) -> st.SearchStrategy[str]:
        wanted = [name for one in query.terms if one.name == term for name in one.names]
        return st.sampled_from(
            [*known, *(text for name in wanted if (text := name.decode("utf-8", "ignore")).encode() == name)]
        )

    expiry = st.one_of(
        st.just(NEVER), near(query, "ttl", offset=NOW_MS), near(query, "expires"), st.just(NOW_MS - 5_000)
    )
    return st.builds(
        Row,
        keys,
        type=unknown_or(names("type", [one.decode() for one in TYPES])),
        encoding=unknown_or(names("enc", [one.decode() for one in ENCODINGS])),
        expires_ms=unknown_or(expiry),
        memory_bytes=unknown_or(near(query, "size")),
        length=unknown_or(near(query, "len")),
        idle_s=unknown_or(near(query, "idle", scale=1000)),
        frequency=unknown_or(near(query, "freq").map(lambda number: min(number, 255))),
        slot=st.just(None),
    ).flatmap(lambda row: st.sampled_from([row, Row(**{**vars(row), "slot": key_slot(row.key)})]))


def table_of(found: list[Row]) -> pl.DataFrame:
    name, raw = names_of([row.key for row in found])
    columns = {
        column: [getattr(row, column) for row in found] for column in Row.__dataclass_fields__ if column != "key"
    }
    missing = {column: [None] * len(found) for column in SCHEMA if column not in {"name", "raw", *columns}}
    facts = {**columns, **missing}
    return pl.DataFrame(
        {"name": name, "raw": raw, **{c: pl.Series(facts[c], dtype=SCHEMA[c]) for c in SCHEMA if c in facts}}
    )


def asked_at_ms(row: Row, fact: Fact) -> int:
    """When the value of a fact was read: a time to live that has run out was read when it did."""
    return (
        row.expires_ms if fact is Fact.TTL and row.expires_ms is not None and 0 <= row.expires_ms < NOW_MS else NOW_MS
    )


def decided(query: Query, row: Row, separators: Separators) -> tuple[bool | None, Fact | None]:
    """Whether a row passes by the plainest means, and where nobody knows, the fact that is missing."""
    passes = [named(term, row.key, separators) is not term.is_negated for term in query.about(Fact.NAME)]
    unknown: Fact | None = None
    for fact in query.facts:
        value = row.value(fact)
        if value is None:
            unknown = unknown or fact
            continue
        at_ms = asked_at_ms(row, fact)
        passes += [applies(term, value, at_ms) is not term.is_negated for term in query.about(fact)]
    if not all(passes):
        return False, None
    return (True if unknown is None else None), unknown


def decided_as_searched(query: Query, row: Row, separators: Separators) -> bool | None:
    """The same as a search of the server decides it, one fact after the other."""
    is_unknown, tests = False, fact_tests(query)
    assert tests.keys() == set(query.facts)
    if not NameFilter(query, separators)(row.key):
        return False
    for fact, test in tests.items():
        value = row.value(fact)
        if value is None:
            is_unknown = True
        elif not test(value, asked_at_ms(row, fact) / 1000):
            return False
    return None if is_unknown else True


def answers_of(query: Query, separators: Separators, table: pl.DataFrame) -> pl.Series:
    answers = table.select(passing_by(condition_of(query, separators, NOW_MS)).alias("passes"))["passes"]
    return answers if len(answers) == table.height else answers.new_from_index(0, table.height)


def without_places(query: Query) -> Query:
    return Query(tuple(term for term in query.terms if term.name not in ("node", "shard")))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Query, Separators, list[Row]]:
    query = draw(QUERY.map(without_places))
    wanted = [name for term in query.about(Fact.NAME) for name in term.names]
    keys = st.sampled_from(wanted) | KEY if wanted else KEY
    return query, draw(SEPARATORS), draw(st.lists(rows(query, keys), max_size=20))


@given(cases())
def test_keys_and_rows_are_decided_alike(case: tuple[Query, Separators, list[Row]]) -> None:
    query, separators, found = case
    table = table_of(found)
    wanted = [decided(query, row, separators) for row in found]
    passing = [passes for passes, _ in wanted]
    assert [decided_as_searched(query, row, separators) for row in found] == passing
    names = Query(query.about(Fact.NAME))
    named_so = [row.key for row in found if decided(names, row, separators)[0]]
    assert NameFilter(names, separators).keep([row.key for row in found]) == named_so
    answers = answers_of(query, separators, table)
    assert answers.to_list() == passing
    condition = condition_of(query, separators, NOW_MS)
    if condition.columns:
        unknown = table.filter(answers.is_null()).select(condition.undecided().alias("column"))["column"].to_list()
        assert Counter(unknown) == Counter(fact.column for _, fact in wanted if fact is not None)


FACT_TERM = TERM.filter(lambda term: term.spec.fact not in (Fact.NAME, Fact.VALUE))


def row_with(column: str, value: str | int | None) -> Row:
    found: dict[str, Any] = {column: value}
    return Row(b"k", **found)


def at_the_edges(term: Term) -> list[Row]:
    """Rows whose fact has each value at which a term may change its mind, and one of which it is not known."""
    column = term.spec.fact.column
    if column in ("type", "encoding"):
        texts = [name.decode() for name in term.names if names_of([name])[1].null_count()]
        return [row_with(column, value) for value in (None, "hash", "raw", "HASH", "", *texts)]
    ranges = [one for one in term.values if isinstance(one, Bounds)]
    numbers = [0, 1, 5, 255, 1000, *(edge for one in ranges for edge in (one.low, one.high) if edge is not None)]
    if term.name == "idle":
        numbers = [number // 1000 for number in numbers]
    if term.name == "ttl":
        numbers = [number + NOW_MS for number in numbers] + [NOW_MS - 5_000]
    close = {number + more for number in numbers for more in (-1, 0, 1)}
    none = [NEVER] if column == "expires_ms" else []
    return [row_with(column, value) for value in (None, *none, *(one for one in sorted(close) if 0 <= one < 1 << 63))]


@given(FACT_TERM)
@example(Term("idle", (Bounds(1_001, 1_999),)))
@example(Term("idle", (Bounds(1_000, 1_999),)))
@example(Term("expires", (Bounds(None, 5),)))
@example(Term("ttl", (Bounds(None, 0), NumberKeyword.NONE), is_negated=True))
@example(Term("ttl", (Bounds((1 << 63) - 2, None),)))
def test_every_term_about_a_fact_alone(term: Term) -> None:
    query, found = Query((term,)), at_the_edges(term)
    wanted = [decided(query, row, Separators())[0] for row in found]
    assert answers_of(query, Separators(), table_of(found)).to_list() == wanted
    assert [decided_as_searched(query, row, Separators()) for row in found] == wanted


PARTS = st.sampled_from([one for one in SNIPPETS if one])
NAME_TERM = st.one_of(
    GLOB.filter(lambda one: bool(one) and is_glob(one)).map(lambda glob: Term("glob", (glob,))),
    PARTS.map(lambda text: Term("text", (text,))),
    st.lists(PARTS, min_size=1, max_size=3).map(lambda some: Term("in", tuple(some))),
    st.sampled_from([rb"^.$", rb"(?i)k", rb"^[^a]+$", rb"\xc3", rb"user\W", "é".encode()]).map(
        lambda one: Term("re", (one,))
    ),
    TERM.filter(lambda term: term.name in ("tag", "pattern", "slot", "in")),
)
HEX = (
    "550e8400-e29b-41d4-a716-446655440000", "00ff00ff", "deadbeef", "12345678", "00ff00ff0a", "\x01", "x\x01",
    "00FF00FF",
)  # fmt: skip
WILDCARDS = re.compile(rb"(\*+|\?|\[[^\]]*\]|\{[a-z*]+\})")
STAND_INS = (b"", b"a", b"b", b":", b"42", "é".encode(), b"\xff", b"\n")


def alternating(stand_ins: Iterator[bytes], _found: re.Match[bytes]) -> bytes:
    return next(stand_ins)


def alike(term: Term) -> list[bytes]:
    """Names made of what a term is made of, which it often passes."""
    made = [b"", *STAND_INS, "\u212a".encode(), "\u017f".encode(), raw_java_name(b"a:b") or b""]
    for name in term.names or (b"a",):
        pairs = product(STAND_INS, repeat=2)
        made += [WILDCARDS.sub(partial(alternating, cycle(pair)), name) for pair in pairs]
        made += [
            name,
            name.upper(),
            name.lower(),
            name[1:],
            name[:-1],
            name + name,
            b"{" + name + b"}",
            b"a{" + name + b"}b{c}",
        ]
        made += [
            before + name + after
            for before in (b"", b"x", b"{", b"\xff")
            for after in (b":", b"/", b"::x", b"}:x", "é".encode())
        ]
    return made


@given(NAME_TERM, SEPARATORS, st.booleans(), st.lists(KEY, max_size=5))
@example(Term("glob", (b"a*a",)), Separators(), False, [])
@example(Term("glob", (b"**",)), Separators(), False, [])
@example(Term("glob", (b"a?b",)), Separators(), False, ["aéb".encode()])
@example(Term("text", (b"ks",)), Separators(), False, ["\u212a\u017f".encode()])
@example(Term("in", (b"{a",)), Separators(), False, [b"{a:b}:c", b"{a:b", b"{a:"])
@example(Term("in", (b"a",)), Separators((b"::", b":")), False, [b"a::b", b"a:b"])
@example(Term("pattern", (b"a:<id>",)), Separators(), False, [b"a:42", b"a:b"])
@example(
    Term("pattern", (b"a:<id>", b"a:page_<n>")), Separators(), False, [b"a:42", b"a:43", b"a:b7", b"a:b8", b"a:page_1"]
)
@example(
    Term("pattern", (b"a:<uuid>", b"b:<hash>")), Separators(), False, [f"{a}:{x}".encode() for a in "ab" for x in HEX]
)
@example(Term("pattern", (b"a:7:<*>",)), Separators(), False, [b"a:7:b", b"a:8:b", b"a:7:c", b"a:8:c"])
@example(Term("re", (b"^.$",)), Separators(), False, ["é".encode()])
@example(Term("slot", (Bounds(0, 8_000),)), Separators(), True, [])
def test_every_term_about_names_alone(term: Term, separators: Separators, has_slots: bool, names: list[bytes]) -> None:
    names += alike(term)
    if term.name == "pattern":
        names += [name.replace(b"550e", b"aaaa").replace(b"00ff", b"abba") for name in names]
        names += [bytes(7 + byte if byte in b"012" else byte for byte in name) for name in names]
    table = table_of([Row(name, slot=key_slot(name) if has_slots else None) for name in names])
    test = name_test(term, separators).passes
    for is_negated in (False, True):
        wanted = [bool(test(name)) is not is_negated for name in names]
        assert answers_of(Query((replace(term, is_negated=is_negated),)), separators, table).to_list() == wanted


PIECE = st.sampled_from(
    [
        *(
            "a", "b", "A", "k", "s", ".", "^", "$", "|", "(", ")", "(?:", "(?i)", "(?i:", "(?s)", "(?m)", "(?-i:",
            "(?P<n>", "*", "+",
        ),
        *(
            "?", "{2}", "{1,}", "{,2}", "{", "}", "[ab]", "[^a]", "[a-c]", "[]a]", "[a-]", "[-a]", r"[\d-]", r"[^\s]",
            "[a&&b]",
        ),
        *(
            "[[:alpha:]]", "[a[b]]", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", r"\A", r"\z", r"\n",
            r"\x41", r"\xe9",
        ),
        *(
            r"\x{41}", r"\.", r"\\", r"\Q.\E", r"\pL", r"\C", "é", ":", "]", "-", "&&", "[^\\x80-\\xff]",
            "[\\x80-\\xff]", "#", " ",
        ),
    ]
)  # fmt: skip


@given(
    st.lists(PIECE, max_size=8).map("".join),
    st.lists(st.text(st.characters(max_codepoint=127), max_size=6), max_size=20),
)
def test_expressions_of_re2_mean_the_same(expression: str, names: list[str]) -> None:
    raw = expression.encode()
    try:
        search = compiled(raw)
    except RegexError:
        return
    names += ["", "a", "AK", "ab:ba", "\x0b", "\n", "a\nb", "{", "a{,2}", "k\n", "]", "&", "-", "aa", "a.b"]
    found = ascii_regex(raw)
    if found is not None:
        answers = pl.Series(names).str.contains(found).to_list()
        assert answers == [search(name.encode()) is not None for name in names]


@pytest.mark.parametrize(
    "expression", [r"^user:\d+$", "(?i)cart", "^(a|b):[a-z]{2,}", r":\w+\.", r"cache\[[0-9]+\]", "x{y}"]
)
def test_common_expressions_are_left_to_polars(expression: str) -> None:
    assert ascii_regex(expression.encode()) is not None


def test_nodes_have_to_be_replaced_before() -> None:
    with pytest.raises(ValueError, match="node"):
        condition_of(parse("node:a:1"), Separators(), NOW_MS)


def test_reading_a_line_does_not_import_polars() -> None:
    code = "import sys; from rtui.analysis.query import parsing, plan; print('polars' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
