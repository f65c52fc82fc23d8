"""Text or not: whether a window of bytes is worth showing as characters."""

from __future__ import annotations

import codecs
from typing import Final

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
