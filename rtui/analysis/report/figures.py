"""Turns counts into figures of a report: exact ones after a whole pass, estimates after a random sample.

Bytes are the hardest to estimate: one key in a million can outweigh all others. Say that 1,000 of 1,000,000 keys are
sampled: 999 of 100 bytes, and one of 50 MB. Multiplying by 1,000 gives 50 GB, nearly all of which does not exist, and a
sample without that key would give 100 MB and know nothing of it. So:

1. A size counts as ordinary up to a cap, a tenth of what the capped sizes of the sample add up to: here 11,100 bytes,
   and at most ten keys are above it. Their bytes above the cap are counted once, as they are; all capped sizes are
   extrapolated (Kokic and Bell's winsorized estimator): 50 MB + 1,000 × 111,000 bytes = 161 MB. The value is stable but
   rather too low: more large keys may have been missed.
2. The lower bound is the bytes above the cap plus the lower end of the 95 % interval of the capped sum, whose sizes are
   bounded. It is never below the bytes that were seen.
3. The bytes of missed keys above the cap are between none and the rest of the server's memory: the most that all keys
   can have (`SampledKeyspace.memory_bytes`) less the value of all. Every upper bound is raised by that. Where the
   server does not say how much memory it uses, there is no upper bound.

Values of parts add up to the value of the whole, since the cap is one for all. Simulated over even sizes, lognormal
ones with a sigma of 1 to 3, Pareto's with an exponent of 0.8 to 2, single giants and mixtures, the intervals of totals
and shares hold the truth in 95 % of the samples or more (tests/analysis/report/test_tables.py).

Some servers report more for single keys (MEMORY USAGE looks at a few elements only) than they use in all; then the
bound by the server's memory holds, not the sum.

The spread of sizes is a sketch: counts in buckets so narrow that any quantile is right to one percent. Sizes that
differ by up to 2 % share a bucket: 1, 2, … 98 have one each, 99 and 100 share one, 101 to 103 the next, and those
around a mebibyte lie in buckets 20 KiB wide, so that 1,600 buckets reach up to a pebibyte. Two sketches are merged by
adding them. For the median of 1,000 sizes, counts are added from the lowest bucket upwards until there are 500: the
middle of that bucket is the answer, at most 1 % off. The number of sizes, their sum, the smallest and the largest are
kept beside the buckets and are exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from math import ceil, inf
from typing import Final, NamedTuple

from msgspec import structs

from rtui.analysis import estimates
from rtui.analysis.estimates import Estimate, Population, as_estimate
from rtui.analysis.report.document import Quantiles
from rtui.analysis.report.members import Figure

ERROR: Final = 0.01
"""How far a quantile may be off the true one, relative to it. Up to 99 all are exact."""

HIGHEST: Final = 1 << 50
"""Sizes above share the last bucket."""


def _size_buckets() -> tuple[list[int], list[int]]:
    """Return the lowest size of each bucket, and the size that stands for all in it: within 1 % of both ends."""
    lows, middles = [0], [0]
    low = 1
    while low <= HIGHEST:
        middle = low * 101 // 100
        lows.append(low)
        middles.append(middle)
        low = middle * 100 // 99 + 1
    return lows, middles


LOWS, MIDDLES = _size_buckets()
"""By bucket of sizes."""


class Sketch:
    """Quantiles, sum and extremes of sizes, which are whole numbers from 0 on."""

    __slots__ = ("_counts", "count", "max", "min", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.max = 0
        self.min = 0
        self._counts: Counter[int] = Counter()

    @classmethod
    def of(cls, counts: dict[int, int], total: int, smallest: int, largest: int) -> Sketch:
        """Return a sketch of sizes counted elsewhere: by bucket, with their sum and extremes."""
        made = cls()
        made._counts.update(counts)
        made._add_figures(made._counts.total(), total, smallest, largest)
        return made

    def merge(self, other: Sketch) -> None:
        if other.count:
            self._counts.update(other._counts)
            self._add_figures(other.count, other.sum, other.min, other.max)

    def _add_figures(self, count: int, total: int, smallest: int, largest: int) -> None:
        self.min = min(self.min, smallest) if self.count else smallest
        self.max = max(self.max, largest)
        self.count += count
        self.sum += total

    def quantiles(self, shares: Sequence[float]) -> list[int]:
        """Return the sizes at or below which these shares (0 … 1) of all lie, ascending; all 0 without any size.

        Each is within ERROR of the true one; the smallest and the largest are exact.
        """
        if not self.count:
            return [0 for _ in shares]
        buckets = sorted(self._counts)
        ends = list(accumulate(map(self._counts.__getitem__, buckets)))
        found = []
        for share in shares:
            rank = max(0, ceil(share * self.count) - 1)
            size = MIDDLES[buckets[min(bisect_right(ends, rank), len(buckets) - 1)]]
            exact = self.min if rank == 0 else self.max if rank >= self.count - 1 else None
            found.append(max(self.min, min(self.max, size)) if exact is None else exact)
        return found

    def above(self, size: int) -> int:
        """Return how many sizes are certainly larger than `size`: those in its bucket are not counted."""
        first = bisect_left(LOWS, size + 1)
        return sum(count for bucket, count in self._counts.items() if bucket >= first)

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else 0.0

    def sum_of_squares(self) -> float:
        """Return the sum of all squares, to two percent: for a variance."""
        return float(sum(count * MIDDLES[bucket] ** 2 for bucket, count in self._counts.items()))

    def largest(self, most: int) -> list[float]:
        """Return the largest sizes, descending, each within ERROR of the true one, and as `sum_of_squares` has it."""
        found: list[float] = []
        for bucket in nlargest(most, self._counts):
            found += [float(MIDDLES[bucket])] * min(self._counts[bucket], most - len(found))
            if len(found) == most:
                break
        return found


MOST_LARGE: Final = 10
FEWEST_KEYS: Final = 4
"""In a small sample, the cap is the sum of this many mean sizes."""


class SizeSums(NamedTuple):
    """Sums over the sizes of some sampled keys."""

    total: float = 0.0
    squares: float = 0.0
    largest: tuple[float, ...] = ()

    def capped(self, cap: float) -> _CappedSums:
        """Return the sums of the sizes cut off at a cap, which at most MOST_LARGE of them are above."""
        above = [size for size in self.largest if size > cap]
        beyond = min(self.total, sum(size - cap for size in above))
        lost = sum(size * size - cap * cap for size in above)
        kept = max(0.0, self.total - beyond)
        most = min(cap, self.largest[0]) if self.largest else 0.0
        return _CappedSums(beyond, kept, max(0.0, self.squares - lost), most)


class _CappedSums(NamedTuple):
    """Sizes of which each is cut off at the cap."""

    beyond: float
    """Bytes above the cap, of all keys together."""
    kept: float
    squares: float
    largest: float

    @property
    def seen(self) -> float:
        return self.beyond + self.kept

    def without(self, other: _CappedSums) -> _CappedSums:
        return _CappedSums(
            max(0.0, self.beyond - other.beyond),
            max(0.0, self.kept - other.kept),
            max(0.0, self.squares - other.squares),
            self.largest,
        )


def cap_of(sizes: SizeSums, n: int) -> float:
    """Return the largest ordinary size of n sampled keys; infinite where all are ordinary.

    It is the cap c that is a tenth of the sum of all sizes cut off at c.
    """
    part = max(1 / MOST_LARGE, FEWEST_KEYS / max(1, n))
    rest = sizes.total
    for index, size in enumerate(sizes.largest):
        left = 1 - part * index
        if left <= 0:
            break
        cap = part * rest / left
        if cap >= size:
            return inf if index == 0 else cap
        rest = max(0.0, rest - size)
    return inf


class SampleBytes:
    """Estimates of bytes, for all keys and for parts of them, by one sample."""

    def __init__(self, sizes: SizeSums, n: int, population: Population, bound: float | None) -> None:
        """`sizes` are those of the n sampled keys; `bound` is the most bytes of all keys together, None if unknown."""
        self._n = n
        self._population = population
        self._unseen = population is None or as_estimate(population).value > n
        self._cap = cap_of(sizes, n)
        self._all = sizes.capped(self._cap)
        self._bound = self._all.seen if not self._unseen else inf if bound is None else max(bound, self._all.seen)
        weight = 1.0 if population is None else max(1.0, as_estimate(population).value / max(1, n))
        most = (self._bound - self._all.seen) / self._all.kept if self._all.kept else 0.0
        self._more = min(weight - 1, most)
        """Multiple of its capped size that a sampled key adds for unseen keys."""
        self._spare = max(0.0, self._bound - self._value(self._all)) if self._unseen else 0.0
        """The rest of the bound beyond the value of all keys."""

    def total(self, sizes: SizeSums) -> Estimate:
        part = sizes.capped(self._cap)
        low, high = self._lowest(part), self._highest(part)
        return Estimate(min(low, high), self._value(part), high)

    def share(self, sizes: SizeSums) -> Estimate:
        """Return their share of the bytes of all keys, 0 … 1: by the least of the part and the most of the rest."""
        part = sizes.capped(self._cap)
        rest = self._all.without(part)
        value = min(1.0, self._value(part) / max(1.0, self._value(self._all)))
        low, high = self._lowest(part), self._highest(part)
        least, most = self._lowest(rest), self._highest(rest)
        lower = low / (low + most) if low and most < inf else 0.0 if most else 1.0
        upper = 1.0 if high == inf else high / (high + least) if high else 0.0
        return Estimate(min(lower, upper), value, upper)

    def mean(self, sizes: SizeSums, n: int, keys: Estimate) -> Estimate | None:
        if not n:
            return None
        part = sizes.capped(self._cap)
        among = max(n, round(keys.value))
        found = estimates.mean(part.kept, part.squares, n, among, largest=part.largest)
        if found is None:
            return None
        value = self._value(part) / max(1.0, keys.value)
        low = min(found.low, part.kept / n) + part.beyond / max(1.0, keys.high, keys.value)
        high = found.high + (part.beyond + self._spare) / max(1.0, keys.low)
        return Estimate(min(low, high), value, high)

    def _value(self, part: _CappedSums) -> float:
        return part.seen + self._more * part.kept

    def _lowest(self, part: _CappedSums) -> float:
        """Return the lower bound of a part: at least the bytes seen, at most its value, which the bound limits."""
        found = self._extrapolated(part)
        return part.seen if found is None else min(self._value(part), max(part.seen, part.beyond + found.low))

    def _highest(self, part: _CappedSums) -> float:
        """Return the upper bound of a part: at most the rest of the bound beyond the least of all others."""
        if not self._unseen:
            return part.seen
        found = self._extrapolated(part)
        if found is None:
            return inf
        rest = self._all.without(part)
        missed = estimates.UNSEEN_LARGEST * (1 + self._more) * self._all.kept / max(1, self._n)
        high = found.high if part.kept else missed
        return max(part.seen, min(part.beyond + high + self._spare, self._bound - self._lowest(rest)))

    def _extrapolated(self, part: _CappedSums) -> Estimate | None:
        return estimates.total(part.kept, part.squares, self._n, self._population, largest=part.largest)


SHARES: Final = (0.5, 0.9, 0.99)


class Figures:
    """Figures of a whole pass: the counts are exact."""

    def __init__(self, keys: int = 0, memory_bytes: int = 0, *, samples_idle: bool = False) -> None:
        """`keys` and `memory_bytes` are those of all inspected keys.

        `samples_idle`: idle times or access counters were asked of randomly chosen keys only.
        """
        self._samples_idle = samples_idle
        self._keys = keys
        self._memory_bytes = memory_bytes

    def all_keys(self) -> tuple[Figure, Figure]:
        return self._keys, 1.0 if self._keys else 0.0

    def keys(self, count: float) -> Figure:
        """Return the number of keys like `count` of the inspected ones."""
        return count

    def names(self, count: int | Estimate) -> Figure:
        return count

    def share_keys(self, count: int) -> Figure:
        return self.share(count, self._keys)

    def share(self, count: int, of: int) -> Figure:
        return count / of if of else 0.0

    def memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        """Return the bytes of all keys like those with `total` bytes; `sums` computes the sums for an estimate."""
        return total

    def share_memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        return self.share(total, self._memory_bytes)

    def by_use(self, counts: Sequence[int], of: int) -> tuple[Figure, ...]:
        """Return how many of `of` inspected keys fall into each bin of idle times or access counters, by `counts`."""
        asked = sum(counts)
        return tuple([self.among(count, asked, of) if self._samples_idle else self.keys(count) for count in counts])

    def among(self, count: int, asked: int, of: int) -> Figure:
        """Return how many of `of` keys are like `count` of the `asked` ones, which were chosen at random among them."""
        return count if asked >= of else estimates.count_among(count, asked, of)

    def quantiles(self, sketch: Sketch, *, are_bytes: bool = False, of: int | None = None) -> Quantiles:
        """With `of` the sizes are those of keys chosen at random among `of` inspected ones."""
        if of is not None and 0 < sketch.count < of:
            return estimated_quantiles(sketch, of)
        p50, p90, p99 = sketch.quantiles(SHARES)
        return Quantiles(mean=sketch.mean, p50=p50, p90=p90, p99=p99, max=sketch.max, error=ERROR)


class Counted(NamedTuple):
    """How many keys a summary is of."""

    keys: int = 0
    unread_keys: int = 0
    """Keys of which only the name is known."""
    vanished_keys: int = 0


@dataclass(frozen=True, slots=True)
class SampledKeyspace:
    """The keyspace that a sample was drawn from, each key at most once."""

    population: Figure | None = None
    """Its keys; None if unknown: then at least the keys and bytes of the sample."""
    memory_bytes: int | None = None
    """The most bytes that all of its keys can have, by the server's memory; None where that is not known."""


