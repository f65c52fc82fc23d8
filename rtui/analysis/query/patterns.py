r"""Patterns of names as they are typed and shown: `shop:user:<id>:orders`.

A pattern is a path of steps, each a segment and the separator behind it, as in the tree of patterns of an analysis
(`rtui.table.patterns`): a key has the pattern `shop:user:<id>:orders` if its segments fold to these.

* `<id>`, `<uuid>`, `<hash>`, `<date>`, `<ip>`, `<email>` stand for an identifier of that form, also within a hash tag:
  `{user:<id>}:cart`.
* `<n>` stands for a number that is a part of a segment: `page_<n>`, `v1.user.<n>`. The other forms may be parts, too:
  `task-meta-<uuid>`.
* `<*>` stands for any other segment, one that is a name; `{<**>}` for one that is a hash tag with a separator in it, as
  `{user:ann}`, and `<**>` for one that has such a tag and text beside it.
* Any other `<` is itself. A backslash takes the meaning from what follows it: `\<id>` are four characters.
* With a separator at the end it is a namespace: the pattern of all keys below. `<>` there is the empty segment of keys
  that really end in a separator.
* `{id}` in braces is read as `<id>`, `{n}` as `<n>` and so on: earlier versions wrote them so. A hash tag of these
  letters is `\{id}`.

Regular expressions over names take time that is linear in their length.

The expressions of Python's `re` may take exponential time for a name of thirty bytes, and nothing can break a match
off: a word typed into the query line would hold the interface for hours. RE2 has no such expressions, so it is what
`re:` uses, from the library google-re2, an extra. Without the library, `re:` says so and every other term works.

For the names of a whole table an expression is rewritten for Polars where it means the same for names that are ASCII.
Polars has the syntax of Rust's crate `regex`, which is close to RE2's and not the same: `\s` there takes a
vertical tab, a brace that counts nothing is an error, `&&` in brackets is an intersection. So an expression is read by
RE2's rules, every class is written out as its ASCII characters, and what has no certain counterpart is left to RE2.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Final, NamedTuple

from rtui.keyspace.text.display import display_text
from rtui.keyspace.text.glob import PatternError, check_pattern, escape_glob
from rtui.keyspace.text.identifiers import (
    ANY,
    ANY_NAMES,
    ANY_WITH_TAG,
    DIGITS,
    MARKS,
    NUMBER,
    PLACEHOLDERS,
    Identifiers,
    KeySegments,
    in_pattern,
)
from rtui.keyspace.text.segments import Separators

EMPTY: Final = b"<>"
"""Stands for the empty segment at the end of a key."""

FORMS: Final = tuple(sorted(one for one in PLACEHOLDERS if one is not None))
_NAMED: Final = b"(?:" + b"|".join(re.escape(one[1:-1]) for one in (*FORMS, NUMBER, ANY_WITH_TAG, ANY, EMPTY)) + b")"
_SPECIAL: Final = b"<" + _NAMED + rb">|\{" + _NAMED + rb"\}"
_TOKEN: Final = re.compile(rb"\\(?P<escaped>.)|(?P<special>" + _SPECIAL + rb")", re.DOTALL)
_DIGIT: Final = re.compile(rb"[0-9]")
_UUID_LETTERS: Final = re.compile(rb"[a-fA-F]{8}-")
_WORD: Final = re.compile(rb"[0-9A-Za-z-]")
_MISREAD: Final = re.compile(rb"\\|(?=" + _SPECIAL + rb")")
_MISREAD_IN_PATTERN: Final = re.compile(rb"(?=\{" + _NAMED + rb"\})")
_OPENING: Final = re.compile(rb"[\\<{]")


HEX_PARTS: Final = (
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    r"\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{6,}\b",
)
"""Expressions for UUIDs and for hexadecimal numbers, which have letters and digits, in the syntax of Rust, too."""

_HEX_PART: Final = re.compile("|".join(HEX_PARTS).encode())


class PatternSyntaxError(ValueError):
    """A text that is no pattern; the message says why, in safe text without a full stop."""


class PatternStep(NamedTuple):
    """One level of a pattern."""

    name: bytes
    """The segment, or the placeholder pattern of its identifiers."""
    separator: bytes
    is_folded: bool


def pattern_text(steps: Sequence[PatternStep]) -> bytes:
    parts = []
    for name, separator, is_folded in steps:
        misread = _MISREAD_IN_PATTERN if is_folded else _MISREAD
        parts += [misread.sub(rb"\\\g<0>", name), _OPENING.sub(rb"\\\g<0>", separator)]
    is_empty = bool(steps) and not steps[-1].name and not steps[-1].separator
    return b"".join(parts) + (EMPTY if is_empty else b"")


def check_pattern_text(text: bytes) -> bytes:
    pieces = _TOKEN.split(text)
    if any(b"\\" in piece for piece in pieces[::3]):
        raise PatternSyntaxError("a pattern ends with a backslash: write a literal backslash twice")
    return text


@dataclass(frozen=True, slots=True)
class QueryPattern:
    """A pattern in a keyspace with certain separators."""

    steps: tuple[PatternStep, ...]
    glob: bytes | None
    """A glob that matches all its names, and others; None if there is none within the bounds."""


def read_pattern(text: bytes, separators: Separators) -> QueryPattern:
    check_pattern_text(text)
    known = b"".join((text, *separators.values))
    mark = next(one for one in (b"\0%d\0" % number for number in count()) if one not in known)
    skeleton, globbed, stands = b"", b"", []
    pieces = _TOKEN.split(text)
    for plain, escaped, special in zip(pieces[::3], [*pieces[1::3], None], [*pieces[2::3], None], strict=True):
        literal = plain + (escaped or b"")
        skeleton += literal
        globbed += escape_glob(literal)
        if special is not None and special[1:-1]:
            stands.append(b"<%b>" % special[1:-1])
            skeleton += mark
            globbed += b"*"
    steps = []
    for segment, separator in separators.segments(skeleton):
        first, *rest = segment.split(mark)
        name = in_pattern(first) + b"".join(stands.pop(0) + in_pattern(one) for one in rest) if rest else segment
        steps.append(PatternStep(name, separator, is_folded=bool(rest)))
    if len(steps) > 1 and not steps[-1].name and not text.endswith((EMPTY, b"{}")):
        steps.pop()
        globbed += b"*"
    try:
        glob = check_pattern(re.sub(rb"\*+", b"*", globbed) if b"\\*" not in globbed else globbed)
    except PatternError:
        glob = None
    return QueryPattern(tuple(steps), glob)


class PatternMatcher:
    """Tells whether a key has one of some patterns."""

    def __init__(self, patterns: Sequence[QueryPattern], separators: Separators) -> None:
        self._patterns = [pattern.steps for pattern in patterns]
        fixed = [step.name for steps in self._patterns for step in steps if not step.is_folded]
        self._names_digits = any(_DIGIT.search(one) for one in (*fixed, *separators.values))
        self._names_hex = any(_UUID_LETTERS.search(one) for one in fixed) or any(map(_WORD.search, separators.values))
        self._most = max((len(steps) for steps in self._patterns), default=0)
        self._segments = KeySegments(separators)
        self._identifiers = Identifiers(separators.values)
        self._form = lru_cache(maxsize=4096)(self._identifiers.form)

    def __call__(self, key: bytes) -> bool:
        segments = self._segments.of(key, self._most)
        return any(self._fits(steps, segments) for steps in self._patterns)

    def is_alike(self, key: bytes, *, has_hex: bool = False) -> bool:
        """Whether all keys that differ from this one in their digits only are sure to have the same answer.

        With `has_hex` they may also differ in whole UUIDs and in lower-case hexadecimal numbers (`HEX_PARTS`).
        """
        if self._names_digits or (has_hex and self._names_hex) or self._segments.may_have_whole(key):
            return False
        return all(self._is_alike(name, has_hex=has_hex) for name, _ in self._segments.of(key, self._most))

    def _is_alike(self, segment: bytes, *, has_hex: bool) -> bool:
        rest = _HEX_PART.sub(b"", segment) if has_hex else segment
        likeness = (MARKS if rest != segment else 0) | (DIGITS if _DIGIT.search(rest) else 0)
        if not likeness:
            return True
        form = self._form(segment)
        is_numbered = form.pattern is None and form.numbered is not None
        return (form.numbered_likeness if is_numbered else form.likeness) & likeness == likeness

    def _fits(self, steps: Sequence[PatternStep], segments: Sequence[tuple[bytes, bytes]]) -> bool:
        if len(segments) < len(steps):
            return False
        for (wanted, wanted_separator, is_folded), (name, separator) in zip(steps, segments, strict=False):
            if separator != wanted_separator:
                return False
            if not is_folded:
                if name != wanted:
                    return False
                continue
            form = self._form(name)
            folded = form.pattern or form.numbered
            if folded == wanted:
                continue
            is_any = wanted in ANY_NAMES and bool(name) and folded not in PLACEHOLDERS
            if not is_any or wanted != self._identifiers.any_name(name):
                return False
        return True


MAX_EXPRESSION_BYTES: Final = 1_024

MAX_PROGRAM_BYTES: Final = 8 << 20
"""RE2 takes no more memory for one."""

NO_CHARACTER: Final = r"\x{10FFFF}"
"""Matches nothing in a name that is ASCII."""

ANY_CHARACTER: Final = "(?s:.)"
_WORD_BYTES: Final = frozenset((string.ascii_letters + string.digits + "_").encode())
_DIGITS: Final = string.digits.encode()
_CLASSES: Final = {b"d": frozenset(_DIGITS), b"w": _WORD_BYTES, b"s": frozenset(b"\t\n\f\r ")}
_ALL: Final = frozenset(range(256))
_CONTROLS: Final = {b"n": 0x0A, b"t": 0x09, b"r": 0x0D, b"f": 0x0C, b"v": 0x0B, b"a": 0x07}
_GROUP: Final = re.compile(rb"\(\?(?:P?<\w+>|(?P<flags>[ims]*(?:-[ims]+)?:|[ims]+\)))")
_COUNT: Final = re.compile(rb"\{[0-9]+(?:,[0-9]*)?\}")
_HEX: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


class RegexError(ValueError):
    """An expression that can't be used; the message says why, in safe text without a full stop."""


