"""Queries, terms and values drawn by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from rtui.analysis.query.patterns import PatternSyntaxError, check_pattern_text
from rtui.analysis.query.query import Query, Term, Value
from rtui.analysis.query.terms import ENCODINGS, PLACES, SHARD, TERMS, Form, TermSpec
from rtui.keyspace.text.glob import PatternError, check_pattern
from rtui.keyspace.text.java_names import HEADER, MARK
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.types import TYPES

NAMES = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.text(min_size=1, max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text("abAB:*?[]\\{}!\"'<>=, 12.-_é", min_size=1, max_size=12).map(str.encode),
    st.sampled_from([b"type:hash", b"ttl<10m", b"!x", b"a,b", b"{id}", b"\\{id}", b"user:{id}:cart", b"re:x", b"none"]),
    st.sampled_from(["⛾", "⛾a", "⛾a:{id}", "⛾user:*"]).map(str.encode),
    st.sampled_from([HEADER, MARK, MARK + b":a", HEADER + b"\0\1a", b"x" + MARK + b":"]),
)


def is_glob(raw: bytes) -> bool:
    """Whether it may be sent."""
    try:
        check_pattern(raw)
    except PatternError:
        return False
    return True


def is_pattern(raw: bytes) -> bool:
    """Whether it can be read."""
    try:
        check_pattern_text(raw)
    except PatternSyntaxError:
        return False
    return True


def bounds(spec: TermSpec) -> st.SearchStrategy[Bounds]:
    """Draw bounds that such a term may have, closed for slots and shards, of which there is none numbered 0."""
    assert spec.syntax is not None
    most = spec.syntax.most - 1
    numbers = st.one_of(
        st.integers(0, most),
        st.integers(0, min(most, 300)),
        st.sampled_from([one for one in (1000, 60_000, 1 << 20, 86_400_000, 1_790_000_000_000) if one <= most] or [1]),
    )
    closed = st.tuples(numbers, numbers).map(lambda pair: Bounds(min(pair), max(pair)))
    if spec.syntax is SHARD:
        return closed.map(lambda one: Bounds(max(1, one.low or 1), max(1, one.high or 1)))
    if spec.syntax in PLACES:
        return closed
    return st.one_of(closed, numbers.map(lambda low: Bounds(low, None)), numbers.map(lambda high: Bounds(None, high)))


def values(spec: TermSpec) -> st.SearchStrategy[tuple[Value, ...]]:
    """Draw the values of a term."""
    if spec.name == "glob":
        return st.tuples(NAMES.filter(is_glob))
    if spec.name == "re":
        return st.sampled_from([(rb"^user:\d+$",), (b'"',), (b"a b",), (b"(?i)x|y",), (b"\\x00\\xff",), (b"!",)])
    if spec.form is Form.TEXT:
        return st.tuples(NAMES)
    one: st.SearchStrategy[Value] = NAMES
    if spec.name == "pattern":
        one = NAMES.filter(is_pattern)
    elif spec.name == "type":
        one = st.one_of(NAMES, st.sampled_from(list(TYPES)))
    elif spec.name == "enc":
        one = st.one_of(NAMES, st.sampled_from(ENCODINGS))
    elif spec.form is Form.NUMBERS:
        one = bounds(spec) if spec.keyword is None else st.one_of(bounds(spec), st.just(spec.keyword))
    return st.lists(one, min_size=1, max_size=3, unique=True).map(tuple)


TERM = st.sampled_from(list(TERMS.values())).flatmap(
    lambda spec: st.builds(Term, st.just(spec.name), values(spec), st.booleans())
)
QUERY = st.lists(TERM, max_size=5).map(lambda terms: Query(tuple(terms)))
