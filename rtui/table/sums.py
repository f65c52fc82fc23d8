"""Sums of numbers by group: a dense table of few columns, or a sparse one of arbitrary buckets; the spread of sizes.

Groups are numbers from 0 on; each row of a chunk has one. `ChunkRows` adds the rows of a chunk up by group; `Dense` and
`Sparse` keep these sums, and take over the sums of others, whose groups have other numbers. All whole numbers are 64
bits wide and sums of bytes are kept in two of them (`halves`), so that nothing wraps whatever a server reports; sums of
squares are floating-point. The order of additions makes no difference but in the last digits of squares.

`Spreads` holds how many sizes there are, their sum and extremes, exact, and counts in buckets for quantiles to 1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtui.analysis.report.figures import LOWS

Whole: TypeAlias = NDArray[np.int64]
Real: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

HALF: Final = 32
"""Bits of the lower half of a sum of bytes."""

MASK: Final = (1 << HALF) - 1

NONE: Final = np.iinfo(np.int64).min
"""In a column of greatest numbers: no number yet."""

DENSE_CELLS: Final = 1 << 21
"""Most cells of the dense table in which a chunk is counted."""


def grouped(operation: np.ufunc, keys: Whole, *columns: NDArray[Any]) -> tuple[Whole, list[NDArray[Any]]]:
    """Return the distinct keys, ascending, and each column reduced by key with `operation`."""
    if not len(keys):
        return keys, list(columns)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    return ordered[starts], [operation.reduceat(column[order], starts, axis=0) for column in columns]


def are_distinct(numbers: Whole) -> bool:
    """Return whether none of these numbers, from 0 on, is there twice."""
    return not len(numbers) or int(np.bincount(numbers).max()) == 1


def ranks(keys: Whole) -> Whole:
    """Return the index of each row among the rows with its key, from 0; equal keys must be adjacent."""
    if not len(keys):
        return keys
    starts = np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))
    places: Whole = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    return places


def compact(numbers: Whole) -> tuple[Whole, Whole]:
    """Return the different numbers, ascending, and the index among them of each; one at least."""
    least = int(numbers.min())
    if int(numbers.max()) - least > DENSE_CELLS:
        return np.unique(numbers, return_inverse=True)
    shifted = numbers - least
    found = np.flatnonzero(np.bincount(shifted))
    at = np.zeros(int(found[-1]) + 1, np.int64)
    at[found] = np.arange(len(found))
    return found + least, at[shifted]


class ChunkRows:
    """The rows of a chunk by group."""

    def __init__(self, groups: Whole) -> None:
        self.groups = groups
        """The group of each row."""
        counts = np.bincount(groups)
        self.used: Whole = np.flatnonzero(counts)
        """The groups in use, ascending; the following arrays have a row for each."""
        self.keys: Whole = counts[self.used]
        """Rows of each."""

    @cached_property
    def at(self) -> Whole:
        """The index in `used` of each row."""
        found = np.zeros(int(self.used[-1]) + 1 if len(self.used) else 0, np.int64)
        found[self.used] = np.arange(len(self.used))
        return found[self.groups]

    def count(self, rows: Flags) -> Whole:
        return np.bincount(self.at[rows], minlength=len(self.used))

    def bins(self, buckets: Whole, width: int, rows: Flags | slice = slice(None)) -> Whole:
        """Count rows by bucket, each below `width`: a column for each bucket."""
        keys = self.at[rows] * width + buckets
        return np.bincount(keys, minlength=len(self.used) * width).reshape(-1, width)

    def halves(self, sizes: Whole, rows: Flags | slice = slice(None)) -> Whole:
        """Return the sums of sizes as two columns, lower half first."""
        at, size = self.at[rows], len(self.used)
        low = np.bincount(at, weights=sizes & MASK, minlength=size).astype(np.int64)
        high = np.zeros(size, np.int64)
        if len(sizes) and (sizes.max() > MASK or sizes.min() < 0):
            high = np.bincount(at, weights=sizes >> HALF, minlength=size).astype(np.int64)
        return carried(np.column_stack((low, high)))

    def squares(self, sizes: Whole, rows: Flags | slice = slice(None)) -> Real:
        as_real = sizes.astype(np.float64)
        return np.bincount(self.at[rows], as_real * as_real, len(self.used)).astype(np.float64, copy=False)

    def greatest(self, numbers: Whole, rows: Flags | slice = slice(None)) -> Whole:
        """Return the greatest number of each group, NONE for a group without such a row."""
        found = np.full(len(self.used), NONE)
        np.maximum.at(found, self.at[rows], numbers)
        return found

    def sparse(self, buckets: Whole, rows: Flags | slice = slice(None)) -> tuple[Whole, Whole, Whole]:
        """Return the groups and buckets in use, and the rows of each."""
        at = self.at[rows]
        if not len(at):
            return at, at, at
        width = int(buckets.max()) + 1
        keys = at * width + buckets
        cells = len(self.used) * width
        if cells <= DENSE_CELLS:
            counts = np.bincount(keys, minlength=cells)
            found = np.flatnonzero(counts)
            counts = counts[found]
        else:
            found, counts = np.unique(keys, return_counts=True)
        return self.used[found // width], found % width, counts


def carried(halves: Whole) -> Whole:
    """Return sums whose lower halves are below 2^32 again; the columns are lower and upper halves in turns."""
    halves[..., 1::2] += halves[..., ::2] >> HALF
    halves[..., ::2] &= MASK
    return halves


def whole(low: int, high: int) -> int:
    return (int(high) << HALF) + int(low)


class Tree:
    """Nodes by number; each has a parent with a smaller number, except the root, 0."""

    def __init__(self, parents: Whole) -> None:
        self.parents = parents
        self.levels: Whole = np.zeros(len(parents), np.int64)
        for node, parent in enumerate(parents.tolist()[1:], 1):
            self.levels[node] = self.levels[parent] + 1

    @cached_property
    def deepest_first(self) -> list[Whole]:
        return [np.flatnonzero(self.levels == level) for level in range(int(self.levels.max()), 0, -1)]


def _first(found: tuple[Whole, list[NDArray[Any]]]) -> tuple[Whole, NDArray[Any]]:
    return found[0], found[1][0]


class Dense:
    """A row of `width` numbers for each group; `operation` combines two rows."""

    def __init__(self, width: int, operation: np.ufunc = np.add, *, empty: float = 0, real: bool = False) -> None:
        """`empty` is the number of a group of which nothing is known yet; `real` for floating-point numbers."""
        self.rows: NDArray[Any] = np.empty((0, width), np.float64 if real else np.int64)
        self._operation = operation
        self._empty = empty

    def grow(self, groups: int) -> None:
        """Make room for at least `groups` rows."""
        missing = groups - len(self.rows)
        if missing > 0:
            added = np.full((max(missing, len(self.rows) // 2), self.rows.shape[1]), self._empty, self.rows.dtype)
            self.rows = np.concatenate((self.rows, added))

    def add(self, groups: Whole, rows: NDArray[Any], columns: slice = slice(None)) -> None:
        if len(groups):
            self.grow(int(groups.max()) + 1)
            self.rows[groups, columns] = self._operation(self.rows[groups, columns], rows)

    def taken(self, to: Whole) -> Dense:
        """Return the rows under other numbers: group i becomes `to[i]`, several may become one."""
        made = Dense(self.rows.shape[1], self._operation, empty=self._empty, real=self.rows.dtype == np.float64)
        self.grow(len(to))
        groups, (rows,) = grouped(self._operation, to, self.rows[: len(to)])
        made.add(groups, rows)
        return made

    def add_up(self, tree: Tree) -> None:
        """Add the rows of each group, which is a node of a tree, to its parent's, from the deepest on."""
        self.grow(len(tree.parents))
        for nodes in tree.deepest_first:
            self.add(*_first(grouped(self._operation, tree.parents[nodes], self.rows[nodes])))

    def merge(self, other: Dense, to: Whole) -> None:
        """Add the rows of another table, whose group i is here `to[i]`; several may be one."""
        rows = other.rows[: len(to)]
        to = to[: len(rows)]
        if are_distinct(to):
            self.add(to, rows)
        else:
            self.add(*_first(grouped(self._operation, to, rows)))


