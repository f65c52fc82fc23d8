"""Keys by the entries of a registry, and those that break an entry's expectations.

The number of keys of an entry, and of those with a known fact, follow from one counter for each layout: a type and the
facts that are known. The memory does not grow with the keys.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from operator import add
from typing import NamedTuple, TypeAlias

from rtui.keyspace.slices import Slicer, Slices
from rtui.registry.expectations import Breach
from rtui.registry.registry import Entry
from rtui.table.key_count import KeyCount, copied


class Layout(NamedTuple):
    """Which facts are known of keys of a type."""

    key_type: bytes | None
    has_ttl: bool
    has_memory: bool
    has_length: bool
    is_sampled: bool


class CountedEntries(NamedTuple):
    """Some keys by entry, or NO_PATTERN."""

    layouts: Sequence[tuple[Layout, Mapping[int, int]]]
    memory_bytes: Sequence[tuple[int, int]]
    lives: Sequence[tuple[int, int, int]]
    """For entries that expect a least TTL: the number of expiring keys, and their longest remaining TTL in ms."""
    shown: Sequence[tuple[int, KeyCount]]
    """Examples, and the sizes of the keys where they are a sample; no keys are counted in it."""


CountedBreach: TypeAlias = tuple[int, Breach, bool, KeyCount]
"""Keys of an entry that break the same expectation; unsampled keys, which do not stand for others, apart."""


class EntryCounts:
    """Keys by entry of a registry; those without one are counted under NO_PATTERN."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._layouts: defaultdict[Layout, Counter[int]] = defaultdict(Counter)
        count = len(entries) + 1
        self._memory = [0] * count
        """By entry; NO_PATTERN is the last."""
        self._expiring = [0] * count
        """Expiring keys of entries whose expected TTL has a minimum."""
        self._longest_ms = [0] * count
        """The longest remaining TTL of these keys, in ms."""
        self._broken: defaultdict[tuple[int, Breach, bool], KeyCount] = defaultdict(KeyCount)
        """By entry and breach; unsampled keys, which do not stand for others, apart."""
        self._shown: defaultdict[int, KeyCount] = defaultdict(KeyCount)
        """See `CountedEntries`."""

    def copy(self, slicer: Slicer) -> Slices[EntryCounts]:
        """Return counts of the same keys; nothing may be added meanwhile."""
        made = copy(self)
        made._layouts = defaultdict(Counter)
        for layout, keys in self._layouts.items():
            made._layouts[layout] = keys.copy()
            yield from slicer.pause()
        made._memory = self._memory.copy()
        made._expiring, made._longest_ms = self._expiring.copy(), self._longest_ms.copy()
        made._broken = yield from copied(self._broken, slicer)
        made._shown = yield from copied(self._shown, slicer)
        return made

    def add(self, counted: CountedEntries) -> None:
        """Add keys."""
        for layout, keys in counted.layouts:
            self._layouts[layout].update(keys)
        for index, size in counted.memory_bytes:
            self._memory[index] += size
        for index, expiring, longest_ms in counted.lives:
            self._expiring[index] += expiring
            self._longest_ms[index] = max(self._longest_ms[index], longest_ms)
        for index, shown in counted.shown:
            self._shown[index].merge(shown)

    def add_broken(self, counted: Iterable[CountedBreach]) -> None:
        """Add that keys break something."""
        for index, breach, is_sampled, keys in counted:
            self._broken[index, breach, is_sampled].merge(keys)

    def merge(self, other: EntryCounts) -> None:
        """Add the counts of other keys by the same entries."""
        for layout, keys in other._layouts.items():
            self._layouts[layout].update(keys)
        for own, theirs in ((self._memory, other._memory), (self._expiring, other._expiring)):
            own[:] = map(add, own, theirs)
        self._longest_ms[:] = map(max, self._longest_ms, other._longest_ms)
        for broken, count in other._broken.items():
            self._broken[broken].merge(count)
        for index, shown in other._shown.items():
            self._shown[index].merge(shown)

    def layouts(self) -> dict[int, list[tuple[Layout, int]]]:
        """Return by entry how many keys it has of each layout."""
        found: defaultdict[int, list[tuple[Layout, int]]] = defaultdict(list)
        for layout, keys in self._layouts.items():
            for index, count in keys.items():
                found[index].append((layout, count))
        return found

    def keys_by_entry(self) -> Counter[int]:
        """Return how many keys each entry has."""
        found: Counter[int] = Counter()
        for keys in self._layouts.values():
            found.update(keys)
        return found

    def shown(self, index: int) -> KeyCount:
        """Return the examples of an entry, and the sizes of its keys where they are a sample."""
        return self._shown[index] if index in self._shown else KeyCount()

    def memory_bytes(self, index: int) -> int:
        return self._memory[index]

    def broken(self, index: int, breach: Breach, *, is_sampled: bool) -> KeyCount:
        """Return the keys of an entry with a breach; `is_sampled`: those that stand for others."""
        return self._broken.get((index, breach, is_sampled)) or KeyCount()

    def lives(self, index: int) -> tuple[int, int]:
        """Return how many keys of an entry expire that expects a least TTL, and the most that one has left, in ms."""
        return self._expiring[index], self._longest_ms[index]
