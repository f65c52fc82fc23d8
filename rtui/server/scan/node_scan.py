"""One node's part of a scan: turns among other nodes, passes over slots, lost connections, changed servers.

The pipeline decides which requests to send on the lane, and the listing (`listing.py`) processes the pages.

Before a cursor is made up, replies prove that the server's cursors are positions, whatever the server says it is.
Random cursors, ranges side by side and progress rest on cursors that are reversed bucket numbers (`cursor.py`). A
server that calls itself a standalone Redis may be a proxy for several, whose cursors hold the number of a shard as
well. So a few cursors at random places are asked for a page of one key, in one write, each of them twice: the second
time with a bit changed that is above all buckets. If cursors are positions, both pages are the same, each returned
cursor is ahead of the one sent, and hardly any is 0, the end of the scan. A server that fails is scanned from cursor 0
with the cursors that it returns, one call at a time, without an estimate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.scan.cursor import POSITION_END, Dialect, dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import BeginAgainError, scan_page
from rtui.server.scan.pipeline import ScanPipeline
from rtui.server.scan.progress import NodeProgress, ScanNote, ScanState, Speedometer
from rtui.server.scan.ranges import CursorOrderError
from rtui.server.scan.run_control import RunControl
from rtui.server.wall_clock import new_random
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection, Lost
from rtui.server.wire.errors import ConnectionLost, Reply, RtuiError, ScanRefusedError, ServerBusyError
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import backoff_s

MAX_BEGINNINGS: Final = 3
"""Restarts of a scan, after the server has lost its place in it, before the node is given up."""

MAX_LOSSES: Final = 10
"""Lanes lost in a row without an answer before the node is given up, after about half a minute of pauses."""

QUEUED: Final = SafeText("other nodes are scanned first")
"""Why a node that has not had its turn is waiting."""


class NodeScan:
    """Scans one node, over pauses and losses of the connection, until all keys are delivered or it is stopped."""

    def __init__(
        self,
        pipeline: ScanPipeline,
        control: RunControl,
        *,
        restart: Callable[[ScanNote], object],
        notes: dict[ScanNote, None],
    ) -> None:
        """`restart` is called when all keys are to be delivered anew, and `notes` are for the reader.

        In a cluster each `run` is one pass over the slots that the node is to visit, from its first cursor on.
        """
        self.pipeline, self.listing = pipeline, pipeline.listing
        self.node = pipeline.listing.node
        self.run_id: str | None = None
        """The run of the server that its cursors come from, if it is known."""
        self.waits_for: SafeText | None = None
        """Why nothing is sent just now, for a lost connection or a busy server."""
        self.waited_for: SafeText | None = None
        """The reason of the last wait, until the scan gets on: the node may just be trying again."""
        self.failure: RtuiError | None = None
        """Why the scan of this node has ended early."""
        self._control, self._restart, self._notes = control, restart, notes
        self._loop = asyncio.get_running_loop()
        self._speed = Speedometer()
        self.is_queued = False
        """Whether it waits for its turn while other nodes are scanned, or is scanned by another process."""
        self._lane: Lane | None = None
        self._server_name: str | None = None
        """Product and version of the server that it has begun with, or has begun again with."""
        self._asked_at: SafeText | None = None
        """`host:port` of the server that answers on the lane."""
        self._generation = -1
        """The generation of the connection that the lane belongs to."""
        self._lost_places = 0

    @property
    def is_away(self) -> bool:
        """Whether it does not answer just now, or is not scanned any more."""
        return self.failure is not None or self.waits_for is not None or not self.node.connection.is_online

    @property
    def fraction(self) -> float | None:
        """The share done, 0 … 1, None if unknown; listed keys that wait for their facts are not done."""
        listed, waiting = self.listing.fraction(self.pipeline.probe.size), self.pipeline.waiting
        if not listed or not waiting:
            return listed
        return listed * max(0.0, 1 - waiting / max(1, self.listing.delivered))

    @property
    def unlisted(self) -> set[int]:
        """If cursors go slot by slot: the slots with keys that are not listed yet, or still wait for queries."""
        return self.listing.unlisted(self.pipeline.waiting)

    def progress(self, of_scan: ScanState, elapsed_s: float) -> NodeProgress:
        """Return the node's progress, in a scan that is in state `of_scan` and has been under way for `elapsed_s`
        seconds."""
        now, fraction = self._loop.time(), self.fraction
        state, waits_for = of_scan, self.waits_for or (QUEUED if self.is_queued else None)
        if self.failure is not None:
            state = ScanState.FAILED
        elif of_scan is not ScanState.READY and self.pipeline.is_done:
            state = ScanState.DONE
        elif of_scan in {ScanState.RUNNING, ScanState.WAITING}:
            state = ScanState.RUNNING if waits_for is None else ScanState.WAITING
        if self._speed.is_due(now):
            self._speed.mark(now, self.listing.delivered, fraction or 0.0)
        is_going = state is ScanState.RUNNING
        return NodeProgress(
            id=self.node.id,
            label=self.node.connection.target.label,
            state=state,
            fraction=1.0 if state is ScanState.DONE else fraction,
            keys=self.listing.delivered,
            keys_per_s=self._speed.speed(now, self.listing.delivered, fraction or 0.0)[0] if is_going else 0.0,
            cost=self.pipeline.cost(elapsed_s),
            waits_for=waits_for,
            failure=None if self.failure is None else self.failure.happened,
        )

    def reset(self, *, opaque: bool = False) -> None:
        """Begin again from the start; replies still under way are ignored.

        The cursor dialect is determined anew if another version of the server answers now.
        """
        dialect = Dialect.OPAQUE if opaque else self.listing.ranges.dialect
        if not opaque and self._lane is not None and self._server_name not in {None, self._lane.server.full_name}:
            self._server_name = self._lane.server.full_name
            dialect = dialect_of(self._lane.server)
        self.listing.begin_anew(dialect)
        self.pipeline.reset()

    async def run(self) -> None:
        """Scan to the end; raises ScanRefusedError, and an RtuiError if no lane can be opened any more.

        After MAX_LOSSES lanes lost in a row without an answer no further one is opened: the server, or something before
        it, hangs up over our requests. A busy server is waited for until it answers.
        """
        attempt = losses = 0
        while not (self.pipeline.is_done or self._control.is_stopped):
            state = self.node.connection.state
            if isinstance(state, Lost) and state.reason is not None:
                self.waits_for = self.waited_for = state.reason.happened
            await self._control.unless_stopped(self.node.connection.bulk_due())
            answered = self.pipeline.answers
            try:
                await self._take_turn()
                self.waited_for = None
            except (ConnectionLost, ServerBusyError) as trouble:
                if self.pipeline.answers > answered:
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
                self.pipeline.is_alone |= lost.note is not ScanNote.BEGAN_AGAIN
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
                await self.pipeline.drive(lane)
                if self.pipeline.is_done:
                    await self.pipeline.conclude(lane)
                    await self._confirm(lane)
            finally:
                self.pipeline.requests.drop()

    def _switch_to(self, lane: Lane) -> None:
        """Go on with a lane that was opened; begin again if another run of a server answers on it."""
        self.pipeline.use_lane(lane)
        is_first, self._lane = self._lane is None, lane
        is_another = self._server_name not in {None, lane.server.full_name}
        self._server_name = self._server_name or lane.server.full_name
        before, self.run_id = self.run_id, lane.server.run_id
        was_at, self._asked_at = self._asked_at, lane.target.label
        has_left = self.node.primary is not None and was_at not in {None, self._asked_at}
        is_same_connection = self._generation == self.node.connection.generation
        self._generation = self.node.connection.generation
        passes = self.listing.passes
        if is_first:
            before = self.node.run_id or self.run_id
        elif passes is not None:
            is_unsure = before is None and not is_same_connection
            if is_another or is_unsure or before != self.run_id:
                self._notes[ScanNote.NODE_REPLICA_LEFT if has_left else ScanNote.NODE_RESTARTED] = None
                self._server_name = lane.server.full_name
                passes.restart(dialect_of(lane.server) if is_another else passes.dialect)
            return
        elif self.listing.ranges.is_untouched:
            if is_another:
                self.reset()
            return
        is_known = before is not None and self.run_id is not None
        if not (is_known or is_another):
            if not is_first:
                self._notes[ScanNote.UNSURE] = None
        elif is_another or before != self.run_id:
            self._restart(ScanNote.REPLICA_LEFT if has_left else ScanNote.RESTARTED)

    async def _prepare_lane(self, lane: Lane) -> None:
        """Begin a pass over the node's slots if one is due, and let the queries know of the lane.

        A replica begins once it has caught up with its primary.
        """
        primary, passes, reply = self.node.primary_on(lane), self.listing.passes, None
        is_due = passes is not None and passes.is_due
        if primary is not None and (is_due or self.listing.ranges.is_untouched):
            reply = await self._control.unless_stopped(primary.caught_up(lane))
            if self._control.is_stopped:
                return
        elif is_due:
            (reply,) = await lane.run(guard.cluster_nodes())
            self.pipeline.commands += 1
        if is_due:
            self.listing.begin_pass(reply)
        source = self.node.queries
        if source is not None:
            await source.use_lane(lane)

    async def _prove_cursors(self) -> None:
        """Fall back to the server's own cursors if they are not positions, from the beginning if made-up ones were
        used."""
        connection, ranges, passes = self.node.connection, self.listing.ranges, self.listing.passes
        dialect = ranges.dialect if passes is None else passes.dialect
        if dialect.is_ordered and not (passes is None and ranges.is_done):
            self.pipeline.commands += await prove_cursors(connection, self.node.size)
        if connection.cursors_are_positions is not False:
            return
        if dialect.is_ordered:
            self._scan_plainly(ScanNote.UNPROVEN)
        self._notes[ScanNote.UNPROVEN] = None

    def _scan_plainly(self, why: ScanNote) -> None:
        """Begin again with the server's own cursors, without positions."""
        passes = self.listing.passes
        if passes is not None:
            self._notes[ScanNote.PLAIN_NODE if why is ScanNote.PLAIN else why] = None
            passes.restart(Dialect.OPAQUE)
            return
        if why is not ScanNote.UNPROVEN or not self.listing.ranges.is_untouched or self.node.first_cursor:
            self._restart(why)
        self.reset(opaque=True)

    async def _confirm(self, lane: Lane) -> None:
        """Make sure that the replica that was scanned alone has followed its primary; raises ConnectionLost if not."""
        primary = self.node.primary_on(lane)
        if primary is None or self.listing.passes is not None:
            return
        try:
            await self._control.unless_stopped(primary.followed(lane))
        except ServerBusyError:
            self._notes[ScanNote.UNCONFIRMED] = None
        except ConnectionLost:
            self._restart(ScanNote.REPLICA_LEFT)
            raise