class Sparse:
    """Counts, or several sums, by group and bucket; only non-empty buckets are stored."""

    def __init__(self, width_bits: int, columns: Sequence[type] = (np.int64,)) -> None:
        """Buckets are numbers of `width_bits` bits."""
        self.bits = width_bits
        self._types = columns
        self._parts: list[tuple[Whole, list[NDArray[Any]]]] = []
        self._settled = 0
        """Rows of the first part, which has each key once."""

    def __len__(self) -> int:
        """Return the number of rows, some of which may be of one group and bucket."""
        return sum(len(keys) for keys, _ in self._parts)

    def add(self, groups: Whole, buckets: Whole, *columns: NDArray[Any]) -> None:
        if len(groups):
            self._parts.append(((groups << self.bits) | buckets, list(columns)))
            if len(self) > 2 * self._settled + (1 << 14):
                self.settle()

    def settle(self) -> tuple[Whole, Whole, list[NDArray[Any]]]:
        """Return groups, buckets and columns, each group and bucket once, in their order."""
        if len(self._parts) != 1 or self._settled != len(self._parts[0][0]):
            keys = np.concatenate([np.empty(0, np.int64), *(keys for keys, _ in self._parts)])
            columns = [
                np.concatenate([np.empty(0, kind), *(one[at] for _, one in self._parts)])
                for at, kind in enumerate(self._types)
            ]
            keys, columns = grouped(np.add, keys, *columns)
            self._parts, self._settled = [(keys, columns)], len(keys)
        keys, columns = self._parts[0]
        return keys >> self.bits, keys & ((1 << self.bits) - 1), columns

    def taken(self, to: Whole) -> Sparse:
        """Return the rows under other numbers: group i becomes `to[i]`, several may become one."""
        groups, buckets, columns = self.settle()
        made = Sparse(self.bits, self._types)
        made.add(to[groups], buckets, *columns)
        made.settle()
        return made

    def add_up(self, tree: Tree) -> None:
        """Add the rows of each group, which is a node of a tree, to its parent's, from the deepest on."""
        groups, buckets, columns = self.settle()
        levels = tree.levels[groups]
        parts: list[tuple[Whole, list[NDArray[Any]]]] = []
        above: tuple[Whole, list[NDArray[Any]]] | None = None
        for level in range(int(tree.levels.max()), -1, -1):
            here = levels == level
            keys = (groups[here] << self.bits) | buckets[here]
            values = [column[here] for column in columns]
            if above is not None:
                both = [np.concatenate(pair) for pair in zip(values, above[1], strict=True)]
                keys, values = grouped(np.add, np.concatenate((keys, above[0])), *both)
            parts.append((keys, values))
            parents = tree.parents[keys >> self.bits]
            above = (parents << self.bits) | (keys & ((1 << self.bits) - 1)), values
        self._parts, self._settled = parts, 0

    def merge(self, other: Sparse, to: Whole) -> None:
        """Add the rows of another table, whose group i is here `to[i]`; several may be one.

        What has a row already is added to it, so that only new rows are ever sorted.
        """
        groups, buckets, columns = other.settle()
        if not len(groups):
            return
        groups = to[groups]
        if not self._settled or not are_distinct(to):
            self.add(groups, buckets, *columns)
            return
        known, mine = self._parts[0]
        keys = (groups << self.bits) | buckets
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        has_row = known[at] == keys
        for column, added in zip(mine, columns, strict=True):
            column[at[has_row]] += added[has_row]
        is_new = ~has_row
        self.add(groups[is_new], buckets[is_new], *(column[is_new] for column in columns))


