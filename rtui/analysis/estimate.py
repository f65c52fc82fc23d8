"""Numbers known from a sample: a value with the interval in which the truth lies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rtui.keyspace.segments import Segment, Separators

Z_95: Final = 1.959963984540054
"""Standard deviations on each side of the mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share (0 … 1) or a count, and the bounds of its 95 % interval."""

    low: float
    value: float
    high: float

    def scaled(self, total: float) -> Estimate:
        """The same estimate in another unit: a share of `total` as a count."""
        return Estimate(self.low * total, self.value * total, self.high * total)

    def __contains__(self, truth: float) -> bool:
        return self.low <= truth <= self.high


def wilson(successes: float, n: int, *, population: int | None = None) -> Estimate:
    """The share behind `successes` of `n` draws, by Wilson's score interval at 95 %.

    With `population` the draws were distinct members of so many, and the interval narrows as the sample nears all of
    them (finite population correction). Nothing drawn says nothing: 0 … 1.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a share")
    if n == 0:
        return Estimate(0.0, 0.0, 1.0)
    share = successes / n
    effective = float(n)
    if population is not None:
        if n >= population:
            return Estimate(share, share, share)
        effective = n * (population - 1) / (population - n)
    z2 = Z_95 * Z_95 / effective
    centre = (share + z2 / 2) / (1 + z2)
    half = math.sqrt(share * (1 - share) * z2 + z2 * z2 / 4) / (1 + z2)
    return Estimate(max(0.0, min(share, centre - half)), share, min(1.0, max(share, centre + half)))


Path = tuple[Segment, ...]
"""The segments of a namespace from the first one on, each with the separator that ends it."""


class NamespaceTally:
    """Counts the namespaces of the first levels among distinct sampled keys, a batch at a time."""

    def __init__(self, separators: Separators, *, depth: int = 2) -> None:
        self.drawn = 0
        """Keys taken up so far."""
        self._separators = separators
        self._depth = depth
        self._counts: Counter[Path] = Counter()

    def add(self, keys: Iterable[bytes]) -> None:
        """Take up more keys; a key's last segment is its own name and never a namespace."""
        for key in keys:
            self.drawn += 1
            path: Path = ()
            for segment in islice(self._separators.segments(key), self._depth):
                if not segment.separator:
                    break
                path = (*path, segment)
                self._counts[path] += 1

    def shares(self, *, most: int | None = None, population: int | None = None) -> dict[Path, Estimate]:
        """The share of each namespace, largest first; of the `most` largest only, when given."""
        return {
            path: wilson(count, self.drawn, population=population) for path, count in self._counts.most_common(most)
        }
