"""An analysis that is left and goes on in a later run has the report of one that ran through."""

from __future__ import annotations

import asyncio
import hashlib
import stat
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import msgpack, structs

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.columns import EVERYTHING
from rtui.analysis.report.document import CoverageKind, Node, Report, Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.load import read_registry
from rtui.server import saved_analysis
from rtui.server.analysis_run import AnalysisRun
from rtui.server.analysis_session import AnalysisSession
from rtui.server.engine import ENVIRONMENT
from rtui.server.inspection.pipeline import SavedInspection
from rtui.server.kept_reports import KeptReports
from rtui.server.options import AnalysisOptions
from rtui.server.saved_analysis import (
    MOST_AGE_S,
    AnalysisFile,
    Asked,
    NotResumableError,
    SavedAnalysis,
    asked_by,
)
from rtui.server.scan.cursor import Dialect, TableWatch
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, ScanState
from rtui.server.scan.ranges import Ranges
from rtui.server.scan.saved_ranges import SavedRanges
from rtui.server.wire.connection import Connection
from tests.server.scanned import numbered, plant
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server

REGISTRY = read_registry("""
[[pattern]]
pattern = "shop:user:{id}:cart"
type = "hash"
ttl = "none"
[[pattern]]
pattern = "shop:user:{id}"
type = "string"
ttl = "<=1h"
""")


def made_saved() -> SavedAnalysis:
    """An analysis that has just begun, as it is saved."""
    asked = asked_by(AnalysisOptions(), "run", 0)
    assert isinstance(asked, Asked)
    ranges = Ranges(Dialect.STANDALONE)
    aggregates = Aggregates(Separators((b":",)), scope=Scope(), started_at_s=0.0)
    return SavedAnalysis(
        asked=asked,
        columns=EVERYTHING,
        began_at_s=0.0,
        saved_at_s=0.0,
        fraction=0.63,
        dialect="standalone",
        cost=Cost(),
        before=None,
        notes=(),
        inspection=SavedInspection(0, (), {}, 0),
        ranges=SavedRanges.of(ranges.saved(), False, TableWatch()),
        aggregates=finish(aggregates.saved()),
    )


SAVED = made_saved()
OPTIONS = AnalysisOptions(pace=Pace.GENTLE, columns=EVERYTHING, registry=REGISTRY, top=20)


def fill(server: Server) -> int:
    """Plant some 9,000 keys, which are cut into eight ranges."""
    names = [*numbered(5_000, b"shop:user:"), *numbered(2_500, b"{tag7}:page_"), *numbered(500, b"Odd Name ")]
    plant(server, names)
    pipeline = server.client().pipeline(transaction=False)
    for index in range(800):
        pipeline.hset(b"shop:user:%d:cart" % index, mapping={b"f%d" % one: b"v" * 40 for one in range(index % 30 + 1)})
        pipeline.rpush(b"jobs:%d" % (index % 200), b"x" * index)
    pipeline.execute()
    return len(names) + 800 + 200


def tree(node: Node) -> tuple[object, ...]:
    stats = node.stats
    figures = (stats.keys, stats.memory_bytes, stats.strings, node.distinct, node.examples, stats.types)
    return (node.name, node.separator, node.kind, figures, tuple(tree(child) for child in node.children))


def told(report: Report) -> dict[str, object]:
    """What a report says that doesn't depend on when keys were asked."""
    summary, coverage = report.summary, report.head.coverage
    big = summary.big
    assert summary.registry is not None
    return {
        "coverage": (coverage.kind, coverage.keys, coverage.total_keys, coverage.repeats_possible, coverage.fraction),
        "tree": tree(summary.root),
        "types": [(one.name, one.stats.keys, one.stats.memory_bytes, one.length) for one in summary.types],
        "encodings": summary.encodings,
        "memory": [(one.key, one.memory_bytes, one.length, one.encoding) for one in big.by_memory],
        "length": [(one.key, one.memory_bytes, one.length) for one in big.by_length],
        "over": big.over,
        "slots": summary.slots,
        "registry": summary.registry,
        "naming": summary.naming,
        "notes": [note for note in report.head.notes if "went on at" not in note],
    }


async def through(connection: Connection, saved: SavedAnalysis | None = None) -> Report:
    run = AnalysisRun(connection, OPTIONS, saved)
    await run.run()
    assert run.progress.state is ScanState.DONE
    assert run.report is not None
    return run.report


