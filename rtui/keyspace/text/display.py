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
* The header of a name that Java has serialised, see `segments`, is `⛾`.
* A space at the end is `␠`. A character that would read as one of these tokens is an escape, and so is a backslash that
  would begin one.

So the key `a\x1b[31m` is shown as `a␛[31m`, and a key that contains the picture itself as `a\u241b[31m`. Letters that
merely look alike, such as Latin a and Cyrillic а, stay as they are.

In values text is to be read, not to be told apart: there `Display.value` shows emoji that are sequences and all letters
with up to four marks as they are, and a backslash as it is, since escapes are marked by their style.

`quoted` tells look-alikes apart, too: it writes all bytes in printable ASCII, for redis-cli. `unescape` reads what
users type, with the escapes of both.

`mixed_note` notes names whose letters are of several scripts, such as `pаypal` with a Cyrillic а, after the
restriction level "highly restrictive" of Unicode's UTS 39: a segment may have letters of one script, or of Latin
together with those of Japanese, Chinese or Korean. The script of a letter is the first word of its Unicode name;
digits, punctuation and signs belong to all. `-` and `_` do not end a segment here, other ASCII punctuation does.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, NewType

from rtui.keyspace.text.segments import ASCII_SIGN, BEGINNING, HEADER, MARK, SIGN, java_text

SafeText = NewType("SafeText", str)
"""Text that may go to a terminal: one line without a character of HOSTILE. Not markup: wrap it, never format it in."""

DISPLAY_LIMIT = 512
"""The default for the most characters of a name or value that are shown."""

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

_TONES = "\U0001f3fb-\U0001f3ff"
_NARROW_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u2328\u23cf\u23ed-\u23ef\u23f1\u23f2\u23f8-\u23fa\u24c2"
    "\u25aa\u25ab\u25b6\u25c0\u25fb\u25fc\u2600-\u2604\u260e\u2611\u2618\u261d\u2620\u2622\u2623\u2626\u262a\u262e\u262f"
    "\u2638-\u263a\u2640\u2642\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e\u2692\u2694-\u2697\u2699\u269b\u269c\u26a0"
    "\u26a7\u26b0\u26b1\u26c8\u26cf\u26d1\u26d3\u26e9\u26f0\u26f1\u26f4\u26f7-\u26f9\u2702\u2708\u2709\u270c\u270d\u270f"
    "\u2712\u2714\u2716\u271d\u2721\u2733\u2734\u2744\u2747\u2763\u2764\u27a1\u2934\u2935\u2b05-\u2b07\U0001f170\U0001f171"
    "\U0001f17e\U0001f17f\U0001f321\U0001f324-\U0001f32c\U0001f336\U0001f37d\U0001f396\U0001f397\U0001f399-\U0001f39b"
    "\U0001f39e\U0001f39f\U0001f3cb-\U0001f3ce\U0001f3d4-\U0001f3df\U0001f3f3\U0001f3f5\U0001f3f7\U0001f43f\U0001f441\U0001f4fd"
    "\U0001f549\U0001f54a\U0001f56f\U0001f570\U0001f573-\U0001f579\U0001f587\U0001f58a-\U0001f58d\U0001f590\U0001f5a5\U0001f5a8"
    "\U0001f5b1\U0001f5b2\U0001f5bc\U0001f5c2-\U0001f5c4\U0001f5d1-\U0001f5d3\U0001f5dc-\U0001f5de\U0001f5e1\U0001f5e3\U0001f5e8"
    "\U0001f5ef\U0001f5f3\U0001f5fa\U0001f6cb\U0001f6cd-\U0001f6cf\U0001f6e0-\U0001f6e5\U0001f6e9\U0001f6f0\U0001f6f3"
)
"""Emoji one cell wide, two with the variation selector for emoji (emoji-variation-sequences.txt of Unicode)."""
_WIDE_EMOJI = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab\u26bd\u26be"
    "\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c\u274e\u2753-\u2755\u2757"
    "\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f004\U0001f0cf\U0001f300-\U0001f320\U0001f32d-\U0001f335"
    "\U0001f337-\U0001f37c\U0001f37e-\U0001f393\U0001f3a0-\U0001f3ca\U0001f3cf-\U0001f3d3\U0001f3e0-\U0001f3f0\U0001f3f4"
    "\U0001f3f8-\U0001f3fa\U0001f400-\U0001f43e\U0001f440\U0001f442-\U0001f4fc\U0001f4ff-\U0001f53d\U0001f54b-\U0001f54e"
    "\U0001f550-\U0001f567\U0001f57a\U0001f595\U0001f596\U0001f5a4\U0001f5fb-\U0001f64f\U0001f680-\U0001f6c5\U0001f6cc"
    "\U0001f6d0-\U0001f6d2\U0001f6d5-\U0001f6d7\U0001f6dd-\U0001f6df\U0001f6eb\U0001f6ec\U0001f6f4-\U0001f6fc"
    "\U0001f7e0-\U0001f7eb\U0001f7f0\U0001f90c-\U0001f93a\U0001f93c-\U0001f945\U0001f947-\U0001f9ff\U0001fa70-\U0001faff"
)
_TONED = (
    "\u270a\u270b\U0001f385\U0001f3c2-\U0001f3c4\U0001f3c7\U0001f3ca\U0001f442\U0001f443\U0001f446-\U0001f450"
    "\U0001f466-\U0001f478\U0001f47c\U0001f481-\U0001f483\U0001f485-\U0001f487\U0001f48f\U0001f491\U0001f4aa\U0001f57a"
    "\U0001f595\U0001f596\U0001f645-\U0001f647\U0001f64b-\U0001f64f\U0001f6a3\U0001f6b4-\U0001f6b6\U0001f6c0\U0001f6cc"
    "\U0001f90c\U0001f90f\U0001f918-\U0001f91f\U0001f926\U0001f930-\U0001f939\U0001f93c-\U0001f93e\U0001f977\U0001f9b5"
    "\U0001f9b6\U0001f9b8\U0001f9b9\U0001f9bb\U0001f9cd-\U0001f9cf\U0001f9d1-\U0001f9dd\U0001fac3-\U0001fac5\U0001faf0-\U0001faf8"
)
"""Emoji two cells wide that a skin tone may follow."""
_JOINED = f"\u200d[{_NARROW_EMOJI}{_WIDE_EMOJI}][{_TONES}]?\ufe0f?"
_EMOJI = re.compile(
    f"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{{3,6}}\U000e007f|[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f\u20e3"
    f"|[{_NARROW_EMOJI}]\ufe0e|[\u26f9\U0001f3cb\U0001f3cc\U0001f575][{_TONES}]\u200d[{_NARROW_EMOJI}]\ufe0f"
    f"|(?:[{_TONED}][{_TONES}]|[{_NARROW_EMOJI}]\ufe0f|[{_WIDE_EMOJI}]\ufe0f?)(?:{_JOINED}){{0,9}}"
)
"""A sequence of characters that is drawn as one emoji, or a single emoji two cells wide."""
_JAMO = re.compile("[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?")
"""A syllable of Hangul in its letters."""
_NON_JOINER = re.compile("(?<=[\u0620-\u0dff])\u200c(?=[\u0620-\u0dff])")
"""A zero-width non-joiner between letters of Arabic and Indic scripts."""
_DRAWN_TOGETHER = re.compile(f"{_EMOJI.pattern}|{_JAMO.pattern}|{_NON_JOINER.pattern}")

