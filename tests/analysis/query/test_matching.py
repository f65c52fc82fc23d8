"""Which keys a query finds, how they are counted and kept, and what it asks in which order."""

from __future__ import annotations

import re
import sys
from random import Random
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.parsing import parse, read
from rtui.analysis.query.patterns import (
    HEX_PARTS,
    PatternMatcher,
    PatternStep,
    QueryPattern,
    RegexError,
    compiled,
    pattern_text,
    read_pattern,
)
from rtui.analysis.query.plan import names_beside, plan_of, server_filter
from rtui.analysis.query.query import Matches, MatchOrder, Query, Term, written_bytes
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.glob import GlobMatcher
from rtui.keyspace.text.identifiers import PLACEHOLDERS, Identifiers, KeySegments
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.segments import MARK, Separators, java_text, raw_java_name
from tests.analysis.query.oracle import QUERY, folded
from tests.conftest import examples

COLON = Separators()
SEPARATORS = st.sampled_from(
    [COLON, Separators((b":", b"/")), Separators((b"::", b":")), Separators((b"<",)), Separators((b"{", b"\\"))]
)
SEGMENT = st.sampled_from(
    [
        b"", b"shop", b"user", b"42", b"7", b"{user:42}", b"<id>", b"{", b"}", b"a\\b", b"00ff00ff", b"{}", b"Cart",
        b"x" * 300, b"{id}", b"<*>", b"\\<id>-1234567", b"<id>-1234567", b"42-1234567", b"{n}_7654321", b"<>",
        b"{<n>}1",
    ]
)  # fmt: skip
NAME = st.one_of(
    st.lists(SEGMENT, min_size=1, max_size=5).flatmap(
        lambda parts: st.sampled_from([b":", b"/", b"::", b"<", b"{", b"\\"]).map(lambda one: one.join(parts))
    ),
    st.binary(max_size=20),
)


@given(NAME, NAME, SEPARATORS)
def test_a_name_has_its_own_pattern_and_that_of_names_alike(name: bytes, other: bytes, separators: Separators) -> None:
    steps = folded(name, separators)
    text = pattern_text(steps)
    if not text:
        return
    read = read_pattern(text, separators)
    assert list(read.steps) == steps
    matches = PatternMatcher([read], separators)
    assert matches(name)
    assert matches(other) == (folded(other, separators) == steps)
    assert parse(f"pattern:{written_bytes(text, forbidden=',')}").terms == (Term("pattern", (text,)),)


@given(NAME, NAME, st.integers(1, 4), SEPARATORS)
def test_a_namespace_has_the_names_below(name: bytes, other: bytes, depth: int, separators: Separators) -> None:
    steps = folded(name, separators)[:depth]
    if not steps[-1].separator:
        return
    matches = PatternMatcher([read_pattern(pattern_text(steps), separators)], separators)
    assert matches(name)
    assert matches(other) == (folded(other, separators)[:depth] == steps)


def is_plain_name(step: PatternStep) -> bool:
    is_identifier = step.is_folded and step.name in PLACEHOLDERS
    return bool(step.name) and b":" not in step.name and not is_identifier


@given(NAME, NAME, st.integers(0, 3))
def test_any_stands_for_names_and_not_for_identifiers(name: bytes, other: bytes, at: int) -> None:
    """Nor for the empty name or one whose hash tag holds a separator."""
    steps = folded(name, COLON)
    if at >= len(steps) or any(b"{" in step.name and not step.is_folded for step in steps):
        return
    steps[at] = steps[at]._replace(name=b"<*>", is_folded=True)
    matches = PatternMatcher([read_pattern(pattern_text(steps), COLON)], COLON)
    found = folded(other, COLON)
    fits = len(found) == len(steps) and all(
        (is_plain_name(one) if index == at else one[::2] == wanted[::2]) and one.separator == wanted.separator
        for index, (one, wanted) in enumerate(zip(found, steps, strict=True))
    )
    assert matches(other) == fits


