"""Connections that are lost again and again, at every step: how often they are remade, and that none is left over."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from random import Random
from typing import Any

import pytest

from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.scan.node import ScanNode
from rtui.server.scan.node_scan import MAX_LOSSES
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Closed, Connection, Lost
from rtui.server.wire.dial import ServerAddress
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_REFUSED_PAUSE_S, open_lane
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.targets import Seen, ask, connected, numbered, plant, target_of, until
from tests.servers import Server, free_port

HANDSHAKE_BYTES = 20_000
"""More than all replies of a handshake, less than the pages of a scan at full pace."""

NO_FAMILY = 9
"""An address family that the system knows by name only (AF_X25): a socket of it can't be made."""


class Highest(Random):
    """Draws the upper bound, so that pauses show how they grow."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Pauses:
    """Pauses that are over at once, written down."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, pause_s: float) -> None:
        self.taken.append(pause_s)
        await asyncio.sleep(0)


@asynccontextmanager
async def cut_short(server: Server, **options: Any) -> AsyncIterator[tuple[Connection, DelayProxy, Pauses]]:
    """A connection through a proxy that lets each lane shake hands and cuts it at its first large reply."""
    pauses = Pauses()
    async with DelayProxy(server.port) as proxy:
        proxy.most_bytes = HANDSHAKE_BYTES
        async with connected(Target(port=proxy.port), sleep=pauses, rng=Highest(), **options) as connection:
            yield connection, proxy, pauses


async def test_a_bulk_lane_that_every_large_reply_cuts_is_made_ever_more_seldom(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 60_000)
    async with cut_short(valkey) as (connection, proxy, pauses):
        for _ in range(12):
            lane = await connection.bulk()
            with pytest.raises(ConnectionLost):
                await lane.run(guard.getrange(b"big", 0, 59_999))
        assert proxy.accepted == 13
        assert len(pauses.taken) == 11
        assert max(pauses.taken[:1]) <= FIRST_PAUSE_S
        assert min(pauses.taken[8:]) > LONGEST_PAUSE_S / 2


async def test_an_interactive_lane_that_every_large_reply_cuts_is_made_ever_more_seldom(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 60_000)
    async with cut_short(valkey) as (connection, proxy, pauses):
        for _ in range(12):
            await connection.online()
            with pytest.raises(ConnectionLost):
                await connection.run(guard.getrange(b"big", 0, 59_999))
        await connection.online()
        assert proxy.accepted == 13
        assert pauses.taken == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, *[LONGEST_PAUSE_S] * 6]
        assert isinstance((await connection.bulk()), Lane)


async def test_a_scan_whose_pages_never_arrive_waits_longer_and_longer(valkey: Server) -> None:
    plant(valkey, numbered(200, b"n" * 5_000))  # so few that it is not proven what their cursors mean
    async with cut_short(valkey, healthy_s=inf) as (connection, proxy, pauses):
        scan = Scan([ScanNode(connection, size=200)], Seen(), RunControl(Pace.FULL))
        await scan.run()
        assert scan.state is ScanState.FAILED
        assert proxy.accepted == 1 + MAX_LOSSES
        assert len(pauses.taken) == MAX_LOSSES - 1
        assert max(pauses.taken) > LONGEST_PAUSE_S / 2


async def test_work_that_is_answered_makes_the_pauses_short_again(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 60_000)
    async with cut_short(valkey, healthy_s=0.0) as (connection, _, pauses):
        for _ in range(8):
            lane = await connection.bulk()
            assert await ask(lane, guard.strlen(b"big")) == 60_000
            with pytest.raises(ConnectionLost):
                await lane.run(guard.getrange(b"big", 0, 59_999))
        assert max(pauses.taken) <= FIRST_PAUSE_S
        for _ in range(6):
            lane = await connection.bulk()
            with pytest.raises(ConnectionLost):
                await lane.run(guard.getrange(b"big", 0, 59_999))
        assert max(pauses.taken) > 4 * FIRST_PAUSE_S


async def test_a_handshake_alone_is_no_work(valkey: Server) -> None:
    async with connected(target_of(valkey), healthy_s=0.0) as connection:
        lane = await connection.bulk()
        assert lane.worked_s is None
        await ask(lane, guard.ping())
        assert lane.worked_s is not None


