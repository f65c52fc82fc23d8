"""Tells segments that are identifiers from those that are names, and finds keys whose patterns are sure to be the same.

In a pattern, every identifier of a key is replaced by a placeholder: `shop:user:42:cart` has the pattern
`shop:user:{id}:cart`. A segment is an identifier by its form alone: `42` and `R20260000000001` are ids, `user42`, `v2`
and `page_7` are names. In a segment with braces, such as a hash tag, each part between braces and separators is looked
at by itself: `{user:42}` becomes `{user:{id}}`.

Trying the forms on every segment of every key would be slow, and keys that differ only in their identifiers are
common. So the forms are tried on one key of a kind, and the others are recognised by their *shape*, which `Shapes`
computes for a whole page of keys in a few passes of C code. There are two:

* *digits*: every digit replaced by 0. `shop:user:42:cart` and `shop:user:57:cart` both become `shop:user:00:cart`.
* *marks*: every part that is a decimal number, a UUID or a hash replaced by one mark byte, so that `shop:user:7:cart`
  has the shape of `shop:user:42:cart`, too.

Equal shapes do not always mean equal patterns: `10.0.0.1` and `99.9.9.9` are both addresses, but `v2` and `v3` are two
names of one digit shape. `Form.likeness` says for a segment which replacements leave its pattern the same. Where all
segments of a key have DIGITS (or MARKS) in their likeness, every key with the same digit (or mark) shape has the same
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Final, NamedTuple

from rtui.keyspace.text.segments import DEFAULT_SEPARATORS

LONGEST: Final = 256
"""Segments longer than this, in bytes, are names: none of the known forms is that long."""

DIGITS: Final = 1
"""The pattern stays the same when any digit is replaced by another digit."""

MARKS: Final = 2
"""The pattern stays the same when any part that is a number, a UUID or a hash is replaced by another of its form."""


class Form(NamedTuple):
    """What a segment is taken for."""

    pattern: bytes | None
    """What replaces it in a pattern: `{id}`, `{user:{id}}`; None for a name, which stays."""
    likeness: int
    """Which shapes are sure to have the same pattern: 0, DIGITS, MARKS or both. See the top of this module."""


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

_FORM_OF: Final = {
    "id": Form(b"{id}", DIGITS | MARKS),
    "date": Form(b"{date}", DIGITS),
    "ip": Form(b"{ip}", DIGITS),
    "serial": Form(b"{id}", DIGITS),
    "uuid": Form(b"{uuid}", MARKS),
    "hash": Form(b"{hash}", MARKS),
    "coded": Form(b"{id}", 0),
    "ulid": Form(b"{id}", 0),
    "token": Form(b"{id}", 0),
    "email": Form(b"{email}", 0),
}

PLACEHOLDERS: Final = frozenset(form.pattern for form in _FORM_OF.values())
"""All patterns of whole segments that are identifiers."""

_NAME: Final = Form(None, DIGITS | MARKS)
_NAME_WITH_DIGIT: Final = Form(None, MARKS)
_HAS_DIGIT: Final = re.compile(rb"[0-9]").search


class Identifiers:
    """Recognises identifiers in a keyspace with these separators."""

    def __init__(self, separators: Sequence[bytes] = DEFAULT_SEPARATORS) -> None:
        borders = b"|".join(map(re.escape, sorted(separators, key=len, reverse=True)))
        self._borders = re.compile(b"([{}]" + (b"|" + borders if borders else b"") + b")")

    def form(self, segment: bytes) -> Form:
        """Return what a segment is; it may contain a hash tag with separators inside."""
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


def _form(part: bytes) -> Form:
    if part.isdigit():
        return _FORM_OF["id"]
    if part.isalpha():
        return _NAME
    match = _FORMS(part)
    if match is None or match.lastgroup is None:
        return _NAME_WITH_DIGIT if _HAS_DIGIT(part) else _NAME
    return _FORM_OF[match.lastgroup]


_END: Final = b"\0"
_UUID_MARK, _HASH_MARK, _ID_MARK = b"\1", b"\2", b"\3"
_SPECIAL: Final = re.compile(b"[\1\2\3]").search
_NO_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_HEX: Final = b"[0-9a-fA-F]"
_NOT_OF_IDENTIFIERS: Final = re.sub(b"[0-9a-fA-F-]", b"", bytes(range(256)))
"""All bytes but those that numbers, hashes and UUIDs are made of: a separator among those cuts them."""


class Shapes:
    """Computes the shapes of keys in a keyspace with these separators, all keys of a page joined into one string.

    A separator that may be a part of an identifier cuts it: where `-` separates, nothing is a UUID.
    """

    def __init__(self, separators: Sequence[bytes]) -> None:
        of_identifiers = b"".join(separators).translate(None, _NOT_OF_IDENTIFIERS)
        self._may_translate = not _HAS_DIGIT(of_identifiers)
        self._can_mark = all(len(separator) == 1 for separator in separators) and of_identifiers in (b"", b"-")
        self._has_uuids = b"-" not in of_identifiers
        border = b"[\\0{}" + b"".join(map(re.escape, separators)) + b"]"

        def part(first: bytes, form: bytes) -> re.Pattern[bytes]:
            """Return the expression for a whole part between borders that begins with one of `first`."""
            return re.compile(first + b"(?<=" + border + first + b")" + form + b"(?=" + border + b")")

        self._uuid = part(_HEX, _HEX + b"{7}-" + (_HEX + b"{4}-") * 3 + _HEX + b"{12}")
        self._hash = part(
            _HEX,
            rb"(?:(?<=[0-9])(?=[0-9]*[a-fA-F])|(?<=[a-fA-F])(?=[a-fA-F]*[0-9]))"
            rb"(?:(?<=[0-9a-f])[0-9a-f]{7,}|(?<=[0-9A-F])[0-9A-F]{7,})",
        )
        self._id = part(b"[0-9]", b"[0-9]*")

    def of_digits(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the digit shape of each key: cheap, and enough where ids are digits of one length."""
        if not self._may_translate:
            return list(keys)
        shapes = _END.join(keys).translate(_NO_DIGITS).split(_END)
        return shapes if len(shapes) == len(keys) else [key.translate(_NO_DIGITS) for key in keys]

    def of_marks(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the mark shape of each key; None for all where one is too long or contains a byte used as a mark."""
        joined = b"\0%s\0" % _END.join(keys)
        if not self._can_mark or _SPECIAL(joined) or max(map(len, keys)) > LONGEST:
            return [None] * len(keys)
        if self._has_uuids and b"-" in joined:
            joined = self._uuid.sub(_UUID_MARK, joined)
        marked = self._id.sub(_ID_MARK, self._hash.sub(_HASH_MARK, joined))
        shapes = marked[1:-1].split(_END)
        return shapes if len(shapes) == len(keys) else [None] * len(keys)
