"""Stand-ins for names: other letters and digits of the same kinds, the same for the same name throughout a recording.

A name is cut into words at everything that is no letter or digit, and `user:{42}:cart` becomes, say, `pkbw:{97}:mtqe`:
separators, hash tags, lengths and kinds stay, so the tree has its shape, keys with one hash tag keep one, and what was
an identifier still is. Each character is replaced by another of its kind, chosen by a secret key and the characters
before it in its word. So words that begin alike still do, and a pattern `us*` still matches what it matched; no
character stays what it was. The secret key is drawn for each recording and written nowhere.
"""

from __future__ import annotations

import re
import secrets
import string
import threading
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import Final
from unicodedata import east_asian_width

_WORD: Final = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9A-Za-z]+|[^\x00-\x7f]+",
)
_HEX: Final = re.compile(r"(?=[a-fA-F-]*[0-9])(?:[0-9a-f-]{8,}|[0-9A-F-]{8,})")
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-7][0-9a-hjkmnp-tv-z]{25}")
_CROCKFORD: Final = "ABCDEFGHJKMNPQRSTVWXYZ"

NARROW: Final = "".join(map(chr, (*range(0x0100, 0x0180), *range(0x0400, 0x0482))))
WIDE: Final = "".join(map(chr, range(0x4E00, 0x9000)))
"""What stands for letters beyond ASCII, of one cell and of two."""

_KINDS: Final = {
    "plain": (string.digits, string.ascii_lowercase, string.ascii_uppercase),
    "hex": (string.digits, "abcdef", "ABCDEF"),
    "ulid": (string.digits, _CROCKFORD.lower(), _CROCKFORD),
}
_OCTAL: Final = "01234567"
_BYTES: Final = "".join(map(chr, range(0xDC80, 0xDD00)))
"""Bytes that are no UTF-8, as `surrogateescape` decodes them."""


MAX_BLANK_BYTES: Final = 256
"""A longer text is cut."""


def blank(text: bytes) -> bytes:
    """Return what stands for a value."""
    return b"x" * min(len(text), MAX_BLANK_BYTES)


class StandIns:
    """Replaces names, each by the same one every time."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret
        self._order = lru_cache(100_000)(self._new_order)
        self._lock = threading.Lock()
        self._places: dict[str, dict[str, str]] = {}
        self._words = lru_cache(100_000)(self._new_word)

    def name(self, name: bytes) -> bytes:
        """Return what stands for a name, or for a pattern or a part of one."""
        return self.text(name.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        """Return what stands for a typed text."""
        return _WORD.sub(lambda found: self._words(found[0]), text)

    def typed(self, before: str, character: str) -> str:
        """Return what stands for a character that is typed behind a text."""
        return self.text(before + character)[-1:] or character

    def _new_word(self, word: str) -> str:
        kind = "plain"
        if _ULID.fullmatch(word):
            kind = "ulid"
        elif _HEX.fullmatch(word) or "-" in word:
            kind = "hex"
        return "".join(self._other(kind, word[:at], character) for at, character in enumerate(word))

    def _other(self, kind: str, before: str, character: str) -> str:
        """Return what stands for a character of a word."""
        if character == "-":
            return character
        if kind == "ulid" and not before:
            alphabet = _OCTAL
        elif character.isascii():
            alphabet = next(one for one in _KINDS[kind] if character in one or one is _KINDS[kind][-1])
        elif "\udc80" <= character <= "\udcff":
            return self._free(before, character, _BYTES)
        else:
            return self._free(before, character, WIDE if east_asian_width(character) in "WF" else NARROW)
        if character not in alphabet:
            alphabet = _KINDS["plain"][1 if character.islower() else 2]
        order = self._order(kind, before, alphabet)
        return order[alphabet.index(character)]

    def _free(self, before: str, character: str, others: str) -> str:
        """Return one of many characters that stands for no other in this place, as long as there is one."""
        with self._lock:
            return self._new_place(before, character, others)

    def _new_place(self, before: str, character: str, others: str) -> str:
        places = self._places.setdefault(before, {})
        if character not in places:
            taken, start = set(places.values()), self._number(before, character)
            candidates = (others[(start + step) % len(others)] for step in range(len(others)))
            places[character] = next((one for one in candidates if one != character and one not in taken), others[0])
        return places[character]

    def _number(self, before: str, character: str) -> int:
        text = f"{before}\0{character}".encode("utf-8", "surrogateescape")
        return int.from_bytes(blake2b(text, key=self._secret, digest_size=8).digest())

    def _new_order(self, kind: str, before: str, alphabet: str) -> str:
        """Return the alphabet in another order, in which no character has kept its place: one cycle (Sattolo)."""
        rng, order = Random(self._number(f"{kind}\0{before}", alphabet)), list(alphabet)
        for last in range(len(order) - 1, 0, -1):
            other = rng.randrange(last)
            order[last], order[other] = order[other], order[last]
        return "".join(order)
