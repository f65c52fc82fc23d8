"""Renamed, disabled and refused commands, and managed services: what goes over the wire, and what is said of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.formats.json import read_json
from rtui.analysis.report.document import ColumnState, CoverageKind
from rtui.cli.main import run
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.topology import ClusterWatch
from rtui.server.facts.key_facts import key_facts
from rtui.server.guard.command import CommandNames, Secret, command_names, find_spec, unpack_requests
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import ConnectFailure, FailureKind, ServerError
from rtui.server.wire.identity import NoTouch
from tests.clusters import cluster_of
from tests.conftest import known, require
from tests.monitor import Recorder
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.analysis.test_cluster_analysis import report_of
from tests.server.targets import ASKERS, asked_by, connected, eventually, numbered, target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import Server, binaries, running

RENAMED = {
    word: f"b840{word.lower()}fc"
    for word in (
        *("INFO", "SCAN", "TYPE", "PTTL", "DBSIZE", "EXISTS", "MEMORY", "OBJECT"),
        *("STRLEN", "HLEN", "XINFO", "HSCAN", "GETRANGE"),
    )
}
"""Commands of such a server, and what it calls them."""

NAMES = command_names({**RENAMED, "LLEN": ""})


def renaming(names: CommandNames) -> list[str]:
    """The options of a server with these names."""
    return [part for word, name in names.renamed for part in ("--rename-command", word, name or '""')]


@pytest.fixture(params=["redis-6.2", "redis-7.0", "redis-8.10", "valkey-9.1"], scope="module")
def renamed_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server on which most of what a session asks has another name, with a key of every type."""
    if request.param not in binaries():
        pytest.skip(f"{request.param} is not on this machine")
    with running(binaries()[request.param], *renaming(NAMES)) as server:
        every_type.fill(server, server.client())
        yield server


def words(wire: list[list[bytes]]) -> set[str]:
    return {argv[0].decode() for argv in wire}


def under_own_names(argv: list[bytes]) -> tuple[bytes, ...]:
    """A command line from the wire as the closed list has it."""
    own = {name.encode(): word.encode() for word, name in RENAMED.items()}
    return (own.get(argv[0], argv[0]), *argv[1:])


@ASKERS
async def test_a_pass_is_as_on_any_server_but_for_the_names_on_the_wire(renamed_server: Server, asker: str) -> None:
    log = CommandLog()
    with asked_by(asker), Recorder(renamed_server) as recorder:
        async with DelayProxy(renamed_server.port) as proxy:
            target = target_of(renamed_server, port=proxy.port, names=NAMES)
            async with connected(target, log=log) as connection:
                analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
                await analysis.run()
            wire = proxy.commands()
    assert known(analysis.report).summary.root.stats.keys == len(list(renamed_server.client().keys()))
    assert words(wire).isdisjoint({*RENAMED, "LLEN"})
    assert {RENAMED[word] for word in ("INFO", "SCAN", "TYPE", "PTTL", "MEMORY", "OBJECT", "STRLEN")} <= words(wire)
    sent = Counter(spec.name for argv in wire if (spec := find_spec(under_own_names(argv))) is not None)
    assert sent.total() == len(wire)
    logged: Counter[str] = Counter()
    for entry in log.entries:
        logged.update(entry.counts)
    assert logged == sent
    assert sum(entry.bytes_out for entry in log.entries) == log.bytes_out
    seen = {one.argv for one in recorder.commands if one.client.startswith("127.0.0.1:")}
    assert {tuple(argv) for argv in wire if argv[0].decode() in RENAMED.values()} <= seen
    assert not [argv for argv in seen if argv[0].decode().upper() in RENAMED]


async def test_a_session_shows_no_name_of_the_server_s_own(renamed_server: Server) -> None:
    session = BrowsingSession(BrowseOptions(target_of(renamed_server, names=NAMES), resume=False))
    await session.start()
    try:
        await eventually(lambda: session.status.progress.state.is_over)
        facts = await session.keys.key_facts(b"list:short")
        preview = await session.keys.preview(await session.keys.key_facts(b"string:int"))
        (error,) = await session.connection.run(guard.strlen(b"list:short"))
    finally:
        await session.close()
    assert isinstance(facts.length, Unknown)
    assert facts.length.reason is Reason.DENIED
    assert "profile" in facts.length.detail
    assert preview.refusal is None
    assert isinstance(error, ServerError)
    shown = repr([(entry, list(unpack_requests(entry.request))) for entry in session.log.entries])
    assert not [name for name in RENAMED.values() if name in f"{shown}{error}{facts}"]