PLACES: Final = 6

MOST_ENDS: Final = 3
"""Random places at most where SCAN may return 0: four do so by chance once in 65,000 writes with 128 buckets."""

MOST_CHANGED: Final = 1
"""Random places at most that may return two different pages, since keys come and go between two commands."""

ABOVE_BUCKETS: Final = 1 << 62
"""The bit that is changed: no table has as many buckets."""

ATTEMPTS: Final = 2
"""Tries before cursors are judged not to be positions."""

PROVED_FROM: Final = 250
"""Smaller databases are neither cut into ranges nor sampled."""


def places(dialect: Dialect, rng: Random) -> list[int]:
    """Return the cursors to prove: 0 and random ones, or only 0 if cursors go slot by slot, as a node has few slots."""
    random_places = [dialect.cursor(rng.randrange(POSITION_END)) for _ in range(PLACES)]
    return [0, *random_places] if dialect is Dialect.STANDALONE else [0]


def are_positions(dialect: Dialect, cursors: Sequence[int], replies: Sequence[Reply]) -> bool:
    """Return whether these pairs of SCAN replies, to each cursor and to the one with the changed bit, prove positions.

    Raises ServerBusyError.
    """
    try:
        pages = [scan_page(reply) for reply in replies]
        reached = [dialect.reached(cursor) for cursor, _ in pages]
    except (ScanRefusedError, ValueError):
        return False
    ends = sum(cursor == 0 for cursor, _ in pages[2::2])
    changed = sum(one != other for one, other in zip(pages[::2], pages[1::2], strict=True))
    are_ahead = all(dialect.position(sent) < now for sent, now in zip(cursors, reached[::2], strict=True))
    return are_ahead and ends <= MOST_ENDS and changed <= (MOST_CHANGED if len(cursors) > 1 else 0)


