"""One connection that only guard commands travel on: requests out in one write, replies in order, a future a run."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from dataclasses import dataclass, field
from typing import Final, cast

import hiredis

from rtui.keyspace.text.display import display_text
from rtui.server.guard.command import Command
from rtui.server.wire import dial as tls
from rtui.server.wire.dial import Peer, dial
from rtui.server.wire.errors import ConnectionLost, FailureKind, ServerError
from rtui.server.wire.failures import os_failure, tls_failure
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.replies import Reply, as_resp2
from rtui.server.wire.target import Protocol, Target

__all__ = ["CONNECT_TIMEOUT_S", "REPLY_TIMEOUT_S", "Lane", "Peer", "Reply", "Traffic"]

CONNECT_TIMEOUT_S: Final = 5.0
"""How long name, TCP, TLS and the first answers may each take."""

REPLY_TIMEOUT_S: Final = 20.0
"""How long a server that owes replies may send nothing at all before the connection is given up."""

READ_BUFFER_BYTES: Final = 256 * 1024
"""What one read may take from the socket: big reads make replies cheap."""

MAX_REPLY_BYTES: Final = 512 << 20
"""So much may come for one write before its replies are complete; no command of the closed list asks for as much."""

_NOTHING: Final = object()


@dataclass(slots=True)
class Traffic:
    """What went through a lane so far."""

    commands: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


@dataclass(slots=True, eq=False)
class _Run:
    """Requests that were written together, and what has come back for them."""

    commands: tuple[Command, ...]
    expected: int
    done: asyncio.Future[list[Reply]]
    replies: list[Reply] = field(default_factory=list)


class Lane:
    """A pipelined connection; `run` may be called again before earlier runs are answered. Made by `open`."""

    def __init__(
        self, target: Target, *, reply_timeout_s: float = REPLY_TIMEOUT_S, max_reply_bytes: int = MAX_REPLY_BYTES
    ) -> None:
        self.target = target
        self.traffic = Traffic()
        self.peer: Peer | None = None
        self.protocol: Protocol = 2
        """What the handshake settled on."""
        self.server = ServerIdentity()
        """Who answers on this lane, by its handshake."""
        self.no_touch = NoTouch.UNSUPPORTED
        """Whether reading on this lane leaves idle times and frequencies alone, by its handshake."""
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[ConnectionLost] = self._loop.create_future()
        """Done, with the reason, as soon as the connection is gone."""
        self.ended_at: float | None = None
        """When that was, on the event loop's clock."""
        self._ready_at: float | None = None
        self._answered_at = 0.0
        self._reply_timeout_s = reply_timeout_s
        self._wire = _Wire(self)
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=ServerError, notEnoughData=_NOTHING)
        self._denied: dict[str, ServerError] = {}
        """By name, commands that this user may not run, with the server's words."""
        self._owed: deque[_Run] = deque()
        self._unsent: deque[tuple[bytes, _Run]] = deque()
        self._paused = False
        self._max_reply_bytes = max_reply_bytes
        self._incomplete_bytes = 0
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls,
        target: Target,
        *,
        timeout_s: float = CONNECT_TIMEOUT_S,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        peer: Peer | None = None,
    ) -> Lane:
        """Connect by TCP, TLS or unix socket, without any handshake; raises `ConnectFailure` or `TargetError`."""
        lane = cls(target, reply_timeout_s=reply_timeout_s, max_reply_bytes=max_reply_bytes)
        secured = None if target.tls is None or target.socket_path is not None else tls.context(target.tls)
        sock, lane.peer = await dial(target, timeout_s, peer)
        try:
            await lane._attach(sock, secured, timeout_s)
        except BaseException:
            sock.close()
            raise
        return lane

    async def _attach(self, sock: socket.socket, secured: ssl.SSLContext | None, timeout_s: float) -> None:
        """Let the event loop read the socket, through TLS where there is a context."""
        target = self.target
        if secured is None or target.tls is None:
            try:
                await self._loop.create_connection(lambda: self._wire, sock=sock)
            except OSError as error:
                raise os_failure(target, error) from None
            return
        name = target.tls.sni or target.host
        try:
            async with asyncio.timeout(timeout_s):
                await self._loop.create_connection(lambda: self._wire, sock=sock, ssl=secured, server_hostname=name)
        except TimeoutError:
            raise tls_failure(target, TimeoutError(f"no answer within {timeout_s:g} s")) from None
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise tls_failure(target, error) from None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and not self.closed.done()

    @property
    def silent_s(self) -> float:
        """How long the server has owed an answer without sending anything; 0 when it owes none."""
        return self._loop.time() - self._heard_at if self._owed else 0.0

    @property
    def worked_s(self) -> float | None:
        """How long after its handshake the lane last brought a reply; None when it has brought none since."""
        if self._ready_at is None or self._answered_at <= self._ready_at:
            return None
        return self._answered_at - self._ready_at

    def ready(self) -> None:
        """The handshake is over: what is answered from now on is work."""
        self._ready_at = self._loop.time()

    @property
    def owed(self) -> int:
        """Replies that are still to come, to requests that wait for room in the socket too."""
        return sum(run.expected - len(run.replies) for run in self._owed) + sum(run.expected for _, run in self._unsent)

    def run(self, *commands: Command) -> asyncio.Future[list[Reply]]:
        """Send all commands in one write; the future holds their replies in order, or raises `ConnectionLost`.

        A command that the server has denied to this user is not sent again: it is answered with what the server said.
        """
        if self._denied and any(command.name in self._denied for command in commands):
            return self._run_allowed(commands)
        return self._run(commands)

    def _run_allowed(self, commands: tuple[Command, ...]) -> asyncio.Future[list[Reply]]:
        """Send what is not denied, and answer the rest in its place."""
        denied = dict(self._denied)
        sent = self._run(tuple(command for command in commands if command.name not in denied))
        done: asyncio.Future[list[Reply]] = self._loop.create_future()

        def answer(replied: asyncio.Future[list[Reply]]) -> None:
            if done.done():
                return
            error = replied.exception()
            if error is not None:
                _fail(done, cast(ConnectionLost, error))
                return
            said = iter(replied.result())
            done.set_result(
                [
                    denied[command.name] if command.name in denied else next(said)
                    for command in commands
                    for _ in range(command.replies)
                ]
            )

        sent.add_done_callback(answer)
        return done

    def _run(self, commands: tuple[Command, ...]) -> asyncio.Future[list[Reply]]:
        expected = 0
        for command in commands:
            if type(command) is not Command:
                raise TypeError("a lane carries guard commands only")
            expected += command.replies
        done: asyncio.Future[list[Reply]] = self._loop.create_future()
        if not self.is_open:
            reason = self.closed.result() if self.closed.done() else ConnectionLost("It was never open.")
            _fail(done, reason)
            return done
        if not expected:
            done.set_result([])
            return done
        self.traffic.commands += expected
        packed = commands[0].packed if len(commands) == 1 else b"".join([command.packed for command in commands])
        run = _Run(commands, expected, done)
        if self._paused or self._unsent:
            self._unsent.append((packed, run))
        else:
            self._send(packed, run)
        return done

    async def ask(self, command: Command) -> Reply:
        """One command, one reply; an error reply is raised as `ServerError`."""
        (reply,) = await self.run(command)
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def forget_denied(self) -> None:
        """Send commands again that the server has denied."""
        self._denied.clear()

    def close(self) -> None:
        """Close at once; replies still owed fail."""
        self._end(ConnectionLost("It was closed by rtui."))

    def _send(self, packed: bytes, run: _Run) -> None:
        assert self._transport is not None  # noqa: S101 - is_open was checked
        if not self._owed:
            self._heard_at = self._loop.time()
            if self._watch is None:
                self._watch = self._loop.call_later(self._reply_timeout_s, self._check_silence)
        self._owed.append(run)
        self.traffic.bytes_out += len(packed)
        self._transport.write(packed)

    def _received(self, data: bytearray, count: int) -> None:
        """Hand the new bytes to the parser and settle every run they complete."""
        self._heard_at = self._answered_at = self._loop.time()
        self.traffic.bytes_in += count
        self._incomplete_bytes += count
        if self._incomplete_bytes > self._max_reply_bytes:
            happened = f"It sent more than {self._max_reply_bytes >> 20} MiB in answer to one write."
            self._end(ConnectionLost(happened))
            return
        reader = self._reader
        reader.feed(cast(bytes, data), 0, count)
        gets = reader.gets if self.protocol == 2 else self._next_asked
        owed = self._owed
        try:
            while owed:
                run = owed[0]
                append = run.replies.append
                for _ in range(run.expected - len(run.replies)):
                    reply = gets()
                    if reply is _NOTHING:
                        return
                    append(reply)
                owed.popleft()
                self._incomplete_bytes = 0
                if len(run.commands) == run.expected:
                    self._note_denied(run)
                if not run.done.done():
                    run.done.set_result(run.replies if self.protocol == 2 else _as_resp2(run))
            self._unasked(gets())
        except hiredis.ProtocolError as error:
            self._end(ConnectionLost(f"What it sends is not the Redis protocol ({error}).", kind=FailureKind.PROTOCOL))

    def _note_denied(self, run: _Run) -> None:
        """Remember which of these commands, one reply each, the user may not run."""
        for command, reply in zip(run.commands, run.replies, strict=True):
            if isinstance(reply, ServerError) and reply.denies_command:
                self._denied[command.name] = reply

    def _next_asked(self) -> Reply:
        """The next reply to a request; what protocol 3 pushes in between is let go."""
        reply = self._reader.gets()
        while isinstance(reply, hiredis.PushNotification):
            reply = self._reader.gets()
        return cast(Reply, reply)

    def _unasked(self, reply: object) -> None:
        """A reply nobody asked for: an error says why the server hangs up, anything else breaks the protocol."""
        if reply is _NOTHING or isinstance(reply, hiredis.PushNotification):
            return
        if isinstance(reply, ServerError):
            # Its text is not shown: an error may quote a request, and a request may hold a password.
            self._end(ConnectionLost(f"The server sent an error of its own accord ({reply.code}).", said=reply))
            return
        self._end(ConnectionLost("It sends replies that nobody asked for.", kind=FailureKind.PROTOCOL))

    def _check_silence(self) -> None:
        self._watch = None
        if not self._owed:
            return
        silent_s = self._loop.time() - self._heard_at
        if silent_s >= self._reply_timeout_s:
            happened = f"The server has owed an answer for {self._reply_timeout_s:g} s."
            self._end(ConnectionLost(happened, kind=FailureKind.TIMEOUT))
            return
        self._watch = self._loop.call_later(self._reply_timeout_s - silent_s, self._check_silence)

    def _end(self, reason: ConnectionLost) -> None:
        if self.closed.done():
            return
        if reason.said is None and self._owed:
            reason.said = next((one for one in reversed(self._owed[0].replies) if isinstance(one, ServerError)), None)
        self.ended_at = self._loop.time()
        self.closed.set_result(reason)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        for run in self._owed:
            _fail(run.done, reason)
        for _, run in self._unsent:
            _fail(run.done, reason)
        self._owed.clear()
        self._unsent.clear()
        if self._transport is not None:
            self._transport.abort()

    def _resumed(self) -> None:
        self._paused = False
        while self._unsent and not self._paused:
            self._send(*self._unsent.popleft())