async def until(connection: Connection, keys: int, file: AnalysisFile, saved: SavedAnalysis | None = None) -> int:
    """Go on until so many keys are known, and leave; return how many there are then."""
    run = AnalysisRun(connection, OPTIONS, saved)
    running = asyncio.create_task(run.run())
    await eventually(lambda: run.progress.keys >= keys)
    assert run.why_not_later is None
    run.go_on_later(file)
    await running
    assert run.continuation.is_saved
    return run.progress.keys


async def test_it_has_the_report_of_one_that_ran_through(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left three times, and another engine goes on each time."""
    count, file = fill(valkey), AnalysisFile("here", 0, tmp_path / "saved")
    async with connected(target_of(valkey)) as connection:
        wanted = await through(connection)
    assert wanted.head.coverage.keys == count
    saved, known = None, [0]
    for part, engine in ((0.2, "pure"), (0.5, "compiled"), (0.8, "pure")):
        monkeypatch.setenv(ENVIRONMENT, engine)
        async with connected(target_of(valkey)) as connection:
            known.append(await until(connection, round(part * count), file, saved))
        saved = file.load()
        assert saved is not None
        assert saved.aggregates.keys == known[-1]
    assert all(one < other for one, other in pairwise(known))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    monkeypatch.delenv(ENVIRONMENT)
    async with connected(target_of(valkey)) as connection:
        found = await through(connection, saved)
    assert told(found) == told(wanted)
    assert found.head.coverage.kind is CoverageKind.EXACT
    assert any("went on at" in note for note in found.head.notes)
    assert found.head.cost.commands >= count


async def left(server: Server, folder: Path, keys: int = 2_000, **options: Any) -> SavedAnalysis:
    """Leave an analysis of some keys, as a session does."""
    plant(server, numbered(keys, b"user:"))
    async with connected(target_of(server)) as connection:
        session = session_on(connection, folder, **options)
        session.begin()
        await eventually(lambda: session.status.can_go_on_later)
        assert await session.go_on_later() is None
        await session.close()
    saved = AnalysisFile("here", 0, folder).load()
    assert saved is not None
    return saved


def session_on(
    connection: Connection, folder: Path, now_s: float | None = None, kept: KeptReports | None = None, **options: Any
) -> AnalysisSession:
    def given() -> AnalysisOptions:
        return AnalysisOptions(**{"pace": Pace.GENTLE, **options})

    def clock() -> float:
        return time.time() if now_s is None else now_s

    return AnalysisSession(connection, given, clock=clock, kept=kept, file=AnalysisFile("here", 0, folder))


async def test_a_session_goes_on_and_forgets_what_was_saved(valkey: Server, tmp_path: Path) -> None:
    kept = KeptReports("here", 0, tmp_path / "kept")
    saved = await left(valkey, tmp_path)
    async with connected(target_of(valkey)) as connection:
        session = session_on(connection, tmp_path, kept=kept)
        assert session.may_have_left
        found = await session.left_before()
        assert found == saved
        session.begin(saved=saved)
        await eventually(lambda: session.status.progress.state is ScanState.DONE and not session.may_have_left)
        assert session.report is not None
        assert session.report.head.coverage.keys == 2_000
        await eventually(lambda: list(kept.reports()))
        assert await session.left_before() is None
        await session.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"match": b"user:1*"}, "another filter"),
        ({"columns": EVERYTHING}, "Other facts"),
        ({"registry": REGISTRY}, "registry has changed"),
        ({"top": 7}, "other options"),
        ({"now_s": 0.0}, "week old"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_another_analysis_does_not_go_on(change: dict[str, Any], said: str) -> None:
    now_s = change.pop("now_s", 1_000.0 + MOST_AGE_S)
    before, now = asked_by(AnalysisOptions(), "run", 0), asked_by(AnalysisOptions(**change), "run", 0)
    assert isinstance(before, Asked)
    assert isinstance(now, Asked)
    why_not = said_of(before, now, now_s)
    assert why_not is not None
    assert said in why_not


def said_of(before: Asked, now: Asked, now_s: float) -> str | None:
    """Why an analysis that was saved at second 1,000 can't go on as another."""
    made = msgpack.decode(msgpack.encode(SAVED), type=SavedAnalysis)
    return structs.replace(made, asked=before, saved_at_s=1_000.0).why_not(now, now_s)


def test_the_same_goes_on_within_a_week_on_the_same_run_of_the_server_only() -> None:
    asked = asked_by(AnalysisOptions(), "run", 0)
    assert isinstance(asked, Asked)
    assert said_of(asked, asked, 1_000.0 + MOST_AGE_S) is None
    for change, said in (
        ({"run_id": "other"}, "restarted"),
        ({"version": "0.0"}, "another version"),
        ({"db": 3}, "another database"),
    ):
        why_not = said_of(asked, replace(asked, **change), 2_000.0)
        assert why_not is not None
        assert said in why_not


def test_what_can_not_be_told_later_is_not_saved() -> None:
    assert not isinstance(asked_by(AnalysisOptions(), None, 0), Asked)
    assert not isinstance(asked_by(AnalysisOptions(estimate_keys=5), "run", 0), Asked)
    assert not isinstance(asked_by(AnalysisOptions(registry=replace(REGISTRY, source="")), "run", 0), Asked)


async def test_a_restarted_server_is_analysed_anew(valkey: Server, tmp_path: Path) -> None:
    """Should it be restarted between the question and the scan, too."""
    saved = await left(valkey, tmp_path)
    other = structs.replace(saved, asked=replace(saved.asked, run_id="0" * 40))
    async with connected(target_of(valkey)) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL), other)
        await run.run()
        assert run.progress.state is ScanState.DONE
        assert run.report is not None
        assert run.report.head.coverage.keys == 2_000
        assert any("restarted" in note for note in run.report.head.notes)
        assert not any("went on at" in note for note in run.report.head.notes)


