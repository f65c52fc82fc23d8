"""The engine over real connections: whatever happens on the way, the report is that of a pass undisturbed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rtui.analysis.columns import Asked, Columns
from rtui.analysis.formats.json import write_json
from rtui.analysis.report.document import CoverageKind, Report
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan import compiled_scan
from rtui.server.scan.compiled_scan import CompiledPipeline
from rtui.server.scan.pace import Pace
from rtui.server.scan.pipeline import ScanPipeline
from rtui.server.scan.progress import ScanState
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost
from tests.conftest import known
from tests.server.targets import asked_by, connected, eventually, impatient, target_of
from tests.servers import Server

KEYS = 12_000

COLUMNS = Columns(idle=Asked.NONE, length=Asked.ALL, encoding=Asked.NONE)
"""What depends neither on the moment nor on the order in which keys are listed."""

OF_A_MOMENT = frozenset(("asked_at_s", "idle_s", "encoding"))
"""Fields of the largest keys, of which everything is asked at the end."""

TRANSPORTS = {"tcp": "valkey", "unix": "unix_server", "tls": "tls_server"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.wire.opening.FIRST_PAUSE_S", 0.0005)


@pytest.fixture(params=TRANSPORTS)
def filled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with keys, reached in each way; with TLS the engine is fed on the event loop."""
    server: Server = request.getfixturevalue(TRANSPORTS[request.param])
    unwanted = "SocketDriver" if request.param == "tls" else "StreamDriver"
    monkeypatch.setattr(compiled_scan, unwanted, None)
    return fill(server)


def fill(server: Server) -> Server:
    """Write keys of all sizes in some namespaces."""
    rng = Random(9)
    writing = server.client().pipeline(transaction=False)
    for number in range(KEYS):
        size = int(2 ** (9 * rng.random()))
        match rng.randrange(12):
            case 0:
                writing.hset(f"user:{number}:profile", mapping={f"field{at}": at for at in range(size % 50 + 1)})
            case 1:
                writing.rpush(f"queue:{{{number % 5}}}:{number}", *range(size % 50 + 1))
            case 2:
                writing.zadd(f"board:{number}", {f"player{at}": at for at in range(size % 50 + 1)})
            case 3 if number < 600:
                writing.xadd(f"events:{number}", {"field": "x" * size})
            case _:
                writing.set(f"session:{number:x}", "x" * size)
    writing.execute()
    return server


def told(report: Report) -> dict[str, Any]:
    """All that a report says of the keys, apart from what depends on the moment."""
    summary: dict[str, Any] = json.loads(write_json(report))["summary"]
    return {name: without_moments(value) for name, value in summary.items()}


def without_moments(value: Any) -> Any:
    if isinstance(value, list):
        return [without_moments(one) for one in value]
    if isinstance(value, dict):
        return {name: without_moments(one) for name, one in value.items() if name not in OF_A_MOMENT}
    return value


def typed_keys(server: Server) -> int:
    """How many keys the server has been asked the type of since it was emptied."""
    statistics: dict[str, dict[str, int]] = server.admin.info("commandstats")
    return statistics.get("cmdstat_type", {}).get("calls", 0)


async def until_typed(server: Server, keys: int) -> None:
    await eventually(lambda: typed_keys(server) >= keys)


def bulk_client(server: Server) -> int | None:
    """The id of the connection that inspects or scans, None while there is none: the latest one of two."""
    clients = [int(one["id"]) for one in server.admin.client_list() if one["name"] == "rtui"]
    return max(clients) if len(clients) > 1 else None


