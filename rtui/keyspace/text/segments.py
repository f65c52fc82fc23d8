"""Splits key names into segments at separators; a hash tag is never split.

A tree is built one level at a time, so most methods split a *suffix*, the rest of a key below some namespace, at its
first separator: `user:42:cart` into `user`, `:` and `42:cart`. `Separators.group_batch` does so for the keys of a whole
SCAN page and groups them by first segment, at about twice the cost of one `bytes.partition` a key.

Names that Java has serialised: `ac ed 00 05 74`, the length of the text in two bytes, and the text.

Spring's RedisTemplate writes such names unless another key serialiser is configured. Their first segment would contain
the length, so names of different length would never be in one namespace. So they are split as their text, below a
namespace of their own: the *split form* of a name has `ff` and the separator in place of the length, and its first
segment is `MARK`. With the separator `:`, `user:1` and its Java form are below `user:` and below `MARK:user:`.

The server knows such names by their raw bytes only. `swapped` converts one form to the other: it is its own inverse,
for any bytes, since a raw name that happens to begin like a split form gets its length in turn. Names whose length does
not fit stay as they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

HEADER: Final = b"\xac\xed\x00\x05t"
"""The magic number of Java's serialisation, its version, and the type of a short string."""

MARK: Final = HEADER + b"\xff"

BEGINNING: Final = len(MARK) + 1
"""The number of bytes before the text, in either form."""

LONGEST: Final = 0xFFFF
"""The longest text, in bytes."""

SIGN: Final = "⛾"
"""Stands before the text of a displayed name; a name that really contains it is shown with an escape."""

ASCII_SIGN: Final = "\\J"
"""The same for ASCII-only display."""


def separator_of(separators: Sequence[bytes]) -> bytes:
    """Return the separator behind the mark; empty if none has one byte, and names are split like any others."""
    usable = [separator for separator in separators if len(separator) == 1]
    return min(usable) if usable and not any(separator[:1] in HEADER for separator in separators) else b""


def swapped(name: bytes, separator: bytes) -> bytes:
    """Convert a raw name to its split form, or back."""
    length = len(name) - BEGINNING
    if not separator or not name.startswith(HEADER) or not 0 <= length <= LONGEST:
        return name
    now, raw, mark = name[len(HEADER) : BEGINNING], length.to_bytes(2, "big"), MARK[-1:] + separator
    other = mark if now == raw else raw if now == mark else now
    return HEADER + other + name[BEGINNING:]


def all_swapped(names: Sequence[bytes], separator: bytes) -> Sequence[bytes]:
    """Convert many names, at next to no cost if none has a header."""
    if HEADER not in b"".join(names):
        return names
    return [swapped(name, separator) for name in names]


def java_text(name: bytes) -> bytes | None:
    """Return the text of a raw name, or None if Java has not serialised it."""
    if not name.startswith(HEADER) or int.from_bytes(name[len(HEADER) : BEGINNING], "big") != len(name) - BEGINNING:
        return None
    return name[BEGINNING:] if len(name) >= BEGINNING else None


def texts_of(names: Sequence[bytes]) -> Sequence[bytes]:
    if HEADER not in b"".join(names):
        return names
    return [name if (text := java_text(name)) is None else text for name in names]


def raw_java_name(text: bytes) -> bytes | None:
    """Return the raw name of a text; None if it is too long."""
    return HEADER + len(text).to_bytes(2, "big") + text if len(text) <= LONGEST else None


def raw_forms(typed: bytes) -> Iterable[bytes]:
    """Yield the raw names that a typed or copied name may stand for: itself, then the Java form of its text."""
    yield typed
    for sign in (SIGN.encode(), ASCII_SIGN.encode()):
        typed = typed.removeprefix(sign)
    name = raw_java_name(typed)
    if name is not None:
        yield name


def raw_name(split: bytes) -> bytes:
    """Return the raw name of a split form without knowing its separator."""
    return (raw_java_name(split[BEGINNING:]) or split) if split.startswith(MARK) else split


DEFAULT_SEPARATORS = (b":",)
"""The separators unless the user gives others."""

