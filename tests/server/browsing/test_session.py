"""Browsing sessions without a screen, on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import Frequency, LfuSettings
from rtui.analysis.query.parsing import parse
from rtui.keyspace.text.glob import GlobMatcher, PatternError
from rtui.keyspace.text.segments import Segment
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.savepoint import GOES_ON
from rtui.server.search.search import Stage
from rtui.server.wire.capability import Feature, Verdict
from rtui.server.wire.connection import Lost, Online
from rtui.server.wire.errors import ConnectFailure
from rtui.server.wire.identity import NoTouch
from rtui.server.wire.target import Target
from tests.conftest import known
from tests.keyspace.naive import find
from tests.proxy import DelayProxy
from tests.server.targets import eventually, numbered, plant, target_of
from tests.servers import Server, free_port

MANY = 30_000


@asynccontextmanager
async def browsing(target: Target, folder: Path, **options: Any) -> AsyncIterator[BrowsingSession]:
    session = BrowsingSession(BrowseOptions(target, **{"pace": Pace.FULL, **options}), state_folder=folder)
    try:
        await session.start()
        yield session
    finally:
        await session.close()


async def until(session: BrowsingSession, holds: Callable[[], bool]) -> None:
    """Look again as a screen does, until it holds."""
    await eventually(holds)
    assert session.revision > 0


def saved(folder: Path) -> int:
    return len(list(folder.iterdir()))


async def whole(session: BrowsingSession) -> None:
    await until(session, lambda: session.store.complete)


@pytest.mark.parametrize("count", [0, 5, 3000])
async def test_from_nothing_to_totals(server: Server, tmp_path: Path, count: int) -> None:
    plant(server, numbered(count, b"user:"))
    async with browsing(target_of(server), tmp_path) as session:
        await whole(session)
        status = session.status
        assert session.store.keys == count
        assert status.complete
        assert status.total == count
        assert status.progress.state is ScanState.DONE
        assert status.progress.fraction == 1.0
        assert status.progress.keys == count
        assert isinstance(status.link, Online)
        assert status.server.product == server.product
        has_no_touch = server.product == "valkey" or server.version >= (7, 2)
        assert status.no_touch is (NoTouch.ON if has_no_touch else NoTouch.UNSUPPORTED)
        assert status.cost.commands > 0


@pytest.mark.slow
async def test_an_overview_before_the_count(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(2 * MANY, b"shop:user:"))
    plant(valkey, numbered(MANY, b"log:"))
    overview: list[tuple[Estimate | None, int]] = []
    async with browsing(target_of(valkey), tmp_path, pace=Pace.NORMAL) as session:
        shop, user, log = Segment(b"shop", b":"), Segment(b"user", b":"), Segment(b"log", b":")
        await until(session, lambda: session.status.sampled >= 2000)
        assert session.store.keys < MANY / 2
        root = {path: find(session.store, path) for path in ((shop,), (log,))}
        for node in root.values():
            assert node is not None
            assert isinstance(node.estimate, Estimate)
            overview.append((node.estimate, node.count))
        session.control.pace = Pace.FULL
        await whole(session)
        # 2,000 of 90,000 keys: a tenth off would be three deviations of the smaller share, which one run in 400 has
        assert known(overview[0][0]).value == pytest.approx(2 * MANY, rel=0.15)
        assert known(overview[1][0]).value == pytest.approx(MANY, rel=0.15)
        node = known(find(session.store, (shop,)))
        assert (node.count, node.estimate) == (2 * MANY, None)
        await session.open_namespace(node)
        assert known(find(session.store, (shop, user))).count == 2 * MANY


async def test_filters_begin_again(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(3000, b"user:"))
    plant(valkey, numbered(2000, b"cart:"))
    valkey.client().rpush("cart:list", b"x")
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        before = session.revision
        await session.filter(b"cart:*")
        await whole(session)
        assert session.store.keys == 2001
        assert session.revision > before
        await session.filter(b"cart:*", b"list")
        await whole(session)
        assert session.store.keys == 1
        assert (session.status.match, session.status.key_type) == (b"cart:*", b"list")
        with pytest.raises(PatternError):
            await session.filter(b"*" * 50)
        await session.filter(None)
        await whole(session)
        assert session.store.keys == 5001


async def test_the_scan_of_all_keys_is_kept_while_a_filter_shows_some(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(3000, b"user:"))
    plant(valkey, numbered(2000, b"cart:"))
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        everything, cost, revision = session.store, session.status.cost.commands, session.revision
        for match in (b"cart:*", b"user:1*"):
            await session.filter(match)
            await whole(session)
            assert session.store is not everything
            assert session.store.keys == len([key for key in numbered(3000, b"user:") + numbered(2000, b"cart:")
                                              if GlobMatcher(match)(key)])  # fmt: skip
            assert session.revision > revision
            revision = session.revision
        assert everything.keys == 5000
        filtered = session.status.cost.commands
        assert filtered > cost
        await session.filter(None)
        assert session.store is everything
        assert session.status.progress.state is ScanState.DONE
        assert session.status.cost.commands == filtered
        assert session.revision > revision


async def test_a_scan_that_a_filter_interrupts_goes_on_behind_it(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(20_000, b"user:"))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        await until(session, lambda: session.store.keys > 0)
        everything, seen = session.store, session.store.keys
        await session.filter(b"user:1?")
        await whole(session)
        assert seen <= everything.keys < 20_000
        await session.filter(None)
        assert session.store is everything
        await whole(session)
        assert everything.keys == 20_000


async def test_pause_and_resume(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        session.control.pause()
        await until(session, lambda: session.status.progress.state is ScanState.PAUSED)
        assert not session.store.complete
        session.control.pace = session.control.pace.faster()
        session.control.pace = session.control.pace.faster()
        assert session.status.pace is Pace.FULL
        session.control.resume()
        await whole(session)
        assert session.store.keys == MANY


async def test_a_lookup_is_one_question(server: Server, tmp_path: Path) -> None:
    plant(server, [b"here", b"with [glob]* \xff"])
    async with browsing(target_of(server), tmp_path) as session:
        await whole(session)
        assert await session.keys.lookup(b"here")
        assert await session.keys.lookup(b"with [glob]* \xff")
        assert await session.keys.lookup(b"nowhere") is False


async def test_a_refused_lookup_knows_nothing(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"here"])
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-type")
    async with browsing(target_of(valkey), tmp_path) as session:
        assert await session.keys.lookup(b"here") is None
        assert session.capabilities[Feature.TYPE].verdict is Verdict.DENIED


async def test_without_info_and_dbsize(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-info", "-dbsize")
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        assert session.store.keys == MANY
        status = session.status
        assert status.total is None or isinstance(status.total, Estimate)
        assert status.server.used_memory_bytes is None
        assert not status.cost.is_measured


async def test_a_refused_scan_is_told(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(100))
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-scan")
    async with browsing(target_of(valkey), tmp_path) as session:
        await until(session, lambda: session.status.progress.state is ScanState.FAILED)
        assert "NOPERM" in str(session.status.progress.reason)
        assert await session.keys.lookup(b"key:1")


async def test_nobody_there(tmp_path: Path) -> None:
    session = BrowsingSession(BrowseOptions(Target(port=free_port())), state_folder=tmp_path)
    with pytest.raises(ConnectFailure):
        await session.start()
    await session.close()


async def test_beyond_the_memory_budget_a_scan_of_the_prefix_opens(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY, b"big:"))
    plant(valkey, numbered(500, b"small[:"))
    async with browsing(target_of(valkey), tmp_path, memory_budget_bytes=200_000) as session:
        await whole(session)
        assert session.store.memory.dropped
        assert session.store.keys == MANY + 500
        big = find(session.store, (Segment(b"big", b":"),))
        small = find(session.store, (Segment(b"small[", b":"),))
        assert big is not None
        assert small is not None
        closed = [node for node in (big, small) if session.store.needs_scan(node)]
        assert closed
        for node in closed:
            before = session.status.cost.commands
            await session.open_namespace(node)
            assert session.status.cost.commands > before
        assert not any(session.store.needs_scan(node) for node in closed)
        assert big.count == MANY
        assert small.count == 500


@pytest.mark.slow
async def test_a_later_run_goes_on(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        await until(session, lambda: session.status.progress.keys > 1000)
    assert saved(tmp_path) == 1
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        assert session.store.keys == MANY
        assert GOES_ON in session.status.notes
    assert saved(tmp_path) == 0


async def test_after_a_restart_a_later_run_begins_again(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        await until(session, lambda: session.status.progress.keys > 1000)
        session.control.pause()
    valkey.restart()
    plant(valkey, numbered(500))
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        assert session.store.keys == 500
        assert any("restarted" in note for note in session.status.notes)


async def test_a_lost_connection_shows_and_heals(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with DelayProxy(valkey.port) as proxy:
        target = target_of(valkey, port=proxy.port)
        async with browsing(target, tmp_path, pace=Pace.GENTLE) as session:
            await until(session, lambda: session.status.progress.keys > 1000)
            await proxy.refuse()
            proxy.cut()
            await until(session, lambda: isinstance(session.status.link, Lost))
            await until(session, lambda: session.status.progress.state is ScanState.WAITING)
            kept = session.store.keys
            await proxy.resume()
            session.connection.retry_now()
            session.control.pace = Pace.FULL
            await whole(session)
            assert session.store.keys == MANY > kept
            assert session.store.root.count == MANY


async def test_a_server_restarted_in_the_middle_is_counted_anew(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        await until(session, lambda: session.status.progress.keys > 1000)
        valkey.restart()
        plant(valkey, numbered(700, b"after:"))
        await whole(session)
        assert session.store.keys == 700
        assert any("restarted" in note for note in session.status.notes)


async def test_a_cluster_node_is_browsed_and_named(cluster_node: Server, tmp_path: Path) -> None:
    pipeline = cluster_node.client().pipeline(transaction=False)
    for name in numbered(3000):
        pipeline.set(name, b"v")
    pipeline.execute()
    async with browsing(target_of(cluster_node), tmp_path) as session:
        await whole(session)
        assert session.store.keys == 3000
        assert [node.slots for node in session.status.nodes] == [((0, 16383),)]
        assert session.status.sampled == 0


async def test_facts_come_through(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"a", b"b"])
    async with browsing(target_of(valkey), tmp_path) as session:
        rows = await session.keys.row_facts([b"a", b"b"])
        assert [row.key for row in rows] == [b"a", b"b"]
        assert (await session.keys.key_facts(b"a")).key == b"a"


async def test_frequencies_are_read_by_the_servers_own_settings(lfu_server: Server, tmp_path: Path) -> None:
    plant(lfu_server, [b"a"])
    async with browsing(target_of(lfu_server), tmp_path) as session:
        await until(session, lambda: session.capabilities["CONFIG GET"].verdict is Verdict.YES)
        frequency = (await session.keys.key_facts(b"a")).frequency
        assert isinstance(frequency, Frequency)
        assert frequency.settings == LfuSettings(log_factor=0, decay_minutes=0, assumed=False)


async def test_a_rescan_counts_again(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(3000))
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        plant(valkey, numbered(1000, b"more:"))
        await session.rescan()
        assert not session.store.complete
        await whole(session)
        assert session.store.keys == 4000


async def test_a_scan_that_begins_while_others_work_rests_like_the_one_before(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        with session.passes.suspended():
            with session.passes.suspended():
                await session.rescan()
            await until(session, lambda: session.status.progress.state is ScanState.PAUSED)
            session.control.resume()
            seen = session.store.keys
            for _ in range(20):
                await session.keys.lookup(b"nobody")
            assert session.status.progress.state is ScanState.PAUSED
            assert session.store.keys == seen < MANY
        session.control.pace = Pace.FULL
        await whole(session)
        assert session.store.keys == MANY


async def test_a_pause_outlasts_the_rest(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, numbered(MANY))
    async with browsing(target_of(valkey), tmp_path, pace=Pace.GENTLE) as session:
        with session.passes.suspended():
            session.control.pause()
        await until(session, lambda: session.status.progress.state is ScanState.PAUSED)
        await session.keys.lookup(b"nobody")
        assert session.status.progress.state is ScanState.PAUSED
        session.control.pace = Pace.FULL
        session.control.resume()
        await whole(session)


async def test_settings_of_the_counters_are_asked_once_a_connection(
    lfu_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.005)
    lfu_server.admin.set("a", 1)

    def asked(session: BrowsingSession, name: str) -> int:
        return sum(entry.counts.get(name, 0) for entry in session.log.entries)

    async with browsing(target_of(lfu_server), tmp_path) as session:
        await until(session, lambda: asked(session, "DBSIZE") > 6)
        assert asked(session, "CONFIG GET") == 2
        lfu_server.admin.config_set("lfu-decay-time", 7)
        await session.rescan()
        await until(session, lambda: asked(session, "CONFIG GET") == 4)
        await until(session, lambda: session.keys.home.lfu.decay_minutes == 7)
        lfu_server.admin.config_set("lfu-decay-time", 0)


async def test_the_number_of_databases_is_asked_when_it_is_wanted(server: Server, tmp_path: Path) -> None:
    async with browsing(target_of(server), tmp_path) as session:
        assert await session.database_count() == 16
    server.admin.execute_command("ACL", "SETUSER", "default", "-config")
    async with browsing(target_of(server), tmp_path) as session:
        assert await session.database_count() is None
        await session.database_count()
        assert sum("CONFIG GET" in entry.counts for entry in session.log.entries) == 1


async def test_a_search_after_a_newer_analysis_finds_the_keys_that_came(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.005)
    plant(valkey, numbered(300))
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        valkey.admin.mset({f"new:{number}": "x" for number in range(20)})
        await until(session, lambda: session.status.total == 320)
        session.analysis.begin()
        await until(session, lambda: session.analysed is not None and session.analysis.under_way is None)
        search = session.search(parse("in:new:"))
        search.prepare()
        await until(session, lambda: search.stage is Stage.OVER)
        assert search.count == 20


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 1, 30_000])
async def test_every_key_is_seen_once_although_it_came_late(valkey: Server, tmp_path: Path, before: int) -> None:
    valkey.admin.mset({f"early:{number}": "x" for number in range(before)} or {"only": "x"})
    filling = True
    browsing = BrowsingSession(
        BrowseOptions(Target(port=valkey.port), is_filling=lambda: filling, resume=False), state_folder=tmp_path
    )
    await browsing.start()
    try:
        async with asyncio.timeout(20):
            await eventually(lambda: browsing.store.keys > 0)
            assert browsing.status.complete is False
            valkey.admin.mset({f"late:{number}": "x" for number in range(30_000)})
            filling = False
            await eventually(lambda: browsing.store.complete)
        assert browsing.store.keys == valkey.admin.dbsize()
    finally:
        await browsing.close()
