r"""The one door from bytes to text: what comes from a server is hostile until it has come through here.

What is shown of bytes keeps two names apart that are not the same, as long as neither is cut:

* UTF-8 is shown as the characters it spells, any other byte as `\xNN`; `\xNN` always means a byte.
* Control characters are shown as pictures (`␛ ⏎ ⇥ ␀`), C1 as its bytes. What is invisible, directs the text around it
  or has no agreed form (bidi, zero width, format, fillers, odd spaces, private, unassigned) is shown as `\uNNNN`.
* A combining mark is shown on the letter before it, but only where the outcome is in Unicode's composed form (NFC), so
  that the two spellings of `é` differ. Any other mark is an escape.
* A space at the end is `␠`. A character that would read as one of these tokens is an escape, and so is a backslash that
  would begin one.

Letters that merely look alike, such as Latin a and Cyrillic а, stay as they are; `quoted` tells them apart.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import NewType

SafeText = NewType("SafeText", str)
"""Text that may go to a terminal: one line without a character of HOSTILE. Not markup: wrap it, never format it in."""

DISPLAY_LIMIT = 512
"""How many characters of a name or value are shown unless a caller asks for another limit."""

HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f-\u11ff\u1680\u17b4\u17b5"
    "\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud7b0-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U0001f3fb-\U0001f3ff\U000e0000-\U0010ffff]"
)
"""Characters that no safe text contains: C0, DEL, C1, every space but U+0020, bidi controls, zero width and format
characters, fillers, variation selectors and skin tones, joining jamo, surrogates, line and paragraph separators,
noncharacters, private use. Unassigned characters are not all listed, since Unicode versions differ in them: `is_hidden`
asks the running one."""

_PICTURES = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {"\n": "⏎", "\t": "⇥", "\x7f": "␡"}
_SPACE_PICTURE = "␠"
_TOKENS = frozenset(_PICTURES.values()) | {_SPACE_PICTURE}

_MAX_MARKS = 4
"""How many marks one letter may carry: enough for Hebrew and Indic scripts, too few to paint over the next line."""

_UTF8_MAX_BYTES = 4
_BACKSLASH_OF_ESCAPE = re.compile(r"\\(?=x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")

_QUOTED = {byte: chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in range(256)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def is_hidden(character: str) -> bool:
    """Tell whether this one character must not reach a terminal, whatever stands around it."""
    return not character.isprintable() or HOSTILE.match(character) is not None


@dataclass(frozen=True, slots=True)
class _Form:
    """How characters become tokens."""

    ascii_only: bool
    """As in `Display`."""

    exact: bool
    """Whether what reads as a token without being one becomes an escape."""

    def show(self, text: str, end: str, limit: int) -> SafeText:
        """Show a text, or where it is too long its beginning and the `end` of it."""
        if len(text) <= limit:
            if self.is_plain(text):
                return SafeText(text)
            shown = "".join(self.pieces(text))
            if len(shown) <= limit:
                return SafeText(shown)
        return self.cut(text, end, limit)

    def cut(self, beginning: str, end: str, limit: int) -> SafeText:
        """Show the beginning of one text and the end of another, two to one, and between them that something is not."""
        if limit < 1:
            return SafeText("")
        mark = ("..." if self.ascii_only else "…")[:limit]
        tail = self.last(end, (limit - len(mark)) // 3)
        return SafeText(self.first(beginning, limit - len(mark) - len(tail)) + mark + tail)

    def first(self, text: str, room: int) -> str:
        """Show as much of the beginning as fits, no token broken."""
        kept = []
        for piece in self.pieces(text[:room], ends_here=False):
            room -= len(piece)
            if room < 0:
                break
            kept.append(piece)
        return "".join(kept)

    def last(self, text: str, room: int) -> str:
        """Show as much of the end as fits, no token broken, no mark without its letter."""
        pieces = self.pieces(text[-room:]) if room > 0 else []
        start = len(pieces)
        while start > 0 and len(pieces[start - 1]) <= room:
            start -= 1
            room -= len(pieces[start])
        while start < len(pieces) and _is_mark(pieces[start][0]):
            start += 1
        return "".join(pieces[start:])

    def pieces(self, text: str, *, ends_here: bool = True) -> list[str]:
        """Return what is shown for each character of a text, in its surroundings."""
        if self.is_plain(text):
            return list(text)
        trailing = len(text.rstrip(" ")) if ends_here and self.exact else len(text)
        backslashes = {match.start() for match in _BACKSLASH_OF_ESCAPE.finditer(text)} if self.exact else set()
        pieces = []
        cluster = ""
        for index, character in enumerate(text):
            if index >= trailing:
                piece = "\\x20" if self.ascii_only else _SPACE_PICTURE
            elif index in backslashes:
                piece = "\\x5c"
            else:
                piece = _token(character, self.ascii_only, self.exact)
            if piece == character and not character.isascii() and not _may_follow(cluster, character):
                piece = _escape(character)
            if piece != character:
                cluster = ""
            elif _is_mark(character):
                cluster += character
            else:
                cluster = character if character.isalpha() else ""
            pieces.append(piece)
        return pieces

    def is_plain(self, text: str) -> bool:
        """Tell, fast, whether a text is of the usual kind that is shown as it is."""
        usual = text.isascii() and text.isprintable()
        return usual and not (self.exact and ("\\" in text or text.endswith(" ")))


def _may_follow(cluster: str, character: str) -> bool:
    """Tell whether a character can be shown as itself behind a letter and its marks, or behind nothing of the kind."""
    if _is_mark(character) and not 0 < len(cluster) <= _MAX_MARKS:
        return False
    return unicodedata.is_normalized("NFC", cluster + character)


@lru_cache(maxsize=4096)
def _token(character: str, ascii_only: bool, exact: bool) -> str:
    """Return what is shown for a character whatever its surroundings: itself, a picture or an escape."""
    picture = _PICTURES.get(character)
    if picture is not None:
        return f"\\x{ord(character):02x}" if ascii_only else picture
    if (exact and character in _TOKENS) or is_hidden(character) or (ascii_only and not character.isascii()):
        return _escape(character)
    return character


def _escape(character: str) -> str:
    """Return the escape of a character beyond ASCII: of a byte that was no UTF-8 and of C1 the bytes, else the code."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0xA0:
        return "".join(f"\\x{byte:02x}" for byte in character.encode())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _is_mark(character: str) -> bool:
    """Tell whether the terminal draws the character onto the one before it."""
    return unicodedata.category(character).startswith("M")


