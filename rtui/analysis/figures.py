"""Turns what was counted into figures: as it is after a whole pass, or for all keys after a random sample."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Final, Protocol

from rtui.analysis.expiry_bins import Bin
from rtui.analysis.report import Figure, Quantiles
from rtui.analysis.sample_bytes import MOST_LARGE, Sums
from rtui.analysis.sketch import ERROR, Sketch

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
