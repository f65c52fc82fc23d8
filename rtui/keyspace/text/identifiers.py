"""Tells segments that are identifiers from those that are names, and which placeholder stands for them.

An identifier is told by its form alone: `42` and `R20260000000001` are ids, `user42`, `v2` and `page_7` are names. In a
segment with braces, such as a hash tag, each part between braces and separators is looked at by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Final, NamedTuple

from rtui.keyspace.text.segments import DEFAULT_SEPARATORS

LONGEST: Final = 256
"""No segment longer than this is looked at, in bytes: such a name is not one of the known forms."""

_FORMS: Final = re.compile(
    rb"""
    (?P<id>       [0-9]+ )
  | (?P<date>     [0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2} (?: [T_ -][0-9]{2}(?:[-.]?[0-9]{2}){0,2}(?:\.[0-9]+)?Z? )?
                | [0-9]{4}-[0-9]{2} | [0-9]{8}[T_-][0-9]{4}(?:[0-9]{2})?Z? )
  | (?P<ip>       [0-9]{1,3}(?:\.[0-9]{1,3}){3} )
  | (?P<uuid>     [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12} )
  | (?P<hash>     (?=[a-fA-F]*[0-9]) (?: [0-9a-f]{8,} | [0-9A-F]{8,} ) )
  | (?P<serial>   [A-Za-z]{1,4}[-_]?[0-9]{6,} )
  | (?P<coded>    [A-Za-z]{1,4}[-_] (?=[a-fA-F]*[0-9]) (?: [0-9a-f]{8,} | [0-9A-F]{8,} ) )
  | (?P<ulid>     [0-7][0-9A-HJKMNP-TV-Z]{25} | [0-7][0-9a-hjkmnp-tv-z]{25} )
  | (?P<token>    (?=[^0-9]*[0-9]) (?=[^A-Z]*[A-Z]) (?=[^a-z]*[a-z]) (?: [A-Za-z0-9_-]{21,22} | [A-Za-z0-9]{27,64} ) )
  | (?P<email>    [^@\s]+@[^@\s]+\.[A-Za-z]{2,} )
    """,
    re.VERBOSE,
).fullmatch

_PLACEHOLDER_OF: Final = {
    "id": b"{id}",
    "date": b"{date}",
    "ip": b"{ip}",
    "serial": b"{id}",
    "uuid": b"{uuid}",
    "hash": b"{hash}",
    "coded": b"{id}",
    "ulid": b"{id}",
    "token": b"{id}",
    "email": b"{email}",
}

PLACEHOLDERS: Final = frozenset(_PLACEHOLDER_OF.values())
"""All that stand for whole segments."""

_HAS_DIGIT: Final = re.compile(rb"[0-9]").search


DIGITS: Final = 1
"""Another segment has the same form for sure where any digit is another one."""

MARKS: Final = 2
"""Another segment has the same form for sure where any part that is a number, a UUID or a hash is another such part."""

_LIKENESS: Final = {
    "id": DIGITS | MARKS,
    "date": DIGITS,
    "ip": DIGITS,
    "serial": DIGITS,
    "uuid": MARKS,
    "hash": MARKS,
}


class Form(NamedTuple):
    """What a segment is taken for."""

    pattern: bytes | None
    """What stands for it and all its like: `{id}`, `{user:{id}}`; None for a name that stands for itself."""

    likeness: int
    """Which others have this form too: 0, DIGITS, MARKS or both. See `rtui.keyspace.text.identifiers`."""


class Identifiers:
    """Knows identifiers in a keyspace with these separators."""

    def __init__(self, separators: Sequence[bytes] = DEFAULT_SEPARATORS) -> None:
        borders = b"|".join(map(re.escape, sorted(separators, key=len, reverse=True)))
        self._borders = re.compile(b"([{}]" + (b"|" + borders if borders else b"") + b")")

    def form(self, segment: bytes) -> Form:
        """Say what a segment is; it may hold a hash tag with separators inside."""
        if len(segment) > LONGEST:
            return Form(None, 0)
        if b"{" not in segment and b"}" not in segment:
            return _form(segment)
        parts = self._borders.split(segment)
        forms = [_form(part) for part in parts]
        likeness = reduce(and_, (form.likeness for form in forms))
        if all(form.pattern is None for form in forms):
            return Form(None, likeness)
        return Form(b"".join(form.pattern or part for form, part in zip(forms, parts, strict=True)), likeness)

    def placeholder(self, segment: bytes) -> bytes | None:
        """The pattern that a segment folds into, None where it is a name."""
        return self.form(segment).pattern


def _form(part: bytes) -> Form:
    match = _FORMS(part)
    kind = None if match is None else match.lastgroup
    if kind is None:
        return _WITH_DIGIT if _HAS_DIGIT(part) else _WITHOUT_DIGIT
    return _FORM_OF[kind]


_WITH_DIGIT: Final = Form(None, MARKS)
_WITHOUT_DIGIT: Final = Form(None, DIGITS | MARKS)
_FORM_OF: Final = {kind: Form(name, _LIKENESS.get(kind, 0)) for kind, name in _PLACEHOLDER_OF.items()}


_END: Final = b"\0"
_UUID_MARK, _HASH_MARK, _ID_MARK = b"\1", b"\2", b"\3"
_SPECIAL: Final = re.compile(b"[\1\2\3]").search
_NO_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")

_HEX: Final = b"[0-9a-fA-F]"


class Shapes:
    """Knows the shapes of keys in a keyspace with these separators."""

    def __init__(self, separators: Sequence[bytes]) -> None:
        self._can_mark = all(len(separator) == 1 for separator in separators)
        border = b"[\\0{}" + b"".join(map(re.escape, separators)) + b"]"

        def part(first: bytes, form: bytes) -> re.Pattern[bytes]:
            """The expression for a form that is a whole part between borders and begins with one of `first`."""
            return re.compile(first + b"(?<=" + border + first + b")" + form + b"(?=" + border + b")")

        self._uuid = part(_HEX, _HEX + b"{7}-" + (_HEX + b"{4}-") * 3 + _HEX + b"{12}")
        self._hash = part(
            _HEX,
            rb"(?:(?<=[0-9])(?=[0-9]*[a-fA-F])|(?<=[a-fA-F])(?=[a-fA-F]*[0-9]))"
            rb"(?:(?<=[0-9a-f])[0-9a-f]{7,}|(?<=[0-9A-F])[0-9A-F]{7,})",
        )
        self._id = part(b"[0-9]", b"[0-9]*")

    def of_digits(self, keys: Sequence[bytes]) -> list[bytes]:
        """The keys with every digit the same: at next to no cost, and enough where ids are digits."""
        shapes = _END.join(keys).translate(_NO_DIGITS).split(_END)
        return shapes if len(shapes) == len(keys) else [key.translate(_NO_DIGITS) for key in keys]

    def of_marks(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """The keys with decimal numbers, UUIDs and hashes each replaced by a mark; None where that is not possible."""
        joined = b"\0%s\0" % _END.join(keys)
        if not self._can_mark or _SPECIAL(joined) or max(map(len, keys)) > LONGEST:
            return [None] * len(keys)
        if b"-" in joined:
            joined = self._uuid.sub(_UUID_MARK, joined)
        marked = self._id.sub(_ID_MARK, self._hash.sub(_HASH_MARK, joined))
        shapes = marked[1:-1].split(_END)
        return shapes if len(shapes) == len(keys) else [None] * len(keys)