def test_examples_of_patterns() -> None:
    def has(pattern: str, name: str) -> bool:
        return NameFilter(parse(f"pattern:{pattern}"), COLON)(name.encode())

    assert has("user:<id>:orders", "user:42:orders")
    assert not has("user:<id>:orders", "user:anna:orders")
    assert not has("user:<id>:orders", "user:42:orders:1")
    assert has("user:<id>:", "user:42:orders:1")
    assert not has("user:<id>", "user:42:orders")
    assert has("user:<*>:orders", "user:anna:orders")
    assert not has("user:<*>:orders", "user:42:orders")
    assert has("{user:<id>}:cart", "{user:42}:cart")
    assert not has("{user:<id>}:cart", "{user:x}:cart")
    assert has("user:42:orders", "user:42:orders")
    assert has(r"a:\<id>", "a:<id>")
    assert not has(r"a:\<id>", "a:5")
    assert not has("a:<id>", "a:<id>")
    assert has("page_<n>", "page_7")
    assert has("page_<n>", "page_1234567")
    assert not has("page_<n>", "page_x")
    assert not has("page_<n>", "page7")
    assert has("v1.user.<n>", "v1.user.42")
    assert not has("v1.user.<n>", "v2.user.42")
    assert has(r"page_\<n>", "page_<n>")
    assert has("task-<uuid>:log", "task-550e8400-e29b-41d4-a716-446655440000:log")
    assert has("rate:<ip>:login", "rate:2001:db8::7:login")
    assert has("rate:<ip>:login", "rate:10.0.0.1:login")
    assert not has("rate:<id>:", "rate:2001:db8::7:login")
    assert has("page_7", "page_7")
    assert has("<*>", "page_7")
    assert has("a:<>", "a:")
    assert not has("a:<>", "a:b")


@pytest.mark.parametrize("form", ["id", "uuid", "hash", "date", "ip", "email", "n", "*", "**", ""])
@pytest.mark.parametrize("pattern", ["user:<%s>:x", "{a:<%s>}", "page_<%s>", "<%s>", "<id>-<%s>", r"\\<%s>", "a:<%s>:"])
def test_placeholders_may_be_in_braces_as_earlier_versions_wrote_them(pattern: str, form: str) -> None:
    text = (pattern % form).encode()
    assert read_pattern(text.replace(b"<", b"{").replace(b">", b"}"), COLON) == read_pattern(text, COLON)


PIECES = st.sampled_from(
    [
        *(
            b"a", b"page_7", b"v2", b"v1.user.3", b"42", b"7", b"10.0.0.1", b"2026-01-05", b"12345678", b"user123456",
            b"x9y",
        ),
        *(
            b"550e8400-e29b-41d4-a716-446655440000", b"00ff00ff", b"{user:42}", b"{a}7", b"1e5", b"a1@b2.com",
            b"2001:db8::7", b"",
        ),
        *(
            b"R20260000000001", b"V1StGXR8Z5jdHi6BmyTqk0c2PwL", b"view/7", b"1-2-3-4-5", b"300.1.1.1", b"99", b"0",
            b"3-4",
        ),
    ]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(1_200))
@given(st.lists(PIECES, min_size=1, max_size=4), st.lists(PIECES, min_size=1, max_size=3), st.randoms(), SEPARATORS)
def test_keys_that_differ_in_digits_only(parts: list[bytes], others: list[bytes], rng: Random, by: Separators) -> None:
    key = by.values[0].join(parts)
    steps = folded(rng.choice([key, by.values[-1].join(others)]), by)[: rng.randint(1, 4)]
    steps = [step._replace(name=b"<*>", is_folded=True) if rng.random() < 0.2 and step.name else step for step in steps]
    numbered = [Identifiers(by.values).form(segment).numbered for segment, _ in KeySegments(by).of(key, 9)]
    steps = [
        step._replace(name=form, is_folded=True) if form is not None and rng.random() < 0.5 else step
        for step, form in zip(steps, [*numbered, *[None] * len(steps)], strict=False)
    ]
    matches = PatternMatcher([QueryPattern(tuple(steps), None)], by)
    for has_hex in (False, True):
        if matches.is_alike(key, has_hex=has_hex):
            for _ in range(5):
                other = with_other_parts(key, rng) if has_hex else key
                other = re.sub(rb"[0-9]", lambda _: b"%d" % rng.randrange(10), other)
                if shape(other, has_hex) == shape(key, has_hex):
                    assert matches(other) == matches(key), other


