"""An analysis under way, asked again with `W`, and compared with an earlier one with `D`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.report.document import Node, Report
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, ScanState
from rtui.tui.analyse import comparing
from rtui.tui.analyse.comparing import FLASH_S, LEAST_S, WATCH_SHARE, PanelWatch
from rtui.tui.analyse.hot_panel import HotSessionScreen
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.kit.choice import ChoiceScreen
from tests.conftest import known
from tests.made_report import MADE_AT_S, earlier_report, estimate_report, made_report
from tests.server.targets import raw, target_of
from tests.servers import Server
from tests.tui.analyse.analysing import READY, AnalyseUser, FixedAnalysis, analysing
from tests.tui.analyse.analysis_tour import analysis, ask, at_analysis, open_analysis

KEYS = 20_000


def fill(server: Server, keys: int = KEYS) -> None:
    for start in range(0, keys, 1_000):
        server.admin.mset({f"shop:item:{number}": "x" * (number % 50) for number in range(start, start + 1_000)})
    server.admin.set("shop:huge", "x" * 300_000)


@pytest.mark.slow
async def test_every_key_is_asked_and_the_largest_is_found_in_the_tree(server: Server, tmp_path: Path) -> None:
    fill(server, 2_000)
    async with at_analysis(target_of(server), tmp_path) as visitor:
        await visitor.press("enter")
        await visitor.until_shown("exact · 2,001 keys", "No problems found")
        await visitor.press("3")
        await visitor.until_shown("!shop:huge")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.until(lambda: visitor.detail.key == b"shop:huge", "the key")


@pytest.mark.slow
async def test_an_analysis_goes_on_while_the_tree_is_shown_and_the_scan_rests(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with at_analysis(target_of(valkey), tmp_path, resume=False) as visitor:
        await visitor.press("enter")
        await visitor.until(lambda: analysis(visitor).status.is_under_way, "a pass")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.until(lambda: analysis(visitor).status.progress.state is ScanState.DONE, "the end")
        await open_analysis(visitor)
        await visitor.until_shown("exact", f"{KEYS + 1:,} keys")


@pytest.mark.slow
async def test_a_pass_is_paused_goes_on_and_is_stopped(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with at_analysis(target_of(valkey), tmp_path) as visitor:
        await visitor.press("enter", "p")
        await visitor.until_shown("paused")
        await visitor.press("plus")
        await visitor.until_shown("pace normal")
        assert analysis(visitor).status.pace is Pace.NORMAL
        await visitor.press("minus", "p", "x")
        await visitor.until(lambda: analysis(visitor).status.progress.state.is_over, "the end")
        await visitor.press("r")
        await visitor.until_shown("exact")


@pytest.mark.slow
async def test_an_estimate_says_that_it_is_one(valkey: Server, tmp_path: Path) -> None:
    fill(valkey, 60_000)
    async with at_analysis(target_of(valkey), tmp_path) as visitor:
        await visitor.press("e")
        await visitor.until_shown("≈ estimate from", "complete")


@pytest.mark.slow
async def test_leaving_ends_what_is_under_way(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with at_analysis(target_of(valkey), tmp_path) as visitor:
        await visitor.press("enter")
        await visitor.until(lambda: analysis(visitor).status.is_under_way, "a pass")
        task = known(analysis(visitor)._task)
        await visitor.press("q")
        await visitor.until(task.done, "the end of the pass")


@pytest.mark.slow
async def test_figures_of_before_a_restart_say_so(valkey: Server, tmp_path: Path) -> None:
    fill(valkey, 2_000)
    async with at_analysis(target_of(valkey), tmp_path) as visitor:
        await ask(visitor)
        await visitor.until_shown("complete", "exact · 2,001 keys")
        valkey.restart()
        await visitor.until_shown(
            "The server was restarted. These figures are from before. Press r to refresh.", "outdated"
        )
        assert "complete" not in visitor.text()
        await ask(visitor)
        await visitor.until(lambda: "restarted" not in visitor.text(), "figures of now")
        await visitor.until_shown("db0 is empty")


async def test_the_session_of_somebody_else_is_shown_from_its_beginning_to_its_end(
    session_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.tui.analyse.hot_panel.HOT_EVERY_S", 0.1)
    fill(session_server, 100)
    async with at_analysis(target_of(session_server), tmp_path) as visitor:
        await ask(visitor)
        await visitor.press("4")
        await visitor.until_shown("No hot-key session has been run")
        raw(session_server, *["HOTKEYS", "START", "METRICS", "2", "CPU", "NET", "DURATION", "3600"])
        await visitor.until_shown("A hot-key session runs on this server", "has measured no key yet")
        for _ in range(20):
            session_server.admin.set("hot:key", "x" * 5_000)
        await visitor.until_shown("the server's own hot-key report", "a session that runs", "hot:key")
        raw(session_server, "HOTKEYS", "STOP")
        await visitor.until(lambda: "a session that runs" not in visitor.text(), "the end of the session")
        await visitor.until_shown("a session of ", "hot:key")


async def test_a_session_that_the_user_begins_is_shown(session_server: Server, tmp_path: Path) -> None:
    fill(session_server, 100)
    async with at_analysis(target_of(session_server), tmp_path, size=(80, 24)) as visitor:
        await ask(visitor)
        await visitor.press("4")
        await visitor.until_shown("No hot-key session has been run")
        await visitor.press("H")
        await visitor.until(lambda: isinstance(visitor.app.screen, HotSessionScreen), "the question")
        await visitor.press("y")
        await visitor.until(
            lambda: (
                "No hot-key session has been run" not in visitor.text()
                and ("session runs" in visitor.text() or "session that runs" in visitor.text())
            ),
            "the session",
        )


DAY_S = 86_400.0


def smaller(of: Node) -> Node:
    """The same namespace when it had nine tenths of its keys and bytes."""
    found = of.stats
    assert isinstance(found.keys, int)
    assert isinstance(found.memory_bytes, int)
    less = structs.replace(
        found, keys=found.keys * 9 // 10, memory_bytes=found.memory_bytes * 9 // 10, memory_known_keys=found.keys
    )
    return structs.replace(of, stats=less, children=tuple(map(smaller, of.children)))


def yesterday() -> Report:
    report = made_report()
    head = structs.replace(report.head, made_at_s=MADE_AT_S - DAY_S)
    return structs.replace(
        report, head=head, summary=structs.replace(report.summary, root=smaller(report.summary.root))
    )


@pytest.fixture
def kept(tmp_path: Path) -> KeptReports:
    kept = KeptReports("10.0.0.5:6379", 0, tmp_path)
    kept.keep(yesterday())
    week_ago = estimate_report()
    kept.keep(structs.replace(week_ago, head=structs.replace(week_ago.head, made_at_s=MADE_AT_S - 7 * DAY_S)))
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
        assert user.screen.view.table.rows.texts(0)[2] == "≈"
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
    assert watch.text(112.0).startswith("watching every 10s, next in 8s · keys +69/min · memory +")
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
