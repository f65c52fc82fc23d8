r"""Tells segments that are identifiers from those that are names.

In a pattern, every identifier of a key is replaced by a placeholder: `shop:user:42:cart` has the pattern
`shop:user:<id>:cart`. A segment is an identifier by its form alone: `42` and `R20260000000001` are ids.

An identifier may also be a part of a segment, between characters that are neither letters nor digits:
`task-meta-550e8400-e29b-41d4-a716-446655440000` becomes `task-meta-<uuid>`. A digest as long as those of MD5, SHA-1 and
SHA-2 may be right behind letters: `search6b86b2…` becomes `search<hash>`. With numbers it depends on how many there
are. Those of six digits and more are identifiers, `user42`, `v2` and `page_7` are names. But where very many siblings
differ in such a number only, `page_<n>` says more than all of them; so a name has the pattern that it folds to then
(`Form.numbered`). Numbers that stand alone come before those behind letters: `v1.user.42` folds to `v1.user.<n>`.

Between slashes numbers are identifiers, however short: `view/product/7` becomes `view/product/<n>`.

Long runs of letters of both cases and digits are random, unless most of their letters are in words:
`V1StGXR8Z5jdHi6BmyTqk0c2PwL` is an identifier, `createPreLoanStageHandlerV2` a name.

A `<` or a backslash of a name itself has a backslash before it in a pattern, so that it is no placeholder:
`a-<id>-1234567` becomes `a-\<id>-<n>`.

In a segment with braces, such as a hash tag, each part between braces and separators is looked at by itself:
`{user:42}` becomes `{user:<id>}`. UUIDs and addresses are one segment, though they may hold separators (`Wholes`).

Segments that differ only in their identifiers are common, and some of them are sure to have the same pattern.
`Form.likeness` says which replacements leave the pattern of a segment the same:

* DIGITS: every digit by another one. `42` and `57` are both `<id>`; but `v2` and `v3` are two names.
* MARKS: every segment that is a decimal number, and every part that is a UUID or a hash, by another one: `7` is `<id>`,
  and so is `42`. `10.0.0.1` and `10.0.0.7` are both addresses, and `10.0.0.300` is a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache, reduce
from operator import and_
from typing import Final, NamedTuple

from rtui.keyspace.text.segments import DEFAULT_SEPARATORS, HEADER, MARK, Separators, java_text

LONGEST: Final = 256
"""The longest identifier in bytes; longer segments are names."""

DIGITS: Final = 1
"""Likeness flag: replacing any digit by another digit keeps the pattern."""

MARKS: Final = 2
"""Likeness flag: replacing a number, UUID or hash by another of its form keeps the pattern."""


class Form(NamedTuple):
    """The form of a segment: an identifier, or a name."""

    pattern: bytes | None
    """The replacement of an identifier in a pattern: `<id>`, `{user:<id>}`, `task-<uuid>`; None for a name, which
    stays."""
    likeness: int
    """The shapes that imply the same pattern: 0, DIGITS, MARKS or both. See the top of this module."""
    numbered: bytes | None = None
    """The pattern of a name if very many siblings differ in a number only: `page_<n>`; None without a number."""
    numbered_likeness: int = 0


ANY: Final = b"<*>"
"""The pattern of names if too many stand side by side."""

ANY_TAG: Final = b"{<**>}"
"""The same for hash tags that contain a separator, such as `{user:ann}`."""

ANY_WITH_TAG: Final = b"<**>"
"""The same for names with such a hash tag and text beside it."""

ANY_NAMES: Final = (ANY, ANY_TAG, ANY_WITH_TAG)
"""All patterns for names that have nothing in common."""

_WORD: Final = rb"[0-9A-Za-z]"
_UUID: Final = rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_HASH: Final = rb"(?=[a-fA-F]*[0-9]) (?: [0-9a-f]{8,} | [0-9A-F]{8,} )"
_IP: Final = rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_ULID: Final = rb"[0-7][0-9A-HJKMNP-TV-Z]{25} | [0-7][0-9a-hjkmnp-tv-z]{25}"

_FORMS: Final = re.compile(
    rb"""
    (?P<id>       [0-9]+ )
  | (?P<date>     [0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2} (?: [T_ -][0-9]{2}(?:[-.]?[0-9]{2}){0,2}(?:\.[0-9]+)?Z? )?
                | [0-9]{4}-[0-9]{2} | [0-9]{8}[T_-][0-9]{4}(?:[0-9]{2})?Z? )
  | (?P<ip>       """
    + _IP
    + rb""" )
  | (?P<uuid>     """
    + _UUID
    + rb""" )
  | (?P<hash>     """
    + _HASH
    + rb""" )
  | (?P<serial>   [A-Za-z]{1,4}[0-9]{6,} )
  | (?P<ulid>     """
    + _ULID
    + rb""" )
  | (?P<mac>      (?=[^0-9]*[0-9]) (?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2} )
  | (?P<email>    [^@\s]+@[^@\s]+\.(?: [A-Za-z]{2,} | xn--[0-9A-Za-z-]+ ) )
    """,
    re.VERBOSE,
).fullmatch

_ENDS: Final = rb"""
    (?=[0-9A-Za-z]{33}) [A-Za-z]+? (?=[0-9]*[a-f])(?=[a-f]*[0-9])
                  (?P<digest> [0-9a-f]{128} | [0-9a-f]{96} | [0-9a-f]{64} | [0-9a-f]{56} | [0-9a-f]{40} | [0-9a-f]{32} )
  | (?P<glued>    [A-Za-z]+[0-9]+ )
