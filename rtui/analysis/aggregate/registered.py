"""Counts keys by the entries of a registry, and those that break what an entry expects of them.

A batch has keys of one type of which the same facts are known. The matcher finds the entry of each key, -1 where there
is none; then one fact after the other is looked at for the whole batch. Every expectation is a range of numbers: the
time to live of a key that does not expire is -1, so `30m` is the range 0 … 30 minutes, `none` is -1 … -1, and
`none|24h` is -1 … 24 hours. Only of keys outside of a range it is found out what they break.

How many keys an entry has, and of how many of them a fact is known, follows from one counter for each layout: a type
and the facts that are known. Nothing grows with the keys.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from rtui.analysis.aggregate.key_count import KeyCount, copied
from rtui.analysis.aggregate.pattern_tree import LONGEST_EXAMPLE
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.quantities import Bounds
from rtui.registry.expectations import NO_TTL, Breach, Found, Ttl, breaches_of
from rtui.registry.matching import NO_PATTERN
from rtui.registry.registry import Entry

_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1


class Layout(NamedTuple):
    """Which facts are known of keys of a type."""

    key_type: bytes | None
    has_ttl: bool
    has_memory: bool
    has_length: bool
    is_sampled: bool


class CountedEntries(NamedTuple):
    """Keys by entry that were counted elsewhere and break nothing."""

    layouts: Sequence[tuple[Layout, Mapping[int, int]]]
    memory_bytes: Sequence[tuple[int, int]]
    lives: Sequence[tuple[int, int, int]]
    """Of entries that expect a least TTL: keys that expire, and the most that one of them has left, in ms."""
    examples: Sequence[tuple[int, Sequence[bytes]]]


CountedBreach: TypeAlias = tuple[int, Breach, bool, int, int, int, Sequence[bytes]]
"""Keys of an entry that break the same, apart for those that do not stand for others: keys, as in `CountedName`."""


class EntryCounts:
    """Keys by entry of a registry; those without one are counted under NO_PATTERN."""

    def __init__(self, entries: Sequence[Entry], *, is_sample: bool = False) -> None:
        """`is_sample` where the keys are a random sample, whose bytes are to be estimated."""
        self._entries = entries
        self._is_sample = is_sample
        self._layouts: defaultdict[Layout, Counter[int]] = defaultdict(Counter)
        count = len(entries) + 1
        self._memory = [0] * count
        """By entry; NO_PATTERN is the last."""
        self._expiring = [0] * count
        """Keys that expire, of entries that expect a TTL of at least so much."""
        self._longest_ms = [0] * count
        """The most that one of these has left."""
        self._broken: defaultdict[tuple[int, Breach, bool], KeyCount] = defaultdict(KeyCount)
        """By entry and what is broken, apart for keys that do not stand for others."""
        self._shown: defaultdict[int, KeyCount] = defaultdict(KeyCount)
        """Examples of each entry, and the sizes of its keys where they are a sample; no keys are counted in it."""
        self._limits = [1 << 32] * len(entries) + [-1]
        """By entry: keys with a larger checksum are no examples."""
        expected = [entry.expectations for entry in entries]
        self._ttls = _Ranges([_ttl_range(one.ttl) for one in expected])
        self._sizes = _Ranges([_range(one.size) for one in expected])
        self._lengths = _Ranges([_range(one.length) for one in expected])
        self._has_least_ttl = [one.ttl is not None and one.ttl.low_ms is not None for one in expected] + [False]
        self._wrong: dict[bytes, frozenset[int]] = {}
        """By type, the entries that expect another."""

    def copy(self, slicer: Slicer) -> Slices[EntryCounts]:
        """Return counts of the same keys; nothing may be added meanwhile."""
        made = copy(self)
        made._layouts = defaultdict(Counter)
        for layout, keys in self._layouts.items():
            made._layouts[layout] = keys.copy()
            yield from slicer.pause()
        made._memory, made._limits = self._memory.copy(), self._limits.copy()
        made._expiring, made._longest_ms = self._expiring.copy(), self._longest_ms.copy()
        made._broken = yield from copied(self._broken, slicer)
        made._shown = yield from copied(self._shown, slicer)
        return made

    def add(self, batch: InspectedBatch, found: Sequence[int]) -> None:
        """Add keys; `found` is the entry of each."""
        keys, ttl_ms, sizes, lengths = batch.keys, batch.ttl_ms, batch.memory_bytes, batch.lengths
        layout = Layout(batch.key_type, ttl_ms is not None, sizes is not None, lengths is not None, batch.is_sampled)
        self._layouts[layout].update(found)
        if sizes is not None:
            sums = self._memory
            for index, size in zip(found, sizes, strict=True):
                sums[index] += size
        odd: set[int] = set()
        if batch.key_type is not None:
            wrong = self._wrong_entries(batch.key_type)
            if not wrong.isdisjoint(found):
                odd.update(at for at, index in enumerate(found) if index in wrong)
        if ttl_ms is not None:
            odd.update(self._ttls.outside(found, ttl_ms))
            self._add_longest(found, ttl_ms)
        if sizes is not None:
            odd.update(self._sizes.outside(found, sizes))
        if lengths is not None:
            odd.update(self._lengths.outside(found, lengths))
        for at in odd:
            self._add_broken(batch, at, found[at])
        self._show(keys, found)
        if self._is_sample and sizes is not None:
            for index, size in zip(found, sizes, strict=True):
                self._shown[index].add_sizes((size,))

    def _show(self, keys: Sequence[bytes], found: Sequence[int]) -> None:
        """Take keys for examples of their entries; of keys without one, long names."""
        limits, checksums = self._limits, map(crc32, keys)
        for at, (index, checksum) in enumerate(zip(found, checksums, strict=True)):
            if checksum <= limits[index]:
                self._shown[index].show(keys[at])
                limits[index] = self._shown[index].limit
        if max(map(len, keys)) > LONGEST_EXAMPLE:
            for index, key in zip(found, keys, strict=True):
                if index == NO_PATTERN and len(key) > LONGEST_EXAMPLE:
                    self._shown[index].show(key)

    def add_counted(self, counted: CountedEntries) -> None:
        """Add keys that were counted elsewhere."""
        for layout, keys in counted.layouts:
            self._layouts[layout].update(keys)
        for index, size in counted.memory_bytes:
            self._memory[index] += size
        for index, expiring, longest_ms in counted.lives:
            self._expiring[index] += expiring
            self._longest_ms[index] = max(self._longest_ms[index], longest_ms)
        for index, keys_of_entry in counted.examples:
            shown = self._shown[index]
            for key in keys_of_entry:
                shown.show(key)
            self._limits[index] = shown.limit

    def add_broken(self, counted: Iterable[CountedBreach]) -> None:
        """Add that keys that were counted elsewhere break something."""
        for index, breach, is_sampled, keys, memory_keys, memory_bytes, examples in counted:
            self._broken[index, breach, is_sampled].add_counted(keys, memory_keys, memory_bytes, examples)

    def bounds(self) -> list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
        """Return what TTL, size and length may be, by entry and last for keys without one."""
        return list(zip(self._ttls.pairs, self._sizes.pairs, self._lengths.pairs, strict=True))

    @property
    def has_least_ttl(self) -> Sequence[bool]:
        """Which entries expect a TTL of at least so much; the last is for keys without one."""
        return self._has_least_ttl

    def wrong_entries(self, key_type: bytes | None) -> frozenset[int]:
        """Return the entries that expect another type."""
        return frozenset() if key_type is None else self._wrong_entries(key_type)

    def _wrong_entries(self, key_type: bytes) -> frozenset[int]:
        wrong = self._wrong.get(key_type)
        if wrong is None:
            expected = ((at, entry.expectations.types) for at, entry in enumerate(self._entries))
            wrong = self._wrong[key_type] = frozenset(at for at, types in expected if types and key_type not in types)
        return wrong

    def _add_longest(self, found: Sequence[int], ttl_ms: Sequence[int]) -> None:
        """Note how long keys still live of entries that expect a TTL of at least so much."""
        has_least = self._has_least_ttl
        if True not in has_least:
            return
        longest = self._longest_ms
        for index, left in zip(found, ttl_ms, strict=True):
            if has_least[index] and left >= 0:
                self._expiring[index] += 1
                longest[index] = max(longest[index], left)

    def _add_broken(self, batch: InspectedBatch, at: int, index: int) -> None:
        """Count a key of a batch that breaks something."""

        def value(column: Sequence[int] | None) -> int | None:
            return None if column is None else column[at]

        size = value(batch.memory_bytes)
        facts = Found(batch.key_type, value(batch.ttl_ms), size, value(batch.lengths))
        for breach in breaches_of(self._entries[index].expectations.broken(facts)):
            is_sampled = batch.is_sampled or breach is not Breach.LENGTH
            self._broken[index, breach, is_sampled].add(batch.keys[at], size, is_sample=self._is_sample)

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
        """Return the bytes of the keys of an entry."""
        return self._memory[index]

    def broken(self, index: int, breach: Breach, *, is_sampled: bool) -> KeyCount:
        """Return the keys of an entry that break something; `is_sampled` tells those that stand for others."""
        return self._broken.get((index, breach, is_sampled)) or KeyCount()

    def lives(self, index: int) -> tuple[int, int]:
        """Return how many keys of an entry expire that expects a least TTL, and the most that one has left, in ms."""
        return self._expiring[index], self._longest_ms[index]


class _Ranges:
    """What one fact of keys may be, by entry."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.pairs = [*ranges, (_LOWEST, _HIGHEST)]
        """The least and the most, by entry and last for keys without one."""
        self._lows = [low for low, _ in self.pairs]
        self._highs = [high for _, high in self.pairs]
        self._is_open = all(pair == (_LOWEST, _HIGHEST) for pair in self.pairs)

    def outside(self, found: Sequence[int], values: Sequence[int]) -> Iterable[int]:
        """Return which keys have a value that is out of range for their entry."""
        if self._is_open:
            return ()
        lows, highs = self._lows, self._highs
        pairs = enumerate(zip(found, values, strict=True))
        return [at for at, (index, value) in pairs if not lows[index] <= value <= highs[index]]


def _range(bounds: Bounds | None) -> tuple[int, int]:
    if bounds is None:
        return _LOWEST, _HIGHEST
    return _LOWEST if bounds.low is None else bounds.low, _HIGHEST if bounds.high is None else bounds.high


def _ttl_range(ttl: Ttl | None) -> tuple[int, int]:
    if ttl is None:
        return _LOWEST, _HIGHEST
    low = NO_TTL if ttl.may_be_missing else 0
    if not ttl.may_expire:
        return low, NO_TTL
    return low, _HIGHEST if ttl.high_ms is None else ttl.high_ms
