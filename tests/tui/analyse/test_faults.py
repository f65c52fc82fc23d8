"""What goes wrong during an analysis on the screen, and commands that the user is not allowed."""

from __future__ import annotations

import asyncio
import re
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import Unknown
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import AtLeast, Cell, Table, Unit
from rtui.server.guard.command import Secret
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.wire.connection import Lost, Online
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.every_type import fill, has_no_touch
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.analysis_tour import (
    analysis,
    ask,
    at_analysis,
    is_analysing,
    open_analysis,
    panels,
    report,
    screen_of,
    state,
    up_to_date,
)
from tests.tui.test_session_proof import user
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
        assert 0 < report(visitor).head.coverage.keys < MANY
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


MOVES: Final = frozenset({Unit.DURATION, Unit.TIME, Unit.TEXT})
"""Units of what is another number a moment later, and of what says why a row is there."""

BESIDES: Final = frozenset({"about", "hot_keys_1", "hot_keys_2", "hot_slots", "keysizes"})
"""Tables that say when and how they were made, or what the server tells by itself."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A rule that takes commands away, the facts that go with them, and where that is said."""

    rule: str
    facts: tuple[str, ...]
    panel: str
    since: tuple[int, ...] = (6, 0)


MISSING: Final = (
    Missing("-type", ("type",), "types"),
    Missing("-pttl", ("ttl",), "expiry"),
    Missing("-memory", ("memory",), "memory"),
    Missing("-object", ("idle", "frequency", "encoding"), "hot"),
    Missing("-object|encoding", ("encoding",), "types", (7, 0)),
    Missing("-object|idletime", ("idle",), "hot", (7, 0)),
    *(Missing(f"-{word}", ("length",), "types") for word in ("strlen", "hlen", "llen", "scard", "zcard", "xlen")),
    Missing(
        "-@all +scan +type +hello +client +ping +command",
        ("ttl", "memory", "idle", "frequency", "encoding", "length"),
        "memory",
    ),
)


@pytest.mark.slow
async def test_each_missing_command_is_named_and_the_rest_is_complete(some_server: Server, tmp_path: Path) -> None:
    fill(some_server, some_server.client())
    target = target_of(some_server, user="some", password=user(some_server))
    async with at_analysis(target, tmp_path, size=(150, 40)) as visitor:
        whole = await ask(visitor)
        assert not [fact for fact, column in whole.head.columns.items() if column.state is ColumnState.DENIED]
        looked_at: set[tuple[str, ...]] = set()
        for missing in MISSING:
            if some_server.version < missing.since:
                continue
            user(some_server, *missing.rule.split())
            found = await ask(visitor)
            _check_columns(found, missing, some_server)
            _check_cells(whole, found, missing)
            # every panel once for the same facts, and then the one that says which command is missing
            only = (missing.panel,) if missing.facts in looked_at else ()
            looked_at.add(missing.facts)
            async for panel, text in panels(visitor, *only):
                visitor.check_painted()
                is_asked = missing.facts != ("length",) or has_no_touch(some_server)
                if panel.id == missing.panel and is_asked:
                    assert "denied" in text, (missing, text)
            user(some_server)


def _check_columns(found: Report, missing: Missing, server: Server) -> None:
    """The facts are said to be denied, with the command and why; nothing else is."""
    for fact in missing.facts:
        column = found.head.columns[fact]
        words = missing.rule.split()[0].strip("-").partition("|")[0]
        if fact == "length" and not has_no_touch(server):
            assert column.state is ColumnState.NOT_ASKED
            continue
        assert column.state is ColumnState.DENIED, (missing, column)
        assert column.reason, missing
        assert words in column.reason.lower() or words == "@all", (missing, column)
    for fact in found.head.columns.keys() - set(missing.facts):
        assert found.head.columns[fact].state is not ColumnState.DENIED, (missing, fact)


