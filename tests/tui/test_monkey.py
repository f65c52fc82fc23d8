"""Random use: nothing that a user, other clients or faults do ends the application; see `tests/monkey.py`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from rtui.analysis.report.document import Report
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.run import ReportApp
from tests.conftest import known
from tests.holds import held
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report
from tests.monkey import Churn, Monkey
from tests.proxy import WireJudge
from tests.server.targets import target_of
from tests.servers import Server, free_port
from tests.tui.analyse.test_live import fill
from tests.tui.visiting import private_folders, visiting

ONE = os.environ.get("RTUI_MONKEY_SEED")
FIRST = int(os.environ.get("RTUI_MONKEY_FIRST", "1"))
SEEDS = [int(ONE)] if ONE else list(range(FIRST, FIRST + int(os.environ.get("RTUI_MONKEY_SEEDS", "2"))))
REPORT = os.environ.get("RTUI_MONKEY_REPORT")
HOLD_MS = float(os.environ["RTUI_MONKEY_HOLD_MS"]) if "RTUI_MONKEY_HOLD_MS" in os.environ else None
REPORTS = (made_report, partial_report, estimate_report, denied_report, empty_report)


@pytest.fixture(autouse=True)
def without_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer no server of whoever runs the tests: random keys may choose any that is listed."""
    monkeypatch.setattr("rtui.tui.connect.THIS_MACHINE", Target(port=free_port()))


pytestmark = [pytest.mark.timeout(1_800), pytest.mark.slow]


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_use_of_a_live_server(
    seed: int, redis70: Server, valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = (redis70, valkey)[seed % 2]
    fill(server, 200 if seed % 3 else 30_000)
    with WireJudge(server.port) as judge, held() as holds, Churn(server, seed):
        target = replace(target_of(server), port=judge.port)
        async with visiting(target, tmp_path / "state", size=(120, 36)) as visitor:
            if seed % 4:
                await visitor.connected()
            await Monkey(visitor.pilot, seed, server).walk()
    assert not judge.wrong
    assert judge.sent
    own = known(asyncio.current_task())
    longest = [hold for hold in holds.longest(100) if not hold.what.startswith(own.get_name())][:3]
    told = "; ".join(hold.text for hold in longest)
    tell(f"seed {seed}: {judge.sent.total():,} commands; the event loop was held for {told}")
    if HOLD_MS is not None:
        assert 1000 * longest[0].cpu_s <= HOLD_MS, told


def tell(line: str) -> None:
    """Write a line into the report that was asked for."""
    if REPORT is not None:
        with Path(REPORT).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


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