@lru_cache(maxsize=32)
def compiled(expression: bytes) -> Callable[[bytes], object | None]:
    """Return the search of a name for an expression, byte by byte; it returns None if not found. Raises RegexError."""
    if len(expression) > MAX_EXPRESSION_BYTES:
        raise RegexError(f"an expression has at most {MAX_EXPRESSION_BYTES:,} bytes")
    try:
        import re2  # noqa: PLC0415 - optional
    except ImportError:
        raise RegexError("re: needs the library google-re2, which comes with rtui's extra regex") from None
    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    try:
        found: Callable[[bytes], object | None] = re2.compile(expression, options).search
    except re2.error as error:
        why = error.args[0] if error.args else ""
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise RegexError(f"the expression can't be read: {display_text(why, limit=120)}") from None
    return found


class NoCounterpartError(Exception):
    """A part of an expression that is not known to mean the same."""


class _Part(NamedTuple):
    """A part of an expression as it is written for Polars, and the offset after it."""

    text: str
    end: int


def ascii_regex(expression: bytes) -> str | None:
    """Return the expression for `str.contains` that finds the same names that are ASCII; None without a certain one.

    The expression is one that RE2 takes.
    """
    import polars as pl  # noqa: PLC0415 - only where there is a table

    parts, at = [], 0
    try:
        while at < len(expression):
            text, at = _part(expression, at)
            parts.append(text)
        found = "".join(parts)
        pl.Series([""]).str.contains(found)
    except (NoCounterpartError, pl.exceptions.ComputeError):
        return None
    return found