def _check_cells(whole: Report, found: Report, missing: Missing) -> None:
    """Every value is what it is with all rights, or unknown; an unknown one is never a number."""
    before = {table.id: dict(_rows(table)) for table in tables(whole)}
    for table in tables(found):
        if table.id in BESIDES or table.id not in before:
            continue
        for name, cells in _rows(table):
            for column_id, cell in cells.items():
                is_known = not (cell is None or isinstance(cell, Unknown | AtLeast))
                expected = before[table.id].get(name, {})
                if is_known and column_id in expected:
                    assert _close(cell, expected[column_id]), (missing, table.id, name, column_id)


def _rows(table: Table) -> Iterator[tuple[Cell, dict[str, Cell]]]:
    """Each row by its first cell, without what changes from one moment to the next: of keys by idle time, their sum."""
    rows = [
        {column.id: cell for column, cell in zip(table.columns, row, strict=True) if column.unit not in MOVES}
        for row in table.rows
    ]
    if table.id == "idle" and rows and all(isinstance(cells["keys"], int) for cells in rows):
        yield "all", {"keys": sum(cells["keys"] for cells in rows if isinstance(cells["keys"], int))}
        return
    for row, cells in zip(table.rows, rows, strict=True):
        yield row[0], cells


def _close(cell: Cell, expected: Cell) -> bool:
    if isinstance(cell, Estimate) or isinstance(expected, Estimate):
        return True
    return cell == expected


@pytest.mark.slow
@pytest.mark.sampled("some_server")
@pytest.mark.parametrize("rule", ["-dbsize", "-info", "-config", "-hotkeys", "-cluster", "-client", "-command"])
async def test_what_the_pass_can_do_without(some_server: Server, tmp_path: Path, rule: str) -> None:
    if rule == "-hotkeys" and (some_server.product, some_server.version >= (8, 6)) != ("redis", True):
        pytest.skip("no such command")
    types = fill(some_server, some_server.client())
    target = target_of(some_server, user="some", password=user(some_server, rule))
    async with at_analysis(target, tmp_path, size=(150, 40)) as visitor:
        found = await ask(visitor)
        assert found.head.coverage.keys == found.head.coverage.total_keys == len(types)
        async for _ in panels(visitor):
            visitor.check_painted()
        if rule == "-hotkeys":
            assert any("+hotkeys|get" in reason for reason in found.hot.better)
            await visitor.press("4")
            await visitor.until_shown("HOTKEYS GET is denied")
        if rule == "-info":
            assert found.head.server.used_memory_bytes is None
        visitor.check_harmless()


async def test_a_node_of_a_cluster_that_does_not_tell_the_load_of_its_slots(
    cluster_node: Server, tmp_path: Path
) -> None:
    types = fill(cluster_node, cluster_node.client())
    target = target_of(cluster_node, user="some", password=user(cluster_node, "-cluster|slot-stats"))
    async with at_analysis(target, tmp_path, size=(150, 40)) as visitor:
        found = await ask(visitor)
        assert found.summary.root.stats.keys == sum(found.summary.slots.keys) == len(types)
        assert found.hot.slots == ()
        assert any("cluster|slot-stats" in reason for reason in found.hot.better), found.hot.better


async def test_without_the_right_to_scan_there_is_a_reason_and_a_way_on(valkey: Server, tmp_path: Path) -> None:
    types = fill(valkey, valkey.client())
    target = target_of(valkey, user="some", password=user(valkey, "-scan"))
    async with visiting(target, tmp_path, size=(120, 36)) as visitor:
        await visitor.connected()
        await open_analysis(visitor)
        await visitor.press("r")
        await visitor.until(lambda: analysis(visitor).status.progress.state is ScanState.FAILED, "the failure")
        await visitor.until_shown("The analysis failed", "SCAN")
        user(valkey)
        await ask(visitor)
        assert report(visitor).head.coverage.keys == len(types)
