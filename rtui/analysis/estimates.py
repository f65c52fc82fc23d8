"""Numbers known from a sample: a value with the interval in which the truth lies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeAlias

from rtui.keyspace.text.segments import Segment, Separators

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


Population: TypeAlias = int | Estimate | None
"""How many keys there are in all: exact, an estimate itself, or nobody knows."""

FEWEST_DEGREES: Final = 3.0
"""Degrees of freedom are not taken for fewer, or the interval of a single key would say nothing at all."""

UNSEEN_LARGEST: Final = 3
"""So many keys as large as the largest may be missing in a sample: the rule of three for what was not seen."""


class Spread(Protocol):
    """Sizes of sampled keys, of which quantiles can be had."""

    @property
    def count(self) -> int:
        """How many there are."""

    def quantiles(self, shares: Sequence[float], /) -> list[int]:
        """The sizes at or below which these shares of all lie."""


def share(found: float, n: int, population: Population = None) -> Estimate:
    """The share of keys of which `found` were among n sampled ones."""
    size = _size(population)
    return wilson(found, n, population=None if size is None else max(n, size))


def count(found: float, n: int, population: Population) -> Estimate | None:
    """How many keys there are of which `found` were among n sampled ones; None for a population nobody knows.

    There are at least those that were seen.
    """
    if population is None:
        return None
    among = population if isinstance(population, Estimate) else Estimate(population, population, population)
    part = share(found, n, population)
    below = math.hypot((part.value - part.low) * among.value, part.value * (among.value - among.low))
    above = math.hypot((part.high - part.value) * among.value, part.value * (among.high - among.value))
    value = part.value * among.value
    return Estimate(max(float(found), value - below) if value >= found else value, value, value + above)


def total(
    sum_: float, squares: float, n: int, population: Population, *, largest: float | None = None
) -> Estimate | None:
    """The sum over all keys, by the sum and the sum of squares over n sampled ones; None when it cannot be told.

    For a part of the keys, such as a namespace, both sums are over those of the n that belong to it: that their number
    is uncertain is then accounted for. `largest` is the largest of the sizes; it tells how much hangs on few keys.
    """
    if population is None or n == 0:
        return None
    among = population if isinstance(population, Estimate) else Estimate(population, population, population)
    value = sum_ / n * max(n, among.value)
    below, above = _arms(sum_, squares, n, population, largest)
    doubt = math.log(among.high / among.low) / 2 if among.low > 0 else 0.0
    low, high = value * math.exp(-math.hypot(below, doubt)), value * math.exp(math.hypot(above, doubt))
    return Estimate(max(min(sum_, value), low), value, high)


def mean(
    sum_: float, squares: float, n: int, population: Population = None, *, largest: float | None = None
) -> Estimate | None:
    """The mean of all sizes, by the sum and the sum of squares of n sampled ones; None where there are none."""
    if n == 0:
        return None
    value = sum_ / n
    below, above = _arms(sum_, squares, n, population, largest)
    return Estimate(value * math.exp(-below), value, value * math.exp(above))


def quantile(spread: Spread, share_below: float, population: Population = None) -> Estimate | None:
    """The size below which this share of all keys lies, between two of the sampled sizes; None without any.

    The bounds are the sizes at the ranks that hold the share with 95 %: how many of n sizes lie below it is binomial,
    whose quantiles are taken by their expansion of Cornish and Fisher. Where the sample is too small to have a size
    beyond the upper one, as far as the largest is from the median is taken for its distance to the bound, in
    magnitudes.
    """
    n = spread.count
    if n == 0:
        return None
    reach = Z_95 * math.sqrt(_unseen(n, population) * n * share_below * (1 - share_below))
    middle = n * share_below + (Z_95**2 - 1) * (1 - 2 * share_below) / 6
    lower, upper = max(1, math.floor(middle - reach + 0.5)), math.floor(middle + reach + 0.5) + 1
    low, value, high, median, largest = spread.quantiles([lower / n, share_below, min(1.0, upper / n), 0.5, 1.0])
    bound = float(high) if upper <= n else largest * largest / max(1, median)
    return Estimate(float(min(low, value)), float(value), max(bound, float(value)))


def _size(population: Population) -> int | None:
    return round(population.value) if isinstance(population, Estimate) else population


def _unseen(n: int, population: Population) -> float:
    """The share of the population that is not in the sample: 1 where nobody knows."""
    size = _size(population)
    return 1.0 if size is None else max(0.0, 1 - n / size) if size else 0.0


def _arms(sum_: float, squares: float, n: int, population: Population, largest: float | None) -> tuple[float, float]:
    """How far the interval of a sum or mean reaches down and up, on the scale of logarithms."""
    if sum_ <= 0:
        return 0.0, 0.0
    unseen = _unseen(n, population)
    deviations = max(0.0, squares - sum_ * sum_ / n) if n > 1 else squares
    error = math.sqrt(unseen * deviations * n / max(1, n - 1)) / sum_
    most = None if largest is None else abs(largest - sum_ / n)
    reach = _student(_degrees(deviations, most, n)) * error
    return reach, math.log(math.exp(reach) + UNSEEN_LARGEST * unseen * (largest or 0.0) / sum_)


def _degrees(deviations: float, most: float | None, n: int) -> float:
    """Degrees of freedom of a variance of which one deviation makes up so much.

    By Satterthwaite a variance of n sizes has 2 (Σd²)² / Σd⁴, and of heavy tails the largest is most of Σd⁴.
    """
    if not most or not deviations:
        return max(FEWEST_DEGREES, float(n - 1))
    return max(FEWEST_DEGREES, min(float(n - 1), (deviations / most**2) ** 2))


def _student(degrees: float) -> float:
    """The quantile of Student's t that holds 95 % between its two signs, to a percent from 3 degrees on.

    The expansion of Abramowitz and Stegun, 26.7.5.
    """
    z = Z_95
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )


def binomial_tail(at_least: int, n: int, p: float) -> float:
    """The probability of `at_least` successes or more in n trials of probability p."""
    if at_least <= 0:
        return 1.0
    if at_least > n or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    if at_least <= n * p:
        return 1.0 - _tail_sum(n - at_least + 1, n, 1 - p)
    return _tail_sum(at_least, n, p)


def _tail_sum(at_least: int, n: int, p: float) -> float:
    """Add the terms from `at_least` above the mean upwards, until they no longer count."""
    if at_least > n:
        return 0.0
    term = math.exp(
        math.lgamma(n + 1)
        - math.lgamma(at_least + 1)
        - math.lgamma(n - at_least + 1)
        + at_least * math.log(p)
        + (n - at_least) * math.log1p(-p)
    )
    total = 0.0
    odds = p / (1 - p)
    for k in range(at_least, n + 1):
        total += term
        term *= odds * (n - k) / (k + 1)
        if term <= total * 1e-12:
            break
    return min(1.0, total)
