"""Requests under way on the lane of one node, at a pace: SCANs, queries about the keys that they list, and probes.

A request is one write. Requests are answered in the order in which they were sent, so the first one that is under way
is the next to be processed; then the next one is sent, and only then its keys are delivered. How many may be under way,
how large and how far apart, is up to the pacer, which learns from their round trips.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from rtui.server import guard
from rtui.server.guard.command import scan_template
from rtui.server.scan.cursor import POSITION_END, Dialect
from rtui.server.scan.listing import Listing
from rtui.server.scan.node import KeyQueries
from rtui.server.scan.pace import MAX_COUNT, PRIOR_KEY_US, Pacer
from rtui.server.scan.page import scan_page
from rtui.server.scan.progress import Cost, ScanNote
from rtui.server.scan.ranges import Range
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.server_time import ScanProbe, ServerClock
from rtui.server.wall_clock import new_random
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerBusyError
from rtui.server.wire.lane import Lane

QUERIES_PER_COUNT: Final = 2
"""A write queries up to this multiple of the keys of its SCAN: pages overshoot COUNT."""

MAX_WAITING_COUNTS: Final = 6
"""Keys waiting for queries, in COUNTs, beyond which no more are listed; over a long link at least two COUNTs for each
call that may be under way."""

PAGE_BYTES: Final = 4 << 20
"""Bytes of names to aim for in one page: COUNT is smaller if names are long."""

IDLE_S: Final = 0.001
"""The pause while nothing can be sent, and keys wait for something else: more names, or values that are read."""

TABLE_PROBES: Final = 12
"""Tiny SCANs at the end of a scan that ask for the size of the table: all too short by chance once in 2^12."""


@dataclass(slots=True)
class Request:
    """One write under way: a SCAN of one range, queries about keys, or both; or a probe."""

    purpose: Literal["keys", "size", "clock", "slots"]
    sent_at: float
    """On the clock of the event loop."""
    replies: asyncio.Future[list[Reply]]
    scanned: Range | None = None
    count: int = 0
    """Cost of the keys that its SCAN lists, in keys: COUNT if nothing is asked about them; 0 without a SCAN."""
    queries: KeyQueries | None = None
    is_void: bool = False
    """Whether the scan has begun again since this was sent, so that its replies mean nothing."""

    @property
    def cost_keys(self) -> int:
        return self.count if self.queries is None else max(self.count, self.queries.keys)


class RequestsUnderWay:
    """Requests in the order in which they were sent and will be answered."""

    def __init__(self) -> None:
        self.waiting: deque[Request] = deque()
        self.working = 0
        """Requests with SCANs or queries among them; probes cost nothing."""
        self.scanned: set[Range] = set()

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, request: Request) -> None:
        """Append the request that was just sent. Remove the first request, which was answered."""
        self.waiting.append(request)
        self.working += request.purpose == "keys"
        if request.scanned is not None:
            self.scanned.add(request.scanned)

    def take(self) -> None:
        """Forget the first one: it was answered."""
        request = self.waiting.popleft()
        self.working -= request.purpose == "keys"
        if request.scanned is not None:
            self.scanned.discard(request.scanned)

    def void(self) -> None:
        """Mark all requests under way as void, so that their replies are ignored: the scan begins again."""
        self.scanned.clear()
        for request in self.waiting:
            request.is_void = True

    def drop(self) -> None:
        """Cancel all requests; their queries are asked again."""
        for request in self.waiting:
            request.replies.cancel()
            if request.queries is not None and not request.is_void:
                request.queries.lost()
        self.waiting.clear()
        self.scanned.clear()
        self.working = 0


class ScanPipeline:
    """Asks one node until its listing has come to its end, and every question about a key is answered."""

    def __init__(
        self, listing: Listing, control: RunControl, sink: Callable[[list[bytes]], object], notes: dict[ScanNote, None]
    ) -> None:
        """`sink` gets the keys, and `notes` are for the reader."""
        self.listing = listing
        self.source = listing.node.queries
        self.pacer = Pacer(control.pace, key_us=PRIOR_KEY_US if self.source is None else self.source.key_us)
        self.requests = RequestsUnderWay()
        self.is_alone = False
        """Whether the server answers SCAN only if nothing else is sent until then."""
        self.commands = self.bytes_in = self.bytes_out = 0
        self.answers = 0
        """Requests that were answered in full."""
        self._control, self._sink, self._notes = control, sink, notes
        self._loop = asyncio.get_running_loop()
        names = ("scan", *(() if self.source is None else self.source.command_names))
        self.probe = ScanProbe(ServerClock(names), self._loop.time())
        self._template = scan_template(listing.only.match, listing.only.key_type)
        self._most_count = MAX_COUNT
        self._counted = (0, 0)
        """Bytes of the lane that are counted already, in and out."""
        self._last_arrival = 0.0
        self._is_view_due = False
        """Whether the primary, whose replica is scanned, is to be asked for its view, once nothing is under way."""

    @property
    def is_done(self) -> bool:
        """Whether all wanted keys are delivered, and every query about a key is answered."""
        if self.listing.passes is not None and self.listing.passes.is_due:
            return False
        return self.listing.ranges.is_done and not self._has_queries

    @property
    def waiting(self) -> int:
        return 0 if self.source is None else self.source.waiting

    @property
    def _has_queries(self) -> bool:
        return self.waiting > 0

    def take_waiting(self) -> list[bytes]:
        return [] if self.source is None else self.source.take_waiting()

    def cost(self, elapsed_s: float) -> Cost:
        """Cost so far, after `elapsed_s` seconds under way."""
        return Cost(
            commands=self.commands,
            keys=self.listing.keys,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            server_us=self.probe.server_us,
            is_measured=self.probe.clock.is_known,
            elapsed_s=elapsed_s,
        )

    def reset(self) -> None:
        """Go on from the start of the listing, which has begun anew; replies still under way are ignored."""
        self.probe.reset()
        self.requests.void()
        if self.source is not None:
            self.source.reset()

    def use_lane(self, lane: Lane) -> None:
        """Adapt SCAN to the server on this lane, and count traffic from here on; nothing may be under way."""
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        only = self.listing.only
        match, self.listing.matches = only.sent_to(lane.server)
        self._template = scan_template(match, only.key_type)
        compatible = lane.server.compatible
        self._most_count = MAX_COUNT if compatible is None else compatible.most_count
        self.probe.clock.restart()

    async def drive(self, lane: Lane) -> None:
        """Ask until nothing is left to ask, or it is stopped.

        Raises ConnectionLost, ServerBusyError, ScanRefusedError or CursorOrderError; `requests` are to be dropped then.
        """
        await self._ask(lane, lambda: self.is_done)

    async def _ask(self, lane: Lane, is_over: Callable[[], bool]) -> None:
        """Keep as many requests under way as the pace allows until it is over and all of them are answered."""
        requests = self.requests
        while True:
            if self.pacer.waits or not requests:
                self._fill(lane)
            if not requests:
                if self._is_view_due:
                    await self._observe_primary(lane)
                    continue
                if self.source is not None and not self._may_send:
                    self.source.settle()
                if is_over() or self._control.is_stopped:
                    break
                if self._control.is_held:
                    await self._control.wait_while_held()
                    self.probe.due_at = self._loop.time()
                else:
                    await self._control.sleep(self.pacer.wait_s(self._loop.time()) or IDLE_S)
                continue
            first = requests.waiting[0]
            has_waited = not first.replies.done()
            if has_waited and not await self._wait_for(first):
                continue
            self._process(lane, has_waited=has_waited)
            await self._control.yield_loop(has_waited=has_waited)

    async def _wait_for(self, first: Request) -> bool:
        """Wait for replies, no longer than until another request may be sent; return whether they have come."""
        wait_s = self.pacer.wait_s(self._loop.time())
        may_send = wait_s > 0 and self._may_send and self.requests.working < self.pacer.depth
        if may_send and (self._has_queries or self._idle_range() is not None):
            await asyncio.wait([first.replies], timeout=wait_s)
            return first.replies.done()
        await first.replies
        return True

    @property
    def _may_send(self) -> bool:
        return not (self._control.is_held or self._control.is_stopped or self._is_view_due)

    def _idle_range(self) -> Range | None:
        """Return the idle range with most left among those that may be under way, so that all end together; None if
        none."""
        scanned = self.requests.scanned
        idle = [one for one in self.listing.ranges.under_way(self.pacer.depth) if one not in scanned]
        if len(idle) < 2:
            return idle[0] if idle else None
        return max(idle, key=lambda one: one.end - one.position)

    def _fill(self, lane: Lane) -> None:
        if not self._may_send:
            return
        now = self._loop.time()
        self.pacer.pace = self._control.pace
        while self.requests.working < self.pacer.depth and self.pacer.wait_s(now) <= 0 and self._send_next(lane, now):
            pass
        if self.requests.working and now >= self.probe.due_at and not self.is_alone:
            self._send_probe(lane, now)

    def _send_next(self, lane: Lane, now: float) -> bool:
        """Send the next SCAN and the queries that are due in one write; return whether there was anything to send."""
        if self.is_alone and self.requests:
            return False
        source = self.source
        most_count = int(PAGE_BYTES / max(1.0, self.listing.name_bytes))
        share = 1.0 if source is None else source.key_share
        count = max(1, min(round(self.pacer.count / share), self._most_count, most_count))
        is_behind = source is not None and source.unsent > count * max(MAX_WAITING_COUNTS, 2 * self.pacer.depth)
        one = None if is_behind else self._idle_range()
        has_turn = one is None or not self.is_alone
        queries = source.next_write(QUERIES_PER_COUNT * count) if source is not None and has_turn else None
        if one is None and queries is None and source is not None and source.waiting and not self.requests.working:
            source.settle()
            queries = source.next_write(QUERIES_PER_COUNT * count)
        if queries is not None and queries.is_alone:
            one = None
        if one is None and queries is None:
            return False
        commands = [] if queries is None else [*queries.commands]
        if one is not None:
            commands.append(self._template.command(one.cursor, count))
            one.is_started = True
        sent_count = 0 if one is None else max(1, round(count * share))
        request = Request("keys", now, lane.run(*commands), one, sent_count, queries)
        self.requests.add(request)
        self.commands += sum([command.replies for command in commands])
        self.pacer.add_sent(request.cost_keys, now)
        return True

    def _process(self, lane: Lane, *, has_waited: bool) -> None:
        """Process the replies to the first request; the next one goes out before its keys are delivered.

        Raises ConnectionLost, ServerBusyError, ScanRefusedError or CursorOrderError. Queries that were not answered are
        still under way then, and so asked again.
        """
        request = self.requests.waiting[0]
        replies = request.replies.result()
        arrived = min(self._loop.time(), getattr(request.replies, "arrived_s", math.inf))
        idle_s = self.pacer.idle_s or 0.0
        round_trip_s = arrived - max(request.sent_at, self._last_arrival - idle_s) if has_waited else None
        self._last_arrival = arrived
        counted_in, counted_out = self._counted
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.bytes_in += lane.traffic.bytes_in - counted_in
        self.bytes_out += lane.traffic.bytes_out - counted_out
        if request.is_void or request.purpose != "keys":
            self.requests.take()
            if not request.is_void:
                self._process_probe(request.purpose, replies[0], round_trip_s)
            return
        one, queries, fresh = request.scanned, request.queries, None
        if one is not None:
            fresh = self.listing.take_page(one, replies.pop())
        self.requests.take()
        cost_keys = request.cost_keys
        self.pacer.observe(cost_keys, round_trip_s)
        self.probe.add_spent(len(replies) + (one is not None), cost_keys, self.pacer.cost_us(cost_keys))
        if fresh and self.source is not None:
            self.source.add_page(fresh)
        self._fill(lane)
        if fresh:
            self.listing.delivered += len(fresh)
            self._sink(fresh)
        if queries is not None:
            queries.answered(replies, None if round_trip_s is None else round_trip_s - (self.pacer.idle_s or 0.0))
        self.answers += 1

    def _send_probe(self, lane: Lane, now: float) -> None:
        """Ask for the number of keys, the server's statistics and, in a cluster if it is due, the node's view."""
        size, clock = self.probe.commands(now)
        self.requests.add(Request("size", now, lane.run(size)))
        self.commands += 1
        if clock is not None:
            self.requests.add(Request("clock", now, lane.run(clock)))
            self.commands += 1
        passes = self.listing.passes
        if passes is None or not passes.wants_view(now, is_over=self.listing.ranges.is_done):
            return
        if self.listing.node.primary_on(lane) is not None:
            self._is_view_due = True
        else:
            self.requests.add(Request("slots", now, lane.run(guard.cluster_nodes())))
            self.commands += 1

    def _process_probe(self, purpose: str, reply: Reply, round_trip_s: float | None) -> None:
        if purpose == "clock":
            self.probe.observe_clock(reply, self.pacer)
            return
        if purpose == "slots":
            if self.listing.passes is not None:
                self.listing.passes.observe(reply, self.listing.ranges)
            return
        if round_trip_s is not None:
            self.pacer.observe_idle(round_trip_s)
        note = self.probe.observe_size(reply, has_keys=self.listing.keys > 0)
        if note is not None:
            self._notes[note] = None

    async def _observe_primary(self, lane: Lane) -> None:
        """Learn the view of the primary whose replica is scanned; nothing is under way. Raises as `followed` does."""
        self._is_view_due = False
        primary, passes = self.listing.node.primary_on(lane), self.listing.passes
        if primary is not None and passes is not None and not self._control.is_stopped:
            reply = await self._control.unless_stopped(primary.followed(lane))
            if reply is not None:
                passes.observe(reply, self.listing.ranges, is_of_primary=True)

    async def conclude(self, lane: Lane) -> None:
        """Ask a last time for the number of keys and the server's statistics, and probe the table's size if it is in
        doubt."""
        self._send_probe(lane, self._loop.time())
        commands = []
        dialect, table = self.listing.ranges.dialect, self.listing.ranges.table
        if dialect is Dialect.STANDALONE and not table.is_sure and table.bits > 1:
            rng = new_random("table")
            random_cursors = [dialect.cursor(rng.randrange(POSITION_END)) for _ in range(TABLE_PROBES)]
            commands = [guard.scan(cursor, count=1) for cursor in random_cursors]
        replies = await lane.run(*commands)
        while self.requests:
            await asyncio.wait([self.requests.waiting[0].replies])
            self._process(lane, has_waited=False)
        self.commands += len(commands)
        cursors = []
        for reply in replies:
            with contextlib.suppress(ScanRefusedError, ServerBusyError):
                cursors.append(scan_page(reply)[0])
        self.listing.ranges.table.observe_random(cursors)
        if self._is_view_due:
            await self._observe_primary(lane)
