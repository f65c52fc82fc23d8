from __future__ import annotations

from pathlib import Path

import pytest

from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.hot_panel import HotSessionScreen
from tests.server.raw_commands import raw
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.visiting_analysis import analysis, ask, at_analysis, open_analysis

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
        task = analysis(visitor)._task
        assert task is not None
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
