"""Commands of the pass that the user is not allowed, one at a time: panels say which, and lack nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import Unknown
from rtui.analysis.report.document import ColumnState, Report
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import AtLeast, Cell, Table, Unit
from rtui.server.scan.progress import ScanState
from tests.server.every_type import fill, has_no_touch
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.visiting_analysis import analysis, ask, at_analysis, open_analysis, panels, report
from tests.tui.test_denied_commands import user
from tests.tui.visiting import visiting

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