class _Wire(asyncio.BufferedProtocol):
    """What the event loop calls; keeps those calls out of the lane's own interface."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._buffer = bytearray(READ_BUFFER_BYTES)
        self._view = memoryview(self._buffer)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._lane._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        # A view and not the buffer itself: TLS fills it in slices, and a slice of a bytearray is a copy.
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        if not self._lane.closed.done():
            self._lane._received(self._buffer, nbytes)

    def pause_writing(self) -> None:
        self._lane._paused = True

    def resume_writing(self) -> None:
        self._lane._resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._lane._end(ConnectionLost("The server closed the connection."))
        else:
            reason = display_text(getattr(exc, "strerror", None) or str(exc) or type(exc).__name__)
            self._lane._end(ConnectionLost(f"The connection broke: {reason}."))


def _as_resp2(run: _Run) -> list[Reply]:
    names = [command.name for command in run.commands for _ in range(command.replies)]
    return list(map(as_resp2, names, run.replies))


def _fail(done: asyncio.Future[list[Reply]], reason: ConnectionLost) -> None:
    """Settle a run that gets no answer; nobody needs to be listening any more."""
    if not done.done():
        done.set_exception(ConnectionLost(reason.happened, reason.remedy, kind=reason.kind, said=reason.said))
        done.exception()
