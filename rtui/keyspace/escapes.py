r"""The way back from escaped text to bytes: names with `\xNN` in them, as people copy and type them."""

from __future__ import annotations

import re

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
