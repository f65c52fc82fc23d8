"""The biggest and the hottest keys of a pass: short lists that cost next to nothing per key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from operator import gt
from typing import Final

from rtui.analysis.figures import AS_COUNTED, Figures
from rtui.analysis.inspected import Inspected
from rtui.analysis.presets import DEFAULT_PRESET, STRING, Preset, preset
from rtui.analysis.ranking import Measure, Ranking
from rtui.analysis.report import BigReport, KeyRecord

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
        if batch.kind == STRING and lengths is None:
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
        counted = {kind: records for kind, records in by_length.items() if kind != STRING and kind is not None}
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
