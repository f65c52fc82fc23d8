"""Connecting to a service that Sentinels watch over, before, in and after a failover."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.connections import connection_to
from rtui.server.deployment.sentinel import PrimaryFinder
from rtui.server.options import AnalysisOptions
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection, Online
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.failures import demoted_failure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.target import AddressMap, ReplicaPolicy, Target, Way, parse_target
from tests.conftest import require
from tests.sentinels import SERVICE, sentinel_of, watched
from tests.server.deployment.test_nodes import deployed
from tests.server.targets import eventually, failing, impatient
from tests.servers import Server, free_port
from tests.ssh_host import SshHost, ssh_children


async def soon(pause_s: float) -> None:
    assert pause_s >= 0
    await asyncio.sleep(0)


@pytest.mark.slow
@pytest.mark.sampled("version")
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
async def test_scans_of_a_service_ask_its_replica_where_that_is_wanted() -> None:
    with watched(require("valkey-9.1")) as service:
        primary, replica = service.servers
        primary.admin.mset({f"key:{number}": "x" for number in range(500)})
        uses: tuple[ReplicaPolicy, ...] = ("prefer", "only", "never")
        for use in uses:
            asked, role = (primary, "primary") if use == "never" else (replica, "replica")
            async with deployed(replace(parse_target(service.url), replicas=use)) as deployment:
                (node,) = await deployment.scanned()
                assert (use, node.connection.target.port) == (use, asked.port)
                analysis = AnalysisRun(deployment.home, AnalysisOptions(), deployment=deployment)
                await analysis.run()
            assert analysis.report is not None
            head = analysis.report.head
            assert (head.coverage.kind, head.coverage.keys, head.server.role) == (CoverageKind.EXACT, 500, role)
            assert any("those of this replica" in note for note in head.notes) is (role == "replica")
            assert head.server.label.startswith(f"{SERVICE}@")


@pytest.mark.slow
async def test_scans_of_a_service_ask_its_replica_and_the_primary_where_it_was_promoted() -> None:
    with watched(require("redis-7.0")) as service:
        primary, replica = service.servers
        async with deployed(replace(parse_target(service.url), replicas="only")) as deployment:
            (node,) = await deployment.scanned()
            assert (node.connection.target.port, node.connection.server.role) == (replica.port, "replica")
            assert (deployment.home.target.port, deployment.home.server.role) == (primary.port, "primary")
            assert node.label == f"127.0.0.1:{replica.port}"
        async with deployed(replace(parse_target(service.url), replicas="prefer")) as deployment:
            (node,) = await deployment.scanned()
            assert (node.connection.target.port, node.connection.server.role) == (replica.port, "replica")
            primary.stop()
            async with asyncio.timeout(30):
                while (node.connection.is_online, node.connection.server.role) != (True, "primary"):
                    deployment.home.retry_now()
                    node.connection.retry_now()
                    await asyncio.sleep(0.05)
            assert node.connection.target.port == replica.port


@pytest.mark.slow
async def test_a_sentinel_a_wrong_service_and_a_disagreement_explain_themselves() -> None:
    with watched(require("redis-7.0")) as service:
        first = service.ports[0]
        failed = await failing(connection_to(Target(port=first)))
        assert failed.kind is FailureKind.SENTINEL
        assert f"sentinel://127.0.0.1:{first}/{SERVICE}" in failed.remedy
        failed = await failing(connection_to(parse_target(service.url + "2")))
        assert failed.kind is FailureKind.NO_PRIMARY
        assert failed.happened.count("does not know the service") == 3
        assert failed.remedy.startswith(f"They know {SERVICE}: ")
        service.sentinels[1].execute_command("SENTINEL", "REMOVE", SERVICE)
        service.sentinels[1].execute_command("SENTINEL", "MONITOR", SERVICE, "127.0.0.1", service.servers[1].port, "2")
        target = parse_target(service.url)
        assert target.sentinels is not None
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        assert (await finder.locate()).port in {server.port for server in service.servers}
        assert finder.note is not None
        assert f"127.0.0.1:{service.ports[1]} says 127.0.0.1:{service.servers[1].port}" in finder.note
        await finder.close()


@pytest.mark.slow
async def test_sentinels_that_hang_or_are_down_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.deployment.sentinel.ANSWER_TIMEOUT_S", 0.5)
    with watched(require("redis-7.0")) as service:
        dead = free_port()
        target = impatient(parse_target(service.url.replace("//", f"//127.0.0.1:{dead},")), direct_s=600, reply_s=600)
        assert target.sentinels is not None
        hanging = [sentinel.info("server")["process_id"] for sentinel in service.sentinels[:2]]
        finder = PrimaryFinder(target, target.sentinels, CommandLog())
        try:
            for pid in hanging:
                os.kill(pid, signal.SIGSTOP)
            async with asyncio.timeout(60):
                assert (await finder.locate()).port == service.servers[0].port
        finally:
            for pid in hanging:
                os.kill(pid, signal.SIGCONT)
        said = [finder.said[f"127.0.0.1:{port}"] for port in (dead, *service.ports)]  # type: ignore[index]
        address = f"127.0.0.1:{service.servers[0].port}"
        assert said == [f"Nothing listens on 127.0.0.1:{dead}", *["no answer within 1 s"] * 2, address]
        assert finder.note is None
        await finder.close()


async def test_without_a_sentinel_each_says_why() -> None:
    ports = free_port(), free_port()
    failed = await failing(connection_to(parse_target(f"sentinel://127.0.0.1:{ports[0]},[::1]:{ports[1]}/{SERVICE}")))
    assert failed.kind is FailureKind.NO_PRIMARY
    assert f"127.0.0.1:{ports[0]}: Nothing listens on 127.0.0.1:{ports[0]};" in failed.happened
    assert failed.happened.count("..") == 0
    assert f" [::1]:{ports[1]}: " in failed.happened


async def test_a_sentinel_that_wants_a_password_says_how_one_is_given(valkey: Server) -> None:
    valkey.admin.execute_command("CONFIG", "SET", "requirepass", "secret")
    failed = await failing(connection_to(parse_target(f"sentinel://127.0.0.1:{valkey.port}/{SERVICE}")))
    assert "--sentinel-askpass" in failed.remedy


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
    failed = await failing(connection_to(parse_target(f"sentinel://127.0.0.1:{valkey.port}/{SERVICE}")))
    assert failed.kind is FailureKind.NO_PRIMARY
    assert f"127.0.0.1:{valkey.port}: is no Sentinel" in failed.happened


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