def shape(key: bytes, has_hex: bool) -> bytes:
    for part, mark in zip(HEX_PARTS if has_hex else (), (b"\1", b"\2"), strict=False):
        key = re.sub(part.encode(), mark, key)
    return re.sub(rb"[0-9]", b"0", key)


def with_other_parts(key: bytes, rng: Random) -> bytes:
    """A key with other UUIDs and hexadecimal numbers, some of them without digits or without letters."""

    def drawn(count: int) -> bytes:
        return "".join(rng.choices(rng.choice(["0123456789abcdef", "abcdef", "0123456789"]), k=count)).encode()

    key = re.sub(HEX_PARTS[0].encode(), lambda _: b"-".join(map(drawn, (8, 4, 4, 4, 12))), key)
    return re.sub(HEX_PARTS[1].encode(), lambda _: drawn(rng.choice([8, 9, 32, 40])), key)


@pytest.mark.parametrize(
    "line", ["user:<id>:cart", "page_<n>", "user:", "a:{<id>}:b", "rate:<ip>", "s:<uuid>", "c:<hash>:<id>"]
)
def test_keys_of_common_patterns_are_alike(line: str) -> None:
    matches = PatternMatcher([read_pattern(line.encode(), COLON)], COLON)
    typed = line + "x:5" if line.endswith(":") else line
    identifiers = {"id": "42", "n": "7", "ip": "10.0.0.1", "uuid": str(UUID(int=1 << 127)), "hash": "00ff00ff00"}
    key = re.sub(r"<(\w+)>", lambda found: identifiers[found[1]], typed).encode()
    assert matches(key)
    assert matches.is_alike(key, has_hex="<uuid>" in line or "<hash>" in line)


NAMED = QUERY.map(
    lambda query: Query(tuple(term for term in query.about(Fact.NAME) if term.name not in ("node", "shard")))
)
"""Terms about names; those about places in a cluster are replaced before they are decided."""


@given(NAMED, st.lists(NAME, max_size=8), SEPARATORS)
@example(Query((Term("glob", (b"[",)),)), [], Separators())
@example(Query((Term("pattern", ("⛾a:<id>".encode(),)),)), [], Separators())
@example(Query((Term("text", ("⛾a".encode(),)),)), [], Separators())
@example(Query((Term("tag", ("⛾a".encode(),)),)), [], Separators())
@example(Query((Term("text", (MARK,)),)), [b"a"], Separators())
def test_the_server_filters_nothing_that_passes(query: Query, names: list[bytes], separators: Separators) -> None:
    names += [value for term in query.terms for value in term.names]
    names += [value.upper() for value in names]
    texts = [name.replace("⛾".encode(), b"").replace(b"<id>", b"7") for name in names]
    names += [raw for text in texts if (raw := raw_java_name(text)) is not None]
    names += [b"{%b}" % name for name in names]
    match = plan_of(query, separators).server.match
    if match is not None:
        matches, beside = GlobMatcher(match), names_beside(query, match)
        passing = [name for name in NameFilter(query, separators).keep(names) if name]
        assert [name for name in passing if not (matches(name) or {name, java_text(name)} & {*beside})] == []


