r"""Regular expressions over names, in time that is linear in their length.

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
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from rtui.keyspace.text.display import display_text

MAX_EXPRESSION_BYTES: Final = 1_024
"""No longer expression is compiled."""

MAX_PROGRAM_BYTES: Final = 8 << 20
"""RE2 takes no more memory for one."""

NO_CHARACTER: Final = r"\x{10FFFF}"
"""Matches nothing in a name that is ASCII."""

ANY_CHARACTER: Final = "(?s:.)"

_WORD: Final = frozenset((string.ascii_letters + string.digits + "_").encode())
_DIGITS: Final = string.digits.encode()
_CLASSES: Final = {b"d": frozenset(_DIGITS), b"w": _WORD, b"s": frozenset(b"\t\n\f\r ")}
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
    """Return the class of the ASCII characters among some bytes."""
    ascii_members = sorted(member for member in members if member < 0x80)
    if bytes(ascii_members) == _DIGITS:  # half the time that a class of ten takes
        return r"\D" if is_negated else r"\d"
    written = "".join(escaped(chr(member)) for member in ascii_members)
    if not written:
        return ANY_CHARACTER if is_negated else NO_CHARACTER
    return f"[{'^' if is_negated else ''}{written}]"


def escaped(text: str) -> str:
    """Return the expression for exactly this text, in brackets and out of them."""
    return "".join(one if one.isalnum() or ord(one) >= 0x80 else f"\\x{{{ord(one):x}}}" for one in text)


def _part(expression: bytes, at: int) -> _Part:
    byte = expression[at : at + 1]
    if byte in _READERS:
        return _READERS[byte](expression, at)
    if byte == b"{" and (count := _COUNT.match(expression, at)) is not None:
        return _Part(count[0].decode(), count.end())
    return _Part(byte.decode() if byte in b".^$*+?|)" else one_of_bytes(byte), at + 1)


def _group(expression: bytes, at: int) -> _Part:
    """Read the beginning of a group, and the flags that are set there."""
    if expression[at + 1 : at + 2] != b"?":
        return _Part("(?:", at + 1)
    group = _GROUP.match(expression, at)
    if group is None:
        raise NoCounterpartError
    return _Part("(?:" if group["flags"] is None else group[0].decode(), group.end())


def _escape(expression: bytes, at: int) -> _Part:
    """Read a backslash escape outside of brackets."""
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
    if not letter or letter[0] in _WORD or letter[0] >= 0x80:
        raise NoCounterpartError
    return letter[0], at + 2


def _brackets(expression: bytes, at: int) -> _Part:
    """Read a class in brackets."""
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
