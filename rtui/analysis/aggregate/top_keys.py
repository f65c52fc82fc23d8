"""The first few records by one measure, kept at hardly any cost per key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from operator import gt
from typing import Final

from rtui.analysis.aggregate.buffers import Inspected
from rtui.analysis.aggregate.figures import AS_COUNTED, Figures
from rtui.analysis.aggregate.presets import DEFAULT_PRESET, Preset, preset
from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.keyspace.types import STRING

Measure = Callable[[KeyRecord], int]
"""What a list is ordered by; only asked of records that have it."""

Maker = Callable[[int], KeyRecord]
"""Makes the record of the i-th key of a batch."""


NAME_BYTES: Final = 1 << 20
"""The names in one list have at most so many bytes together: where names are very long, it holds fewer keys."""


def fitting(names: Iterable[bytes], room: int) -> int:
    """How many of these names, from the first on, have at most `room` bytes together; the first always fits."""
    count = 0
    for name in names:
        room -= len(name)
        if room < 0 and count:
            break
        count += 1
    return count


class Ranking:
    """The `top` records by one measure, ties by key, each key once; fewer where their names are longer than `room`.

    A batch is held against the worst value that could still enter before any of its keys is looked at. Twice `top`
    records, or names of twice `room` bytes, are kept before the worse half is dropped.
    """

    def __init__(self, top: int, measure: Measure, *, least: bool = False, room: int = NAME_BYTES) -> None:
        self._top = top
        self._room = room
        self._name_bytes = 0
        """Bytes of the names of all records."""
        self._measure = measure
        self._sign = -1 if least else 1
        self._best: Callable[[Sequence[int]], int] = min if least else max
        self._records: dict[bytes, KeyRecord] = {}
        self._floor: tuple[int, bytes] | None = None
        """The value and the key of the worst record once there are `top`, or of the best that found no room."""

    def add(self, keys: Sequence[bytes], values: Sequence[int], make: Maker) -> None:
        """Take what ranks among the first of a batch; `make(i)` is asked only for those.

        A key that comes again replaces what is known of it, unless it has become too small for the list.
        """
        entering = self._entering(keys, values)
        if not entering:
            return
        records = self._records
        for index in entering:
            key = keys[index]
            if key not in records:
                self._name_bytes += len(key)
            records[key] = make(index)
        self._prune()

    def _entering(self, keys: Sequence[bytes], values: Sequence[int]) -> Sequence[int]:
        """Say which of a batch are no worse than the floor."""
        if self._floor is None:
            return range(len(keys)) if self._top else ()
        floor, worst = self._floor
        best = self._best(values)
        if best == floor:
            if min(keys) > worst:
                return ()
            return [i for i, value in enumerate(values) if value == floor and keys[i] <= worst]
        if (best > floor) is (self._sign < 0):
            return ()
        if self._sign < 0:
            return [i for i, value in enumerate(values) if value <= floor]
        return [i for i, value in enumerate(values) if value >= floor]

    def _prune(self) -> None:
        """Drop the worse records when there are too many, or too many bytes of names."""
        if len(self._records) < 2 * self._top and self._name_bytes <= 2 * self._room:
            return
        ranked = self._ranked()
        kept = ranked[: self._fitting(ranked)]
        if ranked and (len(kept) == self._top or len(kept) < len(ranked)):
            last = ranked[min(len(kept), self._top - 1)]
            self._floor = self._measure(last), last.key
        self._records = {record.key: record for record in kept}
        self._name_bytes = sum(map(len, self._records))

    def records(self) -> tuple[KeyRecord, ...]:
        """What ranks first, best first."""
        ranked = self._ranked()
        return tuple(ranked[: self._fitting(ranked)])

    def _ranked(self) -> list[KeyRecord]:
        """The first `top` records, best first."""
        return sorted(self._records.values(), key=self._order)[: self._top]

    def _fitting(self, ranked: list[KeyRecord]) -> int:
        """How many of these records are listed."""
        if self._name_bytes <= self._room:
            return len(ranked)
        return fitting((record.key for record in ranked), self._room)

    def _order(self, record: KeyRecord) -> tuple[int, bytes]:
        return -self._sign * self._measure(record), record.key

    def learn(self, key: bytes, *, length: int | None, encoding: bytes | None, note: str | None) -> None:
        """Complete the record of a key, if it is here."""
        if record := self._records.get(key):
            self._records[key] = replace(
                record,
                length=record.length if length is None else length,
                encoding=record.encoding if encoding is None else encoding,
                note=record.note if note is None else note,
            )

    def merge(self, other: Ranking) -> None:
        """Take up another's records; of a key in both the one that was asked later."""
        for key, record in other._records.items():
            held = self._records.get(key)
            if held is None or held.asked_at_s <= record.asked_at_s:
                self._records[key] = record
                self._name_bytes += len(key) if held is None else 0
        self._prune()


DEFAULT_TOP: Final = 100
"""How many keys a list holds unless told otherwise."""


