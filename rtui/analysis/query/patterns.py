r"""Patterns of names as they are typed and shown: `shop:user:{id}:orders`.

A pattern is a path of steps, each a segment and the separator behind it, as in the tree of patterns of an analysis
(`rtui.table.patterns`): a key has the pattern `shop:user:{id}:orders` if its segments fold to these.

* `{id}`, `{uuid}`, `{hash}`, `{date}`, `{ip}`, `{email}` stand for an identifier of that form, also within a hash tag:
  `{user:{id}}:cart`.
* `{n}` stands for a number that is a part of a segment: `page_{n}`, `v1.user.{n}`. The other forms may be parts, too:
  `task-meta-{uuid}`.
* `{*}` stands for any other segment, one that is a name; `{{**}}` for one that is a hash tag with a separator in it, as
  `{user:ann}`, and `{**}` for one that has such a tag and text beside it.
* All other braces are themselves. A backslash takes the meaning from what follows it: `\{id}` are four characters.
* With a separator at the end it is a namespace: the pattern of all keys below. `{}` there is the empty segment of keys
  that really end in a separator.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Final, NamedTuple

from rtui.keyspace.text.glob import PatternError, check_pattern, escape_glob
from rtui.keyspace.text.identifiers import (
    ANY_NAMES,
    ANY_TAG,
    DIGITS,
    MARKS,
    NUMBER,
    PLACEHOLDERS,
    Identifiers,
    KeySegments,
)
from rtui.keyspace.text.segments import Separators

EMPTY: Final = b"{}"
"""Stands for the empty segment at the end of a key."""

FORMS: Final = tuple(sorted(one for one in PLACEHOLDERS if one is not None))
"""The placeholders of identifiers."""

_SPECIAL: Final = b"|".join(map(re.escape, (*FORMS, NUMBER, *(one for one in ANY_NAMES if one != ANY_TAG), EMPTY)))
_TOKEN: Final = re.compile(rb"\\(?P<escaped>.)|(?P<special>" + _SPECIAL + rb")", re.DOTALL)
_DIGIT: Final = re.compile(rb"[0-9]")
_UUID_LETTERS: Final = re.compile(rb"[a-fA-F]{8}-")
_WORD: Final = re.compile(rb"[0-9A-Za-z-]")
_MISREAD: Final = re.compile(rb"\\|(?=" + _SPECIAL + rb")")
_MISREAD_IN_PATTERN: Final = re.compile(rb"\\|(?=\{\})")


HEX_PARTS: Final = (
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    r"\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{6,}\b",
)
"""Expressions for UUIDs and for hexadecimal numbers, which have letters and digits, in the syntax of Rust, too."""

_HEX_PART: Final = re.compile("|".join(HEX_PARTS).encode())


class PatternSyntaxError(ValueError):
    """A text that is no pattern; the message says why, in safe text without a full stop."""


class Step(NamedTuple):
    """One level of a pattern."""

    name: bytes
    """The segment, or the placeholder pattern of its identifiers."""
    separator: bytes
    """The separator after it; empty for the last segment of a key."""
    is_folded: bool
    """Whether the name stands for other segments."""


def pattern_text(steps: Sequence[Step]) -> bytes:
    """Return a pattern as it is typed."""
    parts = []
    for name, separator, is_folded in steps:
        misread = _MISREAD_IN_PATTERN if is_folded else _MISREAD
        parts += [misread.sub(rb"\\\g<0>", name), separator]
    is_empty = bool(steps) and not steps[-1].name and not steps[-1].separator
    return b"".join(parts) + (EMPTY if is_empty else b"")


def check_pattern_text(text: bytes) -> bytes:
    """Return a text if it is a pattern, raise PatternSyntaxError otherwise."""
    pieces = _TOKEN.split(text)
    if any(b"\\" in piece for piece in pieces[::3]):
        raise PatternSyntaxError("a pattern ends with a backslash: one that is meant is written twice")
    return text


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern in a keyspace with certain separators."""

    steps: tuple[Step, ...]
    glob: bytes | None
    """A glob that matches all its names, and others; None if there is none within the bounds."""


def read_pattern(text: bytes, separators: Separators) -> Pattern:
    """Read a pattern. Raises PatternSyntaxError."""
    check_pattern_text(text)
    known = b"".join((text, *separators.values))
    mark = next(one for one in (b"\0%d\0" % number for number in count()) if one not in known)
    skeleton, globbed, stands = b"", b"", []
    pieces = _TOKEN.split(text)
    for plain, escaped, special in zip(pieces[::3], [*pieces[1::3], None], [*pieces[2::3], None], strict=True):
        literal = plain + (escaped or b"")
        skeleton += literal
        globbed += escape_glob(literal)
        if special is not None and special != EMPTY:
            stands.append(special)
            skeleton += mark
            globbed += b"*"
    steps = []
    for name, separator in separators.segments(skeleton):
        is_folded = mark in name
        first, *rest = name.split(mark)
        whole = b"".join([first, *(stands.pop(0) + one for one in rest)])
        steps.append(Step(whole, separator, is_folded))
    if len(steps) > 1 and not steps[-1].name and not text.endswith(EMPTY):
        steps.pop()
        globbed += b"*"
    try:
        glob = check_pattern(re.sub(rb"\*+", b"*", globbed) if b"\\*" not in globbed else globbed)
    except PatternError:
        glob = None
    return Pattern(tuple(steps), glob)


class PatternMatcher:
    """Tells whether a key has one of some patterns."""

    def __init__(self, patterns: Sequence[Pattern], separators: Separators) -> None:
        self._patterns = [pattern.steps for pattern in patterns]
        fixed = [step.name for steps in self._patterns for step in steps if not step.is_folded]
        self._names_digits = any(_DIGIT.search(one) for one in (*fixed, *separators.values))
        self._names_hex = any(_UUID_LETTERS.search(one) for one in fixed) or any(map(_WORD.search, separators.values))
        self._most = max((len(steps) for steps in self._patterns), default=0)
        self._segments = KeySegments(separators)
        self._identifiers = Identifiers(separators.values)
        self._form = lru_cache(maxsize=4096)(self._identifiers.form)

    def __call__(self, key: bytes) -> bool:
        """Whether it has."""
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

    def _fits(self, steps: Sequence[Step], segments: Sequence[tuple[bytes, bytes]]) -> bool:
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
