"""What the nodes of a scan share: whether it goes on, and the way to say that it has to begin again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from rtui.server.pace import Pace
from rtui.server.progress import ScanNote


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
