"""What waits between two questions: keys whose type is known, and what has been learnt of them so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis.inspected import Inspected

_COLUMNS: Final = ("ttl_ms", "memory_bytes", "idle_s", "frequency", "lengths")

Signature = tuple[bytes | None, tuple[bool, ...], str]
"""Type, which columns there are, and the note: what is the same in all keys of a batch."""


@dataclass(slots=True)
class _Heap:
    """Keys of one signature, their columns as lists that grow."""

    keys: list[bytes]
    columns: list[list[int] | None]

    def cut(self, most: int) -> _Heap:
        """Take up to so many keys from the front."""
        taken = _Heap(self.keys[:most], [None if one is None else one[:most] for one in self.columns])
        del self.keys[:most]
        for one in self.columns:
            if one is not None:
                del one[:most]
        return taken


class Station:
    """Batches that are joined as long as they are of one kind, so that many small pages become few questions."""

    def __init__(self) -> None:
        self.keys = 0
        """Keys that wait."""
        self._heaps: dict[Signature, _Heap] = {}

    def put(self, batch: Inspected) -> None:
        """Let a batch wait."""
        columns = [getattr(batch, name) for name in _COLUMNS]
        signature = (batch.kind, tuple(one is not None for one in columns), batch.note)
        heap = self._heaps.get(signature)
        if heap is None:
            heap = self._heaps[signature] = _Heap([], [None if one is None else [] for one in columns])
        heap.keys.extend(batch.keys)
        for kept, more in zip(heap.columns, columns, strict=True):
            if kept is not None:
                kept.extend(more)
        self.keys += len(batch.keys)

    def take(self, most: int) -> Iterator[Inspected]:
        """Give up to so many keys, of the kinds that have waited most first, a batch a kind."""
        for signature in sorted(self._heaps, key=lambda one: -len(self._heaps[one].keys)):
            if most <= 0:
                return
            heap = self._heaps[signature]
            taken = heap.cut(most)
            if not heap.keys:
                del self._heaps[signature]
            self.keys -= len(taken.keys)
            most -= len(taken.keys)
            kind, _, note = signature
            yield Inspected(kind, taken.keys, **dict(zip(_COLUMNS, taken.columns, strict=True)), note=note)

    def clear(self) -> None:
        """Forget everything."""
        self._heaps.clear()
        self.keys = 0
