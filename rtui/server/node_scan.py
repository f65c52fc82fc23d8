"""One node's part of a scan: its ranges side by side on one lane, at a pace, over losses of the connection."""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from rtui.keyspace.display import SafeText
from rtui.server import guard
from rtui.server.cursor import POSITION_END, Dialect, pieces
from rtui.server.errors import ConnectionLost, ServerError
from rtui.server.lane import Lane, Reply
from rtui.server.pace import MAX_COUNT, MAX_WIDTH, Pace, Pacer
from rtui.server.pauses import pause_s
from rtui.server.progress import ScanNote
from rtui.server.ranges import CursorOrderError, Range, Ranges, Slots, Span
from rtui.server.scan_page import ScanRefusedError, ServerBusyError, scan_page
from rtui.server.server_clock import ServerClock
from rtui.server.shrink import TableWatch

BUSY_S: Final = 0.016
"""After this long without waiting for the server comes a real sleep; every page in between gives the event loop a turn.

A keypress needs some ten turns until it is painted, and a page takes half a millisecond.
"""

BREATH_S: Final = 0.001
"""The length of that sleep."""

WAY_LOOK_S: Final = 0.005
"""How often a scan that gives way looks whether it still has to."""

PROBE_EVERY_S: Final = 2.0
"""How often the number of keys, the idle round trip and the server's own clock are looked at."""

FIRST_PROBES_S: Final = (0.1, 0.3)
"""Pauses between the first of these looks, which say how large a SCAN may be on this server."""

CUT_FROM: Final = MAX_WIDTH * MAX_COUNT
"""Keys from which on a keyspace is cut into ranges; below, a page would reach over a whole one."""

STUCK_AFTER: Final = 1000
"""Replies in a row that carry the cursor they were asked with: the server does not move."""

TABLE_PROBES: Final = 12
"""Tiny SCANs at the end of a scan that ask for the size of the table: all too short by chance once in 2^12."""


class BulkSource(Protocol):
    """What a scan needs of a connection."""

    @property
    def run_id(self) -> str | None:
        """The server's name for this run of it, if it tells."""

    async def bulk(self) -> Lane:
        """A ready lane; waits while there is none."""


@dataclass(frozen=True, slots=True)
class ScanNode:
    """A server to scan: how to reach it, how it counts, and what of it (None: everything)."""

    source: BulkSource
    dialect: Dialect = Dialect.STANDALONE
    spans: tuple[Span, ...] | None = None
    first_cursor: int = 0
    """Where to begin: the cursor of a first page that somebody else has taken; not with `spans`."""
    slots: Slots | None = None
    size: int | None = None
    """About how many keys there are, if known: a small keyspace is not cut."""
    run_id: str | None = None
    """The run of the server that `spans` or `first_cursor` come from, None if they come from nowhere."""

    def whole(self, dialect: Dialect) -> ScanNode:
        """The same node from its beginning."""
        return ScanNode(self.source, dialect, slots=self.slots, size=self.size)

    def ranges(self) -> Ranges:
        """The ranges to scan, cut to go side by side where the order of cursors allows it."""
        if not self.dialect.is_ordered:
            return Ranges(self.dialect, first_cursor=self.first_cursor)
        if self.spans is not None:
            return Ranges(self.dialect, self.spans, slots=self.slots)
        if self.dialect is Dialect.SLOTTED:
            return Ranges(self.dialect, [Span(self.dialect.position(self.first_cursor))], slots=self.slots)
        begin = self.dialect.position(self.first_cursor)
        width = MAX_WIDTH if self.size is None or self.size >= CUT_FROM else 1
        cut = [(max(begin, start), end) for start, end in pieces(width) if end > begin]
        return Ranges(self.dialect, [Span(start, end) for start, end in cut])


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


class _Asked(enum.Enum):
    PAGE = "page"
    SIZE = "size"
    CLOCK = "clock"


