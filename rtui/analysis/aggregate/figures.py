"""Turns what was counted into figures of a report: exact ones after a whole pass, estimates after a random sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final

from rtui.analysis import estimates
from rtui.analysis.aggregate.expiry_bins import Bin
from rtui.analysis.aggregate.sample_bytes import MOST_LARGE, SampleBytes, SizeSums
from rtui.analysis.aggregate.sketch import ERROR, Sketch
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Quantiles
from rtui.analysis.report.members import Figure

SHARES: Final = (0.5, 0.9, 0.99)
"""The quantiles of a report."""


class Figures:
    """Figures of a whole pass: what was counted is what there is."""

    def __init__(self, keys: int = 0, memory_bytes: int = 0) -> None:
        """`keys` and `memory_bytes` are those of all keys that were inspected."""
        self._keys = keys
        self._memory_bytes = memory_bytes

    def all_keys(self) -> tuple[Figure, Figure]:
        """Return how many keys there are in all, and that as a share."""
        return self._keys, 1.0 if self._keys else 0.0

    def keys(self, count: float) -> Figure:
        """Return how many keys there are like `count` of the inspected ones."""
        return count

    def share_keys(self, count: int) -> Figure:
        """Return their share of all keys."""
        return self.share(count, self._keys)

    def share(self, count: int, of: int) -> Figure:
        """Return the share of `count` in `of` of the inspected keys."""
        return count / of if of else 0.0

    def memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        """Return the bytes of all keys like those that have `total`; `sums` computes what an estimate needs."""
        return total

    def share_memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        """Return their share of the bytes of all keys."""
        return self.share(total, self._memory_bytes)

    def memory_quantiles(self, sketch: Sketch) -> Quantiles:
        """Return the spread of their bytes."""
        return self.quantiles(sketch)

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """Return the spread of other sizes, such as lengths."""
        p50, p90, p99 = sketch.quantiles(SHARES)
        return Quantiles(mean=sketch.mean, p50=p50, p90=p90, p99=p99, max=sketch.max, error=ERROR)


@dataclass(frozen=True, slots=True)
class SampledKeyspace:
    """The keyspace that a sample was drawn from, each key at most once."""

    population: Figure | None = None
    """Its keys; None where it is not known: there are at least as many keys and bytes as in the sample then."""
    memory_bytes: int | None = None
    """The most bytes that all of its keys can have, by the server's memory; None where that is not known."""


_NOTHING: Final = Estimate(0.0, 0.0, 0.0)


class SampleFigures(Figures):
    """Figures of a random sample of keys: estimates for the whole keyspace."""

    def __init__(self, keyspace: SampledKeyspace, keys: int, memory: Sketch) -> None:
        """`keys` and `memory` are those of the sample."""
        super().__init__(keys, memory.sum)
        whole = keyspace.population
        self._population: estimates.Population = round(whole) if isinstance(whole, float) else whole
        self._bytes = SampleBytes(sums_of(memory), memory.count, self._population, keyspace.memory_bytes)

    def all_keys(self) -> tuple[Figure, Figure]:
        """Return the keys of the keyspace, at least those of the sample, and 1."""
        return self.keys(self._keys) if self._population is None else self._population, 1.0

    def keys(self, count: float) -> Estimate:
        """Extrapolate; the upper bound is infinite where the size of the keyspace is not known."""
        at_least = Estimate(count, count, inf)
        if count > self._keys:  # of keys that vanished before all of their facts were read
            return at_least
        return estimates.count(count, self._keys, self._population) or at_least

    def share_keys(self, count: int) -> Figure:
        """Estimate by Wilson's interval."""
        return estimates.share(count, self._keys, self._population)

    def share(self, count: int, of: int) -> Figure:
        """Estimate by Wilson's interval; the share of no keys may be any."""
        return estimates.share(count, of, self._part(of))

    def memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        """Estimate by `SampleBytes`."""
        return self._bytes.total(sums())

    def share_memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        """Estimate by `SampleBytes`."""
        return self._bytes.share(sums())

    def memory_quantiles(self, sketch: Sketch) -> Quantiles:
        """Estimate the mean by `SampleBytes`, the quantiles as those of other sizes."""
        mean = self._bytes.mean(sums_of(sketch), sketch.count, self.keys(sketch.count))
        return self._spread(sketch, mean)

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """Estimate by order statistics: the sizes between which a quantile of the whole lies."""
        whole = self._part(sketch.count)
        squares = sketch.sum_of_squares()
        return self._spread(sketch, estimates.mean(sketch.sum, squares, sketch.count, whole, largest=sketch.max))

    def _spread(self, sketch: Sketch, mean: Estimate | None) -> Quantiles:
        whole = self._part(sketch.count)
        p50, p90, p99 = (
            estimates.quantile(sketch.quantiles, sketch.count, share, whole) or _NOTHING for share in SHARES
        )
        return Quantiles(mean=mean or _NOTHING, p50=p50, p90=p90, p99=p99, max=sketch.max, error=ERROR)

    def _part(self, count: int) -> int | None:
        """Return about how many keys of the keyspace there are for so many of the sample; None where not known."""
        if self._population is None or not self._keys:
            return None if self._population is None else count
        whole = self._population.value if isinstance(self._population, Estimate) else self._population
        return max(count, round(count * whole / self._keys))


def sums_of(sketch: Sketch) -> SizeSums:
    """Return what the sizes of a sketch add up to; the largest is exact, so that it can be taken out of the sums."""
    largest, squares = sketch.largest(MOST_LARGE), sketch.sum_of_squares()
    if largest:
        squares += float(sketch.max) ** 2 - largest[0] ** 2
        largest[0] = float(sketch.max)
    return SizeSums(float(sketch.sum), squares, tuple(sorted(largest, reverse=True)))


def bin_memory(one: Bin, figures: Figures, largest: int) -> Figure:
    """Return how many bytes expire in a bin, of keys none of which is larger than `largest`.

    Of the sizes in a bin only the sum of their squares is known: where one key is large beside all others, its size is
    about the root of that.
    """
    total = float(one.memory_bytes)
    most = min(float(largest), total, sqrt(one.memory_squares))
    return figures.memory(one.memory_bytes, lambda: SizeSums(total, float(one.memory_squares), (most,)))
