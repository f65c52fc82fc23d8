"""Questions about the keys of a scan that travel in the same writes as its SCANs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rtui.server.guard import Command
from rtui.server.scan.ranges import Range
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply


class Ride(Protocol):
    """Questions under way in one write; it is answered or missed, once."""

    @property
    def commands(self) -> Sequence[Command]:
        """What to send, at least one."""

    @property
    def keys(self) -> int:
        """How many keys' whole inspection this is worth: the measure of its cost."""

    @property
    def goes_alone(self) -> bool:
        """Whether nothing else may be in the same write, so that its time is its own."""

    def answered(self, replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Take up the replies; the round trip less an idle one, None when it was not seen in time.

        Raises ServerBusyError when all of it is to be asked again.
        """

    def missed(self) -> None:
        """The connection is gone: ask again on the next."""


class Rider(Protocol):
    """Asks about the keys that one node's scan delivers."""

    @property
    def command_names(self) -> Sequence[str]:
        """What it sends in numbers, as the server's statistics name it, in lower case."""

    @property
    def waiting(self) -> int:
        """Keys for which something is still to be sent."""

    @property
    def key_us(self) -> float:
        """Server time for the whole inspection of a key until it is measured, in µs."""

    async def arrive(self, lane: Lane) -> None:
        """Take it that from now on this lane carries the questions; raises ConnectionLost."""

    def put(self, keys: list[bytes]) -> None:
        """Take up a page of keys."""

    def board(self, most: int) -> Ride | None:
        """Questions about as many keys as `most`, None when there is nothing to ask."""

    def reset(self) -> None:
        """Forget all that waits: the scan begins again."""


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
