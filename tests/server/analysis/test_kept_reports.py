"""What is kept of an analysis: reports in files, the rows of the latest, and statements over them in a process."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from rtui.analysis.columns import Asked, Columns
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.document import CoverageKind, Report, Scope
from rtui.keyspace.slots import key_slot
from rtui.server.analysis import kept_reports, statements
from rtui.server.analysis.kept_reports import KeptReports, NotKeptError, all_kept, read_kept, split_reference, thinned
from rtui.server.analysis.session import LEFT, AnalysisSession
from rtui.server.analysis.statements import StatementFailed, StatementProcess, columns_of, notes_of, statement_process
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.search.rows import RowsSearch
from rtui.server.search.search import Stage
from rtui.server.wire.connection import Connection, Online
from rtui.table.kept_rows import PassRows
from rtui.table.rows import KeptRows
from rtui.table.schema import NEVER, SCHEMA, keys_of, names_of
from rtui.table.statement import read_statement
from tests.clusters import TestCluster
from tests.conftest import known
from tests.made_report import made_report
from tests.server.targets import eventually, numbered, plant, target_of
from tests.servers import Server

NOON_S = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
HOUR_S, DAY_S = 3_600, 86_400

Files = list[tuple[float, int]]
files = st.lists(st.tuples(st.floats(0, 40 * DAY_S), st.integers(0, 40)), max_size=60, unique_by=lambda one: one[0])


def made_at(at_s: float) -> Report:
    report = made_report()
    return replace(report, head=replace(report.head, made_at_s=at_s))


def left(some: Files, most: int, most_bytes: int) -> Files:
    gone = thinned(some, most, most_bytes)
    return [one for at, one in enumerate(some) if at not in gone]


@given(files, st.integers(1, 30), st.integers(0, 400))
def test_what_is_left_is_within_the_bounds_and_has_the_newest(some: Files, most: int, most_bytes: int) -> None:
    kept = left(some, most, most_bytes)
    assert len(kept) <= most
    assert sum(size for _, size in kept) <= most_bytes or len(kept) == 1
    if some:
        assert max(some) in kept


@given(files, st.integers(1, 30), st.integers(0, 400))
def test_nothing_goes_that_need_not(some: Files, most: int, most_bytes: int) -> None:
    gone = thinned(some, most, most_bytes)
    if gone:
        kept = left(some, most, most_bytes)
        assert len(kept) + 1 > most or sum(size for _, size in kept) + max(some[at][1] for at in gone) > most_bytes


@given(files, st.integers(1, 30))
def test_the_first_of_a_day_goes_after_all_that_are_not(some: Files, most: int) -> None:
    kept = set(left(some, most, 1 << 40))
    firsts = {min(one for one in some if one[0] // DAY_S == day) for day in {at_s // DAY_S for at_s, _ in some}}
    if firsts - kept:
        assert kept <= firsts | {max(some)}


@given(files, st.integers(1, 30), st.integers(0, 400))
def test_thinning_what_was_thinned_changes_nothing(some: Files, most: int, most_bytes: int) -> None:
    assert not thinned(left(some, most, most_bytes), most, most_bytes)


def test_a_report_is_read_as_it_was_kept(tmp_path: Path) -> None:
    kept = KeptReports("prod:6379", 3, tmp_path / "reports")
    path = kept.keep(made_at(NOON_S + 0.1234))
    (file,) = kept.files()
    assert (file.path, file.made_at_s) == (path, NOON_S + 0.123)
    assert read_kept(file) == made_at(NOON_S + 0.1234)
    (listed,) = kept.reports()
    assert (listed.head, listed.stats) == (made_at(NOON_S + 0.1234).head, made_report().summary.root.stats)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "prod" not in str(path)
    assert list(kept.folder.iterdir()) == [path]


def test_servers_and_databases_are_apart(tmp_path: Path) -> None:
    folders = {KeptReports(label, db, tmp_path).folder for label in ("a:1", "a:2") for db in (0, 1)}
    assert len(folders) == 4


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_reports.thinned, "__defaults__", (3, 1 << 30))
    kept = KeptReports("a:1", 0, tmp_path)
    for at_s in (0, 1, 2, DAY_S, DAY_S + 1):
        kept.keep(made_at(NOON_S + at_s))
    assert [file.made_at_s - NOON_S for file in kept.files()] == [DAY_S + 1, DAY_S, 0]


def test_servers_without_new_reports_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_reports, "MOST_SERVERS", 2)
    for db in range(4):
        KeptReports("a:1", db, tmp_path).keep(made_at(NOON_S + db))
    assert [one.folder for one in all_kept(tmp_path)] == [KeptReports("a:1", db, tmp_path).folder for db in (3, 2)]


@pytest.mark.parametrize("content", [b"", b"{}", b"\x1f\x8b\x08 damaged", b"[" * 5_000])
def test_what_can_not_be_read_is_left_out(content: bytes, tmp_path: Path) -> None:
    kept = KeptReports("a:1", 0, tmp_path)
    path = kept.keep(made_at(NOON_S))
    kept.keep(made_at(NOON_S + 1))
    path.write_bytes(content)
    (kept.folder / "notes.txt").write_text("mine")
    assert [one.head.made_at_s for one in kept.reports()] == [NOON_S + 1]


def test_a_report_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_reports, "MOST_BYTES", 100)
    with pytest.raises(NotKeptError, match="too large"):
        KeptReports("a:1", 0, tmp_path).keep(made_at(NOON_S))
    assert not list(tmp_path.iterdir())


def test_reports_are_named_by_day_and_number(tmp_path: Path) -> None:
    kept = KeptReports("a:1", 0, tmp_path)
    paths = [kept.keep(made_at(NOON_S + at_s)) for at_s in (-2 * DAY_S, -DAY_S - HOUR_S, -DAY_S, -HOUR_S, 0)]
    for which, expected in (
        ("latest", 4), ("1", 4), ("2", 3), ("5", 0), ("yesterday", 2), ("2026-11-20", 0), ("2026-11-22", 4),
    ):  # fmt: skip
        assert kept.find(which, NOON_S) == paths[expected], which
    for which in ("0", "6", "2026-11-19"):
        with pytest.raises(NotKeptError):
            kept.find(which, NOON_S)
    with pytest.raises(NotKeptError, match="No report"):
        KeptReports("b:1", 0, tmp_path).find("latest", NOON_S)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prod:6379@latest", ("prod:6379", "latest")),
        ("redis://me:secret@prod:6379/2@3", ("redis://me:secret@prod:6379/2", "3")),
        ("prod@2026-11-22", ("prod", "2026-11-22")),
        ("redis://me:secret@prod", None),
        ("prod@", None),
        ("@latest", None),
        ("report.json", None),
    ],
)
def test_references(text: str, expected: tuple[str, str] | None) -> None:
    assert split_reference(text) == expected


async def test_each_analysis_is_kept(server: Server, tmp_path: Path) -> None:
    for number in range(50):
        server.admin.set(f"user:{number}", "x")
    connection = Connection(target_of(server))
    await connection.open()
    kept = KeptReports(connection.target.label, 0, tmp_path)
    session = AnalysisSession(connection, AnalysisOptions, kept=kept)
    try:
        session.begin()
        assert session._task is not None
        await session._task
        (listed,) = kept.reports()
        assert session.report is not None
        assert (listed.stats.keys, listed.head) == (50, session.report.head)
        kept.folder.rename(tmp_path / "moved")
        kept.folder.write_text("a file where the folder should be")
        session.begin()
        await known(session._task)
        assert "not kept" in session.status.notes[-1]
        assert session.report.summary.root.stats.keys == 50
    finally:
        await session.close()
        await connection.close()


async def test_what_a_long_analysis_has_found_is_kept_when_it_is_left(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.analysis.session.ASK_FROM_S", 0.0)
    plant(valkey, numbered(150_000))
    connection = Connection(target_of(valkey))
    await connection.open()
    kept = KeptReports(connection.target.label, 0, tmp_path)
    session = AnalysisSession(connection, AnalysisOptions, kept=kept)
    try:
        session.begin()
        await eventually(lambda: session.report is not None and session.report.head.coverage.keys)
        session.control.pause()
        assert "partial report" in known(session.status.lost_by_leaving)
        await session.close()
        (listed,) = kept.reports()
        assert listed.head.coverage.kind is CoverageKind.PARTIAL
        assert listed.head.coverage.reason == LEFT
        assert 0 < listed.head.coverage.keys < 150_000
        await session.close()
        assert len(kept.files()) == 1
    finally:
        await connection.close()


KEYS = 3_000


@pytest.fixture(autouse=True)
def refreshed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


@asynccontextmanager
async def analysed(server: Server, folder: Path) -> AsyncIterator[BrowsingSession]:
    server.admin.mset({f"user:{number}": "x" for number in range(KEYS)})
    async with browsed(server, folder) as session:
        yield session


@asynccontextmanager
async def browsed(server: Server, folder: Path) -> AsyncIterator[BrowsingSession]:
    """A session after an analysis of all keys."""
    session = BrowsingSession(BrowseOptions(target_of(server), pace="full"), state_folder=folder)
    await session.start()
    try:
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        session.analysis.begin()
        await ended(session.analysis)
        yield session
    finally:
        await session.close()
        assert session.analysis.rows is None


async def ended(analysis: AnalysisSession) -> None:
    await eventually(lambda: analysis.report is not None and analysis.under_way is None)


def kept_rows(session: BrowsingSession) -> list[bytes]:
    rows = session.analysis.rows
    return [] if rows is None else [key for one in rows.rows.chunks() for key in keys_of(one.columns(["name", "raw"]))]


async def test_rows_stay_with_the_run_of_the_server(valkey: Server, tmp_path: Path) -> None:
    async with analysed(valkey, tmp_path) as session:
        assert sorted(kept_rows(session)) == sorted(b"user:%d" % number for number in range(KEYS))
        generation = session.status.generation
        valkey.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: session.status.generation > generation and isinstance(session.status.link, Online))
        assert len(kept_rows(session)) == KEYS
        assert isinstance(session.search(parse("type:string")), RowsSearch)


async def test_rows_of_a_server_that_was_restarted_are_dropped(server: Server, tmp_path: Path) -> None:
    async with analysed(server, tmp_path) as session:
        rows = known(session.analysis.rows)
        server.restart()
        await eventually(lambda: session.status.outdated is not None)
        assert not isinstance(session.search(parse("type:string")), RowsSearch)
        assert session.analysis.rows is None
        assert not rows.rows.height


async def test_rows_are_those_before_until_the_same_was_asked_again(valkey: Server, tmp_path: Path) -> None:
    async with analysed(valkey, tmp_path) as session:
        before = known(session.analysis.rows)
        valkey.admin.set("later", "x")
        session.analysis.begin_again()
        assert session.analysis.rows == before
        await eventually(lambda: session.analysis.under_way is None)
        await eventually(lambda: len(kept_rows(session)) == KEYS + 1)
        assert not before.rows.height
        valkey.admin.set("later still", "x")
        session.analysis.begin_again()
        session.analysis.control.stop()
        await eventually(lambda: session.analysis.under_way is None)
        assert len(kept_rows(session)) == KEYS + 1
        session.analysis.begin()
        await eventually(lambda: len(kept_rows(session)) == KEYS + 2)


async def test_a_sample_keeps_no_rows(valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.analysis.session.ESTIMATE_KEYS", 200)
    async with analysed(valkey, tmp_path) as session:
        session.analysis.begin(estimate=True)
        await ended(session.analysis)
        assert session.analysis.rows is None


async def test_rows_of_an_analysis_that_begins_again_are_those_of_the_new_run(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({f"user:{number}": "x" for number in range(10 * KEYS)})
    async with analysed(valkey, tmp_path) as session:
        analysis = session.analysis
        analysis.control.pace = Pace.GENTLE
        analysis.begin()
        await eventually(lambda: kept_rows(session))
        analysis.control.pause()
        assert analysis.under_way is not None
        valkey.restart()
        valkey.admin.mset({f"new:{number}": "x" for number in range(KEYS)})
        analysis.control.resume()
        await eventually(lambda: analysis.under_way is None)
        assert analysis.status.progress.state is ScanState.DONE
        assert sorted(kept_rows(session)) == sorted(b"new:%d" % number for number in range(KEYS))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_rows_of_a_cluster_are_dropped_with_its_set_of_nodes(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(b"user:%d" % number for number in range(KEYS))
    first = cluster.members[0]
    async with browsed(cluster.members[1].server, tmp_path) as session:
        assert len(kept_rows(session)) == KEYS
        node = session.search(parse(f"node:{first.server.host}:{first.server.port}"))
        assert isinstance(node, RowsSearch)
        node.prepare()
        await eventually(lambda: node.stage is Stage.OVER)
        slots = known(first.slots)
        assert {slots[0] <= key_slot(one.key) <= slots[1] for one in node.kept} == {True}
        assert 0 < node.count < KEYS
        replica = next(one.server for one in cluster.members if one.primary_id == first.id)
        replica.admin.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
        await eventually(lambda: replica.admin.info("replication")["role"] == "master")

        async with asyncio.timeout(20):
            while not (await session.deployment.look()).promoted:
                pass  # each look is a round trip
        assert session.analysis.rows is None


EXPLODES = "SELECT count(*) FROM keys a, keys b, keys c WHERE a.memory_bytes + b.memory_bytes + c.memory_bytes = 1"
NEEDS_MEMORY = "SELECT a.key || b.key || c.key AS n, count(*) FROM keys a, keys b, keys c GROUP BY 1 ORDER BY 1"


def kept(count: int = 5_000) -> PassRows:
    name, raw = names_of([b"odd:\xff", b"-1", *(b"user:%d:cart" % number for number in range(count - 2))])
    facts = {
        "type": "hash", "node": "a:1", "expires_ms": NEVER, "memory_bytes": 10, "database": 0, "slot": 1,
    }  # fmt: skip
    table = pl.DataFrame([name, raw]).with_columns(pl.lit(value).alias(column) for column, value in facts.items())
    missing = (pl.lit(None, SCHEMA[column]).alias(column) for column in SCHEMA if column not in table.columns)
    rows = KeptRows(1 << 30, 1 << 30)
    rows.append(table.with_columns(*missing).select(*SCHEMA).cast(SCHEMA))
    rows.finish(0.0, is_all=True)
    return PassRows(rows, Scope())


@pytest.fixture
async def process() -> AsyncIterator[StatementProcess]:
    async with statement_process() as one:
        yield one


async def run(process: StatementProcess, sql: str, **bounds: float) -> tuple[list[tuple[object, ...]], bool]:
    statement = read_statement(sql)
    files = await process.write(statement, kept(), None)
    table, is_cut = await process.run(statement, files, **bounds)  # type: ignore[arg-type]
    return table.rows(), is_cut


@pytest.mark.slow
async def test_a_process_runs_one_statement_after_the_other(process: StatementProcess) -> None:
    await process.check(read_statement("SELECT count(*) FROM keys"))
    counted = (
        "SELECT pattern, count(*), sum(memory_bytes), max(ttl_ms), max(length) FROM keys GROUP BY 1 ORDER BY 2 DESC"
    )
    rows, is_cut = await run(process, counted)
    assert rows[0] == ("user:<id>:cart", 4_998, 49_980, -1, None)
    assert {row[0] for row in rows} == {"user:<id>:cart", "odd:\\xff", "-1"}
    assert not is_cut
    rows, is_cut = await run(process, "SELECT key, key_quoted FROM keys WHERE key LIKE 'odd%'", most_rows=1)
    assert (rows, is_cut) == ([("odd:\\xff", '"odd:\\xff"')], False)
    rows, is_cut = await run(process, "SELECT key FROM keys ORDER BY key", most_rows=2)
    assert (rows, is_cut) == ([("-1",), ("odd:\\xff",)], True)
    rows, _ = await run(process, "SELECT keys, memory_bytes, without_ttl FROM patterns ORDER BY keys DESC LIMIT 1")
    assert rows == [(4_998, 49_980, 4_998)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql", ["SELECT key FROM keys WHERE slot > 'a'", "SELECT key, count(*) FROM keys GROUP BY type"]
)
async def test_what_polars_cannot_do_is_known_before_any_key_is_asked(process: StatementProcess, sql: str) -> None:
    with pytest.raises(StatementFailed) as failed:
        await process.check(read_statement(sql))
    assert "\n" not in failed.value.happened
    await process.check(read_statement("SELECT key FROM keys"))


@pytest.mark.slow
async def test_a_statement_that_takes_too_long_is_ended(process: StatementProcess) -> None:
    with pytest.raises(StatementFailed) as failed:
        await run(process, EXPLODES, most_s=1.5)
    assert failed.value.happened == "It was ended after 1.5 s."
    assert await run(process, "SELECT count(*) FROM keys") == ([(5_000,)], False), "another process goes on"


@pytest.mark.slow
async def test_a_statement_that_takes_too_much_memory_is_ended(
    process: StatementProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "MOST_MEMORY_BYTES", statements.LEAST_MEMORY_BYTES)
    with pytest.raises(StatementFailed) as failed:
        await run(process, NEEDS_MEMORY)
    assert failed.value.happened == "It needs more than 256 MiB of memory."


@pytest.mark.slow
async def test_cancelling_ends_the_process(process: StatementProcess) -> None:
    await process.check(read_statement(EXPLODES))
    number = known(process._process).pid
    idle_s = _seconds_of(number)
    running = asyncio.create_task(run(process, EXPLODES))
    await eventually(lambda: _seconds_of(number) > idle_s + 0.3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def _seconds_of(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123 - no path
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT count(*) FROM keys", []),
        ("SELECT sum(memory_bytes) FROM keys", ["memory"]),
        ("SELECT expires_at, frequency FROM keys", ["ttl", "idle"]),
        ("SELECT without_ttl FROM patterns", ["ttl"]),
        ("SELECT * FROM keys", ["ttl", "memory", "idle", "length", "encoding"]),
    ],
)
def test_a_statement_asks_only_what_it_needs(sql: str, asked: list[str]) -> None:
    names = ("ttl", "memory", "idle", "length", "encoding")
    expected = Columns(**{name: Asked.ALL if name in asked else Asked.NONE for name in names})
    assert columns_of(read_statement(sql)) == expected


def test_findings_need_what_an_analysis_asks() -> None:
    assert columns_of(read_statement("SELECT * FROM findings")) is None
    both = columns_of(read_statement("SELECT length, rule FROM keys CROSS JOIN findings"))
    assert both == Columns(length=Asked.ALL)


def test_a_result_says_what_it_is_not_over() -> None:
    report = made_report()
    coverage = structs.replace(
        report.head.coverage,
        kind=CoverageKind.PARTIAL,
        keys=1_204,
        fraction=0.49,
        reason="it was interrupted",
        unread=2,
    )
    partial = structs.replace(report, head=structs.replace(report.head, coverage=coverage))
    said = notes_of(read_statement("SELECT key FROM keys"), partial, None, may_repeat=True)
    assert said == (
        "The result is over 1,204 keys, 49% of the keyspace only: it was interrupted.",
        "Left out: 2 keys with a name too long to read.",
        "Some keys may be there twice, since the server resized its table meanwhile.",
    )
