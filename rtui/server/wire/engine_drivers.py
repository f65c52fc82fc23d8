"""Drivers for the bytes of a scan's compiled engine on a lane: in a thread on its socket, or on the event loop with
TLS.

While a driver is open it has the lane to itself. Commands that others run on the lane wait until it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Executor
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from rtui.server.wire.lane import Lane

if TYPE_CHECKING:
    from rtui.server.engine._scan import ScanEngine


class Event(IntEnum):
    """The event that stopped the engine; as in `_pipeline.pxd`."""

    SLICE_IS_OVER = 1
    IS_DONE = 2
    IS_DRAINED = 3
    HAS_CLOSED = 4
    HAS_BROKEN = 5
    IS_SILENT = 6
    NO_PROTOCOL = 7
    NO_PAGE = 10
    NOT_IN_ORDER = 11
    IS_STUCK = 12
    UNASKED = 13
    TOO_LONG = 14


class Driver(Protocol):
    """Moves the engine's bytes over a lane, which it has to itself until it is closed."""

    async def drive(self, slice_us: int, *, is_draining: bool) -> int:
        """Let the engine work for a slice, or only receive while draining; return the event that ended it."""

    def close(self) -> None:
        """Return the lane; nothing may be pending on it unless it has ended."""


class SocketDriver:
    """Lets the engine send and receive on the lane's socket in a thread."""

    def __init__(self, lane: Lane, engine: ScanEngine, thread: Executor) -> None:
        self._lane, self._engine, self._thread = lane, engine, thread
        engine.most_reply_bytes = lane.max_reply_bytes
        self._fd = lane.lend_socket(engine.socket_waits_us).fileno()
        self._silence_us = round(lane.reply_timeout_s * 1e6)

    async def drive(self, slice_us: int, *, is_draining: bool) -> int:
        """Drive in the thread; when cancelled, wait until it has stopped."""

        def work() -> int:
            return self._engine.drive(self._fd, slice_us, self._silence_us, is_draining=is_draining)

        working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self._engine.interrupt()
            while not working.done():
                with contextlib.suppress(asyncio.CancelledError):  # again
                    await asyncio.wait([working])
            raise

    def close(self) -> None:
        self._lane.take_back()


class StreamDriver:
    """Feeds the engine on the event loop, if there is no plain socket, as with TLS."""

    def __init__(self, lane: Lane, engine: ScanEngine) -> None:
        self._lane, self._engine = lane, engine
        engine.most_reply_bytes = lane.max_reply_bytes
        self._loop = asyncio.get_running_loop()
        self._transport = lane.lend_stream(self._received)
        self._arrived = asyncio.Event()
        lane.closed.add_done_callback(self._closed)
        self._failure: Exception | None = None
        self._last_data_s = self._loop.time()

    def _received(self, data: memoryview) -> None:
        if data:
            self._last_data_s = self._loop.time()
        try:
            self._engine.feed(data)
        except Exception as error:  # noqa: BLE001 - raised by `drive`, which has called for it
            self._failure = error
        self._arrived.set()

    def _closed(self, _: object) -> None:
        self._arrived.set()

    async def drive(self, slice_us: int, *, is_draining: bool) -> int:
        """Send as the pace allows, and wait for data."""
        end_s = self._loop.time() + slice_us / 1e6
        self._received(memoryview(b""))  # what has come before an event that was seen to
        while True:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if not self._lane.is_open:
                return Event.HAS_CLOSED
            if self._engine.event:
                return self._engine.event
            if not is_draining:
                self._send()
            if not self._engine.is_awaiting and (is_draining or not self._engine.has_work):
                return Event.IS_DRAINED if is_draining else Event.IS_DONE
            now_s = self._loop.time()
            if self._engine.is_awaiting and now_s - self._last_data_s > self._lane.reply_timeout_s:
                return Event.IS_SILENT
            if now_s >= end_s:
                return Event.SLICE_IS_OVER
            wait_s = self._engine.wait_us / 1e6
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(end_s - now_s, wait_s or end_s - now_s)):
                    await self._arrived.wait()

    def _send(self) -> None:
        while not self._transport.is_closing():
            if not self._engine.is_awaiting:
                self._last_data_s = self._loop.time()
            write = self._engine.next_write()
            if not write:
                return
            self._transport.write(write)

    def close(self) -> None:
        """Return the lane."""
        self._lane.closed.remove_done_callback(self._closed)
        self._lane.take_back()
