"""Connection: two lanes to one server, one for the user's requests and one for bulk work, both reconnected when lost.

A task supervises the interactive lane: it sends PING while nothing else is sent, and when the lane ends it makes a new
one, after pauses that grow with each failure. The bulk lane is made when a caller asks for it, and closed whenever the
interactive one ends, so that both always reach the same server.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.command import Command, Secret
from rtui.server.wire.command_log import CommandLog, Purpose, SentCounts, for_purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, Reply, RtuiError, ServerError
from rtui.server.wire.identity import NoTouch, ServerIdentity, ServerStamp
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import (
    HEALTHY_S,
    Backoff,
    BulkLane,
    LaneOpener,
    Locator,
    Logins,
    Pause,
    identify,
    longest_pause_s,
)
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.supervised_tasks import start_supervised
from rtui.server.wire.target import Target

HEARTBEAT_S: Final = 5.0
"""An idle lane sends PING this often, so that a vanished server is noticed without a request of the user."""


DEMOTED_ATTEMPTS: Final = 15
"""The attempts at a first connection to a primary that is a replica, over about 15 s: failovers seldom take longer."""


@dataclass(frozen=True)
class Online:
    """Connected and ready."""

    silent_s: float = 0.0
    """The time for which the server has owed a reply without sending anything."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Not connected, yet or any more; it reconnects by itself. `attempt` counts the failed attempts from 1 on."""

    reason: RtuiError | None
    attempt: int
    retry_at: float
    """The time of the next attempt on the clock of the event loop."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed by rtui for good."""

    reason: RtuiError | None = None
    """A fault of rtui itself, if that is the cause."""


State: TypeAlias = Online | Lost | Closed


def why_lost(state: State) -> str:
    """Return the reason why nothing can be sent, as a sentence."""
    if isinstance(state, Closed):
        return "It was closed by rtui." if state.reason is None else str(state.reason)
    reason = state.reason if isinstance(state, Lost) else None
    return "It was never open." if reason is None else reason.happened


