"""Counts rows of the key table by a registry: by entry, by broken expectation, by naming findings.

Names are matched and judged one by one, by functions of Python; all else are sums by entry and findings.

Every expectation is a range of numbers: the time to live of a key that does not expire is -1, so `30m` is the range 0 …
30 minutes, `none` is -1 … -1, and `none|24h` is -1 … 24 hours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import polars as pl

from rtui.analysis.report.figures import Sketch
from rtui.keyspace.text.quantities import Bounds
from rtui.registry.expectations import NO_TTL, Breach, Ttl
from rtui.registry.matching import NO_PATTERN
from rtui.table.key_count import LONGEST_EXAMPLE, Examples, KeyCount
from rtui.table.partial import RowColumns
from rtui.table.registered import CountedBreach, CountedEntries, Layout, RegistryCounts
from rtui.table.schema import keys_of
from rtui.table.sums import ChunkRows, Flags, Whole, size_buckets, whole

MOST_FOUND: Final = 65_536
"""Most places and findings that are numbered; beyond, all are forgotten."""

_BITS: Final = (8, 4, 2, 1)
"""Of the layout of a row: its TTL, memory and length are known, it stands for others."""
_LAYOUTS: Final = 16

_ANY_TTL: Final = Ttl("", may_be_missing=True)
_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1


class RegisteredRows:
    """Counts rows, which have a column `asked_ms`, all of them or of a sample."""

    def __init__(self, counts: RegistryCounts) -> None:
        self._counts = counts
        self._registry = counts.registry
        self._expected = [entry.expectations for entry in self._registry.entries]
        self._sizes = np.array([*(_range(one.size) for one in self._expected), _range(None)], np.int64)
        self._lengths = np.array([*(_range(one.length) for one in self._expected), _range(None)], np.int64)
        """The least and the most by entry, the last for keys without one; so are all others here."""
        ttls = [*(one.ttl or _ANY_TTL for one in self._expected), _ANY_TTL]
        self._has_least_ttl = np.array([ttl.low_ms is not None for ttl in ttls])
        self._may_last = np.array([ttl.may_be_missing for ttl in ttls])
        self._may_expire = np.array([ttl.may_expire for ttl in ttls])
        self._most_ms = np.array([_HIGHEST if ttl.high_ms is None else ttl.high_ms for ttl in ttls], np.int64)
        self._shown = Examples()
        self._broken = Examples()
        self._forget()

    def _forget(self) -> None:
        self._names: list[tuple[int, bytes, int]] = [(NO_PATTERN, b"", 0)]
        """By number: entry, namespace and findings; the first stands for none."""
        self._numbers = {self._names[0]: 0}
        self._named = Examples()

    def add(self, table: pl.DataFrame, checksums: Whole) -> None:
        """Count rows; `checksums` are the CRC32 of their keys."""
        keys = keys_of(table)
        matched = self._registry.matcher.match_page(keys)
        entries = np.array(matched, np.int64)
        rows, counts = _Rows(table, checksums, is_sample=self._counts.is_sample), self._counts
        counts.entries.add(self._entries(rows, entries))
        counts.entries.add_broken(self._breaches(rows, entries))
        if counts.naming.is_wanted:
            found = self._numbered(keys, matched)
            groups = rows.groups(found, found > 0, self._named, len(self._names))
            counts.naming.add([(*self._names[number], counted) for number, counted in groups])

    def _numbered(self, keys: Sequence[bytes], entries: Sequence[int]) -> Whole:
        if len(self._names) > MOST_FOUND:
            self._forget()
        numbers = []
        for name in self._counts.naming.judged(keys, entries):
            number = self._numbers.setdefault(name, len(self._names)) if name[2] else 0
            if number == len(self._names):
                self._names.append(name)
            numbers.append(number)
        return np.array(numbers, np.int64)

    def _entries(self, rows: _Rows, entries: Whole) -> CountedEntries:
        places, size = entries + 1, len(self._most_ms)
        layouts = []
        for key_type, of_type in rows.by_type():
            counts = np.bincount(rows.layouts[of_type] * size + places[of_type], minlength=_LAYOUTS * size)
            for layout, one in enumerate(counts.reshape(-1, size)):
                keys = {place - 1: int(one[place]) for place in np.flatnonzero(one).tolist()}
                if keys:
                    layouts.append((Layout(key_type, *[bool(layout & bit) for bit in _BITS]), keys))
        chunk = ChunkRows(places)
        sizes = chunk.halves(rows.memory[rows.has_memory], rows.has_memory).tolist()
        expires = rows.has_ttl & (rows.left_ms >= 0) & self._has_least_ttl[entries]
        lives = ChunkRows(places[expires])
        longest = lives.greatest(rows.left_ms[expires])
        is_shown = np.ones(len(places), bool) if self._counts.is_sample else (entries >= 0) | rows.are_long
        shown = [(place - 1, count) for place, count in rows.groups(places, is_shown, self._shown, size)]
        for entry, count in shown:
            count.keys = count.memory_keys = count.memory_bytes = 0
            if entry == NO_PATTERN:
                count.examples = ()
        return CountedEntries(
            layouts,
            [(place - 1, whole(*one)) for place, one in zip(chunk.used.tolist(), sizes, strict=True)],
            [
                (place - 1, *one)
                for place, *one in zip(lives.used.tolist(), lives.keys.tolist(), longest.tolist(), strict=True)
            ],
            shown,
        )

    def _breaches(self, rows: _Rows, entries: Whole) -> list[CountedBreach]:
        is_wrong = np.zeros(len(entries), bool)
        for key_type, of_type in rows.by_type():
            wrong = [at for at, one in enumerate(self._expected) if one.types and key_type not in one.types]
            if wrong and key_type is not None:
                is_wrong[of_type] = np.isin(entries[of_type], wrong)
        has_ttl, lasts, left_ms = rows.has_ttl, rows.left_ms == NO_TTL, rows.left_ms
        may_expire = self._may_expire[entries]
        broken = {
            Breach.TYPE: is_wrong,
            Breach.TTL_MISSING: has_ttl & lasts & ~self._may_last[entries],
            Breach.TTL_LONG: has_ttl & ~lasts & may_expire & (left_ms > self._most_ms[entries]),
            Breach.TTL_UNEXPECTED: has_ttl & ~lasts & ~may_expire,
            Breach.SIZE: rows.has_memory & _is_outside(rows.memory, self._sizes[entries]),
            Breach.LENGTH: rows.has_length & _is_outside(rows.lengths, self._lengths[entries]),
        }
        found: list[CountedBreach] = []
        for at, (breach, some) in enumerate(broken.items()):
            if not some.any():
                continue
            stand = rows.is_sampled | (breach is not Breach.LENGTH)
            groups = (entries * len(broken) + at) * 2 + stand
            for group, counted in rows.groups(groups, some, self._broken, 2 * len(broken) * len(self._most_ms)):
                found.append((group // 2 // len(broken), breach, bool(group % 2), counted))
        return found


class _Rows(RowColumns):
    """Rows as arrays, with their keys."""

    def __init__(self, table: pl.DataFrame, checksums: Whole, *, is_sample: bool) -> None:
        """`is_sample` if the spread of sizes is needed."""
        super().__init__(table, np.empty(0, np.int64))
        flags = np.stack((self.has_ttl, self.has_memory, self.has_length, self.is_sampled))
        self.layouts: Whole = np.array(_BITS) @ flags
        """By row, the bits of the facts that are known."""
        self._keys = table.select(pl.coalesce("raw", pl.col("name").cast(pl.Binary))).to_series()
        self.are_long: Flags = (self._keys.bin.size() > LONGEST_EXAMPLE).to_numpy()
        """By row, whether its name is too long to be an example."""
        self._checksums, self._is_sample = checksums, is_sample

    def by_type(self) -> Iterator[tuple[bytes | None, Whole]]:
        """Yield each type and its rows."""
        types = self.table["type"]
        for name in types.unique().to_list():
            is_type = types.is_null() if name is None else (types == name).fill_null(value=False)
            yield None if name is None else name.encode(), np.flatnonzero(is_type.to_numpy())

    def groups(self, groups: Whole, some: Flags, shown: Examples, most: int) -> list[tuple[int, KeyCount]]:
        """Return each group of some rows with its keys; the examples are chosen among all keys so far.

        Groups are numbers below `most`; `shown` has the examples so far.
        """
        places = np.flatnonzero(some)
        if not len(places):
            return []
        chunk, has_memory = ChunkRows(groups[places]), self.has_memory[places]
        known, memory = chunk.count(has_memory).tolist(), self.memory[places][has_memory]
        sizes = chunk.halves(memory, has_memory).tolist()
        shown.add(chunk.groups, self._keys.gather(places), self._checksums[places], most)
        examples = shown.by_node()
        found = {
            group: KeyCount(keys, memory_keys, whole(*halves))
            for group, keys, memory_keys, halves in zip(
                chunk.used.tolist(), chunk.keys.tolist(), known, sizes, strict=True
            )
        }
        for group, count in found.items():
            count.examples = examples.get(group, ())
        long = places[self.are_long[places]]
        for group, key in zip(groups[long].tolist(), self._keys.gather(long).to_list(), strict=True):
            found[group].show([key])
        if self._is_sample:
            for group, spread in _sketches(chunk, memory, has_memory):
                found[group].sizes = spread
        return [*found.items()]


def _sketches(chunk: ChunkRows, sizes: Whole, rows: Flags) -> Iterator[tuple[int, Sketch]]:
    """Yield the spread of sizes of each group that has any."""
    buckets: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for group, bucket, count in zip(*(one.tolist() for one in chunk.sparse(size_buckets(sizes), rows)), strict=True):
        buckets[group][bucket] = count
    figures = (chunk.halves(sizes, rows), chunk.greatest(-sizes, rows), chunk.greatest(sizes, rows))
    for group, halves, least, most in zip(chunk.used.tolist(), *(one.tolist() for one in figures), strict=True):
        if group in buckets:
            yield group, Sketch.of(buckets[group], whole(*halves), -least, most)


def _range(bounds: Bounds | None) -> tuple[int, int]:
    if bounds is None:
        return _LOWEST, _HIGHEST
    return _LOWEST if bounds.low is None else bounds.low, _HIGHEST if bounds.high is None else bounds.high


def _is_outside(values: Whole, bounds: Whole) -> Flags:
    found: Flags = (values < bounds[:, 0]) | (values > bounds[:, 1])
    return found
