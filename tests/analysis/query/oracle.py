"""What decides terms by the plainest means, one key at a time: the reference for both ways in which queries are."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import strategies as st

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.patterns import PatternStep, PatternSyntaxError, check_pattern_text, read_pattern
from rtui.analysis.query.query import Query, Term, Value
from rtui.analysis.query.terms import ENCODINGS, PLACES, SHARD, TERMS, NumberKeyword, TermForm, TermSpec
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.glob import GlobMatcher, PatternError, check_pattern
from rtui.keyspace.text.identifiers import PLACEHOLDERS, Identifiers, KeySegments
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import HEADER, MARK, Separators, java_text, swapped
from rtui.keyspace.types import TYPES


def folded(name: bytes, separators: Separators) -> list[PatternStep]:
    """The path of patterns of a name, one segment at a time."""
    identifiers = Identifiers(separators.values)
    steps = []
    for segment, separator in KeySegments(separators).of(name, 1_000):
        form = None if len(segment) > 256 else identifiers.form(segment).pattern
        steps.append(PatternStep(segment if form is None else form, separator, form is not None))
    return steps


def named(term: Term, name: bytes, separators: Separators) -> bool:
    """Whether a name passes a term, apart from its negation; one that Java has serialised as its text does."""
    if term.name in ("tag", "slot"):
        return _named(term, name, separators)
    sign, java = "⛾".encode(), separators.java_separator
    typed = tuple(MARK + java + one[len(sign) :] if one.startswith(sign) else one for one in term.names)
    term, text = replace(term, values=typed), java_text(name)
    if text is None:
        return _named(term, name, separators)
    forms = (name, swapped(name, java)) if any(HEADER in one for one in typed) else (text,)
    return any(_named(term, form, separators) for form in forms)


def _named(term: Term, name: bytes, separators: Separators) -> bool:  # noqa: PLR0911 - one for each term
    """Whether a name passes a term, apart from its negation."""
    match term.name:
        case "text":
            (needle,) = term.names
            is_any_case = not re.search(b"[A-Z]", needle)
            return needle in (re.sub(b"[A-Z]", lambda one: one[0].lower(), name) if is_any_case else name)
        case "glob":
            return name == term.names[0] or GlobMatcher(term.names[0])(name)
        case "re":
            return re.search(term.names[0], name) is not None
        case "in":
            return any(_is_in(one, name, separators) for one in term.names)
        case "pattern":
            paths = [list(read_pattern(one, separators).steps) for one in term.names]
            return any(_is_below(path, name, separators) for path in paths)
        case "tag":
            found = re.match(rb"[^{]*\{([^}]*)\}", name)
            return found is not None and found[1] != b"" and found[1] in term.names
    return any(key_slot(name) in one for one in term.values if not isinstance(one, bytes))  # type: ignore[operator]


def _is_in(namespace: bytes, name: bytes, separators: Separators) -> bool:
    so_far = b""
    for segment in separators.segments(name):
        so_far += segment.name + segment.separator
        if segment.separator and so_far in (namespace + segment.separator, namespace):
            return True
    return False


def _is_below(path: list[PatternStep], name: bytes, separators: Separators) -> bool:
    steps, segments = folded(name, separators), KeySegments(separators).of(name, 1_000)
    if len(steps) < len(path):
        return False
    for wanted, step, segment in zip(path, steps, segments, strict=False):
        is_any = wanted.is_folded and wanted.name == b"<*>" and not (step.is_folded and step.name in PLACEHOLDERS)
        is_same = (wanted.name, wanted.is_folded) in ((step.name, step.is_folded), (segment[0], False))
        if wanted.separator != segment[1] or not (is_any or is_same):
            return False
    return True


def applies(term: Term, value: bytes | int, asked_at_ms: int) -> bool:
    """Whether the value of a fact passes a term, apart from its negation."""
    for one in term.values:
        if isinstance(one, bytes):
            if one == value:
                return True
            continue
        assert isinstance(value, int)
        if isinstance(one, NumberKeyword):
            if value == NO_EXPIRY:
                return True
            continue
        number = value
        if term.name in ("ttl", "expires") and value == NO_EXPIRY:
            continue
        if term.name == "expires":
            number += asked_at_ms
        if term.name == "idle":
            number *= 1000
        low = one.low if one.low is not None else float("-inf")
        high = one.high if one.high is not None else float("inf")
        if low <= number <= high:
            return True
    return False


NAMES = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.text(min_size=1, max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text("abAB:*?[]\\{}!\"'<>=, 12.-_é", min_size=1, max_size=12).map(str.encode),
    st.sampled_from([b"type:hash", b"ttl<10m", b"!x", b"a,b", b"<id>", b"\\<id>", b"user:<id>:cart", b"re:x", b"none"]),
    st.sampled_from(["⛾", "⛾a", "⛾a:<id>", "⛾user:*"]).map(str.encode),
    st.sampled_from([HEADER, MARK, MARK + b":a", HEADER + b"\0\1a", b"x" + MARK + b":"]),
)


def is_glob(raw: bytes) -> bool:
    try:
        check_pattern(raw)
    except PatternError:
        return False
    return True


def is_pattern(raw: bytes) -> bool:
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
    if spec.name == "glob":
        return st.tuples(NAMES.filter(is_glob))
    if spec.name == "re":
        return st.sampled_from([(rb"^user:\d+$",), (b'"',), (b"a b",), (b"(?i)x|y",), (b"\\x00\\xff",), (b"!",)])
    if spec.form is TermForm.TEXT:
        return st.tuples(NAMES)
    one: st.SearchStrategy[Value] = NAMES
    if spec.name == "pattern":
        one = NAMES.filter(is_pattern)
    elif spec.name == "type":
        one = st.one_of(NAMES, st.sampled_from(list(TYPES)))
    elif spec.name == "enc":
        one = st.one_of(NAMES, st.sampled_from(ENCODINGS))
    elif spec.form is TermForm.NUMBERS:
        one = bounds(spec) if spec.keyword is None else st.one_of(bounds(spec), st.just(spec.keyword))
    return st.lists(one, min_size=1, max_size=3, unique=True).map(tuple)


TERM = st.sampled_from(list(TERMS.values())).flatmap(
    lambda spec: st.builds(Term, st.just(spec.name), values(spec), st.booleans())
)
QUERY = st.lists(TERM, max_size=5).map(lambda terms: Query(tuple(terms)))
