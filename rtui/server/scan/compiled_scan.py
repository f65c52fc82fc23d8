"""One node's part of a scan by the compiled engine: a thread sends, receives and counts; Python checks in between.

The engine has the connection to itself, in a thread without the GIL, for one slice of time after another, the first
ones short. After each slice the pace is set anew from the measured round trips, results are handed on, and Python does
the work that the engine leaves to it: probes, Python's own queries, pauses, other commands on the lane, unexpected
replies. For these the lane is taken back once all replies have arrived. With TLS the engine works on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from enum import IntEnum
from typing import Final, NoReturn, cast

import hiredis

from rtui.server.engine._name_table import NameTable
from rtui.server.engine._scan import ScanEngine
from rtui.server.guard.command import scan_template
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.listing import Listing
from rtui.server.scan.node import EngineQueries, SplitSink
from rtui.server.scan.pace import MAX_WIDTH, MIN_COUNT
from rtui.server.scan.page import scan_page
from rtui.server.scan.pipeline import ScanPipeline
from rtui.server.scan.progress import ScanNote
from rtui.server.scan.ranges import CursorOrderError, Range, Ranges
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.errors import ConnectionLost, FailureKind, Reply, RtuiError, ScanRefusedError, ServerError
from rtui.server.wire.lane import Lane


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


class SocketDriver:
    """Lets the engine send and receive on the lane's socket in a thread."""

    def __init__(self, lane: Lane, engine: ScanEngine, thread: Executor) -> None:
        self._lane, self._engine, self._thread = lane, engine, thread
        engine.most_reply_bytes = lane.max_reply_bytes
        self._fd = lane.lend_socket(engine.socket_waits_us).fileno()
        self._silence_us = round(lane.reply_timeout_s * 1e6)

    async def drive(self, slice_us: int, *, is_draining: bool) -> int:
        """Let the engine work for a slice, or only receive while draining; return the event that ended it.

        When cancelled, wait until the thread has stopped.
        """

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
        """Do the same as a `SocketDriver`."""
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
        self._lane.closed.remove_done_callback(self._closed)
        self._lane.take_back()


FIRST_SLICE_US: Final = 2_000
"""The first slice of a loan: the engine starts with guesses of how many keys it lists and how long they take."""

BUSY_LANE_S: Final = 0.001
"""Seconds until the next look whether other commands on the lane are answered."""

SLICE_US: Final = 200_000
"""Longest slice. A change of the control ends it at once, unless the server is silent."""

LINK_SHARE: Final = 0.7
"""Gap between writes at full pace over a link, as a share of the server time of one write."""

MOST_ASIDE: Final = 2_000
"""Keys waiting for Python's own queries from which Python gets the lane before the engine is done."""

MOST_LISTED: Final = 16
"""With more COUNTs of keys on the link than this, each write lists more keys than it asks about, at the same cost."""

NOT_THE_PROTOCOL: Final = "What it sends is not the Redis protocol."

LEARNT_SAMPLES: Final = 16
"""Round trips of each slice that the pacer learns from."""

NOTHING_SEEN: Final = (0,) * 10
"""The counters of an engine that has not begun."""


