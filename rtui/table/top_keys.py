"""The biggest and the hottest keys, at hardly any cost per key; the table has its own (`rtui.table.tops`).

Imported ahead of a pass, so without Polars.

A list of the 100 biggest keys needs to know only the value of its last entry, the *floor*: keys below it do not enter.
Keys at or above the floor are added without ordering anything; when there are 200 records, they are sorted once, the
worse half is dropped, and the floor rises to the last one kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import structs

from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.analysis.report.thresholds import DEFAULT_PRESET, Preset, SizeLimits, preset
from rtui.keyspace.types import STRING

RankedField: TypeAlias = Literal["memory_bytes", "length", "frequency", "idle_s"]
"""The field of a record that a list is ordered by."""

LIST_NAME_BYTES: Final = 1 << 20
"""Most bytes of the names in one list: if names are very long, it holds fewer keys."""

UNKNOWN_LENGTH: Final = 1 << 63
"""Stands for the length of a key that may have any; a server can't say so large a number."""


def fitting(names: Iterable[bytes], max_bytes: int) -> int:
    """Return how many of these names, from the first on, have at most `max_bytes` together; the first always fits."""
    count = 0
    for name in names:
        max_bytes -= len(name)
        if max_bytes < 0 and count:
            break
        count += 1
    return count


class Ranking:
    """The `top` records by one measure, ties by key, each key once; fewer where their names exceed `max_bytes`.

    Twice `top` records, or names of twice `max_bytes`, are kept before the worse half is dropped.
    """

    def __init__(
        self, top: int, measure: RankedField, *, least: bool = False, max_bytes: int = LIST_NAME_BYTES
    ) -> None:
        self._top = top
        self._max_bytes = max_bytes
        self._name_bytes = 0
        """Bytes of the names of all records."""
        self._measure = measure
        self._sign = 1 if least else -1
        self._records: dict[bytes, KeyRecord] = {}
        self._floor: tuple[int, bytes] | None = None
        """The rank of the worst record once the list is full, or of the best that did not fit."""

    def __len__(self) -> int:
        return len(self._records)

    @property
    def floor(self) -> int | None:
        """The least value that enters, as far as known; None if any value enters."""
        return None if self._floor is None else self._sign * self._floor[0]

    def add(self, record: KeyRecord) -> None:
        """Add a key if it ranks among the first; a key that comes again replaces its earlier record."""
        records, key = self._records, record.key
        if not self._top or (self._floor is not None and self._rank(record) > self._floor):
            return
        if key not in records:
            self._name_bytes += len(key)
        records[key] = record
        if len(records) >= 2 * self._top or self._name_bytes > 2 * self._max_bytes:
            self.settle()

    def settle(self) -> None:
        """Drop the records beyond the list, and raise the floor to its last entry."""
        ranked = self._ranked()
        kept = ranked[: self._fitting(ranked)]
        if ranked and (len(kept) == self._top or len(kept) < len(ranked)):
            last = ranked[min(len(kept), self._top - 1)]
            self._floor = self._rank(last)
        self._records = {record.key: record for record in kept}
        self._name_bytes = sum(map(len, self._records))

    def records(self) -> tuple[KeyRecord, ...]:
        ranked = self._ranked()
        return tuple(ranked[: self._fitting(ranked)])

    def _rank(self, record: KeyRecord) -> tuple[int, bytes]:
        return self._sign * (getattr(record, self._measure) or 0), record.key

    def _ranked(self) -> list[KeyRecord]:
        return sorted(self._records.values(), key=self._rank)[: self._top]

    def _fitting(self, ranked: list[KeyRecord]) -> int:
        if self._name_bytes <= self._max_bytes:
            return len(ranked)
        return fitting((record.key for record in ranked), self._max_bytes)

    def find(self, key: bytes) -> KeyRecord | None:
        return self._records.get(key)

    def learn(self, key: bytes, **learnt: int | bytes | str | None) -> None:
        """Complete the record of a key, if it is listed, by those facts that are not None."""
        if one := self._records.get(key):
            self._records[key] = structs.replace(one, **{name: one for name, one in learnt.items() if one is not None})


class OverCounts(NamedTuple):
    """How many keys are above the thresholds, by type."""

    known: dict[bytes, int]
    """Keys known to be above the threshold, by type; a type that could not be judged is missing."""
    sampled: dict[bytes, int]
    """The same among keys that stand for others."""
    uncertain: frozenset[bytes]
    """Types with keys that may be above, since their length was not asked."""


