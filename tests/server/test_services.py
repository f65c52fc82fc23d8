"""Managed services, each by a user who may not do what the service refuses by its documents: what is denied is said.

A service may refuse a command by another error than NOPERM, and its proxy may have other cursors: this stands in for
what it refuses, and for nothing else.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rtui.analysis.formats.json import read_json
from rtui.analysis.report.document import ColumnState, CoverageKind
from rtui.cli.main import run
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.wire.identity import NoTouch
from tests.server import every_type
from tests.server.targets import eventually, target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import Server

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
    found = capfd.readouterr().out
    assert "string:int" in found
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