"""

_ANY_PART: Final = re.compile(
    rb"(?<!"
    + _WORD
    + rb""")(?:
    (?P<uuid>     """
    + _UUID
    + rb""" )
  | (?P<date>     [0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2} )
  | (?P<ip>       """
    + _IP
    + rb""" )
  | (?P<number>   [0-9]+ )
  | (?P<hash>     """
    + _HASH
    + rb""" )
  | (?P<id>       """
    + _ULID
    + rb""" )
  | (?P<token>    (?=[A-Za-z]*[0-9])(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])
                  (?: [A-Za-z0-9]{27,64} | [A-Za-z0-9]{21,22} ) )
  | """
    + _ENDS
    + rb"""
    )(?!"""
    + _WORD
    + rb")",
    re.VERBOSE,
)
"""Identifiers and numbers that are whole words in a segment, and digests and numbers at the end of a word."""

_PART: Final = _ANY_PART.fullmatch
_ANY_END_AT: Final = re.compile(_ENDS, re.VERBOSE).fullmatch


def _parts(part: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the identifiers and numbers in a segment; for a long word that is no token, the one at its end."""
    for found in _ANY_PART.finditer(part):
        if found.lastgroup != "token" or not _has_words(found["token"]):
            yield found
        elif (end := _ANY_END_AT(part, found.start(), found.end())) is not None:
            yield end


_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]{21,22} | [A-Za-z0-9_-]{32} | [A-Za-z0-9_-]{43}", re.VERBOSE).fullmatch
"""Random characters and dashes as a whole segment without another identifier in it: 16, 24 or 32 bytes of base64."""

_PADDED: Final = re.compile(
    rb"""
    (?=[^0-9A-Z]*[0-9A-Z]) (?:[A-Za-z0-9+/_-]{4}){3,} (?: [A-Za-z0-9+/_-]{3}= | [A-Za-z0-9+/_-]{2}== )
    """,
    re.VERBOSE,
).fullmatch
"""Padded Base64."""

_UNPADDED: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4}){5,}").fullmatch
"""Base64 that needs no padding, as a whole segment with `+` or `/` and without another identifier in it."""

_ALL_CLASSES: Final = re.compile(rb"(?=[^0-9]*[0-9]) (?=[^A-Z]*[A-Z]) [^a-z]*[a-z]", re.VERBOSE).match
_WORDS: Final = re.compile(rb"[A-Z][a-z]{2,}|[a-z]{3,}").findall
_VOWEL: Final = re.compile(rb"[AEIOUYaeiouy]").search
_NOT_LETTERS: Final = re.sub(rb"[A-Za-z]", b"", bytes(range(256)))