@pytest.mark.parametrize(
    ("line", "match", "key_type"),
    [
        ("cart", b"*[cC][aA][rR][tT]*", None),
        ("Cart", b"*Cart*", None),
        ("in:shop:user", b"shop:user:*", None),
        ("in:shop *:cart:*", b"*:cart:*", None),
        ("in:shop,app", None, None),
        ("!in:shop", None, None),
        ("pattern:user:<id>:orders", b"user:*:orders", None),
        ("pattern:user:<id>:", b"user:*:*", None),
        ("tag:42", b"*{42}*", None),
        ("* type:hash", None, b"hash"),
        ("type:hash,set", None, None),
        ("!type:hash", None, None),
        ("re:^user", None, None),
        (f"in:{'x' * 600}", b"x" * 511 + b"*", None),
    ],
)
def test_what_the_server_filters(line: str, match: bytes | None, key_type: bytes | None) -> None:
    found = server_filter(parse(line), COLON)
    assert (found.match, found.key_type) == (match, key_type)


def test_expressions_take_linear_time() -> None:
    name = b"a" * 4000 + b"!"
    assert compiled(b"(a+)+$")(name) is None
    assert compiled(b"(a?){30}a{30}$")(name) is None


@pytest.mark.parametrize("expression", [b"(", rb"(a)\1", b"(?=a)", b"x" * 2000, b"((a{100}){100}){100}"])
def test_expressions_that_are_refused(expression: bytes) -> None:
    with pytest.raises(RegexError):
        compiled(expression)


def test_expressions_look_at_bytes() -> None:
    assert compiled(b"^.\\xff$")(b"\x00\xff")
    assert compiled("é".encode())("café".encode())


def test_without_the_library_expressions_say_so_and_all_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    reading = read("cart re:^only-here$ ttl:none")
    assert reading.query == parse("cart ttl:none")
    assert "extra regex" in reading.problems[0].message


RECORD = st.builds(
    KeyRecord,
    key=st.binary(max_size=3),
    key_type=st.none() | st.sampled_from([b"hash", b"set", b"\xff"]),
    ttl_ms=st.none() | st.integers(-1, 50),
    memory_bytes=st.none() | st.integers(0, 50),
)


@given(
    st.lists(st.lists(RECORD, max_size=9), max_size=6),
    st.integers(1, 9),
    st.sampled_from([one for one in Fact if one is not Fact.VALUE]),
    st.booleans(),
)
@example([[KeyRecord(key=b"2"), KeyRecord(key=b"10")]], 1, Fact.NAME, False)
def test_the_top_ones_are_kept(pages: list[list[KeyRecord]], limit: int, fact: Fact, is_descending: bool) -> None:
    matches = Matches(limit, MatchOrder(fact, is_descending))
    for page in pages:
        matches.add_count(len(page))
        matches.add(page)
    every = [record for page in pages for record in page]
    known = [one for one in every if getattr(one, fact.field) is not None]

    def value(record: KeyRecord) -> tuple[bool, bytes | int]:
        found: bytes | int = getattr(record, fact.field)
        return fact is Fact.TTL and found == -1, natural(found) if isinstance(
            found, bytes
        ) and fact is Fact.NAME else found

    known.sort(key=value, reverse=is_descending)
    wanted = [*known, *(one for one in every if one not in known)][:limit]
    assert [value(one) for one in matches.kept if one in known] == [value(one) for one in wanted if one in known]
    assert len(matches.kept) == min(limit, len(every))
    assert matches.count == len(every)


@given(st.lists(st.lists(RECORD, max_size=9), max_size=6), st.integers(0, 9))
def test_the_first_ones_are_kept(pages: list[list[KeyRecord]], limit: int) -> None:
    matches, drained = Matches(limit), Matches(limit)
    taken: list[KeyRecord] = []
    for page in pages:
        matches.add(page)
        drained.add(page)
        taken += drained.drain()
    every = [record for page in pages for record in page]
    assert list(matches.kept) == taken == every[:limit]
    assert matches.is_full is drained.is_full is (len(every) >= limit)
    assert all(matches.knows(one.key) for one in matches.kept)


def test_what_is_searched_anew_is_forgotten() -> None:
    matches = Matches(1)
    matches.add_count(3)
    matches.add([KeyRecord(b"a")])
    matches.clear()
    assert (matches.count, list(matches.kept), matches.is_full, matches.knows(b"a")) == (0, [], False, False)


