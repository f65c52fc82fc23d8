"""Timelines of when keys expire, and expiry cliffs: spans of time in which far more keys expire than around them.

A job that writes 100,000 keys with a TTL of an hour makes them expire within a minute an hour later. In the bins of
their namespace, keys a minute may be 40 50 45 **60,000 40,000** 55 45 …: that is a cliff. It is found as follows:

1. A bin begins a step up if it has at least 3 times the rate of the two bins before it, and if that is no chance; a bin
   ends with a step down if the same holds for the two bins after it. Here the 60,000 begin one, the 40,000 end one.
2. Each pair of a beginning and an end, at most 16 bins apart, is a candidate. It is measured against the denser side of
   its surroundings, 8 times its width to either side, and must have 4 times that rate, and 2 % of the keys.
3. The candidate with most keys above its surroundings is a cliff. Its bins are set to the rate around, and the search
   goes on, so that a smaller cliff beside a large one is found as well.

Bins hold keys by the absolute time at which they expire. A minute is a fine step for the next hour and a wasteful one
for next year, so bins get wider with their distance from the start of the pass: 1 minute for at least two hours, then 2
minutes for at least as long again, then 4, and so on, but never wider than 1/64 of the distance. A bin of 2^n minutes
begins at a multiple of 2^n minutes since the epoch, so the bin of an expiry at minute m begins at `m >> n << n`. There
are 64 to 128 bins of each width, so a year has about 1,000. If there are too many bins, they are coarsened: neighbours
are joined in pairs, at most 64 to one, by the same shift with a larger n.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from typing import Final, NamedTuple

from rtui.analysis.estimates import binomial_tail
from rtui.analysis.report.figures import Figures, SizeSums
from rtui.analysis.report.members import MINUTE_S, Cliff, ExpiryBin, Figure

FINENESS: Final = 6
"""A bin of expiries is at most 2^-6 = 1/64 as wide as it is far from the start of the pass, and at least a minute."""

LEVELS: Final = 50
"""Widths of bins go up to 2^50 minutes: more than the longest time to live that a server can hold."""


def level_borders(origin_min: int) -> list[int]:
    """Return the first minute since the epoch of each level but the lowest, of bins for a pass that began then.

    A bin of level n is 2^n minutes wide. The levels change at multiples of 64 widths, so that up to 64 neighbours join
    into one bin of a higher level without remainder.
    """
    steps = [1 << (level + FINENESS) for level in range(1, LEVELS)]
    return [-(-(origin_min + step) // step) * step for step in steps]


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
        """Start, keys, bytes and squares of each bin; 2^coarseness bins of the scale are joined to one."""
        self._origin_min, self._coarseness = origin_min, coarseness
        self._borders = level_borders(origin_min)
        self._bins = [Bin(start, self._width(start), *sums) for start, *sums in sorted(counted)]

    @property
    def total(self) -> int:
        return sum(one.keys for one in self._bins)

    def bins(self) -> list[Bin]:
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


FALSE_ALARMS: Final = 0.002
"""At most how many cliffs one timeline of even expiries is expected to show by chance."""

EVEN: Final = 2.0
"""Expiries are even as long as no bin has more than this multiple of the rate of the two bins next to it."""

STEP: Final = 3.0
"""Least ratio of a step: a cliff's first and last bin have this multiple of the rate outside."""

RATIO: Final = 4.0
"""Least ratio of a cliff's rate to that of its surroundings, on either side."""

FLANK: Final = 8
"""Width of a cliff's surroundings on either side, as a multiple of its own."""

LONGEST_CLIFF: Final = 16
LEAST_SHARE: Final = 0.02
LEAST_KEYS: Final = 20
"""Least keys of a cliff: a share of the keys of its namespace, and a number."""

START_BINS: Final = 3
"""Bins at the start of the pass in which a cliff may begin without a step, as nothing lies before them."""

RATIO_AT_START: Final = 10.0
REST_AT_START: Final = 0.1
"""There a cliff must stand out by this factor from the bins after it, at once and later; and this share of the expiring
keys must expire later, or else the keys are just short-lived."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Bins `first` … `last`, and the rate around them in keys a minute."""

    first: int
    last: int
    keys: int
    minutes: int
    rate_around: float


def find_cliffs(
    bins: ExpiryBins,
    *,
    keys: int | None = None,
    path: tuple[bytes, ...] = (),
    label: str = "all keys",
    figures: Figures | None = None,
    largest: int = 0,
) -> list[Cliff]:
    """Return the cliffs of one namespace, most keys first; `keys` are all its keys, expiring or not.

    `figures` turns counts into figures (as counted by default), of keys none of which is larger than `largest`.

    A cliff begins and ends with a step, each more than EVEN times as dense as the bins outside, with a significance of
    FALSE_ALARMS over all possible steps (the exact test of two Poisson rates of Przyborowski and Wilenski, Bonferroni),
    and stands out from its surroundings. Ramps, decays, and lives that begin anew with every access, whose density ends
    in a sharp edge, are uneven, but have no step on both sides.

    At the start of the pass nothing tells a cliff from keys that always have so short a life. There only the first
    minutes of a namespace are a cliff, if they stand out more, and the whole keyspace, where lives are mixed, has none.
    """
    figures = figures or Figures()
    search = _CliffSearch(list(bins.contiguous(beyond=LONGEST_CLIFF * FLANK)), may_start=bool(path))
    total = bins.total if keys is None else keys
    found = search.all(max(LEAST_KEYS, LEAST_SHARE * total))
    cliffs = []
    for span in sorted(found, key=lambda one: (-one.keys, one.first)):
        inside = search.bins[span.first : span.last + 1]
        start_min, end_min = inside[0].start_min, inside[0].start_min + span.minutes
        keys_inside, size = sum(one.keys for one in inside), sum(one.memory_bytes for one in inside)
        whole = Bin(start_min, span.minutes, keys_inside, size, sum(one.memory_squares for one in inside))
        cliff = Cliff(
            path=path,
            label=label,
            start_s=float(start_min * MINUTE_S),
            end_s=float(end_min * MINUTE_S),
            keys=figures.keys(keys_inside),
            share=figures.share(keys_inside, total),
            memory_bytes=bin_memory(whole, figures, largest) if size else None,
            expected_keys=figures.keys(search.span(span.first, span.last).rate_around * span.minutes),
        )
        cliffs.append(cliff)
    return cliffs


