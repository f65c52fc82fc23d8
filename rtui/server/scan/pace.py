"""How hard a scan may lean on a server: the size of one SCAN and the share of the server's time.

Other clients feel how long one of our calls holds the server (`Limits.call_us`) and how often (`Limits.duty`). So the
Pacer measures the cost of a visited key. The idle round trip is that of calls that cost nothing; the extra time of a
SCAN of COUNT 500, divided by 500, is the cost of a key, unless the server reports it itself. With 0.7 µs a key and the
60 µs of the gentle pace COUNT becomes 85. After a call of 60 µs a duty of 0.1 lets the next one go 600 µs later. Over a
link of 20 ms several calls are under way at once (`depth`), spread over the round trip.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeVar

_T = TypeVar("_T", float, tuple[float, int])

START_COUNT: Final = 20
"""COUNT of the first call: a first screen of rows after one round trip, whatever the server."""

MIN_COUNT: Final = 10
"""COUNT never falls below this; the default of SCAN."""

MAX_COUNT: Final = 1000
"""COUNT never rises above this, at any pace: the guard's bound."""

TINY_COUNT: Final = 20
"""Calls up to this COUNT are the baseline that larger ones are compared with: their round trip is nearly idle."""

_APART: Final = 10
"""The cost of a key is computed from two calls whose COUNTs differ by this much at least."""

PRIOR_KEY_US: Final = 0.7
"""Server time for one visited key until it is measured: Redis 7 with a million keys."""

_LEAST_KEY_US: Final = 0.15
"""A visited key costs at least this much; Valkey 9, the fastest measured, needs 0.17 µs."""

_WINDOW: Final = 8
"""Round trips from which the cost of a key is computed."""

_LATE_S: Final = 0.001
"""Seconds of overlong pauses that shorter ones make up for: asyncio timers end at whole milliseconds, a gentle pause is
0.6 ms."""

_GROWTH: Final = 2.0
"""COUNT grows at most by this factor from one judgement to the next; it falls at once."""

MAX_WIDTH: Final = 64
"""Ranges that are scanned side by side at most, a power of two, and calls under way at once over a slow link, at any
pace: a round trip of 20 ms is as long as 100 calls of 100 µs and as many pauses."""

LINK_S: Final = 0.002
"""Round trip in seconds from which calls are spread in time at any pace, since calls sent together arrive together."""


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """The limits of one pace."""

    call_us: float
    """Server time of one uninterrupted batch, in µs: how long another client may have to wait."""

    duty: float
    """Share of the server's time, 0 … 1: how often another client may have to wait."""

    ahead: int
    """Calls that may be under way on a link without latency, so that the server always has the next one."""


_LIMITS: Final = {
    "gentle": PaceLimits(call_us=60.0, duty=0.1, ahead=1),
    "normal": PaceLimits(call_us=100.0, duty=0.5, ahead=1),
    "full": PaceLimits(call_us=150.0, duty=1.0, ahead=1),
}


class Pace(enum.Enum):
    """The three paces a user chooses from."""

    GENTLE = "gentle"
    NORMAL = "normal"
    FULL = "full"

    def __init__(self, name: str) -> None:
        self.limits = _LIMITS[name]

    def faster(self) -> Pace:
        return Pace.NORMAL if self is Pace.GENTLE else Pace.FULL

    def slower(self) -> Pace:
        return Pace.NORMAL if self is Pace.FULL else Pace.GENTLE


