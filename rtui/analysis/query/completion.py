"""Completion at the cursor of a query line: terms, namespaces, types, encodings, units, patterns.

`complete` returns candidates and the part of the line that each would replace. The caller gives the names of a keyspace
as a `Vocabulary`, in functions that find names by their beginning, so that a keyspace of any size is cheap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rtui.analysis.query.parsing import items, word_end, word_starts
from rtui.analysis.query.query import HEAD, Span, raw_bytes, written_bytes
from rtui.analysis.query.terms import TERMS, Form, TermSpec
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.quantities import ValueSyntaxError

MOST: Final = 50
"""Candidates that are returned."""

_OPENINGS: Final = {
    "text": (),
    "glob": (),
    "slot": ("slot:",),
    "shard": ("shard:",),
    "ttl": ("ttl:none", "ttl<", "ttl>", "ttl:"),
}
"""How a term may begin where that is not its name with an operator."""

_NUMBER_END: Final = re.compile(r"[0-9](?:[0-9_]*[0-9])?(?:\.[0-9]+)?([A-Za-z]*)$")


def _nothing(prefix: bytes) -> Iterable[bytes]:
    return ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of a keyspace; each function returns names that begin with some bytes, likeliest first."""

    namespaces: Callable[[bytes], Iterable[bytes]] = _nothing
    """Paths of namespaces, with or without the separator at the end."""
    patterns: Callable[[bytes], Iterable[bytes]] = _nothing
    tags: Callable[[bytes], Iterable[bytes]] = _nothing
    types: tuple[bytes, ...] = ()
    """Types that keys have, most keys first; all known ones follow."""
    encodings: tuple[bytes, ...] = ()
    nodes: tuple[bytes, ...] = ()
    """Of a cluster, by host and port."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to go on."""

    text: SafeText
    """The text that would replace the span."""
    help: SafeText
    """Its meaning; may be empty."""
    is_whole: bool = True
    """Whether a space may follow; else a value is still to be typed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Candidates for a part of a line."""

    span: Span
    candidates: tuple[Candidate, ...] = ()
    help: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change
    """Help on the term at the cursor, with examples; empty outside terms."""


def complete(line: str, cursor: int, vocabulary: Vocabulary | None = None) -> Completion:
    """Return the candidates at a cursor, an index between characters."""
    vocabulary = vocabulary or Vocabulary()
    cursor = max(0, min(cursor, len(line)))
    before = [*word_starts(line[:cursor])][-1:]
    start = before[0] if before and word_end(line[:cursor], before[0]) == cursor else cursor
    at = start + (line[start:cursor].startswith("!"))
    typed = line[at:cursor]
    head = HEAD.match(typed)
    spec = None if head is None else TERMS.get(head[1].lower())
    if head is None or spec is None:
        found = islice(_beginnings(typed), MOST)
        return Completion(Span(at, cursor), tuple(found))
    help_text = term_help(spec)
    value_start = at + head.end()
    if spec.form is not Form.TEXT:
        *_, (value_start, _) = items(line, value_start, cursor)
    value = line[value_start:cursor]
    if spec.form is Form.NAMES:
        candidates = tuple(islice(_names(spec, value, vocabulary), MOST))
    elif spec.form is Form.NUMBERS:
        candidates = tuple(_numbers(spec, value, head[2]))
    else:
        candidates = ()
    return Completion(Span(value_start, cursor), candidates, help_text)


def term_help(spec: TermSpec) -> SafeText:
    """Return the help on a term, with examples: `keys by their length: … (len>10000, len:1)`."""
    return SafeText(f"{spec.help} ({', '.join(spec.examples)})".replace(": (", " ("))


def _beginnings(typed: str) -> Iterator[Candidate]:
    for spec in TERMS.values():
        default = (f"{spec.name}:", *(f"{spec.name}{one}" for one in ("<", ">") if one in spec.operators))
        for opening in _OPENINGS.get(spec.name, default):
            if opening.startswith(typed.lower()) and opening != typed:
                is_whole = spec.keyword is not None and opening.endswith(spec.keyword.value)
                yield Candidate(SafeText(opening), term_help(spec), is_whole)


def _names(spec: TermSpec, value: str, vocabulary: Vocabulary) -> Iterator[Candidate]:
    try:
        prefix = raw_bytes(value.removeprefix('"'))
    except ValueSyntaxError:
        return
    match spec.name:
        case "in":
            found = vocabulary.namespaces(prefix)
        case "pattern":
            found = vocabulary.patterns(prefix)
        case "tag":
            found = vocabulary.tags(prefix)
        case "node":
            found = (one for one in vocabulary.nodes if one.startswith(prefix))
        case _:
            here = vocabulary.types if spec.name == "type" else vocabulary.encodings
            wanted = prefix.lower()
            found = (one for one in dict.fromkeys((*here, *spec.known)) if one.lower().startswith(wanted))
    for name in found:
        if name != prefix:
            yield Candidate(written_bytes(name, forbidden=","), SafeText(""))


def _numbers(spec: TermSpec, value: str, operator: str) -> Iterator[Candidate]:
    keyword, syntax = spec.keyword, spec.syntax
    if keyword is not None and operator == ":" and keyword.value.startswith(value.lower()) and value != keyword.value:
        yield Candidate(SafeText(keyword.value), SafeText("keys without one"))
    number = _NUMBER_END.search(value)
    if number is None or syntax is None:
        return
    before = value[: number.start(1)]
    for unit in syntax.units:
        if unit.lower().startswith(number[1].lower()) and unit != number[1]:
            yield Candidate(display_text(before + unit), SafeText(_UNIT_NAMES.get(unit, "")))


_UNIT_NAMES: Final = {
    "s": "seconds",
    "m": "minutes",
    "h": "hours",
    "d": "days",
    "K": "KiB",
    "M": "MiB, millions in a length",
    "G": "GiB",
    "k": "thousands",
}
