"""Queries: terms that all have to apply, and their notation; the matches of a query.

A query is a value: two lines that mean the same are equal, and `parse(str(query)) == query`. Its text is safe to show,
whatever bytes it searches for.

All matches are counted, and as many as are wanted are kept, the first ones or the top ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.terms import GLOB, TERMS, TEXT, Fact, NumberKeyword, TermForm, TermSpec
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import EscapeSyntaxError, SafeText, display, display_text, quoted, unescape
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.quantities import Bounds, ValueSyntaxError

WILDCARD: Final = re.compile(r"[*?]|\[[^\]]+\]")
HEAD: Final = re.compile(r"([A-Za-z]{1,16})(:|<=|>=|<|>)")
Value = bytes | Bounds | NumberKeyword


@dataclass(frozen=True, slots=True)
class QuerySpan:
    """A part of a query line: characters from `start` up to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a part of a line, or a suggestion for it."""

    span: QuerySpan
    message: SafeText
    meant: tuple[str, ...] = ()

    @property
    def sentence(self) -> SafeText:
        text = self.message[:1].upper() + self.message[1:]
        if self.meant:
            text += f"; did you mean {display_text(self.meant[0], limit=80)}?"
        return SafeText(text if text.endswith("?") else f"{text}.")


NOWHERE: Final = QuerySpan(0, 0)


@dataclass(frozen=True, slots=True)
class Term:
    """One term: a key passes when one of the values applies, or with `is_negated` when none does."""

    name: str
    values: tuple[Value, ...]
    """At least one; for text, a glob or an expression exactly one."""
    is_negated: bool = False
    span: QuerySpan = field(default=NOWHERE, compare=False)

    @property
    def spec(self) -> TermSpec:
        return TERMS[self.name]

    @property
    def names(self) -> tuple[bytes, ...]:
        return tuple(value for value in self.values if isinstance(value, bytes))

    @property
    def sole_name(self) -> bytes | None:
        """Its only value, where that is bytes and all that passes has it."""
        return self.names[0] if len(self.values) == 1 and self.names and not self.is_negated else None

    def __str__(self) -> SafeText:
        return SafeText(f"{'!' if self.is_negated else ''}{self._written()}")

    def _written(self) -> str:
        spec = self.spec
        if spec.form is TermForm.TEXT:
            return _written_text(self.name, self.names[0])
        if spec.form is TermForm.NAMES:
            return f"{self.name}:{','.join(_written_name(spec, name) for name in self.names)}"
        syntax = spec.syntax
        assert syntax is not None  # noqa: S101 - terms of numbers have one
        only = self.values[0] if len(self.values) == 1 else None
        if isinstance(only, Bounds) and spec.operators[-1] != ":" and (only.low is None) != (only.high is None):
            return f"{self.name}{syntax.comparison(only)}"
        items = [
            syntax.written(value) if isinstance(value, Bounds) else value.value
            for value in self.values
            if not isinstance(value, bytes)
        ]
        return f"{self.name}:{','.join(items)}"


def _written_name(spec: TermSpec, name: bytes) -> str:
    """Write one of several names; one that could be taken for a mistyped known one is put in quotes."""
    text = written_bytes(name, forbidden=",")
    is_odd = bool(spec.known) and name not in spec.known
    return text if not is_odd or text.startswith('"') else in_quotes(text)


def _written_text(name: str, value: bytes) -> str:
    text = written_bytes(value)
    if name not in (TEXT, GLOB) or text.startswith('"'):
        return text if name == TEXT else f"{name}:{text}"
    is_glob = WILDCARD.search(text) is not None
    head = HEAD.match(text)
    is_term = head is not None and (head[1].lower() in TERMS or head[2] != ":")
    if not is_term and not text.startswith("!") and is_glob is (name == GLOB):
        return text
    if name == GLOB:
        return f"{name}:{text}"
    return in_quotes(text)


@dataclass(frozen=True, slots=True)
class Query:
    """Terms that all have to apply; without terms it finds every key."""

    terms: tuple[Term, ...] = ()
    hints: tuple[Problem, ...] = field(default=(), compare=False)
    """Words of the line that are right, but look like something else that was meant; see `hints`."""
    doubts: tuple[Problem, ...] = field(default=(), compare=False)
    """The same, where that is likely only if nothing is found."""

    def __str__(self) -> SafeText:
        return SafeText(" ".join(str(term) for term in self.terms))

    def __and__(self, other: Query) -> Query:
        return Query((*self.terms, *(term for term in other.terms if term not in self.terms)))

    def about(self, fact: Fact) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.spec.fact is fact)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that are read by one command each: names are known, and values are searched apart."""
        needed = {term.spec.fact for term in self.terms} - {Fact.NAME, Fact.VALUE}
        return tuple(fact for fact in Fact if fact in needed)


