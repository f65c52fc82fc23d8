"""Decides the terms of a query that are about names, and finds what of them a server can filter by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.query.patterns import PatternMatcher, read_pattern
from rtui.analysis.query.places import slots_in
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.regex import compiled
from rtui.analysis.query.terms import Fact
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.glob import Matcher, PatternError, check_pattern, escape_glob, prefix_pattern
from rtui.keyspace.text.java_names import BEGINNING, HEADER, MARK, SIGN, java_text, swapped
from rtui.keyspace.text.segments import Separators

Test = Callable[[bytes], object]
"""Says whether a name passes, by what is true or not."""

_WORTH: Final = 2
"""A glob with fewer literal bytes is not worth a server's while."""

_match_tag: Final = re.compile(rb"[^{]*\{([^}]+)\}").match


class NameFilter:
    """Keeps the names that all terms about names let through."""

    def __init__(self, query: Query, separators: Separators) -> None:
        """Raises RegexError where the library for `re:` is missing."""
        terms = sorted(query.about(Fact.NAME), key=lambda term: term.name == "pattern")
        self._tests = [(name_test(term, separators), term.is_negated) for term in terms]

    @property
    def is_open(self) -> bool:
        """Whether every name passes."""
        return not self._tests

    def __call__(self, name: bytes) -> bool:
        """Whether a name passes."""
        return all(bool(test(name)) is not is_negated for test, is_negated in self._tests)

    def keep(self, names: Iterable[bytes]) -> list[bytes]:
        """Return those of many names that pass, in order."""
        kept = names if isinstance(names, list) else list(names)
        for test, is_negated in self._tests:
            kept = [name for name in kept if not test(name)] if is_negated else list(filter(test, kept))
        return kept


def name_test(term: Term, separators: Separators) -> Test:
    """Return what decides a term about names, apart from its negation.

    A name that Java has serialised passes as its text does; a term that has the header in it is about the raw name and
    its split form. Terms about nodes and shards have to be replaced before, see `places.on_slots`.
    """
    match term.name:
        case "tag":
            return _has_tag(frozenset(term.names))
        case "slot":
            return _in_slots(frozenset(slots_in(term.values)))
    names = tuple(typed_name(name, separators) for name in term.names)
    test, java_separator = _test(term.name, names, separators), separators.java_separator
    is_raw = any(HEADER in name for name in names)

    def test_form(name: bytes) -> object:
        text = java_text(name) if name.startswith(HEADER) else None
        if text is None:
            return test(name)
        return test(name) or test(swapped(name, java_separator)) if is_raw else test(text)

    return test_form


def _test(kind: str, names: tuple[bytes, ...], separators: Separators) -> Test:
    """Return what decides a term of some kind about the form of a name that it is given."""
    match kind:
        case "text":
            return _contains(names[0])
        case "glob":
            return _matches(names[0])
        case "re":
            return compiled(names[0])
        case "in":
            return _Inside(names, separators)
        case "pattern":
            return PatternMatcher([read_pattern(text, separators) for text in names], separators)
    raise ValueError(f"{kind} is not about names")


def typed_name(typed: bytes, separators: Separators) -> bytes:
    """Return a name as it is split; one with the sign of Java in front is typed as it is shown."""
    sign = SIGN.encode()
    return MARK + separators.java_separator + typed.removeprefix(sign) if typed.startswith(sign) else typed


def _matches(glob: bytes) -> Test:
    """Return the test for a glob, which the name that is written like it passes, too: `a:[1]` may be a key."""
    matches = Matcher(glob)
    return matches if matches(glob) else lambda name: name == glob or matches(name)


def _contains(needle: bytes) -> Test:
    """Return the test for a part of a name, of which ASCII letters match in either case unless one is a capital."""
    if needle == needle.lower():

        def test(name: bytes) -> bool:
            return needle in name.lower()

        return test
    return lambda name: needle in name


def _has_tag(tags: frozenset[bytes]) -> Test:
    def test(name: bytes) -> bool:
        found = _match_tag(name) if b"{" in name else None
        return found is not None and found[1] in tags

    return test


def _in_slots(slots: frozenset[int]) -> Test:
    return lambda name: key_slot(name) in slots


class _Inside:
    """Tells whether keys are below one of some namespaces."""

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
        """Whether a segment begins where one of the prefixes ends: within a hash tag none does."""
        ends = {len(prefix) for prefix in self._prefixes if name.startswith(prefix)}
        last, end = max(ends), 0
        for segment in self._separators.segments(name):
            end += len(segment.name) + len(segment.separator)
            if segment.separator and end in ends:
                return True
            if end >= last:
                return False
        return False


def namespace_prefixes(name: bytes, separators: Separators) -> tuple[bytes, ...]:
    """Return what the keys below a namespace begin with; its name may be given with a separator behind it or not."""
    if name.endswith(separators.values) or not separators.values:
        return (name,)
    return tuple(name + separator for separator in separators.values)


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """What SCAN filters by; the terms are checked here all the same."""

    match: bytes | None = None
    key_type: bytes | None = None


def server_filter(query: Query, separators: Separators) -> ServerFilter:
    """Return the most selective glob that every match of a query has, and its type where there is only one."""
    globs = [glob for term in query.about(Fact.NAME) if (glob := _glob_of(term, separators)) is not None]
    best = max(globs, key=_literal_bytes, default=None)
    if best is not None and _literal_bytes(best) < _WORTH and best.count(b"*") + best.count(b"?") == len(best):
        best = None
    types = [key_type for term in query.about(Fact.TYPE) if (key_type := term.sole_name) is not None]
    return ServerFilter(best, types[0] if types else None)


def names_beside(query: Query, match: bytes | None) -> tuple[bytes, ...]:
    """Return the names that globs of a query are written like, where the server leaves them out by `match`."""
    if match is None:
        return ()
    filtered = Matcher(match)
    globs = (term.sole_name for term in query.about(Fact.NAME) if term.name == "glob")
    return tuple(dict.fromkeys(glob for glob in globs if glob is not None and not filtered(glob)))


def _literal_bytes(glob: bytes) -> int:
    """Return how many bytes of a glob are fixed; a bracket counts as one."""
    plain = re.sub(rb"\[(?:\\.|[^\]\\])*\]?", b"x", glob)
    return len(re.sub(rb"\\(.)", b"x", plain).translate(None, b"*?"))


def _glob_of(term: Term, separators: Separators) -> bytes | None:
    """Return a glob that all names match which pass a term; None without a useful one within the bounds."""
    value = term.sole_name
    if value is None:
        return None
    value = typed_name(value, separators)
    match term.name:
        case "glob":
            found = value
        case "text":
            found = b"*" + _any_case(value) + b"*"
        case "in":
            prefixes = namespace_prefixes(value, separators)
            found = prefix_pattern(prefixes[0] if len(prefixes) == 1 else value)
        case "tag":
            found = b"*{" + escape_glob(value) + b"}*"
        case "pattern":
            return read_pattern(value, separators).glob
        case _:
            return None
    if found.startswith(MARK + separators.java_separator):
        found = HEADER + b"??" + found[BEGINNING:]
    try:
        return check_pattern(found)
    except PatternError:
        return None


def _any_case(needle: bytes) -> bytes:
    """Return the glob for a part of a name, of which letters match in either case unless one is a capital."""
    if needle != needle.lower():
        return escape_glob(needle)
    parts = []
    for code in needle:
        byte = bytes((code,))
        parts.append(b"[%b%b]" % (byte, byte.upper()) if byte.isalpha() else escape_glob(byte))
    return b"".join(parts)
