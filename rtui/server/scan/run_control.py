"""Controls a run such as a scan or an analysis: pause, resume, stop, pace, turns of nodes, yielding to the event loop.

The work and the screen or command that drives it hold the same RunControl, so that nothing in between passes calls on.
The work checks `is_held` and `is_stopped` before it sends anything and reads `pace` for every write. After each page it
awaits `yield_loop`, which keeps the event loop free for other tasks, above all for keys that are pressed.

Each node of a cluster waits for its turn to be asked in bulk, first come, first served. The cost of a run to rtui
itself grows with the nodes under way, not with all nodes: connections, threads and buffers, and callbacks that delay a
key that is pressed. So a node is scanned to its end before another one begins. That suits a cluster, too: little time
passes between two views of a node, in which its slots may move, and its delivered keys need to be remembered for that
time only. The pace of each node stays the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rtui.keyspace.text.display import SafeText
from rtui.server import wall_clock
from rtui.server.scan.pace import Pace

if TYPE_CHECKING:
    from rtui.server.wire.connection import Connection


NODES_AT_ONCE: Final = 16
"""Nodes that are asked in bulk at the same time.

At the gentle pace each gives 14,000 inspected keys a second or more, and rtui adds up 240,000 a second with one
processor: more nodes are not faster, and have a keypress wait longer (tests/bench/README.md).
"""


class Turns:
    """Lets at most `at_once` nodes work at a time, with as many connections for bulk work open."""

    def __init__(self, at_once: int = NODES_AT_ONCE) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._at_once = at_once
        self._working = 0
        self._rested: dict[Connection, None] = {}
        """Connections whose nodes have had their turn and are idle, the longest idle first."""

    @contextlib.asynccontextmanager
    async def turn(self, connection: Connection) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the block.

        Lanes for bulk work that have rested longest are closed where there would be too many.
        """
        async with self._free:
            self._working += 1
            connection.bulk_turns += 1
            self._rested.pop(connection, None)
            while self._rested and self._working + len(self._rested) > self._at_once:
                rested = next(iter(self._rested))
                del self._rested[rested]
                rested.close_bulk()
            try:
                yield
            finally:
                self._working -= 1
                connection.bulk_turns -= 1
                self._rested[connection] = None


_T = TypeVar("_T")

BUSY_S: Final = 0.016
"""After this long without waiting for the server comes a real sleep; in between the event loop gets turns."""

TURN_S: Final = 0.0005
"""Seconds between two turns of other tasks: a keypress needs some ten of them until it is painted."""

YIELD_S: Final = 0.001

INPUT_S: Final = 0.015
"""Seconds that a run leaves to a keypress, which needs ten turns of the event loop until it is painted."""

INPUT_POLL_S: Final = 0.005

ENDED_EARLY: Final = SafeText("stopped before all keys were seen")
"""Why a run was stopped, unless another reason is given."""


class RunControl:
    """Controls one run; all of it may be called at any time on the event loop, `yield_to_input` from any thread."""

    def __init__(self, pace: Pace = Pace.GENTLE) -> None:
        self.revision = 0
        self.on_change: list[Callable[[], object]] = []
        """Called after every change."""
        self.stop_reason: SafeText | None = None
        """Why the run was stopped, without a full stop; None while it was not."""
        self.is_paused = False
        self.stopped = asyncio.Event()
        self._turns = Turns()
        self._pace = Pace.FULL if wall_clock.is_stopped() else pace  # nobody else waits for the server of a dump
        self._is_suspended = False
        self._going = asyncio.Event()
        self._going.set()
        self._input_until = float("-inf")
        self._held_loop_since = self._last_turn = time.monotonic()

    @property
    def pace(self) -> Pace:
        return self._pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self._pace = pace
        self._changed()

    @property
    def is_stopped(self) -> bool:
        return self.stopped.is_set()

    @property
    def is_held(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        """Send nothing more until `resume`; requests under way are still processed."""
        self.is_paused = True
        self._changed()

    def resume(self) -> None:
        """Go on after a pause, unless the run is suspended, too."""
        self.is_paused = False
        self._changed()

    def suspend(self) -> None:
        """Send nothing more until `unsuspend`, whatever the user wants: something else needs the server."""
        self._is_suspended = True
        self._changed()

    def unsuspend(self) -> None:
        """Go on after a suspension, unless the user has paused the run."""
        self._is_suspended = False
        self._changed()

    def stop(self, reason: SafeText = ENDED_EARLY) -> None:
        """End the run for good once the requests under way have been processed; `reason` is without a full stop."""
        self.stop_reason = reason
        self.stopped.set()
        self._changed()

    def _changed(self) -> None:
        if self.is_stopped or not (self.is_paused or self._is_suspended):
            self._going.set()
        else:
            self._going.clear()
        self.revision += 1
        for call in self.on_change:
            call()

    async def wait_while_held(self) -> None:
        await self._going.wait()

    async def wait_for_stop(self, seconds: float) -> None:
        """Wait for `seconds`, or until the run is to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopped.wait()

    async def unless_stopped(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Return the result of some work, None when the run is stopped first: the work is cancelled then."""
        working = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            working.cancel()
            stopping.cancel()

    @contextlib.asynccontextmanager
    async def turn(self, connection: Connection) -> AsyncIterator[None]:
        """Wait until this node is among those asked in bulk at the same time, or until the run is to end."""
        async with contextlib.AsyncExitStack() as stack:
            await self.unless_stopped(stack.enter_async_context(self._turns.turn(connection)))
            yield

    def yield_to_input(self, seconds: float = INPUT_S) -> None:
        """Leave the event loop to the user's input for some time; may be called from any thread."""
        self._input_until = time.monotonic() + seconds

    async def yield_loop(self, *, has_waited: bool) -> None:
        """Give other tasks a turn after a page, unless they had one less than TURN_S ago.

        With `has_waited` they had one while the server was waited for.
        """
        now = time.monotonic()
        if self._input_until > now:
            while not self.is_stopped and (rest_s := self._input_until - time.monotonic()) > 0:
                await self.sleep(min(rest_s, INPUT_POLL_S))
        elif has_waited:
            self._held_loop_since = self._last_turn = now
        elif now - self._held_loop_since > BUSY_S:
            await self.sleep(YIELD_S)
        elif now - self._last_turn > TURN_S:
            self._last_turn = now
            await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        """Leave the event loop to other tasks for `seconds`, at least YIELD_S."""
        await asyncio.sleep(max(seconds, YIELD_S))
        self._held_loop_since = time.monotonic()
