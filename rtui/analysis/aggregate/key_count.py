"""Counts some of the inspected keys, such as those that break a rule: how many, their bytes, a few examples.

Examples are the keys with the smallest checksums, so neither the order of keys nor how they are divided among several
counts has a say in which they are. Of names that are too long for that some beginnings are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar
from zlib import crc32

from rtui.analysis.aggregate.figures import Figures, SizeSums, sums_of
from rtui.analysis.aggregate.pattern_tree import LONGEST_EXAMPLE, MOST_EXAMPLES, Example, best_examples
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.report.members import Figure, LongName
from rtui.keyspace.slices import Slicer, Slices

K = TypeVar("K")

BEGINNING_BYTES: Final = 48
"""Of a name that is too long, so many are kept."""

_ANY: Final = 1 << 32
"""Above all checksums."""


class KeyCount:
    """Some keys."""

    __slots__ = ("examples", "keys", "limit", "long_names", "memory_bytes", "memory_keys", "sizes")

    def __init__(self) -> None:
        self.keys = 0
        self.memory_keys = 0
        """Those whose memory is known."""
        self.memory_bytes = 0
        self.sizes: Sketch | None = None
        """The known sizes, where the keys are a sample: estimates of bytes need their spread."""
        self.examples: Sequence[Example] = ()
        self.limit = _ANY
        """Keys with a larger checksum are no examples."""
        self.long_names: tuple[tuple[int, bytes, int], ...] = ()
        """Checksum, beginning and length of names that are too long to be examples."""

    def copy(self) -> KeyCount:
        """Return a count of the same keys."""
        made = KeyCount()
        made.keys, made.memory_keys, made.memory_bytes = self.keys, self.memory_keys, self.memory_bytes
        made.sizes = None if self.sizes is None else self.sizes.copy()
        made.examples, made.limit, made.long_names = self.examples, self.limit, self.long_names
        return made

    def add(self, key: bytes, memory_bytes: int | None, *, is_sample: bool = False) -> None:
        """Count a key; of a sample the size is kept as well."""
        self.keys += 1
        if memory_bytes is not None:
            self.memory_keys += 1
            self.memory_bytes += memory_bytes
            if is_sample:
                self.add_sizes((memory_bytes,))
        self.show(key)

    def show(self, key: bytes) -> None:
        """Take a key for an example, if it is one."""
        checksum, length = crc32(key), len(key)
        if length > LONGEST_EXAMPLE:
            self._take_long(((checksum, key[:BEGINNING_BYTES], length),))
        elif checksum <= self.limit:
            self._take(((checksum, key),))

    def _take_long(self, names: Iterable[tuple[int, bytes, int]]) -> None:
        self.long_names = tuple(sorted({*self.long_names, *names})[:MOST_EXAMPLES])

    def _take(self, examples: Iterable[Example]) -> None:
        self.examples = best_examples(self.examples, examples)
        if len(self.examples) == MOST_EXAMPLES:
            self.limit = self.examples[-1][0]

    def add_counted(self, keys: int, memory_keys: int, memory_bytes: int, examples: Iterable[bytes]) -> None:
        """Add keys that were counted elsewhere, with examples chosen in the same way."""
        self.keys += keys
        self.memory_keys += memory_keys
        self.memory_bytes += memory_bytes
        found = [(checksum, key) for key in examples if (checksum := crc32(key)) <= self.limit]
        if found:
            self._take(found)

    def merge(self, other: KeyCount) -> None:
        """Add the keys of another count, none of which are in this one."""
        self.keys += other.keys
        self.memory_keys += other.memory_keys
        self.memory_bytes += other.memory_bytes
        if other.sizes is not None:
            self.sizes = self.sizes or Sketch()
            self.sizes.merge(other.sizes)
        if other.examples:
            self._take(other.examples)
        if other.long_names:
            self._take_long(other.long_names)

    def add_sizes(self, memory_bytes: Sequence[int]) -> None:
        """Keep the sizes of keys of a sample."""
        self.sizes = self.sizes or Sketch()
        self.sizes.add(memory_bytes)

    @property
    def example_keys(self) -> tuple[bytes, ...]:
        """The examples."""
        return tuple(key for _, key in self.examples)

    @property
    def shortened(self) -> tuple[LongName, ...]:
        """Names of other keys that are too long to be examples."""
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
