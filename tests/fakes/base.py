"""A server in this process that speaks the Redis protocol over a dict of keys, for servers that can't be run here.

A subclass is one compatible server or service: what differs from the plain server of this module is all that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar
from zlib import crc32

from rtui.keyspace.text.glob import GlobMatcher
from rtui.server.recording.player import packed
from rtui.server.wire.errors import Reply, ServerError
from tests.wire import Listener, batches

Argv = Sequence[bytes]

LENGTHS = {b"STRLEN": b"string", b"HLEN": b"hash", b"LLEN": b"list", b"SCARD": b"set", b"ZCARD": b"zset"}
"""The commands for lengths, and the types that they are for."""


@dataclass(frozen=True, slots=True)
class FakeKey:
    key_type: bytes = b"string"
    length: int = 5
    size_bytes: int = 64
    ttl_ms: int = -1
    idle_s: int = 7


class NotAllowedError(Exception):
    """A command that must not be sent to this server; it ends the test."""


class FakeServer(Listener):
    """Answers commands; raises NotAllowedError at its end.

    Cursors are numbers of keys so far: the ones that it has given out, and only those, may be sent.
    """

    name: ClassVar[str]
    info: ClassVar[Mapping[str, str]] = {"redis_version": "7.2.0", "run_id": "fake", "redis_mode": "standalone"}
    """The section `server` of INFO."""
    more_info: ClassVar[Mapping[str, str]] = {
        "maxmemory_policy": "noeviction",
        "cluster_enabled": "0",
        "role": "master",
    }
    """What is in the other sections."""
    unknown: ClassVar[tuple[bytes, ...]] = ()
    """Commands that it does not know, with their subcommand."""
    forbidden: ClassVar[tuple[bytes, ...]] = ()
    """Commands that must not be sent, with an option such as in `SCAN MATCH`."""
    takes_probes: ClassVar[bool] = False
    """Whether a cursor that it has not given out may be sent with COUNT 1, to find out what comes of it."""

    def __init__(self, keys: Mapping[bytes, FakeKey]) -> None:
        super().__init__()
        self.keys = dict(keys)
        self.asked: list[Argv] = []
        """Every command line of every client."""
        self.not_allowed: list[Argv] = []
        self._order = sorted(self.keys, key=crc32)
        self._given: set[int] = {0}

    def sent(self, *words: bytes) -> list[Argv]:
        """The command lines that begin with these words."""
        return [argv for argv in self.asked if tuple(argv[: len(words)]) == words]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        if self.not_allowed:
            raise NotAllowedError(b" ".join(self.not_allowed[0]))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for lines in batches(reader):
            writer.write(b"".join([packed(self._checked(argv, len(lines)), 2) for argv in lines]))

    def _checked(self, argv: Argv, together: int) -> Reply:
        """Answer one of so many commands that came together."""
        self.asked.append(argv)
        names = {b" ".join(argv[:2]), argv[0], *(argv[0] + b" " + option for option in argv[2::2])}
        if names & set(self.forbidden):
            self.not_allowed.append(argv)
        if names & set(self.unknown):
            return ServerError(f"ERR unknown command '{argv[0].decode()}'")
        return self.scan_together(argv) if argv[0] == b"SCAN" and together > 1 else self.reply(argv)

    def reply(self, argv: Argv) -> Reply:  # noqa: PLR0911, PLR0912 - a command a line
        key = self.keys.get(argv[-1])
        match argv:
            case [b"INFO", section]:
                fields = self.info if section == b"server" else self.more_info
                return "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()
            case [b"PING"]:
                return b"PONG"
            case [b"CLIENT" | b"SELECT", *_]:
                return b"OK"
            case [b"DBSIZE"]:
                return len(self.keys)
            case [b"SCAN", *_]:
                return self.scan(argv)
            case [b"EXISTS", _]:
                return int(key is not None)
            case [b"TYPE", _]:
                return b"none" if key is None else key.key_type
            case [b"PTTL", _]:
                return -2 if key is None else key.ttl_ms
            case [b"MEMORY", b"USAGE", _]:
                return None if key is None else key.size_bytes
            case [b"OBJECT", b"IDLETIME", _]:
                return None if key is None else key.idle_s
            case [b"OBJECT", b"ENCODING", _]:
                return None if key is None else b"raw"
            case [command, _] if command in LENGTHS:
                if key is not None and key.key_type != LENGTHS[command]:
                    return ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")
                return 0 if key is None else key.length
        return ServerError(f"ERR unknown command '{argv[0].decode('utf-8', 'replace')}'")

    def scan_together(self, argv: Argv) -> Reply:
        """Answer a SCAN that came together with other commands."""
        return self.reply(argv)

    def scan(self, argv: Argv) -> Reply:
        """Answer a SCAN, with an error where the cursor is none."""
        cursor, options = int(argv[1]), dict(zip(argv[2::2], argv[3::2], strict=True))
        count = int(options[b"COUNT"])
        if cursor not in self._given and not (self.takes_probes and count == 1):
            self.not_allowed.append(argv)
        page = self.page(cursor, count)
        if isinstance(page, ServerError):
            return page
        after, keys = page
        self._given.add(after)
        if b"MATCH" in options:
            keys = [*filter(GlobMatcher(options[b"MATCH"]), keys)]
        if b"TYPE" in options:
            keys = [key for key in keys if self.keys[key].key_type == options[b"TYPE"]]
        return [b"%d" % after, [*keys]]

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]] | ServerError:
        """Return the cursor after a page, and the keys of the page."""
        end = cursor + count
        return end if end < len(self._order) else 0, self._order[cursor:end]