def _has_words(part: bytes) -> bool:
    """Whether three of five letters are in words: runs of three letters or more, perhaps with a capital first."""
    in_words = sum(len(word) for word in _WORDS(part) if _VOWEL(word))
    return 5 * in_words >= 3 * len(part.translate(None, _NOT_LETTERS))


def _is_random(part: bytes) -> bool:
    return _ALL_CLASSES(part) is not None and not _has_words(part)


_FORM_OF: Final = {
    "id": Form(b"<id>", DIGITS | MARKS),
    "date": Form(b"<date>", DIGITS),
    "ip": Form(b"<ip>", DIGITS),
    "serial": Form(b"<id>", DIGITS),
    "uuid": Form(b"<uuid>", MARKS),
    "hash": Form(b"<hash>", MARKS),
    "ulid": Form(b"<id>", 0),
    "mac": Form(b"<id>", 0),
    "email": Form(b"<email>", 0),
}
_ANY_IP: Final = Form(b"<ip>", 0)
_ANY_TOKEN: Final = Form(b"<id>", 0)

PLACEHOLDERS: Final = frozenset(form.pattern for form in _FORM_OF.values())

NUMBER: Final = b"<n>"

LONG_NUMBER: Final = 6
"""The fewest digits of a number that is an identifier wherever it stands."""

_PART_NAMES: Final = {
    "uuid": b"<uuid>",
    "date": b"<date>",
    "ip": b"<ip>",
    "number": NUMBER,
    "hash": b"<hash>",
    "id": b"<id>",
    "token": b"<id>",
    "digest": b"<hash>",
}

MOST_FORMS: Final = 1_024

_NAME: Final = Form(None, DIGITS | MARKS)
_NAME_WITH_DIGIT: Final = Form(None, MARKS)
_HAS_DIGIT: Final = re.compile(rb"[0-9]").search
_PLACEHOLDER: Final = re.compile(rb"<[a-z]+>")
_IN_PATTERNS: Final = re.compile(rb"\\(.)|<[a-z*]+>", re.DOTALL)
_MISREAD: Final = re.compile(rb"[\\<]")
_LIKE_PLACEHOLDER: Final = re.compile(rb"<(?:id|uuid|hash|date|ip|email|n|\*{1,2})>")
_OF_BRACES: Final = re.compile(rb"[\\<]|\{(id|uuid|hash|date|ip|email|n|\*{1,2})\}")


def as_name(text: bytes) -> bytes:
    r"""Return a name that has no placeholder as it is shown beside patterns: with `\<id>` where it contains `<id>`."""
    return _LIKE_PLACEHOLDER.sub(rb"\\\g<0>", text)


def in_pattern(text: bytes) -> bytes:
    """Return literal text as it stands beside placeholders in a pattern."""
    return _MISREAD.sub(rb"\\\g<0>", text)


def literals(pattern: bytes) -> list[bytes]:
    """Return the literal texts before, between and behind the placeholders of a pattern."""
    found = [b""]
    for piece in _IN_PATTERNS.split(pattern):
        if piece is None:
            found.append(b"")
        else:
            found[-1] += piece
    return found


def placeholders(pattern: bytes) -> list[bytes]:
    return [found[0] for found in _IN_PATTERNS.finditer(pattern) if found[1] is None]


def from_braces(pattern: bytes) -> bytes:
    """Return the pattern of a segment from one with placeholders in braces, as in reports of earlier versions."""
    return _OF_BRACES.sub(lambda found: b"<%b>" % found[1] if found[1] else b"\\" + found[0], pattern)


