"""Parses query lines: terms, and the problems of invalid ones, with their position and a suggestion.

A line is words with spaces between them. A word may begin with `!`; then comes either the name of a term, an operator
and values, or what a key's name is searched for: a glob where it contains `*`, `?` or `[…]`, else a part of the name.
Values may be quoted: `"two words"`, `"\\xff"`. Within quotes nothing is a wildcard, unless the term says so.

A word with a colon whose first part is no term is a part of a name, since most names contain colons: `user:42`. Where
it nearly is a term, `hints` says so. Before a comparison it has to be a term.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rtui.analysis.query.patterns import PatternSyntaxError, RegexError, check_pattern_text, compiled
from rtui.analysis.query.query import HEAD, WILDCARD, Problem, Query, QuerySpan, Term, Value, raw_bytes, unquoted
from rtui.analysis.query.terms import GLOB, REGEX, TERMS, TEXT, TermForm, TermSpec
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.glob import PatternError, check_pattern
from rtui.keyspace.text.matching import nearest_word
from rtui.keyspace.text.quantities import Bounds, ValueSyntaxError

MAX_LINE: Final = 32_768
MAX_TERMS: Final = 64
MAX_VALUES: Final = 512
MAX_VALUE_BYTES: Final = 4_096

_VERY_ALIKE: Final = 0.7
"""Least similarity between a valid word and the one suggested for it."""

ALIASES: Final = {
    "length": "len", "memory": "size", "bytes": "size", "mem": "size", "encoding": "enc", "frequency": "freq",
    "expire": "expires", "expiry": "expires", "idletime": "idle", "regex": "re", "regexp": "re", "namespace": "in",
    "prefix": "in", "ns": "in", "hashtag": "tag",
}  # fmt: skip

_SPACE: Final = re.compile(r"\s*")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARE: Final = re.compile(r"\S*")
_BARE_ITEM: Final = re.compile(r"[^\s,]*")


class QueryError(ValueError):
    """A line that is no query."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class LineReading:
    """A parsed line."""

    query: Query
    problems: tuple[Problem, ...] = ()


def parse(line: str) -> Query:
    """Return the query that a line says. Raises QueryError."""
    reading = read(line)
    if reading.problems:
        raise QueryError(reading.problems[0])
    return reading.query


def read(line: str) -> LineReading:
    if len(line) > MAX_LINE:
        return LineReading(Query(), (Problem(QuerySpan(MAX_LINE, len(line)), SafeText("the line is too long")),))
    terms: list[Term] = []
    problems: list[Problem] = []
    for start in word_starts(line):
        try:
            terms.append(_Word(line, start).term())
        except QueryError as error:
            problems.append(error.problem)
    if len(terms) > MAX_TERMS:
        span = QuerySpan(terms[MAX_TERMS].span.start, len(line))
        problems.append(Problem(span, SafeText(f"there are more than {MAX_TERMS} terms")))
    return LineReading(Query(tuple(terms[:MAX_TERMS])), tuple(problems))


def word_starts(line: str) -> Iterator[int]:
    at = _after_spaces(line, 0)
    while at < len(line):
        yield at
        at = _after_spaces(line, word_end(line, at))


def _after_spaces(line: str, at: int) -> int:
    found = _SPACE.match(line, at)
    return at if found is None else found.end()


def word_end(line: str, start: int) -> int:
    """Return where the word ends that begins at `start`; one whose quotes are not closed ends with the line."""
    at = start + (line[start : start + 1] == "!")
    head = HEAD.match(line, at)
    spec = None if head is None else TERMS.get(head[1].lower())
    if head is not None and spec is not None:
        at = head.end()
    while True:
        if line[at : at + 1] == '"':
            quoted = _QUOTED.match(line, at)
            if quoted is None:
                return len(line)
            at = quoted.end()
        is_list = spec is not None and spec.form is not TermForm.TEXT
        bare = (_BARE_ITEM if is_list else _BARE).match(line, at)
        at = at if bare is None else bare.end()
        if not is_list or line[at : at + 1] != ",":
            return at
        at += 1


