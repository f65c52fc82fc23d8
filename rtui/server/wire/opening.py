"""Opens the lanes of a connection: finds the server, opens the socket, runs the handshake, and leaves no lane behind.

An attempt may be cancelled while it is under way: by its caller, or because the connection is closed for good. A lane
that becomes ready at this very moment would belong to nobody, so it is closed.

Pauses between attempts grow with each failure (exponential backoff with full jitter): the longest possible pause
doubles from 0.25 s to 15 s, and the pause is drawn evenly between 0 and that, so that many clients of one server do not
come back at the same moment.

All commands of the handshake (user, database, client name, NO-TOUCH, the server's identity) go out in one write, and
all of INFO with them if the server has answered it on another connection: over a slow link each round trip delays the
first keys. Commands that a server may lack or deny are remembered once it refuses them, so that the next connection
does not send them, and the server does not log them, again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final, Protocol

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.closed_list import MAX_NAMES
from rtui.server.guard.command import Command, Secret
from rtui.server.wire.command_log import CommandLog, LaneLog, Purpose, SentCounts, for_purpose, sent_for
from rtui.server.wire.dial import ServerAddress, dial, tls_context
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, Reply, RtuiError, ServerError
from rtui.server.wire.failures import (
    auth_refusal,
    database_failure,
    loading_failure,
    lost_failure,
    names_failure,
    os_failure,
    refusal,
    sentinel_failure,
    ssh_failure,
    ssh_timeout_failure,
    tls_failure,
)
from rtui.server.wire.identity import NoTouch, ServerIdentity, parse_identity, parse_info, possible_number
from rtui.server.wire.lane import MAX_REPLY_BYTES, Lane
from rtui.server.wire.target import ProtocolVersion, Target

FIRST_PAUSE_S: Final = 0.25
"""The upper limit of the first pause."""

LONGEST_PAUSE_S: Final = 15.0
"""The upper limit of all pauses, so that a returning server is noticed soon."""

LONGEST_LOADING_PAUSE_S: Final = 2.0
"""A server that loads its data reports its progress, so frequent attempts cost nothing and show it."""

LONGEST_REFUSED_PAUSE_S: Final = 120.0
"""A server that refuses the user logs each attempt, and somebody has to change its configuration first."""

REFUSING_USER: Final = frozenset(
    {FailureKind.NOAUTH, FailureKind.WRONGPASS, FailureKind.NOPERM, FailureKind.PROTECTED, FailureKind.DATABASE}
)
"""Failures that another attempt as the same user does not mend."""

HEALTHY_S: Final = 5.0
"""A connection that still brings replies this long after its handshake is healthy: the count of failures restarts."""


def longest_pause_s(reason: RtuiError) -> float:
    """Return the upper limit of the pause after a failure: a loading server is soon back, a refused user seldom."""
    if isinstance(reason, ConnectFailure) and reason.kind.is_temporary:
        return LONGEST_LOADING_PAUSE_S
    if isinstance(reason, ConnectFailure) and reason.kind in REFUSING_USER:
        return LONGEST_REFUSED_PAUSE_S
    return LONGEST_PAUSE_S


def backoff_s(attempt: int, rng: Random, longest_s: float = LONGEST_PAUSE_S) -> float:
    """Draw the pause after failed attempt number `attempt`, from 1 on."""
    return rng.uniform(0.0, min(longest_s, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16)))


class Backoff:
    """Counts the failed attempts at one connection, and draws the pause before the next attempt.

    A successful handshake proves little: the connection may break at the first large reply. Only one that brings
    replies for `healthy_s` seconds resets the count.
    """

    def __init__(self, rng: Random, healthy_s: float = HEALTHY_S) -> None:
        self.failed = 0
        """Attempts in a row without a healthy connection."""
        self._rng = rng
        self._healthy_s = healthy_s

    def ended(self, worked_s: float | None = None) -> None:
        """Count an attempt; `worked_s` is the time from the handshake to the last reply, None without a reply."""
        self.failed = 0 if worked_s is not None and worked_s >= self._healthy_s else self.failed + 1

    def pause_s(self, longest_s: float = LONGEST_PAUSE_S) -> float:
        return backoff_s(max(1, self.failed), self._rng, longest_s)


class Pause:
    """A pause that can be cut short."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._is_skipped = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until `skip` is called."""
        self._is_skipped.clear()
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._is_skipped.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def skip(self) -> None:
        self._is_skipped.set()


