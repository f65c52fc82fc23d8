"""Words in names: their styles, and abbreviations among them.

`userProfile`, `user_profile` and `UserProfile` are the words `user` and `profile`. A word is an abbreviation if it has
no vowel (`prd`, `jwt`), or the consonants of a full word of the glossary without being it (`sessn` for `session`). The
glossary lists the allowed abbreviations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntFlag
from typing import Final


class Style(IntFlag):
    """How the words of a name are joined; names of one short word have several styles."""

    LOWER = 1
    """No capital letters."""
    CAMEL = 2
    PASCAL = 4
    SNAKE = 8
    KEBAB = 16
    UPPER = 32
    """No small letters."""


STYLES: Final[dict[str, Style]] = {
    "lower": Style.LOWER,
    "camel": Style.CAMEL,
    "pascal": Style.PASCAL,
    "snake": Style.SNAKE,
    "kebab": Style.KEBAB,
    "upper": Style.UPPER,
}
"""The styles by their names in registries."""

ALL_STYLES: Final = Style(63)

_EXPRESSIONS: Final = (
    (Style.LOWER, re.compile(rb"[^A-Z]*").fullmatch),
    (Style.CAMEL, re.compile(rb"[a-z][A-Za-z0-9]*").fullmatch),
    (Style.PASCAL, re.compile(rb"[A-Z](?:[A-Za-z0-9]*[a-z][A-Za-z0-9]*)?").fullmatch),
    (Style.SNAKE, re.compile(rb"[a-z0-9]+(?:_[a-z0-9]+)*").fullmatch),
    (Style.KEBAB, re.compile(rb"[a-z0-9]+(?:-[a-z0-9]+)*").fullmatch),
    (Style.UPPER, re.compile(rb"[^a-z]*").fullmatch),
)


def styles_of(name: bytes) -> Style:
    """Return the styles in which a name may be written; all of them for one without ASCII letters."""
    if not any(65 <= byte <= 90 or 97 <= byte <= 122 for byte in name):
        return ALL_STYLES
    found = Style(0)
    for style, fits in _EXPRESSIONS:
        if fits(name):
            found |= style
    return found


_WORD: Final = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: bytes) -> list[bytes]:
    """Return the words of a name in lower case: the letters between capitals, digits and other characters."""
    return [word.lower() for word in _WORD.findall(name)]


_VOWELS: Final = b"aeiouy"
LONGEST_ABBREVIATION: Final = 6
"""A longer word without a vowel is a code."""


class Glossary:
    """The abbreviations that a team allows."""

    def __init__(self, words: Iterable[tuple[bytes, bytes]]) -> None:
        """`words`: abbreviations, each with its full form."""
        pairs = [(short.lower(), full.lower()) for short, full in words]
        self.allowed = frozenset(short for short, _ in pairs)
        self._full = frozenset(word for _, full in pairs for word in full.split())
        self._skeletons = frozenset(word.translate(None, _VOWELS) for word in self._full if len(word) > 3)

    def is_foreign(self, word: bytes) -> bool:
        """Whether a word, in lower case, is an abbreviation that is not allowed."""
        if len(word) < 2 or word in self.allowed or word in self._full:
            return False
        skeleton = word.translate(None, _VOWELS)
        if skeleton == word:
            return len(word) <= LONGEST_ABBREVIATION
        is_plural = word.rstrip(b"s") in self._full or (word.endswith(b"ies") and word[:-3] + b"y" in self._full)
        return skeleton in self._skeletons and not is_plural
