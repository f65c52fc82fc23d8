"""The size of each reply on the wire, which the parser does not tell.

Only the ends of replies are looked for. `$5 hello` is read as a header with seven more bytes to follow, `*2` as one
with two more replies. So a counter of outstanding parts is enough, however deep replies are nested: `*2 :1 *1 $1 a`
leaves 1, 3 - 1, 2 - 1, 2 - 1 + 1, 1 - 1 outstanding, and ends there.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_BULK: Final = frozenset(b"$!=")
_NESTING: Final = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2, ord("|"): 2}
"""Marks of replies that contain others, with the number of replies for each that their header counts."""

_ATTRIBUTE: Final = ord("|")
_PUSH: Final = ord(">")

_KEPT_HEADER_BYTES: Final = 32
"""The kept part of a header whose end has not arrived; headers with a number are shorter."""


class ReplySizes:
    """Measures replies of either protocol, in whatever pieces they arrive; push messages are skipped."""

    def __init__(self) -> None:
        self.sizes: deque[int] = deque()
        """The sizes of complete replies in bytes, in order of arrival."""
        self._header = b""
        self._size = 0
        self._skip = 0
        """The remaining bytes of a bulk string."""
        self._to_come = 1
        self._is_push = False
        self._is_broken = False

    def feed(self, received: bytes | bytearray | memoryview) -> None:
        """Measure the next bytes. Anything but a reply ends the measuring; the parser reports it."""
        if self._is_broken:
            return
        data, at = bytes(received), 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                at, self._size, self._skip = at + step, self._size + step, self._skip - step
                if not self._skip:
                    self._end_one()
                continue
            end = data.find(b"\n", at) + 1
            part = data[at : end or len(data)]
            at += len(part)
            self._size += len(part)
            self._header += part[:_KEPT_HEADER_BYTES]
            if end:
                header, self._header = self._header, b""
                if not self._begin(header):
                    self._is_broken = True
                    return

    def _begin(self, header: bytes) -> bool:
        """Read the first line of a reply, which may be all of it; return whether it can be one."""
        mark = header[0]
        nested = _NESTING.get(mark)
        if nested is None and mark not in _BULK:
            self._end_one()
            return True
        digits = header[1:].strip()
        if not digits.removeprefix(b"-").isdigit():
            return False
        count = int(digits)
        if nested is None:
            self._skip = count + 2 if count >= 0 else 0
            if not self._skip:
                self._end_one()
            return True
        self._is_push = self._is_push or mark == _PUSH
        self._to_come += max(0, count) * nested + (mark == _ATTRIBUTE)
        self._end_one()
        return True

    def _end_one(self) -> None:
        """Count down by one reply that is complete, or whose parts are outstanding."""
        self._to_come -= 1
        if not self._to_come:
            if not self._is_push:
                self.sizes.append(self._size)
            self._size, self._to_come, self._is_push = 0, 1, False