EVERYTHING: Final = Query()


def query_of(*terms: Term | None) -> Query:
    """Return the query of these terms, without repeats and without None."""
    return Query(tuple(dict.fromkeys(term for term in terms if term is not None)))


def one_of(name: str, values: Iterable[Value], *, is_negated: bool = False) -> Term | None:
    found = tuple(values)
    return Term(name, found, is_negated) if found else None


# bytes in a line


def raw_bytes(text: str) -> bytes:
    """Return typed text as bytes; invalid UTF-8 comes as surrogate escapes. Raises ValueSyntaxError."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueSyntaxError("a character is not valid UTF-8; write its bytes as \\xNN in quotes") from None


def unquoted(text: str) -> bytes:
    r"""Return the bytes of `"…"` with the escapes `\xNN`, `\n`, `\"`, `\\`. Raises ValueSyntaxError."""
    try:
        return unescape(raw_bytes(text))
    except EscapeSyntaxError as error:
        raise ValueSyntaxError(str(error)) from None


def written_bytes(raw: bytes, *, forbidden: str = "") -> SafeText:
    r"""Write bytes as they are where that is safe and clear, else in quotes; `forbidden` are characters that need them.

    The result is safe to show and is read back as the same bytes.
    """
    shown = display(raw, limit=len(raw) + 1)
    is_plain = raw != b"" and shown.encode() == raw
    if not is_plain:
        return quoted(raw)
    if shown[0] == '"' or any(one.isspace() or one in forbidden for one in shown):
        return in_quotes(shown)
    return shown


def in_quotes(shown: SafeText | str) -> SafeText:
    return SafeText('"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"')


_OVERSHOOT: Final = 2
"""Sorted matches kept before the least are dropped, as a multiple of the number wanted."""


@dataclass(frozen=True, slots=True)
class MatchOrder:
    """The sort order of matches."""

    fact: Fact
    is_descending: bool = False
    is_by_bytes: bool = False
    """Whether names are sorted by their bytes, numbers in them included."""

    def key(self, record: KeyRecord) -> tuple[bool, Any]:
        """Return the sort key of a match: unknown facts come last, no TTL is the longest one."""
        value = getattr(record, self.fact.field)
        if value is None:
            return True, 0
        if self.fact is Fact.TTL and value == NO_EXPIRY:
            value = float("inf")
        if self.fact is Fact.NAME and not self.is_by_bytes:
            value = natural(value)
        if isinstance(value, bytes):
            return False, bytes(255 - byte for byte in value) + b"\xff" if self.is_descending else value
        return False, -value if self.is_descending else value


class Matches:
    """The matches so far."""

    def __init__(self, limit: int, order: MatchOrder | None = None) -> None:
        """Keep at most `limit`: the first that are found, or with `order` the first in that order."""
        self.limit = limit
        self.order = order
        self.count = 0
        self.revision = 0
        self.on_listed: Callable[[], object] | None = None
        self._kept: list[KeyRecord] = []
        self._names: set[bytes] = set()
        self._drained = 0
        self._is_sorted = True

    @property
    def is_full(self) -> bool:
        return self.order is None and self.listed >= self.limit

    @property
    def listed(self) -> int:
        """How many are kept, or were before they were taken out."""
        return self._drained + len(self._kept)

    @property
    def kept(self) -> Sequence[KeyRecord]:
        if self.order is not None and not self._is_sorted:
            self._drop_least(self.limit)
        return self._kept

    def knows(self, key: bytes) -> bool:
        return key in self._names

    def add(self, records: Sequence[KeyRecord]) -> None:
        room = len(records) if self.order is not None else max(0, self.limit - self.listed)
        self._kept += records[:room]
        self._is_sorted = False
        self._names.update(record.key for record in records[:room])
        if self.order is not None and len(self._kept) > _OVERSHOOT * self.limit:
            self._drop_least(self.limit)
        self.revision += 1
        if self.on_listed is not None:
            self.on_listed()

    def drain(self) -> list[KeyRecord]:
        """Remove and return the kept matches, for a writer that takes them as they come; more are kept afterwards."""
        drained, self._kept = list(self.kept), []
        self._drained += len(drained)
        self._names.clear()
        return drained

    def add_count(self, more: int) -> None:
        """Count matches; fewer where some turn out to be gone."""
        self.count += more
        self.revision += 1

    def clear(self) -> None:
        self.count = self._drained = 0
        self._kept = []
        self._names = set()
        self.revision += 1

    def _drop_least(self, most: int) -> None:
        assert self.order is not None  # noqa: S101 - only then some are less than others
        kept = nsmallest(most, self._kept, key=self.order.key)
        if len(kept) < len(self._kept):
            self._names = {record.key for record in kept}
        self._kept, self._is_sorted = kept, True