def moments(rng: Random, count: int) -> list[int]:
    """So many moments of a run, as keys of which the type was asked since it began."""
    return sorted(rng.sample(range(KEYS // 20, 9 * KEYS // 10), count))


async def undisturbed(server: Server, asker: str = "engine") -> Report:
    """What a pass says of the keys that nothing disturbs; the server's statistics begin anew."""
    async with connected(target_of(server)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=COLUMNS))
        with asked_by(asker):
            await analysis.run()
    server.admin.config_resetstat()
    return known(analysis.report)


@asynccontextmanager
async def analysing(server: Server, pace: Pace = Pace.NORMAL, **timeouts: float) -> AsyncIterator[AnalysisRun]:
    """An analysis that runs; it has to end in the block."""
    async with connected(impatient(target_of(server), **timeouts)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=pace, columns=COLUMNS))
        running = asyncio.create_task(analysis.run())
        yield analysis
        async with asyncio.timeout(60):
            await running


async def compare(
    server: Server, expected: Report, meanwhile: Callable[[AnalysisRun], Awaitable[object]]
) -> AnalysisRun:
    """Analyse while something happens, and fail unless it says what is expected."""
    async with analysing(server) as analysis:
        await meanwhile(analysis)
        analysis.control.pace = Pace.FULL
    report = known(analysis.report)
    assert analysis.progress.state is ScanState.DONE
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.head.coverage.keys == expected.head.coverage.keys == server.admin.dbsize()
    assert told(report) == told(expected)
    assert not engine_threads()
    return analysis


def engine_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("rtui engine")]


def pipelines_of(analysis: AnalysisRun) -> set[type[ScanPipeline]]:
    """What has asked about the keys."""
    work = analysis._pass.work
    assert isinstance(work, Scan)
    return {type(node.pipeline) for node in work._nodes}


async def test_the_engine_says_what_python_says(filled: Server) -> None:
    analysis = await compare(filled, await undisturbed(filled, "python"), lambda _: asyncio.sleep(0))
    assert pipelines_of(analysis) == {CompiledPipeline}


async def test_python_asks_where_replies_are_recorded(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        with asked_by("python"):
            await analysis.run()
    assert pipelines_of(analysis) == {ScanPipeline}


@pytest.mark.slow
@pytest.mark.sampled("filled", "seed")
@pytest.mark.parametrize("seed", range(2))
async def test_connections_killed_again_and_again_in_the_middle(filled: Server, seed: int) -> None:
    expected, rng = await undisturbed(filled), Random(seed)
    killed: set[int | None] = set()

    async def kill(analysis: AnalysisRun) -> None:
        for moment in moments(rng, 6):
            await until_typed(filled, moment)
            await eventually(lambda: bulk_client(filled))
            assert not analysis.progress.state.is_over
            number = bulk_client(filled)
            assert filled.admin.client_kill_filter(_id=str(number)) == 1
            killed.add(number)

    await compare(filled, expected, kill)
    assert len(killed) == 6
    assert typed_keys(filled) > KEYS  # some were asked once more


@pytest.mark.slow
@pytest.mark.sampled("filled", "seed")
@pytest.mark.parametrize("seed", range(2))
async def test_pauses_and_other_paces_in_the_middle(filled: Server, seed: int) -> None:
    expected, rng = await undisturbed(filled), Random(seed)

    async def change(analysis: AnalysisRun) -> None:
        for number, moment in enumerate(moments(rng, 8)):
            await until_typed(filled, moment)
            if number % 2:
                analysis.control.pace = rng.choice((Pace.NORMAL, Pace.FULL))
                continue
            analysis.control.pause()
            assert analysis.progress.state is ScanState.PAUSED
            await at_rest(analysis, filled)
            analysis.control.resume()

    await compare(filled, expected, change)


async def at_rest(analysis: AnalysisRun, server: Server) -> None:
    """Wait until the writes under way are answered; nothing is sent from then on."""
    connection: Connection = analysis._connection
    lane = await connection.bulk()
    await eventually(lambda: lane.is_idle)
    before = typed_keys(server)
    await connection.refresh()  # some round trips
    assert typed_keys(server) == before
    assert lane.is_idle


@pytest.mark.slow
@pytest.mark.sampled("filled", "seed")
@pytest.mark.parametrize("seed", range(2))
async def test_a_server_that_is_stopped_and_goes_on(filled: Server, seed: int) -> None:
    """For less long than it may owe answers."""
    expected, rng = await undisturbed(filled), Random(seed)

    async def stop(analysis: AnalysisRun) -> None:
        for moment in moments(rng, 2):
            await until_typed(filled, moment)
            filled.freeze()
            try:
                analysis.control.pause()  # ends the slice; its writes are under way
                analysis.control.resume()
                for _ in range(200):
                    await asyncio.sleep(0)
                assert not analysis.progress.state.is_over
            finally:
                filled.thaw()

    received = connections_received(filled)
    await compare(filled, expected, stop)
    assert connections_received(filled) <= received + 3  # none was opened anew


def connections_received(server: Server) -> int:
    return int(server.admin.info("stats")["total_connections_received"])


@pytest.mark.slow
async def test_a_server_that_is_stopped_for_too_long_is_asked_anew(filled: Server) -> None:
    expected = await undisturbed(filled)
    async with analysing(filled, reply_s=0.2, direct_s=0.2) as analysis:
        await until_typed(filled, KEYS // 4)
        filled.freeze()
        try:
            await eventually(lambda: analysis.progress.state is ScanState.WAITING)
            assert "0.2 s" in (analysis.progress.reason or "")
        finally:
            filled.thaw()
        analysis.control.pace = Pace.FULL
    assert told(known(analysis.report)) == told(expected)


@pytest.mark.slow
@pytest.mark.sampled("filled", "seed")
@pytest.mark.parametrize("seed", range(2))
async def test_cancelled_in_the_middle_of_a_slice(filled: Server, seed: int) -> None:
    """Its thread has ended then, nothing is under way, and the connection is good for another one."""
    expected, rng = await undisturbed(filled), Random(seed)
    async with connected(target_of(filled)) as connection:
        for moment in moments(rng, 2):
            filled.admin.config_resetstat()
            analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.NORMAL, columns=COLUMNS))
            running = asyncio.create_task(analysis.run())
            await until_typed(filled, moment)
            assert not running.done()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            assert running.cancelled()
            assert not engine_threads()
        again = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=COLUMNS))
        await again.run()
    assert told(known(again.report)) == told(expected)