async def test_a_server_that_kills_every_client_is_left_in_peace(server: Server) -> None:
    plant(server, numbered(20_000))
    async with connected(target_of(server), rng=Highest()) as connection:
        scan = Scan([ScanNode(connection)], Seen(), RunControl(Pace.FULL))
        running = asyncio.create_task(scan.run())
        before = server.admin.info("stats")["total_connections_received"]
        for _ in range(300):
            await asyncio.to_thread(server.admin.client_kill_filter, _type="normal")
        made = server.admin.info("stats")["total_connections_received"] - before
        scan.control.stop()
        connection.retry_now()
        await running
    assert made <= 30


async def test_a_password_that_is_no_longer_right_is_tried_ever_more_seldom(server: Server) -> None:
    """Each try is an entry in the server's ACL LOG."""
    pauses = Pauses()
    server.admin.execute_command("ACL", "SETUSER", "some", "on", ">old", "~*", "+@all")
    target = target_of(server, user="some", password=Secret("old"))
    async with connected(target, sleep=pauses, rng=Highest()) as connection:
        server.admin.execute_command("ACL", "SETUSER", "some", "resetpass", ">new")
        server.admin.client_kill_filter(_type="normal")
        await until(connection, lambda: isinstance(connection.state, Lost) and connection.state.attempt >= 14)
        assert isinstance(connection.state, Lost)
        assert isinstance(connection.state.reason, ConnectFailure)
        assert connection.state.reason.kind is FailureKind.WRONGPASS
        assert pauses.taken[:2] == [0.25, 0.5]
        assert max(pauses.taken) == LONGEST_REFUSED_PAUSE_S
        server.admin.execute_command("ACL", "SETUSER", "some", ">old")
        connection.retry_now()
        await connection.online()


async def test_somebody_in_a_hurry_waits_for_no_lane(valkey: Server) -> None:
    async def never(pause_s: float) -> None:
        await asyncio.Event().wait()

    async with connected(target_of(valkey), sleep=never, rng=Highest()) as connection:
        (await connection.bulk()).close()
        opening = asyncio.create_task(connection.bulk())
        while not opening.done():
            connection.retry_now()
            await asyncio.sleep(0)
        assert opening.result().is_open


