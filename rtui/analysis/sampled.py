"""Figures for a whole keyspace from a random sample of its keys, each with its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from rtui.analysis import inference
from rtui.analysis.estimate import Estimate
from rtui.analysis.figures import SHARES
from rtui.analysis.report import Figure, Quantiles
from rtui.analysis.sketch import ERROR, Sketch

_NOTHING = Estimate(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SampleOf:
    """The whole that a sample was drawn from, each key at most once."""

    population: Figure | None = None
    """Its keys; None where nobody knows, then there are at least as many, and as many bytes, as in the sample."""


class Sampled:
    """Figures of a random sample of keys."""

    def __init__(self, sample: SampleOf, keys: int, memory: Sketch) -> None:
        whole = sample.population
        self._population: inference.Population = round(whole) if isinstance(whole, float) else whole
        self._keys = keys
        self._memory = memory
        self._memory_squares = memory.sum_of_squares()

    def all_keys(self) -> tuple[Figure, Figure]:
        """As many as the whole has, which are all."""
        return self.keys(self._keys) if self._population is None else self._population, 1.0

    def keys(self, count: float) -> Figure:
        """Their share of the sample, of the whole."""
        return inference.count(count, self._keys, self._population) or Estimate(count, count, inf)

    def share_keys(self, count: int) -> Figure:
        """By Wilson's interval."""
        return inference.share(count, self._keys, self._population)

    def share(self, count: int, of: int) -> Figure:
        """By Wilson's interval; the share of nothing may be any."""
        return inference.share(count, of, self._part(of))

    def memory(self, total: int, squares: Callable[[], float], largest: int) -> Figure:
        """Their mean over the sample, times all keys."""
        if self._population is None:
            return Estimate(total, total, inf)
        found = inference.total(total, squares(), self._memory.count, self._population, largest=largest)
        return found or _NOTHING

    def share_memory(self, total: int, squares: Callable[[], float]) -> Figure:
        """The ratio of two sums over the same sample."""
        whole = (float(self._memory.sum), self._memory_squares)
        part = (float(total), squares())
        found = inference.ratio(part, whole, self._memory.count, self._population, largest=self._memory.max)
        return found or _NOTHING

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """By order statistics: the sizes between which a quantile of the whole lies."""
        whole = self._part(sketch.count)
        mean = inference.mean(sketch.sum, sketch.sum_of_squares(), sketch.count, whole, largest=sketch.max)
        p50, p90, p99 = (inference.quantile(sketch, share, whole) or _NOTHING for share in SHARES)
        return Quantiles(mean or _NOTHING, p50, p90, p99, sketch.max, ERROR)

    def _part(self, count: int) -> int | None:
        """About how many keys of the whole there are for so many of the sample; None where nobody knows."""
        among = self._population
        if among is None:
            return None
        whole = among.value if isinstance(among, Estimate) else among
        return max(count, round(count * whole / self._keys)) if self._keys else count