class Connection:
    """Two lanes to one target. `run` fails at once while the connection is lost; `online` and `bulk` wait."""

    def __init__(
        self,
        target: Target,
        *,
        heartbeat_s: float = HEARTBEAT_S,
        healthy_s: float = HEALTHY_S,
        rng: Random | None = None,
        log: CommandLog | None = None,
        locator: Locator | None = None,
        logins: Logins | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.log = CommandLog() if log is None else log
        self.sent = SentCounts()
        self._opener = LaneOpener(target, self.log, self.sent, locator, logins)
        self.state: State = Lost(None, 0, 0.0)
        self.revision = 0
        """Raised by every change of `state` or `server`."""
        self.on_change: list[Callable[[], object]] = []
        """Callbacks, without arguments, after each such change."""
        self.server = ServerIdentity()
        self.no_touch = NoTouch.UNSUPPORTED
        """Whether reading leaves idle times and frequencies unchanged."""
        self.own_reads = OwnReads()
        """The keys that rtui has read through this connection without NO-TOUCH, which counts as a use."""
        self.generation = 0
        """The number of times the connection was made: after each, facts about the server may not hold any more."""
        self.redirects = 0
        self.cursors_are_positions: bool | None = None
        """Whether made-up cursors of SCAN were proven to be positions; None before that, and after each reconnect."""
        self.bulk_turns = 0
        """The number of runs that may use the bulk lane."""
        self._heartbeat_s = heartbeat_s
        rng = rng if rng is not None else Random()
        self.locator = locator
        """Finds the server of a service; else None."""
        if logins is not None:
            logins.on_renewed = self._log_in_again
        self._main: Lane | None = None
        self._main_backoff = Backoff(rng, healthy_s)
        self._bulk = BulkLane(self._opener, Backoff(rng, healthy_s))
        self._online = asyncio.Event()
        self._pauses = Pause(sleep)
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def target(self) -> Target:
        return self._opener.target

    @property
    def logins(self) -> Logins | None:
        return self._opener.logins

    @property
    def notes(self) -> tuple[SafeText, ...]:
        return self._opener.notes

    @property
    def is_online(self) -> bool:
        return isinstance(self.state, Online)

    @property
    def round_trip_s(self) -> float:
        """The round-trip time of the link in seconds; 0.0 while it is unknown."""
        return 0.0 if self._main is None or self._main.round_trip_s == math.inf else self._main.round_trip_s

    @property
    def link(self) -> State:
        """The state, with the time for which the server has been silent."""
        if not self.is_online:
            return self.state
        return Online(max((lane.silent_s for lane in self._lanes()), default=0.0))

    def _lanes(self) -> tuple[Lane, ...]:
        return tuple(lane for lane in (self._main, self._bulk.lane) if lane is not None)

    async def open(self) -> None:
        """Connect for the first time, and wait while the server loads; raises `ConnectFailure`, `ConnectionLost`."""
        lane = await self._make_interactive(None)
        self._run(self._supervise(lane))

    def start(self) -> None:
        """Connect in the background, again and again until that works; `tried` waits for the first attempt."""
        self._run(self._begin())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._supervisor = start_supervised(work, name="rtui connection", failed=lambda why: self._end(Closed(why)))

    async def _begin(self) -> None:
        try:
            lane = await self._make_interactive(None)
        except RtuiError as failed:
            self._main_backoff.ended()
            lane = await self._make_interactive(failed)
        await self._supervise(lane)

    async def tried(self) -> None:
        """Wait until the connection is online, has failed once, or is closed."""
        tried = asyncio.Event()
        self.on_change.append(tried.set)
        try:
            while isinstance(self.state, Lost) and self.state.reason is None:
                tried.clear()
                await tried.wait()
        finally:
            self.on_change.remove(tried.set)

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        """Send on the interactive lane and return the replies in order; `ConnectionLost` at once while it is lost."""
        replied = self._interactive_lane().run(*commands)
        if self.server.cluster_enabled:
            replied.add_done_callback(self._count_redirects)
        return replied

    def _count_redirects(self, replied: asyncio.Future[list[Reply]]) -> None:
        if not replied.cancelled() and replied.exception() is None:
            found = (reply for reply in replied.result() if isinstance(reply, ServerError))
            self.redirects += sum(error.code == "MOVED" for error in found)

    @property
    def info(self) -> Mapping[str, Reply]:
        """The latest replies to INFO by section; empty while the connection is lost."""
        return {} if self._main is None else self._main.info

    async def online(self) -> None:
        """Wait until the connection is online; raises `ConnectionLost` once it is closed for good."""
        while not self.is_online:
            if isinstance(self.state, Closed):
                raise ConnectionLost(why_lost(self.state))
            await self._online.wait()

    async def bulk(self) -> Lane:
        """Return the bulk lane, opened at the first call and again after a loss; waits while offline.

        A lost lane is opened again after a pause, which grows with each loss in a row.
        """
        while True:
            await self.bulk_due()
            lane = await self.try_bulk()
            if lane is not None:
                return lane

    async def bulk_due(self) -> None:
        """Wait until the bulk lane is open, or may be opened."""
        while True:
            await self.online()
            pause_s = self._bulk.pause_s()
            if pause_s <= 0:
                return
            await self._pauses.wait(pause_s)
            self._bulk.end_pause()

    async def try_bulk(self) -> Lane | None:
        """Return the bulk lane, opened if necessary; None if that does not work now."""
        return await self._bulk.opened(lambda: self._main)

    def close_bulk(self) -> None:
        """Close the bulk lane unless a run uses it; the next call of `bulk` opens another one."""
        if not self.bulk_turns:
            self._bulk.close()

    @for_purpose(Purpose.SERVER)
    async def refresh(self) -> ServerIdentity:
        """Read the server's identity again; another run id counts as another connection."""
        lane = self._interactive_lane()
        lane.server = await identify(lane)
        if lane is self._main:
            if lane.server.run_id != self.server.run_id:
                self._count_generation()
            self.server = lane.server
            self._changed()
        return self.server

    def stamp(self, now_s: float) -> ServerStamp:
        """Return a stamp for data read now, in seconds since the epoch."""
        return ServerStamp(now_s, self.server.run_id, self.generation)

    def forget_denied(self) -> None:
        """Allow commands that the server has denied to be sent once more."""
        for lane in self._lanes():
            lane.refusals.forget()

    def reconnect(self, why: SafeText) -> None:
        """Drop the server and connect again, to the address from the locator; `why` is a sentence."""
        if self._main is not None:
            self._main.fail(ConnectionLost(why))

    def retry_now(self) -> None:
        self._pauses.skip()

    async def close(self) -> None:
        """Close both lanes, also one that is just being opened; returns when no task runs any more."""
        supervisor, self._supervisor = self._supervisor, None
        self._end(Closed())
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.gather(supervisor, return_exceptions=True)
        await self._opener.close()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next turn

    def _end(self, state: Closed) -> None:
        """Close everything for good, after `close` or a failure of the supervisor, so that no caller waits forever."""
        if isinstance(self.state, Closed):
            return
        self._set_state(state)
        self._opener.stop(why_lost(state))
        for lane in self._lanes():
            lane.close()
        self._main = self._bulk.lane = None
        self._pauses.skip()

    def _count_generation(self) -> None:
        """Count another connection; proven facts about the server do not hold for it."""
        self.generation += 1
        self.cursors_are_positions = None

    def _interactive_lane(self) -> Lane:
        if self._main is None:
            raise ConnectionLost(why_lost(self.state))
        return self._main

    def _log_in_again(self, target: Target) -> None:
        for lane in self._lanes():
            if lane.is_open:
                _log_in_again(lane, target)

    def _main_ended(self, closed: asyncio.Future[ConnectionLost]) -> None:
        if isinstance(self.state, Closed):
            return
        self._main = None
        if self._bulk.lane is not None:
            self._bulk.lane.close()
        self._set_state(Lost(closed.result(), 0, asyncio.get_running_loop().time()))

    async def _supervise(self, lane: Lane) -> None:
        """Keep the interactive lane alive, and make a new one whenever it has ended."""
        while True:
            while lane.is_open:
                sent = lane.traffic.commands
                await asyncio.wait([lane.closed], timeout=self._heartbeat_s)
                if lane.is_open and lane.traffic.commands == sent:
                    with sent_for(Purpose.HEARTBEAT):
                        lane.run(guard.ping())
            self._main_backoff.ended(lane.worked_s)
            lane = await self._make_interactive(lane.closed.result())

    async def _make_interactive(self, reason: RtuiError | None) -> Lane:
        """Make an interactive lane, with a pause before each attempt but the very first.

        `reason` is the end of the last lane; without one only a temporary failure leads to another attempt.
        """
        is_first, attempt = reason is None, 0
        while True:
            if reason is not None:
                await self._pause(reason, attempt)
            try:
                lane = await self._opener.open()
                break
            except RtuiError as failed:
                attempt += 1
                if is_first and not _may_pass(failed, attempt):
                    raise
                self._main_backoff.ended()
                reason = failed
        self._main = lane
        self.server, self.no_touch = lane.server, lane.no_touch
        self._count_generation()
        # Runs before callers that await a reply on the lane hear of the loss, so that they see the new state.
        lane.closed.add_done_callback(self._main_ended)
        self._set_state(Online())
        return lane

    async def _pause(self, reason: RtuiError, attempt: int) -> None:
        """Set the state to `Lost`, and wait for the pause before the next attempt."""
        pause_s = self._main_backoff.pause_s(longest_pause_s(reason))
        self._set_state(Lost(reason, attempt, asyncio.get_running_loop().time() + pause_s))
        await self._pauses.wait(pause_s)

    def _set_state(self, state: State) -> None:
        self.state = state
        if isinstance(state, Lost):
            self._online.clear()
        else:
            self._online.set()
        self._changed()

    def _changed(self) -> None:
        self.revision += 1
        for call in tuple(self.on_change):
            call()


def _may_pass(failed: RtuiError, attempt: int) -> bool:
    if not isinstance(failed, ConnectFailure):
        return False
    return failed.kind.is_temporary and not (failed.kind is FailureKind.FAILOVER and attempt >= DEMOTED_ATTEMPTS)


def _log_in_again(lane: Lane, target: Target) -> None:
    """Authenticate on a lane with a new password; if that is refused, the lane is made anew."""
    with sent_for(Purpose.HANDSHAKE):
        replied = lane.run(guard.auth(target.user, target.password or Secret("")))
    replied.add_done_callback(partial(_end_if_refused, lane))


def _end_if_refused(lane: Lane, replied: asyncio.Future[list[Reply]]) -> None:
    """Close a lane whose new password was refused; the next one asks for another."""
    if not replied.cancelled() and replied.exception() is None and isinstance(replied.result()[0], ServerError):
        lane.fail(ConnectionLost("The server has refused the new password."))
