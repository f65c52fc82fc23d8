"""Whether a name matches a MATCH pattern, decided here as the server decides it (util.c, `stringmatchlen`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
