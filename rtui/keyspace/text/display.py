r"""Bytes made safe to show, and text with escapes turned back into bytes.

Everything that a server sends (names, values, messages) is hostile until it has passed through `display`,
`display_text` or `quoted`; nothing else in rtui makes text of it. `display` shows two different names differently, as
long as neither is shortened:

* UTF-8 is shown as the characters it encodes, any other byte as `\xNN`; `\xNN` always means a byte.
* Control characters are shown as pictures (`␛ ⏎ ⇥ ␀`), C1 as its bytes. What is invisible, changes the direction of the
  text around it or has no agreed form (bidi, zero width, format, fillers, odd spaces, private, unassigned) is shown as
  `\uNNNN`.
* A combining mark is shown on the letter before it, but only where the result is in Unicode's composed form (NFC), so
  that the two spellings of `é` differ. Any other mark is an escape.
* A space at the end is `␠`. A character that would read as one of these tokens is an escape, and so is a backslash that
  would begin one.

So the key `a\x1b[31m` is shown as `a␛[31m`, and a key that contains the picture itself as `a\u241b[31m`. Letters that
merely look alike, such as Latin a and Cyrillic а, stay as they are. `quoted` tells those apart, too: it writes all
bytes in printable ASCII, for redis-cli. `unescape` reads what users type, with the escapes of both.
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

_COMMON = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02af\u0370-\u0482\u048a-\u052f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*"
)

_UTF8_MAX_BYTES = 4
_ESCAPE_START = re.compile(r"\\(?=x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")

_QUOTED = {byte: chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in range(256)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def is_hidden(character: str) -> bool:
    """Tell whether this one character must not reach a terminal, whatever is around it."""
    return not character.isprintable() or HOSTILE.match(character) is not None


@dataclass(slots=True)
class Display:
    """Makes bytes and text from a server safe to show, in at most `limit` characters.

    Of what is longer, the beginning and the end are shown with `…` between them. The cost depends on the limit, not on
    the length of what is shown.
    """

    ascii_only: bool = False
    r"""Show printable ASCII only: controls as `\xNN`, all other characters beyond ASCII as `\uNNNN`."""

    def name(self, raw: bytes, *, limit: int = DISPLAY_LIMIT) -> SafeText:
        """Show bytes: a key, a field, a value. A limit below 1 leaves nothing."""
        reach = _UTF8_MAX_BYTES * (limit + 1)
        if len(raw) <= 2 * reach:
            return self.text(raw.decode("utf-8", "surrogateescape"), limit=limit, exact=True)
        # A window that breaks a character decodes wrongly only further in than `limit` characters reach.
        beginning, end = (part.decode("utf-8", "surrogateescape") for part in (raw[:reach], raw[-reach:]))
        return self._shortened(beginning, end, limit, exact=True)

    def text(self, text: str, *, limit: int = DISPLAY_LIMIT, exact: bool = False) -> SafeText:
        """Show text from a server that is `str` already: a message, a field of INFO.

        Safe text within it stays as it is, so a message may quote a displayed name; so two texts may look the same.
        With `exact`, characters that read as a token without being one become escapes.
        """
        if len(text) <= limit:
            if _is_plain(text, exact):
                return SafeText(text)
            shown = "".join(self._tokens(text, exact))
            if len(shown) <= limit:
                return SafeText(shown)
        return self._shortened(text, text, limit, exact=exact)

    def _shortened(self, beginning: str, end: str, limit: int, *, exact: bool) -> SafeText:
        """Show as much of the beginning of one text and of the end of another as fits, two to one, no token broken."""
        if limit < 1:
            return SafeText("")
        ellipsis = ("..." if self.ascii_only else "…")[:limit]
        room = (limit - len(ellipsis)) // 3
        tail = self._tokens(end[-room:], exact) if room > 0 else []
        start = len(tail)
        while start > 0 and len(tail[start - 1]) <= room:
            start -= 1
            room -= len(tail[start])
        while start < len(tail) and _is_mark(tail[start][0]):
            start += 1  # A mark without its letter.
        shown_end = ellipsis + "".join(tail[start:])
        room = limit - len(shown_end)
        head = []
        for token in self._tokens(beginning[:room], exact, ends_here=False):
            room -= len(token)
            if room < 0:
                break
            head.append(token)
        return SafeText("".join(head) + shown_end)

    def _tokens(self, text: str, exact: bool, *, ends_here: bool = True) -> list[str]:
        """Return what is shown for each character of a text, in its surroundings."""
        if _is_plain(text, exact):
            return list(text)
        trailing = len(text.rstrip(" ")) if ends_here and exact else len(text)
        backslashes = {match.start() for match in _ESCAPE_START.finditer(text)} if exact else set()
        shown = []
        cluster = ""  # A letter and its marks, onto which the terminal would draw the next mark.
        for index, character in enumerate(text):
            if index >= trailing:
                piece = "\\x20" if self.ascii_only else _SPACE_PICTURE
            elif index in backslashes:
                piece = "\\x5c"
            else:
                piece = _token(character, self.ascii_only, exact)
            if piece == character and not character.isascii():
                is_misplaced = _is_mark(character) and not 0 < len(cluster) <= _MAX_MARKS
                if is_misplaced or not unicodedata.is_normalized("NFC", cluster + character):
                    piece = _escape(character)
            if piece != character:
                cluster = ""
            elif _is_mark(character):
                cluster += character
            else:
                cluster = character if character.isalpha() else ""
            shown.append(piece)
        return shown


def _is_plain(text: str, exact: bool) -> bool:
    """Tell, fast, whether a text is of the usual kind that is shown as it is."""
    usual = text.isascii() and text.isprintable()
    return usual and not (exact and ("\\" in text or text.endswith(" ")))


def is_usual(text: str) -> bool:
    """Tell, fast, whether `display` shows a text as it is: False for some that it does, never True for one it does not.

    It is about the ASCII and the common letters of Europe and East Asia, none of which is drawn onto another one.
    """
    if _is_plain(text, exact=True):
        return True
    is_common = _COMMON.fullmatch(text) is not None and text.isprintable() and "\\" not in text
    return is_common and not text.endswith(" ") and unicodedata.is_normalized("NFC", text)


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
    """Return the escape of a character beyond ASCII: its bytes for invalid UTF-8 and C1, else its code point."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0xA0:
        return "".join(f"\\x{byte:02x}" for byte in character.encode())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _is_mark(character: str) -> bool:
    """Tell whether the terminal draws the character onto the one before it."""
    return unicodedata.category(character).startswith("M")


_UNICODE = Display()

display = _UNICODE.name
"""Show bytes in at most `limit` characters, where the terminal knows Unicode."""

display_text = _UNICODE.text
"""Show text of a server in at most `limit` characters, where the terminal knows Unicode."""


def quoted(raw: bytes) -> SafeText:
    r"""Return all of the bytes in printable ASCII between double quotes, as `redis-cli --quoted-input` reads them."""
    return SafeText(f'"{raw.decode("latin-1").translate(_QUOTED)}"')


_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([nrtab\\\"'])|(.?))", re.DOTALL)
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"\\": b"\\", b'"': b'"', b"'": b"'"}


class EscapeSyntaxError(ValueError):
    """A backslash with something after it that is no escape; the message quotes it."""


def unescape(text: bytes) -> bytes:
    r"""Resolve `\xNN`, `\uNNNN`, `\UNNNNNNNN` (a character as UTF-8), `\n \r \t \a \b`, `\\` and escaped quotes.

    Double quotes around the whole are removed, so that a name copied for `redis-cli --quoted-input` is understood.
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
