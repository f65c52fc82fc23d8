"""Compatible servers and services as their sources and documents describe them; none of them could be run here."""

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


SHARDS = 3
"""Shards of those that have several."""


class _Sharded(FakeServer):
    """Scans one shard after the other; `_joined` and `_parted` are what a cursor makes of shard and place."""

    shard_bits: ClassVar[int]
    """Bits of a cursor that hold the shard."""
    is_shard_high: ClassVar[bool] = False
    """Whether they are its highest of 64, or its lowest."""

    def __init__(self, keys: Mapping[bytes, FakeKey]) -> None:
        super().__init__(keys)
        self._shards = [self._order[shard::SHARDS] for shard in range(SHARDS)]

    def _joined(self, shard: int, place: int) -> int:
        bits = self.shard_bits
        return shard << 64 - bits | place if self.is_shard_high else place << bits | shard

    def _parted(self, cursor: int) -> tuple[int, int]:
        bits = self.shard_bits
        if self.is_shard_high:
            return cursor >> 64 - bits, cursor & ((1 << 64 - bits) - 1)
        return cursor & ((1 << bits) - 1), cursor >> bits

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]] | ServerError:
        shard, place = self._parted(cursor)
        if shard >= SHARDS:
            return self.no_shard()
        keys = self._shards[shard][place : place + count]
        if place + count < len(self._shards[shard]):
            return self._joined(shard, place + count), keys
        return (self._joined(shard + 1, 0) if shard + 1 < SHARDS else 0), keys

    def no_shard(self) -> tuple[int, list[bytes]] | ServerError:
        """Answer a cursor with the number of a shard that is none."""
        return 0, []


class Dragonfly(_Sharded):
    """A shard beyond the last answers 0, which looks like the end; no OBJECT, no NO-TOUCH."""

    name = "Dragonfly"
    info: ClassVar[Mapping[str, str]] = {
        "redis_version": "7.4.0",
        "dragonfly_version": "df-v1.30.0",
        "redis_mode": "standalone",
    }
    shard_bits = 10
    unknown = (b"OBJECT", b"CLIENT NO-TOUCH")


class Garnet(FakeServer):
    """Counts by walking over everything; COUNT counts matches."""

    name = "Garnet"
    info: ClassVar[Mapping[str, str]] = {"garnet_version": "1.0.99", "run_id": "one"}
    unknown = (b"CLIENT NO-TOUCH", b"OBJECT FREQ")
    forbidden = (b"DBSIZE", b"INFO keyspace", b"SCAN MATCH", b"SCAN TYPE", b"OBJECT IDLETIME")


class Kvrocks(FakeServer):
    """Cursors are tickets, of which a lost one begins again; sizes are those on disk."""

    name = "Kvrocks"
    info: ClassVar[Mapping[str, str]] = {"kvrocks_version": "2.11.1", "redis_version": "7.0.0"}
    unknown = (b"OBJECT", b"CLIENT NO-TOUCH")
    forbidden = (b"DBSIZE", b"INFO keyspace", b"SCAN MATCH")

    def __init__(self, keys: Mapping[bytes, FakeKey], *, loses: int = 0) -> None:
        """Forget one ticket when half of the keys are listed, so many times."""
        super().__init__(keys)
        self.loses = loses
        self._tickets = {0: 0}

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]] | ServerError:
        start, half = self._tickets.get(cursor, 0), len(self._order) // 2
        if self.loses and start >= half:
            self.loses -= 1
            start = 0
        if self.loses:  # a large page would lead past the half
            count = min(count, half - start)
        end, keys = super().page(start, count)  # type: ignore[misc]
        ticket = 1_000_000 + len(self._tickets)
        self._tickets[ticket] = end
        return ticket if end else 0, keys


class Pika(FakeServer):
    """Cursors are keys so far, kept without what is filtered by; it says little of itself."""

    name = "Pika"
    info: ClassVar[Mapping[str, str]] = {"pika_version": "3.5.4"}
    more_info: ClassVar[Mapping[str, str]] = {}
    unknown = (b"OBJECT", b"MEMORY USAGE", b"CLIENT NO-TOUCH")
    forbidden = (b"DBSIZE", b"INFO keyspace", b"SCAN MATCH", b"SCAN TYPE")


