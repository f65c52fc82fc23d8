"""How well a name matches what somebody typed to find it: the beginning of a part, anything inside, letters in order.

`us` is the beginning of a part of `shop:user:1`, inside `status`, and its letters are in order in `queue:sizes`.
A better kind of match always comes before a worse one. Within a kind, letters that stand closer come first, then
shorter names. Text in lower case matches both cases; with a capital letter in it, it matches only as it is written.

For a word that matches nothing, `nearest_word` finds the one that was probably meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import IntEnum
from typing import Final, NamedTuple

MOST_LETTERS_IN: Final = 256
"""Letters in order are looked for in names of at most so many bytes: elsewhere they are found in almost anything."""

MOST_SPREAD: Final = 4
"""Letters in order may be spread over so many times their number of bytes."""


class MatchKind(IntEnum):
    """From the best to the worst."""

    EXACT = 0
    WHOLE = 1
    """One or more whole parts of the name: `user:7` of `shop:user:7:cart`."""
    START = 2
    """The beginning of the name."""
    PART = 3
    """The beginning of a part of it."""
    INSIDE = 4
    LETTERS = 5
    """Its letters are there in order, with others between them."""


class Match(NamedTuple):
    """How well a name matches; of two, the smaller is the better one."""

    kind: MatchKind
    spread: int
    """Bytes from the first letter that matches to the last one."""
    length: int
    """Bytes of the name."""


class Matcher:
    """Matches names with one text."""

    def __init__(self, text: bytes) -> None:
        self.ignores_case = text == text.lower()
        self.text = text
        letters = [re.escape(text[at : at + 1]) for at in range(len(text))]
        in_order = [b"[^" + letter + b"]*" + letter for letter in letters[1:]]
        self._in_order = re.compile(b"".join([*letters[:1], *in_order]))

    def match(self, name: bytes, *, in_order: bool = True) -> Match | None:
        """Return how well a name matches, None where it does not; without `in_order` the text must be in it whole."""
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
        """Return the names that have the letters in order, without a look at how far they are spread."""
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
    """Return the known word that is most like another one; None where none is alike enough.

    `least` is how much alike they must be, from 0 to 1: twice the letters in common, in order, by the letters of both.
    """
    return next(iter(get_close_matches(word, known, n=1, cutoff=least)), None)


def edits(one: str, other: str) -> int:
    """Return how many letters have to be put in, left out, replaced or swapped with their neighbour to get the other.

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
    """Return the sentence that asks for the nearest word, with a space before it; nothing where there is none."""
    near = nearest_word(word, known, least=least)
    return "" if near is None else f" Did you mean {near}?"


def _is_letter(byte: int) -> bool:
    """Return whether a byte is a part of a word: a letter, a digit, or of a character beyond ASCII."""
    return byte >= 0x80 or chr(byte).isalnum()