_PICTURES = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {"\n": "⏎", "\t": "⇥", "\x7f": "␡"}
_SPACE_PICTURE = "␠"
_TOKENS = frozenset(_PICTURES.values()) | {_SPACE_PICTURE, SIGN}

_VIRAMA = 9
"""The combining class of a virama, which joins two consonants."""

_MAX_MARKS = 4
"""The most marks on one letter: enough for Hebrew and Indic scripts, too few to paint over the next line."""

_COMMON = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02af\u0370-\u0482\u048a-\u052f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*"
)

_UTF8_MAX_BYTES = 4
_ESCAPE_START = re.compile(r"\\(?=x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|J)")

_QUOTED = {byte: chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in range(256)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def is_hidden(character: str) -> bool:
    """Whether this single character must not reach a terminal, whatever is around it."""
    return not character.isprintable() or HOSTILE.match(character) is not None


def without_hostile(text: str, stand_in: Callable[[str], str] = lambda character: "") -> str:
    """Replace each character of HOSTILE with a stand-in, except within sequences that are drawn as one."""
    if not HOSTILE.search(text):
        return text
    shown, at = [], 0
    for match in _DRAWN_TOGETHER.finditer(text):
        shown += [HOSTILE.sub(lambda found: stand_in(found[0]), text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*shown, HOSTILE.sub(lambda found: stand_in(found[0]), text[at:])])


class DisplayedPiece(NamedTuple):
    """An unbreakable unit of a displayed value: a character with its marks, or an escape, which is styled."""

    text: SafeText
    is_escape: bool = False


@dataclass(slots=True)
class Display:
    """Makes bytes and text from a server safe to show, in at most `limit` characters.

    Longer text is shortened to its beginning and end with `…` between them. The cost depends on the limit, not on the
    length of the text.
    """

    ascii_only: bool = False
    r"""Show printable ASCII only: controls as `\xNN`, all other characters beyond ASCII as `\uNNNN`."""

    def name(self, raw: bytes, *, limit: int = DISPLAY_LIMIT) -> SafeText:
        """Show bytes: a key, a field, a value. A limit below 1 gives an empty text."""
        if raw.startswith(HEADER) and (text := _java_text(raw)) is not None:
            sign = ASCII_SIGN if self.ascii_only else SIGN
            return SafeText(
                sign + self.name(text, limit=limit - len(sign)) if limit > len(sign) else sign[: max(0, limit)]
            )
        reach = _UTF8_MAX_BYTES * (limit + 1)
        if len(raw) <= 2 * reach:
            return self.text(raw.decode("utf-8", "surrogateescape"), limit=limit, exact=True)
        # A window that breaks a character decodes wrongly only further in than `limit` characters reach.
        beginning, end = (part.decode("utf-8", "surrogateescape") for part in (raw[:reach], raw[-reach:]))
        return self._shortened(beginning, end, limit, exact=True)

    def text(self, text: str, *, limit: int = DISPLAY_LIMIT, exact: bool = False) -> SafeText:
        """Show text from a server that is `str` already: a message, a field of INFO.

        Safe text within it stays unchanged, so that a message may quote a displayed name; hence two texts may look the
        same. With `exact`, characters that would read as a token without being one become escapes.
        """
        if len(text) <= limit:
            if _is_plain(text, exact):
                return SafeText(text)
            shown = "".join(self._tokens(text, exact))
            if len(shown) <= limit:
                return SafeText(shown)
        return self._shortened(text, text, limit, exact=exact)

    def value(self, raw: bytes, *, limit: int = DISPLAY_LIMIT) -> list[DisplayedPiece]:
        """Show bytes of a value: readable text as it is, everything unsafe for a terminal as marked escapes.

        A backslash stays one. Pieces must not be broken: an emoji, a letter with its marks, an escape.
        """
        reach = _UTF8_MAX_BYTES * (limit + 1)
        if len(raw) <= 2 * reach:
            return self.value_text(raw.decode("utf-8", "surrogateescape"), limit=limit, marks_end=True)
        beginning, end = (part.decode("utf-8", "surrogateescape") for part in (raw[:reach], raw[-reach:]))
        return self._shortened_value(beginning, end, limit, marks_end=True)

    def value_text(self, text: str, *, limit: int = DISPLAY_LIMIT, marks_end: bool = False) -> list[DisplayedPiece]:
        """Show text of a value; with `marks_end` trailing spaces are pictures."""
        if len(text) <= limit:
            found = self._pieces(text, marks_end=marks_end)
            if sum(len(piece.text) for piece in found) <= limit:
                return found
        return self._shortened_value(text, text, limit, marks_end=marks_end)

    def _shortened_value(self, beginning: str, end: str, limit: int, *, marks_end: bool) -> list[DisplayedPiece]:
        """Shorten to as much of `beginning` and of `end` as fits, two to one."""
        if limit < 1:
            return []
        ellipsis = DisplayedPiece(SafeText(("..." if self.ascii_only else "…")[:limit]), is_escape=True)
        room = limit - len(ellipsis.text)
        tail = _fitting(reversed(self._pieces(end[-room:] if room else "", marks_end=marks_end)), room // 3)[::-1]
        room -= sum(len(piece.text) for piece in tail)
        return [*_fitting(self._pieces(beginning[:room], marks_end=False), room), ellipsis, *tail]

    def _pieces(self, text: str, *, marks_end: bool) -> list[DisplayedPiece]:
        trailing = len(text.rstrip(" ")) if marks_end else len(text)
        if text.isascii() and text.isprintable() and trailing == len(text):
            return [DisplayedPiece(SafeText(character)) for character in text]
        found: list[DisplayedPiece] = []
        at = 0
        while at < len(text):
            if at >= trailing:
                found.append(DisplayedPiece(SafeText("\\x20" if self.ascii_only else _SPACE_PICTURE), is_escape=True))
                at += 1
                continue
            end = at + 1 if self.ascii_only else _end_of_piece(text, at)
            if end > at + 1:
                found.append(DisplayedPiece(SafeText(text[at:end])))
            else:
                character = text[at]
                is_alone = _is_mark(character) or "\U0001f1e6" <= character <= "\U0001f1ff"
                shown = _escape(character) if is_alone else _token(character, self.ascii_only, False)
                found.append(DisplayedPiece(SafeText(shown), is_escape=shown != character))
            at = end
        return found

    def _shortened(self, beginning: str, end: str, limit: int, *, exact: bool) -> SafeText:
        """Shorten to as much of `beginning` and of `end` as fits, two to one, without breaking a token."""
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
        """Return the displayed token for each character of a text, in its context."""
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


def _fitting(pieces: Iterable[DisplayedPiece], room: int) -> list[DisplayedPiece]:
    found = []
    for piece in pieces:
        room -= len(piece.text)
        if room < 0:
            break
        found.append(piece)
    return found


def _end_of_piece(text: str, start: int) -> int:
    end = start + 1
    following = text[end : end + 1]
    if following.isascii() and not following > "~":
        return end
    match = _EMOJI.match(text, start) or _JAMO.match(text, start)
    if match is not None and all(ch.isprintable() or HOSTILE.match(ch) for ch in match[0]):
        return match.end()
    if not text[start].isalpha() or is_hidden(text[start]):
        return end
    while end < min(len(text), start + 1 + _MAX_MARKS) and _is_mark(text[end]) and not is_hidden(text[end]):
        end += 1
    if _NON_JOINER.match(text, end) and _may_join(text, end):
        end += 1
    return end


def _may_join(text: str, at: int) -> bool:
    """Whether the zero-width non-joiner here has a meaning: after a virama, or between two letters that would join."""
    after = text[at + 1]
    if not after.isalpha() or is_hidden(after):
        return False
    before = next((one for one in reversed(text[max(0, at - _MAX_MARKS - 1) : at]) if not _is_mark(one)), "")
    are_joining = before != "" and {unicodedata.bidirectional(character) for character in (before, after)} == {"AL"}
    return unicodedata.combining(text[at - 1]) == _VIRAMA or are_joining


def _java_text(name: bytes) -> bytes | None:
    """Return the text of a Java-serialised name, given as raw name or in split form."""
    text = java_text(name)
    if text is None and name.startswith(MARK):
        return name[BEGINNING:]
    return text


def _is_plain(text: str, exact: bool) -> bool:
    """Whether a text is printable ASCII that is shown unchanged; fast."""
    usual = text.isascii() and text.isprintable()
    return usual and not (exact and ("\\" in text or text.endswith(" ")))


def is_usual(text: str) -> bool:
    """Whether `display` certainly shows a text unchanged: fast; False for some unchanged texts, never True for a
    changed one.

    It covers ASCII and the common letters of Europe and East Asia, none of which combines with another.
    """
    if _is_plain(text, exact=True):
        return True
    is_common = _COMMON.fullmatch(text) is not None and text.isprintable() and "\\" not in text
    return is_common and not text.endswith(" ") and unicodedata.is_normalized("NFC", text)


@lru_cache(maxsize=4096)
def _token(character: str, ascii_only: bool, exact: bool) -> str:
    """Return the displayed form of a character regardless of context: itself, a picture or an escape."""
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
    return unicodedata.category(character).startswith("M")


_UNICODE = Display()

display = _UNICODE.name
"""Show bytes in at most `limit` characters, for a terminal with Unicode."""

display_text = _UNICODE.text
"""Show text from a server in at most `limit` characters, for a terminal with Unicode."""


def quoted(raw: bytes) -> SafeText:
    r"""Return all of the bytes in printable ASCII between double quotes, as `redis-cli --quoted-input` reads them."""
    return SafeText(f'"{raw.decode("latin-1").translate(_QUOTED)}"')


_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([nrtab\\\"'])|(.?))", re.DOTALL)
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"\\": b"\\", b'"': b'"', b"'": b"'"}


class EscapeSyntaxError(ValueError):
    """A backslash that does not begin an escape; the message quotes it."""


def unescape(text: bytes) -> bytes:
    r"""Resolve `\xNN`, `\uNNNN`, `\UNNNNNNNN` (a character as UTF-8), `\n \r \t \a \b`, `\\` and escaped quotes.

    Double quotes around the whole are removed, so that a name copied for `redis-cli --quoted-input` is understood.
    Raises EscapeSyntaxError for any other backslash.
    """
    if len(text) >= 2 and text.startswith(b'"') and text.endswith(b'"'):
        text = text[1:-1]
    return _ESCAPE.sub(_resolve, text)


def _resolve(match: re.Match[bytes]) -> bytes:
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


LONGEST: Final = 512
"""The number of leading bytes of a name that are checked."""

_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
_SAME: Final = {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "KATAKANA-HIRAGANA": "KATAKANA"}
_SCRIPTLESS: Final = frozenset(
    {"MODIFIER", "MATHEMATICAL", "MICRO", "OHM", "KELVIN", "ANGSTROM", "FEMININE", "MASCULINE"}
)
_SPLIT: Final = re.compile(r"[\x00-\x2c./:-@\[-^`{-\x7f]+")

MOST_NAMED: Final = 3
"""The most letters named in a note."""


@lru_cache(maxsize=2048)
def _script(letter: str) -> str | None:
    """Return the script of a letter; None for characters of all scripts."""
    if not unicodedata.category(letter).startswith("L"):
        return None
    word = unicodedata.name(letter, "").partition(" ")[0]
    return None if not word or word in _SCRIPTLESS else _SAME.get(word, word)


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
