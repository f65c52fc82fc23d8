"""When keys expire: counts and bytes by absolute time, finer the sooner it is."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

FINENESS: Final = 6
"""A bin is at most 2**-6 = 1/64 as wide as it is far from the start of the pass, and at least a minute."""

LEVELS: Final = 50
"""Widths up to 2**50 minutes: more than the longest time to live a server can hold."""

REMEMBERED: Final = 1 << 16
"""Minutes from the start whose bins are remembered once looked up: 45 days."""

MOST_BINS: Final = 2048
"""How many bins one set of keys has at most, unless told otherwise: enough for years at full resolution."""

PENDING: Final = 256
"""Expiries that are only noted down before they are counted into bins."""


class ExpiryScale(dict[int, int]):
    """The bins of a pass: from any minute to the first minute of its bin, remembered for the near ones.

    A bin of level l is 2**l minutes wide and begins at a multiple of its width. The levels change at multiples of 64
    widths, so that up to 64 neighbours join into one bin of a higher level without remainder, and bins of two passes
    lie within each other.
    """

    def __init__(self, origin_min: int) -> None:
        super().__init__()
        self.origin_min = origin_min
        """The start of the pass, in minutes since the epoch."""
        self._borders = [_border(origin_min, level) for level in range(1, LEVELS)]

    def __missing__(self, minute: int) -> int:
        level = bisect_right(self._borders, minute)
        start = minute >> level << level
        if 0 <= minute - self.origin_min < REMEMBERED:
            self[minute] = start
        return start

    def level(self, minute: int) -> int:
        """The level of the bin in which a minute lies."""
        return bisect_right(self._borders, minute)

    def starts(self, minutes: Sequence[int]) -> list[int]:
        """The first minute of the bin of each of these minutes since the epoch."""
        return list(map(self.__getitem__, minutes))


def _border(origin_min: int, level: int) -> int:
    """Return where bins of this level begin: 64 widths from the origin, rounded up to a multiple of 64 widths."""
    step = 1 << (level + FINENESS)
    return -(-(origin_min + step) // step) * step


@dataclass(frozen=True, slots=True)
class Bin:
    """Keys that expire within `width_min` minutes from `start_min`, minutes since the epoch."""

    start_min: int
    width_min: int
    keys: int
    memory_bytes: int
    """Of those keys whose memory is known."""
    memory_squares: int = 0
    """The sum of the squares of their sizes, by which the bytes of a sample become an estimate."""


class ExpiryBins:
    """Counts expiries of one set of keys, in at most `most` bins: where they lie in more, neighbours are joined.

    The first few hundred are only noted down at 16 bytes each, so that many small sets cost little.
    """

    def __init__(self, scale: ExpiryScale, *, most: int = MOST_BINS) -> None:
        self.memory_known_keys = 0
        """Keys whose memory is known: what the bytes of the bins rest on."""
        self.coarseness = 0
        """2**coarseness bins of the scale are joined to one."""
        self._scale = scale
        self._most = most
        self._keys: Counter[int] = Counter()
        self._memory: defaultdict[int, int] = defaultdict(int)
        self._squares: defaultdict[int, int] = defaultdict(int)
        self._counted = 0
        self._is_loose = False
        """Whether there are bins that are not yet brought to the scale and coarseness of all."""
        self._is_rescaled = False
        """Whether starts may come by a later scale than this one, with finer bins."""
        self._pending_starts = array("q")
        self._pending_memory = array("q")

    @property
    def total(self) -> int:
        """Keys that expire."""
        return self._counted + len(self._pending_starts)

    def __len__(self) -> int:
        """Give the number of bins, or more: expiries that are only noted down count as one each."""
        return len(self._keys) + len(self._pending_starts)

    @property
    def soonest_min(self) -> int | None:
        """The first minute of the first bin, in minutes since the epoch; None where nothing expires."""
        self._count_pending()
        return min(map(self._joined, self._keys)) if self._keys else None

    def add(self, minutes: Sequence[int], memory_bytes: Sequence[int] | None) -> None:
        """Count keys by the minute since the epoch in which they expire; both parallel, None: not known."""
        self.add_starts(self._scale.starts(minutes), memory_bytes)

    def add_starts(self, starts: Sequence[int], memory_bytes: Sequence[int] | None) -> None:
        """Count keys by the starts of their bins, as the scale tells them: for who asks it once for many sets."""
        self._pending_starts.extend(starts)
        if memory_bytes is None:
            self._pending_memory.extend(repeat(0, len(starts)))
        else:
            self._pending_memory.extend(memory_bytes)
            self.memory_known_keys += len(starts)
        if len(self._pending_starts) >= PENDING:
            self._count_pending()

    def _count_pending(self) -> None:
        starts, self._pending_starts = self._pending_starts, array("q")
        sizes, self._pending_memory = self._pending_memory, array("q")
        self._counted += len(starts)
        self._is_loose = self._is_loose or self.coarseness > 0 or self._is_rescaled
        self._keys.update(starts)
        sums, squares = self._memory, self._squares
        for start, size in zip(starts, sizes, strict=True):
            sums[start] += size
            squares[start] += size * size
        if len(self._keys) > self._most:
            self._fit()

    def _fit(self) -> None:
        """Join neighbours until there is room again, as far as bins can be joined."""
        self._join()
        while len(self._keys) > self._most * 3 // 4 and self.coarseness < FINENESS:
            self.coarseness += 1
            self._is_loose = True
            self._join()

    def _joined(self, start: int) -> int:
        """Return where the joined bin begins that holds the bin beginning here."""
        level = self._scale.level(start) + self.coarseness
        return start >> level << level

    def _join(self) -> None:
        """Bring every bin to the scale and coarseness of all, unless all are."""
        if not self._is_loose:
            return
        self._is_loose = False
        keys, memory, squares = self._keys, self._memory, self._squares
        self._keys, self._memory, self._squares = Counter(), defaultdict(int), defaultdict(int)
        for start, count in keys.items():
            joined = self._joined(start)
            self._keys[joined] += count
            self._memory[joined] += memory[start]
            self._squares[joined] += squares[start]

    def coarsen(self) -> None:
        """Join pairs of neighbours, so that there are about half as many bins; 64 to one at most."""
        self._count_pending()
        self.coarseness = min(self.coarseness + 1, FINENESS)
        self._is_loose = True
        self._join()

    def merge(self, other: ExpiryBins) -> None:
        """Take up another's counts: no key is lost, and each bin of the result holds whole bins of both."""
        self._count_pending()
        other._count_pending()
        is_alike = other._scale.origin_min == self._scale.origin_min and other.coarseness == self.coarseness
        self._is_loose = self._is_loose or other._is_loose or not is_alike
        if other._scale.origin_min < self._scale.origin_min:
            self._scale = other._scale
            self._is_rescaled = True
        self.coarseness = max(self.coarseness, other.coarseness)
        self._counted += other._counted
        self.memory_known_keys += other.memory_known_keys
        self._keys.update(other._keys)
        for mine, others in ((self._memory, other._memory), (self._squares, other._squares)):
            for start, amount in others.items():
                mine[start] += amount
        if len(self._keys) > self._most:
            self._fit()

    def bins(self) -> Iterator[Bin]:
        """All bins that hold keys, soonest first."""
        self._count_pending()
        self._join()
        for start in sorted(self._keys):
            width = 1 << (self._scale.level(start) + self.coarseness)
            yield Bin(start, width, self._keys[start], self._memory[start], self._squares[start])

    def stretch(self, beyond: int = 0) -> Iterator[Bin]:
        """All bins without a gap, from the start of the pass to the last with keys and some empty ones beyond."""
        self._count_pending()
        self._join()
        if not self._keys:
            return
        start = self._joined(min(self._scale.origin_min, *self._keys))
        last = max(self._keys)
        while start <= last or beyond > 0:
            beyond -= start > last
            width = 1 << (self._scale.level(start) + self.coarseness)
            keys, memory = self._keys.get(start, 0), self._memory.get(start, 0)
            yield Bin(start, width, keys, memory, self._squares.get(start, 0))
            start += width


def keep_within(budget: int, sets: Iterable[ExpiryBins]) -> None:
    """Coarsen those of many sets that have fewest keys a bin, until all together have no more bins than `budget`."""
    ranked = sorted((one for one in sets if one), key=lambda one: one.total / len(one))
    excess = sum(map(len, ranked)) - budget
    while excess > 0 and ranked:
        for one in ranked:
            before = len(one)
            one.coarsen()
            excess -= before - len(one)
            if excess <= 0:
                return
        ranked = [one for one in ranked if one.coarseness < FINENESS]
