"""The first few records by one measure, kept at hardly any cost per key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.report import KeyRecord

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
