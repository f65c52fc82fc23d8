"""Sentinels on the command line: the line of their user, and their own port in the place of a server's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from click.testing import CliRunner

from rtui.cli.acl import command
from rtui.cli.main import run
from rtui.server.deployment.sentinel import PrimaryFinder
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import parse_target
from tests.conftest import Pool, require
from tests.sentinels import SERVICE, sentinel_of
from tests.servers import free_port


@dataclass(slots=True)
class Alone:
    """A Sentinel of a service that nobody serves."""

    version: str
    port: int
    admin: redis.Redis


@pytest.fixture(params=["redis-6.2", "redis-7.0", "redis-8.10", "valkey-9.1"])
def sentinel(request: pytest.FixtureRequest) -> Iterator[Alone]:
    with sentinel_of(require(request.param), 6) as (port, _), redis.Redis(port=port) as admin:
        yield Alone(request.param, port, admin)


def test_the_user_may_ask_what_is_asked_and_nothing_else(sentinel: Alone) -> None:
    result = CliRunner().invoke(command, ["--sentinel", "--for", sentinel.version])
    assert result.exit_code == 0, result.output
    sentinel.admin.execute_command(*result.stdout.strip().replace("PASSWORD", "pw").split(" "))
    target = parse_target(f"sentinel://127.0.0.1:{sentinel.port}/{SERVICE}")
    assert target.sentinels is not None
    log = CommandLog()

    async def locate() -> Any:
        assert target.sentinels is not None
        known = parse_target(f"redis://rtui:pw@127.0.0.1:{sentinel.port}")
        sentinels = type(target.sentinels)(SERVICE, target.sentinels.addresses, known.user, known.password)
        finder = PrimaryFinder(target, sentinels, log)
        found = await finder.locate()
        await finder.close()
        return found

    assert asyncio.run(locate()).port == 6
    assert {"SENTINEL MASTERS", "CLIENT NO-TOUCH"} <= {name for entry in log.entries for name in entry.counts}
    assert not [entry for entry in log.entries if entry.error == "NOPERM"]
    assert sentinel.admin.execute_command("ACL", "LOG") == []
    with redis.Redis(port=sentinel.port, username="rtui", password="pw") as user:  # noqa: S106 - of this test
        for line in ("SENTINEL RESET *", f"SENTINEL REMOVE {SERVICE}", "SENTINEL FLUSHCONFIG", "ACL LIST", "SHUTDOWN"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                user.execute_command(*line.split())


@pytest.mark.parametrize("words", [["--cluster"], ["--with", "health"], ["--without", "server"]])
def test_what_a_sentinel_has_not(words: list[str]) -> None:
    assert CliRunner().invoke(command, ["--sentinel", *words]).exit_code == 2


def test_its_own_port_explains_itself_to_each_command(sentinel: Alone, capfd: pytest.CaptureFixture[str]) -> None:
    for name, *rest in (("report",), ("find", "in:x"), ("patterns",), ("check",)):
        assert run([name, f"127.0.0.1:{sentinel.port}", *rest]) == ExitCode.SERVER
        said = capfd.readouterr().err
        assert "This is a Sentinel" in said
        assert f"sentinel://127.0.0.1:{sentinel.port}/{SERVICE}" in said


def test_sentinels_of_a_replica_are_told_from_a_failover(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replica = pool.take("sentinel", "redis-7.0")
    replica.admin.replicaof("127.0.0.1", free_port())
    monkeypatch.setattr("rtui.server.wire.connection.DEMOTED_ATTEMPTS", 2)
    with sentinel_of(replica.binary, replica.port) as (port, _):
        for words in (["report"], ["find", "type:string"], ["health"]):
            assert run([*words, "-u", f"sentinel://127.0.0.1:{port}/{SERVICE}"]) == ExitCode.SERVER
            said = capsys.readouterr().err
            assert "rtui: waiting. 127.0.0.1:" in said
            assert "watch a replica in the place of its primary" in said
