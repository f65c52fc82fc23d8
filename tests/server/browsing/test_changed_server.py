"""Servers that end, begin anew, are emptied or replaced: what is asked of the new one, and what still holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.guard.command import Secret
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Feature, Verdict
from rtui.server.wire.connection import Connection, Online
from rtui.server.wire.identity import NoTouch, Outdated, ServerIdentity, ServerStamp, outdated_by_size
from tests.conftest import known
from tests.proxy import DelayProxy
from tests.server.targets import Seen, connected, eventually, numbered, plant, target_of, until
from tests.servers import Server

KEYS = 15_000
STREAMS = 200
TOP = 5
"""Keys of a report's lists: only of these lengths are asked where that counts as an access."""

LENGTHS = {b"STRLEN", b"HLEN", b"LLEN", b"SCARD", b"ZCARD", b"XLEN"}


def fill(*servers: Server) -> None:
    for server in servers:
        plant(server, numbered(KEYS))
        pipeline = server.client().pipeline(transaction=False)
        for number in range(STREAMS):
            pipeline.xadd(f"stream:{number}", {"a": number})
        pipeline.execute()


def let_in(server: Server, *rules: str) -> None:
    """Have a user `poor` on the server with everything allowed but for the rules."""
    server.admin.execute_command("ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", *rules)


async def switched(proxy: DelayProxy, connection: Connection, analysis: AnalysisRun, to: Server) -> list[list[bytes]]:
    """Run it and lead it to another server in the middle; what that one was asked, connection after connection."""
    running = asyncio.create_task(analysis.run())
    await eventually(lambda: analysis.progress.keys >= KEYS // 4)
    before = len(proxy.requests)
    proxy.lead_to(to.port)
    proxy.cut()
    await running
    return [argv for requests in proxy.requests[before:] for argv in requests.commands]


@asynccontextmanager
async def analysing_through(
    server: Server, **changes: Any
) -> AsyncIterator[tuple[DelayProxy, Connection, AnalysisRun]]:
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port, **changes)) as connection:
        yield proxy, connection, AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, top=TOP))


def whole(analysis: AnalysisRun) -> Report:
    assert analysis.progress.state is ScanState.DONE
    report = known(analysis.report)
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.summary.root.stats.keys == KEYS + STREAMS
    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "denied"),
    [
        (("redis810", "redis62"), ()),
        (("redis810", "redis62"), ("-info",)),
        (("redis810", "redis70"), ()),
        (("redis70", "redis62"), ()),
    ],
    ids=["8.10-to-6.2", "8.10-to-6.2-without-info", "8.10-to-7.0", "7.0-to-6.2"],
)
async def test_an_older_server_is_asked_only_what_it_bears(
    request: pytest.FixtureRequest, names: tuple[str, str], denied: tuple[str, ...]
) -> None:
    newer, older = (cast("Server", request.getfixturevalue(name)) for name in names)
    fill(newer, older)
    for server in (newer, older):
        let_in(server, *denied)
    async with analysing_through(newer, user="poor", password=Secret("pw")) as (proxy, connection, analysis):
        asked = await switched(proxy, connection, analysis, older)
        assert connection.no_touch is NoTouch.UNSUPPORTED
    report = whole(analysis)
    assert sum(argv[0] in LENGTHS and argv[1] != b"rtui:no-such-key" for argv in asked) <= TOP
    earlier = b""
    for argv in asked:
        if argv[:2] == [b"MEMORY", b"USAGE"] and argv[2].startswith(b"stream:"):
            assert earlier in {b"INFO", b"stream"} or denied
            earlier = b"stream"
        else:
            earlier = argv[0]
    before, now = (server.admin.info("server")["redis_version"] for server in (newer, older))
    assert report.head.server.version == now
    assert report.head.server.no_touch == NoTouch.UNSUPPORTED
    assert report.head.columns["length"].state is ColumnState.NOT_ASKED
    assert ScanNote.RESTARTED.value in report.head.notes
    (note,) = [note for note in report.head.notes if "changed during the pass" in note]
    assert f"Redis {before} answered first, then Redis {now}" in note


@pytest.mark.slow
async def test_a_newer_server_is_asked_for_more(redis810: Server, redis62: Server) -> None:
    fill(redis810, redis62)
    async with analysing_through(redis62) as (proxy, connection, analysis):
        asked = await switched(proxy, connection, analysis, redis810)
    report = whole(analysis)
    assert sum(argv[0] == b"STRLEN" for argv in asked) > KEYS
    assert report.head.columns["length"].state is ColumnState.COMPLETE
    assert report.head.server.no_touch == NoTouch.ON


