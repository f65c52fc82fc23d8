"""A recorded session in place of a server: its replies, its clock, and the limits of a replay.

A reply is looked up by its command line and the time of the replay, not by its position in the file, so a replay may
send commands in a slightly different order. If a command has several replies, it gets the latest one requested until
now, or a moment later. A command that was never recorded is answered with an error that says so.

SCAN is answered by its cursor. A cursor that was not recorded lies within some page or between two, since COUNT depends
on a server's speed:

    recorded:  cursor 0 ──── page 1 ────► 48 ──── page 2 ────► 0
    requested:            cursor 20, the keys from there on

Positions of cursors only grow (see `rtui.server.scan.cursor`), so the answer is the page that contains the position,
with the next cursor of that page. Keys that another page has shown to be before the position are left out; others may
be repeated, as is allowed in SCAN.

Recordings come from other people, and their keys reach every command of the interface: one that writes a value to a
file, one that shows it in a pager, one that connects to a server of a profile. Python reports each such step to audit
hooks before it happens, from all modules and threads. The hook refuses it with the error that the operating system
would give, so each place shows its usual message.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, AnyStr, Final

import hiredis

from rtui.server.recording.document import Exchange, Recording, reply_of
from rtui.server.scan.cursor import POSITION_END, Dialect
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.target import ProtocolVersion

LOOK_S = 0.02
"""How often a waiter checks the clock."""


class ReplayClock:
    """A clock in milliseconds since the beginning of a recorded session."""

    def __init__(self, *, speed: float = 1.0, is_paused: bool = False, now_s: Callable[[], float] = time.monotonic):
        """`speed` is seconds of the session per second; `now_s` returns seconds of a monotonic clock."""
        self._now_s = now_s
        self._speed = speed
        self._is_paused = is_paused
        self._at_ms = 0.0
        self._since_s = now_s()

    @property
    def speed(self) -> float:
        """Seconds of the session per second; 1 is the recorded speed."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    def now_ms(self) -> float:
        """Return the time in the session, in milliseconds."""
        passed_s = 0.0 if self._is_paused else self._now_s() - self._since_s
        return self._at_ms + 1000 * passed_s * self._speed

    def set_speed(self, speed: float) -> None:
        self._hold()
        self._speed = speed

    def pause(self, *, is_paused: bool = True) -> None:
        self._hold()
        self._is_paused = is_paused

    def jump(self, to_ms: float) -> None:
        """Move ahead to a time; never back."""
        self._at_ms = max(self.now_ms(), to_ms)
        self._since_s = self._now_s()

    async def wait_until(self, at_ms: float) -> None:
        """Wait until the clock reaches a time, by running or by a jump."""
        while self.now_ms() < at_ms:  # noqa: ASYNC110 - the time may also jump
            await asyncio.sleep(LOOK_S)

    def _hold(self) -> None:
        self._at_ms, self._since_s = self.now_ms(), self._now_s()


