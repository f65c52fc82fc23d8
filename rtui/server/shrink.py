"""Notices that a server's hash table became smaller while it was scanned, which is when SCAN may return a key again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PATIENCE: Final = 24
"""Replies in a row whose cursors are too short for the table before it counts as smaller: by chance once in 2^24."""


class TableWatch:
    """Follows the size of a table by the length of its cursors: in a table of 2^n buckets they are below 2^n.

    Half of all cursors have the full length, since a cursor's top bit is what its position counts fastest. A cursor is
    out of step with its table only after the table has shrunk, and only the bucket it then points into is returned
    again (dict.c, `dictScan`).
    """

    def __init__(self) -> None:
        self.bits = 0
        """n of a table of 2^n buckets, as far as the cursors have shown."""
        self.has_shrunk = False
        self._short_for = 0
        self._longest_since = 0

    @property
    def is_sure(self) -> bool:
        """Whether the last reply showed the full length, so that nothing can have shrunk before it."""
        return self._short_for == 0

    def measured(self, cursors: Iterable[int]) -> None:
        """Take up cursors from random places of the table as it is now: all shorter than before means it shrank."""
        bits = max((cursor.bit_length() for cursor in cursors), default=self.bits)
        if bits < self.bits:
            self.has_shrunk = True
            self.bits = bits

    def saw(self, cursor: int) -> None:
        """Take up the cursor of a reply; 0, the end, says nothing."""
        bits = cursor.bit_length()
        if not bits:
            return
        if bits >= self.bits:
            self.bits = bits
            self._short_for = self._longest_since = 0
            return
        self._short_for += 1
        self._longest_since = max(self._longest_since, bits)
        if self._short_for >= PATIENCE:
            self.has_shrunk = True
            self.bits = self._longest_since
            self._short_for = self._longest_since = 0
