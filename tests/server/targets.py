"""Test servers as targets, and connections to them that end with the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final

import pytest

from rtui.server.chance import seeded
from rtui.server.guard.command import Command
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
    """A lane without a handshake, closed at the end."""
    lane = await open_lane(target, **options)
    try:
        yield lane
    finally:
        lane.close()


@asynccontextmanager
async def connected(target: Target, **options: Any) -> AsyncIterator[Connection]:
    """An open connection, closed at the end."""
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


async def eventually(holds: Callable[[], object]) -> None:
    """Let everybody else go on until `holds`; what takes long is looked at less often."""
    turns = 0
    while not holds():
        turns += 1
        await asyncio.sleep(0 if turns < MANY_TURNS else 0.001)