_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_REFUSED: Final = frozenset(
    {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate"}
    | {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"}
    | {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "os.utime"}
    | {"shutil.move", "shutil.rmtree", "shutil.copyfile", "os.putenv", "os.unsetenv", "os.kill", "os.killpg"}
)

_TERMINAL: Final = ("/dev/tty", "/dev/null")


def confine() -> None:
    """Refuse all forbidden operations of a replay until this process ends."""
    sys.dont_write_bytecode = True
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED:
        raise PermissionError(errno.EACCES, "a replay is read-only")
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and path not in _TERMINAL and not isinstance(path, int):
            raise PermissionError(errno.EACCES, "a replay writes no files")


SOON_MS: Final = 250.0
"""A reply requested at most this much later is used, too: a replay may be a moment ahead."""

NOT_RECORDED: Final = ServerError("ERR this was not asked in the recorded session")

_READ_BYTES: Final = 1 << 18

Argv = tuple[bytes, ...]


class _Pages:
    """The pages of a SCAN with given filters."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._by_cursor: dict[bytes, list[Exchange]] = {}
        self._ends: dict[str, int] = {}
        """By key, the first position known to be after it."""
        placed: list[tuple[int, int, Exchange]] = []
        for exchange in exchanges:
            cursor = exchange.command[1].encode("latin-1")
            self._by_cursor.setdefault(cursor, []).append(exchange)
            start, reached = _position(cursor), _end_position(exchange)
            if start is None or reached <= start:
                continue
            placed.append((start, reached, exchange))
            for key in _keys(exchange):
                self._ends[key] = min(self._ends.get(key, POSITION_END), reached)
        self._starts: list[int] = []
        self._chain: list[Exchange] = []
        """Pages that cover the most positions with the fewest repeats: the longest one from each position."""
        furthest = -1
        for start, reached, exchange in sorted(placed, key=lambda one: (one[0], -one[1])):
            if reached > furthest:
                self._starts.append(start)
                self._chain.append(exchange)
                furthest = reached

    def at(self, cursor: bytes, count: bytes | None, now_ms: float) -> Exchange | None:
        """Return the page for a cursor; None if no page there was recorded."""
        exact = self._by_cursor.get(cursor)
        if exact is not None:
            wanted = None if count is None else count.decode("latin-1")
            same = [exchange for exchange in exact if _count(exchange.command) == wanted]
            return _latest(same, now_ms) if same else max(exact, key=_end_position)
        position = _position(cursor)
        if position is None or not self._chain:
            return None
        at = bisect_right(self._starts, position) - 1
        if at < 0 or _end_position(self._chain[at]) <= position:
            return None
        page = self._chain[at]
        keys = [key for key in _keys(page) if self._ends.get(key, POSITION_END) > position]
        return Exchange(page.at, page.took, page.db, page.command, [page.reply[0], keys])


class Player:
    """Answers connections from a recording."""

    def __init__(
        self,
        recording: Recording,
        clock_ms: Callable[[], float],
        wait_until: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        """`clock_ms` returns the time of the replay; `wait_until` waits for a time, so that replies take as long as
        recorded."""
        self.answered = 0
        self.missing = 0
        """The number of answered commands that were not in the recording."""
        self._clock_ms, self._wait_until = clock_ms, wait_until
        self._replies: dict[tuple[int, Argv], list[Exchange]] = {}
        scans: dict[tuple[int, Argv], list[Exchange]] = {}
        for exchange in recording.exchanges:
            argv = tuple(word.encode("latin-1") for word in exchange.command)
            if _is_scan(argv):
                scans.setdefault((exchange.db, _filters(argv)), []).append(exchange)
            else:
                self._replies.setdefault((exchange.db, argv), []).append(exchange)
        self._pages = {scan: _Pages(found) for scan, found in scans.items()}
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self) -> socket.socket:
        """Return a socket connected to the player; needs a running event loop."""
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(far), name="rtui replay")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return near

    async def _serve(self, sock: socket.socket) -> None:
        """Answer the commands of one connection, in order, until it is closed."""
        loop, reader = asyncio.get_running_loop(), hiredis.Reader()
        db: int = 0
        protocol: ProtocolVersion = 2
        try:
            while data := await loop.sock_recv(sock, _READ_BYTES):
                reader.feed(data)
                arrived_ms = self._clock_ms()
                out = bytearray()
                while isinstance(request := reader.gets(), list):
                    argv: Argv = tuple(request)
                    if argv[0] == b"SELECT" and argv[1].isdigit():
                        db = int(argv[1])
                    reply, took_ms = self.reply(db, argv)
                    if argv[0] == b"HELLO" and not isinstance(reply, ServerError) and argv[1:2] == (b"3",):
                        protocol = 3
                    if self._wait_until is not None and arrived_ms + took_ms > self._clock_ms():
                        await loop.sock_sendall(sock, out)
                        out.clear()
                        await self._wait_until(arrived_ms + took_ms)
                    out += packed(reply, protocol)
                    if len(out) > _READ_BYTES:
                        await loop.sock_sendall(sock, out)
                        out.clear()
                await loop.sock_sendall(sock, out)
        except (OSError, hiredis.ProtocolError):  # closed by the other side
            pass
        finally:
            sock.close()

    def reply(self, db: int, argv: Argv) -> tuple[Reply, float]:
        """Return the reply to a command, and its recorded duration in milliseconds."""
        self.answered += 1
        exchange: Exchange | None = None
        if _is_scan(argv):
            pages = self._pages.get((db, _filters(argv)))
            exchange = None if pages is None else pages.at(argv[1], _count(argv), self._clock_ms())
        else:
            has_password = argv[0] == b"AUTH" or (argv[0] == b"HELLO" and b"AUTH" in argv)
            found = self._replies.get((db, argv[:1] if has_password else argv))
            exchange = None if found is None else _latest(found, self._clock_ms())
        if exchange is None:
            self.missing += 1
            return NOT_RECORDED, 0.0
        return reply_of(exchange.reply), exchange.took


def _latest(exchanges: Sequence[Exchange], now_ms: float) -> Exchange:
    """Return the latest exchange that has begun by now, else the first."""
    after = bisect_right(exchanges, now_ms + SOON_MS, key=lambda one: one.at)
    return exchanges[max(0, after - 1)]


def _filters(argv: Argv) -> Argv:
    """Return the filters of a SCAN: all arguments but its cursor and COUNT."""
    rest = list(argv[2:])
    at = _count_at(rest)
    return tuple(rest[:at] + rest[at + 2 :])


def _is_scan(argv: Argv) -> bool:
    return argv[0] == b"SCAN" and len(argv) >= 2


def _count_at(words: Sequence[AnyStr]) -> int:
    """Return the index of the last COUNT (a pattern may be the same word), `len(words)` without one."""
    at = len(words) - 1
    while at >= 0 and words[at] not in (b"COUNT", "COUNT"):
        at -= 1
    return at if at >= 0 else len(words)


def _count(words: Sequence[AnyStr]) -> AnyStr | None:
    at = _count_at(words) + 1
    return words[at] if at < len(words) else None


def _keys(exchange: Exchange) -> list[str]:
    reply = exchange.reply
    if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[1], list):
        return []
    return [key for key in reply[1] if isinstance(key, str)]


def _position(cursor: bytes) -> int | None:
    if not cursor.isdigit() or len(cursor) > 20 or int(cursor) >= POSITION_END:
        return None
    return Dialect.STANDALONE.position(int(cursor))


def _end_position(exchange: Exchange) -> int:
    """Return the position at the end of a page; -1 for a reply of another form."""
    reply = exchange.reply
    if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[0], str):
        return -1
    cursor = reply[0].encode("latin-1")
    position = _position(cursor)
    return -1 if position is None else position or POSITION_END


def packed(reply: Reply, protocol: ProtocolVersion) -> bytes:
    out = bytearray()
    _pack(reply, protocol, out)
    return bytes(out)


def _pack(reply: Reply, protocol: ProtocolVersion, out: bytearray) -> None:
    if reply is None:
        out += b"_\r\n" if protocol == 3 else b"$-1\r\n"
    elif isinstance(reply, bytes):
        out += b"$%d\r\n%b\r\n" % (len(reply), reply)
    elif isinstance(reply, bool):
        out += (b"#t\r\n" if reply else b"#f\r\n") if protocol == 3 else b":%d\r\n" % reply
    elif isinstance(reply, int):
        out += b":%d\r\n" % reply
    elif isinstance(reply, float):
        text = repr(reply).encode()
        out += b",%b\r\n" % text if protocol == 3 else b"$%d\r\n%b\r\n" % (len(text), text)
    elif isinstance(reply, ServerError):
        out += b"-%b\r\n" % " ".join(str(reply.args[0]).split()).encode("utf-8", "replace")
    elif isinstance(reply, dict):
        out += b"%%%d\r\n" % len(reply) if protocol == 3 else b"*%d\r\n" % (2 * len(reply))
        for pair in reply.items():
            for element in pair:
                _pack(element, protocol, out)
    else:
        out += b"*%d\r\n" % len(reply)
        for element in reply:
            _pack(element, protocol, out)
