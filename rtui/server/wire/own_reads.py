"""Which keys rtui itself has read where the server counts that as a use, so that it is not taken for somebody's.

Without CLIENT NO-TOUCH a look at a length or a value sets the idle time of a key to 0. Idle time is read before that,
and kept here as the moment of the last use by others. When the server later names as the last use the moment at which
rtui has read the key, the use that is kept is the last one that is known of anybody else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST: Final = 20_000
"""Keys that are remembered; those that rtui has not read for longest go first."""

KEPT_READS: Final = 4
"""Times of reading that are kept for each key: what was seen before the latest is held against the ones before."""

RESOLUTION_S: Final = 2.0
"""Idle times are whole seconds of a clock that may lag by one: uses so near to each other can't be told apart."""

STALE_S: Final = 1.0
"""An idle time older than this is read again before the key is."""

IDLE_NOTE: Final = (
    "idle time: rtui itself has read this key since, which counts as a use here; the time shown is since the use before"
)
"""What one has to know of an idle time that rtui's own reading has reset."""

UNKNOWN_USE: Final = "rtui itself has read this key last, which counts as a use here; the use before is not known"
"""Why there is no idle time."""


@dataclass(frozen=True, slots=True)
class OwnRead:
    """The last times that rtui has read a key; times are seconds since the epoch."""

    at_s: tuple[float, ...]
    """Latest last, at most `KEPT_READS`."""
    used_s: float | None = None
    """The last use by anybody else that is known, None where none is."""
    counter: int | None = None
    """The access counter before rtui has read the key for the first time."""


@dataclass(frozen=True, slots=True)
class Idle:
    """How long nobody but rtui has used a key; None where only rtui's own reading is known."""

    seconds: int | None
    is_own_read: bool = False
    """Whether the last use that the server names is rtui's own reading."""


def counter_note(read: OwnRead) -> str:
    """Say what one has to know of the access counter of a key that rtui has read."""
    before = "" if read.counter is None else f"; it was {read.counter} before the first time"
    return f"frequency: rtui itself has read this key, and each time may have raised the counter{before}"


class OwnReads:
    """What rtui has read, by the hash of the key's name, so that names take no room."""

    def __init__(self) -> None:
        self._reads: OrderedDict[int, OwnRead] = OrderedDict()

    def __len__(self) -> int:
        return len(self._reads)

    def note(self, key: bytes, at_s: float, *, used_s: float | None = None, counter: int | None = None) -> None:
        """Remember that a key is read at `at_s`.

        `used_s`, the last use by anybody else, and the access counter are what was known right before, if anything was.
        """
        name = hash(key)
        before = self._reads.pop(name, OwnRead(()))
        uses_s = [one for one in (before.used_s, used_s) if one is not None]
        self._reads[name] = OwnRead(
            (*before.at_s, at_s)[-KEPT_READS:],
            max(uses_s, default=None),
            counter if before.counter is None else before.counter,
        )
        while len(self._reads) > MOST:
            self._reads.popitem(last=False)

    def of(self, key: bytes) -> OwnRead | None:
        """When rtui has read this key, None for never."""
        return self._reads.get(hash(key))

    def idle(self, key: bytes, idle_s: int, asked_at_s: float) -> Idle:
        """Say how long nobody else has used a key that the server called idle for `idle_s` at `asked_at_s`."""
        read = self.of(key)
        if read is None:
            return Idle(idle_s)
        last_use_s = asked_at_s - idle_s
        if not any(at_s <= asked_at_s and abs(last_use_s - at_s) <= RESOLUTION_S for at_s in read.at_s):
            return Idle(idle_s)
        return Idle(None if read.used_s is None else max(idle_s, round(asked_at_s - read.used_s)), is_own_read=True)

    def without_own(self, keys: Sequence[bytes], idle_s: Sequence[int], asked_at_s: float) -> tuple[Sequence[int], int]:
        """Give the idle times of many keys as they would be had rtui not read any, and how many of them are others."""
        known = [place for place, key in enumerate(keys) if hash(key) in self._reads] if self._reads else []
        found = [(place, self.idle(keys[place], idle_s[place], asked_at_s)) for place in known]
        own = {place: one.seconds for place, one in found if one.is_own_read and one.seconds is not None}
        if not own:
            return idle_s, 0
        return [own.get(place, seconds) for place, seconds in enumerate(idle_s)], len(own)
