"""The requests of one node's scan that are under way: SCANs, queries about keys sent together with them, and probes.

What the queries are about is up to a `QuerySource`, such as the inspection: the scan gives it every page of keys, asks
it for the queries of the next write, and returns their replies to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rtui.server.guard.command import Command
from rtui.server.scan.ranges import Range
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply


class KeyQueries(Protocol):
    """Queries of one write; the scan reports that they were `answered` or `lost`, once."""

    @property
    def commands(self) -> Sequence[Command]:
        """What to send, at least one."""

    @property
    def keys(self) -> int:
        """What they cost the server, in keys wholly inspected."""

    @property
    def is_alone(self) -> bool:
        """Whether nothing else may be in the same write, so that its time is its own."""

    def answered(self, replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Process the replies; `round_trip_s` is the round trip less an idle one, None when it was not seen in time.

        Raises ServerBusyError when some are asked again.
        """

    def lost(self) -> None:
        """Have everything asked again, since the connection is lost."""


class QuerySource(Protocol):
    """Queries about the keys that one node's scan delivers."""

    @property
    def command_names(self) -> Sequence[str]:
        """The commands that are sent for each key, as the server's statistics name them, in lower case."""

    @property
    def waiting(self) -> int:
        """Keys about which something is still to be sent."""

    @property
    def key_us(self) -> float:
        """Server time for the whole inspection of a key until it is measured, in µs."""

    async def use_lane(self, lane: Lane) -> None:
        """Prepare to ask on this lane from now on; raises ConnectionLost."""

    def add_page(self, keys: list[bytes]) -> None:
        """Ask about these keys, too."""

    def next_write(self, most: int) -> KeyQueries | None:
        """Queries about as many keys as `most`, None when there is nothing to ask."""

    def reset(self) -> None:
        """Forget all keys that wait: the scan begins again."""


class Purpose(Enum):
    """What a request is for."""

    KEYS = "keys"
    SIZE = "size"
    CLOCK = "clock"


@dataclass(slots=True)
class Request:
    """One write under way: a SCAN of one range, queries about keys, or both; or a probe."""

    purpose: Purpose
    sent_at: float
    """On the clock of the event loop."""
    replies: asyncio.Future[list[Reply]]
    scanned: Range | None = None
    count: int = 0
    """COUNT of its SCAN, 0 without one."""
    queries: KeyQueries | None = None
    is_void: bool = False
    """Whether the scan has begun again since this was sent, so that its replies mean nothing."""

    @property
    def cost_keys(self) -> int:
        """What it costs the server, in keys visited or inspected."""
        return self.count if self.queries is None else max(self.count, self.queries.keys)


class RequestsUnderWay:
    """Requests in the order in which they were sent and will be answered."""

    def __init__(self) -> None:
        self.working = 0
        """Requests for keys; probes cost nothing."""
        self.scanned: set[Range] = set()
        """Ranges whose next page is under way."""
        self._requests: deque[Request] = deque()

    def __bool__(self) -> bool:
        return bool(self._requests)

    @property
    def first(self) -> Request:
        """The one that will be answered next; IndexError when there is none."""
        return self._requests[0]

    def add(self, request: Request) -> None:
        """Keep a request that was sent."""
        self._requests.append(request)
        self.working += request.purpose is Purpose.KEYS
        if request.scanned is not None:
            self.scanned.add(request.scanned)

    def pop(self) -> tuple[Request, list[Reply]]:
        """Remove the first one, return it with its replies; raises ConnectionLost, and its queries are asked again."""
        request = self._requests.popleft()
        self.working -= request.purpose is Purpose.KEYS
        try:
            return request, request.replies.result()
        except ConnectionLost:
            _ask_again(request)
            raise

    def void(self) -> None:
        """Have the replies to everything that is under way ignored: the scan begins again."""
        for request in self._requests:
            request.is_void = True
        self.scanned.clear()

    def drop(self) -> None:
        """Cancel all of them; their queries are asked again."""
        for request in self._requests:
            request.replies.cancel()
            _ask_again(request)
        self._requests.clear()
        self.scanned.clear()
        self.working = 0


def _ask_again(request: Request) -> None:
    if request.queries is not None and not request.is_void:
        request.queries.lost()