class _CliffSearch:
    """The bins of one timeline, in which cliffs are found and levelled out one by one."""

    def __init__(self, bins: list[Bin], *, may_start: bool) -> None:
        self.bins = bins
        self._may_start = may_start
        self._keys = [float(one.keys) for one in bins]
        self._is_levelled = [False] * len(bins)
        self._significance = FALSE_ALARMS / max(1, 2 * len(bins))
        self._keys_to = [0.0, *accumulate(self._keys)]
        self._minutes_to = [0, *accumulate(one.width_min for one in bins)]

    def all(self, least: float) -> Iterator[_Span]:
        while span := self._strongest(least):
            yield span
            # Its bins get the rate around them, and cannot be part of another cliff.
            for index in range(span.first, span.last + 1):
                self._keys[index] = span.rate_around * self.bins[index].width_min
                self._is_levelled[index] = True
            self._keys_to = [0.0, *accumulate(self._keys)]

    def _strongest(self, least: float) -> _Span | None:
        size = len(self.bins) - 2
        filled = [i for i in range(size) if self._keys[i]]
        begins = [i for i in filled if i == 0 or self._is_step(i, max(0, i - 2), i)]
        ends = {i for i in filled if self._is_step(i, i + 1, i + 3)} if begins else set()
        found = [
            span
            for first in begins
            for last in range(first, min(first + LONGEST_CLIFF, size))
            if last in ends and (span := self.span(first, last)).keys >= least and self._stands_out(span)
        ]
        return max(found, key=lambda one: one.keys - one.rate_around * one.minutes, default=None)

    def _is_step(self, index: int, outside: int, end: int) -> bool:
        keys, minutes = self._keys[index], self.bins[index].width_min
        keys_outside, minutes_outside = self._sums(outside, end)
        if not keys or keys * minutes_outside < STEP * keys_outside * minutes:
            return False
        part = EVEN * minutes / (EVEN * minutes + minutes_outside)
        return binomial_tail(round(keys), round(keys + keys_outside), part) <= self._significance

    def span(self, first: int, last: int) -> _Span:
        keys, minutes = self._sums(first, last + 1)
        flank = FLANK * minutes
        end = max(last + 2, bisect_right(self._minutes_to, self._minutes_to[last + 1] + flank) - 1)
        keys_beside, minutes_beside = self._sums(last + 1, end)
        rate = keys_beside / minutes_beside
        if first:
            start = min(first - 1, bisect_left(self._minutes_to, self._minutes_to[first] - flank))
            keys_beside, minutes_beside = self._sums(start, first)
            rate = max(rate, keys_beside / minutes_beside)
        return _Span(first, last, round(keys), minutes, rate)

    def _stands_out(self, span: _Span) -> bool:
        for index in range(span.first, span.last + 1):
            around = span.rate_around * self.bins[index].width_min
            if self._is_levelled[index] or self._keys[index] <= EVEN * around:
                return False
        if span.first >= START_BINS:
            return span.keys >= RATIO * span.rate_around * span.minutes
        keys_next, minutes_next = self._sums(span.last + 1, span.last + 3)
        later = self._keys_to[-1] - self._keys_to[span.last + 2]
        return (
            self._may_start
            and span.last < START_BINS
            and span.keys >= RATIO_AT_START * max(span.rate_around, keys_next / minutes_next) * span.minutes
            and later >= REST_AT_START * self._keys_to[-1]
        )

    def _sums(self, first: int, end: int) -> tuple[float, int]:
        return self._keys_to[end] - self._keys_to[first], self._minutes_to[end] - self._minutes_to[first]


BinFigure = Callable[[Bin], Figure]


def timeline_bins(
    bins: ExpiryBins, *, keys: BinFigure = lambda one: one.keys, memory_bytes: BinFigure = lambda one: one.memory_bytes
) -> tuple[ExpiryBin, ...]:
    """Return the bins that hold keys, soonest first; memory that is unknown of some of its keys is a lower bound."""
    return tuple(
        ExpiryBin(
            start_s=float(one.start_min * MINUTE_S),
            width_s=float(one.width_min * MINUTE_S),
            keys=keys(one),
            memory_bytes=memory_bytes(one) if one.memory_bytes else None,
        )
        for one in bins.bins()
    )


def bin_memory(one: Bin, figures: Figures, largest: int) -> Figure:
    """Return how many bytes expire in a bin, of keys none of which is larger than `largest`.

    Of the sizes in a bin only the sum of their squares is known: where one key is large beside all others, its size is
    about the root of that.
    """
    total = float(one.memory_bytes)
    most = min(float(largest), total, sqrt(one.memory_squares))
    return figures.memory(one.memory_bytes, lambda: SizeSums(total, float(one.memory_squares), (most,)))
