"""Tables of thousands of rows: what is made of them for a screenful, and that slices come to the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from textual.geometry import Size

from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.tables.keys import expiry, no_ttl
from rtui.analysis.report.tables.table import Row, Table
from rtui.analysis.report.tables.totals import namespaces
from rtui.keyspace.slices import finish
from rtui.tui.analyse.panel import Charts, Panel
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.kit.table_rows import MEASURED_ROWS, TableRows, TableState
from tests.made_report import made_report
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import RUNNING, FixedAnalysis

WIDE = 5_000


def wide_report() -> Report:
    """A report with thousands of namespaces side by side, all with keys that never expire."""
    report = made_report()
    root = report.summary.root
    stats = structs.replace(root.children[0].stats, no_ttl_keys=3)
    below = tuple(
        Node(name=b"n%05d" % number, separator=b":", kind=NodeKind.LITERAL, stats=stats) for number in range(WIDE)
    )
    return structs.replace(report, summary=structs.replace(report.summary, root=structs.replace(root, children=below)))


REPORT = wide_report()


class LookedAt(Sequence[Row]):
    """Rows, and the indices of those that somebody wanted."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.wanted: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        assert isinstance(index, int)
        self.wanted.append(index)
        return self._rows[index]


def watched(table: Table) -> tuple[Table, list[int]]:
    """The same table, and the indices of its rows that are made from now on."""
    rows = LookedAt(table.rows)
    return replace(table, rows=rows), rows.wanted


@pytest.mark.parametrize("build", [namespaces, expiry, no_ttl])
def test_only_rows_that_are_shown_are_made(build: Any) -> None:
    table, made = watched(build(REPORT))
    rows = TableRows(table, TableState())
    assert len(rows) == WIDE
    assert rows.line_of(rows.identity(4_000)) == 4_000
    assert not made
    for line in range(30):
        rows.texts(line)
    assert made == list(range(30))


def test_of_a_newer_table_only_the_rows_that_are_measured_are_made() -> None:
    before = TableRows(namespaces(REPORT), TableState())
    table, made = watched(namespaces(REPORT))
    state = TableState(cursor_row=before.identity(4_321), has_moved=True)
    rows = finish(TableRows.in_slices(table, state, before, holds=True))
    assert rows.line_of(state.cursor_row) == 4_321
    assert made == list(range(MEASURED_ROWS))


def test_a_longer_filter_looks_only_at_rows_that_the_shorter_one_left() -> None:
    table, made = watched(namespaces(REPORT))
    everything = TableRows(table, TableState())
    first = finish(TableRows.in_slices(table, TableState(filter_text="n0123"), everything, holds=False))
    assert len(first) == 10
    made.clear()
    first._texts.clear()
    second = finish(TableRows.in_slices(table, TableState(filter_text="N01234"), first, holds=False))
    assert [second.texts(line)[0] for line in range(len(second))] == ["n01234:"]
    assert made == list(range(1_230, 1_240))
    shorter = finish(TableRows.in_slices(table, TableState(filter_text="n012"), second, holds=False))
    assert len(shorter) == 100


@given(
    st.sampled_from([None, "namespace", "keys", "memory", "types"]),
    st.booleans(),
    st.sampled_from(["", "n000", "9"]),
    st.booleans(),
)
def test_slices_come_to_the_same_rows(sort: str | None, is_reversed: bool, text: str, holds: bool) -> None:
    table = namespaces(SMALL)
    state = TableState(sort, is_reversed, text)
    before = TableRows(table, TableState("namespace", is_reversed=True))
    at_once = TableRows(table, state, before.order if holds else None)
    in_slices = finish(TableRows.in_slices(table, state, before, holds=holds))
    assert in_slices.order == at_once.order
    assert [in_slices.line_of(one) for one in in_slices.order] == list(range(len(at_once)))


def few(report: Report) -> Report:
    root = report.summary.root
    children = tuple(
        structs.replace(one, stats=structs.replace(one.stats, keys=number * 7 % 50))
        for number, one in enumerate(root.children[:120])
    )
    return structs.replace(
        report, summary=structs.replace(report.summary, root=structs.replace(root, children=children))
    )


SMALL = few(REPORT)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.id)
def test_a_chart_that_is_kept_is_the_one_that_would_be_drawn(panel: Panel[Any]) -> None:
    report, charts, space = made_report(), Charts(), Size(120, 30)
    for wanted in panel.tables(report, panel.initial):
        for subject in (None, *wanted.make().subjects):
            state = replace(panel.initial, subject=subject, table_id=wanted.id)
            size = Size(space.width, charts.height(panel, report, state, space))
            assert charts.drawn(panel, report, state, size) == panel.chart(report, state, size)


async def test_a_large_table_is_filtered_sorted_and_kept_in_place() -> None:
    source = FixedAnalysis(REPORT, RUNNING)
    async with analysing(source) as user:
        await user.until(lambda: len(user.screen.view.table.rows) == WIDE)
        await user.press("down", "down")
        wanted = user.subject
        source.put(structs.replace(REPORT, head=structs.replace(REPORT.head, made_at_s=REPORT.head.made_at_s + 1)))
        await user.until(lambda: user.screen.report is source.report)
        await user.press("down", "up")
        assert user.subject == wanted
        await user.press("slash", *"n0499")
        await user.until(lambda: len(user.screen.view.table.rows) == 10)
        assert user.rows[0] == "n04990:"
        await user.press("escape")
        await user.until(lambda: len(user.screen.view.table.rows) == WIDE)
        await user.press("greater_than_sign", "S")
        await user.until(lambda: user.screen.view.table.rows.texts(0)[0] == "n04999:")
