"""The table of what differs between two reports."""

from __future__ import annotations

from msgspec import structs

from rtui.analysis.report.comparison import Fate, compare
from rtui.analysis.report.tables.changes import LISTED, differences, fate_of
from rtui.analysis.report.tables.table import AtLeast, cell_text
from tests.made_report import earlier_report, made_report, partial_report


def test_it_lists_what_the_comparison_has_the_largest_first() -> None:
    before, after = earlier_report(), made_report()
    table = differences(before, after)
    wanted = {one.raw: one.fate for one in compare(before, after).root.outlined() if one.path and one.fate in LISTED}
    assert {row[0]: fate_of(row) for row in table.rows} == wanted
    assert {Fate.CAME, Fate.WENT, Fate.GREW} <= set(wanted.values())
    changes = [row[table.column("memory_change")] for row in table.rows]
    sizes = [abs(change) for change in changes if isinstance(change, int | float)]
    assert sizes == sorted(sizes, reverse=True)


def test_what_went_is_gone_and_what_came_was_not_there() -> None:
    table = differences(earlier_report(), made_report())
    rows = {fate_of(row): dict(zip([column.id for column in table.columns], row, strict=True)) for row in table.rows}
    assert rows[Fate.WENT]["keys"] == 0
    assert rows[Fate.WENT]["keys_change"] == -675_000
    assert rows[Fate.CAME]["keys"] == rows[Fate.CAME]["keys_change"] == 750_000


def test_nothing_differs_from_itself() -> None:
    table = differences(made_report(), made_report())
    assert len(table.rows) == 0
    assert "same" in table.note


def test_what_a_partial_report_has_is_at_least_so_much() -> None:
    table = differences(earlier_report(), partial_report())
    keys = [row[table.column("keys")] for row in table.rows]
    assert all(isinstance(cell, AtLeast) or cell is None for cell in keys)
    assert "partial" in table.note
    for row in table.rows:
        assert all(cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True))


def test_an_empty_report_has_lost_everything() -> None:
    report = made_report()
    root = structs.replace(report.summary.root, children=())
    empty = structs.replace(report, summary=structs.replace(report.summary, root=root))
    assert {fate_of(row) for row in differences(report, empty).rows} == {Fate.WENT}