class CompiledPipeline(ScanPipeline):
    """Asks one node as `ScanPipeline` does, by the compiled engine where cursors have a position.

    Where they have none Python asks, so that the lane sees each command.
    """

    def __init__(
        self,
        listing: Listing,
        control: RunControl,
        sink: Callable[[list[bytes]], object],
        notes: dict[ScanNote, None],
        split_sink: SplitSink | None,
    ) -> None:
        """`split_sink` gets the keys if no queries are sent about them."""
        super().__init__(listing, control, sink, notes)
        self._split_sink = split_sink
        self._engine: ScanEngine | None = None
        self._scanned: Ranges | None = None
        self._queries: EngineQueries | None = None
        self._names: NameTable | None = None
        """Keys that were listed, on their way to the sink; None where they are inspected."""
        self._seen: tuple[int, ...] = NOTHING_SEEN
        """The engine's counters when it was last looked at."""
        self._slice_us = FIRST_SLICE_US
        self._is_lent = False

    @property
    def waiting(self) -> int:
        return super().waiting + (0 if self._engine is None else self._engine.waiting)

    @property
    def _has_queries(self) -> bool:
        return super()._has_queries or (self._engine is not None and self._engine.has_work)

    def take_waiting(self) -> list[bytes]:
        """Forget all keys whose queries are not all answered, and return them."""
        if self._engine is None:
            return super().take_waiting()
        if self._is_lent:
            return []
        names = self._engine.take_waiting()
        if self._queries is not None:
            self._hand_on_at_once(self._queries)  # of a slice that was cancelled
            self._queries.take()
            self._hand_on_at_once(self._queries)
        return names + super().take_waiting()

    @staticmethod
    def _hand_on_at_once(queries: EngineQueries) -> None:
        for _ in queries.hand_on():
            pass

    def _idle_range(self) -> Range | None:
        """Return None while the engine scans, so that Python sends only queries."""
        return None if self.listing.ranges.dialect.is_ordered else super()._idle_range()

    def reset(self) -> None:
        super().reset()
        self._engine = self._queries = self._names = None

    def _engine_for(self, lane: Lane) -> ScanEngine:
        """Return the engine, set up for the listing's current ranges; nothing may be under way."""
        ranges, passes = self.listing.ranges, self.listing.passes
        engine = self._engine
        if engine is None:
            only = self.listing.only
            template = scan_template(only.match, only.key_type, lane.names)
            engine = self._engine = ScanEngine(ranges, template)
            self._seen = NOTHING_SEEN
            if passes is not None:
                engine.filter_slots(passes.filter)
            if self.source is not None and self.source.compiled is not None:
                self._queries = self.source.compiled(engine)
            elif self._split_sink is not None:
                self._names = NameTable(self._split_sink.separators)
                engine.group_names(self._names)
        elif ranges is not self._scanned:
            engine.use_ranges(ranges)
        self._scanned = ranges
        return engine

    async def drive(self, lane: Lane) -> None:
        if not self.listing.ranges.dialect.is_ordered:
            if self._engine is not None:
                self._engine.use_ranges(Ranges(Dialect.SLOTTED, ()))
                waiting = self.take_waiting()
                if self.source is not None:
                    self.source.add_page(waiting)
            await super().drive(lane)
            return
        if (refused := lane.refusals.disabled.get("SCAN")) is not None:
            scan_page(refused)
        engine = self._engine_for(lane)
        self._slice_us = FIRST_SLICE_US
        self._control.on_change.append(engine.interrupt)
        try:
            with ThreadPoolExecutor(max_workers=1, thread_name_prefix="rtui engine") as thread:
                await self._take_turns(lane, engine, thread)
        finally:
            self._control.on_change.remove(engine.interrupt)

    async def _take_turns(self, lane: Lane, engine: ScanEngine, thread: ThreadPoolExecutor) -> None:
        """Let Python and the engine use the lane by turns: probes and some queries are sent by Python."""
        while not (self.is_done or self._control.is_stopped):
            if self._loop.time() >= self.probe.due_at:
                self._send_probe(lane, self._loop.time())
            await self._ask(lane, lambda: self.source is None or not self.source.waiting)
            if self._control.is_held:
                await self._control.wait_while_held()
                self.probe.due_at = self._loop.time()
            elif self._may_send and lane.is_idle:
                await self._lend(lane, engine, thread)
            else:  # others ask something on it, such as for the hot keys of a report
                await self._control.sleep(BUSY_LANE_S)

    async def _lend(self, lane: Lane, engine: ScanEngine, thread: ThreadPoolExecutor) -> None:
        driver = SocketDriver(lane, engine, thread) if lane.has_socket else StreamDriver(lane, engine)
        self._is_lent = True
        try:
            await self._work(lane, engine, driver)
        except (RtuiError, CursorOrderError):
            engine.resume()
            await self._hand_on()
            if lane.is_open:
                while engine.is_awaiting:
                    event = Event(await driver.drive(SLICE_US, is_draining=True))
                    if event is not Event.SLICE_IS_OVER:
                        break
                if engine.is_awaiting:
                    lane.fail(ConnectionLost("Its reply does not fit the command."))
            raise
        finally:
            if engine.is_awaiting and lane.is_open:  # cancelled
                lane.fail(ConnectionLost("It was given up in the middle of a write."))
            if not lane.is_open:
                engine.drop()
            driver.close()
            self._is_lent = False

    async def _work(self, lane: Lane, engine: ScanEngine, driver: SocketDriver | StreamDriver) -> None:
        """Drive the engine slice by slice; raises the errors that `NodeScan.run` handles."""
        is_ending = False
        while True:
            self._prepare(engine)
            is_ending = is_ending or self._is_wanted(lane)
            handing_on = asyncio.create_task(self._hand_on())
            try:
                event = Event(await driver.drive(self._slice_us, is_draining=is_ending))
            finally:
                await handing_on
                self._learn(lane, engine)
            if event in (Event.IS_DONE, Event.IS_DRAINED):
                await self._hand_on()
                return
            if event is not Event.SLICE_IS_OVER:
                self._see_to(event, lane, engine)
            self._slice_us = min(2 * self._slice_us, SLICE_US)

    async def _hand_on(self) -> None:
        """Hand on the results of the last slice, part by part, while the engine runs the next one."""
        if self._queries is not None:
            for _ in self._queries.hand_on():
                await self._control.yield_loop(has_waited=False)
        names, sink = self._names, self._split_sink
        if names is None or sink is None:
            return
        while (part := names.drain()) is not None:
            sink.add(part)
            await self._control.yield_loop(has_waited=False)

    def _is_wanted(self, lane: Lane) -> bool:
        """Whether the engine should finish, so that Python can use the lane."""
        is_due = self._loop.time() >= self.probe.due_at
        has_many = self.source is not None and self.source.waiting >= MOST_ASIDE
        return not self._may_send or lane.is_wanted or is_due or has_many

    def _prepare(self, engine: ScanEngine) -> None:
        # At full pace two halves of what is allowed are under way, so that the server has the next write at hand.
        pacer = self.pacer
        pacer.pace = self._control.pace
        limits = pacer.pace.limits
        idle_us = (pacer.idle_s or 0.0) * 1e6
        on_link = idle_us * limits.duty / pacer.key_us
        gap_us = pacer.key_us / limits.duty
        count = portion = pacer.count
        if on_link > MOST_LISTED * count and self.source is not None:  # there are fewer ranges to list keys from
            count, portion = 2 * count, 3 * count // 4
        if not pacer.waits:  # over a link writes must not arrive as one, but faster than they can be answered
            gap_us = LINK_SHARE * gap_us if on_link > count else 0.0
            count, portion = max(MIN_COUNT, count // 2), max(MIN_COUNT, portion // 2)
        most_under_way = limits.ahead * pacer.count + round(on_link)
        engine.set_pace(
            count=count,
            portion=portion,
            most_under_way=most_under_way,
            width=max(1, min(MAX_WIDTH, most_under_way // portion)),
            key_gap_us=gap_us,
            idle_us=round(idle_us),
        )
        if self._queries is not None:
            self._queries.prepare()

    def _learn(self, lane: Lane, engine: ScanEngine) -> None:
        """Take over the engine's counters, round trips, results and cost since the last call."""
        for cost_keys, round_trip_us in engine.take_samples()[-LEARNT_SAMPLES:]:
            self.pacer.observe(cost_keys, None if round_trip_us < 0 else round_trip_us / 1e6)
        seen = engine.progress()
        commands, answered, cost_keys, listed, delivered, _, _, bytes_in, bytes_out, writes = (
            now - before for now, before in zip(seen, self._seen, strict=True)
        )
        self._seen = seen
        self.commands += commands
        self.listing.keys += listed
        self.listing.delivered += delivered
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out
        self.answers += writes
        lane.count_traffic(*engine.take_sent(), bytes_in, bytes_out)
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.probe.add_spent(answered, cost_keys, self.pacer.cost_us(cost_keys))
        if self._queries is not None:
            self._queries.take()
        if self._names is not None:
            self._names.swap()

    def _see_to(self, event: Event, lane: Lane, engine: ScanEngine) -> NoReturn:
        """Raise the error of an engine event, or close the lane with it."""
        match event:
            case Event.NOT_IN_ORDER:
                raise CursorOrderError
            case Event.IS_STUCK:
                raise ScanRefusedError("The server returns every SCAN cursor unchanged.")
            case Event.NO_PAGE | Event.UNASKED:
                _read_odd(event, lane, engine.odd_reply())
            case Event.HAS_BROKEN:
                lane.fail(ConnectionLost(f"The connection broke: {os.strerror(engine.error)}."))
            case Event.IS_SILENT:
                happened = f"No reply from the server for {lane.reply_timeout_s:g} s."
                lane.fail(ConnectionLost(happened, kind=FailureKind.TIMEOUT))
            case Event.TOO_LONG:
                lane.fail(ConnectionLost(f"It sent more than {lane.max_reply_bytes >> 20} MiB in one answer."))
            case Event.NO_PROTOCOL:
                lane.fail(ConnectionLost(NOT_THE_PROTOCOL, kind=FailureKind.PROTOCOL))
        lane.fail(ConnectionLost("The server closed the connection."))
        raise lane.closed.result()


def _read_odd(event: Event, lane: Lane, reply: bytes) -> None:
    """Raise the error that a reply other than a page of keys stands for, or close the lane over it."""
    reader = hiredis.Reader(replyError=ServerError)
    try:
        reader.feed(reply)
        parsed = cast("Reply", reader.gets())
    except hiredis.ProtocolError:  # such as a number that is none, inside of a list
        lane.fail(ConnectionLost(NOT_THE_PROTOCOL, kind=FailureKind.PROTOCOL))
        return
    if event is Event.UNASKED:
        lane.handle_unexpected(parsed)
        return
    if isinstance(parsed, ServerError) and lane.end_if_logged_out([parsed]):
        return
    scan_page(parsed)
    raise ScanRefusedError("The reply to SCAN is not a page of keys.")
