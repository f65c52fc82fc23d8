"""The command log of whole sessions, compared with what the server tells another client by MONITOR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from rtui.registry.load import read_registry
from rtui.server.analysis.run import AnalysisRun
from rtui.server.guard.command import Secret, find_spec
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.command_log import CommandLog, Purpose
from tests.monitor import Recorded, Recorder
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.browsing.test_session import browsing, whole
from tests.server.targets import ASKERS, asked_by, connected, eventually, numbered, plant, target_of
from tests.servers import Server

NOT_MONITORED = frozenset(
    {
        *("AUTH", "HELLO", "CLIENT SETNAME", "CLIENT SETINFO", "CLIENT NO-TOUCH"),
        *("CLIENT LIST", "CONFIG GET", "HOTKEYS GET", "SLOWLOG GET", "COMMANDLOG GET"),
        *("LATENCY LATEST", "LATENCY HISTORY"),
    }
)
"""What MONITOR does not tell on some version."""

MANY = 5_000
REGISTRY = read_registry(
    """
[[pattern]]
pattern = "user:<id>"
references = [{ from = "key", to = "hash" }]
"""
)


def logged(log: CommandLog) -> Counter[str]:
    """How often each command was sent, by the log; what is in it is all that was sent."""
    found: Counter[str] = Counter()
    for entry in log.entries:
        found.update(entry.counts)
    assert log.dropped == 0
    assert found.total() == log.commands == sum(entry.replies for entry in log.entries)
    assert sum(entry.bytes_out for entry in log.entries) == log.bytes_out
    assert sum(entry.bytes_in for entry in log.entries) == log.bytes_in
    return found


def named(lines: Iterable[Iterable[bytes]]) -> Counter[str]:
    """How often each command is among command lines."""
    return Counter(spec.name for spec in [find_spec(tuple(argv)) for argv in lines] if spec is not None)


def monitored(recorder: Recorder) -> list[Recorded]:
    return [one for one in recorder.commands if one.client.startswith("127.0.0.1:")]


def check(log: CommandLog, wire: list[list[bytes]], recorder: Recorder) -> None:
    """The log has what went over the wire, and what the server has told of it."""
    found = logged(log)
    assert found == named(wire)
    seen = named(one.argv for one in monitored(recorder))
    assert {name: count for name, count in found.items() if name not in NOT_MONITORED} == {
        name: count for name, count in seen.items() if name not in NOT_MONITORED
    }


@ASKERS
async def test_a_browsing_session(valkey: Server, tmp_path: Path, asker: str) -> None:
    every_type.fill(valkey, valkey.client())
    plant(valkey, numbered(MANY, b"user:"))
    with asked_by(asker), Recorder(valkey) as recorder:
        async with DelayProxy(valkey.port) as proxy:
            async with browsing(target_of(valkey, port=proxy.port), tmp_path) as session:
                await whole(session)
                await session.keys.row_facts([b"user:1", b"user:2", b"no such key"])
                for key in (b"hash", b"user:3", b"stream"):
                    await session.keys.preview(await session.keys.key_facts(key))
                assert await session.keys.lookup(b"user:4")
                facts = await session.keys.key_facts(b"user:3")
                assert (await session.keys.references(REGISTRY, facts, await session.keys.preview(facts))).outgoing
                session.health.begin()
                await eventually(lambda: bool(session.health.nodes and session.health.panels(session.health.nodes[0])))
                session.health.end()
                session.analysis.begin()
                await eventually(lambda: session.analysis.status.progress.state.is_over)
                log = session.log
            wire = proxy.commands()
    check(log, wire, recorder)
    purposes = {entry.purpose for entry in log.entries}
    others = {Purpose.HEARTBEAT, Purpose.SAMPLE, Purpose.FIND, Purpose.OTHER, Purpose.HOT, Purpose.CLIENTS}
    assert purposes >= set(Purpose) - others
    assert Purpose.OTHER not in purposes
    assert all(entry.outcome in {"answered", "error"} for entry in log.entries if entry.connection != "interactive 1")
    assert any(entry.is_sum for entry in log.entries)
    assert len(log.entries) < MANY


@pytest.mark.slow
@pytest.mark.sampled("asker", "estimate")
@ASKERS
@pytest.mark.parametrize("estimate", [None, 500], ids=["all", "sample"])
async def test_an_analysis(server: Server, asker: str, estimate: int | None) -> None:
    every_type.fill(server, server.client())
    plant(server, numbered(MANY, b"user:"))
    log = CommandLog()
    with asked_by(asker), Recorder(server) as recorder:
        async with DelayProxy(server.port) as proxy:
            async with connected(target_of(server, port=proxy.port), log=log) as connection:
                await AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, estimate_keys=estimate)).run()
            wire = proxy.commands()
    found, seen = logged(log), named(one.argv for one in monitored(recorder))
    assert found == named(wire)
    unknown = found.keys() - seen.keys()  # to this version, which then tells nothing of it
    assert {name: found[name] for name in found.keys() - unknown - NOT_MONITORED} == {
        name: seen[name] for name in seen.keys() - NOT_MONITORED
    }
    assert unknown <= NOT_MONITORED | {"HPTTL"}
    assert found["TYPE"] >= (MANY if estimate is None else 100)
    assert Purpose.OTHER not in {entry.purpose for entry in log.entries}


@pytest.mark.slow
async def test_over_tls_the_engine_writes_the_same_log(tls_server: Server) -> None:
    plant(tls_server, numbered(MANY, b"user:"))
    log = CommandLog()
    with Recorder(tls_server) as recorder:
        async with connected(target_of(tls_server), log=log) as connection:
            await AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL)).run()
    found, seen = logged(log), named(one.argv for one in recorder.named("rtui"))
    for name in ("SCAN", "TYPE", "PTTL", "MEMORY USAGE", "STRLEN", "OBJECT ENCODING"):
        assert found[name] == seen[name] > 0


@ASKERS
async def test_a_connection_that_is_lost_again_and_again(valkey: Server, asker: str) -> None:
    plant(valkey, numbered(MANY, b"user:"))
    log = CommandLog()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port), log=log) as connection:
        proxy.cut_after(100_000)
        with asked_by(asker):
            await AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL)).run()
    lost = [entry for entry in log.entries if entry.outcome == "lost"]
    assert any(entry.purpose is Purpose.INSPECTION and entry.owed for entry in lost)
    assert all(entry.is_over for entry in log.entries)
    assert {"bulk 1", "bulk 2"} <= {entry.connection for entry in log.entries}
    assert logged(log)["TYPE"] >= MANY


async def test_a_password_goes_nowhere(valkey: Server, tmp_path: Path) -> None:
    user, password = "the-user-0451", "the-password-0451"
    valkey.admin.execute_command("ACL", "SETUSER", user, "on", f">{password}", "+@all", "~*")
    file = tmp_path / "log.jsonl"
    target = target_of(valkey, user=user, password=Secret(password))
    async with browsing(target, tmp_path / "state", log_file=file) as session:
        await whole(session)
    text = file.read_text()
    assert '"commands":{"AUTH":1}' in text
    assert '"redacted":true' in text
    assert user not in text
    assert password not in text
    assert session.log.failure is None
