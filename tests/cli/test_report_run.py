"""The words of the progress, and that there are none without a terminal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from rtui.cli.report_run import ENDING, ProgressBar, figures_text, state_text
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from tests.bench.window import SilentError, window


@dataclass(frozen=True)
class Under:
    """Something under way."""

    progress: Progress
    cost: Cost = field(default_factory=Cost)
    control: RunControl = field(default_factory=RunControl)


RUNNING = Progress(ScanState.RUNNING, 0.781, 786_000, 41_000.0, 12.4)


@pytest.mark.parametrize(
    ("under_way", "said"),
    [
        (Under(RUNNING), "78% · 786k keys · 41.0k/s · 12s left · gentle"),
        (Under(replace(RUNNING, fraction=None, eta_s=None)), "786k keys · 41.0k/s · gentle"),
        (Under(replace(RUNNING, eta_s=0.2)), "78% · 786k keys · 41.0k/s · 0s left · gentle"),
        (Under(replace(RUNNING, state=ScanState.PAUSED), control=RunControl(Pace.FULL)), "78% · 786k keys · full"),
        (
            Under(RUNNING, Cost(server_us=90_000.0, elapsed_s=1.0, is_measured=True)),
            "78% · 786k keys · 41.0k/s · 12s left · gentle · server 9%",
        ),
        (
            Under(RUNNING, Cost(server_us=90_000.0, elapsed_s=1.0)),
            "78% · 786k keys · 41.0k/s · 12s left · gentle · server ≈9%",
        ),
    ],
)
def test_how_far_how_fast_how_hard(under_way: Under, said: str) -> None:
    assert figures_text(under_way) == said


@pytest.mark.parametrize("state", list(ScanState))
def test_every_state_has_a_word(state: ScanState) -> None:
    assert state_text(Progress(state))


def test_waiting_says_why_in_a_few_words() -> None:
    progress = Progress(ScanState.WAITING, reason=SafeText("it is loading " + "x" * 500))
    assert state_text(progress).startswith("waiting: it is loading")
    assert len(state_text(progress)) < 70


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.show(Under(RUNNING))
    assert not bar.is_shown
    assert capsys.readouterr() == ("", "")


PROGRAM = """
import sys
from rtui.cli.report_run import ProgressBar
from tests.cli.test_report_run import RUNNING, Under
with ProgressBar() as bar:
    bar.show(Under(RUNNING))
    sys.stdin.readline()
    bar.show(Under(RUNNING), is_ending=True)
    sys.stdin.readline()
sys.stderr.write("gone")
"""


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
