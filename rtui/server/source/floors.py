"""From which length on a key would be listed among the longest of its type, as the rows so far tell it.

The findings add tables up in large chunks, so they know it late; which keys are asked for their length depends on it
(`rtui.server.inspection.late_lengths`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtui.analysis.aggregate.top_keys import TopKeys


class LengthFloors:
    """The largest lengths by type; to `LateLengths` it is what the findings' lists of largest keys are."""

    def __init__(self, big: TopKeys) -> None:
        """`big` says how many keys are listed and from which length on they are big, and is told what is left out."""
        self.big = big
        self._largest: dict[bytes | None, np.ndarray[Any, np.dtype[np.int64]]] = {}

    @property
    def top(self) -> int:
        """Keys in each list."""
        return self.big.top

    def add(self, key_type: bytes | None, lengths: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Take in the lengths of keys of one type."""
        known = self._largest.get(key_type)
        if known is not None:
            if len(known) == self.top and int(lengths.max(initial=0)) <= known[0]:
                return
            lengths = np.concatenate([known, lengths])
        self._largest[key_type] = np.sort(lengths)[-self.top :]

    def length_floor(self, key_type: bytes | None) -> int:
        """See `TopKeys`."""
        known = self._largest.get(key_type)
        floor = 0 if known is None or len(known) < self.top else int(known[0])
        limit = self.big.limits(key_type).length
        return floor if limit is None else min(floor, limit + 1)

    def leave_out(self, key_type: bytes | None, most_length: int) -> None:
        """See `TopKeys`."""
        self.big.leave_out(key_type, most_length)
