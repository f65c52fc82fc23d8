"""When keys expire: counts and bytes by absolute time, finer the sooner it is.

A minute is a fine step for the next hour and a wasteful one for next year, so bins get wider with their distance from
the start of the pass: 1 minute for at least two hours, then 2 minutes for at least as long again, then 4, and so on,
but never wider than 1/64 of the distance. A bin of 2^n minutes begins at a multiple of 2^n minutes since the epoch, so
the bin of an expiry at minute m begins at `m >> n << n`, and merging two sets of keys adds up equal keys of two
dictionaries. There are 64 to 128 bins a width, so a year has about 1,000. Where many sets have too many bins together,
some of them are coarsened: neighbours are joined in pairs, at most 64 to one, by the same shift with a larger n.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, NamedTuple

from rtui.table import buckets

FINENESS: Final = buckets.FINENESS

CACHED_MINUTES: Final = 1 << 16
"""Minutes from the start of the pass whose bins are cached once looked up: 45 days."""

PENDING: Final = 256
"""Expiries of a set that are collected before they are counted into bins."""


class ExpiryScale(dict[int, int]):
    """The bins of a pass: maps a minute since the epoch to the first minute of its bin, cached for near ones."""

    def __init__(self, origin_min: int) -> None:
        super().__init__()
        self.origin_min = origin_min
        """The start of the pass, in minutes since the epoch."""
        self.borders = buckets.level_borders(origin_min)
        """The first minute of each level but the lowest."""

    def __missing__(self, minute: int) -> int:
        level = self.level(minute)
        start = minute >> level << level
        if 0 <= minute - self.origin_min < CACHED_MINUTES:
            self[minute] = start
        return start

    def level(self, minute: int) -> int:
        """Return the level of the bin in which a minute lies."""
        return bisect_right(self.borders, minute)


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
    """Counts expiries of one set of keys in the bins of a scale.

    The first few hundred are only collected at 16 bytes each, so that many small sets cost little.
    """

    def __init__(self, scale: ExpiryScale) -> None:
        self.coarseness = 0
        """2^coarseness bins of the scale are joined to one."""
        self._scale = scale
        self._keys: Counter[int] = Counter()
        self._memory: defaultdict[int, int] = defaultdict(int)
        self._squares: defaultdict[int, int] = defaultdict(int)
        self._counted = 0
        self._has_finer_bins = False
        """Whether there are bins that are not joined to the present coarseness yet."""
        self._pending_starts = array("q")
        self._pending_memory = array("q")

    @property
    def total(self) -> int:
        """Keys that expire."""
        return self._counted + len(self._pending_starts)

    def __len__(self) -> int:
        """Return the number of bins, or more before `count`: each expiry that is only collected counts as one."""
        return len(self._keys) + len(self._pending_starts)

    def add(self, minutes: Sequence[int], memory_bytes: Sequence[int] | None) -> None:
        """Count keys by the minute since the epoch in which they expire; `memory_bytes` is parallel, or not known."""
        self._pending_starts.extend(map(self._scale.__getitem__, minutes))
        self._pending_memory.extend(repeat(0, len(minutes)) if memory_bytes is None else memory_bytes)
        if len(self._pending_starts) >= PENDING:
            self._count_pending()

    def count(self) -> None:
        """Count what was only collected, so that there are no more bins than the present coarseness needs."""
        self._count_pending()
        self._join()

    def _count_pending(self) -> None:
        if not self._pending_starts:
            return
        starts, self._pending_starts = self._pending_starts, array("q")
        sizes, self._pending_memory = self._pending_memory, array("q")
        self._counted += len(starts)
        self._has_finer_bins = self._has_finer_bins or self.coarseness > 0
        self._keys.update(starts)
        sums, squares = self._memory, self._squares
        for start, size in zip(starts, sizes, strict=True):
            sums[start] += size
            squares[start] += size * size

    def _join(self) -> None:
        """Join all bins to the present coarseness."""
        if not self._has_finer_bins:
            return
        self._has_finer_bins = False
        keys, memory, squares = self._keys, self._memory, self._squares
        self._keys, self._memory, self._squares = Counter(), defaultdict(int), defaultdict(int)
        for start, count in keys.items():
            level = self._scale.level(start) + self.coarseness
            joined = start >> level << level
            self._keys[joined] += count
            self._memory[joined] += memory[start]
            self._squares[joined] += squares[start]

    def coarsen(self) -> None:
        """Join pairs of neighbours, so that there are about half as many bins; at most 64 of the scale to one."""
        self._count_pending()
        self.coarseness = min(self.coarseness + 1, FINENESS)
        self._has_finer_bins = True
        self._join()

    def merge(self, other: ExpiryBins) -> None:
        """Add the counts of another set of the same scale; the coarser of both decides."""
        self._count_pending()
        other._count_pending()
        self._has_finer_bins |= other._has_finer_bins or other.coarseness != self.coarseness
        self.coarseness = max(self.coarseness, other.coarseness)
        self._counted += other._counted
        self._keys.update(other._keys)
        for mine, others in ((self._memory, other._memory), (self._squares, other._squares)):
            for start, amount in others.items():
                mine[start] += amount

    @classmethod
    def of(cls, scale: ExpiryScale, coarseness: int, bins: Iterable[tuple[int, int, int, int]]) -> ExpiryBins:
        """Return a set of the bins that were counted elsewhere: start, keys, bytes and squares of each."""
        made = cls(scale)
        made.coarseness = coarseness
        for start, keys, size, squares in bins:
            made._keys[start] = keys
            made._memory[start] = size
            made._squares[start] = squares
        made._counted = made._keys.total()
        return made

    def bins(self) -> Iterator[Bin]:
        """Yield all bins that hold keys, soonest first."""
        self.count()
        for start in sorted(self._keys):
            width = 1 << (self._scale.level(start) + self.coarseness)
            yield Bin(start, width, self._keys[start], self._memory[start], self._squares[start])

    def contiguous(self, beyond: int = 0) -> Iterator[Bin]:
        """Yield all bins without a gap, from the start of the pass to the last with keys and `beyond` empty ones."""
        filled = {one.start_min: one for one in self.bins()}
        if not filled:
            return
        first, last = min(self._scale.origin_min, *filled), max(filled)
        level = self._scale.level(first) + self.coarseness
        start = first >> level << level
        while start <= last or beyond > 0:
            beyond -= start > last
            width = 1 << (self._scale.level(start) + self.coarseness)
            yield filled.get(start) or Bin(start, width, 0, 0)
            start += width


def coarsen_to_budget(budget: int, sets: Iterable[ExpiryBins]) -> None:
    """Coarsen the sets that have fewest keys in a bin, until all together have no more bins than `budget`.

    Of sets with as many keys in a bin, those that come first are coarsened first.
    """
    filled = [one for one in sets if one]
    if sum(map(len, filled)) <= budget:
        return
    for one in filled:
        one.count()
    ranked = sorted(filled, key=lambda one: one.total / len(one))
    excess = sum(map(len, ranked)) - budget
    while excess > 0 and ranked:
        for one in ranked:
            before = len(one)
            one.coarsen()
            excess -= before - len(one)
            if excess <= 0:
                return
        ranked = [one for one in ranked if one.coarseness < FINENESS]
