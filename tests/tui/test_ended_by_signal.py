"""The interface in a real terminal that hangs up, as when an SSH session ends, or whose process is told to end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rtui.analysis.report.document import Coverage, CoverageKind
from rtui.server.analysis.kept_reports import all_kept
from rtui.server.user.ending_signals import ENDING
from tests.servers import Server
from tests.window import SilentError, Window, window

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
def analysing(server: Server) -> Iterator[Window]:
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
    with analysing(valkey) as screen:
        screen.close()
        screen.process.send_signal(signal.SIGHUP)  # the kernel has sent one; this is that of the shell
        assert screen.process.wait(20) == 128 + signal.SIGHUP
        (coverage,) = kept_in(screen)
    assert coverage.kind is CoverageKind.PARTIAL
    assert 0 < coverage.keys < MANY


@pytest.mark.slow
def test_it_leaves_the_terminal_in_order_when_it_is_told_to_end(valkey: Server) -> None:
    with analysing(valkey) as screen:
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
