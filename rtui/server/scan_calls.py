"""The requests of one node's scan that are under way, in the order in which they will be answered."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum

from rtui.server.errors import ConnectionLost
from rtui.server.ranges import Range
from rtui.server.reply import Reply
from rtui.server.rider import Ride


class Asked(Enum):
    """What a request is about."""

    WORK = "work"
    SIZE = "size"
    CLOCK = "clock"


@dataclass(slots=True)
class Call:
    """A request under way: a SCAN of one range, questions that ride along, or both; or a small look."""

    asked: Asked
    sent_at: float
    """On the clock of the event loop."""
    replies: asyncio.Future[list[Reply]]
    epoch: int
    """Which beginning of the scan it belongs to."""
    one: Range | None = None
    count: int = 0
    """COUNT of its SCAN, 0 without one."""
    ride: Ride | None = None

    @property
    def units(self) -> int:
        """What it costs, in keys gone through."""
        return self.count if self.ride is None else max(self.count, self.ride.keys)


class CallsUnderWay:
    """Keeps calls until they are taken; what rode on one that is lost is asked again."""

    def __init__(self) -> None:
        self.working = 0
        """Those that cost something."""
        self.busy: set[Range] = set()
        """Ranges whose next page is on its way."""
        self._calls: deque[Call] = deque()
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def first(self) -> Call:
        """The one that will be answered next; IndexError when there is none."""
        return self._calls[0]

    def look(self, asked: Asked, replies: asyncio.Future[list[Reply]], now: float) -> None:
        """Keep a small look."""
        self._calls.append(Call(asked, now, replies, self._epoch))

    def work(
        self, replies: asyncio.Future[list[Reply]], now: float, one: Range | None, count: int, ride: Ride | None
    ) -> Call:
        """Keep a SCAN of `one` with `count`, questions that ride, or both."""
        call = Call(Asked.WORK, now, replies, self._epoch, one, count, ride)
        self._calls.append(call)
        self.working += 1
        if one is not None:
            self.busy.add(one)
        return call

    def take(self) -> Call:
        """Return the first one, which has been answered or lost, and keep it no longer."""
        call = self._calls.popleft()
        if call.asked is Asked.WORK:
            self.working -= 1
        return call

    def replies(self, call: Call) -> list[Reply]:
        """The replies of a call that has ended; raises ConnectionLost."""
        try:
            return call.replies.result()
        except ConnectionLost:
            self._miss(call)
            raise

    def is_void(self, call: Call) -> bool:
        """Whether the scan has begun again since this was sent."""
        return call.epoch != self._epoch

    def begin_again(self) -> None:
        """From now on replies to what was sent before mean nothing."""
        self._epoch += 1
        self.busy.clear()

    def drop(self) -> None:
        """Wait for none of them any more."""
        for call in self._calls:
            call.replies.cancel()
            self._miss(call)
        self._calls.clear()
        self.busy.clear()
        self.working = 0

    def _miss(self, call: Call) -> None:
        if call.ride is not None and not self.is_void(call):
            call.ride.missed()
