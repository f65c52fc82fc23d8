"""What goes wrong during an analysis on the screen: it says so, goes on when it can, and nothing jumps."""

from __future__ import annotations

import asyncio
import re
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.server.guard.command import Secret
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.wire.connection import Lost, Online
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.visiting_analysis import (
    analysis,
    ask,
    at_analysis,
    is_analysing,
    panels,
    report,
    screen_of,
    state,
    up_to_date,
)
from tests.tui.visiting import Visitor, visiting

MANY = 100_000

SIZE = (120, 36)


def plant(server: Server, prefix: str = "user") -> None:
    for start in range(0, MANY, 5_000):
        server.admin.mset({f"{prefix}:{number}:x": "x" * (number % 90) for number in range(start, start + 5_000)})


@asynccontextmanager
async def under_way(target: Target, folder: Path, proxy: DelayProxy | None = None) -> AsyncIterator[Visitor]:
    """A pass that has shown its first figures; with a proxy its replies are being held back."""
    async with at_analysis(target, folder, size=SIZE) as visitor:
        await visitor.press("r")
        await visitor.until(lambda: screen_of(visitor).report is not None, "the first figures")
        assert state(visitor) is ScanState.RUNNING
        if proxy is not None:
            proxy.hold_replies()
        yield visitor


async def ended(visitor: Visitor) -> None:
    await visitor.press("plus", "plus", "plus")
    await visitor.until(lambda: state(visitor) is ScanState.DONE, "the end")
    await up_to_date(visitor)


TRIED_AGAIN = re.compile(r"try (?:[2-9]|\d\d)")
"""A second try to connect, or a later one."""


def is_lost(visitor: Visitor) -> bool:
    return isinstance(analysis(visitor).status.link, Lost) and "connection lost" in visitor.text()


