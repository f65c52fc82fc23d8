"""Patterns for `SCAN … MATCH`: made from names, kept within bounds that are safe for a server, and matched here.

A pattern is any bytes: `*` stands for any number of bytes, `?` for one, `[a-c]` and `[^a]` for one of a set, and a
backslash takes the meaning from the byte after it. `GlobMatcher` gives the same answers as the server's own matcher, in
time that is linear in the length of a name for each asterisk, where the server's may try every combination of places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rtui.keyspace.text.segments import BEGINNING, HEADER, MARK

MAX_PATTERN_BYTES = 512
"""The longest pattern that is sent: before 6.2.16, 7.2.6 and 7.4.1 long ones overflow the server's stack
(CVE-2024-31228)."""

MAX_STARS = 16
"""The most `*` in a pattern that is sent: each may make the server retry the rest at every place of a name."""

_SPECIAL = re.compile(rb"[\\*?\[\]]")
_ESCAPED_OR_STAR = re.compile(rb"\\.|\*", re.DOTALL)


class PatternError(ValueError):
    """A pattern that is not sent to a server; the message gives the reason, as safe text."""


def escape_glob(literal: bytes) -> bytes:
    return _SPECIAL.sub(rb"\\\g<0>", literal)


def prefix_pattern(prefix: bytes) -> bytes:
    """Return a pattern within bounds that matches all names with this prefix.

    A prefix too long for a pattern is shortened, so that other names match too: filter the results with `startswith`.
    """
    escaped = escape_glob(prefix[:MAX_PATTERN_BYTES])[: MAX_PATTERN_BYTES - 1]
    backslashes = len(escaped) - len(escaped.rstrip(b"\\"))
    return escaped[: len(escaped) - backslashes % 2] + b"*"


def namespace_pattern(prefix: bytes) -> bytes:
    """Return a pattern that matches the raw names of all keys below a namespace, and others: see `prefix_pattern`."""
    if not prefix.startswith(MARK):
        return prefix_pattern(prefix)
    rest = prefix_pattern(prefix[BEGINNING : BEGINNING + MAX_PATTERN_BYTES // 2 - BEGINNING])
    return HEADER + b"??" + rest


def check_pattern(pattern: bytes) -> bytes:
    """Return the pattern if it is within the bounds; raises PatternError otherwise."""
    if len(pattern) > MAX_PATTERN_BYTES:
        raise PatternError(f"the pattern has {len(pattern):,} bytes; at most {MAX_PATTERN_BYTES} are sent")
    stars = _ESCAPED_OR_STAR.findall(pattern).count(b"*")
    if stars > MAX_STARS:
        raise PatternError(f"the pattern has {stars:,} stars; at most {MAX_STARS} are sent")
    return pattern


ByteSet = frozenset[int]

_ANY: ByteSet = frozenset(range(256))


class GlobMatcher:
    """A compiled pattern: `GlobMatcher(b"user:*")(b"user:1")` is True.

    The pattern is cut at its asterisks into pieces of a fixed length. The first piece has to match at the start of a
    name, the last one at its end, and each piece between them at the first place after the one before it: taking the
    first place never rules out a match, so an atomic group, which never backtracks, holds each of them.
    """

    def __init__(self, pattern: bytes) -> None:
        """Compile any bytes: an unclosed bracket ends with the pattern.

        In a range, bytes from 0x80 on are the largest; whether a server agrees depends on its processor.
        """
        self._matches_empty = pattern in (b"", b"*")
        pieces = [b""]
        for members in tokens(pattern):
            if members is None:
                pieces.append(b"")
            else:
                pieces[-1] += _regex(members)
        expression = pieces[0] + b"".join(b"(?>.*?%b)" % piece for piece in pieces[1:-1])
        if len(pieces) > 1:
            expression += b".*" + pieces[-1]
        self._fullmatch = re.compile(expression, re.DOTALL).fullmatch

    def __call__(self, name: bytes) -> bool:
        """Whether the whole name matches. As on a server, the empty name matches only the patterns `` and `*`."""
        return self._fullmatch(name) is not None if name else self._matches_empty


def tokens(pattern: bytes) -> Iterator[ByteSet | None]:
    """Yield the set of bytes accepted at each place of a pattern, None for an asterisk."""
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


def _bracket(pattern: bytes, at: int) -> tuple[ByteSet, int]:
    """Return the set of bytes that a bracket accepts, and the offset behind it."""
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


def _regex(members: ByteSet) -> bytes:
    if not members:
        return rb"(?!)"
    if members == _ANY:
        return b"."
    return b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]"
