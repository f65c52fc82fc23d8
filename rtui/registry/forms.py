r"""The forms of placeholder values: anything, or identifiers of one kind.

Every form is an expression over bytes that a matcher can embed in a larger one. `Values.expression` inserts the
registry's separators for "anything within a segment". A form whose values may contain a separator, such as an IPv6
address with the separator `:`, *spans*: one value of it may take several segments of a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_HEX: Final = b"[0-9A-Fa-f]"
_OCTET: Final = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IP_V4: Final = _OCTET + rb"(?:\." + _OCTET + rb"){3}"
_GROUP: Final = _HEX + b"{1,4}"


def _ip_v6() -> bytes:
    """Return the expression for an IPv6 address: RFC 4291, with an IPv4 address for the last two groups as well."""
    last = b"(?:" + _GROUP + b":" + _GROUP + b"|" + _IP_V4 + b")"
    ways = [b"(?:" + _GROUP + b":){6}" + last]
    for before in range(7):
        head = b"(?:" + _GROUP + (b"(?::" + _GROUP + b"){0,%d}" % (before - 1) if before > 1 else b"") + b")?"
        head = head if before else b""
        groups = 7 - before
        tails = [b"(?:" + _GROUP + b":){0,%d}" % (groups - 2) + last] if groups >= 2 else []
        ways += [head + b"::" + tail for tail in (*tails, _GROUP)]
    ways.append(b"(?:" + _GROUP + b":){1,7}:")
    ways.append(b"::")
    return b"(?:" + b"|".join(ways) + b")"


_DATE: Final = (
    rb"(?:[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}(?:[T_ -][0-9]{2}(?:[-.:]?[0-9]{2}){0,2}(?:\.[0-9]+)?Z?)?"
    rb"|[0-9]{4}-(?:[0-9]{2}|W[0-9]{2})|[0-9]{8}(?:[T_-]?[0-9]{4}(?:[0-9]{2})?Z?)?|[0-9]{6})"
)


@dataclass(frozen=True, slots=True)
class PlaceholderForm:
    """The form of the values of a placeholder."""

    name: str
    code: int
    """A number for tables, which never changes."""
    what: str
    """A phrase with its article."""
    unit: bytes | None
    """The expression of one byte of a form that repeats it; None for a form with a shape of its own."""
    expression: bytes
    """The expression of a whole value; for a form with a unit, one or more of them."""
    alphabet: bytes
    """The bytes that occur in values; empty if only separators don't."""
    samples: tuple[bytes, ...]

    def __reduce__(self) -> str:
        """Pickle the name of its constant: forms are compared by identity."""
        return self.name.upper().replace("-", "_")

    @property
    def is_typed(self) -> bool:
        return self.code not in (ANY.code, ANY_DEPTH.code)

    def spans(self, separators: Sequence[bytes]) -> bool:
        return self.code == ANY_DEPTH.code or any(not one.translate(None, self.alphabet) for one in separators)


_DIGITS: Final = b"0123456789"
_HEX_DIGITS: Final = _DIGITS + b"abcdefABCDEF"
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _counted(name: str, code: int, what: str, unit: bytes, alphabet: bytes, *samples: bytes) -> PlaceholderForm:
    return PlaceholderForm(name, code, what, unit, unit + b"+", alphabet, samples)


def _shaped(name: str, code: int, what: str, expression: bytes, alphabet: bytes, *samples: bytes) -> PlaceholderForm:
    return PlaceholderForm(name, code, what, None, expression, alphabet, samples)


