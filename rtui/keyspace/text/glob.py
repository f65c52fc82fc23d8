"""Patterns for `SCAN … MATCH`: names turned into patterns, and patterns kept within harmless bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_PATTERN_BYTES = 512
"""No longer pattern is sent: before 6.2.16, 7.2.6 and 7.4.1 long ones overflow the server's stack (CVE-2024-31228)."""

MAX_STARS = 16
"""No pattern with more `*` is sent: each may make the server try all that follows again, at every place of a name."""

_SPECIAL = re.compile(rb"[\\*?\[\]]")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_WILDCARD = re.compile(rb"(?:[^\\*?\[]|\\.)*+[*?\[]", re.DOTALL)
_ESCAPED_OR_STAR = re.compile(rb"\\.|\*", re.DOTALL)


class PatternError(ValueError):
    """A pattern that is not sent to a server; the message says why, as safe text."""


def escape_glob(literal: bytes) -> bytes:
    """Return the pattern that matches exactly these bytes; without special bytes it is the same object."""
    return _SPECIAL.sub(rb"\\\g<0>", literal)


def is_literal(pattern: bytes) -> bool:
    """Tell whether the pattern can match one name only, so that a look-up does instead of a scan.

    A backslash at the end stands for itself, as in the server's matcher.
    """
    return _WILDCARD.match(pattern) is None


def literal_name(pattern: bytes) -> bytes | None:
    """Return the only name that the pattern can match, its escapes resolved, or None if it has wildcards."""
    return _ESCAPED.sub(rb"\1", pattern) if is_literal(pattern) else None


def prefix_pattern(prefix: bytes) -> bytes:
    """Return a pattern within bounds that matches all names with this prefix.

    A prefix too long for a pattern is shortened, and then other names match too: filter what comes with `startswith`.
    """
    escaped = escape_glob(prefix[:MAX_PATTERN_BYTES])[: MAX_PATTERN_BYTES - 1]
    backslashes = len(escaped) - len(escaped.rstrip(b"\\"))
    return escaped[: len(escaped) - backslashes % 2] + b"*"


def containing_pattern(literal: bytes) -> bytes:
    """Return the pattern that matches all names that contain these bytes; raises PatternError if it is too long."""
    return check_pattern(b"*" + escape_glob(literal) + b"*")


def check_pattern(pattern: bytes) -> bytes:
    """Return the pattern if it is within the bounds, raise PatternError otherwise."""
    if len(pattern) > MAX_PATTERN_BYTES:
        raise PatternError(f"the pattern has {len(pattern):,} bytes; at most {MAX_PATTERN_BYTES} are sent")
    stars = _ESCAPED_OR_STAR.findall(pattern).count(b"*")
    if stars > MAX_STARS:
        raise PatternError(f"the pattern has {stars:,} stars; at most {MAX_STARS} are sent")
    return pattern


_Class = frozenset[int]

_ANY: _Class = frozenset(range(256))


class Matcher:
    """A pattern made ready to be tried on many names; the time for one is linear in its length for each asterisk."""

    def __init__(self, pattern: bytes) -> None:
        """Any bytes are a pattern: a bracket that is not closed is closed by the end.

        In a range, bytes from 0x80 on are the largest; whether a server agrees depends on its processor.
        """
        self._matches_empty = pattern in (b"", b"*")
        pieces: list[list[_Class]] = [[]]
        for token in _tokens(pattern):
            if token is None:
                pieces.append([])
            else:
                pieces[-1].append(token)
        self._first = re.compile(b"".join(map(_regex, pieces[0])), re.DOTALL)
        self._rest = [re.compile(b"".join(map(_regex, piece)), re.DOTALL) for piece in pieces[1:-1] if piece]
        self._last = re.compile(b"".join(map(_regex, pieces[-1])), re.DOTALL) if len(pieces) > 1 else None
        self._last_bytes = len(pieces[-1])

    def __call__(self, name: bytes) -> bool:
        """Whether the whole name matches; no server finds the empty one with more than a single asterisk."""
        if not name:
            return self._matches_empty
        if self._last is None:
            return self._first.fullmatch(name) is not None
        found = self._first.match(name)
        for piece in self._rest:
            if found is None:
                return False
            found = piece.search(name, found.end())
        if found is None or len(name) - found.end() < self._last_bytes:
            return False
        return self._last.match(name, len(name) - self._last_bytes) is not None


def _tokens(pattern: bytes) -> Iterator[_Class | None]:
    """The sets of bytes that a pattern asks for one after the other; None is an asterisk."""
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        at += 1
        if byte == ord("*"):
            yield None
        elif byte == ord("?"):
            yield _ANY
        elif byte == ord("["):
            members, at = _bracket(pattern, at)
            yield members
        else:
            if byte == ord("\\") and at < len(pattern):
                byte = pattern[at]
                at += 1
            yield frozenset((byte,))


def _bracket(pattern: bytes, at: int) -> tuple[_Class, int]:
    """The bytes that a bracket admits, and where the pattern goes on behind it."""
    negated = pattern[at : at + 1] == b"^"
    at += negated
    members: set[int] = set()
    while at < len(pattern) and pattern[at] != ord("]"):
        if pattern[at] == ord("\\") and len(pattern) - at >= 2:
            members.add(pattern[at + 1])
            at += 2
        elif len(pattern) - at >= 3 and pattern[at + 1] == ord("-"):
            low, high = sorted((pattern[at], pattern[at + 2]))
            members.update(range(low, high + 1))
            at += 3
        else:
            members.add(pattern[at])
            at += 1
    return _ANY - members if negated else frozenset(members), min(at + 1, len(pattern))


def _regex(members: _Class) -> bytes:
    if not members:
        return rb"(?!)"
    if members == _ANY:
        return b"."
    return b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]"
