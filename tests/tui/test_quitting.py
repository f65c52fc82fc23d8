from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rtui.server.analysis.session import AnalysisStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.kit.choice import QuitScreen
from tests.made_report import made_report
from tests.tui.analyse.analysing import AnalyseUser, analysing
from tests.tui.analyse.fixed_analysis import READY, RUNNING, FixedAnalysis
from tests.tui.browsing import browsing

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
    assert kept.endswith("Quitting ends it: what it has found is kept as a partial report.")
    assert lost.endswith("Quitting loses what it has found.")


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
        await user.until_shown("An analysis is under way: 430,000 keys in 30m 12s", "43%", "Stay", "Quit?")
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