ANY: Final = PlaceholderForm("any", 1, "anything within a segment", None, b"", b"", (b"x7", b"some-name", b"7"))
INT: Final = _counted("int", 2, "a decimal number", b"[0-9]", _DIGITS, b"42", b"7", b"20261122", b"202611")
HEX: Final = _counted("hex", 3, "hexadecimal digits", _HEX, _HEX_DIGITS, b"9f2c41ab", b"7", b"42", b"ab")
HASH: Final = _shaped(
    "hash",
    4,
    "a hash in hexadecimal digits: MD5, SHA-1, SHA-2",
    b"(?:" + b"|".join(_HEX + b"{%d}" % length for length in (128, 96, 64, 56, 40, 32)) + b")",
    _HEX_DIGITS,
    b"d41d8cd98f00b204e9800998ecf8427e",
    b"12345678901234567890123456789012",
)
UUID: Final = _shaped(
    "uuid",
    5,
    "a UUID",
    _HEX + b"{8}-" + (_HEX + b"{4}-") * 3 + _HEX + b"{12}",
    _HEX_DIGITS + b"-",
    b"7c9e6679-7425-40de-944b-e07fc1f90ae7",
)
ULID: Final = _shaped(
    "ulid",
    6,
    "a ULID",
    rb"[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}",
    _DIGITS + _LETTERS,
    b"01ARZ3NDEKTSV4RRFFQ69G5FAV",
    b"01234567890123456789012345",
)
DATE: Final = _shaped(
    "date",
    7,
    "a day, month or moment, such as 2026-11-22, 20261122 or 2026-11",
    _DATE,
    _DIGITS + b"-/.T_ :ZW",
    b"2026-11-22",
    b"20261122",
    b"202611",
    b"2026-11",
)
IP: Final = _shaped(
    "ip",
    8,
    "an IPv4 or IPv6 address",
    b"(?:" + _IP_V4 + b"|" + _ip_v6() + b")",
    _HEX_DIGITS + b".:",
    b"10.0.0.5",
    b"2001:db8::7",
    b"::1",
)
EMAIL: Final = _shaped(
    "email",
    9,
    "an e-mail address",
    rb"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~\x80-\xff-]+@[A-Za-z0-9.\x80-\xff-]+\.[A-Za-z\x80-\xff]{2,}",
    _DIGITS + _LETTERS + b".!#$%&'*+/=?^_`{|}~-@" + bytes(range(0x80, 0x100)),
    b"ann@example.com",
)
WORD: Final = _shaped(
    "word",
    10,
    "a name: letters, digits, - and _, a letter first",
    rb"[A-Za-z][A-Za-z0-9_-]*",
    _DIGITS + _LETTERS + b"_-",
    b"name",
    b"some-name",
    b"ab",
)
ENUM: Final = PlaceholderForm("enum", 11, "one of a list", None, b"", b"", ())
ANY_DEPTH: Final = PlaceholderForm(
    "any-depth", 12, "anything, of one or more segments", None, b"(?s:.+)", b"", (b"x7", b"a")
)

FORMS: Final[dict[str, PlaceholderForm]] = {
    form.name: form for form in (ANY, INT, HEX, HASH, UUID, ULID, DATE, IP, EMAIL, WORD, ANY_DEPTH)
}

Lengths = tuple[tuple[int, int | None], ...]
"""Inclusive ranges of lengths in bytes; None is no upper bound. Empty: any length."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one placeholder."""

    form: PlaceholderForm = ANY
    options: tuple[bytes, ...] = ()
    """For an enum, all values."""
    lengths: Lengths = ()

    def expression(self, separators: Sequence[bytes]) -> bytes:
        """Return the expression of a value, without capturing groups."""
        form = self.form
        if form is ENUM:
            return b"(?:" + b"|".join(map(re.escape, sorted(self.options, key=len, reverse=True))) + b")"
        unit = other_than(separators) if form is ANY else form.unit
        if unit is None:
            return form.expression
        if not self.lengths:
            return unit + b"+"
        counts = [b"{%d,%s}" % (low, b"" if high is None else b"%d" % high) for low, high in self.lengths[::-1]]
        return b"(?:" + b"|".join(unit + count for count in counts) + b")"

    def spans(self, separators: Sequence[bytes]) -> bool:
        if self.form is ENUM:
            return any(separator in option for option in self.options for separator in separators)
        return self.form is not ANY and self.form.spans(separators)

    def samples(self) -> tuple[bytes, ...]:
        """Return a few values."""
        if self.form is ENUM:
            return self.options
        if not self.lengths or (self.form.unit is None and self.form is not ANY):
            return self.form.samples
        found = (bytes((sample * low)[:low]) for low, _ in self.lengths for sample in self.form.samples if low)
        return (*found, *self.form.samples)


@lru_cache(maxsize=64)
def _other_than(separators: tuple[bytes, ...]) -> bytes:
    if not separators:
        return b"(?s:.)"
    if all(len(separator) == 1 for separator in separators):
        return b"[^" + b"".join(map(re.escape, separators)) + b"]"
    return b"(?s:(?!" + b"|".join(map(re.escape, separators)) + b").)"


def other_than(separators: Sequence[bytes]) -> bytes:
    """Return the expression of one byte at which no separator begins."""
    return _other_than(tuple(separators))
