"""Expiry cliffs: stretches of time in which far more keys expire than around them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final

from rtui.analysis.aggregate.expiry_bins import Bin, ExpiryBins, ExpiryScale
from rtui.analysis.aggregate.figures import AS_COUNTED, Figures, memory_of
from rtui.analysis.aggregate.pattern_tree import Pattern
from rtui.analysis.estimates import binomial_tail
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import MINUTE_S, Cliff, ExpiryBin, ExpiryReport, Figure, NodeKind, Timeline
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.display import display

FALSE_ALARMS: Final = 0.002
"""At most how many cliffs one timeline of even expiries is expected to show by chance."""

EVEN: Final = 2.0
"""Expiries are even as long as no bin has more than so many times the rate of the two bins next to it."""

STEP: Final = 3.0
"""A cliff begins and ends with a step: its first and last bin have at least so many times the rate outside."""

RATIO: Final = 4.0
"""A cliff has at least so many times the rate of what is around it, on either side."""

FLANK: Final = 8
"""Around it is as many times its own width."""

LONGEST: Final = 16
"""A cliff is at most so many bins long: what is broader is a hill."""

LEAST_SHARE: Final = 0.02
"""A cliff holds at least so much of the keys of its namespace."""

LEAST_KEYS: Final = 20
"""A cliff holds at least so many keys."""

RUN_UP: Final = 3
"""Bins at the start of the pass that may be cut short by it: a cliff that begins there has nothing before it."""

RATIO_AT_START: Final = 10.0
"""There a cliff must stand out by so much from what follows, at once and later,"""

REST_AT_START: Final = 0.1
"""and so much of what expires must live longer, else the keys are just short-lived."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Bins `first` … `last` with the rate around them, in keys a minute."""

    first: int
    last: int
    keys: int
    minutes: int
    around: float

    @property
    def excess(self) -> float:
        """How many keys more than around: what the strongest of several overlapping stretches has most of."""
        return self.keys - self.around * self.minutes


def find_cliffs(
    bins: ExpiryBins,
    *,
    keys: int | None = None,
    path: tuple[bytes, ...] = (),
    label: str = "all keys",
    figures: Figures = AS_COUNTED,
    largest: int = 0,
) -> list[Cliff]:
    """Find the cliffs of one namespace, most keys first; `keys` are all its keys, expiring or not.

    `figures` says what was counted, of keys none of which is larger than `largest`.

    A cliff begins and ends with a step, each more than EVEN times as dense as what lies outside, with a significance
    of FALSE_ALARMS over all steps there could be (the exact test of two Poisson rates of Przyborowski and Wilenski,
    Bonferroni), and stands out from what is around it. Asking for a step on both sides lets pass what is uneven but
    no cliff: ramps, decays, and lives that begin anew with every access, whose density ends in a sharp edge.

    At the start of the pass nothing tells a cliff from keys that live that shortly. There only the first minutes of a
    namespace are a cliff, if they stand out more, and the keyspace as a whole, where lives are mixed, has none.
    """
    landscape = _Landscape(list(bins.stretch(beyond=LONGEST * FLANK)), may_start=bool(path))
    least = max(LEAST_KEYS, LEAST_SHARE * (bins.total if keys is None else keys))
    found = []
    while stretch := landscape.strongest(least):
        landscape.level(stretch)
        found.append(stretch)
    total = bins.total if keys is None else keys
    cliffs = []
    for one in sorted(found, key=lambda one: (-one.keys, one.first)):
        whole = landscape.whole(one)
        cliff = Cliff(
            path=path,
            label=label,
            start_s=float(whole.start_min * MINUTE_S),
            end_s=float((whole.start_min + whole.width_min) * MINUTE_S),
            keys=figures.keys(whole.keys),
            share=figures.share(whole.keys, total),
            memory_bytes=memory_of(whole, figures=figures, largest=largest) if whole.memory_bytes else None,
            expected_keys=figures.keys(landscape.usual(one)),
        )
        cliffs.append(cliff)
    return cliffs