def items(line: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where each of several values begins and ends; one whose quotes are not closed goes up to the end."""
    while True:
        is_quoted = line[at : at + 1] == '"'
        quoted = _QUOTED.match(line, at, end) if is_quoted else None
        is_open = is_quoted and quoted is None
        stop = -1 if is_open else line.find(",", at if quoted is None else quoted.end(), end)
        yield at, end if stop < 0 else stop
        if stop < 0:
            return
        at = stop + 1


class _Word:
    """One word of a line."""

    def __init__(self, line: str, start: int) -> None:
        self._line, self._start = line, start
        self._end = word_end(line, start)
        self._is_negated = line[start] == "!"
        self._at = start + self._is_negated

    def term(self) -> Term:
        line, at, end = self._line, self._at, self._end
        if at == end:
            raise self._problem(self._start, end, "nothing follows the !")
        head = HEAD.match(line, at, end)
        spec = None if head is None else TERMS.get(head[1].lower())
        if head is None or spec is None:
            if head is not None:
                self._check_head(head)
            return self._plain(at)
        operator, at = head[2], head.end()
        if operator not in spec.operators:
            message = f"“{spec.name}” takes a colon: {', '.join(spec.examples)}"
            raise self._problem(head.start(2), at, message)
        if at == end:
            raise self._problem(
                self._start, end, f"a value is missing after {spec.name}{operator}", *self._signed(spec.examples)
            )
        if spec.form is TermForm.TEXT:
            return self._made(spec.name, (self._text(at, spec.name),))
        if operator != ":":
            return self._made(spec.name, (self._number(spec, operator, at, end),))
        values = tuple(self._value(spec, start, stop) for start, stop in items(line, at, end))
        if len(values) > MAX_VALUES:
            raise self._problem(at, end, f"there are more than {MAX_VALUES} values")
        return self._made(spec.name, tuple(dict.fromkeys(values)))

    def _made(self, name: str, values: tuple[Value, ...]) -> Term:
        return Term(name, values, self._is_negated, QuerySpan(self._start, self._end))

    def _problem(self, start: int, end: int, message: str, *meant: str) -> QueryError:
        return QueryError(Problem(QuerySpan(start, end), display_text(message, limit=400), meant))

    def _signed(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"!{text}" if self._is_negated else text for text in texts)

    def _check_head(self, head: re.Match[str]) -> None:
        """Raise where a word is a comparison, but its name is no term."""
        name, operator = head[1], head[2]
        if operator == ":":
            return
        numeric = [one.name for one in TERMS.values() if operator in one.operators]
        near = nearest_word(name.lower(), [*numeric, *ALIASES])
        message = f"there is no term “{name}” (put names that contain {operator} in quotes)"
        meant = () if near is None else (ALIASES.get(near, near),)
        raise self._problem(head.start(), head.end(1), message, *meant)

    def _plain(self, at: int) -> Term:
        is_glob = self._line[at] != '"' and WILDCARD.search(self._line, at, self._end) is not None
        name = GLOB if is_glob else TEXT
        return self._made(name, (self._text(at, name),))

    def _text(self, at: int, name: str) -> bytes:
        raw = self._bytes(at, self._end)
        try:
            if name == GLOB:
                check_pattern(raw)
            elif name == REGEX:
                compiled(raw)
        except (PatternError, RegexError) as error:
            raise self._problem(at, self._end, str(error)) from None
        return raw

    def _bytes(self, start: int, end: int) -> bytes:
        text = self._line[start:end]
        try:
            if text.startswith('"'):
                quoted = _QUOTED.match(self._line, start, end)
                if quoted is None:
                    raise self._problem(start, end, "the quotes are not closed", f'{text}"')
                if quoted.end() < end:
                    raise self._problem(quoted.end(), end, "a space is missing after the quotes")
                raw = unquoted(text)
            else:
                raw = raw_bytes(text)
        except ValueSyntaxError as error:
            raise self._problem(start, end, str(error), *error.meant) from None
        if not raw:
            raise self._problem(start, max(end, start + 1), "a value is empty")
        if len(raw) > MAX_VALUE_BYTES:
            raise self._problem(start, end, f"a value has more than {MAX_VALUE_BYTES} bytes")
        return raw

    def _value(self, spec: TermSpec, start: int, end: int) -> Value:
        if spec.form is TermForm.NUMBERS:
            return self._number(spec, ":", start, end)
        raw = self._bytes(start, end)
        if spec.name == "pattern":
            try:
                check_pattern_text(raw)
            except PatternSyntaxError as error:
                raise self._problem(start, end, str(error)) from None
        if spec.known and raw not in spec.known and self._line[start] != '"':
            text = raw.decode("utf-8", "replace")
            if ":" in text:
                raise self._problem(start, end, f"“{text}” is not a {_NOUNS[spec.name]}: none contains a colon")
            meant = _known_value(spec, text)
            if meant is not None:
                message = f"“{text}” is not a known {_NOUNS[spec.name]} (quote it to search for it anyway)"
                raise self._problem(start, end, message, meant)
        return raw

    def _number(self, spec: TermSpec, operator: str, start: int, end: int) -> Value:
        syntax = spec.syntax
        assert syntax is not None  # noqa: S101 - terms of numbers have one
        text = self._line[start:end]
        if spec.keyword is not None:
            word = text.lower()
            if word == spec.keyword.value and operator == ":":
                return spec.keyword
            self._check_keyword(spec, word, start, end)
        compared = _COMPARED.fullmatch(text) if operator == ":" and spec.operators[-1] != ":" else None
        if compared is not None:
            message = f"{compared[1]} replaces the colon"
            raise self._problem(self._start, self._end, message, *self._signed([f"{spec.name}{text}"]))
        try:
            if not text:
                raise ValueSyntaxError(f"{syntax.what} is missing")
            bounds = syntax.bounds(text) if operator == ":" else syntax.compared(operator, text)
            self._check_bounds(bounds, spec)
        except ValueSyntaxError as error:
            raise self._problem(start, max(end, start + 1), str(error), *error.meant) from None
        is_exact = operator == ":" and syntax.is_continuous and bounds.low == bounds.high and ".." not in text
        if is_exact:
            meant = [f"{spec.name}{one}{text}" for one in ("<", ">")]
            message = f"“{text}” alone is not a range"
            raise self._problem(self._start, self._end, message, *self._signed(meant))
        return bounds

    def _check_keyword(self, spec: TermSpec, word: str, start: int, end: int) -> None:
        """Raise where a value nearly is the keyword of a term, or is it behind a comparison."""
        assert spec.keyword is not None  # noqa: S101 - only of terms that have one
        keyword = spec.keyword.value
        meant = spec.tried.get(word)
        if meant is None and word and not word[0].isdigit() and nearest_word(word, [keyword], least=_VERY_ALIKE):
            meant = keyword
        if meant is None:
            return
        is_turned = self._is_negated is not meant.startswith("!")
        term = f"{'!' if is_turned else ''}{spec.name}:{meant.removeprefix('!')}"
        message = f"“{self._line[start:end]}” is not a valid value of {spec.name}"
        raise self._problem(self._start, self._end, message, term)

    def _check_bounds(self, bounds: Bounds, spec: TermSpec) -> None:
        most = spec.syntax.most if spec.syntax is not None else 0
        if (bounds.low or 0) > most or (bounds.high is not None and not 0 <= bounds.high <= most):
            raise ValueSyntaxError(f"no key can have this: {spec.syntax.what if spec.syntax else ''} is meant")


_NOUNS: Final = {"type": "type", "enc": "encoding"}


_COMPARED: Final = re.compile(r"([<>]=?)[0-9].*")
_BETWEEN_VALUES: Final = re.compile(r"[|;/+&]")


def _known_value(spec: TermSpec, text: str) -> str | None:
    by_name = {known.decode().lower(): known.decode() for known in spec.known}
    parts = _BETWEEN_VALUES.split(text.lower())
    if len(parts) > 1 and all(part in by_name for part in parts):
        return ",".join(by_name[part] for part in parts)
    near = nearest_word(text.lower(), by_name, least=_VERY_ALIKE)
    tried = spec.tried.get(text.lower())
    return tried if tried is not None else None if near is None else by_name[near]


@lru_cache(maxsize=64)
def term(text: str) -> Term:
    """Return the only term of a text. Raises QueryError, and ValueError unless it is exactly one."""
    (found,) = parse(text).terms
    return found