@pytest.mark.slow
async def test_rights_are_found_out_anew_after_a_reconnect(valkey: Server) -> None:
    fill(valkey)
    let_in(valkey)
    async with analysing_through(valkey, user="poor", password=Secret("pw")) as (proxy, _, analysis):
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= KEYS // 4)
        let_in(valkey, "-strlen")
        before = len(proxy.requests)
        proxy.cut()
        await running
        asked = [argv for requests in proxy.requests[before:] for argv in requests.commands]
    report = whole(analysis)
    assert sum(argv[0] == b"STRLEN" for argv in asked) <= 1
    assert report.head.columns["length"].state is ColumnState.DENIED
    assert not any("changed" in note for note in report.head.notes)


async def test_an_estimate_follows_the_server_that_answers_it(redis810: Server, redis62: Server) -> None:
    """The interactive lane has found another server than the plan was made for, before the bulk lane is made."""
    fill(redis810, redis62)
    async with DelayProxy(redis810.port) as proxy, connected(target_of(redis810, port=proxy.port)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, top=TOP, estimate_keys=1_000))
        proxy.lead_to(redis62.port)
        proxy.cut()
        await until(connection, lambda: connection.generation == 2 and connection.is_online)
        before = len(proxy.requests)
        await analysis.run()
        asked = [argv for requests in proxy.requests[before:] for argv in requests.commands]
    assert analysis.progress.state is ScanState.DONE
    assert sum(argv[0] in LENGTHS and argv[1] != b"rtui:no-such-key" for argv in asked) <= TOP


@pytest.mark.slow
async def test_cursors_are_read_as_the_server_that_answers_counts_them(redis62: Server, cluster_node: Server) -> None:
    names = numbered(KEYS // 3)
    plant(redis62, names)
    client = cluster_node.client()
    for name in names:
        client.set(name, b"v")
    seen = Seen()
    async with DelayProxy(redis62.port) as proxy, connected(target_of(redis62, port=proxy.port)) as connection:

        def switch() -> None:
            proxy.lead_to(cluster_node.port)
            proxy.cut()

        seen.at(1_000, switch)
        scan = Scan([ScanNode(connection)], seen, RunControl(), on_restart=lambda note: seen.keys.clear())
        await scan.run()
        assert scan.state is ScanState.DONE
        assert set(seen.keys) == set(names)
        assert seen.repeated == set()
        assert ScanNote.PLAIN not in scan.progress.notes
        assert scan.run_id == connection.server.run_id


async def test_no_touch_and_rights_are_those_of_the_server_that_answers(redis810: Server, redis62: Server) -> None:
    let_in(redis810)
    let_in(redis62, "-pttl")
    target = {"user": "poor", "password": Secret("pw")}
    async with DelayProxy(redis810.port) as proxy:
        session = BrowsingSession(BrowseOptions(target_of(redis810, port=proxy.port, **target), resume=False))
        await session.start()
        try:
            connection = session.connection
            assert connection.no_touch is NoTouch.ON
            redis62.admin.set("k", "v")
            for server, no_touch in ((redis62, NoTouch.UNSUPPORTED), (redis810, NoTouch.ON)):
                generation = connection.generation
                proxy.lead_to(server.port)
                proxy.cut()
                await until(connection, lambda before=generation: connection.generation > before)  # type: ignore[misc]
                assert connection.no_touch is no_touch
                assert connection.server.version == server.version
                assert session.capabilities[Feature.PTTL].verdict is Verdict.UNTRIED
                await session.keys.row_facts([b"k"])
                expected = Verdict.DENIED if server is redis62 else Verdict.YES
                assert session.capabilities[Feature.PTTL].verdict is expected
        finally:
            await session.close()


LISTED = 200


@dataclass
class Reached:
    server: ServerIdentity
    generation: int


def reached(run_id: str | None, generation: int, uptime_s: int | None = None) -> Reached:
    return Reached(ServerIdentity(run_id=run_id, uptime_s=uptime_s), generation)


SEEN = ServerStamp(at_s=1_000.0, run_id="a", generation=1)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (reached("a", 1), None), (reached("a", 2), None), (reached("b", 2, 3), Outdated.RESTARTED),
        (reached("b", 2, None), Outdated.RESTARTED), (reached("b", 2, 9_000), Outdated.REPLACED),
        (reached(None, 1), None), (reached(None, 2), Outdated.UNSURE),
    ],
)  # fmt: skip
def test_another_run_of_the_server_is_told_from_another_server(now: Reached, expected: Outdated | None) -> None:
    assert SEEN.outdated(now.server, now.generation, 1_060.0) is expected


