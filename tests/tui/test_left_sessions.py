"""Leaving a server while its analysis is under way, quitting, and a terminal that hangs up."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rtui.analysis.report.document import Coverage, CoverageKind
from rtui.server.analysis.kept_reports import all_kept
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import ScanState
from rtui.server.user.ending_signals import ENDING
from rtui.server.user.known_servers import RecentServers
from rtui.server.wire.target import Target
from rtui.table.aggregates import Aggregates
from rtui.tui.app import RtuiApp
from rtui.tui.connect import LeaveScreen
from rtui.tui.kit.choice import QuitScreen
from rtui.tui.terminal_app import AHEAD, REST_S, import_ahead
from tests.conftest import known
from tests.made_report import made_report
from tests.proxy import DelayProxy
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.analysing import READY, RUNNING, AnalyseUser, FixedAnalysis, analysing
from tests.tui.analyse.analysis_tour import open_analysis
from tests.tui.analyse.test_live import fill
from tests.tui.browsing import browsing
from tests.tui.visiting import Visitor, visiting
from tests.window import SilentError, Window, window

KEYS = 20_000


@pytest.fixture
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
        with patch.object(app, "notify", wraps=app.notify) as notify:  # what it says may be over before it is painted
            await visitor.press("a")
            await visitor.until(lambda: notify.called, "a word about the analysis")
        assert "press a to see it" in str(notify.call_args.args[0])
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        yield visitor, session


def seen_keys(session: BrowsingSession) -> int:
    """How many keys the report of the analysis is about."""
    report = session.analysis.report
    return 0 if report is None else report.head.coverage.keys


async def question(visitor: Visitor, target: Target) -> LeaveScreen:
    """Choose another server or database, which brings up the question."""
    visitor.app.connect_to(target)
    await visitor.until(lambda: isinstance(visitor.app.screen, LeaveScreen), "the question")
    screen = visitor.app.screen
    assert isinstance(screen, LeaveScreen)
    await visitor.until_shown("An analysis is running", "Stay", "Stop it")
    return screen


@pytest.mark.slow
@pytest.mark.usefixtures("asks_at_once")
async def test_staying_changes_nothing(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        for key in ("escape", "enter"):
            await question(visitor, target_of(redis70))
            await visitor.press(key)
            await visitor.until(lambda: visitor.is_browsing, "the tree")
            assert visitor.session is session
        assert session.analysis.under_way is not None


@pytest.mark.slow
@pytest.mark.usefixtures("asks_at_once")
async def test_it_goes_on_while_another_server_is_browsed(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    redis70.admin.set("elsewhere", 1)
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await question(visitor, target_of(redis70))
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


@pytest.mark.slow
@pytest.mark.usefixtures("asks_at_once")
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


@pytest.mark.slow
@pytest.mark.usefixtures("asks_at_once")
async def test_a_session_of_the_same_server_waits(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    """Left for another server it goes on, and waits as soon as another database of its own server is browsed."""
    valkey.client(db=3).set("three", 1)
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await question(visitor, target_of(redis70))
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        visitor.app.connect_to(target_of(valkey, db=3))
        await visitor.until(lambda: visitor.is_browsing and visitor.session.target.db == 3, "the other database")
        assert session.analysis.control.is_paused
        visitor.app.connect_to(session.target)
        await visitor.until(lambda: visitor.is_browsing and visitor.session is session, "the same session")
        assert not session.analysis.control.is_paused


@pytest.mark.slow
@pytest.mark.usefixtures("asks_at_once")
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
        await question(visitor, target_of(redis70))
        await visitor.press("up", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        kept = known(session.analysis.kept)
        await visitor.until(lambda: list(kept.reports()), "the report")
        assert [one.head.coverage.kind.value for one in kept.reports()] == ["partial"]


@pytest.mark.slow
@pytest.mark.usefixtures("asks_at_once")
async def test_quitting_asks_about_one_that_was_left(valkey: Server, redis70: Server, tmp_path: Path) -> None:
    async with amid_an_analysis(valkey, tmp_path) as (visitor, session):
        await question(visitor, target_of(redis70))
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session is not session, "the other server")
        await visitor.press("q")
        await visitor.until(lambda: isinstance(visitor.app.screen, QuitScreen), "the question")
        await visitor.until_shown("Quitting stops it and keeps a partial")
        await visitor.press("q")
        await visitor.until(lambda: visitor.app._exit, "the end")
        assert session.analysis._task is None


LONG = replace(RUNNING, cost=replace(RUNNING.cost, elapsed_s=1_812.0))
OVER = replace(LONG, progress=replace(LONG.progress, state=ScanState.DONE))
PAUSED = replace(LONG, progress=replace(LONG.progress, state=ScanState.PAUSED))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (READY, None),
        (RUNNING, None),
        (OVER, None),
        (LONG, "430,000 keys in 30m 12s"),
        (PAUSED, "430,000 keys in 30m 12s"),
    ],
    ids=["not-begun", "just-begun", "over", "long", "paused"],
)
def test_only_what_took_long_is_lost(status: AnalysisStatus, said: str | None) -> None:
    lost = status.lost_by_leaving
    assert said is None if lost is None else said is not None and said in lost


def test_it_says_what_becomes_of_the_figures() -> None:
    kept, lost = (replace(LONG, is_kept=is_kept).lost_by_leaving for is_kept in (True, False))
    assert known(kept).endswith("Quitting stops it and keeps a partial report.")
    assert known(lost).endswith("Quitting discards its results.")


@asynccontextmanager
async def asked(key: str, status: AnalysisStatus = LONG) -> AsyncIterator[AnalyseUser]:
    """The question that the key brings up during a long analysis."""
    async with analysing(FixedAnalysis(made_report(), status)) as user:
        await user.press(key)
        await user.until(lambda: isinstance(user.screen.app.screen, QuitScreen))
        yield user


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_quitting_during_a_long_analysis_asks_and_the_same_key_again_quits(key: str) -> None:
    async with asked(key) as user:
        app = user.screen.app
        await user.until_shown("An analysis is running: 430,000 keys in 30m 12s", "43%", "Stay", "Quit?")
        assert app.is_running
        await user.press(key)
        await user.until(lambda: app.return_code == 0)


@pytest.mark.parametrize("keys", [("escape",), ("n",), ("enter",)], ids=" ".join)
async def test_the_first_answer_stays(keys: tuple[str, ...]) -> None:
    async with asked("q") as user:
        await user.press(*keys)
        await user.until(lambda: user.screen.app.screen is user.screen)
        assert user.screen.app.return_code is None
        assert user.screen.app._exit is False


async def test_the_second_answer_quits() -> None:
    async with asked("q") as user:
        await user.press("down", "enter")
        await user.until(lambda: user.screen.app._exit)


async def test_quitting_asks_nothing_when_nothing_is_lost() -> None:
    async with browsing() as user:
        await user.pilot.press("q")
        assert user.screen.app._exit


MANY = 150_000
"""Keys that a gentle pass needs seconds for."""

BROWSE = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
import rtui.server.analysis.session
rtui.server.analysis.session.ASK_FROM_S = 0.0
from rtui.cli.main import main
main()
"""
"""Runs rtui with a terminal of its own.

An analysis that has just begun counts as a long one.
"""