class Identifiers:
    """Recognises identifiers in a keyspace with these separators."""

    def __init__(self, separators: Sequence[bytes] = DEFAULT_SEPARATORS) -> None:
        self._separators = tuple(separators)
        self._wholes = Wholes((*separators, b"{", b"}"))
        borders = b"|".join(map(re.escape, sorted(separators, key=len, reverse=True)))
        self._borders = re.compile(b"([{}]" + (b"|" + borders if borders else b"") + b")")

    def form(self, segment: bytes) -> Form:
        """Return the form of a segment, which may contain a hash tag with separators."""
        if len(segment) > LONGEST:
            return Form(None, 0)
        if b"{" not in segment and b"}" not in segment:
            return _form(segment)
        parts = self._wholes.split(segment, self._borders)
        forms = [_form(part) for part in parts]
        likeness = reduce(and_, (form.likeness for form in forms))
        if self._wholes.may_hold(segment):
            likeness = 0
        if any(form.pattern is not None for form in forms):
            whole = b"".join(form.pattern or in_pattern(part) for form, part in zip(forms, parts, strict=True))
            return Form(whole, likeness)
        if all(form.numbered is None for form in forms):
            return Form(None, likeness)
        numbered = b"".join(form.numbered or in_pattern(part) for form, part in zip(forms, parts, strict=True))
        of_digits = (form.likeness if form.numbered is None else form.numbered_likeness for form in forms)
        return Form(None, likeness, numbered, reduce(and_, of_digits, likeness | DIGITS))

    def any_name(self, name: bytes, *, is_pattern: bool = False) -> bytes:
        """Return the member of `ANY_NAMES` for one of too many names, or for the pattern of one.

        A name contains a separator only within a hash tag. A reader who splits `{user:ann}:cart` at each separator gets
        other segments than from `ann:cart`, so they are not counted together.
        """
        if b"{" not in name:
            return ANY
        pieces = literals(name) if is_pattern else [name]
        if not any(separator in piece for piece in pieces for separator in self._separators):
            return ANY
        return ANY_TAG if pieces[0].startswith(b"{") and pieces[-1].endswith(b"}") else ANY_WITH_TAG


def _form(part: bytes) -> Form:  # noqa: PLR0911 - one for each kind
    if part.isdigit():
        return _FORM_OF["id"]
    if part.isalpha():
        return _NAME
    match = _FORMS(part)
    if match is not None and match.lastgroup is not None:
        return _FORM_OF[match.lastgroup]
    if part.isalnum():
        return _form_of_word(part)
    may_be_ip6 = b":" in part
    if may_be_ip6 and end_of_ip6(part, 0, _NO_BORDER) == len(part):
        return _ANY_IP
    may_be_base64 = part.endswith(b"=")
    if may_be_base64 and _PADDED(part) and not _has_words(part):
        return _ANY_TOKEN
    found = _form_of_parts(part)
    if found.pattern is None and (_TOKEN(part) or _UNPADDED(part)) and _is_random(part):
        return _ANY_TOKEN
    return found._replace(likeness=0, numbered_likeness=0) if may_be_ip6 or may_be_base64 else found


def _form_of_word(part: bytes) -> Form:
    """Return the form of a segment of both letters and digits that has no form of a whole segment."""
    match = next(_parts(part), None)
    if match is None:
        return _NAME_WITH_DIGIT
    if match.lastgroup == "digest":
        return Form(part[: match.start("digest")] + b"<hash>", 0)
    if match.lastgroup != "glued":
        return _ANY_TOKEN
    start = _digits_start(part, len(part))
    return _folded_form(part[:start] + NUMBER, is_sure=len(part) - start >= LONG_NUMBER)


def _form_of_parts(part: bytes) -> Form:
    """Return the form of a segment by the identifiers and numbers in it."""
    replaced: list[tuple[int, int, bytes]] = []
    ends: list[tuple[int, int, bytes]] = []
    is_sure = has_digest = False
    for match in _parts(part):
        start, end = match.span(match.lastgroup or 0)
        has_digest = has_digest or match.lastgroup == "digest"
        if match.lastgroup == "glued":
            ends.append((_digits_start(part, end), end, NUMBER))
            continue
        name = _PART_NAMES[match.lastgroup or ""]
        replaced.append((start, end, name))
        is_sure = is_sure or name is not NUMBER or end - start >= LONG_NUMBER or _is_between_slashes(part, start, end)
    if ends:
        long_ends = [span for span in ends if span[1] - span[0] >= LONG_NUMBER]
        is_sure = is_sure or bool(long_ends)
        replaced = sorted(replaced + long_ends) if replaced or long_ends else ends
    if not replaced:
        return _NAME_WITH_DIGIT if _HAS_DIGIT(part) else _NAME
    pieces, done = [], 0
    for start, end, name in replaced:
        pieces += [in_pattern(part[done:start]), name]
        done = end
    found = _folded_form(b"".join([*pieces, in_pattern(part[done:])]), is_sure=is_sure)
    return found._replace(likeness=0) if has_digest else found