async def test_what_is_disabled_is_never_asked(renamed_server: Server) -> None:
    async with (
        DelayProxy(renamed_server.port) as proxy,
        connected(target_of(renamed_server, port=proxy.port, names=NAMES)) as connection,
    ):
        await key_facts(connection, b"list:short")
        connection.forget_denied()
        kind, denied = await connection.run(guard.key_type(b"list:short"), guard.llen(b"list:short"))
        assert kind == b"list"
        assert isinstance(denied, ServerError)
        assert denied.code == "NOPERM"
        assert "LLEN" not in words(proxy.commands())


@ASKERS
@pytest.mark.parametrize("word", ["SCAN", "TYPE", "PTTL", "MEMORY", "OBJECT", "DBSIZE", "INFO", "CLIENT", "STRLEN"])
async def test_a_pass_never_asks_what_is_disabled(valkey: Server, asker: str, word: str) -> None:
    valkey.admin.mset({f"user:{n}": n for n in range(500)})
    async with DelayProxy(valkey.port) as proxy:
        names = command_names({word: ""})
        async with connected(target_of(valkey, port=proxy.port, names=names)) as connection:
            analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
            with asked_by(asker):
                await analysis.run()
        assert word not in words(proxy.commands())
    if word == "SCAN":
        assert analysis.progress.state is ScanState.FAILED
        assert "the profile says that this command is disabled" in str(analysis.progress.reason)
    else:
        assert known(analysis.report).summary.root.stats.keys == 500


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"DBSIZE": "b840flush"}, "runs FLUSHALL under the name that is given for DBSIZE"),
        ({"DBSIZE": RENAMED["TYPE"]}, "runs TYPE under the name that is given for DBSIZE"),
        ({"DBSIZE": "b840nothing"}, "has no command of the name that is given for DBSIZE"),
    ],
)
@pytest.mark.parametrize("name", ["redis-6.2", "redis-7.0", "valkey-9.1"])
async def test_a_name_that_stands_for_something_else_is_never_sent(name: str, given: dict[str, str], said: str) -> None:
    options = [*renaming(command_names({"TYPE": RENAMED["TYPE"]})), "--rename-command", "FLUSHALL", "b840flush"]
    with running(binaries()[name], *options) as server:
        server.admin.set("k", "v")
        async with DelayProxy(server.port) as proxy:
            with pytest.raises(ConnectFailure, match=said) as failed:
                async with connected(target_of(server, port=proxy.port, names=command_names(given))):
                    raise AssertionError("it may not connect")
            assert words(proxy.commands()) == {"COMMAND"}
        assert failed.value.kind is FailureKind.NAMES
        assert server.admin.dbsize() == 1


async def test_a_user_who_may_not_ask_what_a_name_stands_for(renamed_server: Server) -> None:
    renamed_server.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~*", "+@all", "-command")
    target = target_of(renamed_server, names=NAMES, user="poor", password=Secret("pw"))
    with pytest.raises(ConnectFailure, match="does not say which commands") as failed:
        async with connected(target):
            raise AssertionError("it may not connect")
    assert "--with renamed" in failed.value.remedy
    with pytest.raises(ConnectFailure) as failed:
        async with connected(replace(target, password=Secret("wrong"))):
            raise AssertionError("it may not connect")
    assert failed.value.kind is FailureKind.WRONGPASS


@pytest.mark.parametrize("name", ["redis-7.0", "valkey-9.1"])
async def test_a_renamed_command_keeps_its_subcommands_also_by_redis_py(name: str) -> None:
    names = command_names({"CLIENT": "b840client"})
    with running(binaries()[name], *renaming(names), cluster=True) as server:
        log = CommandLog()
        async with DelayProxy(server.port) as proxy:
            target = target_of(server, port=proxy.port, names=names)
            async with connected(target, log=log) as connection:
                assert connection.no_touch is (NoTouch.UNSUPPORTED if name == "redis-7.0" else NoTouch.ON)
            watch = ClusterWatch([target], log)
            await watch.look()
            await watch.close()
        assert len(list(watch.topology.nodes)) == 1
        asked = proxy.commands()
    assert [b"b840client", b"NO-TOUCH", b"ON"] in asked
    assert b"CLIENT" not in {argv[0] for argv in asked}
    control = {name for entry in log.entries if entry.connection.startswith("control") for name in entry.counts}
    assert {"COMMAND INFO", "CLIENT SETNAME", "CLIENT NO-TOUCH", "CLUSTER NODES"} <= control


