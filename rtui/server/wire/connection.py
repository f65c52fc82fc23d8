"""Connection: two lanes to one server, one for the user's requests and one for bulk work, both reconnected when lost.

A task supervises the interactive lane: it sends PING while nothing else is sent, and when the lane ends it makes a new
one, after pauses that grow with each failure (exponential backoff with full jitter): the longest possible pause doubles
from 0.25 s to 15 s, and the pause is drawn evenly between 0 and that, so that many clients of one server do not come
back at the same moment. The bulk lane is made when a caller asks for it, and closed whenever the interactive one ends,
so that both always reach the same server.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, NoReturn, Protocol, TypeAlias

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.wire.command_log import CommandLog, Purpose, SentCounts, for_purpose, sent_for
from rtui.server.wire.dial import ServerAddress
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, RtuiError
from rtui.server.wire.failures import lost_failure
from rtui.server.wire.handshake import HandshakeOutcome, handshake_and_identify, identify
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.lane import CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S, Lane
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.replies import Reply, ServerError
from rtui.server.wire.secret import Secret
from rtui.server.wire.supervised_tasks import start_supervised
from rtui.server.wire.target import Target

FIRST_PAUSE_S: Final = 0.25
"""The longest that the first pause can be."""

LONGEST_PAUSE_S: Final = 15.0
"""No pause is longer, so that a server that is back is noticed soon."""

LONGEST_LOADING_PAUSE_S: Final = 2.0
"""While a server loads its data it reports how far it is, so frequent attempts cost nothing and show progress."""

LONGEST_REFUSED_PAUSE_S: Final = 120.0
"""A server that refuses the user logs each attempt, and somebody has to change that first."""

REFUSING_USER: Final = frozenset(
    {FailureKind.NOAUTH, FailureKind.WRONGPASS, FailureKind.NOPERM, FailureKind.PROTECTED, FailureKind.DATABASE}
)

HEALTHY_S: Final = 5.0
"""A connection that still brings replies this long after its handshake is healthy: the count of failures restarts."""


def backoff_s(attempt: int, rng: Random, longest_s: float = LONGEST_PAUSE_S) -> float:
    """Draw the pause after failed attempt number `attempt`, from 1 on."""
    return rng.uniform(0.0, min(longest_s, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16)))


class Backoff:
    """Counts the failed attempts at one connection, and draws the pause before the next attempt.

    A handshake that works proves little: the connection may break at the first large reply. Only one that brings
    replies for `healthy_s` seconds resets the count.
    """

    def __init__(self, rng: Random, healthy_s: float = HEALTHY_S) -> None:
        self.failed = 0
        """Attempts in a row without a healthy connection."""
        self._rng = rng
        self._healthy_s = healthy_s

    def ended(self, worked_s: float | None = None) -> None:
        """Count an attempt, with how long after the handshake replies still came; None for none at all."""
        self.failed = 0 if worked_s is not None and worked_s >= self._healthy_s else self.failed + 1

    def pause_s(self, longest_s: float = LONGEST_PAUSE_S) -> float:
        """Draw the pause before the next attempt, another one at each call."""
        return backoff_s(max(1, self.failed), self._rng, longest_s)


HEARTBEAT_S: Final = 5.0
"""An idle lane sends PING this often, so that a vanished server is noticed without a request of the user."""


@dataclass(frozen=True)
class Online:
    """Connected and ready."""

    silent_s: float = 0.0
    """How long the server has owed a reply without sending anything."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Not connected, yet or any more; it reconnects by itself. `attempt` counts the failed attempts from 1 on."""

    reason: RtuiError | None
    attempt: int
    retry_at: float
    """On the clock of the event loop."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed by rtui for good."""

    reason: RtuiError | None = None
    """A fault of rtui itself, if that is why."""


State: TypeAlias = Online | Lost | Closed