@pytest.mark.parametrize(
    ("line", "stages"),
    [
        ("cart", []),
        ("ttl:none", ["ttl"]),
        ("size>1M", ["type", "size"]),
        ("size>1M ttl:none", ["ttl", "type", "size"]),
        ("size>1M type:hash", ["size"]),
        ("size>1M type:hash,set", ["type", "size"]),
        ("!type:hash len>1", ["type", "len"]),
        ("len>10 idle>30d size>1 ttl<1m", ["ttl", "idle", "type", "size", "len"]),
        ("type:hash type:set ttl:none", ["type", "ttl"]),
    ],
)
def test_facts_are_asked_in_the_order_that_needs_least(line: str, stages: list[str]) -> None:
    assert [fact.value for fact in plan_of(parse(line), COLON).stages] == stages


@given(QUERY)
def test_everything_needed_is_asked_once(query: Query) -> None:
    plan = plan_of(query, COLON, columns=tuple(Fact))
    known = {*plan.stages, *plan.columns, Fact.NAME, *([Fact.TYPE] if plan.server.key_type else [])}
    assert known == set(Fact)
    assert len(plan.stages) + len(plan.columns) == len({*plan.stages, *plan.columns})
    assert set(query.facts) - {Fact.TYPE} <= set(plan.stages)
    if Fact.LENGTH in plan.stages:
        assert plan.stages[-1] is Fact.LENGTH


def test_names_that_are_known_are_not_filtered_by_the_server() -> None:
    plan = plan_of(parse("in:shop type:hash"), COLON, is_listed=True)
    assert plan.server.match is plan.server.key_type is None
    assert plan.stages == (Fact.TYPE,)
    assert plan_of(parse("type:hash"), COLON, scans_types=False).stages == (Fact.TYPE,)


def test_later_facts_are_thought_to_be_asked_of_fewer_keys() -> None:
    one, two = (plan_of(parse(line), COLON).cost(1_000_000).seconds for line in ("ttl:none", "ttl:none enc:raw"))
    assert one is not None
    assert two is not None
    listing = plan_of(parse("cart"), COLON).cost(1_000_000).seconds or 0
    assert one < two < one + (one - listing)


def test_what_it_costs_at_most() -> None:
    plan = plan_of(parse("in:shop ttl:none size>1K"), COLON, columns=(Fact.TTL, Fact.LENGTH))
    assert plan.columns == (Fact.LENGTH,)
    cost = plan.cost(1_000, matching=100, matches=10)
    assert (cost.scanned, cost.asked, cost.commands) == (1_000, 100, 310)
    assert plan.cost(None).commands is None
    assert plan_of(parse("cart"), COLON).cost(1_000_000).commands == 0


@pytest.mark.parametrize(
    ("line", "keys", "sentence"),
    [
        ("cart", 2_000_000, "scans 2,000,000 keys; about 20s at gentle pace"),
        ("cart", None, "scans all keys"),
        ("ttl:none", 1_000, "scans 1,000 keys, then reads PTTL of up to 1,000 keys"),
        ("size>1M", None, "scans all keys, then reads TYPE and MEMORY USAGE of keys that may match"),
        ("size>1 ttl:none", 9, "scans 9 keys, then reads PTTL, TYPE and MEMORY USAGE of up to 9 keys"),
    ],
)
def test_what_it_says(line: str, keys: int | None, sentence: str) -> None:
    plan = plan_of(parse(line), COLON)
    assert plan.sentence(plan.cost(keys)) == sentence


def test_an_estimate_of_the_keys_that_match_is_said_with_its_interval() -> None:
    plan = plan_of(parse("in:shop ttl:none"), COLON, is_listed=True)
    cost = plan.cost(1_000_000, matching=Estimate(11_000, 12_000, 13_000), is_listed=True)
    assert plan.sentence(cost) == "reads PTTL of ≈ 12.0k (11.0–13.0k) keys"