async def test_closing_ends_a_bulk_lane_that_is_being_opened(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy, connected(Target(port=proxy.port)) as connection:
        proxy.hold_replies()
        opening = asyncio.create_task(connection.bulk())
        await proxy.wait_held(1)
        await connection.close()
        proxy.release_replies()
        with pytest.raises(ConnectionLost):
            await opening
        await proxy.wait_connections(0)


async def test_closing_ends_the_first_lane_while_it_is_being_opened(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy:
        connection = Connection(Target(port=proxy.port))
        proxy.hold_replies()
        opening = asyncio.create_task(connection.open())
        await proxy.wait_held(1)
        await connection.close()
        proxy.release_replies()
        with pytest.raises(ConnectionLost):
            await opening
        assert connection.state == Closed()
        await proxy.wait_connections(0)


async def test_closing_ends_a_lane_that_is_being_remade(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy, connected(Target(port=proxy.port), sleep=Pauses()) as connection:
        proxy.cut()
        proxy.hold_replies()
        await proxy.wait_held(1)
        await connection.close()
        proxy.release_replies()
        await proxy.wait_connections(0)


async def test_a_lane_that_nobody_waits_for_any_more_is_closed(valkey: Server) -> None:
    """Whoever asked for it is cancelled at any turn of the loop, the one in which it became ready among them."""
    async with DelayProxy(valkey.port) as proxy:
        for turns in range(60):
            async with connected(Target(port=proxy.port)) as connection:
                opening = asyncio.create_task(connection.bulk())
                for _ in range(turns):
                    await asyncio.sleep(0)
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)
            await proxy.wait_connections(0)


async def test_a_fault_while_connecting_again_is_told_and_nobody_waits(valkey: Server) -> None:
    async with connected(target_of(valkey), sleep=Pauses()) as connection:
        lane = await connection.bulk()

        def fails() -> None:
            task = asyncio.current_task()
            if task is not None and task.get_name() == "rtui connection":
                connection.on_change.remove(fails)
                raise ZeroDivisionError("a mistake")

        connection.on_change.append(fails)
        valkey.admin.client_kill_filter(_type="normal")
        await until(connection, lambda: isinstance(connection.state, Closed))
        assert isinstance(connection.state, Closed)
        assert "ZeroDivisionError" in str(connection.state.reason)
        assert not lane.is_open
        for waiting in (connection.online(), connection.bulk()):
            with pytest.raises(ConnectionLost, match="ZeroDivisionError"):
                await waiting


@contextmanager
def _few_files() -> Iterator[list[int]]:
    """Let the process open few files more than it has; the list takes those that a test opens to use them up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    highest = os.dup(0)
    os.close(highest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
    try:
        yield taken
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _use_up(taken: list[int]) -> None:
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        return


@pytest.mark.parametrize("which", ["valkey", "tls_server", "unix_server"])
async def test_without_a_file_left_it_says_so_and_goes_on_trying(request: pytest.FixtureRequest, which: str) -> None:
    server: Server = request.getfixturevalue(which)
    with _few_files() as taken:

        async def pause(pause_s: float) -> None:
            if not is_over:
                _use_up(taken)
            await asyncio.sleep(0)

        is_over = False
        async with connected(target_of(server), sleep=pause) as connection:
            server.admin.client_kill_filter(_type="normal")
            await until(connection, lambda: isinstance(connection.state, Lost) and connection.state.attempt >= 3)
            assert isinstance(connection.state, Lost)
            assert isinstance(connection.state.reason, ConnectFailure)
            assert connection.state.reason.kind is FailureKind.LIMIT
            assert "ulimit" in connection.state.reason.remedy
            is_over = True
            for one in taken:
                os.close(one)
            taken.clear()
            await connection.online()
            assert await ask(connection, guard.ping()) == b"PONG"


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[int, tuple[str, int]]) -> None:
    """Have every name resolve to these addresses, in this order."""

    async def getaddrinfo(*args: Any, **options: Any) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(family, socket.SOCK_STREAM, 6, "", address) for family, address in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)


async def test_an_address_of_a_family_that_the_system_lacks_is_passed_over(
    valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (socket.AF_INET, ("127.0.0.1", valkey.port))
    resolving_to(monkeypatch, (NO_FAMILY, ("::1", valkey.port)), here)
    async with connected(target_of(valkey, host="localhost")) as connection:
        assert await ask(connection, guard.ping()) == b"PONG"
        assert await ask(await connection.bulk(), guard.ping()) == b"PONG"


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_failure_that_is_told_is_the_server_s(monkeypatch: pytest.MonkeyPatch, *, is_first: bool) -> None:
    port = free_port()
    addresses = [(NO_FAMILY, ("::1", port)), (socket.AF_INET, ("127.0.0.1", port))]
    resolving_to(monkeypatch, *(addresses if is_first else reversed(addresses)))
    with pytest.raises(ConnectFailure) as caught:
        await Connection(Target(host="localhost", port=port)).open()
    assert caught.value.kind is FailureKind.REFUSED


async def test_only_addresses_that_the_system_lacks_are_a_failure_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch, (NO_FAMILY, ("::1", 1)))
    with pytest.raises(ConnectFailure) as caught:
        await Connection(Target(host="localhost", port=1)).open()
    assert caught.value.kind is FailureKind.UNREACHABLE


@pytest.mark.parametrize("error", [OverflowError("port"), ValueError("embedded null"), OSError(24, "Too many files")])
async def test_a_resolver_that_fails_oddly(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def getaddrinfo(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    with pytest.raises(ConnectFailure) as caught:
        await Connection(Target(host="localhost")).open()
    assert caught.value.kind is (FailureKind.LIMIT if isinstance(error, OSError) else FailureKind.NAME)


async def test_socket_options_that_the_system_refuses_are_left_out(
    valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "TCP_KEEPCNT", 9_999)
    async with connected(target_of(valkey)) as connection:
        assert await ask(connection, guard.ping()) == b"PONG"


async def test_an_address_that_is_no_longer_reached_is_resolved_again(valkey: Server) -> None:
    gone = ServerAddress(socket.AF_INET, ("127.0.0.1", free_port()))
    lane = await open_lane(target_of(valkey), peer=gone)
    try:
        assert await ask(lane, guard.ping()) == b"PONG"
        assert lane.peer is not None
        assert lane.peer.address[1] == valkey.port
    finally:
        lane.close()
