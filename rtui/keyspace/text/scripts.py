"""Names whose letters are of several scripts, such as `pаypal` with a Cyrillic а, which looks like another name.

After the restriction level "highly restrictive" of Unicode's UTS 39: a segment may have letters of one script, or of
Latin together with those of Japanese, Chinese or Korean. The script of a letter is the first word of its Unicode name;
digits, punctuation and signs belong to all. `-` and `_` do not end a segment here, other ASCII punctuation does.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final

from rtui.keyspace.text.display import SafeText

LONGEST: Final = 512
"""The number of leading bytes of a name that are checked."""

_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
_SAME: Final = {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "KATAKANA-HIRAGANA": "KATAKANA"}
_COMMON: Final = frozenset({"MODIFIER", "MATHEMATICAL", "MICRO", "OHM", "KELVIN", "ANGSTROM", "FEMININE", "MASCULINE"})
_SPLIT: Final = re.compile(r"[\x00-\x2c./:-@\[-^`{-\x7f]+")

MOST_NAMED: Final = 3
"""The most letters named in a note."""


@lru_cache(maxsize=2048)
def _script(letter: str) -> str | None:
    """Return the script of a letter; None for characters of all scripts."""
    if not unicodedata.category(letter).startswith("L"):
        return None
    word = unicodedata.name(letter, "").partition(" ")[0]
    return None if not word or word in _COMMON else _SAME.get(word, word)


def mixed_letters(name: bytes) -> list[str]:
    """Return letters of scripts that a segment must not mix with its main script; empty for most names."""
    if name.isascii():
        return []
    found: dict[str, None] = {}
    for segment in _SPLIT.split(name[:LONGEST].decode("utf-8", "ignore")):
        scripts = Counter(script for letter in segment if (script := _script(letter)) is not None)
        if len(scripts) < 2 or any(scripts.keys() <= together for together in _TOGETHER):
            continue
        usual = max(scripts, key=lambda one: (scripts[one], one == "LATIN"))
        found.update((letter, None) for letter in segment if _script(letter) not in (None, usual))
    return list(found)


def mixed_note(name: bytes) -> SafeText | None:
    """Return a note with the letters of foreign scripts in a name; None if its scripts may be mixed."""
    letters = mixed_letters(name)
    if not letters:
        return None
    shown = [f"U+{ord(letter):04X} {unicodedata.name(letter, '').lower()}" for letter in letters[:MOST_NAMED]]
    more = f" and {len(letters) - MOST_NAMED} more" if len(letters) > MOST_NAMED else ""
    return SafeText(f"mixes scripts: {', '.join(shown)}{more}")