@pytest.mark.slow
async def test_a_connection_that_is_closed_in_the_middle_of_a_slice(filled: Server) -> None:
    async with analysing(filled) as analysis:
        await until_typed(filled, KEYS // 4)
        await eventually(lambda: analysis.progress.keys > 0)
        assert not analysis.progress.state.is_over
        await analysis._connection.close()
    report = analysis.report
    assert analysis.progress.state is ScanState.FAILED
    assert analysis.progress.reason == str(ConnectionLost("It was closed by rtui.").happened)
    assert report is not None
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert 0 < report.head.coverage.keys < KEYS
    assert report.summary.root.stats.keys == report.head.coverage.keys
    assert not engine_threads()


@pytest.mark.slow
@pytest.mark.sampled("filled", "seed")
@pytest.mark.parametrize("seed", range(2))
async def test_a_session_that_is_killed_paused_and_closed_while_it_lists_names(
    filled: Server, seed: int, tmp_path: Path
) -> None:
    rng, names = Random(seed), set(filled.admin.scan_iter(count=1000))

    async def listed(keys: int, session: BrowsingSession) -> None:
        await eventually(lambda: session.store.keys >= keys or session.status.progress.state.is_over)
        assert not session.status.progress.state.is_over

    options = BrowseOptions(target_of(filled), pace="gentle", resume=False)
    for is_closed in (True, False):
        session = BrowsingSession(options, state_folder=tmp_path)
        await session.start()
        try:
            await listed(rng.randrange(1, KEYS // 4), session)
            await eventually(lambda: bulk_client(filled))
            assert filled.admin.client_kill_filter(_id=str(bulk_client(filled))) == 1
            await listed(rng.randrange(KEYS // 4, KEYS // 2), session)
            session.control.pause()
            session.control.resume()
            if is_closed:
                continue
            session.control.pace = Pace.FULL
            await eventually(lambda: session.store.complete)  # noqa: B023 - at once
            assert session.store.keys == len(names)
            root = session.store.root
            namespaces = [root.namespace_at(at) for at in range(len(root.labels))]
            assert {one.name: one.count for one in namespaces} == Counter(name.partition(b":")[0] for name in names)
        finally:
            await session.close()
        assert not engine_threads()