def is_refused(reply: Reply) -> bool:
    """Whether SCAN is not answered even from the beginning, so that nothing is told about cursors."""
    try:
        scan_page(reply)
    except BeginAgainError:
        return False
    except ScanRefusedError:
        return True
    return False


def is_last_page(reply: Reply) -> bool:
    """Whether a scan from the beginning has ended with this page. Raises ServerBusyError."""
    try:
        return scan_page(reply)[0] == 0
    except ScanRefusedError:
        return False


def as_proven(node: ScanNode) -> ScanNode:
    """Return the node to scan, from its first page's cursor without ranges if its cursors are proven not to be
    positions."""
    if node.connection.cursors_are_positions is not False:
        return node
    return replace(node, dialect=Dialect.OPAQUE, spans=None)


def known_dialect(connection: Connection) -> Dialect:
    """Return how the server counts its cursors: opaque if they are proven not to be positions."""
    return Dialect.OPAQUE if connection.cursors_are_positions is False else dialect_of(connection.server)


@for_purpose(Purpose.SCAN)
async def prove_cursors(connection: Connection, size: int | None) -> int:
    """Find out whether cursors are positions, unless a keyspace of `size` keys (None: unknown) is too small to need it.

    Returns the number of commands sent, 0 if the answer is already known. A server that is busy or refuses SCAN, and a
    keyspace that turns out to be small, leave it unknown. Raises ConnectionLost.
    """
    dialect = dialect_of(connection.server)
    is_known = connection.cursors_are_positions is not None or not dialect.is_ordered
    if is_known or (size is not None and size < PROVED_FROM):
        return 0
    generation, first_page, commands = connection.generation, guard.scan(0, count=PROVED_FROM), 0
    for _ in range(ATTEMPTS):
        cursors = places(dialect, new_random("cursor proof"))
        asked = [guard.scan(one, count=1) for cursor in cursors for one in (cursor, cursor ^ ABOVE_BUCKETS)]
        replies = await connection.run(*asked, *(() if size is not None else (first_page,)))
        commands += len(replies)
        try:
            found = are_positions(dialect, cursors, replies[: len(asked)])
            if not found and (is_refused(replies[0]) or (size is None and is_last_page(replies[-1]))):
                return commands
        except ServerBusyError:
            return commands
        if generation != connection.generation:  # another server may have answered
            return commands + await prove_cursors(connection, size)
        connection.cursors_are_positions = found
        if found:
            break
    return commands
