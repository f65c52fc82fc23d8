"""The Analyse screen in all of its states, at the sizes that must look right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import Progress, ScanState
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.run import ReportApp
from tests.made_report import MADE_AT_S, denied_report, empty_report, estimate_report, made_report, partial_report
from tests.tui.analyse.analysing import READY, RUNNING, FixedAnalysis, app_on
from tests.tui.analyse.test_live import yesterday
from tests.tui.browsing import until

Compare = Callable[..., bool]
SMALL, MEDIUM = (80, 24), (120, 36)
SIZES = pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=["80x24", "120x36"])

DONE = replace(RUNNING, progress=replace(RUNNING.progress, state=ScanState.DONE, fraction=1.0, keys=1_000_000))
FAILED = Progress(ScanState.FAILED, None, reason=SafeText("NOPERM SCAN is not allowed"))


def doing(*keys: str) -> Callable[[Pilot[int]], Awaitable[None]]:
    """Go to the analysis, press keys, and let everything come to rest."""

    async def run(pilot: Pilot[int]) -> None:
        app = pilot.app
        if not isinstance(app, ReportApp):
            await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
            await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen) and bool(app.screen.footer_bar.lines))
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        await pilot.pause()

    return run


async def looking_at_findings(pilot: Pilot[int]) -> None:
    """Go to the findings, once rules have looked at the report."""
    await doing("1")(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, AnalyseScreen)
    await until(pilot, lambda: len(screen.view.table.rows) > 0)
    await pilot.press("down")
    await pilot.pause()


@SIZES
@pytest.mark.parametrize("panel", ["2", "3"], ids=["memory", "big"])
def test_a_report_from_a_file(snap_compare: Compare, size: tuple[int, int], panel: str) -> None:
    app = ReportApp(made_report(), BrowseOptions(), clock=lambda: MADE_AT_S + 3 * 86_400)
    assert snap_compare(app, terminal_size=size, run_before=doing(panel, "down"))


@SIZES
def test_findings(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE))
    assert snap_compare(app, terminal_size=size, run_before=looking_at_findings)


def test_findings_of_a_pass_under_way(snap_compare: Compare) -> None:
    app = app_on(FixedAnalysis(partial_report(), RUNNING))
    assert snap_compare(app, terminal_size=SMALL, run_before=looking_at_findings)


def test_changes_since_yesterday(snap_compare: Compare, tmp_path: Path) -> None:
    kept = KeptReports("10.0.0.5:6379", 0, tmp_path)
    kept.keep(yesterday())

    async def run(pilot: Pilot[int]) -> None:
        await doing()(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, AnalyseScreen)
        screen.clock = lambda: MADE_AT_S + 60
        await pilot.press("D")
        await until(pilot, lambda: screen.is_current and bool(screen.bar_below_tabs.lines))
        await until(pilot, lambda: any(column.is_change for column in screen.view.table.rows.table.columns))
        await pilot.press("greater_than_sign")
        await pilot.pause()

    assert snap_compare(app_on(FixedAnalysis(made_report(), DONE, kept)), terminal_size=MEDIUM, run_before=run)


@pytest.mark.parametrize(
    ("name", "status", "report"),
    [
        ("not-begun", READY, None),
        ("running", RUNNING, partial_report()),
        ("estimate", replace(DONE, is_estimate=True), estimate_report()),
        ("denied", DONE, denied_report()),
        ("empty", DONE, empty_report()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_states(snap_compare: Compare, name: str, status: AnalysisStatus, report: Report | None) -> None:
    assert snap_compare(app_on(FixedAnalysis(report, status)), terminal_size=MEDIUM, run_before=doing())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("zoomed", ("enter", "down")),
        ("coloured-by-type", ("v", "v")),
        ("file", ("3", "w", *"big.csv")),
        ("by-length", ("3", "M", "T", "right_square_bracket")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_keys_bring(snap_compare: Compare, name: str, keys: tuple[str, ...]) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE))
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing(*keys))


@pytest.mark.parametrize("theme", ["rtui-light", "rtui-high-contrast", "rtui-ansi16"])
def test_themes(snap_compare: Compare, theme: str) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE), theme=theme)
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing("enter", "down"))