def _is_between_slashes(part: bytes, start: int, end: int) -> bool:
    """Whether a number is between two slashes, or between a slash and an end of the segment."""
    before, behind = part[:start][-1:], part[end : end + 1]
    return before + behind != b"" and (before + behind).strip(b"/") == b""


@lru_cache(MOST_FORMS)
def _folded_form(pattern: bytes, *, is_sure: bool) -> Form:
    """Return the form of segments with this pattern; `is_sure`: they are identifiers however few there are."""
    likeness = _likeness_of_parts(pattern)
    return Form(pattern, likeness) if is_sure else Form(None, MARKS, pattern, likeness)


def _digits_start(part: bytes, end: int) -> int:
    return len(part[:end].rstrip(b"0123456789"))


def _likeness_of_parts(pattern: bytes) -> int:
    """Return the likeness of a segment with identifiers in it, by its pattern."""
    if b"<id>" in pattern:
        return 0
    if b"<uuid>" in pattern or b"<hash>" in pattern:
        return MARKS
    return 0 if _HAS_DIGIT(_PLACEHOLDER.sub(b"", pattern)) else DIGITS


_FIRST_GROUP: Final = re.compile(rb"[23][0-9a-fA-F]{3}|[fF](?:[cCdD][0-9a-fA-F]|[eE][89abAB]|[fF]0)[0-9a-fA-F]").match
"""The first group of IPv6 addresses in use: global, site-local or link-local, and multicast."""
_HAS_HEX_LETTER: Final = re.compile(rb"[a-fA-F]").search
_IP6_GROUPS: Final = 8
_NEAR_IP6: Final = re.compile(
    rb"[0-9fF][0-9a-fA-F]*(?::[0-9a-fA-F]+)*::[0-9a-fA-F] | (?:[0-9a-fA-F]+:){7}[0-9a-fA-F]", re.VERBOSE
).search


def group_of_ip6(separators: Sequence[bytes]) -> Callable[[bytes, int], re.Match[bytes] | None]:
    """Return a matcher for a group of an IPv6 address up to a colon, one of these separators or the end."""
    borders = b"|".join((b":", rb"\Z", *map(re.escape, separators)))
    digits = re.escape(b"".join(separator for separator in separators if len(separator) == 1))
    not_border = b"(?![" + digits + b"])" if digits else b""
    return re.compile(b"(?:" + not_border + rb"[0-9a-fA-F]){1,4}(?=" + borders + b")").match


_NO_BORDER: Final = group_of_ip6(())


def end_of_ip6(text: bytes, start: int, group: Callable[[bytes, int], re.Match[bytes] | None]) -> int:
    """Return the end of the IPv6 address that begins at `start`, or 0.

    `group` comes from `group_of_ip6`. An address has eight groups, with a letter in one of them, or it begins like
    addresses in use and has `::` in place of some groups. So `a:b:c:d:1` and `feed::42` are not addresses.
    """
    ends: list[int] = []
    at = start
    while len(ends) < _IP6_GROUPS and (found := group(text, at)) is not None:
        ends.append(found.end())
        if text[found.end() : found.end() + 1] != b":":
            break
        at = found.end() + 1
    if len(ends) == _IP6_GROUPS:
        return ends[-1] if _HAS_HEX_LETTER(text, start, ends[-1]) else 0
    left = len(ends)
    if not left or text[ends[-1] : ends[-1] + 2] != b"::" or not _FIRST_GROUP(text, start, ends[0]):
        return 0
    at, end = ends[-1] + 2, 0
    for _ in range(_IP6_GROUPS - 1 - left):
        found = group(text, at)
        if found is None:
            break
        end = found.end()
        if text[end : end + 1] != b":":
            break
        at = end + 1
    return end


