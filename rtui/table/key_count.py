"""Counts a subset of the inspected keys, such as those that break a rule: their number, their bytes, a few examples.

Examples are the keys with the smallest checksums, so the choice depends neither on the order of keys nor on their
division among several counts. Of names that are too long some beginnings are kept instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from zlib import crc32

from rtui.analysis.report.figures import Figures, SizeSums, Sketch, sums_of
from rtui.analysis.report.members import Figure, LongName
from rtui.keyspace.slices import Slicer, Slices
from rtui.table.examples import LONGEST_EXAMPLE, MOST_EXAMPLES

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
        """Return a count of the same keys."""
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
    """Return a copy of counts, none of which may change meanwhile."""
    made: defaultdict[K, KeyCount] = defaultdict(KeyCount)
    for what, count in counts.items():
        made[what] = count.copy()
        yield from slicer.pause()
    return made


def joined(counts: Iterable[KeyCount]) -> KeyCount:
    """Return the keys of several counts in one."""
    found = KeyCount()
    for one in counts:
        found.merge(one)
    return found
