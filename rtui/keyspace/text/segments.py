"""Cuts key names into segments at separators, without ever tearing a hash tag apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

DEFAULT_SEPARATORS = (b":",)
"""What separates segments when nothing else is asked for."""

_OPEN = b"{"
_CLOSE = b"}"


class Cut(NamedTuple):
    """Where the first separator of a suffix lies: offsets into the bytes that were searched."""

    separator_start: int
    """The segment ends here."""

    separator_end: int
    """The rest begins here."""


class Segment(NamedTuple):
    """One segment of a key and the separator that ends it."""

    name: bytes
    """The bytes between two separators; empty segments are real."""

    separator: bytes
    """The separator after the name, `b""` for the last segment of the key."""


@dataclass(frozen=True, slots=True)
class Separators:
    """The separators of a keyspace; where several match at one place, the longest wins.

    The hash tag that Redis hashes (from the first `{` of the key to the first `}` after it, with something between)
    is one unit: a separator that shares a byte with it does not split. `{user:1}:cart` is `{user:1}` and `cart`.

    Keys are split suffix by suffix, and only the first `{` of a *key* can begin its tag. So every method that takes a
    suffix takes `brace_behind` too: whether the part of the key in front of the suffix, separators included, contains a
    `{`. A node of a tree can keep it: `parent.brace_behind or b"{" in name + separator`.
    """

    values: tuple[bytes, ...]
    """The separators, longest first, each once. None at all is allowed: then no key has more than one segment."""

    _single: bytes | None = field(init=False, repr=False, compare=False)
    _pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    _triple: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    _holds_brace: bool = field(init=False, repr=False, compare=False)

    def __init__(self, values: Sequence[bytes] = DEFAULT_SEPARATORS) -> None:
        """Raise ValueError for an empty separator."""
        if not all(values):
            raise ValueError("a separator has at least one byte")
        ordered = tuple(sorted(dict.fromkeys(values), key=lambda value: (-len(value), value)))
        object.__setattr__(self, "values", ordered)
        object.__setattr__(self, "_single", ordered[0] if len(ordered) == 1 else None)
        object.__setattr__(self, "_pattern", re.compile(_alternatives(ordered)))
        object.__setattr__(self, "_triple", re.compile(_triple(ordered), re.DOTALL))
        object.__setattr__(self, "_holds_brace", any(_OPEN in value for value in ordered))

    def cut(self, suffix: bytes, start: int = 0, *, brace_behind: bool = False) -> Cut | None:
        """Find the first separator at or after `start` that splits, or None: what is left is one segment.

        `brace_behind` speaks of all bytes of the key in front of `start`. The cost is the distance to the separator,
        plus, once a key, the distance to the `}` that ends its tag: walking along a key of any length is linear.
        """
        found = self._search(suffix, start, len(suffix))
        if brace_behind:
            return found
        end = len(suffix) if found is None else found.separator_end
        opening = suffix.find(_OPEN, start, end)
        if opening < 0:
            return found
        closing = suffix.find(_CLOSE, opening + 1)
        if closing <= opening + 1:
            return found
        return self._search(suffix, start, opening) or self._search(suffix, closing + 1, len(suffix))

    def split_first(self, suffix: bytes, *, brace_behind: bool = False) -> tuple[bytes, bytes, bytes]:
        """Return (head, separator, rest) as `bytes.partition` does; the separator is `b""` where nothing splits."""
        found = self.cut(suffix, brace_behind=brace_behind)
        if found is None:
            return suffix, b"", b""
        start, end = found
        return suffix[:start], suffix[start:end], suffix[end:]

    def split_batch(self, suffixes: Sequence[bytes], *, brace_behind: bool = False) -> list[tuple[bytes, bytes, bytes]]:
        """`split_first` for many suffixes that share their `brace_behind`.

        With one separator and no brace about, a suffix costs one `bytes.partition`; a tag costs more only where it
        holds a separator.
        """
        if self._holds_brace and not brace_behind:
            return [self.split_first(suffix) for suffix in suffixes]
        triples = self._partition(suffixes)
        if brace_behind or _OPEN not in b"".join(suffixes):
            return triples
        # A separator inside the tag lies between a `{` in the head and a `}` that is not in it.
        torn = [
            (index, opening)
            for index, (head, separator, _) in enumerate(triples)
            if (opening := head.find(_OPEN)) >= 0 and separator and head.find(_CLOSE, opening) < 0
        ]
        self._mend(torn, suffixes, triples)
        return triples

    def segments(self, key: bytes) -> Iterator[Segment]:
        """Yield all segments of a whole key, the last one with the separator `b""`; the empty key has one, empty."""
        start = 0
        brace_behind = False
        while (found := self.cut(key, start, brace_behind=brace_behind)) is not None:
            end, following = found
            yield Segment(key[start:end], key[end:following])
            brace_behind = brace_behind or key.find(_OPEN, start, following) >= 0
            start = following
        yield Segment(key[start:], b"")

    def parts(self, key: bytes) -> list[bytes]:
        """Return the names of all segments of a whole key, at least one."""
        return [segment.name for segment in self.segments(key)]

    def _search(self, suffix: bytes, start: int, end: int) -> Cut | None:
        """Find the first separator that lies entirely within [start, end), blind to tags."""
        if self._single is not None:
            place = suffix.find(self._single, start, end)
            return None if place < 0 else Cut(place, place + len(self._single))
        match = self._pattern.search(suffix, start, end)
        return None if match is None else Cut(match.start(), match.end())

    def _partition(self, suffixes: Iterable[bytes]) -> list[tuple[bytes, bytes, bytes]]:
        """Split each at its first separator, blind to tags."""
        if self._single is not None:
            return list(map(bytes.partition, suffixes, repeat(self._single)))
        matches = map(self._triple.match, suffixes)
        return [(match[1], match[2], match[3]) for match in matches if match is not None]

    def _mend(
        self, torn: Iterable[tuple[int, int]], suffixes: Sequence[bytes], triples: list[tuple[bytes, bytes, bytes]]
    ) -> None:
        """Split the suffixes of these (index, offset of `{`) behind their tags, those that turn out to have one."""
        ends = [(index, suffixes[index].find(_CLOSE, opening + 1) + 1, opening) for index, opening in torn]
        tagged = [(index, end) for index, end, opening in ends if end > opening + 2]
        behind = self._partition(suffixes[index][end:] for index, end in tagged)
        for (index, end), (head, separator, rest) in zip(tagged, behind, strict=True):
            triples[index] = (suffixes[index][:end] + head, separator, rest)


def _alternatives(ordered: Sequence[bytes]) -> bytes:
    """Write the expression that takes the longest separator at a place; without any separator, it never matches."""
    if not ordered:
        return rb"(?!)"
    if len(ordered[0]) == 1:
        return b"[" + b"".join(map(re.escape, ordered)) + b"]"
    return b"|".join(map(re.escape, ordered))


def _triple(ordered: Sequence[bytes]) -> bytes:
    """Write the expression whose groups are head, separator (or empty) and rest; it matches everything."""
    alternatives = _alternatives(ordered)
    if ordered and len(ordered[0]) == 1:
        return b"([^" + alternatives[1:-1] + b"]*)(" + alternatives + b"?)(.*)"
    return b"(.*?)(" + alternatives + rb"|\Z)(.*)"