class TopKeys:
    """The biggest keys by memory and by length, by type and overall, and the hottest ones.

    Memory is bounded by the number of types, `top` and the bytes of names that a list may hold. The overall lists are
    made from those of each type.
    """

    def __init__(self, top: int, thresholds: Preset | None = None) -> None:
        self.top = top
        """Keys in each list."""
        self._thresholds = thresholds or preset(DEFAULT_PRESET)
        self._over: Counter[bytes] = Counter()
        self._over_sampled: Counter[bytes] = Counter()
        self._left_out: dict[bytes | None, int] = {}
        """By type, the greatest possible length of keys that were not asked for it."""
        self._by_memory: dict[bytes | None, Ranking] = {}
        self._by_length: dict[bytes | None, Ranking] = {}
        self._by_frequency = Ranking(top, "frequency")
        self._by_idle = Ranking(top, "idle_s", least=True)

    def rank(self, records: Iterable[KeyRecord]) -> None:
        """List keys as far as they rank among the first."""
        for record in records:
            if record.memory_bytes is not None:
                self._by_memory.setdefault(record.key_type, Ranking(self.top, "memory_bytes")).add(record)
            if record.length is not None:
                self._by_length.setdefault(record.key_type, Ranking(self.top, "length")).add(record)
            if record.frequency is not None:
                self._by_frequency.add(record)
            elif record.idle_s is not None:
                self._by_idle.add(record)

    def merge(self, other: TopKeys) -> None:
        """Add other keys, by the same thresholds."""
        for ranking in other.rankings():
            self.rank(ranking.records())
        self._over.update(other._over)
        self._over_sampled.update(other._over_sampled)
        for key_type, most in other._left_out.items():
            self.leave_out(key_type, most)
        self.settle()

    def settle(self) -> None:
        """Raise the floors of all lists, so that no key enters that would not be listed."""
        for ranking in self.rankings():
            ranking.settle()

    def limits(self, key_type: bytes | None) -> SizeLimits:
        return self._thresholds.limits(key_type)

    def count_over(self, key_type: bytes, found: int, sampled: int) -> None:
        """Count keys of a type above the limits, and those among them that stand for others."""
        self._over[key_type] += found
        self._over_sampled[key_type] += sampled

    def length_floor(self, key_type: bytes | None) -> int:
        """Return from which length on a key of a type would be listed, or be above the thresholds, as known by now."""
        ranking = self._by_length.get(key_type)
        floor = (ranking.floor if ranking is not None else None) or 0
        limit = self._thresholds.limits(key_type).length
        return floor if limit is None else min(floor, limit + 1)

    def leave_out(self, key_type: bytes | None, most_length: int) -> None:
        self._left_out[key_type] = max(most_length, self._left_out.get(key_type, 0))

    def bound_left_out(self, key_type: bytes, most_length: int) -> None:
        """Bound the length of the keys of this type whose length is unknown."""
        if key_type in self._left_out:
            self._left_out[key_type] = min(most_length, self._left_out[key_type])

    def learn(
        self,
        key: bytes,
        *,
        length: int | None = None,
        encoding: bytes | None = None,
        note: str | None = None,
        idle_s: int | None = None,
        frequency: int | None = None,
    ) -> None:
        """Complete the record of a key in all lists; no list is ordered anew.

        A key that was left out enters the list of its type by length.
        """
        for ranking in self.rankings():
            ranking.learn(key, length=length, encoding=encoding, note=note, idle_s=idle_s, frequency=frequency)
        if length is not None:
            self._enter(key, length)

    def _enter(self, key: bytes, length: int) -> None:
        """List a key by its length that was left out, and count it if it is above the thresholds by that alone."""
        for key_type in self._left_out:
            record = self._by_memory[key_type].find(key) if key_type in self._by_memory else None
            if record is None or key_type is None:
                continue
            by_length = self._by_length.setdefault(key_type, Ranking(self.top, "length"))
            if by_length.find(key) is None:
                by_length.add(structs.replace(record, length=length))
                limits = self._thresholds.limits(key_type)
                if limits.exceeded(record.memory_bytes, length) and not limits.exceeded(record.memory_bytes, None):
                    self.count_over(key_type, 1, 0)

    def rankings(self) -> Iterable[Ranking]:
        return chain(self._by_memory.values(), self._by_length.values(), (self._by_frequency, self._by_idle))

    @property
    def over(self) -> OverCounts:
        """How many keys are above the thresholds by now."""
        limits = {key_type: self._thresholds.limits(key_type).length for key_type in self._over}
        uncertain = {
            key_type
            for key_type, limit in limits.items()
            if limit is not None and self._left_out.get(key_type, 0) > limit
        }
        return OverCounts(dict(self._over), dict(self._over_sampled), frozenset(uncertain))

    def report(self) -> BigReport:
        """Return all lists of biggest keys, with counts as they are; types in the order of their names."""
        by_memory = {key_type: self._by_memory[key_type].records() for key_type in _in_order(self._by_memory)}
        by_length = {key_type: self._by_length[key_type].records() for key_type in _in_order(self._by_length)}
        elements = [records for key_type, records in by_length.items() if key_type not in (STRING.name, None)]
        return BigReport(
            by_memory=self._over_all(by_memory.values(), "memory_bytes"),
            by_length=self._over_all(elements, "length"),
            by_type_memory={key_type: records for key_type, records in by_memory.items() if key_type is not None},
            by_type_length={key_type: records for key_type, records in by_length.items() if key_type is not None},
            over=dict(self._over),
            length_not_asked={
                key_type: None if most == UNKNOWN_LENGTH else most
                for key_type, most in self._left_out.items()
                if key_type is not None and self._may_lack(most, by_length.get(key_type))
            },
        )

    def _may_lack(self, most_length: int, listed: tuple[KeyRecord, ...] | None) -> bool:
        """Whether a list by length may lack a key of at most this length, if there is such a list."""
        if listed is None:
            return False
        return len(listed) < self.top or (bool(listed) and most_length >= (listed[-1].length or 0))

    def _over_all(self, lists: Iterable[tuple[KeyRecord, ...]], measure: RankedField) -> tuple[KeyRecord, ...]:
        """Join the lists of the types; a key that changed its type in between counts as it was last."""
        latest: dict[bytes, KeyRecord] = {}
        for record in chain.from_iterable(lists):
            known = latest.get(record.key)
            if known is None or known.asked_at_s <= record.asked_at_s:
                latest[record.key] = record
        ranking = Ranking(self.top, measure)
        for record in latest.values():
            ranking.add(record)
        return ranking.records()

    def hottest(self) -> tuple[KeyRecord, ...]:
        """Return the keys of the highest access counters, or else of the shortest idle times; hottest first."""
        return self._by_frequency.records() or self._by_idle.records()


def _in_order(types: Iterable[bytes | None]) -> list[bytes | None]:
    return sorted(types, key=lambda key_type: key_type or b"")