async def open_lane(
    target: Target,
    *,
    reply_timeout_s: float | None = None,
    max_reply_bytes: int = MAX_REPLY_BYTES,
    peer: ServerAddress | None = None,
    log: LaneLog | None = None,
) -> Lane:
    """Connect by TCP, TLS or unix socket, without any handshake; raises `ConnectFailure` or `TargetError`.

    `peer` is tried first. Without `log` commands are not logged anywhere, and without `reply_timeout_s` the target's
    timeout for replies holds.
    """
    log, timeout_s = log or CommandLog().open_lane("lane"), target.way.connect_s
    reply_timeout_s = target.way.timeouts.reply_s if reply_timeout_s is None else reply_timeout_s
    tls = target.tls if target.socket_path is None else None
    secured = None if tls is None else tls_context(tls)
    dialled = await dial(target, timeout_s, peer)
    lane = Lane(target, dialled, log, max_reply_bytes=max_reply_bytes, reply_timeout_s=reply_timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            name = None if tls is None else tls.sni or target.host
            await asyncio.get_running_loop().create_connection(
                lambda: lane, sock=dialled.sock, ssl=secured, server_hostname=name
            )
    except BaseException as error:  # also when cancelled: nobody else would close the socket
        dialled.sock.close()
        said = lane.end_ssh()
        if said is not None and not isinstance(error, asyncio.CancelledError):
            raise ssh_failure(said) from None
        if tls is None and isinstance(error, OSError):
            raise os_failure(target, error) from None
        if isinstance(error, TimeoutError):
            if target.way.via:
                raise ssh_timeout_failure(target, timeout_s) from None
            error = TimeoutError(f"no answer within {timeout_s:g} s")
        if tls is not None and isinstance(error, OSError | ValueError):  # ssl.SSLError is an OSError
            raise tls_failure(target, error) from None
        raise
    return lane


async def open_control_lane(target: Target, log: CommandLog, logins: Logins | None) -> Lane:
    """Open a lane for commands about the deployment, with its handshake; raises `ConnectFailure` and `ConnectionLost`.

    A reply may take as long as connecting. `logins` provides the password if it expires.
    """
    lane: Lane | None = None
    with sent_for(Purpose.HANDSHAKE):
        try:
            target = target if logins is None else await logins.logged_in(target)
            lane_log = log.open_lane("control")
            lane = await open_lane(target, reply_timeout_s=target.way.connect_s, log=lane_log)
            await handshake(lane, target, HandshakeOutcome())
        except BaseException as failed:  # also when cancelled: nobody else would close the lane
            if logins is not None and isinstance(failed, ConnectFailure) and failed.kind in REFUSING_USER:
                logins.refused()
            if lane is not None:
                lane.close()
            raise
    lane.mark_ready()
    return lane


class Locator(Protocol):
    """Finds a server that may have another address after a failover."""

    async def locate(self) -> Target:
        """Return the current target of the primary; raises ConnectFailure."""

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Return why this is the wrong server, or None."""

    async def close(self) -> None:
        """Close its connections."""

    @property
    def note(self) -> SafeText | None:
        """A note for the user on how the server was found, or None."""


class Logins(Protocol):
    """Provides users and passwords that expire."""

    on_renewed: Callable[[Target], object] | None
    """Called with a target whose new password replaces one that is in use."""

    async def logged_in(self, target: Target) -> Target:
        """Return a target with the current user and password; raises ConnectFailure."""

    def refused(self) -> None:
        """Get another password for the next attempt."""

    def shared(self) -> Logins:
        """Return logins for one more connection, which close only their own resources."""

    async def close(self) -> None:
        """Stop providing passwords."""


class LaneOpener:
    """Opens lanes to one target; each is returned to its caller, or closed. After `stop` it opens no more."""

    def __init__(
        self, target: Target, log: CommandLog, sent: SentCounts, locator: Locator | None, logins: Logins | None
    ) -> None:
        """All commands are written to `log` and counted in `sent`."""
        self.target = target
        """The target of lanes; for a service with the address of the primary that its locator found last."""
        self.logins = logins
        """Provides expiring passwords; else None."""
        self._locator = locator
        self._log, self._sent = log, sent
        self._outcome = HandshakeOutcome()
        self._openings: set[asyncio.Task[Lane]] = set()
        self._given_up: tuple[asyncio.Task[Lane], ...] = ()
        """Attempts that were under way when it was stopped."""
        self._why_stopped: str | None = None

    @property
    def notes(self) -> tuple[SafeText, ...]:
        note = None if self._locator is None else self._locator.note
        return () if note is None else (note,)

    async def open(self, peer: ServerAddress | None = None, before: ServerIdentity | None = None) -> Lane:
        """Try once to open a lane; raises `ConnectFailure`, or `ConnectionLost` after `stop`, which cancels attempts.

        `peer` and `before` are the address and the server of the interactive lane, for another one to the same server.
        """
        self._raise_stopped()
        opening = asyncio.create_task(self._open(peer, before), name="rtui opening")
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            opening.cancel()
            opening.add_done_callback(_close_abandoned)  # it may have become ready at this very moment
            raise
        if self._why_stopped is not None:
            _close_abandoned(opening)
            self._raise_stopped()
        return opening.result()

    def _raise_stopped(self) -> None:
        if self._why_stopped is not None:
            raise ConnectionLost(self._why_stopped)

    @for_purpose(Purpose.HANDSHAKE)
    async def _open(self, peer: ServerAddress | None, before: ServerIdentity | None) -> Lane:
        is_bulk = before is not None
        log = self._log.open_lane("bulk" if is_bulk else "interactive", is_bulk=is_bulk, counts=self._sent)
        if before is None:  # an interactive lane, to a server of which nothing is known yet
            self._outcome, before = HandshakeOutcome(), ServerIdentity()
            if self._locator is not None:
                self.target = await self._locator.locate()
        target = self.target if self.logins is None else await self.logins.logged_in(self.target)
        timeout_s = target.way.connect_s
        lane = await open_lane(target, peer=peer, log=log)
        try:
            async with asyncio.timeout(timeout_s):
                lane.server = await handshake_and_identify(lane, self._outcome, before)
        except BaseException as error:  # also when cancelled: nobody else would close the lane
            lane.close()
            if isinstance(error, TimeoutError):
                if target.way.via and not lane.traffic.bytes_in:
                    raise ssh_timeout_failure(self.target, timeout_s) from None
                happened = f"it took the connection but did not answer within {timeout_s:g} s."
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
        """Request another password if the server stopped accepting the one of a lane that has ended."""
        error = closed.result().last_error
        if self.logins is not None and error is not None and error.code == "NOAUTH":
            self.logins.refused()

    def stop(self, why: str) -> None:
        """Cancel all attempts, and make no more; `why` is a sentence."""
        self._why_stopped = why
        self._given_up = tuple(self._openings)
        for opening in self._given_up:
            opening.cancel()

    async def close(self) -> None:
        """Wait until no attempt is under way any more, and close locator and logins; call `stop` before."""
        for opened in await asyncio.gather(*self._given_up, return_exceptions=True):
            if isinstance(opened, Lane):
                opened.close()
        for helper in (self._locator, self.logins):
            if helper is not None:
                await helper.close()


def _close_abandoned(opening: asyncio.Task[Lane]) -> None:
    if opening.done() and not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _end_silent(interactive: Lane, closed: asyncio.Future[ConnectionLost]) -> None:
    """End the interactive lane with the bulk lane if the server has been silent on both."""
    reason = closed.result()
    if reason.kind is FailureKind.TIMEOUT and interactive.unheard_s >= interactive.reply_timeout_s:
        interactive.fail(reason)


class BulkLane:
    """The bulk lane: opened on demand, and again after a loss.

    Before another attempt there is a pause, which grows with each loss in a row.
    """

    def __init__(self, opener: LaneOpener, backoff: Backoff) -> None:
        self.lane: Lane | None = None
        """The lane, which may have been lost; None before one was opened."""
        self._opener, self._backoff = opener, backoff
        self._due_at = 0.0
        """When it may be opened, on the clock of the event loop."""
        self._lock = asyncio.Lock()

    def pause_s(self) -> float:
        """Return the time until it may be opened; 0 or less if it is open, or may be opened now."""
        if self.lane is not None and self.lane.is_open:
            return 0.0
        lane, self.lane = self.lane, None
        if lane is not None:
            self._backoff.ended(lane.worked_s)
            self._due_at = (lane.ended_at or 0.0) + self._backoff.pause_s()
        return self._due_at - asyncio.get_running_loop().time()

    def end_pause(self) -> None:
        self._due_at = 0.0

    async def opened(self, main: Callable[[], Lane | None]) -> Lane | None:
        """Return the lane, opened if necessary to the server of the interactive one; None if that does not work now.

        `main` returns the interactive lane, or None. Raises a ConnectFailure that more attempts do not mend.
        """
        async with self._lock:
            interactive = main()
            if interactive is None or self._due_at > asyncio.get_running_loop().time():
                return None
            if self.lane is not None:
                return self.lane if self.lane.is_open else None
            try:
                self.lane = await self._opener.open(interactive.peer, interactive.server)
                self.lane.closed.add_done_callback(partial(_end_silent, interactive))
            except ConnectFailure as failed:
                self._backoff.ended()
                self._due_at = asyncio.get_running_loop().time() + self._backoff.pause_s()
                if failed.kind in {FailureKind.MAX_CLIENTS, FailureKind.WRONGPASS, FailureKind.NOAUTH}:
                    raise
            return self.lane

    def close(self) -> None:
        """Close it; the next one is opened without a pause."""
        if self.lane is not None:
            self.lane.close()
            self.lane = None


_SECTIONS: Final = ("memory", "stats", "clients", "replication", "persistence", "cluster", "keyspace")
"""The sections of INFO that are read besides `server`."""

_OPTIONAL: Final = ("name", "lib-name", "lib-ver", "no-touch")
"""Steps of the handshake that the server may refuse."""


@dataclass(slots=True)
class HandshakeOutcome:
    """The results of earlier handshakes with a server.

    Kept for one server and one reconnect: another server, or other rights, begin with an empty one.
    """

    refused: set[str] = field(default_factory=set)
    """Optional steps that the server does not know or allow."""
    no_touch: NoTouch = NoTouch.UNSUPPORTED


async def handshake_and_identify(lane: Lane, outcome: HandshakeOutcome, before: ServerIdentity) -> ServerIdentity:
    """Make the lane ready and return the server's identity; `before` is the last one. Raises `ConnectFailure`."""
    lane.server = before
    sections = _SECTIONS if before.run_id is not None else ()
    try:
        info = await handshake(lane, lane.target, outcome, sections)
    except ConnectFailure as failed:
        if failed.kind is not FailureKind.LOADING:
            raise
        (persistence,) = await lane.run(guard.info("persistence"))  # answered meanwhile: it tells how far it is
        fields = parse_info(persistence)
        percent = fields.get("loading_loaded_perc", "").partition(".")[0]
        eta_s = possible_number(fields, "loading_eta_seconds")
        is_share = percent.isdecimal() and len(percent) <= len("100") and int(percent) <= 100
        raise loading_failure(lane.target, int(percent) if is_share else None, eta_s) from None
    found = await identify(lane, info)
    if found.mode == "sentinel":
        raise sentinel_failure(lane.target, *await lane.run(guard.sentinel_masters()))
    if outcome.refused and before != ServerIdentity() and not before.is_like(found):
        outcome.refused.clear()  # another server may know what the last one refused
        await handshake(lane, lane.target, outcome)
    if found.role == "replica" and found.primary_link_up is False:
        # Such a replica may answer PING and INFO, but no command on a key.
        (reply,) = await lane.run(guard.exists(b""))
        if isinstance(reply, ServerError) and reply.code == "MASTERDOWN":
            raise refusal(lane.target, reply) or reply
    if found.cluster_enabled and found.role == "replica":
        await lane.run(guard.readonly())
    return found


async def handshake(lane: Lane, target: Target, outcome: HandshakeOutcome, sections: Sequence[str] = ()) -> list[Reply]:
    """Set up a new lane in one or two round trips; return the replies to INFO about `server` and these sections.

    Raises `ConnectFailure`.
    """
    try:
        lane.protocol, authenticated = await _choose_protocol(lane, target, outcome)
        steps: dict[str, Command] = {}
        if not authenticated and (target.password or target.user is not None):
            steps["auth"] = guard.auth(target.user, target.password or Secret(""))
        if lane.names.others:
            await _check_names(lane, target, steps.pop("auth", None))
        if target.db:
            steps["select"] = guard.select(target.db)
        optional = (guard.set_name(), guard.set_info("LIB-NAME"), guard.set_info("LIB-VER"), guard.no_touch())
        steps |= {step: one for step, one in zip(_OPTIONAL, optional, strict=True) if step not in outcome.refused}
        steps["ping"] = guard.ping()
        steps |= {f"info {section}": guard.info(section) for section in ("server", *sections)}
        replies = dict(zip(steps, await lane.run(*steps.values()), strict=True))
    except ConnectionLost as lost:
        said = None if lost.last_error is None else refusal(target, lost.last_error)
        raise said or lost_failure(target, lost.happened, lost.kind) from None
    errors = {step: reply for step, reply in replies.items() if isinstance(reply, ServerError)}
    if "auth" in errors:
        raise auth_refusal(target, errors["auth"])
    for error in errors.values():
        failed = refusal(target, error)
        if failed is not None and failed.kind is not FailureKind.NOPERM:
            raise failed
    if "select" in errors:
        raise database_failure(target, errors["select"])
    outcome.refused.update(step for step in _OPTIONAL if step in errors)
    if "no-touch" in errors:
        outcome.no_touch = NoTouch.DENIED if errors["no-touch"].code == "NOPERM" else NoTouch.UNSUPPORTED
    elif "no-touch" in replies:
        outcome.no_touch = NoTouch.ON
    lane.no_touch = outcome.no_touch
    return [replies[f"info {section}"] for section in ("server", *sections)]


async def _check_names(lane: Lane, target: Target, auth: Command | None) -> None:
    """Log in, and check by COMMAND INFO the names of commands from a profile; raises `ConnectFailure`.

    Nothing is sent under such a name before that.
    """
    others = lane.names.others
    names = tuple(others.values())
    asked = [guard.command_info(*names[at : at + MAX_NAMES]) for at in range(0, len(names), MAX_NAMES)]
    steps = [] if auth is None else [auth]
    replies = await lane.run(*steps, *asked)
    if auth is not None and isinstance(refused := replies.pop(0), ServerError):
        raise auth_refusal(target, refused)
    found: list[Reply] = []
    for reply in replies:
        if isinstance(reply, ServerError):
            failed = refusal(target, reply)
            if failed is not None and failed.kind is not FailureKind.NOPERM:
                raise failed
            raise names_failure(target, f"does not say which commands they stand for: {reply.text}.")
        found += reply if isinstance(reply, list) else []
    if len(found) != len(others):
        raise names_failure(target, "does not say which commands they stand for.")
    for word, known in zip(others, found, strict=True):
        match known:
            case [bytes(name), *_] if name.upper() != word:
                other = name.decode("utf-8", "replace").upper()
                raise names_failure(target, f"runs {other} under the name that is given for {word.decode()}.")
            case [bytes(), *_]:
                continue
        raise names_failure(target, f"has no command of the name that is given for {word.decode()}.")


async def _choose_protocol(lane: Lane, target: Target, outcome: HandshakeOutcome) -> tuple[ProtocolVersion, bool]:
    """Send HELLO 3 if the user wants protocol 3; return the protocol and whether the user is logged in.

    If the server or the user has no HELLO, protocol 2 is used.
    """
    if target.protocol != 3 or "hello" in outcome.refused:
        return 2, False
    password = target.password or None
    (reply,) = await lane.run(guard.hello(3, target.user if password else None, password))
    if not isinstance(reply, ServerError):
        return 3, password is not None
    if reply.code in {"WRONGPASS", "NOAUTH"}:
        raise auth_refusal(target, reply)
    failed = refusal(target, reply)
    if failed is not None and failed.kind is not FailureKind.NOPERM:
        raise failed
    outcome.refused.add("hello")
    return 2, False


async def identify(lane: Lane, asked: Sequence[Reply] = ()) -> ServerIdentity:
    """Read the server's identity: INFO, HELLO if INFO is refused, and CLUSTER INFO from a node of a cluster.

    INFO is read a section at a time, since servers before 7.0 take no more; `asked` are replies about the first
    section, or all of them, if they are at hand. A user without INFO is refused it once, and not for each section.
    """
    info = list(asked) or await lane.run(guard.info("server"))
    if lane.server == ServerIdentity():  # nothing is known yet, and some servers are not to be sent all that follows
        lane.server = parse_identity(info)
    hello: Reply = None
    if isinstance(info[0], ServerError):
        (hello,) = await lane.run(guard.hello(lane.protocol))
    elif len(info) == 1:
        info += await lane.run(*[guard.info(section) for section in _SECTIONS])
    lane.info = dict(zip(("server", *_SECTIONS), info, strict=False))
    found = parse_identity(info, None, hello)
    if not found.cluster_enabled:
        return found
    (nodes,) = await lane.run(guard.cluster_info())
    return parse_identity(info, nodes, hello)
