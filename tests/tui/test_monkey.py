"""Random use: nothing that a user, other clients or faults do ends the application; see `tests/monkey.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtui.analysis.report.document import Report
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.run import ReportApp
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report
from tests.monkey import Monkey
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.test_live import fill
from tests.tui.visiting import private_folders, visiting

ONE = os.environ.get("RTUI_MONKEY_SEED")
FIRST = int(os.environ.get("RTUI_MONKEY_FIRST", "1"))
SEEDS = [int(ONE)] if ONE else list(range(FIRST, FIRST + int(os.environ.get("RTUI_MONKEY_SEEDS", "2"))))
REPORTS = (made_report, partial_report, estimate_report, denied_report, empty_report)

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.slow]


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_use_of_a_live_server(
    seed: int, redis70: Server, valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = (redis70, valkey)[seed % 2]
    fill(server, 200 if seed % 3 else 30_000)
    async with visiting(target_of(server), tmp_path / "state", size=(120, 36)) as visitor:
        if seed % 4:
            await visitor.connected()
        await Monkey(visitor.pilot, seed, server).walk()


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_use_of_a_report(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report: Report = REPORTS[seed % len(REPORTS)]()
    with private_folders(tmp_path):
        app = ReportApp(report, BrowseOptions(target=Target()))
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            while not isinstance(app.screen, AnalyseScreen):
                await pilot.pause()
            await Monkey(pilot, seed).walk()
