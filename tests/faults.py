"""A proxy before a server that answers one command of the closed list with something else, or hangs up on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from tests.wire import Listener, Requests, array, bulk

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