@contextmanager
def analysing_window(server: Server) -> Iterator[Window]:
    """A terminal in which an analysis is under way that has shown some figures."""
    for first in range(0, MANY, 50_000):
        server.admin.eval("for i=1,50000 do redis.call('SET', 'k:'..(ARGV[1]+i), i) end", 0, first)
    with window(["-c", BROWSE, server.url]) as screen:
        screen.wait_for(b"150,000")
        screen.type(b"a")
        screen.wait_for(b"estimate")
        screen.type(b"r")
        screen.wait_for(b"partial")
        yield screen


def kept_in(screen: Window) -> list[Coverage]:
    """What the reports are of that were kept."""
    (base,) = screen.home.rglob("reports")
    return [report.head.coverage for kept in all_kept(base) for report in kept.reports()]


@pytest.mark.slow
def test_an_analysis_whose_terminal_has_hung_up_is_kept_as_a_partial_report(valkey: Server) -> None:
    with analysing_window(valkey) as screen:
        screen.close()
        screen.process.send_signal(signal.SIGHUP)  # the kernel has sent one; this is that of the shell
        assert screen.process.wait(20) == 128 + signal.SIGHUP
        (coverage,) = kept_in(screen)
    assert coverage.kind is CoverageKind.PARTIAL
    assert 0 < coverage.keys < MANY


@pytest.mark.slow
def test_it_leaves_the_terminal_in_order_when_it_is_told_to_end(valkey: Server) -> None:
    with analysing_window(valkey) as screen:
        screen.process.send_signal(signal.SIGTERM)
        with suppress(SilentError):
            while screen.read(20):
                pass
        assert screen.process.wait(20) == 128 + signal.SIGTERM
        assert [one.kind for one in kept_in(screen)] == [CoverageKind.PARTIAL]
        assert b"Traceback" not in screen.shown


def set_modes(obeyed: bytearray) -> set[bytes]:
    """Return the private modes that are on after these sequences, as numbers; `kitty` where its keyboard is."""
    modes = dict[bytes, bool]()
    for numbers, what in re.findall(rb"\x1b\[\?([0-9;]+)([hl])", obeyed):
        modes |= dict.fromkeys(numbers.split(b";"), what == b"h")
    kitty = len(re.findall(rb"\x1b\[>[0-9;]*u", obeyed)) > len(re.findall(rb"\x1b\[<[0-9]*u", obeyed))
    return {number for number, is_on in modes.items() if is_on} | ({b"kitty"} if kitty else set())