_OPEN = b"{"
_CLOSE = b"}"

Triple: TypeAlias = tuple[bytes, bytes, bytes]
"""A suffix split at its first separator, as `bytes.partition` does."""

Group: TypeAlias = tuple[bytes, bytes, list[bytes]]
"""Suffixes with the same first segment: that segment with its separator, the separator, and the rest of each suffix."""


class SeparatorSpan(NamedTuple):
    """The offsets of a separator: the segment ends at its start, and the rest begins at its end."""

    separator_start: int
    separator_end: int


class Segment(NamedTuple):
    """One segment of a key and the separator that ends it."""

    name: bytes
    """The bytes between two separators; empty segments are real."""
    separator: bytes
    """The separator after the name, `b""` for the last segment of the key."""


@dataclass(frozen=True, slots=True)
class Separators:
    """The separators of a keyspace; if several match at one place, the longest wins.

    The hash tag that Redis hashes (from the first `{` of the key to the first `}` after it, with something between) is
    part of one segment: a separator that shares a byte with it does not split. `{user:1}:cart` is `{user:1}` and
    `cart`.

    Only the first `{` of a *key* can begin its tag. So every method with a suffix also has a parameter `brace_before`:
    whether the part of the key before the suffix, separators included, contains a `{`. A node of a tree can store it:
    `parent.brace_before or b"{" in name + separator`.
    """

    values: tuple[bytes, ...]
    """The separators, longest first, without repeats. If empty, every key is one segment."""
    java_separator: bytes = field(init=False, repr=False, compare=False)
    """The byte behind the mark of names that Java has serialised."""
    _single: bytes | None = field(init=False, repr=False, compare=False)
    _pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    _triple: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __init__(self, values: Sequence[bytes] = DEFAULT_SEPARATORS) -> None:
        """Raises ValueError for an empty separator."""
        if not all(values):
            raise ValueError("a separator has at least one byte")
        ordered = tuple(sorted(dict.fromkeys(values), key=lambda value: (-len(value), value)))
        object.__setattr__(self, "values", ordered)
        object.__setattr__(self, "java_separator", separator_of(ordered))
        object.__setattr__(self, "_single", ordered[0] if len(ordered) == 1 else None)
        object.__setattr__(self, "_pattern", re.compile(_alternatives(ordered)))
        object.__setattr__(self, "_triple", re.compile(_triple(ordered), re.DOTALL))

    def cut(self, suffix: bytes, start: int = 0, *, brace_before: bool = False) -> SeparatorSpan | None:
        """Find the first separator at or after `start` that splits; None if the rest is one segment.

        Here `brace_before` covers all bytes of the key before `start`. The cost is the distance to the separator, plus,
        once a key, the distance to the `}` that ends its tag: walking along a key of any length is linear.
        """
        found = self._search(suffix, start, len(suffix))
        if brace_before:
            return found
        end = len(suffix) if found is None else found.separator_end
        opening = suffix.find(_OPEN, start, end)
        if opening < 0:
            return found
        closing = suffix.find(_CLOSE, opening + 1)
        if closing <= opening + 1:
            return found
        return self._search(suffix, start, opening) or self._search(suffix, closing + 1, len(suffix))

    def split_first(self, suffix: bytes, *, brace_before: bool = False) -> Triple:
        """Return (head, separator, rest) as `bytes.partition` does; the separator is `b""` if none splits."""
        found = self.cut(suffix, brace_before=brace_before)
        if found is None:
            return suffix, b"", b""
        start, end = found
        return suffix[:start], suffix[start:end], suffix[end:]

    def group_batch(self, suffixes: Sequence[bytes], *, brace_before: bool = False) -> tuple[list[bytes], list[Group]]:
        """Split many suffixes with the same `brace_before` as `split_first` does, and group them by first segment.

        Returns (suffixes without a separator, groups of the others).

        All are first split at their first separator as if there were no tags. Then only groups whose separator may be
        inside a tag are split again: it lies between a `{` in the segment and a `}` behind it.
        """
        if not brace_before and any(_OPEN in value for value in self.values):
            return _grouped(map(self.split_first, suffixes), None)
        unsplit, groups = _grouped(self._partition(suffixes), self._single)
        if brace_before or _OPEN not in b"".join(map(itemgetter(0), groups)):
            return unsplit, groups
        whole: list[Group] = []
        torn: list[bytes] = []
        for group in groups:
            label, separator, rests = group
            opening = label.find(_OPEN)
            if opening < 0 or label.find(_CLOSE, opening, len(label) - len(separator)) >= 0:
                whole.append(group)
            else:
                torn += [label + rest for rest in rests]
        more, others = _grouped(self._split_after_tags(torn), self._single)
        return unsplit + more, whole + others

    def segments(self, key: bytes) -> Iterator[Segment]:
        """Yield all segments of a whole key, the last one with the separator `b""`; the empty key has one, empty."""
        start = 0
        brace_before = False
        while (found := self.cut(key, start, brace_before=brace_before)) is not None:
            end, following = found
            yield Segment(key[start:end], key[end:following])
            brace_before = brace_before or key.find(_OPEN, start, following) >= 0
            start = following
        yield Segment(key[start:], b"")

    def _search(self, suffix: bytes, start: int, end: int) -> SeparatorSpan | None:
        """Find the first separator that lies entirely within [start, end), ignoring tags."""
        if self._single is not None:
            place = suffix.find(self._single, start, end)
            return None if place < 0 else SeparatorSpan(place, place + len(self._single))
        match = self._pattern.search(suffix, start, end)
        return None if match is None else SeparatorSpan(match.start(), match.end())

    def _partition(self, suffixes: Iterable[bytes]) -> Iterator[Triple]:
        if self._single is not None:
            return map(bytes.partition, suffixes, repeat(self._single))
        matches = map(self._triple.match, suffixes)
        return ((match[1], match[2], match[3]) for match in matches if match is not None)

    def _split_after_tags(self, suffixes: Sequence[bytes]) -> Iterator[Triple]:
        """Split suffixes at their first separators behind the tag that their first `{` begins, if it does."""
        ends = []
        for suffix in suffixes:
            opening = suffix.find(_OPEN)
            closing = suffix.find(_CLOSE, opening + 1)
            ends.append(closing + 1 if closing > opening + 1 else 0)
        behind = self._partition([suffix[end:] for suffix, end in zip(suffixes, ends, strict=True)])
        for suffix, end, (head, separator, rest) in zip(suffixes, ends, behind, strict=True):
            yield suffix[:end] + head, separator, rest


