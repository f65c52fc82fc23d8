"""Examples of the keys of each node, and counts of some keys, such as those that break a rule.

Examples are the keys with the smallest CRC32, which is the same in all processes, so the choice depends neither on the
order of keys nor on their division among several tables or counts. Of names that are too long some beginnings are kept
instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from zlib import crc32

import numpy as np
import polars as pl

from rtui.analysis.report.figures import Figures, SizeSums, Sketch, sums_of
from rtui.analysis.report.members import Figure, LongName
from rtui.keyspace.slices import Slicer, Slices
from rtui.table.sums import Flags, Whole, ranks

MOST_EXAMPLES: Final = 3
LONGEST_EXAMPLE: Final = 256
"""Longer keys, in bytes, are no examples."""

_ANY: Final = 1 << 32
"""Above all checksums."""

_MASK: Final = _ANY - 1

_EXAMPLES: Final = pl.Schema({"node": pl.Int64(), "checksum": pl.Int64(), "key": pl.Binary()})


class Examples:
    """Some keys of each node."""

    def __init__(self) -> None:
        self.rows = _EXAMPLES.to_frame()
        """By node and checksum."""
        self._limits = np.empty(0, np.int64)
        """By node, the checksum of the last example, once the node has MOST_EXAMPLES."""

    def add(self, nodes: Whole, keys: pl.Series, sums: Whole, nodes_in_all: int) -> None:
        """Choose examples from keys, a column of Binary; `sums` are their checksums."""
        self._grow(nodes_in_all)
        is_short: Flags = (keys.bin.size() <= LONGEST_EXAMPLE).to_numpy()
        found = np.flatnonzero(is_short & (sums <= self._limits[nodes]))
        if not len(found):
            return
        nodes, sums = nodes[found], sums[found]
        pairs = np.unique((nodes << 32) | sums)
        last = np.full(nodes_in_all, -1)
        kept = pairs[ranks(pairs >> 32) < MOST_EXAMPLES]
        np.maximum.at(last, kept >> 32, kept & _MASK)
        within = np.flatnonzero(sums <= last[nodes])
        self._take(pl.DataFrame({"node": nodes[within], "checksum": sums[within], "key": keys.gather(found[within])}))

    def _take(self, rows: pl.DataFrame) -> None:
        if not rows.height:
            return
        ordered = pl.concat((self.rows, rows)).unique().sort("node", "checksum", "key")
        nodes = ordered["node"].to_numpy()
        places = ranks(nodes)
        self.rows = ordered.filter(pl.Series(places < MOST_EXAMPLES))
        last = places == MOST_EXAMPLES - 1
        self._limits[nodes[last]] = ordered["checksum"].to_numpy()[last]

    def _grow(self, nodes: int) -> None:
        missing = nodes - len(self._limits)
        if missing > 0:
            self._limits = np.concatenate((self._limits, np.full(missing, _ANY)))

    def taken(self, to: Whole) -> Examples:
        """Return the same under other numbers: node i becomes `to[i]`, several may become one."""
        made = Examples()
        nodes = to[self.rows["node"].to_numpy()]
        made._grow(int(to.max()) + 1 if len(to) else 0)
        made._take(self.rows.with_columns(pl.Series("node", nodes)))
        return made

    def merge(self, other: Examples, to: Whole) -> None:
        """Choose examples from another table, whose node i is here `to[i]`; several may be one."""
        if not other.rows.height:
            return
        self._grow(int(to.max()) + 1)
        nodes = to[other.rows["node"].to_numpy()]
        may_be = pl.Series(other.rows["checksum"].to_numpy() <= self._limits[nodes])
        self._take(other.rows.with_columns(pl.Series("node", nodes)).filter(may_be))

    def by_node(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return the checksums and keys of each node that has any, in order."""
        found: dict[int, list[tuple[int, bytes]]] = {}
        for node, checksum, key in self.rows.iter_rows():
            found.setdefault(node, []).append((checksum, key))
        return found


K = TypeVar("K")

Example: TypeAlias = tuple[int, bytes]
"""A key and, in front, its hash, by which examples are chosen: so the order of keys has no say in it."""

BEGINNING_BYTES: Final = 48
"""Bytes kept of a name that is too long."""


def best_examples(*lists: Iterable[Example]) -> list[Example]:
    return sorted({one for some in lists for one in some})[:MOST_EXAMPLES]


class KeyCount:
    """Some keys."""

    __slots__ = ("examples", "keys", "long_names", "memory_bytes", "memory_keys", "sizes")

    def __init__(self, keys: int = 0, memory_keys: int = 0, memory_bytes: int = 0, sizes: Sketch | None = None) -> None:
        self.keys = keys
        self.memory_keys = memory_keys
        """Those whose memory is known."""
        self.memory_bytes = memory_bytes
        self.sizes = sizes
        """The known sizes, where the keys are a sample: estimates of bytes need their spread."""
        self.examples: Sequence[Example] = ()
        self.long_names: tuple[tuple[int, bytes, int], ...] = ()
        """Checksum, beginning and length of names that are too long to be examples."""

    def copy(self) -> KeyCount:
        made = KeyCount()
        made.merge(self)
        return made

    def show(self, keys: Iterable[bytes]) -> None:
        """Choose examples among these and the earlier keys: those with the smallest checksums."""
        named = [(crc32(key), key) for key in keys]
        self.examples = best_examples(self.examples, (one for one in named if len(one[1]) <= LONGEST_EXAMPLE))
        self._take_long((crc, key[:BEGINNING_BYTES], len(key)) for crc, key in named if len(key) > LONGEST_EXAMPLE)

    def _take_long(self, names: Iterable[tuple[int, bytes, int]]) -> None:
        self.long_names = tuple(sorted({*self.long_names, *names})[:MOST_EXAMPLES])

    def merge(self, other: KeyCount) -> None:
        """Add the keys of another count, none of which are in this one."""
        self.keys += other.keys
        self.memory_keys += other.memory_keys
        self.memory_bytes += other.memory_bytes
        if other.sizes is not None:
            self.sizes = self.sizes or Sketch()
            self.sizes.merge(other.sizes)
        if other.examples:
            self.examples = best_examples(self.examples, other.examples)
        if other.long_names:
            self._take_long(other.long_names)

    @property
    def example_keys(self) -> tuple[bytes, ...]:
        return tuple(key for _, key in self.examples)

    @property
    def shortened(self) -> tuple[LongName, ...]:
        return tuple(LongName(beginning, length) for _, beginning, length in self.long_names)

    def memory(self, figures: Figures) -> Figure | None:
        """Return the bytes of its keys; None where they are known of none."""
        return figures.memory(self.memory_bytes, self._sums) if self.memory_keys or not self.keys else None

    def memory_share(self, figures: Figures) -> Figure | None:
        """Return their share of the bytes of all keys; None where they are known of none."""
        return figures.share_memory(self.memory_bytes, self._sums) if self.memory_keys or not self.keys else None

    def _sums(self) -> SizeSums:
        return SizeSums() if self.sizes is None else sums_of(self.sizes)


def copied(counts: Mapping[K, KeyCount], slicer: Slicer) -> Slices[defaultdict[K, KeyCount]]:
    made: defaultdict[K, KeyCount] = defaultdict(KeyCount)
    for what, count in counts.items():
        made[what] = count.copy()
        yield from slicer.pause()
    return made


def joined(counts: Iterable[KeyCount]) -> KeyCount:
    found = KeyCount()
    for one in counts:
        found.merge(one)
    return found
