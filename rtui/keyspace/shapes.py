"""The shapes of keys: what is left of many keys at once when identifiers are made all the same.

Two keys of one shape have the same names and patterns in the same places, so that the place of one is known from the
other. Shapes cost a fraction of what telling the identifiers of each key apart costs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rtui.keyspace.identifiers import LONGEST

_END: Final = b"\0"
_UUID_MARK, _HASH_MARK, _ID_MARK = b"\1", b"\2", b"\3"
_SPECIAL: Final = re.compile(b"[\1\2\3]").search
_NO_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")

_HEX: Final = b"[0-9a-fA-F]"


class Shapes:
    """Knows the shapes of keys in a keyspace with these separators."""

    def __init__(self, separators: Sequence[bytes]) -> None:
        self._can_mark = all(len(separator) == 1 for separator in separators)
        border = b"[\\0{}" + b"".join(map(re.escape, separators)) + b"]"

        def part(first: bytes, form: bytes) -> re.Pattern[bytes]:
            """The expression for a form that is a whole part between borders and begins with one of `first`."""
            return re.compile(first + b"(?<=" + border + first + b")" + form + b"(?=" + border + b")")

        self._uuid = part(_HEX, _HEX + b"{7}-" + (_HEX + b"{4}-") * 3 + _HEX + b"{12}")
        self._hash = part(
            _HEX,
            rb"(?:(?<=[0-9])(?=[0-9]*[a-fA-F])|(?<=[a-fA-F])(?=[a-fA-F]*[0-9]))"
            rb"(?:(?<=[0-9a-f])[0-9a-f]{7,}|(?<=[0-9A-F])[0-9A-F]{7,})",
        )
        self._id = part(b"[0-9]", b"[0-9]*")

    def of_digits(self, keys: Sequence[bytes]) -> list[bytes]:
        """The keys with every digit the same: at next to no cost, and enough where ids are digits."""
        shapes = _END.join(keys).translate(_NO_DIGITS).split(_END)
        return shapes if len(shapes) == len(keys) else [key.translate(_NO_DIGITS) for key in keys]

    def of_marks(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """The keys with decimal numbers, UUIDs and hashes each replaced by a mark; None where that is not possible."""
        joined = b"\0%s\0" % _END.join(keys)
        if not self._can_mark or _SPECIAL(joined) or max(map(len, keys)) > LONGEST:
            return [None] * len(keys)
        if b"-" in joined:
            joined = self._uuid.sub(_UUID_MARK, joined)
        marked = self._id.sub(_ID_MARK, self._hash.sub(_HASH_MARK, joined))
        shapes = marked[1:-1].split(_END)
        return shapes if len(shapes) == len(keys) else [None] * len(keys)
