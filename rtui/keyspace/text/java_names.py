r"""Names that Java has serialised: `ac ed 00 05 74`, the length of the text in two bytes, and the text.

Spring's RedisTemplate writes such names unless another key serialiser is configured. Their first segment would contain
the length, so names of different length would never be in one namespace. So they are split as their text, below a
namespace of their own: the *split form* of a name has `ff` and the separator in place of the length, and its first
segment is `MARK`. With the separator `:`, `user:1` and its Java form are below `user:` and below `MARK:user:`.

The server knows such names by their raw bytes only. `swapped` converts one form to the other: it is its own inverse,
for any bytes, since a raw name that happens to begin like a split form gets its length in turn. Names whose length does
not fit stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

HEADER: Final = b"\xac\xed\x00\x05t"
"""The magic number of Java's serialisation, its version, and the type of a short string."""

MARK: Final = HEADER + b"\xff"
"""The first segment of the split form."""

BEGINNING: Final = len(MARK) + 1
"""The number of bytes before the text, in either form."""

LONGEST: Final = 0xFFFF
"""The longest text, in bytes."""

SIGN: Final = "⛾"
"""Stands before the text of a displayed name; a name that really contains it is shown with an escape."""

ASCII_SIGN: Final = "\\J"
"""The same for ASCII-only display."""


def separator_of(separators: Sequence[bytes]) -> bytes:
    """Return the separator behind the mark; empty if none has one byte, and names are split like any others."""
    usable = [separator for separator in separators if len(separator) == 1]
    return min(usable) if usable and not any(separator[:1] in HEADER for separator in separators) else b""


def swapped(name: bytes, separator: bytes) -> bytes:
    """Convert a raw name to its split form, or back."""
    length = len(name) - BEGINNING
    if not separator or not name.startswith(HEADER) or not 0 <= length <= LONGEST:
        return name
    now, raw, mark = name[len(HEADER) : BEGINNING], length.to_bytes(2, "big"), MARK[-1:] + separator
    other = mark if now == raw else raw if now == mark else now
    return HEADER + other + name[BEGINNING:]


def all_swapped(names: Sequence[bytes], separator: bytes) -> Sequence[bytes]:
    """Convert many names, at next to no cost if none has a header."""
    if HEADER not in b"".join(names):
        return names
    return [swapped(name, separator) for name in names]


def java_text(name: bytes) -> bytes | None:
    """Return the text of a raw name, or None if Java has not serialised it."""
    if not name.startswith(HEADER) or int.from_bytes(name[len(HEADER) : BEGINNING], "big") != len(name) - BEGINNING:
        return None
    return name[BEGINNING:] if len(name) >= BEGINNING else None


def texts_of(names: Sequence[bytes]) -> Sequence[bytes]:
    """Return names with the text in place of Java-serialised ones."""
    if HEADER not in b"".join(names):
        return names
    return [name if (text := java_text(name)) is None else text for name in names]


def raw_java_name(text: bytes) -> bytes | None:
    """Return the raw name of a text; None if it is too long."""
    return HEADER + len(text).to_bytes(2, "big") + text if len(text) <= LONGEST else None


def raw_forms(typed: bytes) -> Iterable[bytes]:
    """Yield the raw names that a typed or copied name may stand for: itself, then the Java form of its text."""
    yield typed
    for sign in (SIGN.encode(), ASCII_SIGN.encode()):
        typed = typed.removeprefix(sign)
    name = raw_java_name(typed)
    if name is not None:
        yield name


def raw_name(split: bytes) -> bytes:
    """Return the raw name of a split form without knowing its separator."""
    return (raw_java_name(split[BEGINNING:]) or split) if split.startswith(MARK) else split
