"""Text or not: whether a window of bytes is worth showing as characters."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import Final, NoReturn

TEXT_CONTROLS: Final = b"\t\n\r\x1b"
"""Control characters that occur in text: white space, and the escape of coloured logs."""

MAX_CONTROL_SHARE: Final = 0.02
"""How much of a text may be other control characters."""

_CONTROLS: Final = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in TEXT_CONTROLS)
_MAX_CONTINUATIONS: Final = 3


def is_text(window: bytes, *, cut_before: bool = False, cut_after: bool = False) -> bool:
    """Whether a window is UTF-8 with next to no control characters; an end marked as cut may cut a character."""
    data = _without_continuations(window) if cut_before else window
    try:
        codecs.utf_8_decode(data, "strict", not cut_after)
    except UnicodeDecodeError:
        return False
    controls = len(data) - len(data.translate(None, _CONTROLS))
    return controls <= MAX_CONTROL_SHARE * len(data)


def whole_characters(window: bytes) -> bytes:
    """Drop the beginning of a character that ends after the window; never drops everything."""
    for size in range(1, min(len(window), _MAX_CONTINUATIONS + 1)):
        lead = window[-size]
        if lead & 0xC0 != 0x80:
            needs = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return window[:-size] if needs > size else window
    return window


def _without_continuations(window: bytes) -> bytes:
    """Drop the rest of a character that began before the window."""
    start = 0
    while start < min(len(window), _MAX_CONTINUATIONS) and window[start] & 0xC0 == 0x80:
        start += 1
    return window[start:]


_SIGNATURES: Final = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "an LZ4 frame"),
    (b"\xff\x06\x00\x00sNaPpY", "framed snappy"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x78\x9c", "zlib"),
    (b"\x78\xda", "zlib"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\xac\xed\x00\x05", "a serialised Java object"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
)
"""Beginnings, the longer ones before shorter ones of the same bytes, and what begins so."""


def signature_of(head: bytes) -> str | None:
    """Name what begins with these bytes; None when nothing known does."""
    return next((name for start, name in _SIGNATURES if head.startswith(start)), None)


ROW_BYTES: Final = 16
"""Bytes a row."""

_PRINTABLE: Final = bytes(byte if 0x20 <= byte < 0x7F else ord(".") for byte in range(256))


@dataclass(frozen=True, slots=True)
class HexRow:
    """Up to 16 bytes and where they lie; everything it says is printable ASCII."""

    offset_bytes: int
    data: bytes

    @property
    def hexadecimal(self) -> str:
        """The bytes in hex, two groups of eight, padded to the width of a full row."""
        left, right = self.data[:8].hex(" "), self.data[8:].hex(" ")
        return f"{left:<23}  {right:<23}"

    @property
    def characters(self) -> str:
        """The bytes as ASCII, a dot for what can't be printed."""
        return self.data.translate(_PRINTABLE).decode("ascii")

    def __str__(self) -> str:
        return f"{self.offset_bytes:08x}  {self.hexadecimal}  {self.characters}"


def hex_rows(window: bytes, offset_bytes: int = 0) -> tuple[HexRow, ...]:
    """Cut a window that begins at `offset_bytes` of the value into rows."""
    return tuple(HexRow(offset_bytes + at, window[at : at + ROW_BYTES]) for at in range(0, len(window), ROW_BYTES))


MAX_JSON_BYTES: Final = 64 * 1024
"""Longest text that is laid out: what one window of a string can hold."""

MAX_LINES: Final = 5_000
"""Lines after which the layout ends; the rest is left to the raw window."""

MAX_INDENT: Final = 32
"""Levels after which deeper ones are no longer indented further."""

INDENT: Final = b"  "
"""What a level adds in front of a line."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_OPENING: Final = frozenset((b"{", b"["))
_CLOSING: Final = frozenset((b"}", b"]"))


def starts_like_json(head: bytes) -> bool:
    """Whether the beginning of a value may be that of a JSON object or array."""
    return head.lstrip(b" \t\r\n")[:1] in (b"{", b"[")


def json_lines(data: bytes) -> tuple[bytes, ...] | None:
    """Lay out a whole JSON object or array, a member a line; None when it is not one or is larger than 64 KiB.

    Numbers stay as they are written, members that occur twice stay both: the text is checked, then only spaced anew.
    """
    if len(data) > MAX_JSON_BYTES or not starts_like_json(data) or not _is_json(data):
        return None
    return _laid_out(_TOKEN.findall(data))


def _is_json(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _laid_out(tokens: list[bytes]) -> tuple[bytes, ...]:
    lines: list[bytes] = []
    line, depth = b"", 0
    for index, token in enumerate(tokens):
        if token in _OPENING:
            line += token
            if tokens[index + 1] in _CLOSING:
                continue
            depth += 1
        elif token in _CLOSING:
            if tokens[index - 1] in _OPENING:
                line += token
                continue
            depth -= 1
            lines.append(line)
            line = _indent(depth) + token
            continue
        elif token == b":":
            line += b": "
            continue
        elif token == b",":
            line += token
        else:
            line += token
            continue
        lines.append(line)
        line = _indent(depth)
        if len(lines) >= MAX_LINES:
            return (*lines, "…".encode())
    return (*lines, line)


def _indent(depth: int) -> bytes:
    return INDENT * min(depth, MAX_INDENT)
