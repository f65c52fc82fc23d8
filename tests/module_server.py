"""A server whose keys are all of a type that a module brings, and which records what it is asked."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from tests.wire import Requests

INFO = b"redis_version:8.6.3\r\nserver_name:redis\r\nrun_id:one\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n"

LENGTH = 3
"""What HLEN answers for each key, for tests that declare it as the command for the length of their type."""


class ModuleServer:
    """Answers what rtui asks of `keys` of type `key_type`, on a free loopback port; an async context manager."""

    def __init__(self, keys: list[bytes], key_type: bytes = b"ReJSON-RL") -> None:
        self.port = 0
        self.asked: list[list[bytes]] = []
        """Every command line of every client."""
        self._keys = keys
        self._type = key_type
        self._server: asyncio.Server | None = None

    def named(self, *words: bytes) -> list[list[bytes]]:
        """The command lines that begin with these words."""
        return [line for line in self.asked if tuple(line[: len(words)]) == words]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests = Requests()
        while data := await reader.read(1 << 16):
            requests.feed(data)
            for line in requests.commands:
                self.asked.append(line)
                writer.write(self._reply(line))
            requests.commands.clear()
        writer.close()

    def _reply(self, line: list[bytes]) -> bytes:  # noqa: PLR0911 - a command a line
        is_there = line[-1] in self._keys
        match line:
            case [b"INFO", *_]:
                return _bulk(INFO)
            case [b"CLIENT" | b"SELECT", *_]:
                return b"+OK\r\n"
            case [b"PING"]:
                return b"+PONG\r\n"
            case [b"DBSIZE"]:
                return b":%d\r\n" % len(self._keys)
            case [b"SCAN", *_]:
                return b"*2\r\n$1\r\n0\r\n*%d\r\n%b" % (len(self._keys), b"".join(map(_bulk, self._keys)))
            case [b"TYPE", _]:
                return b"+%b\r\n" % (self._type if is_there else b"none")
            case [b"PTTL", _]:
                return b":-1\r\n" if is_there else b":-2\r\n"
            case [b"OBJECT", b"IDLETIME", _] | [b"MEMORY", b"USAGE", _]:
                return b":7\r\n" if is_there else b"$-1\r\n"
            case [b"HLEN", _]:
                return b":%d\r\n" % (LENGTH if is_there else 0)
            case [b"OBJECT", b"ENCODING", _]:
                return _bulk(b"raw") if is_there else b"$-1\r\n"
        return b"-ERR unknown command '%b'\r\n" % line[0]


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)