class _Landscape:
    """The bins of one timeline, of which found cliffs are taken out."""

    def __init__(self, bins: list[Bin], *, may_start: bool) -> None:
        self.bins = bins
        self._may_start = may_start
        self._keys = [float(one.keys) for one in bins]
        self._taken = [False] * len(bins)
        self._chance = FALSE_ALARMS / max(1, 2 * len(bins))
        self._measure()

    def _measure(self) -> None:
        self._keys_to = [0.0, *accumulate(self._keys)]
        self._minutes_to = [0, *accumulate(one.width_min for one in self.bins)]

    def level(self, stretch: _Stretch) -> None:
        """Take a cliff out: from now on its bins are like those around, and no part of another one."""
        for index in range(stretch.first, stretch.last + 1):
            self._keys[index] = stretch.around * self.bins[index].width_min
            self._taken[index] = True
        self._measure()

    def whole(self, stretch: _Stretch) -> Bin:
        """A stretch as one bin."""
        inside = self.bins[stretch.first : stretch.last + 1]
        return Bin(
            inside[0].start_min,
            stretch.minutes,
            sum(one.keys for one in inside),
            sum(one.memory_bytes for one in inside),
            sum(one.memory_squares for one in inside),
        )

    def usual(self, stretch: _Stretch) -> float:
        """How many keys would expire in a stretch if it were like what is around it, all cliffs taken out."""
        return self._stretch(stretch.first, stretch.last).around * stretch.minutes

    def strongest(self, least: float) -> _Stretch | None:
        """The stretch with most keys above what is around it, of those that are cliffs; None when there is none."""
        size = len(self.bins) - 2
        begins = [i for i in range(size) if i == 0 or self._is_step(i, max(0, i - 2), i)]
        ends = {i for i in range(size) if self._is_step(i, i + 1, i + 3)}
        found = [
            stretch
            for first in begins
            for last in range(first, min(first + LONGEST, size))
            if last in ends and (stretch := self._stretch(first, last)).keys >= least and self._stands_out(stretch)
        ]
        return max(found, key=lambda one: one.excess, default=None)

    def _is_step(self, index: int, outside: int, end: int) -> bool:
        """Whether a bin is that much denser than those from `outside` up to `end`."""
        keys, minutes = self._keys[index], self.bins[index].width_min
        there, time = self._sums(outside, end)
        if not keys or keys * time < STEP * there * minutes:
            return False
        chance = binomial_tail(round(keys), round(keys + there), EVEN * minutes / (EVEN * minutes + time))
        return chance <= self._chance

    def _stretch(self, first: int, last: int) -> _Stretch:
        """Measure a stretch and the denser side of what is around it."""
        keys, minutes = self._sums(first, last + 1)
        wanted = FLANK * minutes
        end = max(last + 2, bisect_right(self._minutes_to, self._minutes_to[last + 1] + wanted) - 1)
        there, time = self._sums(last + 1, end)
        around = there / time
        if first:
            start = min(first - 1, bisect_left(self._minutes_to, self._minutes_to[first] - wanted))
            there, time = self._sums(start, first)
            around = max(around, there / time)
        return _Stretch(first, last, round(keys), minutes, around)

    def _stands_out(self, stretch: _Stretch) -> bool:
        """Whether a stretch has many more keys than around, without a hole, and not only since they live shortly."""
        inside = range(stretch.first, stretch.last + 1)
        if any(self._taken[i] or self._keys[i] <= EVEN * stretch.around * self.bins[i].width_min for i in inside):
            return False
        if stretch.first >= RUN_UP:
            return stretch.keys >= RATIO * stretch.around * stretch.minutes
        next_to, time = self._sums(stretch.last + 1, stretch.last + 3)
        later = self._keys_to[-1] - self._keys_to[stretch.last + 2]
        return (
            self._may_start
            and stretch.last < RUN_UP
            and stretch.keys >= RATIO_AT_START * max(stretch.around, next_to / time) * stretch.minutes
            and later >= REST_AT_START * self._keys_to[-1]
        )

    def _sums(self, first: int, end: int) -> tuple[float, int]:
        """Keys and minutes of the bins from `first` up to `end`, without it."""
        return self._keys_to[end] - self._keys_to[first], self._minutes_to[end] - self._minutes_to[first]


MOST_TIMELINES = 12
"""So many namespaces get a timeline, besides the whole keyspace."""

FEWEST = 2
"""A namespace in which fewer keys expire gets none."""


