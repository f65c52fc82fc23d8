"""The interface in a real terminal that hangs up, as when an SSH session ends, or whose process is told to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from rtui.server.analysis_session import ASK_FROM_S
from rtui.server.saved_analysis import AnalysisFile, SavedAnalysis
from rtui.server.scan.progress import Cost
from rtui.tui.left_sessions import LeftSessions
from tests.bench.window import SilentError, Window, window
from tests.servers import Server
from tests.tui.analyse.fixed_analysis import RUNNING, FixedAnalysis
from tests.tui.fixed_session import FixedSession

MANY = 150_000
"""Keys that a gentle pass needs seconds for."""

BROWSE = """
import fcntl, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
import rtui.server.analysis_session
rtui.server.analysis_session.ASK_FROM_S = 0.0
from rtui.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
"""Runs rtui with a terminal and signals as a shell gives them, also where the tests ignore a hang-up.

An analysis that has just begun counts as a long one.
"""


def measured_keys(server: Server) -> int:
    """How many keys the server has been asked the memory of, which comes last."""
    statistics: dict[str, dict[str, int]] = server.admin.info("commandstats")
    return statistics.get("cmdstat_memory|usage", {}).get("calls", 0)


@contextmanager
def analysing(server: Server) -> Iterator[Window]:
    """A terminal in which an analysis is under way."""
    for first in range(0, MANY, 50_000):
        server.admin.eval("for i=1,50000 do redis.call('SET', 'k:'..(ARGV[1]+i), i) end", 0, first)
    with window(["-c", BROWSE, server.url]) as screen:
        screen.wait_for(b"150,000")
        screen.type(b"a")
        screen.wait_for(b"estimate")
        screen.type(b"r")
        while measured_keys(server) < MANY // 10:
            screen.read(0.01)
        yield screen


def saved_in(screen: Window) -> SavedAnalysis | None:
    """Return what was saved of the analysis; None for nothing."""
    for path in screen.home.rglob("*.analysis"):
        file = AnalysisFile("", 0)
        file.path = path
        return file.load()
    return None


@pytest.mark.slow
def test_an_analysis_can_go_on_after_its_terminal_has_hung_up(valkey: Server) -> None:
    with analysing(valkey) as screen:
        screen.close()
        screen.process.send_signal(signal.SIGHUP)  # the kernel has sent one; this is that of the shell
        assert screen.process.wait(20) > 0, "no signal has ended it, though its last words found no terminal"
        saved = saved_in(screen)
    assert saved is not None
    assert MANY // 10 <= saved.aggregates.keys < MANY


@pytest.mark.slow
def test_it_leaves_the_terminal_in_order_when_it_is_told_to_end(valkey: Server) -> None:
    with analysing(valkey) as screen:
        screen.process.send_signal(signal.SIGTERM)
        with suppress(SilentError):
            while screen.read(20):
                pass
        assert screen.process.wait(20) == 130
        assert saved_in(screen) is not None
        assert b"Traceback" not in screen.shown


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("can_go_on_later", [True, False])
async def test_names_are_only_written_where_reports_are_kept(is_kept: bool, can_go_on_later: bool) -> None:
    status = replace(RUNNING, cost=Cost(elapsed_s=ASK_FROM_S), is_kept=is_kept, can_go_on_later=can_go_on_later)
    session = FixedSession()
    analysis = session.analysis = FixedAnalysis(status=status)
    await LeftSessions().save_what_goes_on(session)
    assert analysis.asked == (["go on later"] if is_kept and can_go_on_later else [])