async def test_damage_is_said_and_not_counted(valkey: Server, tmp_path: Path) -> None:
    saved = await left(valkey, tmp_path)
    broken = structs.replace(saved, aggregates=structs.replace(saved.aggregates, nodes=(b"\x91\xc0",)))
    async with connected(target_of(valkey)) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL), broken)
        await run.run()
        assert run.progress.state is ScanState.FAILED
        assert "damaged" in str(run.progress.reason)


def test_a_file_that_is_not_whole_is_not_read(tmp_path: Path) -> None:
    file = AnalysisFile("here", 0, tmp_path)
    assert file.load() is None
    file.save(SAVED)
    assert file.load() == SAVED
    whole = file.path.read_bytes()
    odd_ranges = structs.replace(SAVED, ranges=structs.replace(SAVED.ranges, ranges=SAVED.ranges.ranges * 2))
    for content in (
        b"",
        whole[:-1],
        whole[:20],
        whole[:40] + b"\0" + whole[41:],
        hashlib.sha256(b"").digest(),
        hashlib.sha256(b"\xc1").digest() + b"\xc1",
        summed(msgpack.encode(odd_ranges)),
        summed(msgpack.encode({**msgspec.to_builtins(SAVED, builtin_types=(bytes,)), "format": 99})),
    ):
        file.path.write_bytes(content)
        assert file.load() is None
    file.remove()
    file.remove()
    assert not file.path.exists()


def summed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def test_a_file_that_is_too_large_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_analysis, "MOST_BYTES", 1_000)
    file = AnalysisFile("here", 0, tmp_path)
    with pytest.raises(NotResumableError):
        file.save(SAVED)
    assert not list(tmp_path.iterdir())


async def test_a_file_that_can_not_be_read_is_said(valkey: Server, tmp_path: Path) -> None:
    async with connected(target_of(valkey)) as connection:
        session = session_on(connection, tmp_path)
        assert await session.left_before() is None
        AnalysisFile("here", 0, tmp_path).path.write_bytes(b"none")
        said = await session.left_before()
        assert isinstance(said, str)
        assert "damaged" in said
        await session.forget_left()
        assert await session.left_before() is None


async def test_it_stays_where_it_can_not_be_written(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(2_000, b"user:"))
    (tmp_path / "folder").write_text("none")
    async with connected(target_of(valkey)) as connection:
        session = session_on(connection, tmp_path / "folder")
        session.begin()
        await eventually(lambda: session.status.can_go_on_later)
        why_not = await session.go_on_later()
        assert why_not is not None
        assert session.report is not None
        assert session.report.head.coverage.kind is CoverageKind.PARTIAL
        await session.close()
