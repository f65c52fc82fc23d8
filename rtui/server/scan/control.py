"""What the nodes of a scan share: whether it goes on, and the way to say that it has to begin again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote


async def wait_unless(stopping: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until the event says that the work is to end."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopping.wait()


class Control:
    """What the nodes of a scan share: whether it goes on, and the way to say that it has to begin again."""

    def __init__(self, pace: Pace, deliver: Callable[[list[bytes]], None], restart: Callable[[ScanNote], None]) -> None:
        self.pace = pace
        self.deliver = deliver
        self.restart = restart
        self.notes: dict[ScanNote, None] = {}
        self.going = asyncio.Event()
        self.going.set()
        self.stopping = asyncio.Event()
        self.gives_way_until = float("-inf")
        """Until this moment on the loop's clock the loop belongs to others."""

    @property
    def is_going(self) -> bool:
        """Whether another SCAN may be sent."""
        return self.going.is_set() and not self.stopping.is_set()


BUSY_S: Final = 0.016
"""After this long without waiting for the server comes a real sleep; every page in between gives the event loop a turn.

A keypress needs some ten turns until it is painted, and a page takes half a millisecond.
"""

BREATH_S: Final = 0.001
"""The length of that sleep."""

WAY_LOOK_S: Final = 0.005
"""How often a scan that gives way looks whether it still has to."""


class Breath:
    """Knows how long one node's scan has held the loop without a pause."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._held_since = self._loop.time()

    async def take(self, *, has_waited: bool) -> None:
        """Give the event loop to others unless it has been theirs while the server was waited for."""
        if self._control.gives_way_until > self._loop.time():
            await self._give_way()
        elif has_waited:
            self._held_since = self._loop.time()
        elif self._loop.time() - self._held_since > BUSY_S:
            await self.rest(BREATH_S)
        else:
            await asyncio.sleep(0)

    async def rest(self, seconds: float) -> None:
        """Leave the loop to others for so long, a breath at least."""
        await asyncio.sleep(max(seconds, BREATH_S))
        self._held_since = self._loop.time()

    async def _give_way(self) -> None:
        """Put nothing away while somebody else wants the loop; what the server sends waits."""
        control = self._control
        while not control.stopping.is_set() and (rest_s := control.gives_way_until - self._loop.time()) > 0:
            await self.rest(min(rest_s, WAY_LOOK_S))
