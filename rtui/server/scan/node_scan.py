"""One node's part of a scan: its ranges side by side on one lane, at a pace, over losses of the connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from random import Random
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.scan.control import Breath, Control, wait_unless
from rtui.server.scan.cursor import POSITION_END, Dialect, TableWatch, dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pacer
from rtui.server.scan.page import scan_page
from rtui.server.scan.probe import SCAN, ScanProbe, ServerClock
from rtui.server.scan.progress import ScanNote
from rtui.server.scan.ranges import CursorOrderError, Range
from rtui.server.scan.requests import Asked, Call, CallsUnderWay
from rtui.server.wire.errors import ConnectionLost, ScanRefusedError, ServerBusyError
from rtui.server.wire.lane import Lane, Reply
from rtui.server.wire.retries import pause_s

STUCK_AFTER: Final = 1000
"""Replies in a row that carry the cursor they were asked with: the server does not move."""

RIDE: Final = 2
"""A write carries questions for up to so many times the keys of its SCAN: pages overshoot COUNT."""

BEHIND: Final = 6
"""With more than so many COUNTs of keys waiting for questions, no further keys are listed."""

PAGE_BYTES: Final = 4 << 20
"""About so many bytes of names are asked for in one page: COUNT is smaller where names are long."""

MAX_LOSSES: Final = 10
"""A lane that is lost so often in a row without an answer is given up, after half a minute of pauses or so."""

TABLE_PROBES: Final = 12
"""Tiny SCANs at the end of a scan that ask for the size of the table: all too short by chance once in 2^12."""


class NodeScan:
    """Scans one node, over pauses and losses of the connection; `run` returns when all is seen or it is stopped."""

    def __init__(self, node: ScanNode, control: Control, *, match: bytes | None, kind: bytes | None) -> None:
        self.node = node
        self.ranges = node.ranges()
        self.rider = node.rider
        self.pacer = Pacer(control.pace) if self.rider is None else Pacer(control.pace, key_us=self.rider.key_us)
        self.table = TableWatch()
        if node.dialect is Dialect.STANDALONE:
            self.table.saw(node.first_cursor)
        self.is_waiting = False
        self.waits_for: SafeText | None = None
        self.commands = self.keys = self.bytes_in = self.bytes_out = 0
        self._control = control
        self._match = match
        self._kind = kind
        self._loop = asyncio.get_running_loop()
        names = (*SCAN, *(() if self.rider is None else self.rider.command_names))
        self.probe = ScanProbe(ServerClock(names), self._loop.time())
        self._calls = CallsUnderWay()
        self._breath = Breath(control)
        self._lane: Lane | None = None
        self._run_id: str | None = None
        self._server_name: str | None = None
        self._counted = (0, 0)
        self._last_arrival = 0.0
        self._stuck = 0
        self._name_bytes = 0.0
        self._answers = 0
        """Calls that were answered in full."""

    @property
    def run_id(self) -> str | None:
        """The run of the server that its cursors come from, if it tells."""
        return self._run_id

    @property
    def is_done(self) -> bool:
        """Whether every key is delivered and every question about one is answered."""
        return self.ranges.is_done and not self._rides_wait

    @property
    def _rides_wait(self) -> bool:
        return self.rider is not None and self.rider.waiting > 0

    @property
    def fraction(self) -> float | None:
        """How much is done, 0 … 1: by its cursors, else by its number of keys, which a filter makes useless."""
        by_cursor, size = self.ranges.fraction(), self.probe.size
        if by_cursor is not None or not size or self._match is not None or self._kind is not None:
            return by_cursor
        return 1.0 if self.ranges.is_done else min(0.99, self.keys / size)

    @property
    def repeats_possible(self) -> bool:
        """Whether a key may have been delivered twice."""
        return self.ranges.repeats_possible or self.table.has_shrunk or self.ranges.dialect is not Dialect.STANDALONE

    def reset(self, *, opaque: bool = False) -> None:
        """Begin again from the start; replies still under way are passed over."""
        dialect = Dialect.OPAQUE if opaque else self._dialect_now()
        self.ranges = self.node.whole(dialect).ranges()
        self.table = TableWatch()
        self.probe.reset()
        self._calls.begin_again()
        if self.rider is not None:
            self.rider.reset()

    def _dialect_now(self) -> Dialect:
        """How the server that answers now counts its cursors; found out anew where it is another version."""
        server = None if self._lane is None else self._lane.server
        if server is None or self._server_name is None or server.full_name == self._server_name:
            return self.ranges.dialect
        self._server_name = server.full_name
        return dialect_of(server.product or "other", server.version, cluster_enabled=server.cluster_enabled)

    async def run(self) -> None:
        """Scan to the end; raises ScanRefusedError, and an RtuiError when no lane can be had any more.

        A lane that is lost MAX_LOSSES times without an answer in between is not opened again: what it is asked
        makes the server, or something before it, hang up. A busy server is waited for until it answers.
        """
        attempt = losses = 0
        while not (self.is_done or self._control.stopping.is_set()):
            lane = await self._open_lane()
            if lane is None:
                return
            answered = self._answers
            try:
                if self.rider is not None:
                    await self.rider.arrive(lane)
                await self._drive(lane)
            except (ConnectionLost, ServerBusyError) as trouble:
                if self._answers > answered:
                    attempt = losses = 0
                attempt += 1
                losses += isinstance(trouble, ConnectionLost)
                if losses >= MAX_LOSSES:
                    raise
                self.is_waiting, self.waits_for = True, trouble.happened
                if isinstance(trouble, ServerBusyError):  # a lane that was lost comes back after a pause by itself
                    await wait_unless(self._control.stopping, pause_s(attempt, Random()))
            except CursorOrderError:
                self._control.restart(ScanNote.PLAIN)
                self.reset(opaque=True)
            finally:
                self._calls.drop()

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
        is_another = self._server_name not in {None, lane.server.full_name}
        self._server_name = self._server_name or lane.server.full_name
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.probe.clock.forget()
        before, self._run_id = self._run_id, lane.server.run_id
        if is_first:
            before = self.node.run_id or self._run_id
        elif self.ranges.is_untouched:
            if is_another:
                self.reset()
            return
        is_told = before is not None and self._run_id is not None
        if not (is_told or is_another):
            if not is_first:
                self._control.notes[ScanNote.UNSURE] = None
        elif is_another or before != self._run_id:
            self._control.restart(ScanNote.RESTARTED)

    async def _drive(self, lane: Lane) -> None:
        """Keep as many calls under way as the pace allows until nothing is left to ask."""
        calls = self._calls
        while True:
            if self.pacer.waits or not calls:
                self._fill(lane)
            if not calls:
                if self.is_done or self._control.stopping.is_set():
                    break
                if not self._control.going.is_set():
                    await self._control.going.wait()
                    self.probe.hurry(self._loop.time())
                else:
                    await self._breath.rest(self.pacer.wait_s(self._loop.time()))
                continue
            call = calls.first
            has_waited = not call.replies.done()
            if has_waited and not await self._answered(call):
                continue
            self._take(lane, calls.take(), has_waited=has_waited)
            await self._breath.take(has_waited=has_waited)
        if self.is_done:
            await self._conclude(lane)

    async def _answered(self, call: Call) -> bool:
        """Wait for the replies, but no longer than until another call may be sent."""
        wait_s = self.pacer.wait_s(self._loop.time())
        if wait_s > 0 and self._control.is_going and self._has_work:
            await asyncio.wait([call.replies], timeout=wait_s)
            return call.replies.done()
        await call.replies
        return True

    @property
    def _has_work(self) -> bool:
        """Whether another call could be sent if the pace allowed it."""
        return self._calls.working < self.pacer.depth and (self._rides_wait or self._idle_range() is not None)

    def _idle_range(self) -> Range | None:
        if self._calls.working >= self.pacer.depth:
            return None
        for one in self.ranges.under_way(self.pacer.pace.limits.width):
            if one not in self._calls.busy:
                return one
        return None

    def _fill(self, lane: Lane) -> None:
        """Send whatever may be sent now."""
        if not self._control.is_going:
            return
        now = self._loop.time()
        self.pacer.pace = self._control.pace
        while self.pacer.wait_s(now) <= 0 and self._send_next(lane, now):
            pass
        if self._calls.working and self.probe.is_due(now):
            self._look(lane, now)

    def _send_next(self, lane: Lane, now: float) -> bool:
        """Send the next SCAN together with what waits to ride, or that alone; whether there was anything to send."""
        if self._calls.working >= self.pacer.depth:
            return False
        count, rider = min(self.pacer.count, self._most_names()), self.rider
        is_behind = rider is not None and rider.waiting > BEHIND * count
        one = None if is_behind else self._idle_range()
        ride = None if rider is None else rider.board(RIDE * count)
        if ride is not None and ride.goes_alone:
            one = None
        if one is None and ride is None:
            return False
        commands = [] if ride is None else [*ride.commands]
        if one is not None:
            commands.append(guard.scan(one.cursor, count=count, match=self._match, kind=self._kind))
            one.is_started = True
        call = self._calls.work(lane.run(*commands), now, one, 0 if one is None else count, ride)
        self.commands += sum(command.replies for command in commands)
        self.pacer.sent(call.units, now)
        return True

    def _most_names(self) -> int:
        """COUNT at most, by how long the names of the last pages are."""
        return max(1, int(PAGE_BYTES / max(1.0, self._name_bytes)))

    def _look(self, lane: Lane, now: float) -> None:
        size, clock = self.probe.look(now)
        self._calls.look(Asked.SIZE, lane.run(size), now)
        self.commands += 1
        if clock is not None:
            self._calls.look(Asked.CLOCK, lane.run(clock), now)
            self.commands += 1

    def _take(self, lane: Lane, call: Call, *, has_waited: bool) -> None:
        """Take up the replies of a call; the next request goes out before its keys are put away."""
        replies = self._calls.replies(call)
        now = self._loop.time()
        idle_s = self.pacer.idle_s or 0.0
        round_trip_s = now - max(call.sent_at, self._last_arrival - idle_s) if has_waited else None
        self._last_arrival = now
        self._count_traffic(lane)
        if self._calls.is_void(call):
            return
        if call.asked is Asked.WORK:
            self._take_work(lane, call, replies, round_trip_s)
        else:
            self._looked(call, replies[0], round_trip_s)

    def _take_work(self, lane: Lane, call: Call, replies: list[Reply], round_trip_s: float | None) -> None:
        one, ride, fresh = call.one, call.ride, None
        if one is not None:
            self._calls.busy.discard(one)
            cursor, keys = self._page(call, replies.pop())
            self._check_moves(one, cursor)
            fresh = self.ranges.arrived(one, cursor, keys)
            if self.ranges.dialect is Dialect.STANDALONE:
                self.table.saw(cursor)
            self.keys += len(keys)
            if keys:
                self._name_bytes = max(sum(map(len, keys)) / len(keys), 0.9 * self._name_bytes)
        self.pacer.answered(call.units, round_trip_s)
        self.probe.spent(len(replies) + (one is not None), call.units, self.pacer.cost_us(call.units))
        if fresh and self.rider is not None:
            self.rider.put(fresh)
        self._fill(lane)
        if ride is not None:
            call.ride = None  # it asks again itself what has to be asked again
            ride.answered(replies, None if round_trip_s is None else round_trip_s - (self.pacer.idle_s or 0.0))
        self._answers += 1
        if fresh:
            self._control.deliver(fresh)

    def _page(self, call: Call, reply: Reply) -> tuple[int, list[bytes]]:
        """Read a page; when it is none, what rode along is asked again."""
        try:
            return scan_page(reply)
        except (ScanRefusedError, ServerBusyError):
            if call.ride is not None:
                call.ride.missed()
            raise

    def _check_moves(self, one: Range, cursor: int) -> None:
        self._stuck = self._stuck + 1 if cursor == one.cursor and cursor else 0
        if self._stuck >= STUCK_AFTER:
            raise ScanRefusedError("The server answers every SCAN with the cursor it was given.")

    def _looked(self, call: Call, reply: Reply, round_trip_s: float | None) -> None:
        if call.asked is Asked.CLOCK:
            key_us = self.probe.clock_said(reply)
            if key_us is not None:
                self.pacer.told(key_us)
            return
        if round_trip_s is not None:
            self.pacer.idle(round_trip_s)
        note = self.probe.size_said(reply, has_keys=self.keys > 0)
        if note is not None:
            self._control.notes[note] = None

    async def _conclude(self, lane: Lane) -> None:
        """Ask a last time how many keys there are, what it cost, and, where in doubt, how large the table is."""
        self._look(lane, self._loop.time())
        commands = []
        if self.ranges.dialect is Dialect.STANDALONE and not self.table.is_sure and self.table.bits > 1:
            rng = Random()
            cursors = [self.ranges.dialect.cursor(rng.randrange(POSITION_END)) for _ in range(TABLE_PROBES)]
            commands = [guard.scan(cursor, count=1) for cursor in cursors]
        replies = await lane.run(*commands)
        while self._calls:
            await asyncio.wait([self._calls.first.replies])
            self._take(lane, self._calls.take(), has_waited=False)
        self.commands += len(commands)
        self.table.measured(_cursors(replies))

    def _count_traffic(self, lane: Lane) -> None:
        counted_in, counted_out = self._counted
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.bytes_in += lane.traffic.bytes_in - counted_in
        self.bytes_out += lane.traffic.bytes_out - counted_out


def _cursors(replies: Sequence[Reply]) -> list[int]:
    """The cursors of those replies that are pages."""
    found = []
    for reply in replies:
        with contextlib.suppress(ScanRefusedError, ServerBusyError):
            found.append(scan_page(reply)[0])
    return found