class KeyDB(FakeServer):
    """From COUNT 100 on the cursor is always 0; it has no field of its own in the section `server`."""

    name = "KeyDB"
    info: ClassVar[Mapping[str, str]] = {
        "redis_version": "6.3.4",
        "run_id": "one",
        "redis_mode": "standalone",
        "executable": "/usr/local/bin/keydb-server",
    }
    unknown = (b"CLIENT NO-TOUCH",)

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]] | ServerError:
        if count >= 100:
            self.not_allowed.append([b"SCAN", b"%d" % cursor, b"COUNT", b"%d" % count])
        return super().page(cursor, count)


class RedisEnterprise(_Sharded):
    """A proxy before several servers that says it is one Redis."""

    name = "Redis Enterprise"
    info: ClassVar[Mapping[str, str]] = {
        "redis_version": "7.4.3",
        "rlec_version": "7.22.0-95",
        "redis_mode": "standalone",
        "run_id": "one",
    }
    shard_bits = 14
    is_shard_high = True
    takes_probes = True
    unknown = (b"CLUSTER", b"ROLE", b"CONFIG")


class TencentProxy(_Sharded):
    """A proxy that nothing tells from Redis, and that knows no cursor from before a failover."""

    name = "a proxy of Tencent"
    shard_bits = 8
    takes_probes = True

    def __init__(self, keys: Mapping[bytes, FakeKey]) -> None:
        super().__init__(keys)
        self.fails_over_at: int | None = None
        """The shard before whose scan the failover comes, once; cursors that were made up do not count as one."""

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]] | ServerError:
        if cursor in self._given and self._parted(cursor)[0] == self.fails_over_at:
            self.fails_over_at = None
            return ServerError("ERR invalid cursor")
        return super().page(cursor, count)


class HuaweiProxy(_Sharded):
    """A proxy that takes no SCAN in a pipeline."""

    name = "a proxy of Huawei"
    shard_bits = 8
    takes_probes = True

    together = 0
    """SCANs that came with other commands."""

    def scan_together(self, argv: Argv) -> Reply:
        self.together += 1
        return ServerError("ERR SCAN is not supported in a pipeline")


class ElastiCacheServerless(FakeServer):
    """Refuses to tell sizes, and most of INFO."""

    name = "ElastiCache Serverless"
    takes_probes = True
    unknown = (b"MEMORY USAGE", b"INFO commandstats", b"INFO keysizes")

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]] | ServerError:
        if cursor >= len(self._order):
            return ServerError("ERR no such place")
        return super().page(cursor, count)


class Upstash(FakeServer):
    """Bills each command."""

    name = "Upstash"
    info: ClassVar[Mapping[str, str]] = {"upstash_version": "1.10.5", "redis_version": "6.2.6"}
    unknown = (b"CLIENT NO-TOUCH", b"OBJECT FREQ")

    def reply(self, argv: Argv) -> Reply:
        return b"db0:keys=%d\r\n" % len(self.keys) if argv == [b"INFO", b"keyspace"] else super().reply(argv)


ALL = (
    *(Dragonfly, Garnet, Kvrocks, Pika, KeyDB, RedisEnterprise, TencentProxy, HuaweiProxy, ElastiCacheServerless),
    Upstash,
)


MODULE_LENGTH = 3
"""What HLEN answers for each key of a ModuleServer, for tests that declare it as the command for their length."""


class ModuleServer(FakeServer):
    """A server whose keys are all of a type that a module brings."""

    name = "modules"
    info: ClassVar[Mapping[str, str]] = {"redis_version": "8.6.3", "run_id": "one", "redis_mode": "standalone"}

    def __init__(self, keys: Sequence[bytes], key_type: bytes = b"ReJSON-RL") -> None:
        super().__init__(dict.fromkeys(keys, FakeKey(key_type, MODULE_LENGTH, size_bytes=7)))

    def reply(self, argv: Argv) -> Reply:
        """Tell lengths by HLEN, whatever the type."""
        return (MODULE_LENGTH if argv[1] in self.keys else 0) if argv[0] == b"HLEN" else super().reply(argv)
