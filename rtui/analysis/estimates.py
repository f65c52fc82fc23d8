"""Estimates from random samples: a value with the 95 % interval in which the truth lies, and how likely chance is.

Say that 1,000 of 1,000,000 keys were sampled, and that 250 of them are of the namespace `cart`, with 50,000 bytes.

* Its share is 25 %; by Wilson's score interval the truth lies between 22.4 % and 27.8 % (`wilson`). In a
  keyspace of 2,000 keys the interval would be narrower, since half of the keys have been seen.
* The number of its keys is that share of all: 250,000, from 224,000 to 278,000 (`count`). Where the number of all keys
  is an estimate itself, both uncertainties are added as squares.
* Its bytes are extrapolated: 50 bytes a sampled key make 50 MB (`total`). How far that may be off follows from the
  spread of the sizes by Student's t, as a factor rather than as a sum, since a sum of sizes cannot be negative. Two
  things widen the interval where few large keys hold most of the bytes: the variance rests on those few alone, so it
  has fewer degrees of freedom than there are keys; and up to three keys as large as the largest may have been missed.
* A quantile lies between two of the sampled sizes (`quantile`): the number of sizes below the true median is binomial,
  500 ± 31 of 1,000, so the median lies between the 469th and the 532nd size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from rtui.keyspace.text.segments import Segment, Separators, swapped

Z_95: Final = 1.959963984540054
"""Standard deviations on each side of the mean that hold 95 % of a normal distribution."""

FEWEST_DEGREES: Final = 3.0
"""At least so many degrees of freedom are assumed, or the interval of a single key would be boundless."""

MOST_REACH: Final = 64 * math.log(2)
"""An interval that reaches further, to 2^64 times the value, has no upper bound."""

UNSEEN_LARGEST: Final = 3
"""So many keys as large as the largest may be missing in a sample: the rule of three for what was not seen."""


_Bounded = Annotated[float, Meta(ge=-(2.0**64), le=2.0**64)]


class Estimate(Struct, frozen=True, gc=False):
    """A share (0 … 1) or a count, and the bounds of its 95 % interval.

    The value lies within them: where they were cut at what is certain, such as the keys that were seen, so is it.
    """

    low: _Bounded
    value: _Bounded
    high: _Bounded = math.inf
    """Infinite, and left out in JSON, where it is not known."""

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            high = max(self.low, self.high)
            force_setattr(self, "high", high)
            force_setattr(self, "value", max(self.low, min(self.value, high)))

    def scaled(self, total: float) -> Estimate:
        return Estimate(self.low * total, self.value * total, self.high * total)

    def __contains__(self, truth: float) -> bool:
        return self.low <= truth <= self.high


def as_estimate(figure: float | Estimate) -> Estimate:
    return figure if isinstance(figure, Estimate) else Estimate(figure, figure, figure)


Population: TypeAlias = int | Estimate | None
"""How many keys there are in all: exact, an estimate itself, or not known."""


def wilson(successes: float, n: int, population: Population = None) -> Estimate:
    """Return the share behind `successes` of `n` draws, by Wilson's score interval at 95 %.

    With `population` the draws were distinct members of so many, and the interval narrows as the sample nears all of
    them (finite population correction). Without any draw the share may be anything from 0 to 1.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a share")
    if n == 0:
        return Estimate(0.0, 0.0, 1.0)
    share = successes / n
    effective = float(n)
    size = _size(population)
    if size is not None:
        if n >= size:
            return Estimate(share, share, share)
        effective = n * (size - 1) / (size - n)
    z2 = Z_95 * Z_95 / effective
    centre = (share + z2 / 2) / (1 + z2)
    half = math.sqrt(share * (1 - share) * z2 + z2 * z2 / 4) / (1 + z2)
    return Estimate(max(0.0, min(share, centre - half)), share, min(1.0, max(share, centre + half)))


NamespacePath: TypeAlias = tuple[Segment, ...]
"""The segments of a namespace from the first one on, each with the separator that ends it."""


class NamespaceTally:
    """Counts the namespaces of the first levels among distinct sampled keys, a batch at a time."""

    def __init__(self, separators: Separators, *, depth: int = 2) -> None:
        self.drawn = 0
        self._separators = separators
        self._depth = depth
        self._counts: Counter[NamespacePath] = Counter()

    def add(self, keys: Iterable[bytes]) -> None:
        """Count more keys; a key's last segment is its own name and never a namespace."""
        for key in keys:
            self.drawn += 1
            path: NamespacePath = ()
            name = swapped(key, self._separators.java_separator)
            for segment in islice(self._separators.segments(name), self._depth):
                if not segment.separator:
                    break
                path = (*path, segment)
                self._counts[path] += 1

    def shares(self, *, most: int | None = None, population: int | None = None) -> dict[NamespacePath, Estimate]:
        return {
            path: wilson(count, self.drawn, population=population) for path, count in self._counts.most_common(most)
        }


def count(found: float, n: int, population: Population) -> Estimate | None:
    """Return how many keys there are of which `found` were among n sampled ones: at least those.

    None where the population is not known. The lower bound has Yates's correction, or it would be above the truth for
    a single key even where the sample is a large part.
    """
    if population is None:
        return None
    among = as_estimate(population)
    part, low = wilson(found, n, population), wilson(max(0.0, found - 0.5), n, population).low
    below = math.hypot((part.value - low) * among.value, part.value * (among.value - among.low))
    above = math.hypot((part.high - part.value) * among.value, part.value * (among.high - among.value))
    value = part.value * among.value
    return Estimate(max(float(found), value - below) if value >= found else value, value, value + above)


