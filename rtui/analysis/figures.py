"""Turns what was counted into figures: as it is after a whole pass, or for all keys after a random sample."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt
from typing import Final, Protocol

from rtui.analysis.expiry_bins import Bin
from rtui.analysis.report import Figure, Quantiles
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

    def memory(self, total: int, squares: Callable[[], float], largest: int) -> Figure:
        """All bytes of keys of which those inspected have `total`.

        `squares` works out the sum of their squares; none of them is larger than `largest`.
        """

    def share_memory(self, total: int, squares: Callable[[], float]) -> Figure:
        """Their share of the bytes of all keys."""

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """The spread of sizes."""


def memory_of(one: Bin, *, figures: Figures, largest: int) -> Figure:
    """Say how many bytes expire in a bin, of keys none of which is larger than `largest`."""
    most = min(largest, ceil(sqrt(one.memory_squares)))
    return figures.memory(one.memory_bytes, lambda: float(one.memory_squares), most)


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

    def memory(self, total: int, squares: Callable[[], float], largest: int) -> Figure:
        """As summed up."""
        return total

    def share_memory(self, total: int, squares: Callable[[], float]) -> Figure:
        """As summed up."""
        return self.share(total, self._memory_bytes)

    def quantiles(self, sketch: Sketch) -> Quantiles:
        """As sketched."""
        p50, p90, p99 = sketch.quantiles(SHARES)
        return Quantiles(sketch.mean, p50, p90, p99, sketch.max, ERROR)


AS_COUNTED: Final = Exact(0, 0)
"""Figures of sets of keys by themselves, not as parts of a whole."""
