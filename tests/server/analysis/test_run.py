"""A whole analysis of a real server: its report, and everything that can happen to it on the way."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial
from random import Random
from typing import Any

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import ColumnState, CoverageKind, HotReport, Report
from rtui.keyspace.slices import Slicer
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import PatternError
from rtui.server.analysis.key_pass import SLOT_BY_SLOT
from rtui.server.analysis.run import AnalysisRun
from rtui.server.analysis.table_import import MOST_THREADS, NOT_THIS_PROCESSOR
from rtui.server.guard.command import Secret
from rtui.server.hot.report import hot_report
from rtui.server.inspection.report_head import SAMPLED_NOTE
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from tests.conftest import known
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.targets import connected, eventually, numbered, plant, target_of
from tests.servers import Server, free_port

MANY = 20_000


def analysing(connection: Connection, **options: Any) -> AnalysisRun:
    """An analysis at full pace unless told otherwise."""
    return AnalysisRun(connection, AnalysisOptions(**{"pace": Pace.FULL, **options}))


async def reported(analysis: AnalysisRun) -> Report:
    await analysis.run()
    return known(analysis.report)


def has_seen(analysis: AnalysisRun, keys: int) -> bool:
    return analysis.progress.keys >= keys


async def test_a_report_of_everything_on_every_version(server: Server) -> None:
    client = server.client()
    types = every_type.fill(server, client)
    plant(server, numbered(500, b"app:session:"))
    async with connected(target_of(server)) as connection:
        report = await reported(analysing(connection))
    head, summary = report.head, report.summary
    assert head.coverage.kind is CoverageKind.EXACT
    assert head.coverage.keys == head.coverage.total_keys == summary.root.stats.keys == 500 + len(types)
    assert head.server.version == ".".join(map(str, server.version))
    assert head.cost.commands > 4 * 500
    assert head.columns["ttl"].state is ColumnState.COMPLETE
    assert head.columns["encoding"].state is ColumnState.SOME
    is_asked = head.columns["length"].state is ColumnState.COMPLETE
    assert is_asked is every_type.has_no_touch(server)
    assert {one.name for one in summary.types} == set(types.values())
    is_exact = server.product == "redis" and server.version >= (8, 4)
    assert (SAMPLED_NOTE in head.notes) is not is_exact
    assert all(record.length is not None for record in summary.big.by_memory)
    assert all(record.encoding is not None for record in summary.big.by_memory)
    assert sum(summary.slots.keys) == 500 + len(types)
    assert next(child for child in summary.root.children if child.name == b"app").stats.keys == 500


async def test_an_empty_database(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        report = await reported(analysing(connection))
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.summary.root.stats.keys == 0


async def test_keys_that_wait_for_their_facts_are_not_done(valkey: Server) -> None:
    plant(valkey, numbered(400))
    async with DelayProxy(valkey.port, 0.05) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        analysis = analysing(connection)
        running = asyncio.create_task(analysis.run())
        most = 0.0
        while not running.done():
            progress = analysis.progress
            if not progress.keys and progress.fraction is not None:
                most = max(most, progress.fraction)
            await asyncio.sleep(0)
    assert analysis.progress.fraction == 1.0
    assert most < 0.9


async def test_reports_come_while_it_runs_and_say_that_they_are_of_a_part(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with DelayProxy(valkey.port, 0.02) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        analysis = analysing(connection, pace=Pace.GENTLE)
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.report is not None)
        early = known(analysis.report)
        assert early.head.coverage.kind is CoverageKind.PARTIAL
        assert early.head.coverage.reason == "it is running"
        assert 0 < early.head.coverage.keys < MANY
        assert early.summary.root.stats.keys == early.head.coverage.keys
        analysis.control.pace = Pace.FULL
        await running
    assert analysis.report is not None
    assert analysis.report.head.coverage.kind is CoverageKind.EXACT
    assert analysis.report.head.scope.pace == "full"
    assert analysis.report.summary.root.stats.keys == MANY


@pytest.mark.slow
async def test_the_biggest_keys_are_complete_whenever_the_last_report_before_was_made(
    valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that came while that report was added up."""
    for name in ("FIRST_REPORT_S", "REPORT_EVERY_S"):
        monkeypatch.setattr(f"rtui.server.analysis.run.{name}", 0.0)
    monkeypatch.setattr("rtui.server.analysis.run.REPORT_SHARE", 1e9)
    monkeypatch.setattr("rtui.table.summary.Slicer", partial(Slicer, slice_s=0.0))
    random = Random(3)
    names = [b"namespace-%d:%b" % (index % 500, name) for index, name in enumerate(numbered(MANY))]
    client = valkey.client()
    for start in range(0, MANY, 1_000):
        client.mset({name: b"v" * random.randrange(1, 4_000) for name in names[start : start + 1_000]})
    async with connected(target_of(valkey)) as connection:
        report = await reported(analysing(connection))
    assert len(report.summary.big.by_memory) == 100
    assert all(record.encoding and record.length for record in report.summary.big.by_memory)