@pytest.mark.slow
async def test_lost_and_back_it_goes_on_and_nothing_jumps(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with DelayProxy(valkey.port) as proxy, under_way(Target(port=proxy.port), tmp_path, proxy) as visitor:
        screen = screen_of(visitor)
        await visitor.press("3", "down", "down")
        await visitor.until(lambda: screen.view.table.body.cursor_line == 2, "the third row")
        await proxy.refuse()
        proxy.cut()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        await up_to_date(visitor)
        subject, line = screen.view.subject, screen.view.table.body.cursor_line
        await visitor.until(lambda: TRIED_AGAIN.search(visitor.text()), "another try")
        assert (screen.view.subject, screen.view.table.body.cursor_line) == (subject, line)
        assert report(visitor).head.coverage.kind is CoverageKind.PARTIAL
        await visitor.press("2", "tab")
        await visitor.until(lambda: screen.view.panel.id == "big" and screen.view.subject == subject, "the same row")
        proxy.release_replies()
        await proxy.resume()
        await visitor.until(lambda: isinstance(analysis(visitor).status.link, Online), "the return")
        await ended(visitor)
        await visitor.until_shown(f"exact · {MANY:,} keys")
        assert report(visitor).summary.root.stats.keys == MANY


@pytest.mark.slow
async def test_lost_at_the_very_end_there_is_a_report(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with DelayProxy(valkey.port) as proxy, under_way(Target(port=proxy.port), tmp_path, proxy) as visitor:
        await visitor.press("x")
        await proxy.refuse()
        proxy.cut()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        await visitor.until(lambda: state(visitor).is_over, "the end")
        await up_to_date(visitor)
        await visitor.until_shown("≥ partial")
        await proxy.resume()


@pytest.mark.slow
async def test_a_restart_begins_again_and_says_so(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, "before")
    async with under_way(target_of(valkey), tmp_path) as visitor:
        await visitor.press("2")
        await visitor.until_shown("before")
        valkey.stop()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        valkey.start()
        plant(valkey, "after")
        await visitor.until(lambda: isinstance(analysis(visitor).status.link, Online), "the return")
        await ended(visitor)
        await visitor.until_shown("after")
        assert "before" not in visitor.text(screen_of(visitor).view.table)
        assert ScanNote.RESTARTED.value in report(visitor).head.notes


@pytest.mark.slow
async def test_flushed_it_ends_with_what_it_saw(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with under_way(target_of(valkey), tmp_path) as visitor:
        valkey.admin.flushall()
        await ended(visitor)
        coverage = report(visitor).head.coverage
        assert 0 < coverage.keys < MANY
        async for _ in panels(visitor):
            visitor.check_painted()
        await ask(visitor)
        await visitor.until_shown("db0 is empty")


@pytest.mark.slow
async def test_killed_for_good_the_figures_stay_and_leaving_works(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with under_way(target_of(valkey), tmp_path) as visitor:
        valkey.stop()
        await visitor.until(lambda: is_lost(visitor), "the loss")
        async for _ in panels(visitor):
            visitor.check_painted()
        await visitor.press("x")
        await visitor.until(lambda: state(visitor).is_over, "the end")
        await visitor.press("r")
        await visitor.until_shown("connection lost")
        await visitor.press("a")
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.press("q")
        await visitor.until(lambda: not visitor.app.is_running, "the end")


@pytest.mark.slow
async def test_a_right_that_is_taken_in_the_middle(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    valkey.admin.execute_command("ACL", "SETUSER", "some", "reset", "on", ">word", "~*", "+@all")
    async with under_way(target_of(valkey, user="some", password=Secret("word")), tmp_path) as visitor:
        valkey.admin.execute_command("ACL", "SETUSER", "some", "-memory")
        await ended(visitor)
        stats = report(visitor).summary.root.stats
        assert stats.keys == MANY
        assert 0 < stats.memory_known_keys < MANY
        await visitor.press("2")
        await visitor.until_shown("≥", "denied")


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_file(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    path = tmp_path / "old.csv"
    path.write_text("old")
    asyncio.run(_write_too_much(valkey, tmp_path, path))
    assert (path.read_text(), [*tmp_path.glob(".*.part")]) == ("old", [])


async def _write_too_much(valkey: Server, tmp_path: Path, path: Path) -> None:
    async with at_analysis(target_of(valkey), tmp_path, size=SIZE) as visitor:
        screen = screen_of(visitor)
        await ask(visitor)
        await visitor.press("3", "w")
        await visitor.until(lambda: visitor.app.focused is screen.file_input, "the line for a name")
        await visitor.paste(str(path))
        await visitor.until(lambda: screen.file_input.value == str(path), "the name")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        try:
            await visitor.press("enter")
            await visitor.until_shown("Not written")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 10), (300, 80)], ids=str)
async def test_resized_while_it_runs(valkey: Server, tmp_path: Path, size: tuple[int, int]) -> None:
    plant(valkey)
    async with under_way(target_of(valkey), tmp_path) as visitor:
        await visitor.pilot.resize_terminal(*size)
        async for _ in panels(visitor):
            visitor.check_painted()
            assert len(visitor.text().splitlines()) <= size[1]
        await visitor.pilot.resize_terminal(*SIZE)
        await ended(visitor)
        await visitor.until_shown(f"exact · {MANY:,} keys")


@pytest.mark.slow
async def test_keys_in_one_packet(valkey: Server, tmp_path: Path) -> None:
    """Everything typed before the screen is there is taken up in its order."""
    plant(valkey)
    async with visiting(target_of(valkey), tmp_path, size=SIZE) as visitor:
        await visitor.whole()
        await visitor.press("a", "r", "plus", "plus", "plus", "3", "down", "greater_than_sign", "tab")
        await visitor.until(lambda: is_analysing(visitor) and analysis(visitor).report is not None, "figures")
        await ended(visitor)
        assert screen_of(visitor).view.panel.id == "hot"
        await visitor.press("3", "slash", *"user:10", "enter", "down", "tab", "3")
        await visitor.until_shown(f"exact · {MANY:,} keys", "[3 Big keys]", "rows with user:10")
        rows = screen_of(visitor).view.table.rows
        await visitor.until(lambda: len(rows), "rows")
        assert all("user:10" in rows.texts(line)[0] for line in range(len(rows)))