@pytest.mark.parametrize(
    ("listed", "then", "now", "expected"),
    [
        (200, None, None, None), (200, 200, 200, None), (200, 200, 150, None), (200, 200, 0, Outdated.EMPTIED),
        (200, 0, 0, Outdated.EMPTIED), (200, 200, 99, Outdated.SHRANK), (200, 200, 401, Outdated.GREW),
        (200, 1_000, 1_000, None), (12, 12, 5, None), (0, 0, 1, Outdated.GREW), (0, 0, 0, None),
    ],
)  # fmt: skip
def test_only_a_change_of_the_size_tells(listed: int, then: int | None, now: int | None, expected: Outdated) -> None:
    assert outdated_by_size(listed, then, now) is expected


@pytest.fixture(autouse=True)
def frequent_refreshes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


def outdated(session: BrowsingSession) -> Outdated | None:
    return session.status.outdated


async def scanned(server: Server, folder: Path) -> BrowsingSession:
    server.admin.mset({f"user:{number}": "x" for number in range(LISTED)})
    session = BrowsingSession(BrowseOptions(target_of(server)), state_folder=folder)
    await session.start()
    await eventually(lambda: session.status.complete and session.status.progress.state is ScanState.DONE)
    return session


async def test_after_a_restart_nothing_that_is_listed_holds_until_it_is_scanned_again(
    server: Server, tmp_path: Path
) -> None:
    session = await scanned(server, tmp_path)
    try:
        assert outdated(session) is None
        generation = session.status.generation
        server.stop()
        await eventually(lambda: not isinstance(session.status.link, Online))
        server.start()
        await eventually(lambda: isinstance(session.status.link, Online))
        assert outdated(session) is Outdated.RESTARTED
        assert session.status.generation > generation
        assert session.status.progress.keys == LISTED
        await session.rescan()
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        assert outdated(session) is None
        assert session.status.progress.keys == 0
    finally:
        await session.close()


async def test_a_connection_that_comes_back_to_the_same_run_leaves_everything_valid(
    valkey: Server, tmp_path: Path
) -> None:
    session = await scanned(valkey, tmp_path)
    try:
        generation = session.status.generation
        valkey.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: session.status.generation > generation and isinstance(session.status.link, Online))
        assert outdated(session) is None
    finally:
        await session.close()


async def test_a_server_that_does_not_tell_its_run_may_have_been_restarted(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-info")
    session = await scanned(valkey, tmp_path)
    try:
        valkey.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: outdated(session) is Outdated.UNSURE)
    finally:
        await session.close()


async def test_an_emptied_database_and_one_that_grew(valkey: Server, tmp_path: Path) -> None:
    session = await scanned(valkey, tmp_path)
    try:
        await eventually(lambda: session.passes.shown.size_since == LISTED)
        valkey.admin.flushall()
        await eventually(lambda: outdated(session) is Outdated.EMPTIED)
        valkey.admin.mset({f"user:{number}": "x" for number in range(3 * LISTED)})
        await eventually(lambda: outdated(session) is Outdated.GREW)
        await session.rescan()
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        await eventually(lambda: session.passes.shown.size_since is not None)
        assert outdated(session) is None
    finally:
        await session.close()


async def test_keys_that_appear_in_an_empty_database(valkey: Server, tmp_path: Path) -> None:
    session = BrowsingSession(BrowseOptions(target_of(valkey)), state_folder=tmp_path)
    await session.start()
    try:
        await eventually(lambda: session.passes.shown.size_since == 0)
        assert outdated(session) is None
        valkey.admin.set("first", "x")
        await eventually(lambda: outdated(session) is Outdated.GREW)
    finally:
        await session.close()


async def test_a_paused_scan_of_a_server_that_was_restarted(valkey: Server, tmp_path: Path) -> None:
    """Either its rows are told to be of before, or it has found out itself and dropped them."""
    session = await scanned(valkey, tmp_path)
    valkey.admin.mset({f"user:{number}": "x" for number in range(20_000)})
    try:
        await session.rescan()
        session.control.pause()
        await eventually(lambda: session.status.progress.state is ScanState.PAUSED and session.store.keys)
        valkey.restart()
        await eventually(lambda: outdated(session) is Outdated.RESTARTED or not session.store.keys)
        session.control.resume()
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        assert outdated(session) is None
        assert session.store.keys == 0
    finally:
        await session.close()
