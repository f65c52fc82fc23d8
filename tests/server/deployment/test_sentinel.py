"""Connecting to a service that Sentinels watch over, before, in and after a failover."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from rtui.keyspace.text.display import display_text
from rtui.server.deployment.connect import connection_to
from rtui.server.deployment.sentinel import PrimaryFinder
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection, Online
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.failures import demoted_failure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.target import Target, parse_target
from rtui.server.wire.ways import AddressMap, Way
from tests.conftest import require
from tests.sentinels import SERVICE, sentinel_of, watched
from tests.server.targets import eventually
from tests.servers import Server, free_port
from tests.ssh_host import SshHost, ssh_children


async def soon(pause_s: float) -> None:
    assert pause_s >= 0
    await asyncio.sleep(0)


async def failing(target: Target) -> ConnectFailure:
    connection = connection_to(target)
    with pytest.raises(ConnectFailure) as failed:
        await connection.open()
    await connection.close()
    return failed.value


@pytest.mark.slow
@pytest.mark.parametrize("version", ["redis-7.0", "valkey-9.1"])
async def test_a_service_is_reached_and_followed_over_a_failover(version: str) -> None:
    with watched(require(version)) as service:
        primary, replica = service.servers
        connection = connection_to(parse_target(service.url.replace("//", f"//127.0.0.1:{free_port()},")))
        await connection.open()
        try:
            assert (connection.target.port, connection.server.role) == (primary.port, "primary")
            assert connection.target.label.startswith(f"{SERVICE}@127.0.0.1:")
            primary.stop(signal.SIGKILL)
            async with asyncio.timeout(30):
                while not (connection.target.port == replica.port and isinstance(connection.state, Online)):
                    connection.retry_now()
                    await asyncio.sleep(0.05)
            assert connection.server.role == "primary"
            assert connection.generation >= 2
        finally:
            await connection.close()


@pytest.mark.slow
async def test_a_sentinel_a_wrong_service_and_a_disagreement_explain_themselves() -> None:
    with watched(require("redis-7.0")) as service:
        first = service.ports[0]
        failed = await failing(Target(port=first))
        assert failed.kind is FailureKind.SENTINEL
        assert f"sentinel://127.0.0.1:{first}/{SERVICE}" in failed.remedy
        failed = await failing(parse_target(service.url + "2"))
        assert failed.kind is FailureKind.NO_PRIMARY
        assert failed.happened.count("does not know the service") == 3
        service.sentinels[1].execute_command("SENTINEL", "REMOVE", SERVICE)
        service.sentinels[1].execute_command("SENTINEL", "MONITOR", SERVICE, "127.0.0.1", service.servers[1].port, "2")
        target = parse_target(service.url)
        assert target.sentinels is not None
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        assert (await finder.locate()).port in {server.port for server in service.servers}
        assert finder.note is not None
        assert f"127.0.0.1:{service.ports[1]} says 127.0.0.1:{service.servers[1].port}" in finder.note
        await finder.close()


async def test_without_a_sentinel_each_says_why() -> None:
    ports = free_port(), free_port()
    failed = await failing(parse_target(f"sentinel://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/{SERVICE}"))
    assert failed.kind is FailureKind.NO_PRIMARY
    assert failed.happened.endswith("; ".join(f"Nothing listens on 127.0.0.1:{port}" for port in ports) + ".")


async def test_one_that_is_down_or_hangs_is_neither_waited_for_nor_a_disagreement(redis70: Server) -> None:
    with sentinel_of(redis70.binary, redis70.port) as (answers, _), sentinel_of(redis70.binary, 6) as (hangs, pid):
        os.kill(pid, signal.SIGSTOP)
        asked = f"127.0.0.1:{free_port()},127.0.0.1:{hangs},[::1]:{free_port()},127.0.0.1:{answers}"
        target = parse_target(f"sentinel://{asked}/{SERVICE}")
        assert target.sentinels is not None
        finder = PrimaryFinder(target, target.sentinels, CommandLog(), timeout_s=600)
        for _ in range(2):  # also once it is known whom to believe
            async with asyncio.timeout(60):
                assert (await finder.locate()).port == redis70.port
            assert finder.said[display_text(f"127.0.0.1:{hangs}")] == "no answer in time"
            assert finder.note is None
        await finder.close()


async def test_an_unknown_service_has_the_known_ones_named(redis70: Server) -> None:
    with sentinel_of(redis70.binary, redis70.port, service="shop/[eu]") as (port, _):
        failed = await failing(parse_target(f"sentinel://127.0.0.1:{port}/{SERVICE}"))
        assert failed.happened.endswith(f" 127.0.0.1:{port}: does not know the service.")
        assert failed.remedy == f"Check the name of the service: 127.0.0.1:{port} knows shop/[eu]."
        connection = connection_to(parse_target(f"sentinel://127.0.0.1:{port}/shop%2F%5Beu%5D"))
        await connection.open()
        assert connection.target.port == redis70.port
        await connection.close()


async def test_sentinels_are_reached_by_the_way_of_the_servers(bastion: SshHost, redis70: Server) -> None:
    with sentinel_of(redis70.binary, redis70.port) as (port, _):
        mapped = AddressMap((f"sentinel.invalid:7=127.0.0.1:{port}",))
        target = replace(parse_target(f"sentinel://sentinel.invalid:7/{SERVICE}"), way=Way(("bastion",), mapped))
        assert target.sentinels is not None
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        assert (await finder.locate()).port == redis70.port
        assert any(f"-W 127.0.0.1:{port} -- bastion" in line for line in ssh_children().values())
        await finder.close()
        await eventually(lambda: not ssh_children())


async def test_a_server_that_is_no_sentinel_says_so(valkey: Server) -> None:
    failed = await failing(parse_target(f"sentinel://127.0.0.1:{valkey.port}/{SERVICE}"))
    assert failed.kind is FailureKind.NO_PRIMARY
    assert failed.happened.endswith(f"127.0.0.1:{valkey.port}: is no Sentinel.")


async def test_a_primary_that_is_a_replica_now_is_not_believed(redis70: Server) -> None:
    class Stale:
        note = None

        async def locate(self) -> Target:
            return Target(port=redis70.port)

        def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
            return demoted_failure(Target(port=redis70.port)) if server.role == "replica" else None

        async def close(self) -> None:
            pass

    redis70.admin.replicaof("127.0.0.1", free_port())
    given_up = Connection(Target(port=redis70.port), locator=Stale(), sleep=soon)
    with pytest.raises(ConnectFailure, match="is a replica now"):
        await given_up.open()
    await given_up.close()
    connection = Connection(Target(port=redis70.port), locator=Stale())
    opening = asyncio.create_task(connection.open())
    await eventually(lambda: "is a replica now" in str(connection.state))
    redis70.admin.replicaof("NO", "ONE")
    connection.retry_now()
    await opening
    assert connection.server.role == "primary"
    await connection.close()