BUCKET_BITS: Final = 11
"""There are fewer than 2^11 buckets."""

_LOWS: Final = np.array(LOWS, np.int64)
_SMALL: Final = 1 << 15
_BUCKETS_OF_SMALL: Final = (np.searchsorted(_LOWS, np.arange(_SMALL), side="right") - 1).astype(np.int64)


def size_buckets(sizes: Whole) -> Whole:
    """Return the bucket of each size; of a negative one, which only a server at fault says, that of 0."""
    if len(sizes) and sizes.max() < _SMALL and sizes.min() >= 0:
        return _BUCKETS_OF_SMALL[sizes]
    found = np.searchsorted(_LOWS, np.maximum(sizes, 0), side="right") - 1
    return found.astype(np.int64, copy=False)


class Spreads:
    """The spread of sizes by group."""

    def __init__(self) -> None:
        self.sums = Dense(3)
        """By group: how many sizes, and both halves of their sum."""
        self.greatest = Dense(2, np.maximum, empty=NONE)
        """By group: the largest size, and the smallest times -1."""
        self.buckets = Sparse(BUCKET_BITS)

    def add(self, chunk: ChunkRows, sizes: Whole, rows: Flags) -> None:
        counts = chunk.count(rows)
        self.sums.add(chunk.used, np.column_stack((counts, chunk.halves(sizes, rows))))
        carried(self.sums.rows[:, 1:])
        extremes = chunk.greatest(sizes, rows), chunk.greatest(-sizes, rows)
        self.greatest.add(chunk.used, np.column_stack(extremes))
        self.buckets.add(*chunk.sparse(size_buckets(sizes), rows))

    def taken(self, to: Whole) -> Spreads:
        """Return the same under other numbers: group i becomes `to[i]`, several may become one."""
        made = Spreads()
        made.sums, made.greatest = self.sums.taken(to), self.greatest.taken(to)
        carried(made.sums.rows[:, 1:])
        made.buckets = self.buckets.taken(to)
        return made

    def add_up(self, tree: Tree) -> None:
        """Add the sizes of each group, which is a node of a tree, to its parent's."""
        self.sums.add_up(tree)
        carried(self.sums.rows[:, 1:])
        self.greatest.add_up(tree)
        self.buckets.add_up(tree)

    def merge(self, other: Spreads, to: Whole) -> None:
        """Add the sizes of another table, whose group i is here `to[i]`; several may be one."""
        self.sums.merge(other.sums, to)
        carried(self.sums.rows[:, 1:])
        self.greatest.merge(other.greatest, to)
        self.buckets.merge(other.buckets, to)
