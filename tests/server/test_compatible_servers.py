"""What rtui makes of servers that are not quite Redis: every key once, nothing that harms them, unknowns as unknown."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from rtui.analysis.columns import EVERYTHING, Columns, parse_columns
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.cli.run import run_analysis
from rtui.keyspace.store.name_search import HeldNames
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.key_facts import key_facts
from rtui.server.inspection.report_head import ON_DISK_NOTE, SAMPLED_NOTE
from rtui.server.options import AnalysisOptions, BrowseOptions, FindOptions
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node import ScanNode
from rtui.server.scan.node_scan import ATTEMPTS, PLACES
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.search.run import KeySearch
from rtui.server.search.search import Stage
from rtui.server.wire.errors import Reply
from rtui.server.wire.target import Target
from rtui.tui.browse.fact_lines import fact_lines
from tests.conftest import known
from tests.fakes.servers import (
    ALL,
    Argv,
    Dragonfly,
    ElastiCacheServerless,
    FakeKey,
    FakeServer,
    Garnet,
    HuaweiProxy,
    Kvrocks,
    Pika,
    RedisEnterprise,
    TencentProxy,
    Upstash,
)
from tests.proxy import DelayProxy
from tests.server.targets import Seen, connected, eventually, impatient, numbered, plant, target_of
from tests.servers import Server

TYPES = (b"string", b"hash", b"set", b"zset", b"list")
KEYS = {b"app:%b:%d" % (TYPES[number % 5], number): FakeKey(TYPES[number % 5]) for number in range(1_000)}

any_server = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


async def reported(server: FakeServer, **options: Any) -> Report:
    async with connected(server.target) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, **options))
        await run.run(reports_meanwhile=False)
        assert run.progress.state is ScanState.DONE, run.progress.reason
    return known(run.report)


async def found(server: FakeServer, query: str) -> KeySearch:
    async with connected(server.target) as connection:
        run = KeySearch(Deployment.over(connection), parse(query), FindOptions(pace=Pace.FULL))
        await run.run()
        assert run.progress.state is ScanState.DONE, run.progress.reason
    return run


async def listed(server: FakeServer, folder: Path, **options: Any) -> tuple[list[bytes], BrowsingSession]:
    """The names that a session lists once it is done, and the session."""
    session = BrowsingSession(BrowseOptions(server.target, pace="full", **options), state_folder=folder)
    try:
        await session.start()
        await eventually(lambda: session.status.progress.state.is_over)
        assert session.status.progress.state is ScanState.DONE, session.status.progress.reason
        return [name for page in HeldNames(session.store).pages() for name in page], session
    finally:
        await session.close()


@any_server
async def test_a_report_counts_every_key_once(kind: type[FakeServer]) -> None:
    async with kind(KEYS) as server:
        report = await reported(server)
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.summary.root.stats.keys == len(KEYS)
    assert {one.name: one.stats.keys for one in report.summary.types} == dict.fromkeys(TYPES, len(KEYS) // 5)


@any_server
async def test_browsing_lists_every_key_once(kind: type[FakeServer], tmp_path: Path) -> None:
    async with kind(KEYS) as server:
        names, session = await listed(server, tmp_path)
    assert sorted(names) == sorted(KEYS)
    assert session.store.complete


@any_server
async def test_browsing_with_a_pattern(kind: type[FakeServer], tmp_path: Path) -> None:
    async with kind(KEYS) as server:
        names, _ = await listed(server, tmp_path, match=b"*:hash:*1")
    assert sorted(names) == sorted(key for key in KEYS if b":hash:" in key and key.endswith(b"1"))


@any_server
@pytest.mark.parametrize("query", ["*:set:*", "type:set"])
async def test_searches_find_every_key_once(kind: type[FakeServer], query: str) -> None:
    async with kind(KEYS) as server:
        run = await found(server, query)
    assert sorted(record.key for record in run.matches.kept) == sorted(key for key in KEYS if b":set:" in key)


@pytest.mark.parametrize(
    ("kind", "fact", "why"),
    [
        (Dragonfly, "idle", "unknown command"),
        (Garnet, "idle", "always answers 0"),
        (Kvrocks, "encoding", "unknown command"),
        (Pika, "memory", "unknown command"),
        (ElastiCacheServerless, "memory", "unknown command"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_what_is_unknown_there_is_never_0(kind: type[FakeServer], fact: str, why: str) -> None:
    async with kind(KEYS) as server:
        report = await reported(server)
    column = report.head.columns[fact]
    assert column.state is ColumnState.UNSUPPORTED
    assert why in column.reason
    stats = report.summary.root.stats
    if fact == "memory":
        assert stats.memory_bytes is None
    if fact == "idle":
        assert stats.idle is None
        assert report.summary.hottest == ()


@pytest.mark.parametrize("kind", [Garnet, Kvrocks, Pika], ids=lambda kind: kind.__name__)
async def test_a_count_that_is_not_asked_is_unknown(kind: type[FakeServer], tmp_path: Path) -> None:
    async with kind(KEYS) as server:
        _, session = await listed(server, tmp_path)
        assert session.status.total is None
        assert not session.status.server.databases
        assert session.status.outdated is None
        assert not session.status.notes


async def test_a_server_that_always_counts_0_is_not_called_emptied(tmp_path: Path) -> None:
    class Uncounted(FakeServer):
        name = "a server whose DBSIZE is 0"
        takes_probes = True

        def reply(self, argv: Argv) -> Reply:
            return 0 if argv == [b"DBSIZE"] else super().reply(argv)

    async with Uncounted(KEYS) as server:
        report = await reported(server)
        _, session = await listed(server, tmp_path)
    assert report.summary.root.stats.keys == len(KEYS)
    assert ScanNote.EMPTIED.value not in report.head.notes
    assert session.status.total is None
    assert session.status.outdated is None


async def test_sizes_on_disk_are_called_so() -> None:
    async with Kvrocks(KEYS) as server:
        report = await reported(server)
        async with connected(server.target) as connection:
            facts = await key_facts(connection, next(iter(KEYS)))
    assert ON_DISK_NOTE in report.head.notes
    assert SAMPLED_NOTE not in report.head.notes
    assert any("64 B on disk" in "".join(span.text for span in line) for line in fact_lines(facts, 80))


@pytest.mark.parametrize("kind", [RedisEnterprise, TencentProxy, ElastiCacheServerless], ids=lambda kind: kind.__name__)
async def test_what_only_says_that_it_is_redis_is_scanned_plainly_and_told(
    kind: type[FakeServer], tmp_path: Path
) -> None:
    async with kind(KEYS) as server:
        report = await reported(server)
        _, session = await listed(server, tmp_path)
        async with connected(server.target) as connection:
            run = AnalysisRun(connection, AnalysisOptions(estimate_keys=100))
            await run.run(reports_meanwhile=False)
    assert ScanNote.UNPROVEN.value in report.head.notes
    assert ScanNote.UNPROVEN.value in session.status.notes
    assert run.progress.state is ScanState.FAILED
    assert "cursors" in str(run.progress.reason)


async def test_a_proxy_that_takes_no_scan_in_a_pipeline_gets_single_ones(tmp_path: Path) -> None:
    async with HuaweiProxy(KEYS) as server:
        report = await reported(server)
        assert ScanNote.ALONE.value in report.head.notes
        refused = server.together
        _, session = await listed(server, tmp_path)
    assert refused <= ATTEMPTS * 2 * (PLACES + 1) + 3  # the proof, what is allowed, and one page of the scan
    assert session.store.keys == len(KEYS)


async def test_a_proxy_that_loses_a_cursor_is_scanned_again_from_the_beginning(tmp_path: Path) -> None:
    async with TencentProxy(KEYS) as server:
        server.fails_over_at = 1
        report = await reported(server)
        assert report.summary.root.stats.keys == len(KEYS)
        assert ScanNote.LOST_PLACE.value in report.head.notes
        server.fails_over_at = 2
        names, session = await listed(server, tmp_path)
        assert sorted(names) == sorted(KEYS)
        assert ScanNote.LOST_PLACE.value in session.status.notes
        server.fails_over_at = 1
        run = await found(server, "*:zset:*")
    assert sorted(record.key for record in run.matches.kept) == sorted(key for key in KEYS if b":zset:" in key)


async def test_a_scan_that_begins_again_by_itself_is_noticed_and_told(tmp_path: Path) -> None:
    async with Kvrocks(KEYS, loses=1) as server:
        report = await reported(server)
        assert report.summary.root.stats.keys == len(KEYS)
        assert ScanNote.BEGAN_AGAIN.value in report.head.notes
        server.loses = 1
        names, session = await listed(server, tmp_path)
        assert sorted(names) == sorted(KEYS)
        assert ScanNote.BEGAN_AGAIN.value in session.status.notes
        server.loses = 1
        run = await found(server, "*:zset:*")
    assert sorted(record.key for record in run.matches.kept) == sorted(key for key in KEYS if b":zset:" in key)


async def test_a_scan_that_begins_again_without_end_is_given_up() -> None:
    async with Kvrocks(KEYS, loses=1_000) as server, connected(server.target) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await run.run(reports_meanwhile=False)
    assert run.progress.state is ScanState.FAILED
    assert ScanNote.BEGAN_AGAIN.value in str(run.progress.reason)


async def test_a_proxy_that_takes_the_place_of_redis_in_the_middle_is_proven_anew(redis810: Server) -> None:
    names = plant(redis810, numbered(20_000))
    async with (
        RedisEnterprise(dict.fromkeys(names, FakeKey())) as then,
        DelayProxy(redis810.port) as proxy,
        connected(target_of(redis810, port=proxy.port)) as connection,
    ):
        seen, control = Seen(), RunControl(Pace.GENTLE)
        scan = Scan([ScanNode(connection)], seen, control, on_restart=lambda _: seen.keys.clear())

        def take_its_place() -> None:
            proxy.lead_to(then.port)
            proxy.cut()

        seen.at(1_000, take_its_place)
        running = asyncio.create_task(scan.run())
        await eventually(lambda: scan.progress.notes)
        control.pace = Pace.FULL
        await running
        assert scan.state is ScanState.DONE
        assert scan._nodes[0].listing.ranges.dialect is Dialect.OPAQUE
    assert set(seen.keys) == names
    assert not seen.repeated
    assert ScanNote.UNPROVEN in scan.progress.notes


async def test_another_kind_of_server_in_the_middle_gets_only_what_it_may_get() -> None:
    async with TencentProxy(KEYS) as first, Garnet(KEYS) as then, DelayProxy(first.port) as proxy:
        async with connected(Target(port=proxy.port)) as connection:
            run = AnalysisRun(connection, AnalysisOptions(pace=Pace.GENTLE))
            running = asyncio.create_task(run.run(reports_meanwhile=False))
            await eventually(lambda: run.progress.keys > len(KEYS) // 4)
            proxy.lead_to(then.port)
            proxy.cut()
            run.control.pace = Pace.FULL
            await running
        report = run.report
        assert report is not None, run.progress.reason
        assert report.summary.root.stats.keys == len(KEYS)
        assert ScanNote.RESTARTED.value in report.head.notes
        (note,) = [note for note in report.head.notes if "changed during the pass" in note]
        assert "then Garnet" in note


async def test_a_report_says_first_what_it_costs_where_commands_are_billed(capsys: pytest.CaptureFixture[str]) -> None:
    async with Upstash(KEYS) as server:
        result = await run_analysis(impatient(server.target, lost_s=1), AnalysisOptions(pace=Pace.FULL))
        said = capsys.readouterr().err
        most = known(
            re.search(r"Upstash bills each command: this takes up to ([0-9,]+), about 0\.[0-9]{2} USD\.", said)
        )
        asked = len(server.asked)
    assert result.report is not None
    assert len(KEYS) < asked <= int(most[1].replace(",", ""))


async def test_a_search_says_first_what_it_costs_and_a_screen_asks() -> None:
    async with Upstash(KEYS) as server, connected(server.target) as connection:
        search = KeySearch(Deployment.over(connection), parse("ttl:none"), FindOptions(pace=Pace.FULL))
        search.prepare()
        await eventually(lambda: search.stage is Stage.ASKING)
        before = len(server.asked)
        assert "Upstash bills each command: this takes up to" in str(search.plan)
        search.begin()
        await eventually(lambda: search.stage is Stage.OVER)
        most = known(re.search(r"up to ([0-9,]+), about", str(search.plan)))
        assert 0 < len(server.asked) - before <= int(most[1].replace(",", ""))
        await search.close()


def test_what_questions_are_counted_is_what_is_asked_at_most() -> None:
    assert Columns().questions(1_600) == 1_600 * 3 + 1_600 // 8 + 1_600 // 4 + 1_600 // 16
    assert EVERYTHING.questions(10) == 60
    assert parse_columns("type").questions(10) == 10  # type: ignore[union-attr]
