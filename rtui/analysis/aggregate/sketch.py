"""The spread of sizes in little memory: counts in buckets so narrow that any quantile is right to one percent."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import accumulate
from math import ceil
from typing import Final

ERROR: Final = 0.01
"""How far a quantile may be off the true one, relative to it. Up to 99 all are exact."""

HIGHEST: Final = 1 << 50
"""Sizes above share the last bucket."""

REMEMBERED: Final = 1 << 15
"""Sizes whose bucket is remembered once looked up."""


def _buckets() -> tuple[list[int], list[int]]:
    """The lowest size of each bucket, and the size that stands for all in it: within 1 % of the lowest and highest."""
    lows, middles = [0], [0]
    low = 1
    while low <= HIGHEST:
        middle = low * 101 // 100
        lows.append(low)
        middles.append(middle)
        low = middle * 100 // 99 + 1
    return lows, middles


_LOWS, _MIDDLES = _buckets()

MOST_BUCKETS: Final = len(_LOWS)
"""How many buckets a sketch has at most."""


class _BucketOf(dict[int, int]):
    """From a size to the number of its bucket; the same number is the same object, whoever holds it."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = list(range(MOST_BUCKETS))

    def __missing__(self, size: int) -> int:
        if len(self) >= REMEMBERED:
            self.clear()
        bucket = self[size] = self._numbers[bisect_right(_LOWS, size) - 1]
        return bucket


_bucket_of = _BucketOf().__getitem__


class Sketch:
    """Quantiles, sum and both ends of sizes, which are whole numbers from 0 on; two sketches add up to one."""

    __slots__ = ("_counts", "count", "max", "min", "sum")

    def __init__(self) -> None:
        self.count = 0
        """How many sizes were added."""
        self.sum = 0
        """Of all of them, exact."""
        self.max = 0
        """The largest of them, exact; 0 where there is none."""
        self.min = 0
        """The smallest of them, exact; 0 where there is none."""
        self._counts: Counter[int] = Counter()

    def add(self, sizes: Sequence[int]) -> None:
        """Take up sizes."""
        if sizes:
            self._extend(min(sizes), max(sizes))
            self.count += len(sizes)
            self.sum += sum(sizes)
            self._counts.update(map(_bucket_of, sizes))

    def merge(self, other: Sketch) -> None:
        """Take up what another one has."""
        if other.count:
            self._extend(other.min, other.max)
            self.count += other.count
            self.sum += other.sum
            self._counts.update(other._counts)

    def _extend(self, smallest: int, largest: int) -> None:
        """Take note of the ends of what is about to be taken up."""
        self.min = min(self.min, smallest) if self.count else smallest
        self.max = max(self.max, largest)

    def ranked(self, ranks: Sequence[int]) -> list[int]:
        """The sizes at these ranks, ascending and from 0 on, each within ERROR of the true one; both ends are exact."""
        buckets = sorted(self._counts)
        ends = list(accumulate(map(self._counts.__getitem__, buckets)))
        found = [_MIDDLES[buckets[min(bisect_right(ends, rank), len(buckets) - 1)]] for rank in ranks]
        return [
            self.min if rank <= 0 else self.max if rank >= self.count - 1 else max(self.min, min(self.max, size))
            for rank, size in zip(ranks, found, strict=True)
        ]

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        """The sizes below or at which these shares (0 … 1) of all lie; of an empty sketch all 0."""
        if not self.count:
            return [0 for _ in shares]
        return self.ranked([max(0, ceil(share * self.count) - 1) for share in shares])

    @property
    def mean(self) -> float:
        """The mean, exact; 0 where there is none."""
        return self.sum / self.count if self.count else 0.0

    def sum_of_squares(self) -> float:
        """The sum of all squares, to two percent: what a variance is made of."""
        return float(sum(count * _MIDDLES[bucket] ** 2 for bucket, count in self._counts.items()))

    def largest(self, most: int) -> list[float]:
        """The largest sizes, descending, each within ERROR of the true one, and as `sum_of_squares` takes them."""
        found: list[float] = []
        for bucket in nlargest(most, self._counts):
            found += [float(_MIDDLES[bucket])] * min(self._counts[bucket], most - len(found))
            if len(found) == most:
                break
        return found

    def __len__(self) -> int:
        """Give the number of buckets in use."""
        return len(self._counts)
