"""Quitting, and a terminal that hangs up or a process that is told to end: what is closed and kept."""

from __future__ import annotations

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

import pytest

from rtui.analysis.report.document import Coverage, CoverageKind
from rtui.server.analysis.kept_reports import all_kept
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.scan.progress import ScanState
from rtui.server.user.ending_signals import ENDING
from rtui.tui.kit.choice import QuitScreen
from tests.made_report import made_report
from tests.servers import Server
from tests.tui.analyse.analysing import AnalyseUser, analysing
from tests.tui.analyse.fixed_analysis import READY, RUNNING, FixedAnalysis
from tests.tui.browsing import browsing
from tests.window import SilentError, Window, window

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
    assert kept is not None
    assert lost is not None
    assert kept.endswith("Quitting stops it and keeps a partial report.")
    assert lost.endswith("Quitting discards its results.")


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
