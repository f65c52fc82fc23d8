"""How a pass ends when it can't go on: with its reason, with what it has, and so that another one may begin."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import CoverageKind
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.passes import KeyspacePass
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan import node_scan
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import SizeSnapshot, disagreement, too_many_gone
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import RtuiError
from tests.conftest import known
from tests.proxy import Fault, FaultProxy
from tests.server.targets import PASS_SENDS, connected, eventually, numbered, plant, target_of
from tests.servers import Server
from tests.wire import bulk

MANY = 20_000
DENIED = Fault("denied", b"-NOPERM User default has no permissions to run the 'scan' command\r\n")
BUSY = Fault("busy", b"-BUSY Redis is busy running a script.\r\n")


def analysing(connection: Connection, **options: Any) -> AnalysisRun:
    return AnalysisRun(connection, AnalysisOptions(**{"pace": Pace.FULL, **options}))


async def until_waiting(analysis: AnalysisRun) -> None:
    while not (analysis.progress.state is ScanState.WAITING and analysis.progress.reason):
        assert not analysis.progress.state.is_over
        await asyncio.sleep(0.001)


async def test_an_estimate_that_may_not_scan_fails_and_shows_no_figure(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        proxy.strike((b"SCAN",), DENIED)
        analysis = analysing(connection, estimate_keys=1_000)
        await analysis.run()
    assert analysis.progress.state is ScanState.FAILED
    assert "NOPERM" in (analysis.progress.reason or "")
    assert analysis.report is not None
    coverage = analysis.report.head.coverage
    assert (coverage.keys, coverage.total_keys) == (0, None)
    assert "NOPERM" in coverage.reason
    keys = analysis.report.summary.root.stats.keys
    assert isinstance(keys, Estimate)
    assert (keys.value, keys.high) == (0, math.inf)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(b"SCAN",), (b"TYPE",), (b"MEMORY", b"USAGE")], ids=lambda words: words[0].decode())
@pytest.mark.parametrize("estimate_keys", [None, 1_000])
async def test_a_busy_server_is_waited_for(
    words: tuple[bytes, ...], estimate_keys: int | None, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.wire.opening.FIRST_PAUSE_S", 0.001)
    plant(valkey, numbered(MANY))
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        proxy.strike(words, BUSY)
        analysis = analysing(connection, estimate_keys=estimate_keys)
        running = asyncio.create_task(analysis.run())
        await until_waiting(analysis)
        assert "busy running a script" in (analysis.progress.reason or "")
        proxy.heal()
        await running
    assert analysis.progress.state is ScanState.DONE
    assert analysis.report is not None
    assert analysis.report.head.coverage.vanished == 0
    assert analysis.report.head.coverage.keys > 900
    assert not any("made no sense" in note or "server counts" in note for note in analysis.report.head.notes)


@pytest.mark.parametrize("estimate_keys", [None, 1_000])
async def test_a_pause_for_a_busy_server_can_be_ended(
    estimate_keys: int | None, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.wire.opening.FIRST_PAUSE_S", 1e6)
    monkeypatch.setattr("rtui.server.wire.opening.LONGEST_PAUSE_S", 1e6)
    monkeypatch.setattr(node_scan, "backoff_s", lambda attempt, rng: 1e6)
    monkeypatch.setattr("rtui.server.scan.sampling.backoff_s", lambda attempt, rng: 1e6)
    plant(valkey, numbered(MANY))
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        proxy.strike((b"SCAN",), BUSY)
        analysis = analysing(connection, estimate_keys=estimate_keys)
        running = asyncio.create_task(analysis.run())
        await until_waiting(analysis)
        analysis.control.stop()
        async with asyncio.timeout(20):
            await running
    assert analysis.progress.state is ScanState.STOPPED


async def test_without_room_for_another_connection_the_part_is_reported(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with connected(target_of(valkey)) as connection:
        analysis = analysing(connection, pace=Pace.GENTLE)
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= 500)
        scanning = None
        while scanning is None:  # its last command may have been the one that measures the server's time
            await asyncio.sleep(0)
            clients = valkey.admin.client_list()
            scanning = next((one for one in clients if one["cmd"] in PASS_SENDS), None)
        valkey.admin.config_set("maxclients", len(clients) - 1)
        valkey.admin.client_kill_filter(_id=scanning["id"])
        await running
    assert analysis.progress.state is ScanState.FAILED
    assert "max number of clients" in (analysis.progress.reason or "")
    report = known(analysis.report)
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert 500 <= report.head.coverage.keys < MANY
    assert report.summary.root.stats.keys == report.head.coverage.keys
    assert "max number of clients" in report.head.coverage.reason


async def test_of_requests_for_a_new_pass_the_last_one_counts_and_one_pass_runs(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    session = BrowsingSession(BrowseOptions(target_of(valkey), pace="full"), state_folder=tmp_path)
    await session.start()
    try:
        wanted = [session.filter(b"key:1*"), session.rescan(), session.filter(None), session.rescan()]
        await asyncio.gather(*wanted)
        await eventually(lambda: session.store.complete)
        assert session.store.keys == MANY
        assert session.status.match is None
        assert len([task for task in asyncio.all_tasks() if task.get_name() == "rtui pass"]) <= 2
    finally:
        await session.close()


async def test_a_request_whose_caller_is_cancelled_is_carried_out(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    session = BrowsingSession(BrowseOptions(target_of(valkey), pace="full"), state_folder=tmp_path)
    await session.start()
    try:
        asked = asyncio.create_task(session.filter(b"key:1*"))
        await asyncio.sleep(0)
        asked.cancel()
        await eventually(lambda: session.store.complete)
        assert session.store.keys == len([name for name in numbered(MANY) if name.startswith(b"key:1")])
    finally:
        await session.close()


async def test_a_scan_of_a_namespace_that_fails_is_told_and_paid(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY, b"big:"))
    async with FaultProxy(valkey.port) as proxy:
        target = target_of(valkey, port=proxy.port)
        session = BrowsingSession(BrowseOptions(target, pace="full", memory_budget_bytes=20_000), state_folder=tmp_path)
        await session.start()
        try:
            await eventually(lambda: session.store.complete)
            node = session.store.root.namespace_at(0)
            assert session.store.needs_scan(node)
            before = session.status.cost.commands
            proxy.strike((b"SCAN",), DENIED)
            with pytest.raises(RtuiError, match="NOPERM"):
                await session.open_namespace(node)
            assert session.status.cost.commands > before
            assert session.store.needs_scan(node)
            proxy.heal()
            await session.open_namespace(node)
            assert node.count == MANY
        finally:
            await session.close()


async def test_a_fault_of_rtui_ends_the_pass_in_sight_and_another_can_begin(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(valkey, numbered(MANY))

    async def broken(self: KeyspacePass) -> None:
        raise KeyError("s3cret")

    session = BrowsingSession(BrowseOptions(target_of(valkey), pace="full"), state_folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(KeyspacePass, "_complete", broken)
        await session.start()
        await eventually(lambda: session.status.progress.state.is_over)
        progress = session.status.progress
    try:
        assert progress.state is ScanState.FAILED
        assert "KeyError" in (progress.reason or "")
        assert "s3cret" not in (progress.reason or "")
        await session.rescan()
        await eventually(lambda: session.store.complete)
        assert session.store.keys == MANY
    finally:
        await session.close()


# the count of a pass beside the server's


@pytest.mark.slow
@pytest.mark.parametrize("size", [b":30000\r\n", b":100\r\n"], ids=["more", "fewer"])
async def test_another_number_of_keys_than_the_server_counts_is_noted(
    size: bytes, valkey: Server, tmp_path: Path
) -> None:
    plant(valkey, numbered(MANY))
    async with FaultProxy(valkey.port) as proxy:
        proxy.strike((b"DBSIZE",), Fault("another size", size))
        session = BrowsingSession(BrowseOptions(target_of(valkey, port=proxy.port), pace="full"), state_folder=tmp_path)
        await session.start()
        try:
            await eventually(lambda: session.status.progress.state is ScanState.DONE)
            assert any("can't be right" in note for note in session.status.notes)
        finally:
            await session.close()
        async with connected(target_of(valkey, port=proxy.port)) as connection:
            analysis = analysing(connection)
            await analysis.run()
            assert any("can't be right" in note for note in known(analysis.report).head.notes)


async def test_keys_that_come_and_go_meanwhile_are_no_contradiction(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    session = BrowsingSession(BrowseOptions(target_of(valkey), pace="gentle"), state_folder=tmp_path)
    await session.start()
    try:
        client = valkey.client()
        for start in range(0, MANY, 500):
            client.unlink(*numbered(MANY)[start : start + 250])
            client.mset({b"new:%d" % number: b"v" for number in range(start, start + 100)})
            await asyncio.sleep(0)
        session.control.pace = Pace.FULL
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        assert not any("server counts" in note for note in session.status.notes)
    finally:
        await session.close()


BEGIN = SizeSnapshot(size=100, run_id="a", removed=5, writes=10, saved_at=1)


@pytest.mark.parametrize(
    ("after", "keys", "is_said"),
    [
        (SizeSnapshot(100, "a", 5, 10, 1), 100, False), (SizeSnapshot(100, "a", 5, 10, 1), 101, True),
        (SizeSnapshot(100, "a", 5, 10, 1), 99, True), (SizeSnapshot(120, "a", 5, 30, 1), 100, False),
        (SizeSnapshot(120, "a", 5, 30, 1), 140, False), (SizeSnapshot(120, "a", 5, 30, 1), 141, True),
        (SizeSnapshot(90, "a", 15, 10, 1), 80, False), (SizeSnapshot(90, "a", 15, 10, 1), 79, True),
        (SizeSnapshot(100, "a", 5, 0, 2), 140, False), (SizeSnapshot(100, "a", 5, 0, 2), 200, True),
        (SizeSnapshot(100, "b", 0, 0, 1), 900, False), (SizeSnapshot(None, "a", 5, 10, 1), 900, False),
        (SizeSnapshot(0, "a", 5, 10, 1), 900, False),
    ],
)  # fmt: skip
def test_counts_are_compared_as_far_as_the_changes_meanwhile_allow(
    after: SizeSnapshot, keys: int, is_said: bool
) -> None:
    assert (disagreement(BEGIN, after, keys) is not None) is is_said


def test_a_replica_may_return_fewer_keys_than_it_counts() -> None:
    assert disagreement(BEGIN, BEGIN, 50, is_replica=True) is None
    assert disagreement(BEGIN, BEGIN, 150, is_replica=True) is not None


def test_more_keys_gone_than_went_are_told() -> None:
    assert too_many_gone(BEGIN, SizeSnapshot(97, "a", 6, 12, 1), 3) is None
    assert too_many_gone(BEGIN, SizeSnapshot(97, "a", 6, 12, 1), 4) is not None
    assert too_many_gone(BEGIN, SizeSnapshot(97, "b", 0, 0, 1), 4) is None


@pytest.mark.slow
async def test_answers_that_make_no_sense_are_counted_in_a_note(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        proxy.strike((b"MEMORY", b"USAGE"), Fault("below zero", b":-3\r\n"))
        analysis = analysing(connection)
        await analysis.run()
        struck = proxy.struck
    report = known(analysis.report)
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.head.coverage.keys == MANY
    assert f"{struck - 1:,} answers to MEMORY USAGE made no sense: these facts are unknown." in report.head.notes
    assert report.summary.root.stats.memory_bytes is None
    assert report.summary.root.stats.memory_known_keys == 0


async def test_a_lane_that_is_cut_at_every_answer_is_given_up(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.wire.opening.FIRST_PAUSE_S", 0.0001)
    plant(valkey, numbered(MANY))
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        proxy.strike((b"OBJECT", b"ENCODING"), Fault("no protocol", b"?" + bulk(b"x")))
        analysis = analysing(connection, columns=EVERYTHING)
        await analysis.run()
    assert analysis.progress.state is ScanState.FAILED
    assert analysis.progress.reason
    assert known(analysis.report).head.coverage.kind is CoverageKind.PARTIAL
