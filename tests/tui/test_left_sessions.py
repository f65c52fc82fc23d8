"""Leaving a server while its analysis is under way: it is asked what becomes of it, and it can be come back to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import ScanState
from rtui.server.user.known_servers import RecentServers
from rtui.server.wire.target import Target
from rtui.table.aggregates import Aggregates
from rtui.tui.app import RtuiApp
from rtui.tui.connect import LeaveScreen
from rtui.tui.kit.choice import QuitScreen
from tests.proxy import DelayProxy
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.test_live import fill
from tests.tui.analyse.visiting_analysis import open_analysis
from tests.tui.visiting import Visitor, visiting

KEYS = 20_000

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def asks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an analysis that has just begun count as one that has run for long."""
    monkeypatch.setattr("rtui.server.analysis.session.ASK_FROM_S", 0.0)


@asynccontextmanager
async def amid_an_analysis(
    server: Server, folder: Path, target: Target | None = None
) -> AsyncIterator[tuple[Visitor, BrowsingSession]]:
    """A user back in the tree, with an analysis that can't end before they let it; `target` leads to the server."""
    fill(server, KEYS)
    options = BrowseOptions(target=target or target_of(server), keep=True)
    app = RtuiApp(options, recent=RecentServers(folder / "recent.json"))
    async with visiting(app.options.target, folder, app=app, size=(120, 36)) as visitor:
        await visitor.whole()
        session = visitor.session
        await open_analysis(visitor)
        await visitor.press("r")
        await visitor.until(lambda: session.analysis.under_way, "a pass")
        session.analysis.control.suspend()
        await visitor.press("a")
        await visitor.until_shown("The analysis", "press a to see it")
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        yield visitor, session


def seen_keys(session: BrowsingSession) -> int:
    """How many keys the report of the analysis is about."""
    report = session.analysis.report
    return 0 if report is None else report.head.coverage.keys


async def asked(visitor: Visitor, target: Target) -> LeaveScreen:
    """Choose another server or database, which brings up the question."""
    visitor.app.connect_to(target)
    await visitor.until(lambda: isinstance(visitor.app.screen, LeaveScreen), "the question")
    screen = visitor.app.screen
    assert isinstance(screen, LeaveScreen)
    await visitor.until_shown("An analysis is running", "Stay", "Stop it")
    return screen


async def test_staying_changes_nothing(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        for key in ("escape", "enter"):
            await asked(visitor, target_of(redis70))
            await visitor.press(key)
            await visitor.until(lambda: visitor.is_browsing, "the tree")
            assert visitor.session is session
        assert session.analysis.under_way is not None


async def test_it_goes_on_while_another_server_is_browsed(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    redis70.admin.set("elsewhere", 1)
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await asked(visitor, target_of(redis70))
        await visitor.until_shown("Let it run", "Pause it until you return")
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        await visitor.until_shown("elsewhere")
        session.analysis.control.unsuspend()
        await visitor.until(lambda: session.analysis.status.progress.state is ScanState.DONE, "the end of it")
        await visitor.until_shown("Analysis ended", f"{KEYS + 1:,} keys")
        visitor.app.connect_to(session.target)
        await visitor.until(lambda: visitor.is_browsing and visitor.session is session, "the same session")
        await visitor.until_shown("shop")
        await open_analysis(visitor)
        await visitor.until_shown("exact", f"{KEYS + 1:,} keys")


async def test_it_is_paused_for_another_database_and_goes_on_when_one_comes_back(
    valkey: Server, tmp_path: Path
) -> None:
    valkey.client(db=3).set("three", 1)
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await visitor.press("B")
        await visitor.until_shown("db3    1 key")
        await visitor.press("down", "enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, LeaveScreen), "the question")
        await visitor.until_shown("Pause it until you return to db0")
        assert "Let it run" not in visitor.text()
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session.target.db == 3, "the other database")
        session.analysis.control.unsuspend()
        assert session.analysis.status.progress.state is ScanState.PAUSED
        visitor.app.connect_to(session.target)
        await visitor.until(lambda: visitor.is_browsing and visitor.session is session, "the same session")
        await visitor.until(lambda: session.analysis.status.progress.state is ScanState.DONE, "the end of it")


async def test_a_session_of_the_same_server_waits(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    """Left for another server it goes on, and waits as soon as another database of its own server is browsed."""
    valkey.client(db=3).set("three", 1)
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await asked(visitor, target_of(redis70))
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        visitor.app.connect_to(target_of(valkey, db=3))
        await visitor.until(lambda: visitor.is_browsing and visitor.session.target.db == 3, "the other database")
        assert session.analysis.control.is_paused
        visitor.app.connect_to(session.target)
        await visitor.until(lambda: visitor.is_browsing and visitor.session is session, "the same session")
        assert not session.analysis.control.is_paused


async def test_ending_it_keeps_a_partial_report(
    valkey: Server, redis70: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.analysis.run.FIRST_REPORT_S", 0.01)
    monkeypatch.setattr("rtui.server.analysis.run.REPORT_EVERY_S", 0.01)
    monkeypatch.setattr("rtui.server.analysis.run.REPORT_SHARE", 1.0)
    async with (
        DelayProxy(valkey.port, 0.01, records=False) as link,  # the pass takes longer than its first rows
        amid_an_analysis(valkey, tmp_path, Target(port=link.port)) as (visitor, session),
    ):
        add_rows = Aggregates.add_rows

        def add_first_rows(self: Aggregates, *args: Any) -> None:
            session.analysis.control.suspend()
            add_rows(self, *args)

        monkeypatch.setattr(Aggregates, "add_rows", add_first_rows)
        session.analysis.control.unsuspend()
        await visitor.until(lambda: seen_keys(session), "figures")
        assert session.analysis.under_way is not None
        await asked(visitor, target_of(redis70))
        await visitor.press("up", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        kept = session.analysis.kept
        assert kept is not None
        await visitor.until(lambda: list(kept.reports()), "the report")
        assert [one.head.coverage.kind.value for one in kept.reports()] == ["partial"]


async def test_quitting_asks_about_one_that_was_left(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await asked(visitor, target_of(redis70))
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        await visitor.press("q")
        await visitor.until(lambda: isinstance(visitor.app.screen, QuitScreen), "the question")
        await visitor.until_shown("Quitting stops it and keeps a partial")
        await visitor.press("q")
        await visitor.until(lambda: visitor.app._exit, "the end")
        assert session.analysis._task is None
