"""What waits between two questions: keys whose type is known, and what has been learnt of them so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis.aggregate.buffers import Inspected
from rtui.server.guard.evidence import most_watched
from rtui.server.scan.probe import ServerClock
from rtui.server.wire.replies import Reply

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


WATCHED: Final = ("memory|usage",)
"""What is watched, as the server's statistics name it."""

CHEAP_S: Final = 0.0005
"""A write that takes the server less than this was cheap: twice as many questions go into the next."""

DEAR_S: Final = 0.002
"""A single question that takes longer than this counts against all others of its kind."""

CHANCES: Final = 3
"""So many dear ones, and no more are asked."""


class CostWatch:
    """Follows what the questions of one kind have cost."""

    def __init__(self) -> None:
        self.proved = 0
        """Questions of one write that was cheap, since the last one that was not."""
        self.asks_clock = True
        """Whether the server is asked for its own time, so that a slow link is not taken for a dear question."""
        self.is_suspicious = False
        """Whether a round trip took so long that the server's own time is wanted next time."""
        self._dear = 0

    @property
    def most(self) -> int:
        """Questions that the next write may hold."""
        return most_watched(self.proved)

    @property
    def is_over(self) -> bool:
        """Whether none is to be asked any more."""
        return self._dear >= CHANCES

    def clocked(self, before: Reply, after: Reply, asked: int) -> float | None:
        """Seconds that the server says it took for so many questions, by its statistics before and after them."""
        clock = ServerClock(WATCHED)
        if not (isinstance(before, bytes) and isinstance(after, bytes)):
            self.asks_clock = False
            return None
        clock.said(before, 0)
        spent_us = clock.said(after, asked)
        return spent_us / 1e6 if spent_us else None

    def took_trip(self, seconds: float) -> None:
        """Take up how much longer than others a round trip with one question took.

        A slow one counts only where the server does not tell its own time; else that is asked for from now on.
        """
        if not self.asks_clock:
            self.took(1, max(0.0, seconds))
        elif seconds > DEAR_S:
            self.is_suspicious = True

    def took(self, asked: int, seconds: float | None) -> None:
        """Take up how long the server took for so many; None when that was not seen."""
        if seconds is None:
            return
        if seconds < CHEAP_S:
            self.proved = max(self.proved, asked)
            return
        self.proved = 0
        if asked == 1 and seconds > DEAR_S:
            self._dear += 1
