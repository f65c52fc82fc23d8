"""Lane: one connection that only guard commands travel on.

`run` writes any number of commands at once and returns a future of their replies. It may be called again before
earlier writes are answered (pipelining): a server replies in order, so a queue of pending writes is all that matches
replies to callers. Bytes from the socket go straight into the parser of hiredis, and the future of a write is done when
its last reply is parsed. When the connection ends, all pending futures fail with `ConnectionLost`.

The compiled engine of a scan sends and receives by itself. While nothing is pending it is lent the socket, or with TLS
the stream of bytes; what others run meanwhile waits until it is given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, cast

import hiredis

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.command import Command, renamed
from rtui.server.wire.command_log import LaneLog, Purpose, current_purpose
from rtui.server.wire.dial import Dialled
from rtui.server.wire.errors import ConnectionLost, FailureKind, fail_quietly
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.refusals import Refusals, with_errors
from rtui.server.wire.replies import Reply, ServerError, as_resp2
from rtui.server.wire.target import ProtocolVersion, Target

READ_BUFFER_BYTES: Final = 256 * 1024
"""Most bytes that one read takes from the socket: large reads make parsing cheap."""

MAX_REPLY_BYTES: Final = 512 << 20
"""Most bytes that may arrive before the replies to one write are complete; no guard command asks for as much."""

_INCOMPLETE: Final = object()
"""What the parser returns while no whole reply has arrived."""


@dataclass(slots=True)
class Traffic:
    """What has gone through a lane so far."""

    commands: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


class Replies(asyncio.Future[list[Reply]]):
    """The replies to one write, in order."""

    arrived_s = math.inf
    """When the last of them was read, on the clock of the event loop; whoever waits may get its turn later."""


@dataclass(slots=True, eq=False)
class _PendingWrite:
    """Commands that were written together, and the replies to them so far."""

    commands: tuple[Command, ...]
    expected: int
    done: Replies
    purpose: Purpose
    replies: list[Reply] = field(default_factory=list)
    sent_s: float = 0.0
    """When it was sent, on the clock of the event loop."""


class Lane(asyncio.BufferedProtocol):
    """A pipelined connection, which `open_lane` makes; the callbacks of an asyncio protocol are for the event loop."""

    def __init__(
        self, target: Target, dialled: Dialled, log: LaneLog, *, max_reply_bytes: int, reply_timeout_s: float
    ) -> None:
        """`dialled` is what carries it."""
        self.target = target
        self.names = target.names
        """Those of commands that the server knows by other names; the handshake checks them before it uses any."""
        self.refusals = Refusals(self.names)
        self.log = log
        self.traffic = Traffic()
        self.peer = dialled.address
        """Where another connection to the same server can be made, if that is known."""
        self.reply_timeout_s = reply_timeout_s
        """How long a server may owe replies without sending anything."""
        self.max_reply_bytes = max_reply_bytes
        """A server that sends a longer reply is given up."""
        self.protocol: ProtocolVersion = 2
        """The version of the Redis protocol, by the handshake."""
        self.server = ServerIdentity()
        """The server at the other end, by the handshake."""
        self.no_touch = NoTouch.UNSUPPORTED
        """Whether reading leaves idle times and frequencies alone, by the handshake."""
        self._loop = asyncio.get_running_loop()
        self.info: Mapping[str, Reply] = {}
        """What the server has said of itself when it was identified last: the replies to INFO, by section."""
        self.closed: asyncio.Future[ConnectionLost] = self._loop.create_future()
        """Done, with the reason, as soon as the connection is gone."""
        self.ended_at: float | None = None
        """When that was, on the clock of the event loop."""
        self.round_trip_s = math.inf
        """The shortest time that a write took to be answered."""
        self._ready_s: float | None = None
        self._last_reply_s = 0.0
        self._buffer = bytearray(READ_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=ServerError, notEnoughData=_INCOMPLETE)
        self._pending: deque[_PendingWrite] = deque()
        self._unsent: deque[tuple[bytes, _PendingWrite]] = deque()
        self._paused = False
        self._ssh = dialled.ssh
        """What carries the connection, if that is SSH."""
        self._lent: socket.socket | Callable[[memoryview], None] | None = None
        """A socket of its own for whoever has the connection to itself, or what gets all bytes that arrive."""
        self._incomplete_bytes = 0
        self._last_data_s = 0.0
        self._silence_timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and not self.closed.done()

    @property
    def worked_s(self) -> float | None:
        """How long after its handshake the lane last brought a reply; None for no reply since."""
        if self._ready_s is None or self._last_reply_s <= self._ready_s:
            return None
        return self._last_reply_s - self._ready_s

    def mark_ready(self) -> None:
        """Note the end of the handshake: replies from now on count as work."""
        self._ready_s = self._loop.time()
        if self._ssh is not None:
            self._ssh.forget_said()
        self.log.ready(self.traffic.bytes_in)

    def run(self, *commands: Command) -> asyncio.Future[list[Reply]]:
        """Send all commands in one write; the future holds their replies in order, or raises `ConnectionLost`.

        A command that the server has denied to this user is not sent again: its reply is the earlier error. Nor is one
        sent that this kind of server must not get: its reply is an error that says why.
        """
        if self.refusals.denied or self.server.compatible is not None:
            refused = self.refusals.of(commands, self.server.compatible)
            if any(refused):
                allowed = tuple(command for command, error in zip(commands, refused, strict=True) if error is None)
                return with_errors(self._send(allowed), commands, refused)
        return self._send(commands)

    def _send(self, commands: tuple[Command, ...]) -> asyncio.Future[list[Reply]]:
        """Send commands in one write, whatever the server has said of them."""
        expected = 0
        for command in commands:
            if type(command) is not Command:
                raise TypeError("a lane carries guard commands only")
            expected += command.replies
        if self.names:
            commands = tuple(renamed(command, self.names) for command in commands)
        done = Replies(loop=self._loop)
        if not self.is_open:
            fail_quietly(done, self.closed.result() if self.closed.done() else ConnectionLost("It was never open."))
            return done
        if not expected:
            done.set_result([])
            return done
        self.traffic.commands += expected
        packed = commands[0].packed if len(commands) == 1 else b"".join([command.packed for command in commands])
        self._unsent.append((packed, _PendingWrite(commands, expected, done, current_purpose())))
        self._send_unsent()
        return done

    @property
    def silent_s(self) -> float:
        """How long the server has owed a reply without sending anything; 0.0 for none, or while it is lent."""
        return self._loop.time() - self._last_data_s if self._pending and self.is_open else 0.0

    @property
    def unheard_s(self) -> float:
        """How long nothing has arrived, whether anything is owed or not."""
        return self._loop.time() - self._last_reply_s

    @property
    def is_idle(self) -> bool:
        """Whether nothing is pending, so that it can be lent."""
        return self.is_open and not (self._pending or self._unsent or self._lent or self._paused)

    @property
    def is_wanted(self) -> bool:
        """Whether commands wait until it is given back, or it has ended."""
        return bool(self._unsent) or not self.is_open

    @property
    def has_socket(self) -> bool:
        """Whether its bytes go over the socket as they are, without TLS."""
        return self._transport is not None and self._transport.get_extra_info("sslcontext") is None

    def lend_socket(self, waits_us: int) -> socket.socket:
        """Stop reading, and return a duplicate of the socket; only while idle, and not with TLS.

        It blocks, for so long at most where there is nothing to read.
        """
        assert self._transport is not None  # noqa: S101 - it is idle, and so open
        lent = cast("socket.socket", self._transport.get_extra_info("socket").dup())
        self._transport.pause_reading()
        self._lent = lent
        lent.setblocking(True)
        lent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(waits_us, 1_000_000)))
        return lent

    def lend_stream(self, received: Callable[[memoryview], None]) -> asyncio.Transport:
        """Give all bytes that arrive to `received`, and return the transport to write to. Only while idle."""
        assert self._transport is not None  # noqa: S101 - it is idle, and so open
        self._lent = received
        return self._transport

    def take_back(self) -> None:
        """Go on as usual; nothing may be pending any more, unless the connection has ended."""
        lent, self._lent = self._lent, None
        if isinstance(lent, socket.socket):
            lent.setblocking(False)  # for the transport's socket, too
            lent.close()
            if self.is_open and self._transport is not None:
                self._transport.resume_reading()
        if self.is_open:
            self._last_reply_s = self._loop.time()
            self._send_unsent()
        else:
            self.log.ended()

    def count_traffic(self, sent: dict[str, int], replies: int, bytes_in: int, bytes_out: int) -> None:
        """Count what went over the connection while it was lent: commands by name, and the replies that came."""
        self.traffic.commands += sum(sent.values())
        self.traffic.bytes_in += bytes_in
        self.traffic.bytes_out += bytes_out
        self.log.worked(sent, replies, bytes_out, self.traffic.bytes_in)

    def close(self) -> None:
        """Close at once; pending replies fail."""
        self.fail(ConnectionLost("It was closed by rtui."))

    def _send_unsent(self) -> None:
        """Write what waits, until the transport has as much as it takes."""
        assert self._transport is not None  # noqa: S101 - is_open was checked
        while self._unsent and not self._paused and self._lent is None:
            packed, write = self._unsent.popleft()
            if not self._pending:
                self._last_data_s = self._loop.time()
                if self._silence_timer is None:
                    self._silence_timer = self._loop.call_later(self.reply_timeout_s, self._check_silence)
            self._pending.append(write)
            write.sent_s = self._loop.time()
            self.traffic.bytes_out += len(packed)
            self.log.sent(write.commands, write.purpose)
            self._transport.write(packed)

    def buffer_updated(self, nbytes: int) -> None:
        """Parse new bytes, and finish every pending write whose replies are complete."""
        if self.closed.done():
            return
        if self._lent is not None and not isinstance(self._lent, socket.socket):
            self._lent(self._view[:nbytes])
            return
        self._last_data_s = self._last_reply_s = self._loop.time()
        self.traffic.bytes_in += nbytes
        self._incomplete_bytes += nbytes
        self.log.received(self._buffer, nbytes)
        if self._incomplete_bytes > self.max_reply_bytes:
            happened = f"It sent more than {self.max_reply_bytes >> 20} MiB in answer to one write."
            self.fail(ConnectionLost(happened))
            return
        reader = self._reader
        reader.feed(cast(bytes, self._buffer), 0, nbytes)
        gets = reader.gets if self.protocol == 2 and not self.names else self._next_reply
        pending = self._pending
        try:
            while pending:
                write = pending[0]
                replies = write.replies
                replies += islice(iter(gets, _INCOMPLETE), write.expected - len(replies))
                if len(replies) < write.expected:
                    return
                pending.popleft()
                self._incomplete_bytes = 0
                self.round_trip_s = min(self.round_trip_s, self._last_data_s - write.sent_s)
                self.log.answered(replies, self.traffic.bytes_in)
                for report in self.log.on_replies:
                    report(write.commands, replies, self._loop.time() - write.sent_s)
                has_errors = ServerError in set(map(type, replies))
                errors = [reply for reply in replies if isinstance(reply, ServerError)] if has_errors else []
                if errors:
                    self.refusals.learn(write.commands, replies)
                if self.protocol == 3:
                    names = [command.name for command in write.commands for _ in range(command.replies)]
                    replies = list(map(as_resp2, names, replies))
                if not write.done.done():
                    write.done.arrived_s = self._last_data_s
                    write.done.set_result(replies)
                if errors and self.end_if_logged_out(errors):
                    return
            self.handle_unexpected(gets())
        except hiredis.ProtocolError as error:
            self.fail(ConnectionLost(f"What it sends is not the Redis protocol ({error}).", kind=FailureKind.PROTOCOL))

    def _next_reply(self) -> Reply:
        """Parse the next reply to a request, with the own names of commands in an error.

        Push messages of protocol 3 in between are dropped.
        """
        reply = self._reader.gets()
        while isinstance(reply, hiredis.PushNotification):
            reply = self._reader.gets()
        if self.names and isinstance(reply, ServerError):
            reply = ServerError(self.names.known(str(reply.args[0])))
        return cast(Reply, reply)

    def end_if_logged_out(self, errors: Iterable[ServerError]) -> bool:
        """End the connection where the server wants a password after the handshake; return whether that is so.

        The password has run out, or was taken back.
        """
        error = next((one for one in errors if one.code == "NOAUTH"), None)
        if error is None or self._ready_s is None:
            return False
        self.fail(ConnectionLost("The server wants the password once more.", last_error=error))
        return True

    def handle_unexpected(self, reply: object) -> None:
        """End the connection over a reply without a request: an error says why the server closes it."""
        if reply is _INCOMPLETE or isinstance(reply, hiredis.PushNotification):
            return
        if isinstance(reply, ServerError):
            # Its text is not shown: an error may quote a request, and a request may contain a password.
            self.fail(ConnectionLost(f"The server sent an error of its own accord ({reply.code}).", last_error=reply))
            return
        self.fail(ConnectionLost("It sends replies that nobody asked for.", kind=FailureKind.PROTOCOL))

    def _check_silence(self) -> None:
        self._silence_timer = None
        if not self._pending:
            return
        silent_s = self._loop.time() - self._last_data_s
        if silent_s >= self.reply_timeout_s:
            happened = f"The server has owed an answer for {self.reply_timeout_s:g} s."
            self.fail(ConnectionLost(happened, kind=FailureKind.TIMEOUT))
            return
        self._silence_timer = self._loop.call_later(self.reply_timeout_s - silent_s, self._check_silence)

    def fail(self, reason: ConnectionLost) -> None:
        """End it, and fail everything that is pending, for the first reason that is found."""
        if self.closed.done():
            return
        if reason.last_error is None and self._pending:
            errors = (one for one in reversed(self._pending[0].replies) if isinstance(one, ServerError))
            reason.last_error = next(errors, None)
        self.ended_at = self._loop.time()
        self.closed.set_result(reason)
        if self._silence_timer is not None:
            self._silence_timer.cancel()
            self._silence_timer = None
        for write in (*self._pending, *(write for _, write in self._unsent)):
            fail_quietly(write.done, reason)
        self._pending.clear()
        self._unsent.clear()
        if self._lent is None:
            self.log.ended()
        if isinstance(self._lent, socket.socket):
            with contextlib.suppress(OSError):
                self._lent.shutdown(socket.SHUT_RDWR)
        if self._transport is not None:
            self._transport.abort()
        self.end_ssh()

    def end_ssh(self) -> SafeText | None:
        """End what carries the connection; return what it has said."""
        ssh, self._ssh = self._ssh, None
        if ssh is None:
            return None
        said = ssh.said()
        ssh.end()
        return said

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where bytes go: a view, since TLS fills it in slices, and a slice of a bytearray is a copy."""
        return self._view

    def pause_writing(self) -> None:
        """Hold what is sent back: the transport has enough."""
        self._paused = True

    def resume_writing(self) -> None:
        """Send what was held back."""
        self._paused = False
        self._send_unsent()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the lane."""
        happened = "The server closed the connection."
        if exc is not None:
            reason = display_text(getattr(exc, "strerror", None) or str(exc) or type(exc).__name__)
            happened = f"The connection broke: {reason}."
        said = None if self.closed.done() else self.end_ssh()
        self.fail(ConnectionLost(happened) if said is None else ConnectionLost(said, kind=FailureKind.SSH))