Sizing = Callable[[Bin], Figure]
"""What a bin of a sample says of all keys."""


def timeline_bins(
    bins: ExpiryBins,
    *,
    keys: Sizing = lambda one: one.keys,
    memory_bytes: Sizing = lambda one: one.memory_bytes,
) -> tuple[ExpiryBin, ...]:
    """All bins that hold keys, soonest first; `keys` and `memory_bytes` turn those of a sample into estimates.

    Where memory is known of none of a bin's keys, it has none; where of some only, it is at least so much.
    """
    return tuple(
        ExpiryBin(
            start_s=float(one.start_min * MINUTE_S),
            width_s=float(one.width_min * MINUTE_S),
            keys=keys(one),
            memory_bytes=memory_bytes(one) if one.memory_bytes else None,
        )
        for one in bins.bins()
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A namespace and how many of its keys expire."""

    path: tuple[Pattern, ...]
    expiring: int


def expiry_report(root: Pattern, figures: Figures, scale: ExpiryScale, slicer: Slicer) -> Slices[ExpiryReport]:
    """Say what expires when below the namespaces that have most of it."""
    places: list[_Place] = []
    everything = yield from _find(root, (), places, slicer)
    places.sort(key=lambda place: (-place.expiring, [(one.name, one.separator) for one in place.path]))
    timelines, cliffs = [], []
    for place in [_Place((), everything), *places[:MOST_TIMELINES]] if everything else []:
        pattern = place.path[-1] if place.path else root
        bins, largest = ExpiryBins(scale), 0
        for tally in pattern.tallies():
            if tally.life is not None and tally.life.expiries is not None:
                bins.merge(tally.life.expiries)
                largest = max(largest, 0 if tally.memory is None else tally.memory.max)
            if slicer.over():
                yield
        names, label = tuple(one.name for one in place.path), _label(place.path)
        memory = partial(memory_of, figures=figures, largest=largest)
        columns = timeline_bins(bins, keys=lambda one: figures.keys(one.keys), memory_bytes=memory)
        timelines.append(Timeline(names, label, columns))
        if slicer.over():
            yield
        cliffs += find_cliffs(bins, keys=pattern.keys, path=names, label=label, figures=figures, largest=largest)
        if slicer.over():
            yield
    alarms = FALSE_ALARMS * len(timelines)
    return ExpiryReport(tuple(timelines), tuple(sorted(most_specific(cliffs), key=_most_first)), alarms)


def most_specific(cliffs: list[Cliff]) -> list[Cliff]:
    """Leave out the cliffs of which a namespace below has most of the keys."""
    return [
        cliff
        for cliff in cliffs
        if not any(
            len(other.path) > len(cliff.path)
            and other.path[: len(cliff.path)] == cliff.path
            and other.start_s < cliff.end_s
            and cliff.start_s < other.end_s
            and 2 * _keys(other) > _keys(cliff)
            for other in cliffs
        )
    ]


def _find(pattern: Pattern, path: tuple[Pattern, ...], places: list[_Place], slicer: Slicer) -> Slices[int]:
    """Note the namespaces below that have a part of a pattern's keys that expire; returns how many it has."""
    parts = [tally.life for tally in pattern.own()]
    total = sum(life.expiries.total for life in parts if life is not None and life.expiries is not None)
    below = []
    for child in pattern.children.values():
        here = (*path, child)
        expiring = yield from _find(child, here, places, slicer)
        total += expiring
        below.append(_Place(here, expiring))
    places += [place for place in below if FEWEST <= place.expiring < total]
    if slicer.over():
        yield
    return total


def _label(path: tuple[Pattern, ...]) -> str:
    """Show a namespace as tables do: `shop:session:`."""
    if not path:
        return "all keys"
    is_other = path[-1].kind is NodeKind.OTHER
    prefix = display(b"".join(one.name + one.separator for one in (path[:-1] if is_other else path)))
    return f"{prefix}{OTHER}" if is_other else prefix


def _keys(cliff: Cliff) -> float:
    return cliff.keys if isinstance(cliff.keys, (int, float)) else cliff.keys.value


def _most_first(cliff: Cliff) -> tuple[float, float]:
    return -_keys(cliff), cliff.start_s
