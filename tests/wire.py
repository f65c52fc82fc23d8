"""The protocol as bytes on the wire, and the TCP server behind every fake server and proxy of the tests."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from rtui.server.wire.target import Target

CHUNK_BYTES = 256 * 1024
"""How much is read at once."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What becomes of one connection."""


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def array(*items: bytes) -> bytes:
    return b"*%d\r\n%b" % (len(items), b"".join(items))


class NotACommandError(ValueError):
    """A client sent something that is not an array of bulk strings."""


class Requests:
    """The commands in one client's stream of bytes, each as its list of arguments."""

    def __init__(self) -> None:
        self.commands: list[list[bytes]] = []
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Take more bytes; a command that is not complete waits for the next ones."""
        self._rest += data
        start = 0
        while (end := self._command(start)) is not None:
            start = end
        del self._rest[:start]

    @property
    def incomplete(self) -> bytes:
        """The beginning of a command whose end has not come yet."""
        return bytes(self._rest)

    def _command(self, start: int) -> int | None:
        """Take the command that begins at `start`; return where it ends, None when its end is missing."""
        header = self._number(start, b"*")
        if header is None:
            return None
        arguments, position = header
        argv = []
        for _ in range(arguments):
            header = self._number(position, b"$")
            if header is None:
                return None
            size, position = header
            if len(self._rest) < position + size + 2:
                return None
            argv.append(bytes(self._rest[position : position + size]))
            position += size + 2
        self.commands.append(argv)
        return position

    def _number(self, start: int, kind: bytes) -> tuple[int, int] | None:
        end = self._rest.find(b"\r\n", start)
        if end < 0:
            return None
        if self._rest[start : start + 1] != kind:
            raise NotACommandError(bytes(self._rest[start:end]))
        return int(self._rest[start + 1 : end]), end + 2


async def batches(reader: asyncio.StreamReader) -> AsyncIterator[list[list[bytes]]]:
    """Yield the commands that came together, until the client closes."""
    requests = Requests()
    while data := await reader.read(CHUNK_BYTES):
        requests.feed(data)
        lines, requests.commands = requests.commands, []
        yield lines


def answering(reply: Callable[[Sequence[bytes]], bytes]) -> Serve:
    """Answer each command with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for lines in batches(reader):
            writer.write(b"".join(map(reply, lines)))

    return serve


async def closing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Close the connection at once."""


class Listener:
    """Listens on a free loopback port and serves each connection in a task; an async context manager."""

    def __init__(self, serve: Serve = closing, *, tls: ssl.SSLContext | None = None) -> None:
        self.port = 0
        self.accepted = 0
        self.tasks: set[asyncio.Task[None]] = set()
        """Those of the connections that are open."""
        self.writers: set[asyncio.StreamWriter] = set()
        self._serve, self._tls = serve, tls
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Condition()

    @property
    def target(self) -> Target:
        return Target(port=self.port)

    async def __aenter__(self) -> Self:
        await self.resume()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.refuse()
        self.cut()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which is closed after that."""
        await self._serve(reader, writer)

    async def refuse(self) -> None:
        """Refuse new connections; those that are open go on."""
        if self._server is not None:
            self._server.close()
            self._server = None
            await asyncio.sleep(0)

    async def resume(self) -> None:
        """Accept connections, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._accept, "127.0.0.1", self.port, limit=CHUNK_BYTES, ssl=self._tls
            )
            self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Drop all connections now, with a reset and whatever was under way."""
        for writer in self.writers:
            writer.transport.abort()
        for task in self.tasks:
            task.cancel()

    async def wait_accepted(self, count: int) -> None:
        """Wait until this many connections have been accepted in all."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.accepted >= count)

    async def wait_connections(self, count: int) -> None:
        """Wait until exactly this many clients are connected."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.tasks) == count)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.writers.add(writer)
        self.tasks.add(asyncio.create_task(self._serve_one(reader, writer)))

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._tell()
        try:
            with contextlib.suppress(OSError):  # also that a socket is not connected any more
                await self.serve(reader, writer)
        finally:
            writer.close()
            self.writers.discard(writer)
            task = asyncio.current_task()
            assert task is not None
            self.tasks.remove(task)
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
