"""How well a name matches a typed text, and the natural order of names.

`us` is the beginning of a part of `shop:user:1`, inside `status`, and its letters are in order in `queue:sizes`. A
better kind of match always comes before a worse one. Within a kind, letters that stand closer come first, then shorter
names. Text in lower case ignores case; with a capital letter in it, case matters.

For a word that matches nothing, `nearest_word` finds the likeliest spelling.

`natural` orders numbers by their value, everything else by its bytes: `deploy:2` comes before `deploy:10` and `page_9`
before `page_10`. Only a run of digits that stands alone is a number: a letter, or a byte beyond ASCII, right before or
after it makes it a part of a word or of an identifier. So ULIDs, hashes and base62 identifiers are in the order of
their bytes, which is the order of their time if they begin with one, and so are whole UUIDs, of which some groups are
all digits. If a number and such an identifier are at the same place, the number comes first, and `7` comes before
`07`. The sort key is one-to-one, so that an order by it is total. A number is written as `0`, NUL, its number of
digits, the digits, and its leading zeros: no other name has a NUL after a `0` at the place of a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import IntEnum
from typing import Final, NamedTuple

from rtui.keyspace.text.segments import HEADER, java_text

MOST_LETTERS_IN: Final = 256
"""The longest name, in bytes, that is searched for letters in order: longer ones contain almost any."""

MOST_SPREAD: Final = 4
"""Letters in order may spread over this many times the length of the text."""


class MatchKind(IntEnum):
    """The kinds of match, from the best to the worst."""

    EXACT = 0
    WHOLE = 1
    """One or more whole parts of the name: `user:7` of `shop:user:7:cart`."""
    START = 2
    PART = 3
    INSIDE = 4
    LETTERS = 5
    """The letters in order, with others between them."""


class Match(NamedTuple):
    """How well a name matches; the smaller of two is the better one."""

    kind: MatchKind
    spread: int
    """The distance from the first matching letter to behind the last, in bytes."""
    length: int
    """The length of the name in bytes."""


class TextMatcher:
    """Matches names with one text."""

    def __init__(self, text: bytes) -> None:
        self.ignores_case = text == text.lower()
        self.text = text
        letters = [re.escape(text[at : at + 1]) for at in range(len(text))]
        in_order = [b"[^" + letter + b"]*" + letter for letter in letters[1:]]
        self._in_order = re.compile(b"".join([*letters[:1], *in_order]))

    def match(self, name: bytes, *, in_order: bool = True) -> Match | None:
        """Return how well a name matches, or None; without `in_order` the text must be in it as a whole."""
        searched = name.lower() if self.ignores_case else name
        text = self.text
        at = searched.find(text)
        if at < 0:
            return self._spread_out(searched) if in_order else None
        kind = MatchKind.EXACT if len(text) == len(name) else MatchKind.INSIDE
        while at >= 0 and kind > MatchKind.WHOLE:
            end = at + len(text)
            if not at or not _is_letter(searched[at - 1]):
                is_whole = end == len(name) or not _is_letter(searched[end]) or not _is_letter(searched[end - 1])
                kind = min(kind, MatchKind.WHOLE if is_whole else MatchKind.PART if at else MatchKind.START)
            at = searched.find(text, at + 1)
        return Match(kind, len(text), len(name))

    def with_letters(self, names: Sequence[bytes]) -> list[bytes]:
        """Return the names that contain the letters in order, however far they are spread."""
        search = self._in_order.search
        if self.ignores_case:
            return [name for name in names if len(name) <= MOST_LETTERS_IN and search(name.lower())]
        return [name for name in names if len(name) <= MOST_LETTERS_IN and search(name)]

    def _spread_out(self, searched: bytes) -> Match | None:
        if len(self.text) < 2 or len(searched) > MOST_LETTERS_IN:
            return None
        best = min((len(found[0]) for found in self._in_order.finditer(searched)), default=None)
        if best is None or best > MOST_SPREAD * len(self.text):
            return None
        return Match(MatchKind.LETTERS, best, len(searched))


def nearest_word(word: str, known: Iterable[str], *, least: float = 0.6) -> str | None:
    """Return the known word that is most like `word`, or None.

    `least` is the least similarity, from 0 to 1: twice the letters in common, in order, by the letters of both.
    """
    return next(iter(get_close_matches(word, known, n=1, cutoff=least)), None)


def edits(one: str, other: str) -> int:
    """Return the number of edits between two words: letters inserted, deleted, replaced or swapped with their
    neighbour.

    `tll` is one edit from `ttl`, `tpye` one from `type` (optimal string alignment).
    """
    before, row = list[int](), list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, last, row = row, before, [at]
        for to, wanted in enumerate(other, 1):
            cost = min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
    return row[-1]


def did_you_mean(word: str, known: Iterable[str], *, least: float = 0.6) -> str:
    """Return a sentence with the nearest word, with a space before it; empty if no word is near."""
    near = nearest_word(word, known, least=least)
    return "" if near is None else f" Did you mean {near}?"


def _is_letter(byte: int) -> bool:
    """Whether a byte is part of a word: a letter, a digit, or part of a character beyond ASCII."""
    return byte >= 0x80 or chr(byte).isalnum()


_ALONE: Final = re.compile(
    rb"(?<![0-9A-Za-z\x80-\xff])(?:"
    rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Za-z\x80-\xff])"
    rb"|([0-9]++)(?![A-Za-z\x80-\xff]))"
)
"""A whole UUID, or, in the group, the digits of a number."""

_ONE_BYTE: Final = 0xFF
"""Lengths from here on are written as this byte and four more."""


def natural(name: bytes) -> bytes:
    """Return a sort key in natural order; a Java-serialised name sorts right behind its text."""
    if name.startswith(HEADER) and (text := java_text(name)) is not None:
        return natural(text) + b"\x000\0\0"
    return _number(name) if name.isdigit() else _ALONE.sub(_sortable, name)


def _sortable(found: re.Match[bytes]) -> bytes:
    digits = found[1]
    return found[0] if digits is None else _number(digits)


def _number(written: bytes) -> bytes:
    digits = written.lstrip(b"0") or b"0"
    zeros = len(written) - len(digits)
    if len(written) < _ONE_BYTE:
        return b"0\0%c%b%c" % (len(digits), digits, zeros)
    return b"".join((b"0\0", _length(len(digits)), digits, _length(zeros)))


def _length(count: int) -> bytes:
    return bytes((count,)) if count < _ONE_BYTE else b"\xff" + count.to_bytes(4, "big")
