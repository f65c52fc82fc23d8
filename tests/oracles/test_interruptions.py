"""Whatever happens on the way, the totals are those of a brute-force count, or the report says that they are not."""

from __future__ import annotations

import asyncio
from typing import Any

import redis

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.report.document import ColumnState, CoverageKind, Node, Report
from rtui.server.analysis.run import AnalysisRun
from rtui.server.guard.command import find_spec
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from tests.monitor import Recorder, escapes_quotes
from tests.oracles.counted import by_namespace, by_type, facts, report_on
from tests.oracles.keyspaces import Path, Planted, grown
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.guard.harmless import is_harmless
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server
from tests.tui.tour import PLANTED_IDLE_S, minimal_user, plant_idle, usage

KEYS = 1_500
SLOWLY_SEEN = 4 * KEYS
"""Enough for several counts on the way, at a gentle pace over a long link."""


def nodes_of(report: Report) -> dict[Path, Node]:
    return {tuple((node.name, node.separator) for node in path[1:]): path[-1] for path in report.summary.root.walk()}


def is_whole(server: Server, report: Report, planted: dict[bytes, Planted]) -> None:
    """Hold every sum against the count."""
    found = facts(server.client()).values()
    totals = by_namespace(found, {key: one.path for key, one in planted.items()})
    nodes = nodes_of(report)
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, KEYS)
    assert {path: (one.keys, one.memory_bytes, one.no_ttl_keys) for path, one in totals.items()} == {
        path: (one.stats.keys, one.stats.memory_bytes, one.stats.no_ttl_keys) for path, one in nodes.items()
    }
    types = {one.name: (one.stats.keys, one.stats.memory_bytes) for one in report.summary.types}
    assert types == {kind: (one.keys, one.memory_bytes) for kind, one in by_type(found).items()}
    assert sum(report.summary.slots.keys) == KEYS


async def test_paused_lost_and_with_a_budget_it_is_whole(server: Server) -> None:
    planted = grown(server.client(), keys=KEYS, seed=3)
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, budget_s=60))
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= 300)
        proxy.cut_after(10_000)
        await eventually(lambda: analysis.progress.keys >= KEYS // 2)
        analysis.control.pause()
        proxy.cut()
        analysis.control.resume()
        analysis.control.pace = Pace.NORMAL
        await running
        assert proxy.accepted > 3
    assert analysis.report is not None
    is_whole(server, analysis.report, planted)


async def test_a_summary_on_the_way_changes_nothing(valkey: Server) -> None:
    planted = grown(valkey.client(), keys=KEYS, seed=4)
    async with connected(target_of(valkey)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.GENTLE))
        running = asyncio.create_task(analysis.run())
        seen: list[Report] = []
        while not running.done():
            if analysis.report is not None and (not seen or analysis.report is not seen[-1]):
                seen.append(analysis.report)
                analysis.control.pace = Pace.NORMAL if len(seen) == 1 else Pace.FULL
            await asyncio.sleep(0)
    assert analysis.report is not None
    is_whole(valkey, analysis.report, planted)
    for early in seen[:-1]:
        is_part(early, analysis.report)


async def test_ended_early_it_says_so_and_no_figure_is_too_large(server: Server) -> None:
    grown(server.client(), keys=SLOWLY_SEEN, seed=5)
    async with (
        DelayProxy(server.port, 0.002, records=False) as proxy,
        connected(target_of(server, port=proxy.port)) as connection,
    ):
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.GENTLE))
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= KEYS // 3)
        analysis.control.stop()
        await running
    ended, whole = analysis.report, await report_on(target_of(server))
    assert ended is not None
    assert ended.head.coverage.kind is CoverageKind.PARTIAL
    assert ended.head.coverage.reason
    assert KEYS // 3 <= ended.head.coverage.keys < SLOWLY_SEEN
    is_part(ended, whole)


def is_part(part: Report, whole: Report) -> None:
    """Counts and sums of a part are at least so much, never more."""
    nodes = nodes_of(whole)
    assert part.summary.root.stats.keys == part.head.coverage.keys
    for path, node in nodes_of(part).items():
        stats, all_of = node.stats, nodes[path].stats
        assert isinstance(stats.keys, int)
        assert isinstance(all_of.keys, int)
        assert 0 < stats.keys <= all_of.keys
        for here, there in (
            (stats.memory_bytes, all_of.memory_bytes),
            (stats.no_ttl_keys, all_of.no_ttl_keys),
            (stats.no_ttl_memory_bytes, all_of.no_ttl_memory_bytes),
        ):
            assert isinstance(here, int)
            assert isinstance(there, int)
            assert here <= there


UNTOUCHED_KEYS = 600

TOP = 40


def dumps(client: redis.Redis) -> dict[bytes, bytes]:
    """The value of every key as the server writes it down. Asking counts as an access."""
    keys: Any = sorted(client.scan_iter(count=1_000))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.dump(key)
    return dict(zip(keys, pipeline.execute(), strict=True))


def changes(server: Server) -> int:
    """How often the server's data has been written to."""
    info: Any = server.admin.info("persistence")
    changed: int = info["rdb_changes_since_last_save"]
    return changed


async def test_by_the_minimal_user(server: Server) -> None:
    grown(server.admin, keys=UNTOUCHED_KEYS, seed=11)
    every_type.fill(server, server.admin)
    plant_idle(server)
    user, password = minimal_user(server)
    server.admin.execute_command("ACL", "LOG", "RESET")
    written = changes(server)
    with Recorder(server) as recorder:
        async with DelayProxy(server.port) as proxy:
            target = target_of(server, port=proxy.port, user=user, password=password)
            whole = await report_on(target, top=TOP, columns=EVERYTHING)
            sampled = await report_on(target, top=TOP, estimate_keys=100)
            sent = proxy.commands()
    assert (whole.head.coverage.kind, sampled.head.coverage.kind) == (CoverageKind.EXACT, CoverageKind.ESTIMATE)
    assert changes(server) == written
    assert server.admin.execute_command("ACL", "LOG") == []
    nothing_is_denied(whole)
    for argv in sent:
        assert find_spec(argv) is not None, argv
        assert is_harmless(argv), argv
    seen = {one.argv for one in recorder.commands if one.client.startswith("127.0.0.1:")}
    if escapes_quotes(server):
        assert {argv for argv in seen if argv[0] not in {b"AUTH", b"HELLO"}} <= set(map(tuple, sent))
    idle = usage(server, "IDLETIME")
    touched = {key for key, seconds in idle.items() if seconds < PLANTED_IDLE_S}
    asked = {record.key for report in (whole, sampled) for record in report.summary.big.by_memory}
    assert touched <= (set() if every_type.has_no_touch(server) else asked)
    before = dumps(server.admin)
    await report_on(target_of(server, user=user, password=password))
    assert dumps(server.admin) == before


def nothing_is_denied(report: Report) -> None:
    states = {column.state for column in report.head.columns.values()}
    assert ColumnState.DENIED not in states
