"""Decides the terms of a query: true, false, or undecided about an unknown fact.

The meaning of a term is declared here once: about names in `_NAME_TESTS`, about facts in `allowed`. From that it is
decided in two ways. A search of the server does it in Python, key by key: its pages have some hundred keys, for which
Polars takes three to ten times as long for a fact, for thousands about as long, and its import as long as two million
facts. The rows of a pass are decided by Polars (`kept_rows`), a million in some milliseconds, except names for which
its comparisons of text are not right, such as those that are not UTF-8; these are decided by the test in Python.

An unknown fact never makes a term false: the key is counted as undecided, unless another term excludes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.patterns import PatternMatcher, ascii_regex, compiled, escaped, one_of_bytes, read_pattern
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.terms import Fact, NumberKeyword, TermForm
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.keyspace.text.glob import GlobMatcher, PatternError, check_pattern, escape_glob, prefix_pattern, tokens
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import HEADER, MARK, SIGN, Separators, java_text, swapped

Test = Callable[[bytes], object]
Decision = Callable[[Any, float], bool]
"""Decides by the value of a fact, and when it was read in seconds since the epoch.

The value is bytes for type and encoding, else a whole number: milliseconds for a TTL (NO_EXPIRY without one), seconds
for an idle time, bytes, or a count.
"""

_BEHIND_HEADER: Final = re.compile(
    rb"(%b(?:t|\[tT\]))%b(%b)?" % (re.escape(HEADER[:-1]), *(rb"(?:\\.|\[(?:\\.|[^\]\\])*\]?|[^\\*?\[])",) * 2),
    re.DOTALL,
)
"""The two bytes of a glob in which the forms of a name differ that Java has serialised."""

_match_tag: Final = re.compile(rb"[^{]*\{([^}]+)\}").match


# facts


def fact_tests(query: Query) -> dict[Fact, Decision]:
    found = {}
    for fact in query.facts:
        decisions = [_decision(term) for term in query.about(fact)]
        found[fact] = decisions[0] if len(decisions) == 1 else _all_of(decisions)
    return found


def allowed(term: Term, now_ms: int) -> frozenset[bytes] | tuple[Bounds, ...]:
    """Return the values that a term about a fact allows, apart from its negation: names or ranges of numbers.

    They are as in the key table: a TTL is the moment of expiry, computed from the rest at `now_ms`, NO_EXPIRY without
    one.
    """
    spec = term.spec
    if spec.form is TermForm.NAMES:
        return frozenset(term.names)
    scale, start = spec.scale, now_ms if spec.is_left else 0
    ranges = []
    for one in term.values:
        if one is NumberKeyword.NONE:
            ranges.append(Bounds(NO_EXPIRY, NO_EXPIRY))
        elif isinstance(one, Bounds) and (one.high is None or one.high >= 0):
            low = -(-one.low // scale) + start if one.low is not None and one.low > 0 else 0
            ranges.append(Bounds(low, None if one.high is None else one.high // scale + start))
    return tuple(ranges)


def _decision(term: Term) -> Decision:
    values, is_negated = allowed(term, 0), term.is_negated
    has: Callable[[Any], bool]
    if isinstance(values, frozenset):
        has = values.__contains__
    else:
        ranges = values
        has = ranges[0].__contains__ if len(ranges) == 1 else lambda value: any(value in one for one in ranges)
    if term.spec.fact is Fact.TTL and not term.spec.is_left:
        return lambda ttl_ms, asked_at_s: (
            has(ttl_ms if ttl_ms == NO_EXPIRY else ttl_ms + round(asked_at_s * 1000)) is not is_negated
        )
    return lambda value, _: has(value) is not is_negated


def _all_of(decisions: Sequence[Decision]) -> Decision:
    return lambda value, asked_at_s: all(decide(value, asked_at_s) for decide in decisions)


# names


class FactComparison(Enum):
    """How a name is compared with a text, or its bytes with a number."""

    IS = "is"
    BEGINS = "begins with"
    ENDS = "ends with"
    HAS = "has"
    MATCHES = "matches the regular expression"
    LEAST = "has at least this many bytes"


@dataclass(frozen=True, slots=True)
class TextTest:
    """The comparisons that find names as text, which Polars makes for all names of a table at once."""

    any_of: tuple[tuple[tuple[FactComparison, str | int], ...], ...] = ((),)
    """Alternatives, each a group of comparisons that must all hold: `((),)` matches all names, `()` none."""
    is_for_unicode: bool = True
    """Whether it is right for all names that are UTF-8, not for those alone that are ASCII."""
    is_sure: bool = True
    """Whether all that it finds passes; else those are looked at again."""


@dataclass(frozen=True, slots=True)
class NameTest:
    """The test of a term about names, apart from its negation."""

    passes: Test
    glob: bytes | None = None
    """A glob that all names match which pass, of a term that has one value; None without a useful one."""
    text: Callable[[], TextTest] = TextTest
    is_alike: Callable[[bytes, bool], bool] | None = None
    """Whether all names that differ from one in their digits only, or also in hexadecimal parts, have its answer."""


class NameFilter:
    """Keeps the names that all terms about names let through."""

    def __init__(self, query: Query, separators: Separators) -> None:
        """Raises RegexError where the library for `re:` is missing."""
        self._tests = [(name_test(term, separators).passes, term.is_negated) for term in name_terms(query)]

    @property
    def is_open(self) -> bool:
        return not self._tests

    def __call__(self, name: bytes) -> bool:
        return all(bool(test(name)) is not is_negated for test, is_negated in self._tests)

    def keep(self, names: Iterable[bytes]) -> list[bytes]:
        kept = names if isinstance(names, list) else list(names)
        for test, is_negated in self._tests:
            kept = [name for name in kept if not test(name)] if is_negated else list(filter(test, kept))
        return kept


def name_terms(query: Query) -> list[Term]:
    """Return the terms of a query about names in the order in which they are decided: the cheapest first."""
    order = [*_NAME_TESTS]
    return sorted(query.about(Fact.NAME), key=lambda term: order.index(term.name) if term.name in order else 0)


def name_test(term: Term, separators: Separators) -> NameTest:
    """Return the test of a term about names, apart from its negation.

    A name that Java has serialised is tested by its text; a term that contains the Java header is about the raw name
    and its split form. Raises RegexError, and ValueError for nodes and shards, which must be replaced before, see
    `plan.on_slots`.
    """
    if term.name == "slot":
        return NameTest(_in_slots(frozenset(slots_in(term.values))))
    if term.name not in _NAME_TESTS:
        raise ValueError(f"{term.name} is not about names")
    if term.name == "tag":
        return _of_tags(term.names, separators)
    names = tuple(typed_name(name, separators) for name in term.names)
    found = _NAME_TESTS[term.name](names, separators)
    test, java_separator = found.passes, separators.java_separator
    is_raw = any(HEADER in name for name in names)

    def test_form(name: bytes) -> object:
        text = java_text(name) if name.startswith(HEADER) else None
        if text is None:
            return test(name)
        return test(name) or test(swapped(name, java_separator)) if is_raw else test(text)

    glob = found.glob and _BEHIND_HEADER.sub(lambda parts: parts[1] + (b"??" if parts[2] else b"?"), found.glob)
    return replace(found, passes=test_form, glob=glob)


def typed_name(typed: bytes, separators: Separators) -> bytes:
    """Return a name as it is split; one with the sign of Java in front is typed as it is shown."""
    sign = SIGN.encode()
    return MARK + separators.java_separator + typed.removeprefix(sign) if typed.startswith(sign) else typed


def slots_in(values: Iterable[object]) -> Iterable[int]:
    for one in values:
        if isinstance(one, Bounds):
            yield from range(one.low or 0, (SLOTS - 1 if one.high is None else one.high) + 1)


def _in_slots(slots: frozenset[int]) -> Test:
    return lambda name: key_slot(name) in slots


def _of_namespaces(names: tuple[bytes, ...], separators: Separators) -> NameTest:
    inside = _Inside(names, separators)
    prefixes = namespace_prefixes(names[0], separators)
    glob = prefix_pattern(prefixes[0] if len(prefixes) == 1 else names[0])
    return NameTest(inside, glob, inside.text)


class _Inside:
    """Tests whether keys are below one of some namespaces; no namespace begins within a hash tag."""

    def __init__(self, names: Sequence[bytes], separators: Separators) -> None:
        self._prefixes = tuple(prefix for name in names for prefix in namespace_prefixes(name, separators))
        self._separators = separators
        values = separators.values
        has_braces = any(b"{" in prefix for prefix in self._prefixes)
        self._is_sure = not has_braces and all(len(value) == 1 for value in values)

    def __call__(self, name: bytes) -> bool:
        if not name.startswith(self._prefixes):
            return False
        return self._is_sure or self._has_border(name)

    def _has_border(self, name: bytes) -> bool:
        ends = {len(prefix) for prefix in self._prefixes if name.startswith(prefix)}
        last, end = max(ends), 0
        for segment in self._separators.segments(name):
            end += len(segment.name) + len(segment.separator)
            if segment.separator and end in ends:
                return True
            if end >= last:
                return False
        return False

    def text(self) -> TextTest:
        found = _any_of([_literal(FactComparison.BEGINS, prefix) for prefix in self._prefixes])
        return replace(found, is_sure=self._is_sure)


def namespace_prefixes(name: bytes, separators: Separators) -> tuple[bytes, ...]:
    if name.endswith(separators.values) or not separators.values:
        return (name,)
    return tuple(name + separator for separator in separators.values)


def _of_glob(names: tuple[bytes, ...], _separators: Separators) -> NameTest:
    """Return the test for a glob, which the name that is written like it passes, too: `a:[1]` may be a key."""
    (glob,) = names
    matches = GlobMatcher(glob)
    if matches(glob):
        return NameTest(matches, _checked(glob), partial(_text_of_glob, glob))
    return NameTest(
        lambda name: name == glob or matches(name),
        _checked(glob),
        lambda: _any_of([_text_of_glob(glob), _literal(FactComparison.IS, glob)]),
    )


def _of_text(names: tuple[bytes, ...], _separators: Separators) -> NameTest:
    """Return the test for a part of a name, of which ASCII letters match in either case unless one is a capital."""
    (needle,) = names
    if needle != needle.lower():
        glob = _checked(b"*%b*" % escape_glob(needle))
        return NameTest(lambda name: needle in name, glob, partial(_literal, FactComparison.HAS, needle))
    codes = [bytes((code,)) for code in needle]
    in_glob = b"".join(b"[%b%b]" % (one, one.upper()) if one.isalpha() else escape_glob(one) for one in codes)

    def text() -> TextTest:
        found = _literal(FactComparison.HAS, needle)
        if needle == needle.upper() or not found.any_of:
            return found
        return _regex("".join(map(_either_case, needle.decode())))

    return NameTest(lambda name: needle in name.lower(), _checked(b"*%b*" % in_glob), text)


def value_test(term: Term) -> Test:
    """Return the test of a term about values, apart from its negation: of a part of one, as of a part of a name."""
    return _of_text(term.names, Separators()).passes


def _either_case(character: str) -> str:
    is_letter = character.isascii() and character.isalpha()
    return f"[{character}{character.upper()}]" if is_letter else escaped(character)


def _of_tags(tags: tuple[bytes, ...], _separators: Separators) -> NameTest:
    wanted = frozenset(tags)

    def test(name: bytes) -> bool:
        found = _match_tag(name) if b"{" in name else None
        return found is not None and found[1] in wanted

    def text() -> TextTest:
        possible = [_literal(FactComparison.IS, tag) for tag in tags if tag and b"}" not in tag]
        texts = [str(value) for one in possible for parts in one.any_of for _, value in parts]
        return _regex(rf"\A[^{{]*\{{(?:{'|'.join(map(escaped, texts))})\}}") if texts else TextTest(())

    return NameTest(test, _checked(b"*{%b}*" % escape_glob(tags[0])), text)


def _of_regex(names: tuple[bytes, ...], _separators: Separators) -> NameTest:
    def text() -> TextTest:
        found = ascii_regex(names[0])
        return TextTest(is_sure=False) if found is None else replace(_regex(found), is_for_unicode=False)

    return NameTest(compiled(names[0]), None, text)


def _of_patterns(names: tuple[bytes, ...], separators: Separators) -> NameTest:
    patterns = [read_pattern(name, separators) for name in names]
    matcher = PatternMatcher(patterns, separators)

    def text() -> TextTest:
        globs = [TextTest() if one.glob is None else _text_of_glob(one.glob) for one in patterns]
        return replace(_any_of(globs), is_sure=False)

    return NameTest(matcher, patterns[0].glob, text, lambda key, has_hex: matcher.is_alike(key, has_hex=has_hex))


_NAME_TESTS: Final[dict[str, Callable[[tuple[bytes, ...], Separators], NameTest]]] = {
    "in": _of_namespaces,
    "glob": _of_glob,
    "text": _of_text,
    "tag": _of_tags,
    "re": _of_regex,
    "pattern": _of_patterns,
}
"""The tests of terms about names except `slot`, by name, the cheapest first."""


def _checked(glob: bytes) -> bytes | None:
    try:
        return check_pattern(glob)
    except PatternError:
        return None


# names as text


_NONE_IN_ASCII: Final = TextTest((), is_for_unicode=False)
"""Matches nothing: the searched bytes are not UTF-8, and only names beyond ASCII may contain a part of them."""


def _any_of(tests: Sequence[TextTest]) -> TextTest:
    any_of = tuple(parts for one in tests for parts in one.any_of)
    return TextTest(any_of, is_for_unicode=all(one.is_for_unicode for one in tests))


def _literal(comparison: FactComparison, raw: bytes) -> TextTest:
    try:
        return TextTest((((comparison, raw.decode()),),))
    except UnicodeDecodeError:
        return _NONE_IN_ASCII


def _regex(expression: str) -> TextTest:
    return TextTest((((FactComparison.MATCHES, expression),),))


def _text_of_glob(glob: bytes) -> TextTest:
    """Return the test of whole names against a glob; the empty name matches only the globs `` and `*`."""
    pieces: list[list[frozenset[int]]] = [[]]
    for members in tokens(glob):
        if members is None:
            pieces.append([])
        else:
            pieces[-1].append(members)
    if not any(pieces):
        if len(pieces) == 1:
            return _literal(FactComparison.IS, b"")
        return TextTest() if len(pieces) == 2 else TextTest((((FactComparison.LEAST, 1),),))
    if any(len(members) != 1 for piece in pieces for members in piece):
        return replace(_regex(_anchored(["".join(map(_one_of, piece)) for piece in pieces])), is_for_unicode=False)
    try:
        texts = [bytes(byte for (byte,) in piece).decode() for piece in pieces]
    except UnicodeDecodeError:
        return _NONE_IN_ASCII
    return _text_of_literals(texts)


def _text_of_literals(texts: Sequence[str]) -> TextTest:
    if len(texts) == 1:
        return TextTest((((FactComparison.IS, texts[0]),),))
    first, last = texts[0], texts[-1]
    between = [text for text in texts[1:-1] if text]
    if between and (first or last or len(between) > 1):
        return _regex(_anchored([escaped(text) for text in (first, *between, last)]))
    parts: list[tuple[FactComparison, str | int]] = [(FactComparison.HAS, text) for text in between]
    parts += [(FactComparison.BEGINS, first)] if first else []
    parts += [(FactComparison.ENDS, last)] if last else []
    if first and last:
        parts.append((FactComparison.LEAST, len(first.encode()) + len(last.encode())))
    return TextTest((tuple(parts),))


def _one_of(members: frozenset[int]) -> str:
    excluded = frozenset(range(0x80)) - members
    return one_of_bytes(members) if len(excluded) > 0x40 else one_of_bytes(excluded, is_negated=True)


def _anchored(pieces: Sequence[str]) -> str:
    start, end = pieces[0] and rf"\A{pieces[0]}", pieces[-1] and rf"{pieces[-1]}\z"
    if len(pieces) == 1:
        return rf"\A{pieces[0]}\z"
    return "(?s)" + ".*".join(piece for piece in (start, *pieces[1:-1], end) if piece)
