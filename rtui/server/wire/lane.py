"""Lane: one connection that carries guard commands only.

`run` writes any number of commands at once and returns a future of their replies. It may be called again before earlier
writes are answered (pipelining): a server replies in order, so a queue of pending writes is enough to match replies to
callers. Bytes from the socket go straight into the parser of hiredis, and the future of a write is done when its last
reply is parsed. When the connection ends, all pending futures fail with `ConnectionLost`.

The compiled engine of a scan sends and receives by itself. While nothing is pending it is lent the socket, or with TLS
the stream of bytes; commands that others run meanwhile wait until it is returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Final, cast

import hiredis

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import wall_clock
from rtui.server.guard.command import Command, CommandNames, renamed
from rtui.server.guard.compatible import CompatibleServer
from rtui.server.wire.command_log import LaneLog, Purpose, current_purpose
from rtui.server.wire.dial import Dialled
from rtui.server.wire.errors import NOT_SENT, ConnectionLost, FailureKind, Reply, ServerError, as_resp2, fail_quietly
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.target import DumpFile, ProtocolVersion, Target

_DISABLED: Final = "the profile says that this command is disabled on the server"


class Refusals:
    """The error replies to commands that are not sent on one lane.

    A server writes each attempt of a user at a denied command into its ACL LOG, so a command that it has denied once is
    not sent again. Other commands are never sent: those disabled by the profile, and those that this kind of server
    must not get.
    """

    def __init__(self, names: CommandNames, dump: DumpFile | None = None) -> None:
        self.disabled = {name: ServerError(f"NOPERM {_DISABLED}") for name in names.disabled()}
        """Errors by the names of commands that the profile disables, or that say nothing of a dump."""
        if dump is not None:
            self.disabled |= {name: ServerError(f"{NOT_SENT} {why}") for name, why in dump.without.items()}
        self.denied = dict(self.disabled)
        """Errors by the names of commands that this user may not run, including disabled ones."""

    def of(self, commands: Sequence[Command], compatible: CompatibleServer | None) -> list[ServerError | None]:
        """Return for each command the error in place of its reply, None if it may be sent.

        `compatible` is the server, if it is neither Redis nor Valkey and some commands would harm it.
        """
        return [self._of(command, compatible) for command in commands]

    def _of(self, command: Command, compatible: CompatibleServer | None) -> ServerError | None:
        denied = self.denied.get(command.name)
        if denied is not None or compatible is None or type(command) is not Command:
            return denied
        why = compatible.refusal(command)
        return None if why is None else ServerError(f"{NOT_SENT} {why}")

    def learn(self, commands: Sequence[Command], replies: Sequence[Reply]) -> None:
        """Learn from the replies to a write which commands this user may not run."""
        if len(commands) == len(replies):  # one reply each
            for command, reply in zip(commands, replies, strict=True):
                if isinstance(reply, ServerError) and reply.denies_command:
                    self.denied[command.name] = reply

    def forget(self) -> None:
        self.denied = dict(self.disabled)


def with_errors(
    sent: asyncio.Future[list[Reply]], commands: Sequence[Command], refused: Sequence[ServerError | None]
) -> asyncio.Future[list[Reply]]:
    """Return a future of the replies to all commands; `sent` has the replies to commands that were not refused."""
    done: asyncio.Future[list[Reply]] = sent.get_loop().create_future()

    def answer(replied: asyncio.Future[list[Reply]]) -> None:
        if done.done():
            return
        error = replied.exception()
        if error is not None:
            fail_quietly(done, cast(ConnectionLost, error))
            return
        replies = iter(replied.result())
        errors = [error for command, error in zip(commands, refused, strict=True) for _ in range(command.replies)]
        done.set_result([next(replies) if error is None else error for error in errors])

    sent.add_done_callback(answer)
    return done


def as_of_dump(commands: Sequence[Command], replies: Sequence[Reply]) -> list[Reply]:
    """Return the replies of a dump's server to one write, with times to live as of the dump.

    PTTL and HPTTL reply there with the moment of the expiry: for keys that have expired by now they would only say 0.
    The compiled engine, which reads by itself, does the same in `answer_first`.
    """
    found, at = list(replies), 0
    for command in commands:
        for place, name in zip(range(at, at + command.replies), cycle(command.name.split(" + ")), strict=False):
            if name in ("PTTL", "HPTTL"):
                found[place] = _left_ms(found[place])
        at += command.replies
    return found


def _left_ms(reply: Reply) -> Reply:
    """Return the time until a moment, or each of a list of them; negative replies mean something else, and stay."""
    if isinstance(reply, list):
        return [_left_ms(one) for one in reply]
    return wall_clock.left_ms(reply) if isinstance(reply, int) and reply >= 0 else reply


READ_BUFFER_BYTES: Final = 256 * 1024
"""The most bytes of one read from the socket of a bulk lane: large reads make parsing cheap."""

SMALL_BUFFER_BYTES: Final = 32 * 1024
"""The same of other lanes, of which a fleet has a thousand."""

MAX_REPLY_BYTES: Final = 512 << 20
"""The most bytes before the replies to one write are complete; no guard command asks for as much."""

_INCOMPLETE: Final = object()
"""The parser's result while no complete reply has arrived."""


