"""The words of the progress, and that there are none without a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtui.cli.run import ENDING, ProgressBar, figures_text, state_text
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from tests.window import SilentError, window

RUNNING = Progress(ScanState.RUNNING, 0.781, 786_000, 41_000.0, 12.4)


@pytest.mark.parametrize(
    ("progress", "cost", "pace", "said"),
    [
        (RUNNING, Cost(), Pace.GENTLE, "78% · 786k keys · 41.0k/s · 12s left · gentle"),
        (replace(RUNNING, fraction=None, eta_s=None), Cost(), Pace.GENTLE, "786k keys · 41.0k/s · gentle"),
        (replace(RUNNING, eta_s=0.2), Cost(), Pace.GENTLE, "78% · 786k keys · 41.0k/s · 0s left · gentle"),
        (replace(RUNNING, state=ScanState.PAUSED), Cost(), Pace.FULL, "78% · 786k keys · full"),
        (
            RUNNING,
            Cost(server_us=90_000.0, elapsed_s=1.0, is_measured=True),
            Pace.GENTLE,
            "78% · 786k keys · 41.0k/s · 12s left · gentle · server 9%",
        ),
        (
            RUNNING,
            Cost(server_us=90_000.0, elapsed_s=1.0),
            Pace.GENTLE,
            "78% · 786k keys · 41.0k/s · 12s left · gentle · server ≈9%",
        ),
    ],
)
def test_how_far_how_fast_how_hard(progress: Progress, cost: Cost, pace: Pace, said: str) -> None:
    assert figures_text(progress, cost, pace) == said


@pytest.mark.parametrize("state", list(ScanState))
def test_every_state_has_a_word(state: ScanState) -> None:
    assert state_text(Progress(state))


def test_waiting_says_why_in_a_few_words() -> None:
    progress = Progress(ScanState.WAITING, reason=SafeText("it is loading " + "x" * 500))
    assert state_text(progress).startswith("waiting: it is loading")
    assert len(state_text(progress)) < 70


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.show(RUNNING, Cost(), Pace.GENTLE)
    assert not bar.is_shown
    assert capsys.readouterr() == ("", "")


PROGRAM = """
import sys
from rtui.cli.run import ProgressBar
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost
from tests.cli.test_report_run import RUNNING
with ProgressBar() as bar:
    bar.show(RUNNING, Cost(), Pace.GENTLE)
    sys.stdin.readline()
    bar.show(RUNNING, Cost(), Pace.GENTLE, is_ending=True)
    sys.stdin.readline()
sys.stderr.write("gone")
"""


@pytest.mark.slow
def test_on_a_terminal_it_is_one_line_that_changes() -> None:
    with window(["-c", PROGRAM]) as screen:
        screen.wait_for(b"inspecting ")
        screen.wait_for("━".encode())
        screen.wait_for("78% · 786k keys · 41.0k/s · 12s left · gentle".encode())
        screen.type(b"\n")
        screen.wait_for(ENDING.encode())
        screen.type(b"\n")
        screen.wait_for(b"gone")
        with pytest.raises(SilentError, match="ended"):
            screen.wait_for(b"nothing more")
