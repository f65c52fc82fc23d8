"""Compare with an earlier report, beside the figures of every table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.formats import TABLE_FORMATS
from rtui.analysis.report.comparison import Fate, compare
from rtui.analysis.report.document import CoverageKind, Node, NodeKind, Report, Step
from rtui.analysis.report.readings import FigureChange, reading
from rtui.analysis.report.tables.changes import COMPARED, LISTED, ComparedReports, change_cell, differences, fate_of
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import UNCLEAR, AtLeast, Cell, Column, Paths, Table, Unit, cell_text
from rtui.analysis.report.tables.totals import namespaces
from rtui.keyspace.text.display import Display
from tests.made_report import earlier_report, estimate_report, made_report, partial_report, stats


def report_of(*children: Node, kind: CoverageKind = CoverageKind.EXACT) -> Report:
    report = made_report()
    keys, memory = (sum(getattr(one.stats, name) or 0 for one in children) for name in ("keys", "memory_bytes"))
    top = Node(b"", b"", NodeKind.LITERAL, stats(keys, memory, 0, (b"string", keys)), children)
    coverage = replace(report.head.coverage, kind=kind, keys=keys)
    return replace(report, head=replace(report.head, coverage=coverage), summary=replace(report.summary, root=top))


def leaf(name: bytes, keys: int, kind: NodeKind = NodeKind.LITERAL) -> Node:
    return Node(name, b":", kind, stats(keys, keys * 100, keys // 2, (b"string", keys)))


def changes_of(before: Report, after: Report, column: str = "keys") -> dict[Cell, Cell]:
    """The changes of a column by the first cell of the row."""
    made = ComparedReports(before, after).table(namespaces(after), namespaces(before))
    at = made.column(f"{column}_change")
    return {row[0]: row[at] for row in made.rows}


def test_namespaces_grow_shrink_and_come() -> None:
    before = report_of(leaf(b"a", 10), leaf(b"b", 10), leaf(b"c", 10))
    after = report_of(leaf(b"a", 15), leaf(b"b", 7), leaf(b"c", 10), leaf(b"d", 4))
    assert changes_of(before, after) == {b"a:": 5, b"b:": -3, b"c:": 0, b"d:": 4}
    assert changes_of(before, after, "memory") == {b"a:": 500, b"b:": -300, b"c:": 0, b"d:": 400}


def test_what_may_have_been_counted_elsewhere_is_not_new() -> None:
    many = leaf(b"<*>", 100, NodeKind.PATTERN)
    assert changes_of(report_of(many), report_of(leaf(b"a", 15), many))[b"a:"] == UNCLEAR


def test_a_partial_report_has_at_least_so_much() -> None:
    before, after = report_of(leaf(b"a", 10)), report_of(leaf(b"a", 30), kind=CoverageKind.PARTIAL)
    assert changes_of(before, after) == {b"a:": AtLeast(20)}
    assert changes_of(before, after, "share_of_memory") == {b"a:": UNCLEAR}
    assert changes_of(after, before) == {b"a:": AtLeast(-20)}


def test_what_was_denied_is_unknown() -> None:
    without = leaf(b"a", 10)
    without = replace(without, stats=replace(without.stats, memory_bytes=None, share_memory=None))
    assert changes_of(report_of(without), report_of(leaf(b"a", 12)), "memory") == {b"a:": None}


@given(*[st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000)) for _ in range(2)])
def test_a_change_is_one_only_where_intervals_do_not_overlap(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    before, after = (Estimate(*map(float, sorted(bounds))) for bounds in (one, other))
    cell = change_cell(FigureChange(reading(before), reading(after)))
    if before.low == before.high == after.low == after.high:
        assert cell == 0
    elif before.high < after.low or after.high < before.low:
        sign = 1 if before.high < after.low else -1
        value = cell.value if isinstance(cell, Estimate) else cell
        assert isinstance(value, int | float)
        assert value * sign > 0
        assert not isinstance(cell, Estimate) or cell.low <= cell.value <= cell.high
    else:
        assert cell == UNCLEAR


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [
        (1204, Unit.KEYS, "▲ 1,204"),
        (-3 << 20, Unit.BYTES, "▼ 3.00 MiB"),
        (0, Unit.KEYS, "="),
        (0.025, Unit.SHARE, "▲ 2.5 pt"),
        (-0.25, Unit.SHARE, "▼ 25 pt"),
        (0.0001, Unit.SHARE, "▲ <0.1 pt"),
        (AtLeast(20), Unit.KEYS, "▲ ≥ 20"),
        (AtLeast(-20), Unit.KEYS, "▼ ≥ 20"),
        (Estimate(-30.0, -20.0, -10.0), Unit.KEYS, "▼ ≈ 20"),
        (UNCLEAR, Unit.KEYS, "≈"),
        (None, Unit.KEYS, "–"),
    ],
)
def test_the_text_of_a_change(cell: Cell, unit: Unit, expected: str) -> None:
    column = Column("keys_change", "▲▼", unit, is_change=True)
    assert cell_text(cell, column) == expected
    assert cell_text(cell, column, Display(ascii_only=True)).isascii()


def test_changes_stand_beside_every_figure_that_can_be_compared() -> None:
    report = made_report()
    changes = ComparedReports(report, report)
    compared = 0
    for now, before in zip(tables(report), tables(report), strict=True):
        made = changes.table(now, before)
        names = [column.id for column in made.columns]
        if now.id == "cliffs":
            assert made is now
        for column in () if made is now else now.columns:
            assert (f"{column.id}_change" in names) is (column.id in COMPARED)
        is_change = [column.is_change for column in made.columns]
        found = [cell for row in made.rows for cell, is_one in zip(row, is_change, strict=True) if is_one]
        assert set(found) <= {0, None, UNCLEAR}
        compared += found.count(0)
        for ending, write in TABLE_FORMATS.items():
            assert bool(write(made)) is (bool(made.rows) or ending != ".jsonl")  # else a line for each row, so none
    assert compared > 50


@pytest.mark.parametrize("other", [estimate_report(), partial_report()], ids=["estimate", "partial"])
def test_the_same_keyspace_seen_less_well_has_no_changes(other: Report) -> None:
    for before, after in ((made_report(), other), (other, made_report())):
        found = changes_of(before, after) | changes_of(before, after, "memory")
        assert set(found.values()) == {UNCLEAR}


def test_other_separators_and_depths_compare_as_far_as_both_go() -> None:
    before, after = report_of(leaf(b"a", 10)), report_of(leaf(b"a", 15))
    for scope in ({"separators": (b"/",)}, {"depth": 0}):
        other = replace(before, head=replace(before.head, scope=replace(before.head.scope, **scope)))
        found = ComparedReports(other, after)
        assert found.namespace((Step(b"a", b":", NodeKind.LITERAL),)) is None
        assert found.namespace(()) is not None
        assert isinstance(found.table(namespaces(after), namespaces(other)), Table)


@given(st.permutations([b"a", b"b", b"c", b"d", b"e"]), st.integers(0, 5))
def test_rows_of_namespaces_are_found_by_their_paths(names: list[bytes], count: int) -> None:
    now = namespaces(report_of(*(leaf(name, at + 1) for at, name in enumerate(names))))
    before = namespaces(report_of(*(leaf(name, 9) for name in names[:count])))
    assert isinstance(before.subjects, Paths)
    for at in range(len(now.rows)):
        subject = now.subject(at)
        assert isinstance(subject, tuple)
        line = before.subjects.line(subject)
        expected = [row for row in range(len(before.rows)) if before.subject(row) == subject]
        assert line == (expected[0] if expected else None)
        assert before.subjects.line((*subject, *subject)) is None


def test_only_the_rows_that_are_shown_are_made_of_an_earlier_report(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(*(leaf(b"%d" % at, 10) for at in range(1000)))
    now, before = namespaces(report), namespaces(report)
    asked: list[int] = []
    path_at = Paths.__getitem__

    def noting(self: Paths, index: int) -> object:
        asked.append(index)
        return path_at(self, index)

    monkeypatch.setattr(Paths, "__getitem__", noting)
    made = ComparedReports(report, report).table(now, before)
    assert not asked
    assert made.rows[700][made.column("keys_change")] == 0
    assert set(asked) == {700}


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
