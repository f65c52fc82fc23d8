"""The first few records by one measure, kept at hardly any cost per key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rtui.analysis.report import KeyRecord

Measure = Callable[[KeyRecord], int]
"""What a list is ordered by; only asked of records that have it."""

Maker = Callable[[int], KeyRecord]
"""Makes the record of the i-th key of a batch."""


class Ranking:
    """The `top` records by one measure, ties by key, each key once.

    A batch is held against the worst value that could still enter before any of its keys is looked at. Twice `top`
    records are kept before the worse half is dropped.
    """

    def __init__(self, top: int, measure: Measure, *, least: bool = False) -> None:
        self._top = top
        self._measure = measure
        self._sign = -1 if least else 1
        self._best: Callable[[Sequence[int]], int] = min if least else max
        self._records: dict[bytes, KeyRecord] = {}
        self._floor: tuple[int, bytes] | None = None
        """The value and the key of the worst record once there are `top`."""

    def add(self, keys: Sequence[bytes], values: Sequence[int], make: Maker) -> None:
        """Take what ranks among the first of a batch; `make(i)` is asked only for those.

        A key that comes again replaces what is known of it, unless it has become too small for the list.
        """
        for index in self._entering(keys, values):
            self._records[keys[index]] = make(index)
        if len(self._records) >= 2 * self._top:
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
        kept = self.records()
        self._records = {record.key: record for record in kept}
        if len(kept) == self._top and kept:
            self._floor = self._measure(kept[-1]), kept[-1].key

    def records(self) -> tuple[KeyRecord, ...]:
        """What ranks first, best first."""
        return tuple(sorted(self._records.values(), key=self._order)[: self._top])

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
        if len(self._records) >= 2 * self._top:
            self._prune()
