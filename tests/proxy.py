"""Proxies before a server: one delays, cuts and writes down, one answers a command wrongly, one judges each command."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from rtui.server.guard.command import find_spec
from tests.server.guard.harmless import is_harmless
from tests.wire import CHUNK_BYTES, Listener, Requests, array, bulk


@dataclass
class RoundTrips:
    """How often one client has sent something after it was answered, and so had waited for the answer."""

    count: int = 0
    _is_answered: bool = True

    def asked(self) -> None:
        """Count a request, unless it was sent together with the one before."""
        self.count += self._is_answered
        self._is_answered = False

    def answered(self) -> None:
        """Have the next request count."""
        self._is_answered = True


class _Pipe:
    """One direction of one connection: chunks leave `delay_s` after they came in, in order."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float, trips: RoundTrips
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._delay_s = delay_s
        self._trips = trips
        self._chunks: deque[tuple[float, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._passed = 0

    async def read(self, seen: Requests | None) -> None:
        """Take chunks in until the sender closes; an empty chunk marks the end."""
        loop = asyncio.get_running_loop()
        data = b"start"
        while data:
            data = await self._reader.read(CHUNK_BYTES)
            if seen is not None:
                seen.feed(data)
                if data:
                    self._trips.asked()
            self._chunks.append((loop.time() + self._delay_s, data))
            self._arrived.set()

    async def write(self, proxy: DelayProxy, *, replies: bool) -> None:
        """Pass each chunk on when it is due; replies wait while the proxy holds them."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._chunks:
                self._arrived.clear()
                await self._arrived.wait()
            due, data = self._chunks.popleft()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if replies and data:
                await proxy.pass_reply()
            if not data:
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                return
            if replies and not proxy.may_pass(self._passed, len(data)):
                raise ConnectionResetError
            self._passed += len(data)
            if replies:
                self._trips.answered()
            cut = proxy.allowance(len(data)) if replies else None
            self._writer.write(data if cut is None else data[:cut])
            await self._writer.drain()
            if cut is not None:
                proxy.act()
                if not proxy.goes_on:
                    return


class DelayProxy(Listener):
    """Passes everything on to a server.

    `delay_s` is added in each direction, so a round trip takes twice that. `requests` holds every command that
    clients sent, by connection, in the order in which the connections came, unless nobody `records` it.
    """

    def __init__(
        self, upstream_port: int, delay_s: float = 0.0, *, host: str = "127.0.0.1", records: bool = True
    ) -> None:
        super().__init__()
        self.requests: list[Requests] = []
        self.round_trips: list[RoundTrips] = []
        """Of each connection, in the order in which they came, where requests are recorded."""
        self.held = 0
        self._upstream = (host, upstream_port)
        self._delay_s = delay_s
        self._records = records
        self.most_bytes: int | None = None
        """Each connection is cut before it would have passed on more bytes of replies than this; None for no bound."""
        self._left_bytes: int | None = None
        self.act: Callable[[], object] = self.cut_softly
        """Done when the bytes of `cut_after` have been passed on."""
        self.goes_on = False
        """Whether the connection is open after that."""
        self._flow = asyncio.Event()
        self._flow.set()

    @property
    def connections(self) -> int:
        return len(self.tasks)

    def commands(self) -> list[list[bytes]]:
        """Every command of every connection so far."""
        return [argv for requests in self.requests for argv in requests.commands]

    def cut(self) -> None:
        """Drop all connections now, also where replies are held back."""
        super().cut()
        self._flow.set()

    def lead_to(self, port: int) -> None:
        """Pass on to another server what connects from now on."""
        self._upstream = (self._upstream[0], port)

    def cut_softly(self) -> None:
        """Drop all connections after what has been passed on has left."""
        for writer in self.writers:
            writer.close()
        for task in self.tasks:
            task.cancel()

    def cut_for_good(self) -> None:
        """Do what `cut_softly` does, and refuse new connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut_softly()

    def cut_after(self, reply_bytes: int) -> None:
        """Drop all connections when this many more bytes of replies have been passed on: in the middle of one."""
        self._left_bytes = reply_bytes

    def allowance(self, size_bytes: int) -> int | None:
        """How much of a chunk may pass before the cut that `cut_after` ordered; None is all of it."""
        if self._left_bytes is None:
            return None
        self._left_bytes -= size_bytes
        if self._left_bytes > 0:
            return None
        left, self._left_bytes = self._left_bytes + size_bytes, None
        return left

    def may_pass(self, passed_bytes: int, size_bytes: int) -> bool:
        """Whether a connection that has passed on so much may pass on so much more."""
        return self.most_bytes is None or passed_bytes + size_bytes <= self.most_bytes

    def hold_replies(self) -> None:
        """Let requests through and keep every reply back."""
        self._flow.clear()

    def release_replies(self) -> None:
        """Pass on what was held back, and everything after it."""
        self._flow.set()

    async def pass_reply(self) -> None:
        if not self._flow.is_set():
            self.held += 1
            await self._tell()
            await self._flow.wait()
            self.held -= 1

    async def wait_held(self, count: int) -> None:
        """Wait until the replies of this many connections are being held back."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.held >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self._upstream, limit=CHUNK_BYTES)
        self.writers.add(up_writer)
        trips = RoundTrips()
        self.round_trips.append(trips)
        try:
            ahead = _Pipe(reader, up_writer, self._delay_s, trips)
            await self._pass_on(ahead, _Pipe(up_reader, writer, self._delay_s, trips))
        finally:
            up_writer.close()
            self.writers.discard(up_writer)

    async def _pass_on(self, ahead: _Pipe, back: _Pipe) -> None:
        """Carry one connection until both sides have closed it or one of them is cut."""
        seen = Requests() if self._records else None
        if seen is not None:
            self.requests.append(seen)
        works = (ahead.read(seen), back.read(None), ahead.write(self, replies=False), back.write(self, replies=True))
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()


async def _serve_for_ever(upstream_port: int, delay_s: float) -> None:
    async with DelayProxy(upstream_port, delay_s, records=False) as proxy:
        sys.stdout.write(f"{proxy.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    # A process of its own for benchmarks: python -m tests.proxy UPSTREAM_PORT DELAY_MS; prints its port.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_for_ever(int(sys.argv[1]), float(sys.argv[2]) / 1000))


Words = tuple[bytes, ...]
"""The words of a command in the closed list: the command itself, and its subcommand where it has one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What stands in the place of a reply: its bytes on the wire; None hangs up."""

    name: str
    reply: bytes | None
    is_passing: bool = False
    """Whether the server says by it that waiting may help."""
    is_page: bool = False
    """Whether only what scans could take it for an answer."""

    def concerns(self, words: Words) -> bool:
        """Whether it says more in the place of this command's reply than the other faults do."""
        return not self.is_page or words[-1].endswith(b"SCAN")


class Replies:
    """Cuts the bytes that a server sends into whole replies."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take more bytes; give the replies that are whole."""
        self._rest += data
        found, start = [], 0
        while (end := self._end(start)) is not None:
            found.append(bytes(self._rest[start:end]))
            start = end
        del self._rest[:start]
        return found

    def _end(self, start: int) -> int | None:
        """Where the reply that begins at `start` ends, None when its end is missing."""
        line_end = self._rest.find(b"\r\n", start)
        if line_end < 0:
            return None
        kind, text, end = bytes(self._rest[start : start + 1]), self._rest[start + 1 : line_end], line_end + 2
        if kind in (b"$", b"=", b"!"):
            size = int(text)
            end += 0 if size < 0 else size + 2
            return end if end <= len(self._rest) else None
        items = {b"*": 1, b"~": 1, b">": 1, b"%": 2}.get(kind, 0)
        for _ in range(items * max(0, int(text)) if items else 0):
            inner = self._end(end)
            if inner is None:
                return None
            end = inner
        return end


class FaultProxy(Listener):
    """Passes everything on to a server but the replies to one command."""

    def __init__(self, upstream_port: int) -> None:
        super().__init__()
        self.fault: tuple[Words, Fault] | None = None
        """Which command is answered with what; None changes nothing."""
        self.seen: set[bytes] = set()
        """The first word, and the first two with a space between, of every command that came."""
        self.struck = 0
        """Replies that were replaced."""
        self._upstream_port = upstream_port

    def strike(self, words: Words, fault: Fault) -> None:
        """From now on answer this command so."""
        self.fault, self.struck = (words, fault), 0

    def heal(self) -> None:
        self.fault = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes from both sides until one of them has closed."""
        upstream, to_server = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        asked: deque[Words] = deque()
        halves = [
            asyncio.ensure_future(self._answer(upstream, writer, asked)),
            asyncio.ensure_future(self._ask(reader, to_server, asked)),
        ]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)
            for one in (writer, to_server):
                one.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter, asked: deque[Words]) -> None:
        requests = Requests()
        while data := await reader.read(1 << 16):
            requests.feed(data)
            for argv in requests.commands:
                asked.append((argv[0], b" ".join(argv[:2])))
                self.seen.update(asked[-1])
            requests.commands.clear()
            to_server.write(data)

    async def _answer(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[Words]) -> None:
        replies = Replies()
        while data := await upstream.read(1 << 16):
            passed = bytearray()
            for reply in replies.feed(data):
                names = asked.popleft()
                if self.fault is not None and b" ".join(self.fault[0]) in names:
                    self.struck += 1
                    fault = self.fault[1].reply
                    if fault is None:
                        writer.write(passed)
                        with contextlib.suppress(ConnectionError):
                            await writer.drain()
                        return
                    passed += fault
                else:
                    passed += reply
            writer.write(passed)


_NUMBER_OF_5_000_DIGITS = bulk(b"7" * 5_000)

FAULTS = (
    Fault("denied", b"-NOPERM User default has no permissions to run this command\r\n"),
    Fault("busy", b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL.\r\n", is_passing=True),
    Fault("loading", b"-LOADING Redis is loading the dataset in memory\r\n", is_passing=True),
    Fault("unknown", b"-ERR unknown command\r\n"),
    Fault("failed", b"-ERR something went wrong \xff\x1b[2J\r\n"),
    Fault("wrong type", b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
    Fault("nil", b"$-1\r\n"),
    Fault("nil array", b"*-1\r\n"),
    Fault("status", b"+OK\r\n"),
    Fault("below zero", b":-3\r\n"),
    Fault("largest number", b":9223372036854775807\r\n"),
    Fault("text", bulk(b"hello")),
    Fault("nothing", bulk(b"")),
    Fault("hostile text", bulk(b"\x1b]0;x\x07\xff\xfe[red]\r\n")),
    Fault("5,000 digits", _NUMBER_OF_5_000_DIGITS),
    Fault("empty array", array()),
    Fault("nested arrays", array(array(array(b":5\r\n"), array()), bulk(b"a"))),
    Fault("page of numbers", array(bulk(b"0"), array(b":1\r\n", b"$-1\r\n")), is_page=True),
    Fault("page with a far cursor", array(bulk(b"%d" % (1 << 70)), array(bulk(b"a"))), is_page=True),
    Fault("page with a long cursor", array(_NUMBER_OF_5_000_DIGITS, array(bulk(b"a"))), is_page=True),
    Fault("page without keys", array(bulk(b"0"), array()), is_page=True),
    Fault("large number", b"(123456789012345678901234567890\r\n"),
    Fault("no number", b",nan\r\n"),
    Fault("truth", b"#t\r\n"),
    Fault("map", b"%1\r\n" + bulk(b"a") + b":-1\r\n"),
    Fault("no protocol", b"?what\r\n"),
    Fault("cut", None),
)
"""Every way in which a server, a proxy or a module may answer that is not the one the manual describes."""


PIECE: Final = 1 << 16

PATIENCE_S: Final = 10.0


class WireJudge:
    """Listens on a free loopback port and passes everything on, a thread for each direction of each connection."""

    def __init__(self, upstream_port: int) -> None:
        self.sent: Counter[str] = Counter()
        """How often each command was sent, by its entry in the closed list."""
        self.wrong: list[list[bytes]] = []
        """Command lines that the closed list or the second opinion does not admit."""
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._has_ended = False

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._has_ended = True
            for one in (self._listener, *self._sockets):
                _shut(one)
        for thread in list(self._threads):
            thread.join(PATIENCE_S)

    def _start(self, work: object, *given: object) -> None:
        thread = threading.Thread(target=work, args=given, name="wire judge", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._upstream_port))
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    if self._has_ended:
                        client.close()
                        server.close()
                        return
                    self._sockets += (client, server)
                self._start(self._pass_on, client, server, Requests())
                self._start(self._pass_on, server, client, None)

    def _pass_on(self, source: socket.socket, sink: socket.socket, requests: Requests | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                if requests is not None:
                    requests.feed(data)
                    for argv in requests.commands:
                        self._judge(argv)
                    requests.commands.clear()
                sink.sendall(data)
        _shut(source)
        _shut(sink)

    def _judge(self, argv: list[bytes]) -> None:
        spec = find_spec(argv)
        if spec is None or not is_harmless(argv):
            self.wrong.append(argv)
        else:
            self.sent[spec.name] += 1


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