_NOTHING: Final = Estimate(0.0, 0.0, 0.0)


class SampleFigures(Figures):
    """Figures of a random sample of keys: estimates for the whole keyspace."""

    def __init__(self, keyspace: SampledKeyspace, keys: int, memory: Sketch) -> None:
        super().__init__(keys, memory.sum)
        whole = keyspace.population
        self._population: estimates.Population = round(whole) if isinstance(whole, float) else whole
        self._bytes = SampleBytes(sums_of(memory), memory.count, self._population, keyspace.memory_bytes)

    def all_keys(self) -> tuple[Figure, Figure]:
        return self.keys(self._keys) if self._population is None else self._population, 1.0

    def keys(self, count: float) -> Estimate:
        """Extrapolate; the upper bound is infinite where the size of the keyspace is not known."""
        at_least = Estimate(count, count, inf)
        if count > self._keys:  # of keys that vanished before all of their facts were read
            return at_least
        return estimates.count(count, self._keys, self._population) or at_least

    def names(self, count: int | Estimate) -> Estimate:
        found = as_estimate(count)
        return Estimate(found.low, found.value, inf)

    def share(self, count: int, of: int) -> Figure:
        return estimates.wilson(count, of, self._part(of))

    def memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        return self._bytes.total(sums())

    def share_memory(self, total: int, sums: Callable[[], SizeSums]) -> Figure:
        return self._bytes.share(sums())

    def among(self, count: int, asked: int, of: int) -> Estimate:
        """Extrapolate; all keys of a sample are asked."""
        return self.keys(count)

    def quantiles(self, sketch: Sketch, *, are_bytes: bool = False, of: int | None = None) -> Quantiles:
        """Estimate by order statistics; all keys of a sample are asked."""
        found = estimated_quantiles(sketch, self._part(sketch.count))
        if not are_bytes:
            return found
        mean = self._bytes.mean(sums_of(sketch), sketch.count, self.keys(sketch.count))
        return structs.replace(found, mean=mean or _NOTHING)

    def _part(self, count: int) -> int | None:
        """Return about how many keys of the keyspace `count` keys of the sample stand for; None if unknown."""
        if self._population is None or not self._keys:
            return None if self._population is None else count
        return max(count, round(count * as_estimate(self._population).value / self._keys))


def estimated_quantiles(sketch: Sketch, whole: int | None) -> Quantiles:
    """A quantile lies between two of the sampled sizes, by order statistics; `whole` is None if unknown."""
    n = sketch.count
    mean = estimates.mean(sketch.sum, sketch.sum_of_squares(), n, whole, largest=sketch.max)
    p50, p90, p99 = (estimates.quantile(sketch.quantiles, n, share, whole) or _NOTHING for share in SHARES)
    return Quantiles(mean=mean or _NOTHING, p50=p50, p90=p90, p99=p99, max=sketch.max, error=ERROR)


def sums_of(sketch: Sketch) -> SizeSums:
    """Return the sums of the sizes in a sketch; the largest is exact, so that it can be taken out of the sums."""
    largest, squares = sketch.largest(MOST_LARGE), sketch.sum_of_squares()
    if largest:
        squares += float(sketch.max) ** 2 - largest[0] ** 2
        largest[0] = float(sketch.max)
    return SizeSums(float(sketch.sum), squares, tuple(sorted(largest, reverse=True)))
