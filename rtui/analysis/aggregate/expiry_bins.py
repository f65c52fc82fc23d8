"""When keys expire: counts and bytes by absolute time, finer the sooner it is.

A minute is a fine step for the next hour and a wasteful one for next year, so bins get wider with their distance from
the start of the pass: 1 minute for at least two hours, then 2 minutes for at least as long again, then 4, and so on,
but never wider than 1/64 of the distance. A bin of 2^n minutes begins at a multiple of 2^n minutes since the epoch, so
the bin of an expiry at minute m begins at `m >> n << n`. There are 64 to 128 bins a width, so a year has about 1,000.
Where there are too many bins, they are coarsened: neighbours are joined in pairs, at most 64 to one, by the same shift
with a larger n.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rtui.table import buckets

FINENESS: Final = buckets.FINENESS


class Bin(NamedTuple):
    """Keys that expire within `width_min` minutes from `start_min`, in minutes since the epoch."""

    start_min: int
    width_min: int
    keys: int
    memory_bytes: int
    """Of those keys whose memory is known."""
    memory_squares: int = 0
    """The sum of the squares of their sizes, for the interval of an estimate."""


class ExpiryBins:
    """When the keys of one set expire."""

    def __init__(self, origin_min: int, coarseness: int = 0, counted: Iterable[tuple[int, int, int, int]] = ()) -> None:
        """Start, keys, bytes and squares of each bin; the pass began at this minute since the epoch.

        2^coarseness bins of the scale are joined to one.
        """
        self._origin_min, self._coarseness = origin_min, coarseness
        self._borders = buckets.level_borders(origin_min)
        self._bins = [Bin(start, self._width(start), *sums) for start, *sums in sorted(counted)]

    @property
    def total(self) -> int:
        """Keys that expire."""
        return sum(one.keys for one in self._bins)

    def bins(self) -> list[Bin]:
        """Return all bins that hold keys, soonest first."""
        return self._bins

    def _level(self, minute: int) -> int:
        return bisect_right(self._borders, minute) + self._coarseness

    def _width(self, start: int) -> int:
        return 1 << self._level(start)

    def contiguous(self, beyond: int = 0) -> Iterator[Bin]:
        """Yield all bins without a gap, from the start of the pass to the last with keys and `beyond` empty ones."""
        filled = {one.start_min: one for one in self._bins}
        if not filled:
            return
        first, last = min(self._origin_min, *filled), max(filled)
        level = self._level(first)
        start = first >> level << level
        while start <= last or beyond > 0:
            beyond -= start > last
            width = self._width(start)
            yield filled.get(start) or Bin(start, width, 0, 0)
            start += width