def _grouped(triples: Iterable[Triple], single: bytes | None) -> tuple[list[bytes], list[Group]]:
    """Group split suffixes by first segment; all were split at `single` if that is given."""
    unsplit: list[bytes] = []
    if single is not None:
        by_head: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for head, separator, rest in triples:
            if separator:
                by_head[head].append(rest)
            else:
                unsplit.append(head)
        return unsplit, [(head + single, single, rests) for head, rests in by_head.items()]
    by_segment: defaultdict[tuple[bytes, bytes], list[bytes]] = defaultdict(list)
    for head, separator, rest in triples:
        if separator:
            by_segment[head, separator].append(rest)
        else:
            unsplit.append(head)
    return unsplit, [(head + separator, separator, rests) for (head, separator), rests in by_segment.items()]


def _alternatives(ordered: Sequence[bytes]) -> bytes:
    """Return the pattern of the longest separator at a place; without separators it never matches."""
    if not ordered:
        return rb"(?!)"
    if len(ordered[0]) == 1:
        return b"[" + b"".join(map(re.escape, ordered)) + b"]"
    return b"|".join(map(re.escape, ordered))


def _triple(ordered: Sequence[bytes]) -> bytes:
    """Return a pattern with the groups head, separator (or empty) and rest; it matches everything."""
    alternatives = _alternatives(ordered)
    if ordered and len(ordered[0]) == 1:
        return b"([^" + alternatives[1:-1] + b"]*)(" + alternatives + b"?)(.*)"
    return b"(.*?)(" + alternatives + rb"|\Z)(.*)"