SHOWN_CURSOR, WRAPPED_LINES, WHOLE_FRAMES = b"25", b"7", b"2026"


@pytest.mark.slow
@pytest.mark.parametrize("sent", ENDING)
def test_the_terminal_is_as_before_after_any_signal(valkey: Server, sent: signal.Signals) -> None:
    valkey.admin.set("shop:cart:1", "x")
    with window(["-c", BROWSE, valkey.url]) as screen:
        before = termios.tcgetattr(screen.master)
        screen.wait_for(b"shop")
        assert set_modes(screen.obeyed) > {b"1049", b"1000", b"1006", b"2004", b"kitty"}
        screen.process.send_signal(sent)
        with suppress(SilentError):
            while screen.read(20):
                pass
        assert screen.process.wait(20) == 128 + sent
        assert set_modes(screen.obeyed) - {WRAPPED_LINES, WHOLE_FRAMES} == {SHOWN_CURSOR}
        assert termios.tcgetattr(screen.master) == before
        assert b"Traceback" not in screen.shown


@pytest.mark.slow
def test_a_signal_while_it_connects_leaves_the_terminal_as_before() -> None:
    mute = socket.create_server(("127.0.0.1", 0))
    with mute, window(["-c", BROWSE, f"127.0.0.1:{mute.getsockname()[1]}"]) as screen:
        screen.wait_for(b"127.0.0.1")
        screen.process.send_signal(signal.SIGQUIT)
        with suppress(SilentError):
            while screen.read(20):
                pass
        assert screen.process.wait(20) == 128 + signal.SIGQUIT
        assert set_modes(screen.obeyed) - {WRAPPED_LINES, WHOLE_FRAMES} == {SHOWN_CURSOR}


PAGED = """
import os, signal, sys
from pathlib import Path
from rtui.server.user.ending_signals import raise_at_once
from rtui.tui.browse.value_writer import run_pager
raise_at_once(signal.SIGINT, signal.SIGQUIT)
print(run_pager(Path("file"), {**os.environ, "PAGER": sys.argv[1]}))
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGQUIT])
def test_keys_that_are_for_the_pager_do_not_end_rtui(sent: signal.Signals, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\nkill -{int(sent)} $PPID\nexit 3\n")
    pager.chmod(0o700)
    ended = subprocess.run([sys.executable, "-c", PAGED, str(pager)], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("3\n", 0)


FIRST_SCREEN = """
import json, sys
import rtui.tui.run, rtui.server.browsing.session, rtui.tui.browse.screen
json.dump([*sys.modules], sys.stdout)
"""

FIRST_KEYS = """
import asyncio, json, sys
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import parse_target
from rtui.tui import terminal_app
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.settings import SettingsFile

async def main():
    terminal_app.REST_S = 0.0
    app, more = RtuiApp(BrowseOptions(target=parse_target(sys.argv[1]))), {}
    async with app.run_test(size=(120, 36)) as pilot:
        while not isinstance(app.screen, BrowseScreen) or not app._session.status.complete:
            await pilot.pause(0.01)
        await app._importing
        for key in ("colon", "a", "L", "slash", "question_mark"):
            before = {*sys.modules}
            await pilot.press(key)
            await pilot.pause()
            more[key] = sorted(name for name in {*sys.modules} - before if name.startswith("rtui."))
            await pilot.press("escape")
            await pilot.pause()
    json.dump(more, sys.stdout)

asyncio.run(main())
"""


def run(program: str, *arguments: str) -> object:
    command = [sys.executable, "-c", program, *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_the_first_screen_does_without() -> None:
    loaded = run(FIRST_SCREEN)
    assert isinstance(loaded, list)
    assert {*AHEAD} & {*loaded} == set()


@pytest.mark.slow
def test_the_first_keys_import_nothing_more(valkey: Server) -> None:
    valkey.admin.set("a:b", 1)
    more = run(FIRST_KEYS, valkey.url)
    assert more == {key: [] for key in ("colon", "a", "L", "slash", "question_mark")}


async def test_nothing_is_imported_while_keys_are_pressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_ahead.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    loop = asyncio.get_running_loop()
    asked: list[bool] = []

    def last_key_s() -> float:
        asked.append("imported_ahead" in sys.modules)
        return loop.time() - REST_S + (0.001 if len(asked) < 5 else -0.001)

    await import_ahead(last_key_s, ["imported_ahead"])
    assert asked == [False] * 5
    assert "imported_ahead" in sys.modules
    monkeypatch.delitem(sys.modules, "imported_ahead")
