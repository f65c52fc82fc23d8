"""Splits key names into the segments that patterns are made of; UUIDs and addresses are one segment each."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from rtui.keyspace.text.identifiers import Wholes
from rtui.keyspace.text.java_names import HEADER, MARK, java_text
from rtui.keyspace.text.segments import Separators

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
        """Whether a key of the same shape may have an identifier that contains separators."""
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
    """Keys whose segment is an identifier, differs in a number or is one of too many: `{id}`, `page_{n}`, `{*}`."""
    OTHER = "other"
    """Keys beyond the budget of nodes."""

    __hash__ = str.__hash__  # that of an enumeration is a function in Python, and paths are hashed by the thousand
