"""Values of query terms beside quantities: names, keywords, slots, and quoting."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import EscapeSyntaxError, SafeText, display, quoted, unescape
from rtui.keyspace.text.quantities import Syntax, ValueSyntaxError


class Keyword(Enum):
    """A value that is no number where numbers stand."""

    NONE = "none"
    """There is none: no TTL."""


def parse_slot(text: str) -> int:
    """Return the number of a hash slot."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) >= SLOTS:
        raise ValueSyntaxError(f"a slot is a number from 0 to {SLOTS - 1}")
    return int(text)


SLOT: Final = Syntax("a slot", parse_slot, str, (), is_continuous=False, between="-", most=SLOTS - 1)


def parse_shard(text: str) -> int:
    """Return the number of a shard."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= SLOTS:
        raise ValueSyntaxError("a shard is a number from 1, by the shards' first slots")
    return int(text)


SHARD: Final = Syntax("a shard", parse_shard, str, (), is_continuous=False, between="-", most=SLOTS)

PLACES: Final = (SLOT, SHARD)
"""Numbers of places, which are not compared."""


def raw_bytes(text: str) -> bytes:
    """Return text that was typed as bytes; what is no UTF-8 comes as surrogate escapes. Raises ValueSyntaxError."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueSyntaxError("a character is no valid text; write its bytes as \\xNN in quotes") from None


def unquoted(text: str) -> bytes:
    r"""Return the bytes of `"…"` with the escapes `\xNN`, `\n`, `\"`, `\\`. Raises ValueSyntaxError."""
    try:
        return unescape(raw_bytes(text))
    except EscapeSyntaxError as error:
        raise ValueSyntaxError(str(error)) from None


def written_bytes(raw: bytes, *, forbidden: str = "") -> SafeText:
    r"""Write bytes as they are where that is safe and clear, else in quotes; `forbidden` are characters that need them.

    The result is safe to show and is read back as the same bytes.
    """
    shown = display(raw, limit=len(raw) + 1)
    is_plain = raw != b"" and shown.encode() == raw
    if not is_plain:
        return quoted(raw)
    if shown[0] == '"' or any(one.isspace() or one in forbidden for one in shown):
        return in_quotes(shown)
    return shown


def in_quotes(shown: SafeText | str) -> SafeText:
    """Put safe text in quotes."""
    return SafeText('"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"')
