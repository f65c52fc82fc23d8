"""The spread of sizes in little memory: counts in buckets so narrow that any quantile is right to one percent.

Sizes that differ by up to 2 % share a bucket: 1, 2, … 98 have one each, 99 and 100 share one, 101 to 103 the next, and
those around a mebibyte lie in buckets 20 KiB wide, so that 1,600 buckets reach up to a pebibyte. A sketch is a counter
of the buckets in use, and two sketches are merged by adding them. For the median of 1,000 sizes, counts are added from
the lowest bucket upwards until there are 500: the middle of that bucket is the answer, at most 1 % off. The number of
sizes, their sum, the smallest and the largest are kept beside the buckets and are exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from itertools import accumulate
from math import ceil
from typing import Final

ERROR: Final = 0.01
"""How far a quantile may be off the true one, relative to it. Up to 99 all are exact."""

HIGHEST: Final = 1 << 50
"""Sizes above share the last bucket."""


def _size_buckets() -> tuple[list[int], list[int]]:
    """Return the lowest size of each bucket, and the size that stands for all in it: within 1 % of both ends."""
    lows, middles = [0], [0]
    low = 1
    while low <= HIGHEST:
        middle = low * 101 // 100
        lows.append(low)
        middles.append(middle)
        low = middle * 100 // 99 + 1
    return lows, middles


LOWS, MIDDLES = _size_buckets()
"""By bucket of sizes."""


class Sketch:
    """Quantiles, sum and extremes of sizes, which are whole numbers from 0 on."""

    __slots__ = ("_counts", "count", "max", "min", "sum")

    def __init__(self) -> None:
        self.count = 0
        """How many sizes were added."""
        self.sum = 0
        """Of all of them, exact."""
        self.max = 0
        """The largest size, exact; 0 without any."""
        self.min = 0
        """The smallest size, exact; 0 without any."""
        self._counts: Counter[int] = Counter()

    @classmethod
    def of(cls, counts: dict[int, int], total: int, smallest: int, largest: int) -> Sketch:
        """Return a sketch of sizes counted elsewhere: by bucket, with their sum and extremes."""
        made = cls()
        made._counts.update(counts)
        made._add_figures(made._counts.total(), total, smallest, largest)
        return made

    def merge(self, other: Sketch) -> None:
        """Add all sizes of another sketch."""
        if other.count:
            self._counts.update(other._counts)
            self._add_figures(other.count, other.sum, other.min, other.max)

    def _add_figures(self, count: int, total: int, smallest: int, largest: int) -> None:
        self.min = min(self.min, smallest) if self.count else smallest
        self.max = max(self.max, largest)
        self.count += count
        self.sum += total

    def quantiles(self, shares: Sequence[float]) -> list[int]:
        """Return the sizes at or below which these shares (0 … 1) of all lie, ascending; all 0 without any size.

        Each is within ERROR of the true one; the smallest and the largest are exact.
        """
        if not self.count:
            return [0 for _ in shares]
        buckets = sorted(self._counts)
        ends = list(accumulate(map(self._counts.__getitem__, buckets)))
        found = []
        for share in shares:
            rank = max(0, ceil(share * self.count) - 1)
            size = MIDDLES[buckets[min(bisect_right(ends, rank), len(buckets) - 1)]]
            exact = self.min if rank == 0 else self.max if rank >= self.count - 1 else None
            found.append(max(self.min, min(self.max, size)) if exact is None else exact)
        return found

    def above(self, size: int) -> int:
        """Return how many sizes are certainly larger than `size`: those in its bucket are not counted."""
        first = bisect_left(LOWS, size + 1)
        return sum(count for bucket, count in self._counts.items() if bucket >= first)

    @property
    def mean(self) -> float:
        """The mean, exact; 0 without any size."""
        return self.sum / self.count if self.count else 0.0

    def sum_of_squares(self) -> float:
        """Return the sum of all squares, to two percent: for a variance."""
        return float(sum(count * MIDDLES[bucket] ** 2 for bucket, count in self._counts.items()))

    def largest(self, most: int) -> list[float]:
        """Return the largest sizes, descending, each within ERROR of the true one, and as `sum_of_squares` has it."""
        found: list[float] = []
        for bucket in nlargest(most, self._counts):
            found += [float(MIDDLES[bucket])] * min(self._counts[bucket], most - len(found))
            if len(found) == most:
                break
        return found
