"""`W` in an analysis: the same is asked again, what changes is marked, for a hundredth of the server's time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.scan.progress import Cost, ScanState
from rtui.tui.analyse import comparing
from rtui.tui.analyse.comparing import FLASH_S, LEAST_S, WATCH_SHARE, PanelWatch
from tests.made_report import earlier_report, made_report
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import READY, FixedAnalysis
from tests.tui.analyse.visiting_analysis import analysis, ask, at_analysis

DONE = replace(READY, progress=replace(READY.progress, state=ScanState.DONE, fraction=1.0), cost=Cost(server_us=50_000))


@given(server_s=st.floats(0, 1e6), now_s=st.floats(0, 1e9))
def test_a_pass_takes_no_more_than_its_share_of_the_servers_time(server_s: float, now_s: float) -> None:
    watch = PanelWatch(made_report(), server_s, now_s)
    assert watch.every_s >= LEAST_S
    assert server_s <= watch.every_s * WATCH_SHARE * (1 + 1e-9)
    assert not watch.is_due(now_s)
    assert watch.is_due(now_s + watch.every_s)


def test_rates_are_those_between_two_reports() -> None:
    watch = PanelWatch(earlier_report(), 0.05, 100.0)
    assert watch.text(100.0) == "watching every 10s, next in 10s"
    assert not watch.learn(watch.report, 0.05, 110.0)
    assert watch.learn(made_report(), 0.05, 110.0)
    assert watch.text(112.0).startswith("watching every 10s, next in 8s · keys +69/min · bytes +")
    assert not watch.settle(110.0 + FLASH_S / 2)
    assert watch.settle(110.0 + FLASH_S)
    assert not watch.settle(120.0)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_what_changes_is_marked_and_it_ends(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "LEAST_S", 0.0)
    monkeypatch.setattr(comparing, "FLASH_S", 1e9)
    source = FixedAnalysis(earlier_report(), replace(DONE, cost=Cost()))
    async with analysing(source, size) as user:
        await user.press("W")
        await user.until(lambda: "again" in source.asked)
        assert "watching every" in user.text
        monkeypatch.setattr(comparing, "LEAST_S", 1e6)
        source.put(made_report(), ScanState.DONE)
        await user.until_shown("•", "▲")
        assert user.screen.view.table.body.marks_changes
        assert source.asked == ["again"]
        await user.press("W")
        await user.until(lambda: "watching" not in user.text and "▲▼" not in user.text)
        assert not user.screen.view.table.body.marks_changes


async def test_without_whole_figures_nothing_is_watched() -> None:
    source = FixedAnalysis(None)
    async with analysing(source) as user:
        await user.press("W")
        await user.until_shown("no complete analysis")
        assert source.asked == []


async def test_a_pass_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "LEAST_S", 0.0)
    source = FixedAnalysis(made_report(), replace(DONE, cost=Cost()))
    async with analysing(source) as user:
        await user.press("W")
        await user.until(lambda: "again" in source.asked)
        source.put(made_report(), ScanState.FAILED)
        await user.until(lambda: "watching" not in user.text)


@pytest.mark.slow
async def test_a_server_is_asked_again_and_keeps_one_report(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valkey.admin.mset({f"shop:{number}": "x" for number in range(500)})
    monkeypatch.setattr(comparing, "LEAST_S", 0.0)
    monkeypatch.setattr(comparing, "WATCH_SHARE", 1e9)
    async with at_analysis(target_of(valkey), tmp_path, keep=True) as visitor:
        first = await ask(visitor)
        kept = analysis(visitor).kept
        assert isinstance(kept, KeptReports)
        await visitor.until(lambda: len(kept.files()) == 1, "the kept report")
        valkey.admin.mset({f"shop:{number}": "x" for number in range(500, 900)})
        await visitor.press("W")
        await visitor.until_shown("watching every", "900 keys")
        await visitor.until(lambda: analysis(visitor).report is not first, "another report")
        await visitor.press("W")
        assert len(kept.files()) == 1
