"""A server as the rest of rtui sees it: a lane for what the user asks, one for bulk work, both remade when lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn, TypeAlias

from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, RtuiError
from rtui.server.wire.failures import lost_failure
from rtui.server.wire.handshake import Learned, NoTouch, arrive, identify
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.lane import CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S, Lane, Peer
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.replies import Reply
from rtui.server.wire.retries import (
    HEALTHY_S,
    LONGEST_LOADING_PAUSE_S,
    LONGEST_PAUSE_S,
    LONGEST_REFUSED_PAUSE_S,
    Retries,
)
from rtui.server.wire.target import Target
from rtui.server.wire.tasks import supervised

HEARTBEAT_S: Final = 5.0
"""A lane without traffic is asked PING this often, so that a server that vanished is noticed without a user's doing."""


@dataclass(frozen=True, slots=True)
class Online:
    """Connected and ready."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Not connected, yet or any more; tried again by itself. `attempt` counts the failed tries from 1 on."""

    reason: RtuiError | None
    attempt: int
    retry_at: float
    """On the event loop's clock."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Ended by rtui; it does not come back."""

    reason: RtuiError | None = None
    """Why, unless somebody closed it: a fault of rtui itself."""


State: TypeAlias = Online | Lost | Closed


class Connection:
    """Two lanes to one target. `run` and `ask` fail at once while it is lost; `online` and `bulk` wait."""

    def __init__(
        self,
        target: Target,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        heartbeat_s: float = HEARTBEAT_S,
        healthy_s: float = HEALTHY_S,
        rng: Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.target = target
        self.state: State = Lost(None, 0, 0.0)
        self.revision = 0
        """Raised by every change of state or of what is known of the server."""
        self.on_change: list[Callable[[], None]] = []
        """Called, without arguments, after each such change."""
        self.server = ServerIdentity()
        self.own_reads = OwnReads()
        """The keys that were read through this connection where the server counts that as a use."""
        self.generation = 0
        """How often the connection has been made: what the server said earlier may not hold after it grew."""
        self._connect_timeout_s = connect_timeout_s
        self._reply_timeout_s = reply_timeout_s
        self._heartbeat_s = heartbeat_s
        rng = rng if rng is not None else Random()
        self._sleep = sleep
        self._learned = Learned()
        self._no_touch = NoTouch.UNSUPPORTED
        self._main: Lane | None = None
        self._main_retries = Retries(rng, healthy_s)
        self._bulk: Lane | None = None
        self._bulk_retries = Retries(rng, healthy_s)
        self._bulk_due_at = 0.0
        self._openings: set[asyncio.Task[Lane]] = set()
        self._bulk_lock = asyncio.Lock()
        self._online = asyncio.Event()
        self._hurry = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def no_touch(self) -> NoTouch:
        """Whether reading leaves idle times and frequencies alone."""
        return self._no_touch

    @property
    def run_id(self) -> str | None:
        """The server's own name for this run of it, if it tells: a cursor is only good while it stays the same."""
        return self.server.run_id

    @property
    def is_online(self) -> bool:
        """Whether `run` can send."""
        return isinstance(self.state, Online)

    @property
    def silent_s(self) -> float:
        """How long the server has owed the user an answer; 0 when it owes none."""
        return 0.0 if self._main is None else self._main.silent_s

    async def open(self) -> None:
        """Connect for the first time; waits while the server loads, raises `ConnectFailure` for anything else.

        `ConnectionLost` when it is closed meanwhile.
        """
        attempt = 0
        while True:
            try:
                lane = await self._connect(self._opened_main)
                break
            except ConnectFailure as failed:
                if not failed.kind.passes:
                    raise
                self._main_retries.attempt_failed()
                attempt += 1
                await self._pause(failed, attempt)
        self._arrived(lane)
        self._keeper = supervised(self._keep(lane), name="rtui connection", failed=self._keeper_failed)

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        """Send on the interactive lane and give the replies in order; `ConnectionLost` at once while it is lost."""
        if self._main is None:
            self._raise_lost()
        return self._main.run(*commands)

    async def ask(self, command: Command) -> Reply:
        """One command on the interactive lane; an error reply is raised as `ServerError`."""
        if self._main is None:
            self._raise_lost()
        return await self._main.ask(command)

    async def online(self) -> None:
        """Return as soon as there is a connection; raises `ConnectionLost` once it is closed for good."""
        while not self.is_online:
            if isinstance(self.state, Closed):
                self._raise_lost()
            await self._online.wait()

    async def bulk(self) -> Lane:
        """The lane for bulk work, opened when first asked for and again after a loss; waits while offline.

        A lane that was lost is made again after a pause, which grows with every loss in a row.
        """
        async with self._bulk_lock:
            while True:
                await self.online()
                if self._bulk is not None and self._bulk.is_open:
                    return self._bulk
                self._plan_bulk()
                wait_s = self._bulk_due_at - asyncio.get_running_loop().time()
                if wait_s > 0:
                    await self._wait(wait_s)
                    self._bulk_due_at = 0.0
                    continue
                try:
                    self._bulk = await self._connect(self._opened_bulk)
                except ConnectFailure as failed:
                    self._bulk_retries.attempt_failed()
                    self._bulk_due_at = asyncio.get_running_loop().time() + self._bulk_retries.pause_s()
                    if failed.kind in {FailureKind.MAX_CLIENTS, FailureKind.WRONGPASS, FailureKind.NOAUTH}:
                        raise

    def _plan_bulk(self) -> None:
        """Set when the bulk lane is made again, if it has ended."""
        lane, self._bulk = self._bulk, None
        if lane is not None:
            self._bulk_retries.lane_ended(lane)
            self._bulk_due_at = (lane.ended_at or 0.0) + self._bulk_retries.pause_s()

    async def refresh(self) -> ServerIdentity:
        """Ask the server again what it says of itself (memory, load); raises `ConnectionLost`."""
        if self._main is None:
            self._raise_lost()
        lane = self._main
        lane.server = await identify(lane)
        if lane is self._main:
            self._learn_identity(lane.server)
        return self.server

    def forget_denied(self) -> None:
        """Let what the server has denied be asked once more, since somebody wants to know again."""
        for lane in (self._main, self._bulk):
            if lane is not None:
                lane.forget_denied()

    def retry_now(self) -> None:
        """Cut the pause before the next attempt short."""
        self._hurry.set()

    async def close(self) -> None:
        """Close both lanes, one that is just being opened too; returns when nothing runs any more."""
        keeper, self._keeper = self._keeper, None
        self._end(Closed())
        openings = tuple(self._openings)
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        for opened in await asyncio.gather(*openings, return_exceptions=True):
            if isinstance(opened, Lane):
                opened.close()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next turn

    def _end(self, state: Closed) -> None:
        """Close everything for good."""
        self._set_state(state)
        for opening in self._openings:
            opening.cancel()
        for lane in (self._main, self._bulk):
            if lane is not None:
                lane.close()
        self._main = self._bulk = None
        self._hurry.set()

    def _raise_lost(self) -> NoReturn:
        if isinstance(self.state, Closed):
            raise ConnectionLost("It was closed by rtui." if self.state.reason is None else str(self.state.reason))
        reason = self.state.reason if isinstance(self.state, Lost) else None
        raise ConnectionLost("It was never open." if reason is None else reason.happened)

    async def _connect(self, opened: Callable[[], Coroutine[None, None, Lane]]) -> Lane:
        """One attempt at a ready lane, which `close` ends; raises `ConnectFailure`, or `ConnectionLost` when closed."""
        if isinstance(self.state, Closed):
            self._raise_lost()
        opening = asyncio.create_task(opened(), name="rtui opening")
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            opening.cancel()
            opening.add_done_callback(_close_opened)  # it may have become ready at this very moment
            raise
        if isinstance(self.state, Closed):
            _close_opened(opening)
            self._raise_lost()
        return opening.result()

    async def _opened_main(self) -> Lane:
        """A lane to whoever answers now, of whom nothing is known beforehand."""
        self._learned = Learned()
        return await self._ready(await self._new_lane(None), ServerIdentity())

    async def _opened_bulk(self) -> Lane:
        """Another lane to the server of the interactive one, as far as that can be chosen."""
        return await self._ready(await self._new_lane(None if self._main is None else self._main.peer), self.server)

    async def _new_lane(self, peer: Peer | None) -> Lane:
        return await Lane.open(
            self.target, timeout_s=self._connect_timeout_s, reply_timeout_s=self._reply_timeout_s, peer=peer
        )

    async def _ready(self, lane: Lane, before: ServerIdentity) -> Lane:
        """The lane after handshake and identity; closed when either fails. `before` is who answered the last one."""
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                lane.server = await arrive(lane, self._learned, before)
        except TimeoutError:
            lane.close()
            happened = f"it took the connection but did not answer within {self._connect_timeout_s:g} s."
            raise lost_failure(self.target, happened, FailureKind.TIMEOUT) from None
        except ConnectionLost as lost:
            lane.close()
            raise lost_failure(self.target, lost.happened, lost.kind) from None
        except BaseException:
            lane.close()
            raise
        lane.ready()
        return lane

    def _learn_identity(self, found: ServerIdentity) -> None:
        """Take up what the server says; another run of it counts as another connection."""
        restarted = found.run_id != self.server.run_id
        self.server = found
        if restarted:
            self.generation += 1
        self._changed()

    def _arrived(self, lane: Lane) -> None:
        self._main = lane
        self.server, self._no_touch = lane.server, lane.no_touch
        self.generation += 1
        # Runs before whoever awaits a reply on the lane hears of the loss, so that they see the state it left behind.
        lane.closed.add_done_callback(self._ended)
        self._set_state(Online())

    def _ended(self, closed: asyncio.Future[ConnectionLost]) -> None:
        if isinstance(self.state, Closed):
            return
        self._main = None
        if self._bulk is not None:
            self._bulk.close()
        self._set_state(Lost(closed.result(), 0, asyncio.get_running_loop().time()))

    async def _keep(self, lane: Lane) -> None:
        """Watch the interactive lane and make a new one whenever it is lost."""
        while True:
            await self._watch(lane)
            self._main_retries.lane_ended(lane)
            lane = await self._again(lane.closed.result())
            self._arrived(lane)

    def _keeper_failed(self, failure: RtuiError) -> None:
        """Nobody would connect again: say so, instead of leaving everybody waiting."""
        if not isinstance(self.state, Closed):
            self._end(Closed(failure))

    async def _watch(self, lane: Lane) -> None:
        """Return when the lane has ended; asks PING when nothing else is sent."""
        while lane.is_open:
            sent = lane.traffic.commands
            await asyncio.wait([lane.closed], timeout=self._heartbeat_s)
            if lane.is_open and lane.traffic.commands == sent:
                lane.run(guard.ping())

    async def _again(self, reason: RtuiError) -> Lane:
        """Another interactive lane, after as many attempts as that takes, each after a pause."""
        attempt = 0
        while True:
            await self._pause(reason, attempt)
            try:
                return await self._connect(self._opened_main)
            except RtuiError as failed:
                self._main_retries.attempt_failed()
                attempt += 1
                reason = failed

    async def _pause(self, reason: RtuiError, attempt: int) -> None:
        """Say why and until when, then wait that long or until somebody is in a hurry."""
        pause_s = self._main_retries.pause_s(_longest_pause_s(reason))
        self._set_state(Lost(reason, attempt, asyncio.get_running_loop().time() + pause_s))
        await self._wait(pause_s)

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until somebody is in a hurry or closes the connection."""
        self._hurry.clear()
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._hurry.wait())]
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


def _longest_pause_s(reason: RtuiError) -> float:
    """The longest pause before another attempt that may end for the same reason."""
    kind = reason.kind if isinstance(reason, ConnectFailure) else FailureKind.CLOSED
    if kind.passes:
        return LONGEST_LOADING_PAUSE_S
    return LONGEST_REFUSED_PAUSE_S if kind.refuses_user else LONGEST_PAUSE_S


def _close_opened(opening: asyncio.Task[Lane]) -> None:
    """Close what an attempt has opened, if it has, where nobody takes it any more."""
    if opening.done() and not opening.cancelled() and opening.exception() is None:
        opening.result().close()
