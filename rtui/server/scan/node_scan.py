"""One node's part of a scan: its ranges side by side on one lane, at a pace, over losses of the connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import Final, Literal

from rtui.keyspace.slots import SLOTS, each_slot
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.chance import new_random
from rtui.server.guard.command import scan_template
from rtui.server.scan.cluster_slots import ClusterSlots
from rtui.server.scan.cursor import POSITION_END, BeginningWatch, Dialect, dialect_of, slots_between
from rtui.server.scan.cursor_proof import prove_cursors
from rtui.server.scan.node import KeyQueries, Primary, ScanNode, SplitSink
from rtui.server.scan.pace import MAX_COUNT, PRIOR_KEY_US, Pacer
from rtui.server.scan.page import BeginAgainError, ScanFilter, scan_page
from rtui.server.scan.progress import Cost, NodeProgress, ScanNote, ScanState, Speedometer
from rtui.server.scan.ranges import CursorOrderError, Range, Ranges
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.saved_ranges import SavedRanges
from rtui.server.scan.server_time import ScanProbe, ServerClock
from rtui.server.scan.slot_filter import KeyFilter, SlotFilter
from rtui.server.scan.slot_passes import SlotPasses
from rtui.server.wire.backoff import backoff_s
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectionLost, RtuiError, ScanRefusedError, ServerBusyError
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply

STUCK_AFTER: Final = 1000
"""Replies in a row that carry the cursor they were asked with: the server does not move."""

QUERIES_PER_COUNT: Final = 2
"""A write holds queries about up to so many times the keys of its SCAN: pages overshoot COUNT."""

MAX_WAITING_COUNTS: Final = 6
"""With more than so many COUNTs of keys waiting for queries, no further keys are listed; over a long link with more
than two for each call that may be under way."""

PAGE_BYTES: Final = 4 << 20
"""About so many bytes of names are asked for in one page: COUNT is smaller where names are long."""

MAX_BEGINNINGS: Final = 3
"""So often a server may lose its place in a scan, which begins again then, before it is given up."""

MAX_LOSSES: Final = 10
"""A lane that is lost so often in a row without an answer is given up, after half a minute of pauses or so."""

TABLE_PROBES: Final = 12
"""Tiny SCANs at the end of a scan that ask for the size of the table: all too short by chance once in 2^12."""

OUT_OF_ORDER: Final = 2_000
"""So many keys at most are under way, of which a later one may be answered before an earlier one."""

QUEUED: Final = SafeText("other nodes are scanned first")
"""What a node waits for that is not scanned yet."""


@dataclass(slots=True)
class Request:
    """One write under way: a SCAN of one range, queries about keys, or both; or a probe."""

    purpose: Literal["keys", "size", "clock", "slots"]
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


class RequestsUnderWay(deque[Request]):
    """Requests in the order in which they were sent and will be answered."""

    @property
    def working(self) -> int:
        """How many are for keys; probes cost nothing."""
        return sum([request.purpose == "keys" for request in self])

    @property
    def scanned(self) -> list[Range | None]:
        """Ranges whose next page is under way."""
        return [request.scanned for request in self if not request.is_void]

    def void(self) -> None:
        """Have the replies to everything that is under way ignored: the scan begins again."""
        for request in self:
            request.is_void = True

    def drop(self) -> None:
        """Cancel all of them; their queries are asked again."""
        for request in self:
            request.replies.cancel()
            if request.queries is not None and not request.is_void:
                request.queries.lost()
        self.clear()


class NodeScan:
    """Scans one node, over pauses and losses of the connection, until all keys are delivered or it is stopped."""

    _asked_at: SafeText | None = None
    """`host:port` of the server that answers on the lane."""
    _is_view_due = False
    """Whether the primary, whose replica is scanned, is to be asked for its view, once nothing is under way."""
    _looked: tuple[int, set[int]] | None = None
    """How many keys were listed when somebody looked, and in which slots some were not; see `unlisted`."""
    _unasked: frozenset[int] | set[int] = frozenset()
    """The slots that were not done at the look before that."""
    waited_for: SafeText | None = None
    """What it has waited for, if it has not come to an end since: it may just be trying again."""

    def __init__(
        self,
        node: ScanNode,
        control: RunControl,
        *,
        match: bytes | None,
        key_type: bytes | None,
        sink: Callable[[list[bytes]], object],
        split_sink: SplitSink | None,
        restart: Callable[[ScanNote], object],
        notes: dict[ScanNote, None],
        slots: ClusterSlots | None = None,
    ) -> None:
        """`sink` gets the keys, or `split_sink` does, and `notes` are for the reader.

        `restart` is called when all keys are to be delivered anew. With `slots` each `run` is one pass over those that
        the node is to visit, from its first cursor on.
        """
        self.node = node
        self.passes = None if slots is None else SlotPasses(node, slots, self._new_filter)
        self.ranges = self._new_ranges(node)
        self.source = node.queries
        self.pacer = Pacer(control.pace, key_us=PRIOR_KEY_US if self.source is None else self.source.key_us)
        if node.saved is not None:
            self.ranges.restore(node.saved.states(), repeats_possible=node.saved.repeats_possible)
            self.ranges.table.restore(node.saved.table_bits, node.saved.table_has_shrunk)
        if node.dialect is Dialect.STANDALONE:
            self.ranges.table.observe(node.first_cursor)
        self.run_id: str | None = None
        """The run of the server that its cursors come from, if it is known."""
        self.waits_for: SafeText | None = None
        """Why nothing is sent just now, for a lost connection or a busy server."""
        self.is_queued = False
        """Whether it waits for its turn, while other nodes are scanned."""
        self.failure: RtuiError | None = None
        """Why the scan of this node has ended early."""
        self.speed = Speedometer()
        self.commands = self.keys = self.bytes_in = self.bytes_out = 0
        self.delivered = 0
        """Keys that went to the sink since the scan began, or began again."""
        self._control, self._sink, self._restart, self._notes = control, sink, restart, notes
        self._split_sink = split_sink
        self._only = ScanFilter(match, key_type)
        self._template = scan_template(match, key_type)
        self._matches: Callable[[bytes], bool] | None = None
        """What tells whether a name matches, on a server that is not sent a pattern."""
        self._most_count = MAX_COUNT
        self._beginning = BeginningWatch(node.first_keys)
        self._is_alone = False
        """Whether the server answers SCAN only if nothing else is sent until then."""
        self._loop = asyncio.get_running_loop()
        names = ("scan", *(() if self.source is None else self.source.command_names))
        self.probe = ScanProbe(ServerClock(names), self._loop.time())
        self._requests = RequestsUnderWay()
        self._lane: Lane | None = None
        self._server_name: str | None = None
        self._generation = -1
        """That of the connection whose lane it is."""
        self._counted = (0, 0)
        self._last_arrival = self._name_bytes = 0.0
        self._stuck = self._lost_places = 0
        self._answers = 0
        """Requests that were answered in full."""
        self._was_resized = False
        """Whether `was_resized` held in an earlier pass over the node's slots."""

    @property
    def is_done(self) -> bool:
        """Whether every key is delivered, or as many as are wanted, and every question about one is answered."""
        if self.passes is not None and self.passes.is_due:
            return False
        return (self.ranges.is_done or self._control.is_finishing) and not self._has_queries

    @property
    def is_whole(self) -> bool:
        """Whether that is so of every key there is."""
        return self.ranges.is_done and self.is_done

    def saved_ranges(self) -> SavedRanges:
        """Return for a file which positions are still to be visited, and which names belong to their borders."""
        return SavedRanges.of(self.ranges.saved(), self.ranges.repeats_possible, self.ranges.table)

    @property
    def waiting(self) -> int:
        """Keys that were listed, and about which something is still to be asked."""
        return 0 if self.source is None else self.source.waiting

    @property
    def _has_queries(self) -> bool:
        return self.waiting > 0

    @property
    def fraction(self) -> float | None:
        """How much is done, 0 … 1: by its cursors, else by its number of keys, which a filter makes useless."""
        if self.passes is not None and self.passes.fraction is not None:
            return self.passes.fraction
        if self.passes is not None and self.ranges.dialect.is_ordered:
            if self.passes.is_unseen:
                return 0.0
            if self.ranges.is_done:
                return 1.0
        by_cursor, size = self.ranges.fraction(), self.probe.size
        if by_cursor is not None or not size or not self._only.is_open:
            return by_cursor
        return 1.0 if self.ranges.is_done else min(0.99, self.keys / size)

    @property
    def unlisted(self) -> set[int]:
        """Where cursors go slot by slot: the slots of the node of which not all keys are listed, and asked about.

        Keys are asked about in the order in which they are listed, but for a few: once so many more are than were
        listed when somebody looked, all slots are done that were listed then.
        """
        ranges = self.ranges
        if ranges.dialect is not Dialect.SLOTTED:
            return set()
        own = set(range(SLOTS) if ranges.slots is None else each_slot(ranges.slots))
        ahead = own.intersection(chain(*(slots_between(one.start, one.end)[0] for one in ranges.remaining())))
        if not self.waiting:
            return ahead
        if self._looked is None or self.delivered - self.waiting >= self._looked[0] + OUT_OF_ORDER:
            self._unasked = own if self._looked is None else self._looked[1]
            self._looked = self.delivered, ahead
        return own & self._unasked

    @property
    def was_resized(self) -> bool:
        """Whether a key may have been delivered twice since the server resized its one table."""
        is_now = self.ranges.repeats_possible or self.ranges.table.has_shrunk
        return self._was_resized or (is_now and self.ranges.dialect is Dialect.STANDALONE)

    @property
    def repeats_possible(self) -> bool:
        """Whether a key may have been delivered twice; with `slots` not where cursors go slot by slot."""
        is_filtered = self.passes is not None and self.ranges.dialect is Dialect.SLOTTED
        return self.was_resized or not (is_filtered or self.ranges.dialect is Dialect.STANDALONE)

    def cost(self, elapsed_s: float) -> Cost:
        """What it has cost in so many seconds under way."""
        return Cost(
            commands=self.commands,
            keys=self.keys,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            server_us=self.probe.server_us,
            is_measured=self.probe.clock.is_known,
            elapsed_s=elapsed_s,
        )

    def progress(self, of_scan: ScanState, elapsed_s: float) -> NodeProgress:
        """How far it is, now, in a scan that is in this state and has been under way for so many seconds."""
        now, fraction = self._loop.time(), self.fraction
        state, waits_for = of_scan, self.waits_for or (QUEUED if self.is_queued else None)
        if self.failure is not None:
            state = ScanState.FAILED
        elif of_scan is not ScanState.READY and self.is_whole:
            state = ScanState.DONE
        elif of_scan in {ScanState.RUNNING, ScanState.WAITING}:
            state = ScanState.RUNNING if waits_for is None else ScanState.WAITING
        if self.speed.is_due(now):
            self.speed.mark(now, self.delivered, fraction or 0.0)
        is_going = state is ScanState.RUNNING
        return NodeProgress(
            id=self.node.id,
            label=self.node.connection.target.label,
            state=state,
            fraction=1.0 if state is ScanState.DONE else fraction,
            keys=self.delivered,
            keys_per_s=self.speed.speed(now, self.delivered, fraction or 0.0)[0] if is_going else 0.0,
            cost=self.cost(elapsed_s),
            waits_for=waits_for,
            failure=None if self.failure is None else self.failure.happened,
        )

    def reset(self, *, opaque: bool = False) -> None:
        """Begin again from the start; replies still under way are ignored.

        How the server counts its cursors is determined anew where another version answers now.
        """
        dialect = Dialect.OPAQUE if opaque else self.ranges.dialect
        if not opaque and self._lane is not None and self._server_name not in {None, self._lane.server.full_name}:
            self._server_name = self._lane.server.full_name
            dialect = dialect_of(self._lane.server)
        self.ranges = self._new_ranges(self.node.whole(dialect))
        self.delivered, self._looked = 0, None
        self._beginning = BeginningWatch()
        self._was_resized = False
        self.probe.reset()
        self._requests.void()
        if self.source is not None:
            self.source.reset()

    async def run(self) -> None:
        """Scan to the end; raises ScanRefusedError, and an RtuiError when no lane can be had any more.

        A lane that is lost MAX_LOSSES times without an answer in between is not opened again: what it is asked
        makes the server, or something before it, hang up. A busy server is waited for until it answers.
        """
        attempt = losses = 0
        while not (self.is_done or self._control.is_stopped):
            state = self.node.connection.state
            if isinstance(state, Lost) and state.reason is not None:
                self.waits_for = self.waited_for = state.reason.happened
            await self._control.unless_stopped(self.node.connection.bulk_due())
            answered = self._answers
            try:
                await self._take_turn()
                self.waited_for = None
            except (ConnectionLost, ServerBusyError) as trouble:
                if self._answers > answered:
                    attempt = losses = 0
                attempt += 1
                losses += isinstance(trouble, ConnectionLost)
                if losses >= MAX_LOSSES:
                    raise
                self.waits_for = self.waited_for = trouble.happened
                if isinstance(trouble, ServerBusyError):  # a lane that was lost comes back after a pause by itself
                    await self._control.wait_for_stop(backoff_s(attempt, Random()))
            except CursorOrderError:
                self.node.connection.cursors_are_positions = False
                self._scan_plainly(ScanNote.PLAIN)
            except BeginAgainError as lost:
                self._lost_places += 1
                if self._lost_places > MAX_BEGINNINGS:
                    raise
                self._is_alone = self._is_alone or lost.note is not ScanNote.BEGAN_AGAIN
                self._scan_plainly(lost.note)

    async def _take_turn(self) -> None:
        """Wait for a turn among the other nodes, and scan until nothing is left to ask, or something is in the way."""
        self.is_queued = True
        async with self._control.turn(self.node.connection):
            self.is_queued = False
            if self._control.is_stopped:
                return
            lane = await self._control.unless_stopped(self.node.connection.try_bulk())
            if lane is None:
                return
            if lane is not self._lane:
                self._switch_to(lane)
            self.waits_for = None
            try:
                await self._prove_cursors()
                await self._prepare_lane(lane)
                await self._drive(lane)
            finally:
                self._requests.drop()

    def _switch_to(self, lane: Lane) -> None:
        """Go on with a lane that was opened; begin again if another run of a server answers on it."""
        is_first = self._lane is None
        self._lane = lane
        is_another = self._server_name not in {None, lane.server.full_name}
        self._server_name = self._server_name or lane.server.full_name
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        match, self._matches = self._only.sent_to(lane.server)
        self._template = scan_template(match, self._only.key_type)
        compatible = lane.server.compatible
        self._most_count = MAX_COUNT if compatible is None else compatible.most_count
        self.probe.clock.restart()
        before, self.run_id = self.run_id, lane.server.run_id
        was_at, self._asked_at = self._asked_at, lane.target.label
        has_left = self.node.primary is not None and was_at not in {None, self._asked_at}
        is_same_connection = self._generation == self.node.connection.generation
        self._generation = self.node.connection.generation
        if is_first:
            before = self.node.run_id or self.run_id
        elif self.passes is not None:
            is_unsure = before is None and not is_same_connection
            if is_another or is_unsure or before != self.run_id:
                self._notes[ScanNote.NODE_REPLICA_LEFT if has_left else ScanNote.NODE_RESTARTED] = None
                self._server_name = lane.server.full_name
                self.passes.restart(dialect_of(lane.server) if is_another else self.passes.dialect)
            return
        elif self.ranges.is_untouched:
            if is_another:
                self.reset()
            return
        is_known = before is not None and self.run_id is not None
        if not (is_known or is_another):
            if not is_first:
                self._notes[ScanNote.UNSURE] = None
        elif is_another or before != self.run_id:
            self._restart(ScanNote.REPLICA_LEFT if has_left else ScanNote.RESTARTED)

    def use_slots(self, slots: ClusterSlots) -> None:
        """Begin again from the start with another book of the cluster's slots; the scan does not run."""
        self.passes = SlotPasses(self.node, slots, self._new_filter)

    async def _prepare_lane(self, lane: Lane) -> None:
        """Begin a pass over the node's slots if one is due, and let the queries know of the lane.

        A replica begins once it has caught up with its primary.
        """
        primary, reply = self._primary(lane), None
        is_due = self.passes is not None and self.passes.is_due
        if primary is not None and (is_due or self.ranges.is_untouched):
            reply = await self._control.unless_stopped(primary.caught_up(lane))
            if self._control.is_stopped:
                return
        elif is_due:
            (reply,) = await lane.run(guard.cluster_nodes())
            self.commands += 1
        if self.passes is not None and is_due:
            self._use_ranges(self._new_ranges(self.passes.begin(reply)))
        if self.source is not None:
            self.source.moves_silently = primary is not None and self.passes is not None
            await self.source.use_lane(lane)

    def _primary(self, lane: Lane) -> Primary | None:
        """Return the primary of the replica that answers on this lane; None where it is no replica to be followed."""
        return self.node.primary if lane.server.role == "replica" else None

    async def _prove_cursors(self) -> None:
        """Scan without made-up cursors where they mean nothing, from the beginning if it was begun with them."""
        connection = self.node.connection
        dialect = self.ranges.dialect if self.passes is None else self.passes.dialect
        if dialect.is_ordered and not (self.passes is None and self.ranges.is_done):
            self.commands += await prove_cursors(connection, self.node.size)
        if connection.cursors_are_positions is not False:
            return
        if dialect.is_ordered:
            self._scan_plainly(ScanNote.UNPROVEN)
        self._notes[ScanNote.UNPROVEN] = None

    def _scan_plainly(self, why: ScanNote) -> None:
        """Begin again without positions."""
        if self.passes is not None:
            self._notes[ScanNote.PLAIN_NODE if why is ScanNote.PLAIN else why] = None
            self.passes.restart(Dialect.OPAQUE)
            return
        if why is not ScanNote.UNPROVEN or not self.ranges.is_untouched or self.node.first_cursor:
            self._restart(why)
        self.reset(opaque=True)

    def _use_ranges(self, ranges: Ranges) -> None:
        """Scan these ranges from now on; nothing may be under way."""
        self._was_resized = self.was_resized
        self.ranges = ranges
        self._beginning = BeginningWatch()
        self._stuck = 0

    def _new_ranges(self, node: ScanNode) -> Ranges:
        return node.ranges(Ranges)

    def _new_filter(self, most: int) -> KeyFilter:
        """Return what decides which listed keys are delivered, and remembers so many of them."""
        return SlotFilter(most)

    def take_waiting(self) -> list[bytes]:
        """Forget all keys about which something is still to be asked, and return them."""
        return [] if self.source is None else self.source.take_waiting()

    async def _drive(self, lane: Lane) -> None:
        """Ask until nothing is left to ask."""
        await self._ask(lane, lambda: self.is_done)
        if self.is_whole:
            await self._conclude(lane)

    async def _ask(self, lane: Lane, is_over: Callable[[], bool]) -> None:
        """Keep as many requests under way as the pace allows until it is over and all of them are answered."""
        requests = self._requests
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
                    await self._control.sleep(self.pacer.wait_s(self._loop.time()))
                continue
            first = requests[0]
            has_waited = not first.replies.done()
            if has_waited:  # no longer than until another request may be sent
                wait_s = self.pacer.wait_s(self._loop.time())
                may_send = wait_s > 0 and self._may_send and requests.working < self.pacer.depth
                if may_send and (self._has_queries or self._idle_range() is not None):
                    await asyncio.wait([first.replies], timeout=wait_s)
                    if not first.replies.done():
                        continue
                else:
                    await first.replies
            self._process(lane, has_waited=has_waited)
            await self._control.yield_loop(has_waited=has_waited)

    @property
    def _may_send(self) -> bool:
        return not (self._control.is_held or self._control.is_stopped or self._is_view_due)

    def _idle_range(self) -> Range | None:
        """The range to scan next: of as many as may be under way the one with most left, so that all end together."""
        if self._control.is_finishing:
            return None
        scanned = self._requests.scanned
        idle = [one for one in self.ranges.under_way(self.pacer.depth) if one not in scanned]
        return max(idle, key=lambda one: one.end - one.position, default=None)

    def _fill(self, lane: Lane) -> None:
        """Send whatever may be sent now."""
        if not self._may_send:
            return
        now = self._loop.time()
        self.pacer.pace = self._control.pace
        while self.pacer.wait_s(now) <= 0 and self._send_next(lane, now):
            pass
        if self._requests.working and now >= self.probe.due_at and not self._is_alone:
            self._send_probe(lane, now)

    def _send_next(self, lane: Lane, now: float) -> bool:
        """Send the next SCAN and the queries that are due in one write; return whether there was anything to send."""
        if self._requests.working >= self.pacer.depth or (self._is_alone and self._requests):
            return False
        source = self.source
        count = max(1, min(self.pacer.count, self._most_count, int(PAGE_BYTES / max(1.0, self._name_bytes))))
        is_behind = source is not None and source.unsent > count * max(MAX_WAITING_COUNTS, 2 * self.pacer.depth)
        one = None if is_behind else self._idle_range()
        has_turn = one is None or not self._is_alone
        queries = source.next_write(QUERIES_PER_COUNT * count) if source is not None and has_turn else None
        if one is None and queries is None and source is not None and source.waiting and not self._requests.working:
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
        sent_count = 0 if one is None else count
        request = Request("keys", now, lane.run(*commands), one, sent_count, queries)
        self._requests.append(request)
        self.commands += sum([command.replies for command in commands])
        self.pacer.add_sent(request.cost_keys, now)
        return True

    def _send_probe(self, lane: Lane, now: float) -> None:
        size, clock = self.probe.commands(now)
        self._requests.append(Request("size", now, lane.run(size)))
        self.commands += 1
        if clock is not None:
            self._requests.append(Request("clock", now, lane.run(clock)))
            self.commands += 1
        if self.passes is None or not self.passes.wants_view(now, is_over=self.ranges.is_done):
            return
        if self._primary(lane) is not None:
            self._is_view_due = True
        else:
            self._requests.append(Request("slots", now, lane.run(guard.cluster_nodes())))
            self.commands += 1

    def _process(self, lane: Lane, *, has_waited: bool) -> None:
        """Process the replies to the first request; the next one goes out before its keys are delivered.

        Raises ConnectionLost, ServerBusyError, ScanRefusedError or CursorOrderError. Queries that were not answered are
        still under way then, and so asked again.
        """
        request = self._requests[0]
        replies = request.replies.result()
        now = self._loop.time()
        idle_s = self.pacer.idle_s or 0.0
        round_trip_s = now - max(request.sent_at, self._last_arrival - idle_s) if has_waited else None
        self._last_arrival = now
        counted_in, counted_out = self._counted
        self._counted = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        self.bytes_in += lane.traffic.bytes_in - counted_in
        self.bytes_out += lane.traffic.bytes_out - counted_out
        if request.is_void or request.purpose != "keys":
            self._requests.popleft()
            if not request.is_void:
                self._process_probe(request.purpose, replies[0], round_trip_s)
            return
        one, queries, fresh = request.scanned, request.queries, None
        if one is not None:
            cursor, keys = scan_page(replies.pop())
            self._stuck = self._stuck + 1 if cursor == one.cursor and cursor else 0
            if self._stuck >= STUCK_AFTER:
                raise ScanRefusedError("The server answers every SCAN with the cursor it was given.")
            if not self.ranges.dialect.is_ordered and self._beginning.observe(keys):
                raise BeginAgainError(ScanNote.BEGAN_AGAIN)
            fresh = self.ranges.advance(one, cursor, keys)
            if self._matches is not None:
                fresh = [*filter(self._matches, fresh)]
            if self.passes is not None:
                fresh = self.passes.filter.accept(fresh)
            self.keys += len(keys)
            if keys:
                self._name_bytes = max(sum(map(len, keys)) / len(keys), 0.9 * self._name_bytes)
        self._requests.popleft()
        cost_keys = request.cost_keys
        self.pacer.observe(cost_keys, round_trip_s)
        self.probe.add_spent(len(replies) + (one is not None), cost_keys, self.pacer.cost_us(cost_keys))
        if fresh and self.source is not None:
            self.source.add_page(fresh)
        self._fill(lane)
        if queries is not None:
            queries.answered(replies, None if round_trip_s is None else round_trip_s - (self.pacer.idle_s or 0.0))
        self._answers += 1
        if fresh:
            self.delivered += len(fresh)
            self._sink(fresh)

    def _process_probe(self, purpose: str, reply: Reply, round_trip_s: float | None) -> None:
        if purpose == "clock":
            self.probe.observe_clock(reply, self.pacer)
            return
        if purpose == "slots":
            if self.passes is not None:
                self.passes.observe(reply, self.ranges)
            return
        if round_trip_s is not None:
            self.pacer.observe_idle(round_trip_s)
        note = self.probe.observe_size(reply, has_keys=self.keys > 0)
        if note is not None:
            self._notes[note] = None

    async def _observe_primary(self, lane: Lane) -> None:
        """Learn the view of the primary whose replica is scanned; nothing is under way. Raises as `followed` does."""
        self._is_view_due = False
        primary = self._primary(lane)
        if primary is not None and self.passes is not None and not self._control.is_stopped:
            reply = await self._control.unless_stopped(primary.followed(lane))
            if reply is not None:
                self.passes.observe(reply, self.ranges, is_of_primary=True)

    async def _confirm(self, lane: Lane) -> None:
        """Make sure that the replica that was scanned alone has followed its primary; raises ConnectionLost if not."""
        primary = self._primary(lane)
        if primary is None or self.passes is not None:
            return
        try:
            await self._control.unless_stopped(primary.followed(lane))
        except ServerBusyError:
            self._notes[ScanNote.UNCONFIRMED] = None
        except ConnectionLost:
            self._restart(ScanNote.REPLICA_LEFT)
            raise

    async def _conclude(self, lane: Lane) -> None:
        """Ask a last time how many keys there are, what it cost, and, where in doubt, how large the table is."""
        self._send_probe(lane, self._loop.time())
        commands = []
        if self.ranges.dialect is Dialect.STANDALONE and not self.ranges.table.is_sure and self.ranges.table.bits > 1:
            rng = new_random("table")
            random_cursors = [self.ranges.dialect.cursor(rng.randrange(POSITION_END)) for _ in range(TABLE_PROBES)]
            commands = [guard.scan(cursor, count=1) for cursor in random_cursors]
        replies = await lane.run(*commands)
        while self._requests:
            await asyncio.wait([self._requests[0].replies])
            self._process(lane, has_waited=False)
        self.commands += len(commands)
        cursors = []
        for reply in replies:
            with contextlib.suppress(ScanRefusedError, ServerBusyError):
                cursors.append(scan_page(reply)[0])
        self.ranges.table.observe_random(cursors)
        if self._is_view_due:
            await self._observe_primary(lane)
        await self._confirm(lane)
