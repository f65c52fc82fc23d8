"""What decides terms by the plainest means, one key at a time: the reference for both ways in which queries are."""

from __future__ import annotations

import re
from dataclasses import replace

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.patterns import Step, read_pattern
from rtui.analysis.query.query import Term
from rtui.analysis.query.terms import Keyword
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.glob import Matcher
from rtui.keyspace.text.identifiers import PLACEHOLDERS, Identifiers, KeySegments
from rtui.keyspace.text.java_names import HEADER, MARK, java_text, swapped
from rtui.keyspace.text.segments import Separators


def folded(name: bytes, separators: Separators) -> list[Step]:
    """The path of patterns of a name, one segment at a time."""
    identifiers = Identifiers(separators.values)
    steps = []
    for segment, separator in KeySegments(separators).of(name, 1_000):
        form = None if len(segment) > 256 else identifiers.form(segment).pattern
        steps.append(Step(segment if form is None else form, separator, form is not None))
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
            return name == term.names[0] or Matcher(term.names[0])(name)
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


def _is_below(path: list[Step], name: bytes, separators: Separators) -> bool:
    steps, segments = folded(name, separators), KeySegments(separators).of(name, 1_000)
    if len(steps) < len(path):
        return False
    for wanted, step, segment in zip(path, steps, segments, strict=False):
        is_any = wanted.is_folded and wanted.name == b"{*}" and not (step.is_folded and step.name in PLACEHOLDERS)
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
        if isinstance(one, Keyword):
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
