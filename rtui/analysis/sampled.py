"""Figures for a whole keyspace from a random sample of its keys, each with its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rtui.analysis.estimate import Z_95, Estimate, wilson
from rtui.analysis.figures import SHARES
from rtui.analysis.report import Figure, Quantiles
from rtui.analysis.sketch import ERROR, Sketch


@dataclass(frozen=True, slots=True)
class SampleOf:
    """The whole that a sample was drawn from, without replacement."""

    population: Figure | None = None
    """Its keys; None where nobody knows, then counts and sums are those of the sample."""


class Sampled:
    """Figures of a random sample of keys."""

    def __init__(self, sample: SampleOf, keys: int, memory: Sketch | None) -> None:
        self._keys = keys
        self._memory_sum = 0 if memory is None else memory.sum
        self._memory_squares = 0.0 if memory is None else memory.sum_of_squares()
        self._memory_known = 0 if memory is None else memory.count
        self._population = _interval(keys if sample.population is None else sample.population)
        self._whole = max(keys, round(self._population.value))

    def keys(self, count: int) -> Figure:
        """The share of the sample, of all keys."""
        return _product(self._share(count, self._keys), self._population)

    def share_keys(self, count: int) -> Figure:
        """By Wilson's interval."""
        return self._share(count, self._keys)

    def share(self, count: int, of: int) -> Figure:
        """By Wilson's interval; the share of nothing may be any."""
        return wilson(count, of)

    def memory(self, total: int, squares: Callable[[], float]) -> Figure:
        """The mean over the sample, of all keys."""
        return _product(self._mean(total, squares(), self._memory_known), self._population)

    def share_memory(self, total: int, squares: Callable[[], float]) -> Figure:
        """By the ratio of two sums over the same sample."""
        n, whole = self._memory_known, self._memory_sum
        if not whole:
            return Estimate(0.0, 0.0, 1.0)
        ratio = total / whole
        residuals = squares() * (1 - 2 * ratio) + ratio * ratio * self._memory_squares
        spread = Z_95 * math.sqrt(max(0.0, residuals) * self._left()) / whole if n > 1 else 1.0
        return Estimate(max(0.0, ratio - spread), ratio, min(1.0, ratio + spread))

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """By order statistics: the ranks between which a quantile of the whole lies."""
        mean = self._mean(sketch.sum, sketch.sum_of_squares(), sketch.count)
        p50, p90, p99 = (_quantile(sketch, share) for share in SHARES)
        return Quantiles(mean, p50, p90, p99, sketch.max, ERROR)

    def _share(self, count: int, of: int) -> Estimate:
        return wilson(count, of, population=self._whole)

    def _mean(self, total: int, squares: float, n: int) -> Estimate:
        if not n:
            return Estimate(0.0, 0.0, 0.0)
        mean = total / n
        variance = max(0.0, squares / n - mean * mean) * n / max(1, n - 1)
        spread = Z_95 * math.sqrt(variance / n * self._left())
        return Estimate(max(0.0, mean - spread), mean, mean + spread)

    def _left(self) -> float:
        """What of the variance is left since the sample is a part of the whole."""
        return max(0.0, 1 - self._keys / self._whole) if self._whole else 1.0


def _quantile(sketch: Sketch, share: float) -> Estimate:
    n = sketch.count
    spread = Z_95 * math.sqrt(n * share * (1 - share))
    ranks = (math.floor(n * share - spread), math.ceil(n * share) - 1, math.ceil(n * share + spread))
    low, value, high = sketch.ranked([min(n - 1, max(0, rank)) for rank in ranks])
    return Estimate(low, value, high)


def _interval(figure: Figure) -> Estimate:
    return figure if isinstance(figure, Estimate) else Estimate(figure, figure, figure)


def _product(one: Estimate, other: Estimate) -> Estimate:
    """The product of two independent estimates that are not negative: their relative errors add up squared."""
    value = one.value * other.value

    def off(of_one: float, of_other: float) -> float:
        return math.hypot(of_one * other.value, of_other * one.value)

    below = off(one.value - one.low, other.value - other.low)
    above = off(one.high - one.value, other.high - other.value)
    return Estimate(max(0.0, value - below), value, value + above)