@dataclass(slots=True)
class _Call:
    """A request under way."""

    asked: _Asked
    sent_at: float
    replies: asyncio.Future[list[Reply]]
    epoch: int
    one: Range | None = None
    count: int = 0


class NodeScan:
    """Scans one node, over pauses and losses of the connection; `run` returns when all is seen or it is stopped."""

    def __init__(self, node: ScanNode, control: Control, *, match: bytes | None, kind: bytes | None) -> None:
        self.node = node
        self.ranges = node.ranges()
        self.pacer = Pacer(control.pace)
        self.table = TableWatch()
        self.clock = ServerClock()
        self.is_waiting = False
        self.waits_for: SafeText | None = None
        self.commands = self.keys = self.bytes_in = self.bytes_out = 0
        self.size: int | None = None
        """Keys of the database by DBSIZE, if it tells."""
        self._largest_size = 0
        self._control = control
        self._match = match
        self._kind = kind
        self._loop = asyncio.get_running_loop()
        self._calls: deque[_Call] = deque()
        self._epoch = 0
        """Grows when everything begins again, so that replies from before are known."""
        self._busy: set[Range] = set()
        self._lane: Lane | None = None
        self._run_id: str | None = None
        self._counted = (0, 0)
        self._probe_at = self._loop.time()
        self._probes = 0
        self._asks_size = self._asks_clock = True
        self._pages_since_clock = 0
        self._keys_since_clock = 0
        self._estimated_us = 0.0
        self._last_arrival = 0.0
        self._held_since = self._loop.time()
        self._stuck = 0

    @property
    def server_us(self) -> float:
        """The server's time for our SCANs: what it told, and an estimate of what came after that."""
        return self.clock.us + self._estimated_us

    @property
    def fraction(self) -> float | None:
        """How much is done, 0 … 1: by its cursors, else by its number of keys, which a filter makes useless."""
        by_cursor = self.ranges.fraction()
        if by_cursor is not None or not self.size or self._match is not None or self._kind is not None:
            return by_cursor
        return 1.0 if self.ranges.is_done else min(0.99, self.keys / self.size)

    @property
    def repeats_possible(self) -> bool:
        """Whether a key may have been delivered twice."""
        return self.ranges.repeats_possible or self.table.has_shrunk or self.ranges.dialect is not Dialect.STANDALONE

    def reset(self, *, opaque: bool = False) -> None:
        """Begin again from the start; replies still under way are passed over."""
        dialect = Dialect.OPAQUE if opaque else self.ranges.dialect
        self.ranges = self.node.whole(dialect).ranges()
        self.table = TableWatch()
        self._epoch += 1
        self._busy.clear()
        self.size = None
        self._largest_size = 0

    async def run(self) -> None:
        """Scan to the end; raises ScanRefusedError, and an RtuiError when no lane can be had any more."""
        attempt = 0
        while not (self.ranges.is_done or self._control.stopping.is_set()):
            lane = await self._open_lane()
            if lane is None:
                return
            try:
                await self._drive(lane)
                attempt = 0
            except ConnectionLost as lost:
                self.is_waiting, self.waits_for = True, lost.happened
            except ServerBusyError as busy:
                attempt += 1
                self.is_waiting, self.waits_for = True, busy.reason
                await asyncio.sleep(pause_s(attempt, Random()))
            except CursorOrderError:
                self._control.restart(ScanNote.PLAIN)
                self.reset(opaque=True)
            finally:
                self._drop_calls()

    async def _open_lane(self) -> Lane | None:
        """The bulk lane, None when the scan is stopped first; begins again if the server was restarted meanwhile."""
        opening = asyncio.ensure_future(self.node.source.bulk())
        stopping = asyncio.ensure_future(self._control.stopping.wait())
        try:
            await asyncio.wait([opening, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return None
            lane = opening.result()
        finally:
            opening.cancel()
            stopping.cancel()
        if lane is not self._lane:
            self._arrive_on(lane)
        self.is_waiting, self.waits_for = False, None
        return lane

    def _arrive_on(self, lane: Lane) -> None:
        is_first = self._lane is None
        self._lane = lane
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.clock.forget()
        before, self._run_id = self._run_id, self.node.source.run_id
        if is_first:
            before = self.node.run_id or self._run_id
        elif self.ranges.is_untouched:
            return
        if before is None or self._run_id is None:
            if not is_first:
                self._control.notes[ScanNote.UNSURE] = None
        elif before != self._run_id:
            self._control.restart(ScanNote.RESTARTED)

    async def _drive(self, lane: Lane) -> None:
        """Keep as many calls under way as the pace allows until nothing is left to ask."""
        calls = self._calls
        while True:
            if self.pacer.waits or not calls:
                self._fill(lane)
            if not calls:
                if self.ranges.is_done or self._control.stopping.is_set():
                    break
                if not self._control.going.is_set():
                    await self._control.going.wait()
                    self._probe_at = self._loop.time()
                else:
                    await self._sleep(self.pacer.wait_s(self._loop.time()))
                continue
            call = calls[0]
            has_waited = not call.replies.done()
            if has_waited and not await self._answered(call):
                continue
            calls.popleft()
            self._take(lane, call, has_waited=has_waited)
            await self._breathe(has_waited=has_waited)
        if self.ranges.is_done:
            await self._conclude(lane)

    async def _answered(self, call: _Call) -> bool:
        """Wait for the replies, but no longer than until another call may be sent."""
        wait_s = self.pacer.wait_s(self._loop.time())
        if wait_s > 0 and self._control.is_going and self._idle_range() is not None:
            await asyncio.wait([call.replies], timeout=wait_s)
            return call.replies.done()
        await call.replies
        return True

    def _idle_range(self) -> Range | None:
        if len(self._busy) >= self.pacer.depth:
            return None
        for one in self.ranges.under_way(self.pacer.pace.limits.width):
            if one not in self._busy:
                return one
        return None

    def _fill(self, lane: Lane) -> None:
        """Send whatever may be sent now."""
        if not self._control.is_going:
            return
        now = self._loop.time()
        self.pacer.pace = self._control.pace
        while self.pacer.wait_s(now) <= 0 and (one := self._idle_range()) is not None:
            count = self.pacer.count
            command = guard.scan(one.cursor, count=count, match=self._match, kind=self._kind)
            self._calls.append(_Call(_Asked.PAGE, now, lane.run(command), self._epoch, one, count))
            one.is_started = True
            self._busy.add(one)
            self.commands += 1
            self.pacer.sent(count, now)
        if now >= self._probe_at and self._busy:
            self._probe(lane, now)

    def _probe(self, lane: Lane, now: float) -> None:
        self._probe_at = now + (FIRST_PROBES_S[self._probes] if self._probes < len(FIRST_PROBES_S) else PROBE_EVERY_S)
        self._probes += 1
        size = guard.dbsize() if self._asks_size else guard.ping()
        self._calls.append(_Call(_Asked.SIZE, now, lane.run(size), self._epoch))
        self.commands += 1
        if self._asks_clock:
            self._calls.append(_Call(_Asked.CLOCK, now, lane.run(guard.info("commandstats")), self._epoch))
            self.commands += 1

    def _take(self, lane: Lane, call: _Call, *, has_waited: bool) -> None:
        """Take up the replies of a call; the next request goes out before its keys are put away."""
        (reply,) = call.replies.result()
        now = self._loop.time()
        idle_s = self.pacer.idle_s or 0.0
        round_trip_s = now - max(call.sent_at, self._last_arrival - idle_s) if has_waited else None
        self._last_arrival = now
        self._count_traffic(lane)
        if call.epoch != self._epoch:
            return
        if call.one is None:
            self._probed(call, reply, round_trip_s)
            return
        self._busy.discard(call.one)
        cursor, keys = scan_page(reply)
        self._check_moves(call.one, cursor)
        fresh = self.ranges.arrived(call.one, cursor, keys)
        if self.ranges.dialect is Dialect.STANDALONE:
            self.table.saw(cursor)
        self.pacer.answered(call.count, round_trip_s)
        self._estimated_us += self.pacer.cost_us(call.count)
        self._pages_since_clock += 1
        self._keys_since_clock += call.count
        self.keys += len(keys)
        self._fill(lane)
        if fresh:
            self._control.deliver(fresh)

    def _check_moves(self, one: Range, cursor: int) -> None:
        self._stuck = self._stuck + 1 if cursor == one.cursor and cursor else 0
        if self._stuck >= STUCK_AFTER:
            raise ScanRefusedError(SafeText("The server answers every SCAN with the cursor it was given."))

    def _probed(self, call: _Call, reply: Reply, round_trip_s: float | None) -> None:
        if call.asked is _Asked.CLOCK:
            self._clock_said(reply)
            return
        if round_trip_s is not None:
            self.pacer.idle(round_trip_s)
        if isinstance(reply, ServerError):
            self._asks_size = False
        elif isinstance(reply, int):
            self._size_said(reply)

    def _clock_said(self, reply: Reply) -> None:
        if not isinstance(reply, bytes):
            self._asks_clock = False
            return
        spent_us = self.clock.said(reply, self._pages_since_clock)
        if spent_us is not None:
            self._estimated_us = 0.0
            if self._keys_since_clock:
                self.pacer.told(spent_us / self._keys_since_clock)
        self._pages_since_clock = self._keys_since_clock = 0

    def _size_said(self, size: int) -> None:
        self.size = size
        self._largest_size = max(self._largest_size, size)
        if self.keys and size == 0:
            self._control.notes[ScanNote.EMPTIED] = None
        elif size * 2 < self._largest_size:
            self._control.notes[ScanNote.SHRANK] = None

    async def _conclude(self, lane: Lane) -> None:
        """Ask a last time how many keys there are, what it cost, and, where in doubt, how large the table is."""
        now = self._loop.time()
        self._probe(lane, now)
        commands = []
        if self.ranges.dialect is Dialect.STANDALONE and not self.table.is_sure and self.table.bits > 1:
            rng = Random()
            cursors = [self.ranges.dialect.cursor(rng.randrange(POSITION_END)) for _ in range(TABLE_PROBES)]
            commands = [guard.scan(cursor, count=1) for cursor in cursors]
        replies = await lane.run(*commands)
        while self._calls:
            await asyncio.wait([self._calls[0].replies])
            call = self._calls.popleft()
            self._take(lane, call, has_waited=False)
        cursors = [int(reply[0]) for reply in replies if isinstance(reply, list) and isinstance(reply[0], bytes)]
        self.commands += len(commands)
        self.table.measured(cursors)

    async def _breathe(self, *, has_waited: bool) -> None:
        """Give the event loop to others unless it has been theirs while the server was waited for."""
        if self._control.gives_way_until > self._loop.time():
            await self._give_way()
        elif has_waited:
            self._held_since = self._loop.time()
        elif self._loop.time() - self._held_since > BUSY_S:
            await self._sleep(BREATH_S)
        else:
            await asyncio.sleep(0)

    async def _give_way(self) -> None:
        """Put nothing away while somebody else wants the loop; what the server sends waits."""
        control = self._control
        while not control.stopping.is_set() and (rest_s := control.gives_way_until - self._loop.time()) > 0:
            await self._sleep(min(rest_s, WAY_LOOK_S))

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, BREATH_S))
        self._held_since = self._loop.time()

    def _count_traffic(self, lane: Lane) -> None:
        counted_in, counted_out = self._counted
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.bytes_in += lane.traffic.bytes_in - counted_in
        self.bytes_out += lane.traffic.bytes_out - counted_out

    def _drop_calls(self) -> None:
        for call in self._calls:
            call.replies.cancel()
        self._calls.clear()
        self._busy.clear()