def count_among(found: int, n: int, whole: int) -> Estimate:
    """Return how many of `whole` keys there are of which `found` were among n that were chosen at random.

    Unlike that of `count` the interval holds the truth in 95 % of the samples or more for any number of keys, also for
    a single one, and for samples of a few: Wilson's with Yates's correction by half a key.
    """
    below = wilson(max(0.0, found - 0.5), n, whole).low * whole
    above = wilson(min(n, found + 0.5), n, whole).high * whole
    value = found / n * whole if n else 0.0
    return Estimate(max(float(found), below), value, min(float(whole - n + found), above))


def total(
    sum_: float, squares: float, n: int, population: Population, *, largest: float | None = None
) -> Estimate | None:
    """Return the sum over all keys, by the sum and the sum of squares over n sampled ones.

    For a part of the keys, such as a namespace, both sums are over those of the n that belong to it: that their number
    is uncertain is then accounted for. `largest` is the largest of the sizes; it shows how much depends on few keys.
    None where the population is not known or the sample empty.
    """
    if population is None or n == 0:
        return None
    among = as_estimate(population)
    value = sum_ / n * max(n, among.value)
    below, above = _log_reach(sum_, squares, n, population, largest)
    doubt = math.log(among.high / among.low) / 2 if among.low > 0 else 0.0
    low, high = value * math.exp(-math.hypot(below, doubt)), _grown(value, math.hypot(above, doubt))
    return Estimate(max(min(sum_, value), low), value, high)


def mean(
    sum_: float, squares: float, n: int, population: Population = None, *, largest: float | None = None
) -> Estimate | None:
    """Return the mean of all sizes, by the sum and the sum of squares of n sampled ones; None where n is 0."""
    if n == 0:
        return None
    value = sum_ / n
    below, above = _log_reach(sum_, squares, n, population, largest)
    return Estimate(value * math.exp(-below), value, _grown(value, above))


def quantile(
    quantiles: Callable[[Sequence[float]], Sequence[int]], n: int, share_below: float, population: Population = None
) -> Estimate | None:
    """Return the size below which this share of all keys lies; None where n is 0.

    `quantiles` returns the sizes at or below which shares of the n sampled ones lie. The bounds are the sizes at the
    ranks that hold the share with 95 %: how many of n sizes lie below it is binomial, and quantiles of that are
    expanded by Cornish and Fisher. Where the sample is too small to have a size beyond the upper rank, the bound is
    as far from the largest size as that is from the median, in orders of magnitude.
    """
    if n == 0:
        return None
    reach = Z_95 * math.sqrt(_unseen_share(n, population) * n * share_below * (1 - share_below))
    middle = n * share_below + (Z_95**2 - 1) * (1 - 2 * share_below) / 6
    lower, upper = max(1, math.floor(middle - reach + 0.5)), math.floor(middle + reach + 0.5) + 1
    low, value, high, median, largest = quantiles([lower / n, share_below, min(1.0, upper / n), 0.5, 1.0])
    bound = float(high) if upper <= n else largest * largest / max(1, median)
    return Estimate(float(min(low, value)), float(value), max(bound, float(value)))


def _size(population: Population) -> int | None:
    return None if population is None else round(as_estimate(population).value)


def _unseen_share(n: int, population: Population) -> float:
    """Return the share of the population that is not in the sample: 1 where its size is not known."""
    size = _size(population)
    return 1.0 if size is None else max(0.0, 1 - n / size) if size else 0.0


def _log_reach(
    sum_: float, squares: float, n: int, population: Population, largest: float | None
) -> tuple[float, float]:
    """Return how far the interval of a sum or mean reaches down and up, as logarithms of factors.

    The degrees of freedom of the variance are Satterthwaite's, 2 (Σd²)² / Σd⁴ for deviations d: with heavy tails the
    largest is most of Σd⁴. Student's t is expanded by Abramowitz and Stegun, 26.7.5, right to a percent from 3 on.
    """
    if sum_ <= 0:
        return 0.0, 0.0
    unseen = _unseen_share(n, population)
    deviations = max(0.0, squares - sum_ * sum_ / n) if n > 1 else squares
    error = math.sqrt(unseen * deviations * n / max(1, n - 1)) / sum_
    largest_deviation = 0.0 if largest is None else abs(largest - sum_ / n)
    degrees = float(n - 1)
    if largest_deviation and deviations:
        degrees = min(degrees, (deviations / largest_deviation**2) ** 2)
    degrees = max(FEWEST_DEGREES, degrees)
    z = Z_95
    student = (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )
    reach = student * error
    if reach > MOST_REACH:
        return reach, reach
    return reach, math.log(math.exp(reach) + UNSEEN_LARGEST * unseen * (largest or 0.0) / sum_)


def _grown(value: float, reach: float) -> float:
    """Return a value times the exponential of `reach`; infinite where that says as much as no bound at all."""
    return value * math.exp(reach) if reach <= MOST_REACH else math.inf


def binomial_tail(at_least: int, n: int, p: float) -> float:
    """Return the probability of `at_least` successes or more in n trials of probability p."""
    if at_least <= 0:
        return 1.0
    if at_least > n or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    if at_least <= n * p:
        return 1.0 - binomial_tail(n - at_least + 1, n, 1 - p)
    # Above the mean the terms fall: they are added up until they no longer count.
    log_choices = math.lgamma(n + 1) - math.lgamma(at_least + 1) - math.lgamma(n - at_least + 1)
    term = math.exp(log_choices + at_least * math.log(p) + (n - at_least) * math.log1p(-p))
    total = 0.0
    odds = p / (1 - p)
    for k in range(at_least, n + 1):
        total += term
        term *= odds * (n - k) / (k + 1)
        if term <= total * 1e-12:
            break
    return min(1.0, total)