async def test_stopped_before_a_server_answers_it_ends() -> None:
    connection = Connection(Target(port=free_port()))
    connection.start()
    run = AnalysisRun(connection, AnalysisOptions())
    running_run = asyncio.create_task(run.run())
    await connection.tried()
    run.control.stop(SafeText("it was interrupted"))
    await running_run
    assert run.progress.state is ScanState.FAILED
    assert "before it began" in str(run.progress.reason)
    await connection.close()


async def test_stopped_it_says_what_it_has(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with connected(target_of(valkey)) as connection:
        analysis = analysing(connection, pace=Pace.GENTLE)
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= 500)
        analysis.control.stop(SafeText("somebody ended it"))
        await running
    report = known(analysis.report)
    assert analysis.progress.state is ScanState.STOPPED
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert report.head.coverage.reason == "somebody ended it"
    assert 500 <= report.head.coverage.keys < MANY
    assert report.summary.root.stats.keys == report.head.coverage.keys


async def test_a_budget_ends_it(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with connected(target_of(valkey)) as connection:
        report = await reported(analysing(connection, pace=Pace.GENTLE, budget_s=0.2))
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert report.head.coverage.reason == "the 0.2 s budget was used up"


async def test_paused_and_resumed_it_is_complete(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with connected(target_of(valkey)) as connection:
        analysis = analysing(connection)
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= 1_000)
        analysis.control.pause()
        assert analysis.progress.state is ScanState.PAUSED
        analysis.control.resume()
        await running
    assert known(analysis.report).summary.root.stats.keys == MANY


async def test_lost_while_the_last_thing_is_asked_it_is_over_all_the_same(
    redis810: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(redis810, numbered(300))
    async with DelayProxy(redis810.port) as proxy, connected(target_of(redis810, port=proxy.port)) as connection:

        async def cut(*args: Any, **options: Any) -> HotReport:
            proxy.hold_replies()
            asking = asyncio.create_task(hot_report(*args, **options))
            await proxy.wait_held(1)
            proxy.cut()
            proxy.release_replies()
            return await asking

        monkeypatch.setattr("rtui.server.hot.report.hot_report", cut)
        analysis = analysing(connection)
        report = await reported(analysis)
    assert analysis.progress.state is ScanState.DONE
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.summary.root.stats.keys == 300
    assert report.hot.lists == ()


@pytest.mark.slow
async def test_a_restart_makes_it_begin_again_and_say_so(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with connected(target_of(valkey)) as connection:
        analysis = analysing(connection, pace=Pace.GENTLE)
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= MANY // 10)
        valkey.restart()
        plant(valkey, numbered(MANY))
        analysis.control.pace = Pace.FULL
        await running
    assert analysis.report is not None
    assert ScanNote.RESTARTED.value in analysis.report.head.notes
    assert analysis.report.summary.root.stats.keys == MANY
    assert analysis.report.head.coverage.kind is CoverageKind.EXACT


async def test_an_estimate_says_what_it_rests_on(valkey: Server) -> None:
    plant(valkey, [*numbered(MANY // 2, b"a:"), *numbered(MANY // 2, b"b:")])
    async with connected(target_of(valkey)) as connection:
        report = await reported(analysing(connection, estimate_keys=2_000))
    coverage, root = report.head.coverage, report.summary.root
    assert coverage.kind is CoverageKind.ESTIMATE
    assert coverage.keys >= 1_900
    assert coverage.total_keys == MANY
    for child in root.children:
        assert isinstance(child.stats.keys, Estimate)
        assert child.stats.keys.low * 0.9 < MANY / 2 < child.stats.keys.high * 1.1


async def test_an_estimate_of_one_type_has_no_other(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    valkey.client().hset("hash", "f", "v")
    async with connected(target_of(valkey)) as connection:
        report = await reported(analysing(connection, estimate_keys=2_000, key_type=b"hash"))
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert [one.name for one in report.summary.types] == [b"hash"]
    assert report.summary.root.stats.keys == 1


async def test_an_estimate_of_a_small_database_is_exact(valkey: Server) -> None:
    plant(valkey, numbered(300))
    async with connected(target_of(valkey)) as connection:
        report = await reported(analysing(connection, estimate_keys=2_000))
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.summary.root.stats.keys == 300


@pytest.mark.slow
async def test_an_estimate_of_a_node_whose_cursors_go_slot_by_slot(cluster_node: Server) -> None:
    client = cluster_node.client()
    for name in numbered(6_000):
        client.set(name, b"v")
    async with connected(target_of(cluster_node)) as connection:
        estimate = await reported(analysing(connection, estimate_keys=1_000))
        whole = await reported(analysing(connection))
    assert estimate.head.coverage.kind is CoverageKind.ESTIMATE
    assert estimate.head.coverage.keys == pytest.approx(1_000, abs=2)
    assert estimate.head.coverage.total_keys == 6_000
    assert SLOT_BY_SLOT in estimate.head.notes
    assert whole.summary.root.stats.keys == 6_000
    assert whole.summary.slots.owned == ((0, 16_383),)


async def test_only_some_names_and_types(valkey: Server) -> None:
    plant(valkey, [*numbered(300, b"a:"), *numbered(200, b"b:")])
    valkey.client().hset("a:hash", "f", "v")
    async with connected(target_of(valkey)) as connection:
        named = await reported(analysing(connection, match=b"a:*"))
        typed = await reported(analysing(connection, key_type=b"hash"))
        with pytest.raises(PatternError):
            analysing(connection, match=b"*" * 600)
    assert named.summary.root.stats.keys == 301
    assert typed.summary.root.stats.keys == 1


async def test_a_user_who_may_not_scan_gets_the_reason(valkey: Server) -> None:
    plant(valkey, numbered(300))
    valkey.client().execute_command("ACL", "SETUSER", "blind", "on", ">pw", "~*", "+@all", "-scan")
    async with connected(target_of(valkey, user="blind", password=Secret("pw"))) as connection:
        analysis = analysing(connection)
        report = await reported(analysis)
    assert analysis.progress.state is ScanState.FAILED
    assert "SCAN was refused" in (analysis.progress.reason or "")
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert "SCAN was refused" in report.head.coverage.reason


async def test_a_denied_column_is_told_and_never_zero(valkey: Server) -> None:
    plant(valkey, numbered(300))
    valkey.client().execute_command("ACL", "SETUSER", "poor", "on", ">pw", "%R~*", "+@all", "-memory|usage")
    async with connected(target_of(valkey, user="poor", password=Secret("pw"))) as connection:
        report = await reported(analysing(connection))
    assert report.head.columns["memory"].state is ColumnState.DENIED
    assert report.head.columns["memory"].reason
    assert report.summary.root.stats.memory_bytes is None
    assert report.summary.root.stats.keys == 300
    assert report.summary.root.stats.no_ttl_keys == 300


OLD_PROCESSOR = """
import sys, importlib.util
(folder,) = importlib.util.find_spec("polars").submodule_search_locations
spec = importlib.util.spec_from_file_location("polars._cpu_check", folder + "/_cpu_check.py")
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
class Flags(dict):
    def __contains__(self, name): return True
    def __missing__(self, name): return name != "avx2"
check._read_cpu_flags = Flags
sys.modules["polars._cpu_check"] = check
"""
"""Makes Polars find a processor without AVX2."""

THREADS = "import polars, sys; print('threads', polars.thread_pool_size(), file=sys.stderr)"


def report(server: Server, before: str = "", after: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A report of the table, in a fresh interpreter that runs code before and after it."""
    run = f"from rtui.cli.main import run; code = run(['report', '--no-keep', '-s', {server.socket!r}])"
    given = {name: value for name, value in os.environ.items() if not name.startswith("POLARS_")}
    return subprocess.run(
        [sys.executable, "-c", f"{before}\n{run}\n{after}\nimport sys; sys.exit(code)"],
        env={**given, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_processor_without_avx2_is_told_what_to_install(valkey: Server) -> None:
    valkey.client().set("a:1", "x")
    done = report(valkey, OLD_PROCESSOR)
    assert done.returncode == 4
    assert NOT_THIS_PROCESSOR in done.stderr
    assert "polars[rtcompat]" in NOT_THIS_PROCESSOR
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "threads"), [({}, MOST_THREADS), ({"POLARS_MAX_THREADS": "3"}, 3)])
def test_few_threads_unless_they_are_set(valkey: Server, environment: dict[str, str], threads: int) -> None:
    valkey.client().set("a:1", "x")
    done = report(valkey, after=THREADS, **environment)
    assert done.returncode == 0
    assert f"threads {threads}" in done.stderr
