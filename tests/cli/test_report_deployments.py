"""Reports of clusters and of services of Sentinels; Sentinels on the command line."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import CliRunner

from rtui.analysis.formats.json import read_json
from rtui.analysis.report.document import CoverageKind, Report
from rtui.cli.allowed import acl_command as command
from rtui.cli.main import run
from rtui.server.deployment.sentinel import PrimaryFinder
from rtui.server.inspection.report_head import PROMOTED_NOTE
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import parse_target
from tests.clusters import SERVICE, TestCluster, cluster_of, sentinel_of, watched
from tests.conftest import Pool, require
from tests.server.targets import eventually, numbered, plant
from tests.servers import Server, certificates, free_port
from tests.ssh_host import SshHost

KEYS = numbered(900)

MANY = 100_000
"""Keys that a gentle pass needs seconds for."""


def reported(path: Path, *arguments: str) -> Report:
    """The report that the command line has written, of which all keys are exact."""
    assert run(["report", *arguments, "-o", str(path)]) == 0
    report = read_json(path.read_bytes())
    assert (report.head.coverage.kind, report.head.coverage.reason) == (CoverageKind.EXACT, "")
    return report


def test_a_cluster_in_tls(tmp_path: Path) -> None:
    with cluster_of(require("redis-7.0"), replicas=1, tls=True) as cluster:
        cluster.fill(KEYS)
        seed = cluster.members[-1].server
        assert seed.tls is not None
        report = reported(tmp_path / "report.json", seed.url, "--cacert", str(seed.tls.ca), "-c")
    assert report.head.coverage.keys == len(KEYS)
    assert report.cluster is not None
    assert [node.slots for node in report.cluster.nodes] == [(one.slots,) for one in cluster.members[:3]]


ENDPOINTS = "cluster-preferred-endpoint-type"


@pytest.mark.sampled("protocol")
@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
@pytest.mark.parametrize("protocol", ["-2", "-3"])
@pytest.mark.parametrize("asked", [0, 4], ids=["primary", "replica"])
def test_a_null_endpoint_is_the_host_that_was_asked(
    cluster: TestCluster, protocol: str, asked: int, tmp_path: Path
) -> None:
    """Only the node that is asked has none: what it answers counts, and not how the others would."""
    cluster.fill(KEYS)
    seed = cluster.members[asked].server
    seed.admin.config_set(ENDPOINTS, "unknown-endpoint")
    try:
        report = reported(
            tmp_path / "report.json", "-h", "localhost", "-p", str(seed.port), protocol, "--replicas", "never"
        )
    finally:
        seed.admin.config_set(ENDPOINTS, "ip")
    assert report.cluster is not None
    assert report.head.coverage.keys == len(KEYS)
    assert {node.label for node in report.cluster.nodes} == {f"localhost:{one.port}" for one in cluster.primaries}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["redis-7.0", "redis-8.6", "valkey-8.1"])
def test_a_null_endpoint_is_checked_by_the_name_that_was_asked(name: str, tmp_path: Path) -> None:
    """The nodes think of themselves as 127.0.0.1, for which their certificate is not valid."""
    tls = certificates("subjectAltName=DNS:localhost")
    with cluster_of(require(name), f"--{ENDPOINTS}", "unknown-endpoint", replicas=1, tls=tls) as cluster:
        cluster.fill(KEYS)
        port = str(cluster.members[1].server.port)
        asked = ("-h", "localhost", "-p", port, "--cacert", str(tls.ca))
        assert reported(tmp_path / "report.json", *asked).head.coverage.keys == len(KEYS)
        mapped = ("-h", "redis.internal.invalid", "-p", port, "--cacert", str(tls.ca), "--map", "*.invalid=127.0.0.1")
        assert reported(tmp_path / "mapped.json", *mapped, "--sni", "localhost").head.coverage.keys == len(KEYS)


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_a_cluster_through_an_ssh_host(bastion: SshHost, cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(KEYS)
    report = reported(tmp_path / "report.json", cluster.members[0].server.url, "--via", "bastion")
    assert report.head.coverage.keys == len(KEYS)
    assert report.cluster is not None
    wanted = {f"{one.host}:{one.port} via bastion" for one in cluster.primaries}
    assert {node.label for node in report.cluster.nodes} == wanted


def test_a_service_whose_sentinels_have_users_of_their_own_and_tls(
    tls_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tls_server, KEYS)
    tls_server.admin.execute_command("ACL", "SETUSER", "app", "on", ">theirs", "~*", "+@all")
    ca = str(tls_server.tls.ca) if tls_server.tls else ""
    with sentinel_of(tls_server.binary, tls_server.port, tls=tls_server.tls) as (port, _):
        with redis.Redis(port=port, ssl=True, ssl_ca_certs=ca) as sentinel:
            sentinel.execute_command(
                "ACL", "SETUSER", "watcher", "on", ">own", "-@all", "+sentinel", "+client", "+hello"
            )
            sentinel.execute_command("ACL", "SETUSER", "default", "off")
        words = [f"sentinel://app:theirs@127.0.0.1:{port}/{SERVICE}", "--tls", "--cacert", ca]
        monkeypatch.setenv("RTUI_SENTINEL_AUTH", "own")
        report = reported(tmp_path / "report.json", *words, "--sentinel-tls", "--sentinel-user", "watcher")
        assert report.head.coverage.keys == len(KEYS)
        for options, remedy in (
            ([], "--sentinel-tls"),
            (["--sentinel-tls", "--sentinel-user", "app"], "RTUI_SENTINEL_AUTH"),
        ):
            capsys.readouterr()
            assert run(["report", *words, *options]) == ExitCode.SERVER
            assert remedy in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "options"),
    [("redis-7.0", ["--replicas", "never"]), ("valkey-9.1", ["--replicas", "prefer", "--via", "bastion"])],
)
def test_a_service_whose_primary_dies_in_the_middle(
    bastion: SshHost, version: str, options: list[str], tmp_path: Path
) -> None:
    asks_replica = "prefer" in options
    with watched(require(version)) as service:
        primary, replica = service.servers
        plant(primary, numbered(MANY))
        assert primary.admin.wait(1, 5_000) == 1
        path = tmp_path / "report.json"
        command = [sys.executable, "-m", "rtui", "report", service.url, *options, "--pace", "gentle", "-o", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            scanned = replica if asks_replica else primary
            asyncio.run(eventually(lambda: pages_of(scanned) >= 200))  # some SCANs prove how its cursors count
            primary.stop()
            _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    report = read_json(path.read_bytes())
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, MANY)
    assert report.head.server.role == "primary"
    if asks_replica:  # it was promoted, and knows its cursors still
        assert PROMOTED_NOTE in report.head.notes
        assert any(note.endswith("; it is no longer used.") for note in report.head.notes), report.head.notes
    else:
        assert any("the scan started again" in note for note in report.head.notes), report.head.notes


def pages_of(server: Server) -> int:
    """How many SCANs a server has answered."""
    return int(server.admin.info("commandstats").get("cmdstat_scan", {}).get("calls", 0))


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