class Locator(Protocol):
    """Knows where a server is that may be another one after a failover."""

    async def locate(self) -> Target:
        """Return where the primary is now; raises ConnectFailure."""

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Return why the server that has answered there is not the one that is meant; None where it is."""

    async def close(self) -> None:
        """End what it needs for that."""

    @property
    def note(self) -> SafeText | None:
        """What a user should know of how the server was found; None where that was plain."""


class Logins(Protocol):
    """Makes users and passwords that expire."""

    on_renewed: Callable[[Target], object] | None
    """Called with a target that has a new password in place of one that is in use."""

    async def logged_in(self, target: Target) -> Target:
        """Return a target with the user and the password of now; raises ConnectFailure."""

    def refused(self) -> None:
        """Make another password for the next attempt."""

    def shared(self) -> Logins:
        """Return the same for one more connection, which closes only what is its own."""

    async def close(self) -> None:
        """Make no more of them."""


class Connection:
    """Two lanes to one target. `run` fails at once while the connection is lost; `online` and `bulk` wait."""

    def __init__(
        self,
        target: Target,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        heartbeat_s: float = HEARTBEAT_S,
        healthy_s: float = HEALTHY_S,
        rng: Random | None = None,
        log: CommandLog | None = None,
        locator: Locator | None = None,
        logins: Logins | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.target = target
        self.log = CommandLog() if log is None else log
        """All that is sent."""
        self.sent = SentCounts()
        """What was sent to the server on both lanes."""
        self.state: State = Lost(None, 0, 0.0)
        self.revision = 0
        """Raised by every change of `state` or `server`."""
        self.on_change: list[Callable[[], object]] = []
        """Callbacks, without arguments, after each such change."""
        self.server = ServerIdentity()
        self.no_touch = NoTouch.UNSUPPORTED
        """Whether reading leaves idle times and frequencies alone."""
        self.own_reads = OwnReads()
        """The keys that rtui has read through this connection where the server counts that as a use."""
        self.generation = 0
        """Number of times the connection was made: what is known of the server may not hold after it grew."""
        self.redirects = 0
        """Replies on the interactive lane so far that say that another node of the cluster has the key."""
        self.cursors_are_positions: bool | None = None
        """Whether made-up cursors of SCAN were proven to mean places; None before that, and after each reconnect."""
        self.bulk_turns = 0
        """How many runs have a turn to work on the lane for bulk work."""
        self._connect_timeout_s = connect_timeout_s
        self._reply_timeout_s = reply_timeout_s
        self._heartbeat_s = heartbeat_s
        rng = rng if rng is not None else Random()
        self._sleep = sleep
        self._outcome = HandshakeOutcome()
        self._locator = locator
        self.logins = logins
        """What makes the passwords, if they expire."""
        if logins is not None:
            logins.on_renewed = self._log_in_again
        self._main: Lane | None = None
        self._main_backoff = Backoff(rng, healthy_s)
        self._bulk: Lane | None = None
        self._bulk_backoff = Backoff(rng, healthy_s)
        self._bulk_due_at = 0.0
        self._openings: set[asyncio.Task[Lane]] = set()
        self._bulk_lock = asyncio.Lock()
        self._online = asyncio.Event()
        self._skip_pause = asyncio.Event()
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def notes(self) -> tuple[SafeText, ...]:
        """What a user should know of how the server was found."""
        note = None if self._locator is None else self._locator.note
        return () if note is None else (note,)

    @property
    def is_online(self) -> bool:
        """Whether `run` can send."""
        return isinstance(self.state, Online)

    @property
    def round_trip_s(self) -> float:
        """How long the link takes to the server and back, as far as it is known: 0.0 while it is not."""
        return 0.0 if self._main is None or self._main.round_trip_s == math.inf else self._main.round_trip_s

    @property
    def link(self) -> State:
        """The state, with how long the server has been silent by now."""
        if not self.is_online:
            return self.state
        return Online(max((lane.silent_s for lane in (self._main, self._bulk) if lane is not None), default=0.0))

    async def open(self) -> None:
        """Connect for the first time, and wait while the server loads; raises `ConnectFailure`, `ConnectionLost`."""
        lane = await self._make_interactive(None)
        self._supervisor = start_supervised(
            self._supervise(lane), name="rtui connection", failed=lambda failure: self._end(Closed(failure))
        )

    def start(self) -> None:
        """Connect in the background, again and again until that works; `tried` waits for the first attempt."""
        self._supervisor = start_supervised(
            self._begin(), name="rtui connection", failed=lambda failure: self._end(Closed(failure))
        )

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
        """The latest replies to INFO about the server, by section; none while the connection is lost."""
        return {} if self._main is None else self._main.info

    async def online(self) -> None:
        """Wait until the connection is online; raises `ConnectionLost` once it is closed for good."""
        while not self.is_online:
            if isinstance(self.state, Closed):
                self._raise_lost()
            await self._online.wait()

    async def bulk(self) -> Lane:
        """Return the lane for bulk work, opened at the first call and again after a loss; waits while offline.

        A lane that was lost is opened again after a pause, which grows with each loss in a row.
        """
        while True:
            await self.bulk_due()
            lane = await self.try_bulk()
            if lane is not None:
                return lane

    async def bulk_due(self) -> None:
        """Wait until the lane for bulk work is open, or may be opened now."""
        while True:
            await self.online()
            if self._bulk is not None and self._bulk.is_open:
                return
            lane, self._bulk = self._bulk, None
            if lane is not None:
                self._bulk_backoff.ended(lane.worked_s)
                self._bulk_due_at = (lane.ended_at or 0.0) + self._bulk_backoff.pause_s()
            wait_s = self._bulk_due_at - asyncio.get_running_loop().time()
            if wait_s <= 0:
                return
            await self._wait(wait_s)
            self._bulk_due_at = 0.0

    async def try_bulk(self) -> Lane | None:
        """Return the lane for bulk work, opened if need be; None where that does not work just now."""
        async with self._bulk_lock:
            if not self.is_online or self._bulk_due_at > asyncio.get_running_loop().time():
                return None
            if self._bulk is not None:
                return self._bulk if self._bulk.is_open else None
            try:
                peer = None if self._main is None else self._main.peer
                self._bulk = await self._connect(peer, self.server)
            except ConnectFailure as failed:
                self._bulk_backoff.ended()
                self._bulk_due_at = asyncio.get_running_loop().time() + self._bulk_backoff.pause_s()
                if failed.kind in {FailureKind.MAX_CLIENTS, FailureKind.WRONGPASS, FailureKind.NOAUTH}:
                    raise
            return self._bulk

    def close_bulk(self) -> None:
        """Close the lane for bulk work unless a run works on it; the next call of `bulk` opens another one."""
        if self._bulk is not None and not self.bulk_turns:
            self._bulk.close()
            self._bulk = None

    @for_purpose(Purpose.SERVER)
    async def refresh(self) -> ServerIdentity:
        """Read again what the server says of itself; another run of it counts as another connection."""
        lane = self._interactive_lane()
        lane.server = await identify(lane)
        if lane is self._main:
            if lane.server.run_id != self.server.run_id:
                self._count_generation()
            self.server = lane.server
            self._changed()
        return self.server

    def forget_denied(self) -> None:
        """Let commands that the server has denied be sent once more."""
        for lane in (self._main, self._bulk):
            if lane is not None:
                lane.forget_denied()

    def reconnect(self, why: SafeText) -> None:
        """Give the server up and make another connection, to where the locator says; `why` is a sentence."""
        if self._main is not None:
            self._main.fail(ConnectionLost(why))

    def retry_now(self) -> None:
        """Skip the rest of the pause before the next attempt."""
        self._skip_pause.set()

    async def close(self) -> None:
        """Close both lanes, also one that is just being opened; returns when no task runs any more."""
        supervisor, self._supervisor = self._supervisor, None
        self._end(Closed())
        openings = tuple(self._openings)
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.gather(supervisor, return_exceptions=True)
        for opened in await asyncio.gather(*openings, return_exceptions=True):
            if isinstance(opened, Lane):
                opened.close()
        for helper in (self._locator, self.logins):
            if helper is not None:
                await helper.close()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next turn

    def _end(self, state: Closed) -> None:
        """Close everything for good: by `close`, or when the supervisor has failed, so that no caller waits forever."""
        if isinstance(self.state, Closed):
            return
        self._set_state(state)
        for opening in self._openings:
            opening.cancel()
        for lane in (self._main, self._bulk):
            if lane is not None:
                lane.close()
        self._main = self._bulk = None
        self._skip_pause.set()

    def _count_generation(self) -> None:
        """Forget what was proven of the server: another one may answer now."""
        self.generation += 1
        self.cursors_are_positions = None

    def _interactive_lane(self) -> Lane:
        if self._main is None:
            self._raise_lost()
        return self._main

    def _raise_lost(self) -> NoReturn:
        if isinstance(self.state, Closed):
            raise ConnectionLost("It was closed by rtui." if self.state.reason is None else str(self.state.reason))
        reason = self.state.reason if isinstance(self.state, Lost) else None
        raise ConnectionLost("It was never open." if reason is None else reason.happened)

    async def _connect(self, peer: ServerAddress | None = None, before: ServerIdentity | None = None) -> Lane:
        """Attempt once to open a lane, which `close` cancels; raises `ConnectFailure`, `ConnectionLost` when closed.

        `peer` and `before` are the address and the server of the interactive lane, for another one to the same server.
        """
        if isinstance(self.state, Closed):
            self._raise_lost()
        opening = asyncio.create_task(self._open_lane(peer, before), name="rtui opening")
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            opening.cancel()
            opening.add_done_callback(_close_abandoned)  # it may have become ready at this very moment
            raise
        if isinstance(self.state, Closed):
            _close_abandoned(opening)
            self._raise_lost()
        return opening.result()

    @for_purpose(Purpose.HANDSHAKE)
    async def _open_lane(self, peer: ServerAddress | None, before: ServerIdentity | None) -> Lane:
        is_bulk = before is not None
        log = self.log.open_lane("bulk" if is_bulk else "interactive", is_bulk=is_bulk, counts=self.sent)
        if before is None:  # an interactive lane, to a server of which nothing is known yet
            self._outcome, before = HandshakeOutcome(), ServerIdentity()
            if self._locator is not None:
                self.target = await self._locator.locate()
        target = self.target if self.logins is None else await self.logins.logged_in(self.target)
        lane = await Lane.open(
            target,
            timeout_s=self._connect_timeout_s,
            reply_timeout_s=self._reply_timeout_s,
            peer=peer,
            log=log,
        )
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                lane.server = await handshake_and_identify(lane, self._outcome, before)
        except BaseException as error:  # also when cancelled: nobody else would close the lane
            lane.close()
            if isinstance(error, TimeoutError):
                happened = f"it took the connection but did not answer within {self._connect_timeout_s:g} s."
                raise lost_failure(self.target, happened, FailureKind.TIMEOUT) from None
            if self.logins is not None and isinstance(error, ConnectFailure) and error.kind in REFUSING_USER:
                self.logins.refused()
            if isinstance(error, ConnectionLost):
                raise lost_failure(self.target, error.happened, error.kind) from None
            raise
        refused = None if self._locator is None else self._locator.refuses(lane.server)
        if refused is not None:
            lane.close()
            raise refused
        lane.mark_ready()
        lane.closed.add_done_callback(self._ask_for_another_password)
        return lane

    def _ask_for_another_password(self, closed: asyncio.Future[ConnectionLost]) -> None:
        """Have another password made where the one of a lane that has ended does not count any more."""
        error = closed.result().last_error
        if self.logins is not None and error is not None and error.code == "NOAUTH":
            self.logins.refused()

    def _log_in_again(self, target: Target) -> None:
        """Have the open lanes go on as a user whose password is new; one that is refused is made anew."""
        for lane in (self._main, self._bulk):
            if lane is not None and lane.is_open:
                with sent_for(Purpose.HANDSHAKE):
                    replied = lane.run(guard.auth(target.user, target.password or Secret("")))
                replied.add_done_callback(partial(_end_if_refused, lane))

    def _main_ended(self, closed: asyncio.Future[ConnectionLost]) -> None:
        if isinstance(self.state, Closed):
            return
        self._main = None
        if self._bulk is not None:
            self._bulk.close()
        self._set_state(Lost(closed.result(), 0, asyncio.get_running_loop().time()))

    async def _supervise(self, lane: Lane) -> None:
        """Send heartbeats on the interactive lane while it is idle, and make a new lane whenever it has ended."""
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

        `reason` is why the last lane ended; without one only a failure that passes leads to another attempt.
        """
        is_first, attempt = reason is None, 0
        while True:
            if reason is not None:
                await self._pause(reason, attempt)
            try:
                lane = await self._connect()
                break
            except RtuiError as failed:
                if is_first and not (isinstance(failed, ConnectFailure) and failed.kind.is_temporary):
                    raise
                self._main_backoff.ended()
                attempt += 1
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
        longest_s = LONGEST_PAUSE_S
        if isinstance(reason, ConnectFailure) and reason.kind.is_temporary:
            longest_s = LONGEST_LOADING_PAUSE_S
        elif isinstance(reason, ConnectFailure) and reason.kind in REFUSING_USER:
            longest_s = LONGEST_REFUSED_PAUSE_S
        pause_s = self._main_backoff.pause_s(longest_s)
        self._set_state(Lost(reason, attempt, asyncio.get_running_loop().time() + pause_s))
        await self._wait(pause_s)

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until `retry_now` or `close` is called."""
        self._skip_pause.clear()
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._skip_pause.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

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


def _end_if_refused(lane: Lane, replied: asyncio.Future[list[Reply]]) -> None:
    """Close a lane whose new password was refused; the next one asks for another."""
    if not replied.cancelled() and replied.exception() is None and isinstance(replied.result()[0], ServerError):
        lane.fail(ConnectionLost("The server has refused the new password."))


def _close_abandoned(opening: asyncio.Task[Lane]) -> None:
    """Close the lane of an attempt that has opened one after it was given up."""
    if opening.done() and not opening.cancelled() and opening.exception() is None:
        opening.result().close()