def one_of_bytes(members: Iterable[int], *, is_negated: bool = False) -> str:
    ascii_members = sorted(member for member in members if member < 0x80)
    if bytes(ascii_members) == _DIGITS:  # half the time that a class of ten takes
        return r"\D" if is_negated else r"\d"
    written = "".join(escaped(chr(member)) for member in ascii_members)
    if not written:
        return ANY_CHARACTER if is_negated else NO_CHARACTER
    return f"[{'^' if is_negated else ''}{written}]"


def escaped(text: str) -> str:
    return "".join(one if one.isalnum() or ord(one) >= 0x80 else f"\\x{{{ord(one):x}}}" for one in text)


def _part(expression: bytes, at: int) -> _Part:
    byte = expression[at : at + 1]
    if byte in _READERS:
        return _READERS[byte](expression, at)
    if byte == b"{" and (count := _COUNT.match(expression, at)) is not None:
        return _Part(count[0].decode(), count.end())
    return _Part(byte.decode() if byte in b".^$*+?|)" else one_of_bytes(byte), at + 1)


def _group(expression: bytes, at: int) -> _Part:
    if expression[at + 1 : at + 2] != b"?":
        return _Part("(?:", at + 1)
    group = _GROUP.match(expression, at)
    if group is None:
        raise NoCounterpartError
    return _Part("(?:" if group["flags"] is None else group[0].decode(), group.end())


