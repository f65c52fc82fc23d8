"""`D`: what has changed since an earlier report of the server, in every panel."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from rtui.analysis.report.document import Node, Report
from rtui.server.analysis.kept_reports import KeptReports
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.kit.choice import ChoiceScreen
from tests.made_report import MADE_AT_S, estimate_report, made_report
from tests.tui.analyse.analysing import AnalyseUser, analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis

DAY_S = 86_400.0


def smaller(of: Node) -> Node:
    """The same namespace when it had nine tenths of its keys and bytes."""
    found = of.stats
    assert isinstance(found.keys, int)
    assert isinstance(found.memory_bytes, int)
    less = replace(
        found, keys=found.keys * 9 // 10, memory_bytes=found.memory_bytes * 9 // 10, memory_known_keys=found.keys
    )
    return replace(of, stats=less, children=tuple(map(smaller, of.children)))


def yesterday() -> Report:
    report = made_report()
    head = replace(report.head, made_at_s=MADE_AT_S - DAY_S)
    return replace(report, head=head, summary=replace(report.summary, root=smaller(report.summary.root)))


@pytest.fixture
def kept(tmp_path: Path) -> KeptReports:
    kept = KeptReports("10.0.0.5:6379", 0, tmp_path)
    kept.keep(yesterday())
    week_ago = estimate_report()
    kept.keep(replace(week_ago, head=replace(week_ago.head, made_at_s=MADE_AT_S - 7 * DAY_S)))
    kept.keep(made_report())
    return kept


async def compare(user: AnalyseUser, choice: int = 0) -> None:
    """Choose an earlier report."""
    user.screen.clock = lambda: MADE_AT_S + 60
    await user.press("D")
    await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
    await user.press(*["down"] * choice, "enter")
    await user.until(lambda: user.screen.is_current and user.screen.view.states.baseline is not None)
    await user.until_shown("▲▼ since")


def shows_changes(user: AnalyseUser) -> bool:
    """Whether the table has changes, if its rows can be compared: moments can't."""
    columns = user.screen.view.table.rows.table.columns
    return any(column.is_change or column.id == "start" for column in columns)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_changes_are_shown_and_end(kept: KeptReports, size: tuple[int, int]) -> None:
    async with analysing(FixedAnalysis(made_report(), kept=kept), size) as user:
        await user.until_shown("namespace")
        before = user.text
        await compare(user)
        assert "▲▼ since 1d ago" in user.text
        assert "keys ▲ 100,000" in user.text
        assert user.text.count("▲") > 4
        await user.press("D")
        await user.until(lambda: "since" not in user.text and user.text == before)


async def test_every_panel_shows_them_and_coming_back_keeps_them(kept: KeptReports) -> None:
    async with analysing(FixedAnalysis(made_report(), kept=kept)) as user:
        await compare(user)
        await user.press("D")
        await user.until(lambda: user.screen.view.states.baseline is None)
        await user.press("D")
        await user.until_shown("1d ago", "7d ago", "estimate")
        assert user.text.count(" ago ·") == 2
        await user.press("escape")
        assert user.screen.view.states.baseline is None
        await compare(user)
        for panel in PANELS:
            await user.press(panel.key)
            assert panel.id == user.screen.view.panel.id
            await user.until(lambda: shows_changes(user))
        await user.press("a")
        await user.press("a")
        await user.until(lambda: isinstance(user.screen.app.screen, AnalyseScreen))
        screen = user.screen.app.screen
        assert isinstance(screen, AnalyseScreen)
        assert screen.view.states.baseline is not None


async def test_rows_are_sorted_by_their_change(kept: KeptReports) -> None:
    async with analysing(FixedAnalysis(made_report(), kept=kept)) as user:
        await compare(user)
        await user.press(*["greater_than_sign"] * 3)
        rows = user.screen.view.table.rows
        assert rows.state.sort == "keys_change"
        changes = [rows.cells(line)[2] for line in range(len(rows))]
        assert changes == sorted(changes, reverse=True, key=lambda cell: cell if isinstance(cell, int) else 0)
        await user.press("D")
        assert len(user.screen.view.table.rows) == len(rows)


async def test_an_estimate_tells_no_change_from_none_and_a_damaged_file_is_said(kept: KeptReports) -> None:
    async with analysing(FixedAnalysis(made_report(), kept=kept)) as user:
        await compare(user, 1)
        await user.until_shown("estimate")
        rows = user.screen.view.table.rows
        assert rows.texts(0)[2] == "≈"
        await user.press("D")
        await user.until(lambda: user.screen.view.states.baseline is None)
        await user.press("D")
        await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
        for file in kept.files():
            file.path.write_bytes(b"\x1f\x8b damaged")
        await user.press("enter")
        await user.until_shown("Not read")
        assert user.screen.view.states.baseline is None


async def test_without_an_earlier_report_it_says_so(tmp_path: Path) -> None:
    async with analysing(FixedAnalysis(made_report(), kept=KeptReports("a:1", 0, tmp_path))) as user:
        await user.press("D")
        await user.until_shown("No earlier report")
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.press("D")
        await user.until_shown("--no-keep")
