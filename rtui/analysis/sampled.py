"""Figures for a whole keyspace from a random sample of its keys, each with its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from rtui.analysis import inference
from rtui.analysis.estimate import Estimate
from rtui.analysis.figures import SHARES, sums_of
from rtui.analysis.report import Figure, Quantiles
from rtui.analysis.sample_bytes import SampleBytes, Sums
from rtui.analysis.sketch import ERROR, Sketch

_NOTHING = Estimate(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SampleOf:
    """The whole that a sample was drawn from, each key at most once."""

    population: Figure | None = None
    """Its keys; None where nobody knows, then there are at least as many, and as many bytes, as in the sample."""
    memory_bytes: int | None = None
    """The most bytes that all of its keys can have, by what the server says of its memory; None where it does not."""


class Sampled:
    """Figures of a random sample of keys."""

    def __init__(self, sample: SampleOf, keys: int, memory: Sketch) -> None:
        whole = sample.population
        self._population: inference.Population = round(whole) if isinstance(whole, float) else whole
        self._keys = keys
        self._memory = memory
        self._bytes = SampleBytes(sums_of(memory), memory.count, self._population, sample.memory_bytes)

    def all_keys(self) -> tuple[Figure, Figure]:
        """As many as the whole has, which are all."""
        return self.keys(self._keys) if self._population is None else self._population, 1.0

    def keys(self, count: float) -> Figure:
        """Their share of the sample, of the whole."""
        if count > self._keys:  # of keys that were gone before the rest of them was asked
            return Estimate(count, count, inf)
        return inference.count(count, self._keys, self._population) or Estimate(count, count, inf)

    def share_keys(self, count: int) -> Figure:
        """By Wilson's interval."""
        return inference.share(count, self._keys, self._population)

    def share(self, count: int, of: int) -> Figure:
        """By Wilson's interval; the share of nothing may be any."""
        return inference.share(count, of, self._part(of))

    def memory(self, total: int, sums: Callable[[], Sums]) -> Figure:
        """As `SampleBytes` has it."""
        return self._bytes.total(sums())

    def share_memory(self, total: int, sums: Callable[[], Sums]) -> Figure:
        """As `SampleBytes` has it."""
        return self._bytes.share(sums())

    def memory_quantiles(self, sketch: Sketch) -> Quantiles:
        """The mean as `SampleBytes` has it, the others as of other sizes."""
        keys = inference.count(sketch.count, self._keys, self._population) or Estimate(sketch.count, sketch.count, inf)
        return self._spread(sketch, self._bytes.mean(sums_of(sketch), sketch.count, keys))

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """By order statistics: the sizes between which a quantile of the whole lies."""
        whole = self._part(sketch.count)
        squares = sketch.sum_of_squares()
        return self._spread(sketch, inference.mean(sketch.sum, squares, sketch.count, whole, largest=sketch.max))

    def _spread(self, sketch: Sketch, mean: Estimate | None) -> Quantiles:
        whole = self._part(sketch.count)
        p50, p90, p99 = (inference.quantile(sketch, share, whole) or _NOTHING for share in SHARES)
        return Quantiles(mean or _NOTHING, p50, p90, p99, sketch.max, ERROR)

    def _part(self, count: int) -> int | None:
        """About how many keys of the whole there are for so many of the sample; None where nobody knows."""
        among = self._population
        if among is None:
            return None
        whole = among.value if isinstance(among, Estimate) else among
        return max(count, round(count * whole / self._keys)) if self._keys else count
