"""Turns what was counted into figures: as it is after a whole pass, or for all keys after a random sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final, Protocol

from rtui.analysis import estimates as inference
from rtui.analysis.aggregate.expiry_bins import Bin
from rtui.analysis.aggregate.sample_bytes import MOST_LARGE, SampleBytes, Sums
from rtui.analysis.aggregate.sketch import ERROR, Sketch
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Figure, Quantiles

SHARES = (0.5, 0.9, 0.99)
"""The quantiles of a report."""


class Figures(Protocol):
    """What can be said of parts of the keys that were inspected."""

    def all_keys(self) -> tuple[Figure, Figure]:
        """How many keys there are in all, and that as a share."""

    def keys(self, count: float) -> Figure:
        """As many keys are like the `count` that were inspected."""

    def share_keys(self, count: int) -> Figure:
        """Their share of all keys."""

    def share(self, count: int, of: int) -> Figure:
        """The share of `count` in `of` of the same keys."""

    def memory(self, total: int, sums: Callable[[], Sums]) -> Figure:
        """All bytes of keys of which those inspected have `total`; `sums` works out what is known of their sizes."""

    def share_memory(self, total: int, sums: Callable[[], Sums]) -> Figure:
        """Their share of the bytes of all keys."""

    def memory_quantiles(self, sketch: Sketch) -> Quantiles:
        """The spread of their bytes."""

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """The spread of sizes of another sort, such as lengths."""


def sums_of(sketch: Sketch) -> Sums:
    """Return what sizes add up to; the largest is exact, so that it can be taken out of the sums."""
    largest, squares = sketch.largest(MOST_LARGE), sketch.sum_of_squares()
    if largest:
        squares += float(sketch.max) ** 2 - largest[0] ** 2
        largest[0] = float(sketch.max)
    return Sums(float(sketch.sum), squares, tuple(sorted(largest, reverse=True)))


def memory_of(one: Bin, *, figures: Figures, largest: int) -> Figure:
    """Say how many bytes expire in a bin, of keys none of which is larger than `largest`.

    Of the sizes in a bin only the sum of their squares is known: where one key is large beside all others, it is the
    root of that.
    """
    most = min(float(largest), float(one.memory_bytes), sqrt(one.memory_squares))
    return figures.memory(one.memory_bytes, lambda: Sums(float(one.memory_bytes), float(one.memory_squares), (most,)))


class Exact:
    """Figures of a pass: what was counted is what there is."""

    def __init__(self, keys: int, memory_bytes: int) -> None:
        self._keys = keys
        self._memory_bytes = memory_bytes

    def all_keys(self) -> tuple[Figure, Figure]:
        """As counted."""
        return self._keys, 1.0 if self._keys else 0.0

    def keys(self, count: float) -> Figure:
        """As counted."""
        return count

    def share_keys(self, count: int) -> Figure:
        """As counted."""
        return self.share(count, self._keys)

    def share(self, count: int, of: int) -> Figure:
        """As counted; nothing is no share of nothing."""
        return count / of if of else 0.0

    def memory(self, total: int, sums: Callable[[], Sums]) -> Figure:
        """As summed up."""
        return total

    def share_memory(self, total: int, sums: Callable[[], Sums]) -> Figure:
        """As summed up."""
        return self.share(total, self._memory_bytes)

    def memory_quantiles(self, sketch: Sketch) -> Quantiles:
        """As sketched."""
        return self.quantiles(sketch)

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """As sketched."""
        p50, p90, p99 = sketch.quantiles(SHARES)
        return Quantiles(sketch.mean, p50, p90, p99, sketch.max, ERROR)


AS_COUNTED: Final = Exact(0, 0)
"""Figures of sets of keys by themselves, not as parts of a whole."""


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
