"""Counts different names in bounded memory, whatever their order: the smallest hashes stand for all (KMV).

Bar-Yossef et al., "Counting distinct elements in a data stream" (2002). Hashes are as good as drawn at random, so the
256th smallest of 50,000 different ones lies at about 256/50,000 of their range; that tells how many there are, to
within an eighth nineteen times in twenty. Up to 255 names the count is exact. The same name has the same hash, so names
that come again change nothing, and two sets are merged by putting their hashes together.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Final

from rtui.analysis.estimates import Estimate
from rtui.table.distinct_names import MOST_HASHES, RANGE

_DEVIATIONS: Final = 1.96
"""Standard deviations on either side that hold 95 % of all estimates."""


class Distinct:
    """How many different hashes there are."""

    __slots__ = ("_hashes",)

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = {*hashes}
        """The smallest of them, and some others."""

    @property
    def hashes(self) -> set[int]:
        """The smallest of them, at most MOST_HASHES."""
        if len(self._hashes) > MOST_HASHES:
            self._hashes = {*sorted(self._hashes)[:MOST_HASHES]}
        return self._hashes

    def add(self, hashes: Iterable[int]) -> None:
        """Count hashes."""
        self._hashes.update(hashes)
        if len(self._hashes) > 4 * MOST_HASHES:  # choosing the smallest ones each time would be slow
            self._hashes = self.hashes

    def count(self) -> int | Estimate:
        """Return how many different names there are: exact, or with an interval of 95 %."""
        smallest = self.hashes
        if len(smallest) < MOST_HASHES:
            return len(smallest)
        value = (MOST_HASHES - 1) * RANGE / (max(smallest) + 1)
        spread = _DEVIATIONS / sqrt(MOST_HASHES - 2)
        return Estimate(round(value * (1 - spread)), round(value), round(value * (1 + spread)))

    def coded(self) -> float:
        """Return the share of names that look like codes rather than words."""
        smallest = self.hashes
        return sum(one & 1 for one in smallest) / max(1, len(smallest))
