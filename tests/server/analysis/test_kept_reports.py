"""Which reports are kept, in what files, and how one is named."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.report.document import CoverageKind, Report
from rtui.server.analysis import kept_reports
from rtui.server.analysis.kept_reports import KeptReports, NotKeptError, all_kept, read_kept, split_reference, thinned
from rtui.server.analysis.session import LEFT, AnalysisSession
from rtui.server.options import AnalysisOptions
from rtui.server.wire.connection import Connection
from tests.made_report import made_report
from tests.server.scanned import numbered, plant
from tests.server.targets import eventually, target_of
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
        assert session._task is not None
        await session._task
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
        said = session.status.lost_by_leaving
        assert said is not None
        assert "partial report" in said
        await session.close()
        (listed,) = kept.reports()
        assert listed.head.coverage.kind is CoverageKind.PARTIAL
        assert listed.head.coverage.reason == LEFT
        assert 0 < listed.head.coverage.keys < 150_000
        await session.close()
        assert len(kept.files()) == 1
    finally:
        await connection.close()
