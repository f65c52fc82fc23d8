r"""The natural order of names: numbers by their value, everything else by its bytes.

`deploy:2` comes before `deploy:10` and `page_9` before `page_10`. Only a run of digits that stands alone is a number: a
letter, or a byte beyond ASCII, right before or after it makes it a part of a word or of an identifier. So ULIDs, hashes
and base62 identifiers are in the order of their bytes, which is the order of their time if they begin with one, and so
are whole UUIDs, of which some groups are all digits. If a number and such an identifier are at the same place, the
number comes first, and `7` comes before `07`.

`natural` is one-to-one, so that an order by it is total. A number is written as `0`, NUL, its number of digits, the
digits, and its leading zeros: no other name has a NUL after a `0` at the place of a number.
"""

from __future__ import annotations

import re
from typing import Final

from rtui.keyspace.text.java_names import HEADER, java_text

_ALONE: Final = re.compile(
    rb"(?<![0-9A-Za-z\x80-\xff])(?:"
    rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Za-z\x80-\xff])"
    rb"|([0-9]++)(?![A-Za-z\x80-\xff]))"
)
"""A whole UUID, or, in the group, the digits of a number."""

_ONE_BYTE: Final = 0xFF
"""Lengths from here on are written as this byte and four more."""


def natural(name: bytes) -> bytes:
    """Return a sort key in natural order; a Java-serialised name sorts right behind its text."""
    if name.startswith(HEADER) and (text := java_text(name)) is not None:
        return natural(text) + b"\x000\0\0"
    return _number(name) if name.isdigit() else _ALONE.sub(_sortable, name)


def _sortable(found: re.Match[bytes]) -> bytes:
    digits = found[1]
    return found[0] if digits is None else _number(digits)


def _number(written: bytes) -> bytes:
    digits = written.lstrip(b"0") or b"0"
    zeros = len(written) - len(digits)
    if len(written) < _ONE_BYTE:
        return b"0\0%c%b%c" % (len(digits), digits, zeros)
    return b"".join((b"0\0", _length(len(digits)), digits, _length(zeros)))


def _length(count: int) -> bytes:
    return bytes((count,)) if count < _ONE_BYTE else b"\xff" + count.to_bytes(4, "big")