_FORMS = {(ascii_only, exact): _Form(ascii_only, exact) for ascii_only in (False, True) for exact in (False, True)}


@dataclass(frozen=True, slots=True)
class Display:
    """How bytes and foreign text are made safe to show. Nothing shown is longer than `limit` characters; of what would
    be, the beginning and the end are shown, and it costs no more than the limit asks, whatever the length.
    """

    ascii_only: bool = False
    r"""Show printable ASCII only: controls as `\xNN`, all other characters beyond ASCII as `\uNNNN`."""

    def name(self, raw: bytes, *, limit: int = DISPLAY_LIMIT) -> SafeText:
        """Show bytes: a key, a field, a value. A limit below 1 leaves nothing."""
        form = _FORMS[self.ascii_only, True]
        reach = _UTF8_MAX_BYTES * (limit + 1)
        if len(raw) <= 2 * reach:
            text = raw.decode("utf-8", "surrogateescape")
            return form.show(text, text, limit)
        # A window that breaks a character decodes wrongly only further in than `limit` characters reach.
        beginning, end = (part.decode("utf-8", "surrogateescape") for part in (raw[:reach], raw[-reach:]))
        return form.cut(beginning, end, limit)

    def text(self, text: str, *, limit: int = DISPLAY_LIMIT) -> SafeText:
        """Show foreign text that is `str` already: a message, a field of INFO.

        Safe text within it stays as it is, so a message may quote a shown name; in return, two texts may look the same.
        """
        return _FORMS[self.ascii_only, False].show(text, text[-limit - 1 :], limit)


_PLAIN = Display()


def display(raw: bytes, *, limit: int = DISPLAY_LIMIT) -> SafeText:
    """Show bytes in at most `limit` characters, as `Display.name` does where the terminal knows Unicode."""
    return _PLAIN.name(raw, limit=limit)


def display_text(text: str, *, limit: int = DISPLAY_LIMIT) -> SafeText:
    """Show foreign text in at most `limit` characters, as `Display.text` does where the terminal knows Unicode."""
    return _PLAIN.text(text, limit=limit)


def quoted(raw: bytes) -> SafeText:
    r"""Return all of the bytes in printable ASCII between double quotes, as `redis-cli --quoted-input` reads them."""
    return SafeText(f'"{raw.decode("latin-1").translate(_QUOTED)}"')


_ESCAPE = re.compile(
    rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([nrtab\\\"'])|(.?))",
    re.DOTALL,
)
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"\\": b"\\", b'"': b'"', b"'": b"'"}


class EscapeSyntaxError(ValueError):
    """An escape that stands for nothing; the message says which."""


def unescape(text: bytes) -> bytes:
    r"""Resolve `\xNN`, `\uNNNN`, `\UNNNNNNNN` (a character as UTF-8), `\n \r \t \a \b`, `\\` and escaped quotes.

    Double quotes around the whole are taken off, so a name copied for `redis-cli --quoted-input` is understood.
    Raises EscapeSyntaxError for any other backslash.
    """
    if len(text) >= 2 and text.startswith(b'"') and text.endswith(b'"'):
        text = text[1:-1]
    return _ESCAPE.sub(_resolve, text)


def _resolve(match: re.Match[bytes]) -> bytes:
    """Return the bytes that one escape stands for."""
    byte, short_code, long_code, short, _ = match.groups()
    if byte is not None:
        return bytes.fromhex(byte.decode())
    if short is not None:
        return _SHORT[short]
    code = int(short_code or long_code or b"110000", 16)
    try:
        return chr(code).encode()
    except (ValueError, OverflowError):
        raise EscapeSyntaxError(
            f"{match[0].decode('ascii', 'backslashreplace')!r} is no escape: a backslash itself is written twice"
        ) from None