class TopKeys:
    """The biggest keys by memory and by length, for each type and over all, and the hottest ones.

    Memory is bounded by the number of types, `top` and the bytes of names that a list may hold. The lists over all
    follow from those of the types.
    """

    def __init__(self, top: int = DEFAULT_TOP, thresholds: Preset | None = None) -> None:
        self.top = top
        self.thresholds = thresholds or preset(DEFAULT_PRESET)
        self.over: dict[bytes, int] = {}
        """By type, how many keys were above the thresholds; a type that could not be judged is missing."""
        self._by_memory: dict[bytes | None, Ranking] = {}
        self._by_length: dict[bytes | None, Ranking] = {}
        self._by_frequency = Ranking(top, _frequency)
        self._by_idle = Ranking(top, _idle, least=True)

    def add(self, batch: Inspected, asked_at_s: float) -> None:
        """Take up a batch that was asked at this moment, in seconds since the epoch."""
        if not batch.keys:
            return

        def make(index: int) -> KeyRecord:
            return record_of(batch, index, asked_at_s)

        if batch.memory_bytes is not None:
            self._ranking(self._by_memory, batch.kind, _memory).add(batch.keys, batch.memory_bytes, make)
        if batch.lengths is not None:
            self._ranking(self._by_length, batch.kind, _length).add(batch.keys, batch.lengths, make)
        if batch.frequency is not None:
            self._by_frequency.add(batch.keys, batch.frequency, make)
        elif batch.idle_s is not None:
            self._by_idle.add(batch.keys, batch.idle_s, make)
        self._judge(batch)

    def _ranking(self, by_type: dict[bytes | None, Ranking], kind: bytes | None, measure: Measure) -> Ranking:
        found = by_type.get(kind)
        if found is None:
            found = by_type[kind] = Ranking(self.top, measure)
        return found

    def _judge(self, batch: Inspected) -> None:
        """Count the keys above the thresholds of their type."""
        if batch.kind is None:
            return
        limits = self.thresholds.limits(batch.kind)
        memory, lengths = batch.memory_bytes, batch.lengths
        if batch.kind == STRING.name and lengths is None:
            lengths = memory
        by_length = _above(lengths, limits.length)
        by_memory = _above(memory, limits.memory_bytes)
        if by_length is None and by_memory is None:
            return
        if by_length and by_memory and lengths is not None and memory is not None:
            found = sum(map(limits.exceeded, memory, lengths))
        else:
            found = (by_length or 0) + (by_memory or 0)
        self.over[batch.kind] = self.over.get(batch.kind, 0) + found

    def learn(
        self, key: bytes, *, length: int | None = None, encoding: bytes | None = None, note: str | None = None
    ) -> None:
        """Complete what is known of a key wherever it is listed; no list is ordered anew by it."""
        for ranking in self._rankings():
            ranking.learn(key, length=length, encoding=encoding, note=note)

    def _rankings(self) -> Iterator[Ranking]:
        return chain(self._by_memory.values(), self._by_length.values(), (self._by_frequency, self._by_idle))

    def merge(self, other: TopKeys) -> None:
        """Take up what another one found among other keys."""
        for mine, theirs, measure in (
            (self._by_memory, other._by_memory, _memory),
            (self._by_length, other._by_length, _length),
        ):
            for kind, ranking in theirs.items():
                self._ranking(mine, kind, measure).merge(ranking)
        self._by_frequency.merge(other._by_frequency)
        self._by_idle.merge(other._by_idle)
        for kind, count in other.over.items():
            self.over[kind] = self.over.get(kind, 0) + count

    def report(self, figures: Figures = AS_COUNTED) -> BigReport:
        """All lists of biggest keys."""
        by_memory = {kind: ranking.records() for kind, ranking in self._by_memory.items()}
        by_length = {kind: ranking.records() for kind, ranking in self._by_length.items()}
        counted = {kind: records for kind, records in by_length.items() if kind != STRING.name and kind is not None}
        return BigReport(
            by_memory=self._over_all(by_memory, _memory),
            by_length=self._over_all(counted, _length),
            by_type_memory={kind: records for kind, records in by_memory.items() if kind is not None},
            by_type_length={kind: records for kind, records in by_length.items() if kind is not None},
            over={kind: figures.keys(count) for kind, count in self.over.items()},
        )

    def _over_all(
        self, lists: dict[bytes | None, tuple[KeyRecord, ...]] | dict[bytes, tuple[KeyRecord, ...]], measure: Measure
    ) -> tuple[KeyRecord, ...]:
        """Join the lists of the types; a key that changed its type in between counts as it was last."""
        ranking = Ranking(self.top, measure)
        latest: dict[bytes, KeyRecord] = {}
        for record in chain.from_iterable(lists.values()):
            held = latest.get(record.key)
            if held is None or held.asked_at_s <= record.asked_at_s:
                latest[record.key] = record
        records = list(latest.values())
        ranking.add([one.key for one in records], [measure(one) for one in records], records.__getitem__)
        return ranking.records()

    def hottest(self) -> tuple[KeyRecord, ...]:
        """The keys of the highest access counters, or else of the least idle time; hottest first."""
        return self._by_frequency.records() or self._by_idle.records()


def record_of(batch: Inspected, index: int, asked_at_s: float) -> KeyRecord:
    """All that a batch says of one of its keys."""
    return KeyRecord(
        key=batch.keys[index],
        kind=batch.kind,
        memory_bytes=_at(batch.memory_bytes, index),
        length=_at(batch.lengths, index),
        ttl_ms=_at(batch.ttl_ms, index),
        idle_s=_at(batch.idle_s, index),
        frequency=_at(batch.frequency, index),
        asked_at_s=asked_at_s,
        note=batch.note,
    )


def _at(column: Sequence[int] | None, index: int) -> int | None:
    return None if column is None else column[index]


def _above(values: Sequence[int] | None, limit: int | None) -> int | None:
    """Count the values above a limit; None where there is nothing to compare."""
    if values is None or limit is None:
        return None
    return sum(map(gt, values, repeat(limit))) if max(values) > limit else 0


def _memory(record: KeyRecord) -> int:
    return record.memory_bytes or 0


def _length(record: KeyRecord) -> int:
    return record.length or 0


def _frequency(record: KeyRecord) -> int:
    return record.frequency or 0


def _idle(record: KeyRecord) -> int:
    return record.idle_s or 0
