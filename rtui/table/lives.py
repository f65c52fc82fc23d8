"""Times to live by group: how many keys expire, how soon, and the bytes of keys that do not.

Keys that expire are counted in bins of absolute time, a minute wide at first and wider with their distance from the
start of the pass (`level_borders`). If that makes too many bins in all, two neighbours are joined to one everywhere, up
to six times: how often depends on the keys alone, not on their order.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rtui.analysis.report.expiries import FINENESS, level_borders
from rtui.analysis.report.members import TTL_EDGES_MS
from rtui.table.sums import NONE, ChunkRows, Dense, Flags, Sparse, Tree, Whole, carried, compact, ranks

MOST_BINS: Final = 1 << 18
"""Bins of all groups together: 14 MB."""

MOST_LARGE: Final = 10
"""Largest sizes kept of the keys of a group that do not expire."""

BIN_BITS: Final = 21
_BEFORE_MIN: Final = 1 << 20
"""Expiries up to two years before the start of the pass have bins of their own: bins of level 0 are numbered from there
on, those of higher levels begin with this number and have LEVEL_BITS each."""

_LEVEL_BITS: Final = 8

MINUTE_MS: Final = 60_000

KNOWN, LASTING, LOW, HIGH = range(4)
"""Columns of `Lives.sums`: keys whose time to live is known, keys that do not expire, both halves of the latters'
bytes."""

EXPIRING_LARGEST, SOONEST, LONGEST_LEFT, SHORTEST_LEFT = range(4)
"""Columns of `Lives.greatest`; SOONEST and SHORTEST_LEFT times -1."""

_EDGES: Final = np.array(TTL_EDGES_MS, np.int64)


class Lives:
    """Times to live by group."""

    def __init__(self, origin_min: int) -> None:
        """Bins are for a pass that began in this minute since the epoch."""
        self.origin_min = origin_min
        self.coarseness = 0
        """2^coarseness bins of a level are joined to one."""
        self.sums = Dense(4)
        self.squares = Dense(1, real=True)
        """The sum of the squares of the sizes of keys that do not expire."""
        self.bins = Dense(len(_EDGES) + 1)
        self.greatest = Dense(4, np.maximum, empty=NONE)
        self.largest: tuple[Whole, Whole] = np.empty(0, np.int64), np.empty(0, np.int64)
        """Groups, ascending, and the largest sizes of keys of each that do not expire, descending."""
        self._least_large = Dense(1, np.maximum, empty=NONE)
        """By group, the least of its largest sizes, once it has MOST_LARGE."""
        self._expiries = Sparse(BIN_BITS, (np.int64, np.int64, np.int64, np.float64))
        """By group and bin: keys, both halves of their bytes, the sum of the squares of their sizes."""
        self._borders = np.array(level_borders(origin_min), np.int64)
        self._bases = np.concatenate(([self._borders[0] - _BEFORE_MIN], self._borders))
        """By level, where its bins are counted from."""

    def add(
        self, chunk: ChunkRows, rows: Flags, left_ms: Whole, expires_ms: Whole, memory: tuple[Whole, Flags]
    ) -> None:
        """Add the rows whose time to live is known: `left_ms` is the rest of it, negative for keys that do not expire.

        `memory` has the size of each and whether it is known.
        """
        sizes, has_size = memory
        is_lasting, used = left_ms < 0, chunk.used
        lasting, expiring = rows & is_lasting, rows & ~is_lasting
        measured = lasting & has_size
        halves = chunk.halves(sizes[measured], measured)
        self.sums.add(used, np.column_stack((chunk.count(rows), chunk.count(lasting), halves)))
        carried(self.sums.rows[:, LOW:])
        self.squares.add(used, chunk.squares(sizes[measured], measured)[:, None])
        buckets = np.searchsorted(_EDGES, left_ms[rows], side="right")
        self.bins.add(used, chunk.bins(buckets, len(_EDGES) + 1, rows))
        left = left_ms[expiring]
        greatest = (
            chunk.greatest(sizes[expiring & has_size], expiring & has_size),
            chunk.greatest(-expires_ms[expiring], expiring),
            chunk.greatest(left, expiring),
            chunk.greatest(-left, expiring),
        )
        self.greatest.add(used, np.column_stack(greatest))
        self._keep_largest(chunk.groups[measured], sizes[measured])
        self._add_expiries(chunk, expires_ms[expiring] // MINUTE_MS, expiring, np.where(has_size, sizes, 0))

    def _add_expiries(self, chunk: ChunkRows, minutes: Whole, rows: Flags, sizes: Whole) -> None:
        levels = np.searchsorted(self._borders, minutes, side="right")
        offsets = (np.maximum(minutes - self._bases[levels], 0) >> levels) >> self.coarseness
        bins = np.where(levels == 0, offsets, _BEFORE_MIN + (levels << _LEVEL_BITS) + offsets)
        if not len(bins):
            return
        numbers, at = compact(bins)
        found, at = compact(chunk.at[rows] * len(numbers) + at)
        cells, sizes = ChunkRows(at), sizes[rows]
        groups, bins = chunk.used[found // len(numbers)], numbers[found % len(numbers)]
        halves = cells.halves(sizes)
        self._expiries.add(groups, bins, cells.keys, halves[:, 0], halves[:, 1], cells.squares(sizes))
        self._coarsen()

    def _coarsen(self) -> None:
        while len(self._expiries) > MOST_BINS and self.coarseness < FINENESS:
            if len(self._expiries.settle()[0]) > MOST_BINS:
                self._join(self.coarseness + 1)
            else:
                break

    def _join(self, coarseness: int) -> None:
        by = coarseness - self.coarseness
        if by <= 0:
            return
        groups, bins, columns = self._expiries.settle()
        offsets = np.where(bins < _BEFORE_MIN, bins, bins & ((1 << _LEVEL_BITS) - 1))
        self._expiries = Sparse(BIN_BITS, (np.int64, np.int64, np.int64, np.float64))
        self._expiries.add(groups, bins - offsets + (offsets >> by), *columns)
        self.coarseness = coarseness

    def expiries(self) -> tuple[Whole, Whole, Whole, Whole, Whole, Whole]:
        """Return group, first minute, keys, both halves of their bytes and the sum of squares of each bin."""
        self._coarsen()
        groups, bins, (keys, low, high, squares) = self._expiries.settle()
        is_near = bins < _BEFORE_MIN
        levels = np.where(is_near, 0, (bins - _BEFORE_MIN) >> _LEVEL_BITS)
        offsets = np.where(is_near, bins, bins & ((1 << _LEVEL_BITS) - 1))
        halves = carried(np.column_stack((low, high)))
        starts = self._bases[levels] + (offsets << (levels + self.coarseness))
        return groups, starts, keys, halves[:, 0], halves[:, 1], squares

    def _keep_largest(self, groups: Whole, sizes: Whole) -> None:
        if not len(groups):
            return
        self._least_large.grow(int(groups.max()) + 1)
        new = sizes > self._least_large.rows[groups, 0]
        if not new.any():
            return
        groups, sizes = groups[new], sizes[new]
        is_changed = np.zeros(len(self._least_large.rows), np.bool_)
        is_changed[groups] = True
        before, before_sizes = self.largest
        changes = is_changed[before]
        groups = np.concatenate((before[changes], groups))
        sizes = np.concatenate((before_sizes[changes], sizes))
        order = np.lexsort((-sizes, groups))
        groups, sizes = groups[order], sizes[order]
        places = ranks(groups)
        last = places == MOST_LARGE - 1
        self._least_large.rows[groups[last], 0] = sizes[last]
        kept = places < MOST_LARGE
        groups = np.concatenate((before[~changes], groups[kept]))
        sizes = np.concatenate((before_sizes[~changes], sizes[kept]))
        order = np.argsort(groups, kind="stable")
        self.largest = groups[order], sizes[order]

    def taken(self, to: Whole) -> Lives:
        """Return the same under other numbers: group i becomes `to[i]`, several may become one."""
        made = self.sums_by(to)
        made.coarseness = self.coarseness
        made._expiries = self._expiries.taken(to)
        return made

    def sums_by(self, to: Whole) -> Lives:
        """Return the same as `taken`, but not when keys expire."""
        made = Lives(self.origin_min)
        made.sums, made.squares = self.sums.taken(to), self.squares.taken(to)
        carried(made.sums.rows[:, LOW:])
        made.bins, made.greatest = self.bins.taken(to), self.greatest.taken(to)
        made._keep_largest(to[self.largest[0]], self.largest[1])
        return made

    def add_up(self, tree: Tree) -> None:
        """Add the sums of each group, which is a node of a tree, to its parent; but not the times of expiry."""
        for column in (self.sums, self.squares, self.bins, self.greatest):
            column.add_up(tree)
        carried(self.sums.rows[:, LOW:])
        groups, sizes = self.largest
        for nodes in tree.deepest_first:
            here = np.isin(groups, nodes)
            self._keep_largest(tree.parents[groups[here]], sizes[here])
            groups, sizes = self.largest

    def merge(self, other: Lives, to: Whole) -> None:
        """Add another table of the same start, whose group i is here `to[i]`; several may be one."""
        self.sums.merge(other.sums, to)
        carried(self.sums.rows[:, LOW:])
        self.squares.merge(other.squares, to)
        self.bins.merge(other.bins, to)
        self.greatest.merge(other.greatest, to)
        self._keep_largest(to[other.largest[0]], other.largest[1])
        coarseness = max(self.coarseness, other.coarseness)
        self._join(coarseness)
        if other.coarseness < coarseness:
            other = other.taken(np.arange(len(other.sums.rows)))
            other._join(coarseness)
        self._expiries.merge(other._expiries, to)
        self._coarsen()