def _escape(expression: bytes, at: int) -> _Part:
    letter = expression[at + 1 : at + 2]
    if letter in _CLASSES or letter.lower() in _CLASSES:
        return _Part(one_of_bytes(_CLASSES[letter.lower()], is_negated=letter.isupper()), at + 2)
    if letter in (b"b", b"B", b"A", b"z"):
        return _Part(f"\\{letter.decode()}", at + 2)
    member, end = _character(expression, at)
    return _Part(one_of_bytes((member,)), end)


def _character(expression: bytes, at: int) -> tuple[int, int]:
    """Read one byte that stands for itself or is escaped; return it and the offset after it."""
    if expression[at : at + 1] != b"\\":
        return expression[at], at + 1
    letter = expression[at + 1 : at + 2]
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2
    if (code := _HEX.match(expression, at)) is not None:
        return int(code[1], 16), code.end()
    if not letter or letter[0] in _WORD_BYTES or letter[0] >= 0x80:
        raise NoCounterpartError
    return letter[0], at + 2


def _brackets(expression: bytes, at: int) -> _Part:
    is_negated = expression[at + 1 : at + 2] == b"^"
    at += 1 + is_negated
    start, members = at, set[int]()
    while at == start or expression[at : at + 1] != b"]":
        letter = expression[at + 1 : at + 2]
        if expression[at : at + 1] == b"\\" and letter.lower() in _CLASSES:
            of_class = _CLASSES[letter.lower()]
            members |= _ALL - of_class if letter.isupper() else of_class
            at += 2
            continue
        if expression.startswith(b"[:", at) or (expression[at : at + 1] == b"-" and at != start and letter != b"]"):
            raise NoCounterpartError
        low, at = _character(expression, at)
        if expression[at : at + 1] == b"-" and expression[at + 1 : at + 2] != b"]":
            high, at = _character(expression, at + 1)
            members.update(range(low, high + 1))
        else:
            members.add(low)
    return _Part(one_of_bytes(members, is_negated=is_negated), at + 1)


_READERS: Final = {b"\\": _escape, b"[": _brackets, b"(": _group}
