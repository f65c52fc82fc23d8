"""The keys that rtui itself has read without NO-TOUCH, so that its own reading is not taken for somebody else's use.

Without CLIENT NO-TOUCH, reading a length or a value resets the idle time of the key to 0. So the idle time is read
before that, and kept here as the time of the last use by others. If the server later reports the time of rtui's own
reading as the last use, the last known use by others is shown instead.

Example: a key is idle for 230 s when rtui reads its value at 12:00:00. At 12:00:10 the server says 10 s; a read at
12:00:00 is known, so the key counts as idle for 240 s. If the server says 3 s, somebody else has used it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_REMEMBERED_KEYS: Final = 20_000
"""The most keys that are remembered; the longest unread ones go first."""

MAX_READS: Final = 4
"""The times of reading kept for each key, since a reply may be compared with an earlier read than the latest."""

RESOLUTION_S: Final = 2.0
"""Idle times are whole seconds of a clock that may lag by one: closer uses can't be told apart."""

STALE_S: Final = 1.0
"""An older idle time is read again before the key is."""

IDLE_NOTE: Final = (
    "idle time: rtui itself has read this key since, which counts as a use here; the time shown is since the use before"
)

COUNTER_NOTE: Final = "frequency: rtui itself has read this key, and each time may have raised the counter"
"""The note beside an access counter; its earlier value follows if it is known."""

UNKNOWN_USE: Final = "rtui itself has read this key last, which counts as a use here; the use before is not known"


@dataclass(frozen=True, slots=True)
class OwnRead:
    """The last times that rtui has read a key, in seconds since the epoch."""

    at_s: tuple[float, ...]
    """Latest last, at most `MAX_READS`."""
    used_s: float | None = None
    """The last known use by anybody else."""
    counter: int | None = None
    """The access counter before rtui's first reading of the key."""


@dataclass(frozen=True, slots=True)
class IdleTime:
    """The idle time of a key without rtui's own reads; None if only those are known."""

    seconds: int | None
    is_own_read: bool = False
    """Whether the last use that the server reports is rtui's own reading."""


class OwnReads:
    """The keys that rtui has read, by the hash of their names, so that names take no memory."""

    def __init__(self) -> None:
        self._reads: OrderedDict[int, OwnRead] = OrderedDict()
        self.revision = 0

    def __len__(self) -> int:
        return len(self._reads)

    def add(self, key: bytes, at_s: float, *, used_s: float | None = None, counter: int | None = None) -> None:
        """Remember that a key is read at `at_s`, with the last use by others and the counter from before, if known."""
        name = hash(key)
        self.revision += 1
        before = self._reads.pop(name, OwnRead(()))
        uses_s = [use_s for use_s in (before.used_s, used_s) if use_s is not None]
        self._reads[name] = OwnRead(
            (*before.at_s, at_s)[-MAX_READS:],
            max(uses_s, default=None),
            counter if before.counter is None else before.counter,
        )
        while len(self._reads) > MAX_REMEMBERED_KEYS:
            self._reads.popitem(last=False)

    def hashes(self) -> list[int]:
        """Return the hashes of the names of all keys that rtui has read, ascending."""
        return sorted(self._reads)

    def get(self, key: bytes) -> OwnRead | None:
        return self._reads.get(hash(key))

    def idle(self, key: bytes, idle_s: int, asked_at_s: float) -> IdleTime:
        """Return the idle time of a key without rtui's own reads; the server replied `idle_s` at `asked_at_s`."""
        read = self.get(key)
        if read is None:
            return IdleTime(idle_s)
        last_use_s = asked_at_s - idle_s
        if not any(at_s <= asked_at_s and abs(last_use_s - at_s) <= RESOLUTION_S for at_s in read.at_s):
            return IdleTime(idle_s)
        seconds = None if read.used_s is None else max(idle_s, round(asked_at_s - read.used_s))
        return IdleTime(seconds, is_own_read=True)

    def correct_idle_times(
        self, keys: Sequence[bytes], idle_s: Sequence[int], asked_at_s: float
    ) -> tuple[Sequence[int], int]:
        """Return the idle times of many keys without rtui's own reads, and the number of corrected ones."""
        reads = self._reads
        corrected: dict[int, int] = {}
        for index in [index for index, key in enumerate(keys) if hash(key) in reads] if reads else ():
            found = self.idle(keys[index], idle_s[index], asked_at_s)
            if found.is_own_read and found.seconds is not None:
                corrected[index] = found.seconds
        if not corrected:
            return idle_s, 0
        return [corrected.get(index, seconds) for index, seconds in enumerate(idle_s)], len(corrected)