@pytest.mark.slow
async def test_all_nodes_of_a_cluster_are_asked_by_the_names_of_its_profile() -> None:
    """INFO and CLUSTER keep their names, by which the tests wait for a cluster."""
    words = {*RENAMED, "RANDOMKEY", "READONLY"} - {"INFO"}
    names, keys = command_names({word: f"b840{word.lower()}fc" for word in words}), numbered(900)
    with cluster_of(require("redis-8.10"), *renaming(names), replicas=1) as cluster:
        cluster.fill(keys)
        for primary in cluster.primaries:
            primary.admin.wait(1, 5_000)
        target = replace(target_of(cluster.members[0].server, names=names), replicas="only")
        report = await report_of(target)
    assert report.head.coverage.kind is CoverageKind.EXACT, report.head.coverage.reason
    assert report.summary.root.stats.keys == len(keys)


ADMINISTRATION = ("-bgrewriteaof", "-bgsave", "-debug", "-migrate", "-replicaof", "-save", "-shutdown", "-sync")


@dataclass(frozen=True, slots=True)
class Service:
    """What a service refuses, and which columns of a report that costs."""

    refuses: tuple[str, ...]
    denied: frozenset[str] = field(default_factory=frozenset)
    no_touch: NoTouch = NoTouch.ON


SERVICES = {
    "ElastiCache": Service((*ADMINISTRATION, "-config", "-slaveof")),
    "ElastiCache Serverless": Service(
        (*ADMINISTRATION, "-config", "-slowlog", "-latency", "-info", "-memory", "-cluster|slot-stats"),
        frozenset({"memory"}),
    ),
    "MemoryDB": Service((*ADMINISTRATION, "-config", "-acl", "-module")),
    "Azure Cache for Redis": Service((*ADMINISTRATION, "-config", "-psync", "-replconf", "-acl")),
    "Redis Software, Redis Cloud, Azure Managed Redis": Service(
        (
            *ADMINISTRATION,
            *("-select", "-role", "-memory|stats", "-memory|doctor", "-latency|latest", "-latency|doctor"),
            *("-cluster", "-acl|log", "-module"),
        )
    ),
    "Memorystore for Redis": Service(
        (*ADMINISTRATION, "-acl", "-cluster", "-command", "-config", "-object"),
        frozenset({"encoding", "idle", "frequency"}),
    ),
    "Memorystore for Valkey": Service(
        (*ADMINISTRATION, "-config", "-client|no-touch", "-client|setinfo"), no_touch=NoTouch.DENIED
    ),
    "OCI Cache": Service((*ADMINISTRATION, "-acl", "-cluster", "-config|set", "-module", "-psync")),
    "Aiven": Service((*ADMINISTRATION, "-acl", "-cluster", "-command", "-config", "-failover", "-monitor", "-role")),
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_s_user(valkey: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    service = SERVICES[name]
    keys = every_type.fill(valkey, valkey.client())
    let_in(valkey, "+@all", *service.refuses)
    url = valkey.url.replace("redis://", "redis://poor:pw@")
    out = tmp_path / "report.json"
    assert run(["report", url, "--no-keep", "-o", str(out)]) == 0
    report = read_json(out.read_bytes())
    columns = {fact: column.state for fact, column in report.head.columns.items()}
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, len(keys))
    assert {fact for fact, state in columns.items() if state is ColumnState.DENIED} == service.denied
    assert (report.summary.root.stats.memory_bytes is None) == ("memory" in service.denied)
    capfd.readouterr()
    assert run(["find", url, "in:string"]) == 0
    assert "string:int" in capfd.readouterr().out
    assert run(["check", url, "--format", "json"]) in {0, 1}
    asyncio.run(_browse(valkey, service, sorted(keys)))


async def _browse(server: Server, service: Service, keys: list[bytes]) -> None:
    session = BrowsingSession(BrowseOptions(target_of(server, **POOR), resume=False))
    await session.start()
    try:
        await eventually(lambda: session.status.progress.state.is_over)
        assert session.connection.no_touch is service.no_touch
        for key in keys:
            facts = await session.keys.key_facts(key)
            preview = await session.keys.preview(facts)
            assert preview.refusal is None, key
    finally:
        await session.close()
