"""Test servers as targets, connections to them, scans of planted keys, and single commands on fresh connections."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final

import pytest
import redis

from rtui.server.guard.command import Command
from rtui.server.scan.scan import Scan
from rtui.server.wall_clock import seeded
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, Reply, ServerError
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import Target, Timeouts, Tls, parse_target
from tests.servers import Server

PASS_SENDS = frozenset(("scan", "type", "pttl", "memory|usage", "strlen", "object|idletime", "object|encoding"))
"""What a connection that inspects has sent last."""


MANY_TURNS = 200
"""What has not come after so many turns of the event loop takes long."""


def target_of(server: Server, **changes: Any) -> Target:
    """The main listener of a server, its authority trusted; `changes` are fields of the target.

    Replicas are asked only where a test says so: others know which server they ask.
    """
    found = parse_target(server.url)
    if server.tls is not None:
        found = replace(found, tls=Tls(cacert=str(server.tls.ca)))
    return replace(found, **{"replicas": "never", **changes})


def impatient(target: Target, **timeouts: float) -> Target:
    """The same target with other times that a server is waited for."""
    return replace(target, way=replace(target.way, timeouts=Timeouts(**timeouts)))


ASKERS: Final = pytest.mark.parametrize("asker", ["engine", "python"])
"""Who asks about all keys: Python where the replies are recorded."""


def asked_by(asker: str) -> AbstractContextManager[None]:
    return seeded(1) if asker == "python" else nullcontext()


@asynccontextmanager
async def lane_to(target: Target, **options: Any) -> AsyncIterator[Lane]:
    lane = await open_lane(target, **options)
    try:
        yield lane
    finally:
        lane.close()


@asynccontextmanager
async def connected(target: Target, **options: Any) -> AsyncIterator[Connection]:
    connection = Connection(target, **options)
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


async def failing(connection: Connection) -> ConnectFailure:
    with pytest.raises(ConnectFailure) as failed:
        await connection.open()
    await connection.close()
    return failed.value


async def ask(runner: Connection | Lane, command: Command) -> Reply:
    """Send one command and return its reply; an error reply is raised."""
    (reply,) = await runner.run(command)
    if isinstance(reply, ServerError):
        raise reply
    return reply


async def until(connection: Connection, holds: Callable[[], bool]) -> None:
    """Wait until `holds`, looking again at each change of the connection."""
    changed = asyncio.Event()
    connection.on_change.append(changed.set)
    try:
        while not holds():
            changed.clear()
            await changed.wait()
    finally:
        connection.on_change.remove(changed.set)


LONGEST_S: Final = 90.0
"""What has not come after so long never comes; less than what a test may take, so that the condition is named."""


async def eventually(holds: Callable[[], object]) -> None:
    """Let everybody else go on until `holds`; what takes long is looked at less often."""
    turns = 0
    try:
        async with asyncio.timeout(LONGEST_S):
            while not holds():
                turns += 1
                await asyncio.sleep(0 if turns < MANY_TURNS else 0.001)
    except TimeoutError:
        pytest.fail(f"waited in vain for {''.join(inspect.getsourcelines(holds)[0]).strip()}")


PLANT_BATCH = 5000


def plant(server: Server, names: Iterable[bytes]) -> set[bytes]:
    """Write a small string under each name; returns the names."""
    keys = list(names)
    client = server.client()
    for start in range(0, len(keys), PLANT_BATCH):
        client.mset(dict.fromkeys(keys[start : start + PLANT_BATCH], b"v"))
    return set(keys)


def uproot(server: Server, names: Iterable[bytes]) -> None:
    keys = list(names)
    client = server.client()
    for start in range(0, len(keys), PLANT_BATCH):
        client.unlink(*keys[start : start + PLANT_BATCH])


def numbered(count: int, prefix: bytes = b"key:") -> list[bytes]:
    return [b"%b%d" % (prefix, index) for index in range(count)]


def table_bits(server: Server) -> int:
    """n of the 2^n buckets that the larger of the server's tables has, from cursors at random places."""
    pipeline = server.client().pipeline(transaction=False)
    for _ in range(30):
        pipeline.scan(random.randrange(1 << 64), count=1)
    return max(int(cursor).bit_length() for cursor, _ in pipeline.execute())


class Seen:
    """A sink; `at` runs something once when so many keys have come in."""

    def __init__(self) -> None:
        self.keys: Counter[bytes] = Counter()
        self.pages = 0
        self.scan: Scan | None = None
        self._at = 0
        self._act: Callable[[], object] | None = None

    def __call__(self, keys: list[bytes]) -> None:
        self.keys.update(keys)
        self.pages += 1
        if self._act is not None and self.keys.total() >= self._at:
            act, self._act = self._act, None
            act()

    def at(self, keys: int, act: Callable[[], object]) -> None:
        self._at, self._act = keys, act

    @property
    def repeated(self) -> set[bytes]:
        """Keys that came more than once."""
        return {key for key, times in self.keys.items() if times > 1}


class Watched(Connection):
    """An open connection, all of whose state it shares; `runs` holds the names of the commands of each write."""

    def __init__(self, connection: Connection) -> None:
        self.__dict__ = connection.__dict__
        self.connection = connection
        self.runs: list[list[str]] = []
        self.before: dict[int, Callable[[], object]] = {}
        """What happens before the write of this number, counted from 0."""

    @property
    def bytes_in(self) -> int:
        """What the interactive lane has received so far."""
        assert self._main is not None
        return self._main.traffic.bytes_in

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        happens = self.before.pop(len(self.runs), None)
        if happens is not None:
            happens()
        self.runs.append([command.name for command in commands])
        return super().run(*commands)


def raw(server: Server, *argv: bytes | str, user: str | None = None, password: str | None = None) -> Any:
    """The reply to a command line as it comes; an error reply is returned, not raised."""
    client = server.client(username=user, password=password)
    connection = client.connection_pool.get_connection()
    try:
        connection.send_command(*argv)
        try:
            return connection.read_response()
        except (redis.ResponseError, redis.AuthenticationError) as error:
            return error
    finally:
        connection.disconnect()
        client.close()


def fill(server: Server) -> None:
    """Write a small value of each type that this version has, each under the name of its type."""
    admin = server.admin
    admin.set("string", b"abc")
    admin.hset("hash", mapping={"field": "1"})
    admin.rpush("list", "a", "b")
    admin.sadd("set", "a", "b")
    admin.zadd("zset", {"a": 1})
    admin.xadd("stream", {"a": 1})
    admin.xgroup_create("stream", "group", "0")
    if server.product == "redis" and server.version >= (8, 0):
        admin.execute_command("VADD", "vectors", "VALUES", 2, 1, 2, "element")
    if server.product == "redis" and server.version >= (8, 8):
        admin.execute_command("ARSET", "array", 0, "a")
