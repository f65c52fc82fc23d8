"""The matches of a query: all are counted, and as many as are wanted are kept, the first ones or the top ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.natural import natural

_OVERSHOOT: Final = 2
"""Sorted matches kept before the least are dropped, as a multiple of the number wanted."""


@dataclass(frozen=True, slots=True)
class Order:
    """The sort order of matches."""

    fact: Fact
    is_descending: bool = False
    is_by_bytes: bool = False
    """Whether names are sorted by their bytes, numbers in them included."""

    def key(self, record: KeyRecord) -> tuple[bool, Any]:
        """Return the sort key of a match: unknown facts come last, no TTL is the longest one."""
        value = getattr(record, self.fact.field)
        if value is None:
            return True, 0
        if self.fact is Fact.TTL and value == NO_EXPIRY:
            value = float("inf")
        if self.fact is Fact.NAME and not self.is_by_bytes:
            value = natural(value)
        if isinstance(value, bytes):
            return False, bytes(255 - byte for byte in value) + b"\xff" if self.is_descending else value
        return False, -value if self.is_descending else value


class Matches:
    """The matches so far."""

    def __init__(self, limit: int, order: Order | None = None) -> None:
        """Keep at most `limit`: the first that are found, or with `order` the first in that order."""
        self.limit = limit
        self.order = order
        self.count = 0
        """All that were found."""
        self.revision = 0
        """Grows with every change."""
        self.on_listed: Callable[[], object] | None = None
        """Called when matches were kept."""
        self._kept: list[KeyRecord] = []
        self._names: set[bytes] = set()
        self._drained = 0
        self._is_sorted = True

    @property
    def is_full(self) -> bool:
        """Whether further matches are counted only."""
        return self.order is None and self.listed >= self.limit

    @property
    def listed(self) -> int:
        """How many are kept, or were before they were taken out."""
        return self._drained + len(self._kept)

    @property
    def kept(self) -> Sequence[KeyRecord]:
        """The kept matches in their order; not to be changed."""
        if self.order is not None and not self._is_sorted:
            self._drop_least(self.limit)
        return self._kept

    def knows(self, key: bytes) -> bool:
        """Whether a key is among those kept: a scan may return it again."""
        return key in self._names

    def add(self, records: Sequence[KeyRecord]) -> None:
        """Keep counted matches, as far as there is room for them."""
        room = len(records) if self.order is not None else max(0, self.limit - self.listed)
        self._kept += records[:room]
        self._is_sorted = False
        self._names.update(record.key for record in records[:room])
        if self.order is not None and len(self._kept) > _OVERSHOOT * self.limit:
            self._drop_least(self.limit)
        self.revision += 1
        if self.on_listed is not None:
            self.on_listed()

    def drain(self) -> list[KeyRecord]:
        """Remove and return the kept matches, for a writer that takes them as they come; more are kept afterwards."""
        drained, self._kept = list(self.kept), []
        self._drained += len(drained)
        self._names.clear()
        return drained

    def add_count(self, more: int) -> None:
        """Count matches; fewer where some turn out to be gone."""
        self.count += more
        self.revision += 1

    def clear(self) -> None:
        """Forget all: they are searched for anew."""
        self.count = self._drained = 0
        self._kept = []
        self._names = set()
        self.revision += 1

    def _drop_least(self, most: int) -> None:
        assert self.order is not None  # noqa: S101 - only then some are less than others
        kept = nsmallest(most, self._kept, key=self.order.key)
        if len(kept) < len(self._kept):
            self._names = {record.key for record in kept}
        self._kept, self._is_sorted = kept, True