def low_quartile(values: Collection[_T]) -> _T:
    """The value a quarter of the way up: a round trip when neither the link nor this process is in the way."""
    return sorted(values)[(len(values) - 1) // 4]


class Pacer:
    """Says how large the next SCAN may be and when it may be sent, from how long the ones before took.

    Server time of a call = its round trip less the idle round trip. Times are seconds of one monotonic clock that the
    caller reads, unless the name says µs.
    """

    def __init__(self, pace: Pace = Pace.GENTLE, *, key_us: float = PRIOR_KEY_US) -> None:
        """`key_us`: assumed server time of a visited key until it is measured, in µs."""
        self._prior_us = key_us
        self.count = START_COUNT
        """COUNT of the next call."""
        self.depth = 1
        """Calls that may be under way at once: those at the server and those on the link."""
        self._pace = pace
        self._target = MAX_COUNT
        self._tiny: deque[tuple[float, int]] = deque(maxlen=2 * _WINDOW)
        self._key_us: deque[float] = deque(maxlen=_WINDOW)
        self._since_change = 0
        self._server_key_us: float | None = None
        self._free_at: float | None = None
        self.key_us = key_us
        """Server time for one visited key, in µs."""
        self.idle_s: float | None = None
        """The idle round trip, None before the first reply."""

    @property
    def pace(self) -> Pace:
        """The bounds that hold; may be set at any time."""
        return self._pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        if pace is not self._pace:
            self._pace = pace
            self._adjust()

    @property
    def waits(self) -> bool:
        return self._pace.limits.duty < 1.0 or (self.idle_s or 0.0) >= LINK_S

    def cost_us(self, count: int) -> float:
        """Estimated server time of a SCAN with COUNT `count`, in µs."""
        return self.key_us * count

    def observe_idle(self, round_trip_s: float) -> None:
        """Learn the round trip of a call that cost the server next to nothing."""
        self._tiny.append((round_trip_s, 0))
        self._adjust()

    def observe_key_us(self, key_us: float) -> None:
        """Learn the server's own measure of its time for a visited key, in µs."""
        self._server_key_us = max(_LEAST_KEY_US, key_us)
        self._adjust()

    def observe(self, count: int, round_trip_s: float | None) -> None:
        """Learn the round trip of a SCAN with `count`, None when it was not seen in time, and choose COUNT anew.

        One that is tiny, or hardly larger, tells nothing about the server's time, so it makes older measurements fade:
        COUNT may rise again.
        """
        self._since_change += 1
        if round_trip_s is None:
            if self.count != self._target:
                self._adjust()
            return
        is_tiny = count <= TINY_COUNT or not self._tiny
        if is_tiny:
            self._tiny.append((round_trip_s, min(count, TINY_COUNT)))
        tiny_s, tiny_count = low_quartile(self._tiny)
        if not is_tiny and count - tiny_count >= _APART:
            self._key_us.append(max(_LEAST_KEY_US, (round_trip_s - tiny_s) * 1e6 / (count - tiny_count)))
        elif self._key_us:
            self._key_us.popleft()
        self._adjust()

    def wait_s(self, now: float) -> float:
        """Seconds until the next call may be sent, 0 when it may go now."""
        return 0.0 if self._free_at is None else max(0.0, self._free_at - now)

    def add_sent(self, count: int, now: float) -> None:
        """Count a SCAN of `count` that is sent `now`: the next one waits until the share of the server allows it.

        Over a link calls are spread over the round trip, so that they reach the server one by one.
        """
        if not self.waits:
            return
        limits = self._pace.limits
        gap_s = self.cost_us(count) / 1e6 / limits.duty
        spread_s = 0.8 * (self.idle_s or 0.0) / self.depth
        due = now if self._free_at is None else max(now - _LATE_S, self._free_at)
        self._free_at = due + max(gap_s, spread_s)

    def _adjust(self) -> None:
        timed_us = low_quartile(self._key_us) if self._key_us else None
        server_us = self._server_key_us
        if server_us is None:
            self.key_us = self._prior_us if timed_us is None else timed_us
        else:  # by the server's own clock, unless the round trips clearly contradict it
            is_clear = timed_us is not None and timed_us * self.count / 1e6 > 0.5 * low_quartile(self._tiny)[0]
            self.key_us = timed_us if timed_us is not None and is_clear and timed_us > 3 * server_us else server_us
        if self._tiny:
            round_trip_s, count = low_quartile(self._tiny)
            self.idle_s = max(0.0, round_trip_s - self.key_us * count / 1e6)
        limits = self._pace.limits
        target = self._target = min(MAX_COUNT, max(MIN_COUNT, int(limits.call_us / self.key_us)))
        if target < self.count:
            self.count = target
            self._since_change = 0
        elif self._since_change >= (1 if self.count < TINY_COUNT or not self._key_us else 2):
            self.count = min(target, int(self.count * _GROWTH))
            self._since_change = 0
        if self.idle_s is not None:
            apart_us = max(1.0, self.cost_us(self.count) / limits.duty)
            self.depth = min(MAX_WIDTH, limits.ahead + int(self.idle_s * 1e6 / apart_us))