class Wholes:
    """Finds identifiers that are one segment though they contain a separator: UUIDs, IPv4 and IPv6 addresses."""

    def __init__(self, separators: Sequence[bytes]) -> None:
        self._group = group_of_ip6(separators) if b":" in separators else None
        cut = [(_UUID, rb"(?:[0-9a-fA-F]+-){4}[0-9a-fA-F]")] if b"-" in separators else []
        cut += [(_IP, rb"(?:[0-9]+\.){3}[0-9]")] if b"." in separators else []
        borders = b"|".join((rb"\Z", *map(re.escape, separators)))
        forms, near = (b"|".join(parts) for parts in zip(*cut, strict=True)) if cut else (b"(?!)", b"(?!)")
        self._others = re.compile(b"(?>" + forms + b")(?=" + borders + b")").match if cut else None
        self._near = re.compile(near).search

    def may_hold(self, text: bytes) -> bool:
        """Whether a text of the same shape may contain such an identifier."""
        if self._group is not None and (
            (b"::" in text or text.count(b":") >= _IP6_GROUPS - 1) and _NEAR_IP6(text) is not None
        ):
            return True
        return self._others is not None and self._near(text) is not None

    def end(self, text: bytes, start: int) -> int:
        """Return the end of the UUID or address that begins at `start`, or 0."""
        end = end_of_ip6(text, start, self._group) if self._group is not None else 0
        if not end and self._others is not None and (found := self._others(text, start)) is not None:
            return found.end()
        return end

    def split(self, text: bytes, borders: re.Pattern[bytes]) -> list[bytes]:
        """Split a text at borders, which are kept as parts, except at borders within UUIDs and addresses."""
        if not self.may_hold(text):
            return borders.split(text)
        parts, start = list[bytes](), 0
        while (border := borders.search(text, self.end(text, start) or start)) is not None:
            parts += [text[start : border.start()], border[0]]
            start = border.end()
        return [*parts, text[start:]]


DEEPEST_LEVEL: Final = 32
"""At most so many levels are told apart: nobody lays out more namespaces within each other."""


class KeySegments:
    """Splits the names of a keyspace with these separators.

    `rate:2001:db8::7:login` has three segments: an address is one, though it contains the separator, and so is a UUID
    with the separator `-`. A raw name that Java has serialised has the segments of its text, behind a mark.
    """

    def __init__(self, separators: Separators) -> None:
        self._separators = separators
        self._java = separators.java_separator
        self._single = separators.values[0] if len(separators.values) == 1 else None
        self._wholes = Wholes(separators.values)

    def may_have_whole(self, key: bytes) -> bool:
        return self._wholes.may_hold(key)

    def of(self, key: bytes, most: int) -> Sequence[tuple[bytes, bytes]]:
        """Return the first `most` segments, each with the separator that ends it, `b""` for the last of the key."""
        if self._java and key.startswith(HEADER) and (text := java_text(key)) is not None:
            return [(MARK, self._java), *self.of(text, most - 1)] if most > 0 else []
        if self._wholes.may_hold(key):
            return self._with_wholes(key, most)
        separator = self._single
        if separator is not None and b"{" not in key:
            names = key.split(separator, most)
            pairs = [(name, separator) for name in names[:-1]]
            return pairs if len(names) > most else [*pairs, (names[-1], b"")]
        pairs = []
        for segment in self._separators.segments(key):
            if len(pairs) == most:
                break
            pairs.append((segment.name, segment.separator))
        return pairs

    def _with_wholes(self, key: bytes, most: int) -> Sequence[tuple[bytes, bytes]]:
        pairs: list[tuple[bytes, bytes]] = []
        start, brace_before = 0, False
        while len(pairs) < most:
            cut = self._separators.cut(key, self._wholes.end(key, start) or start, brace_before=brace_before)
            if cut is None:
                pairs.append((key[start:], b""))
                break
            pairs.append((key[start : cut.separator_start], key[cut.separator_start : cut.separator_end]))
            brace_before = brace_before or key.find(b"{", start, cut.separator_end) >= 0
            start = cut.separator_end
        return pairs


class NodeKind(StrEnum):
    """The keys that a node stands for."""

    LITERAL = "literal"
    """Keys with exactly this segment here."""
    PATTERN = "pattern"
    """Keys whose segment is an identifier, differs in a number or is one of too many: `<id>`, `page_<n>`, `<*>`."""
    OTHER = "other"

    __hash__ = str.__hash__  # that of an enumeration is a function in Python, and paths are hashed by the thousand