@dataclass(slots=True)
class Traffic:
    """The traffic of a lane so far."""

    commands: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


class Replies(asyncio.Future[list[Reply]]):
    """The replies to one write, in order."""

    arrived_s = math.inf
    """When the last of them was read, on the clock of the event loop; the awaiting task may run later."""


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
    """A pipelined connection, made by `open_lane`; the callbacks of an asyncio protocol are for the event loop."""

    def __init__(
        self, target: Target, dialled: Dialled, log: LaneLog, *, max_reply_bytes: int, reply_timeout_s: float
    ) -> None:
        """`dialled` is its open socket."""
        self.target = target
        self.names = target.names
        """The server's names of renamed commands; the handshake checks them before it uses any."""
        self.refusals = Refusals(self.names, target.dump)
        self.log = log
        self.traffic = Traffic()
        self.peer = dialled.address
        """The address for another connection to the same server, if it is known."""
        self.reply_timeout_s = reply_timeout_s
        """The longest time for which a server may owe replies without sending anything."""
        self.max_reply_bytes = max_reply_bytes
        """A server that sends a longer reply is disconnected."""
        self.protocol: ProtocolVersion = 2
        self.server = ServerIdentity()
        self.no_touch = NoTouch.UNSUPPORTED
        """Whether reading leaves idle times and frequencies unchanged, from the handshake."""
        self._loop = asyncio.get_running_loop()
        self.info: Mapping[str, Reply] = {}
        """The replies to INFO by section, from the last time the server was identified."""
        self.closed: asyncio.Future[ConnectionLost] = self._loop.create_future()
        """Done, with the reason, as soon as the connection is gone."""
        self.ended_at: float | None = None
        """When the connection ended, on the clock of the event loop."""
        self.round_trip_s = math.inf
        self._ready_s: float | None = None
        self._last_reply_s = 0.0
        self._buffer = bytearray(READ_BUFFER_BYTES if log.is_bulk else SMALL_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=ServerError, notEnoughData=_INCOMPLETE)
        self._pending: deque[_PendingWrite] = deque()
        self._unsent: deque[tuple[bytes, _PendingWrite]] = deque()
        self._paused = False
        self._ssh = dialled.ssh
        """The SSH process that carries the connection, if there is one."""
        self._lent: socket.socket | Callable[[memoryview], None] | None = None
        """The duplicate socket, or the receiver of all arriving bytes, while the lane is lent."""
        self._incomplete_bytes = 0
        self._last_data_s = 0.0
        self._silence_timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self.closed.done()

    @property
    def worked_s(self) -> float | None:
        """The time from the handshake to the last reply; None without a reply."""
        if self._ready_s is None or self._last_reply_s <= self._ready_s:
            return None
        return self._last_reply_s - self._ready_s

    def mark_ready(self) -> None:
        """Note the end of the handshake: replies from now on count as work."""
        self._ready_s = self._loop.time()
        if self._ssh is not None:
            self._ssh.forget_messages()
        self.log.ready(self.traffic.bytes_in)

    def run(self, *commands: Command) -> asyncio.Future[list[Reply]]:
        """Send all commands in one write; the future holds their replies in order, or raises `ConnectionLost`.

        A command that the server has denied to this user is not sent again: its reply is the earlier error. Nor is a
        command sent that this kind of server must not get: its reply is an error with the reason.
        """
        if self.refusals.denied or self.server.compatible is not None:
            refused = self.refusals.of(commands, self.server.compatible)
            if any(refused):
                allowed = tuple(command for command, error in zip(commands, refused, strict=True) if error is None)
                return with_errors(self._send(allowed), commands, refused)
        return self._send(commands)

    def _send(self, commands: tuple[Command, ...]) -> asyncio.Future[list[Reply]]:
        """Send commands in one write, without a look at refusals."""
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
        """How long the server has owed a reply without sending anything; 0.0 if none is owed, or it is lent."""
        return self._loop.time() - self._last_data_s if self._pending and self.is_open else 0.0

    @property
    def unheard_s(self) -> float:
        """The time since the last bytes arrived, whether anything is owed or not."""
        return self._loop.time() - self._last_reply_s

    @property
    def is_idle(self) -> bool:
        return self.is_open and not (self._pending or self._unsent or self._lent or self._paused)

    @property
    def is_wanted(self) -> bool:
        """Whether commands wait for its return, or it has ended."""
        return bool(self._unsent) or not self.is_open

    @property
    def has_socket(self) -> bool:
        """Whether its bytes go over the socket as they are, without TLS."""
        return self._transport is not None and self._transport.get_extra_info("sslcontext") is None

    def lend_socket(self, waits_us: int) -> socket.socket:
        """Stop reading, and return a duplicate of the socket; only while idle, and not with TLS.

        A read from it blocks for `waits_us` at most.
        """
        assert self._transport is not None  # noqa: S101 - it is idle, and so open
        lent = cast("socket.socket", self._transport.get_extra_info("socket").dup())
        self._transport.pause_reading()
        self._lent = lent
        lent.setblocking(True)
        lent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(waits_us, 1_000_000)))
        return lent

    def lend_stream(self, received: Callable[[memoryview], None]) -> asyncio.Transport:
        """Pass all arriving bytes to `received`, and return the transport to write to. Only while idle."""
        assert self._transport is not None  # noqa: S101 - it is idle, and so open
        self._lent = received
        return self._transport

    def take_back(self) -> None:
        """Resume normal work; nothing may be pending any more, unless the connection has ended."""
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
        """Count the traffic while it was lent: commands by name, replies and bytes."""
        self.traffic.commands += sum(sent.values())
        self.traffic.bytes_in += bytes_in
        self.traffic.bytes_out += bytes_out
        self.log.worked(sent, replies, bytes_out, self.traffic.bytes_in)

    def close(self) -> None:
        self.fail(ConnectionLost("It was closed by rtui."))

    def _send_unsent(self) -> None:
        """Write waiting commands, until the transport's buffer is full."""
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
                if self.target.dump is not None:
                    replies = as_of_dump(write.commands, replies)
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
        """Parse the next reply to a request, with the commands' own names in an error.

        Push messages of protocol 3 in between are dropped.
        """
        reply = self._reader.gets()
        while isinstance(reply, hiredis.PushNotification):
            reply = self._reader.gets()
        if self.names and isinstance(reply, ServerError):
            reply = ServerError(self.names.known(str(reply.args[0])))
        return cast(Reply, reply)

    def end_if_logged_out(self, errors: Iterable[ServerError]) -> bool:
        """End the connection if the server wants a password after the handshake; return whether it did.

        The password has expired, or was revoked.
        """
        error = next((error for error in errors if error.code == "NOAUTH"), None)
        if error is None or self._ready_s is None:
            return False
        self.fail(ConnectionLost("The server wants the password once more.", last_error=error))
        return True

    def handle_unexpected(self, reply: object) -> None:
        """End the connection over a reply without a request: an error tells why the server closes it."""
        if reply is _INCOMPLETE or isinstance(reply, hiredis.PushNotification):
            return
        if isinstance(reply, ServerError):
            # Its text is not shown: an error may quote a request, and a request may contain a password.
            self.fail(ConnectionLost(f"The server sent an error of its own accord ({reply.code}).", last_error=reply))
            return
        self.fail(ConnectionLost("It sends replies to commands that were not sent.", kind=FailureKind.PROTOCOL))

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
        """End it, and fail everything pending, with the first reason that is found."""
        if self.closed.done():
            return
        if reason.last_error is None and self._pending:
            errors = (reply for reply in reversed(self._pending[0].replies) if isinstance(reply, ServerError))
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
        """End the SSH process that carries the connection; return its last messages."""
        ssh, self._ssh = self._ssh, None
        if ssh is None:
            return None
        messages = ssh.messages()
        ssh.end()
        return messages

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the read buffer as a view, since TLS fills it in slices, and a slice of a bytearray is a copy."""
        return self._view

    def pause_writing(self) -> None:
        """Hold commands back: the transport's buffer is full."""
        self._paused = True

    def resume_writing(self) -> None:
        """Send the commands that were held back."""
        self._paused = False
        self._send_unsent()

    def connection_lost(self, exc: Exception | None) -> None:
        happened = "The server closed the connection."
        if exc is not None:
            reason = display_text(getattr(exc, "strerror", None) or str(exc) or type(exc).__name__)
            happened = f"The connection broke: {reason}."
        said = None if self.closed.done() else self.end_ssh()
        self.fail(ConnectionLost(happened) if said is None else ConnectionLost(said, kind=FailureKind.SSH))
