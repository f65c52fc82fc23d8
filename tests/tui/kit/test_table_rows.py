"""The rows of a table: sorted, filtered, in place; of thousands, what is made for a screenful, and in slices."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rich.cells import cell_len
from textual.geometry import Size

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Reason, Unknown
from rtui.analysis.formats.csv_and_json import table_csv, table_json
from rtui.analysis.formats.text import table_markdown
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.tables.keys import expiry, no_ttl
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Row, Table, Unit
from rtui.analysis.report.tables.totals import namespaces
from rtui.keyspace.slices import finish
from rtui.keyspace.text.display import Display, SafeText, display_text
from rtui.tui.analyse.panel import AnalysePanel, Charts
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.kit.layout import LEAST_REASON, LinePart, bar, fitted
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    clip,
    cut,
    cut_middle,
    cut_pieces,
    left,
    line_width,
    literal,
    pieces_width,
    right,
    styled,
    width_of,
    wrap,
    wrap_pieces,
)
from rtui.tui.kit.table_rows import (
    GAP_CELLS,
    MARGIN,
    MEASURED_ROWS,
    MIN_NAME_CELLS,
    ColumnOrder,
    TableRows,
    TableState,
    header_line,
    layout_table,
    table_line,
)
from tests.keyspace.text.test_display import TEXTS
from tests.made_report import made_report
from tests.tui.analyse.analysing import RUNNING, FixedAnalysis, analysing
from tests.tui.visiting import check_text

COLUMNS = (
    Column("key", "key", Unit.NAME),
    Column("memory", "bytes", Unit.BYTES, 8),
    Column("share", "share", Unit.SHARE, 5),
    Column("ttl", "TTL", Unit.DURATION, 8),
    Column("types", "types", Unit.MIX, 22),
    Column("note", "note", Unit.TEXT, 20),
)

NUMBERS: st.SearchStrategy[Cell] = st.one_of(
    st.integers(0, 10**15),
    st.builds(AtLeast, st.integers(0, 10**15)),
    st.builds(lambda value: Estimate(value * 0.9, value, value * 1.1), st.floats(0, 1e15)),
    st.sampled_from([None, Unknown(Reason.DENIED, "NOPERM"), Unknown(Reason.UNSUPPORTED)]),
)
ROWS: st.SearchStrategy[tuple[Cell, ...]] = st.tuples(
    st.binary(max_size=300),
    NUMBERS,
    st.floats(0, 1),
    st.one_of(NUMBERS, st.just(NO_TTL)),
    st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 10**9)), max_size=5).map(tuple),
    st.sampled_from(["", "its memory was not asked"]),
)
TABLES = st.lists(ROWS, max_size=30).map(lambda rows: table_of(tuple(rows)))


def table_of(rows: Sequence[tuple[Cell, ...]], *, subjects: bool = False) -> Table:
    return Table("t", "T", COLUMNS, tuple(rows), tuple(row[0] for row in rows) if subjects else ())  # type: ignore[misc]


def simple(*rows: tuple[bytes, Cell]) -> Table:
    return Table("t", "T", COLUMNS[:2], rows, tuple(key for key, _ in rows))


def keys(rows: TableRows) -> list[Cell]:
    return [rows.cells(line)[0] for line in range(len(rows))]


TABLE = simple((b"a", 5), (b"c", None), (b"B", AtLeast(9)), (b"d", Estimate(1, 7, 9)), (b"e", Unknown(Reason.DENIED)))


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (TableState(), [b"a", b"c", b"B", b"d", b"e"]),
        (TableState(is_reversed=True), [b"e", b"d", b"B", b"c", b"a"]),
        (TableState("memory"), [b"B", b"d", b"a", b"c", b"e"]),
        (TableState("memory", is_reversed=True), [b"a", b"d", b"B", b"c", b"e"]),
        (TableState("key"), [b"B", b"a", b"c", b"d", b"e"]),
        (TableState("key", is_reversed=True), [b"e", b"d", b"c", b"a", b"B"]),
        (TableState("no such column"), [b"a", b"c", b"B", b"d", b"e"]),
        (TableState(filter_text="b"), [b"B"]),
        (TableState(filter_text="5"), []),
    ],
    ids=lambda value: repr(value) if isinstance(value, TableState) else "",
)
def test_rows_are_sorted_and_filtered_and_what_is_unknown_comes_last(state: TableState, wanted: list[bytes]) -> None:
    assert keys(TableRows(TABLE, state)) == wanted


@given(TABLES, st.sampled_from([None, *(column.id for column in COLUMNS)]), st.booleans())
def test_no_row_is_lost_by_sorting_and_each_is_found_again(table: Table, sort: str | None, is_reversed: bool) -> None:
    rows = TableRows(table, TableState(sort, is_reversed))
    assert sorted(rows.index(line) for line in range(len(rows))) == list(range(len(table.rows)))
    assert [rows.line_of(rows.identity(line)) for line in range(len(rows))] == list(range(len(rows)))


@given(TABLES, TABLES)
def test_rows_that_are_held_keep_their_order_and_new_ones_come_behind(before: Table, after: Table) -> None:
    held = TableRows(before, TableState()).order
    rows = TableRows(after, TableState("memory"), held)
    assert sorted(rows.index(line) for line in range(len(rows))) == list(range(len(after.rows)))
    order = [held.index(identity) for identity in rows.order if identity in held]
    assert order == sorted(order)
    assert [identity in held for identity in rows.order] == sorted(
        (identity in held for identity in rows.order), reverse=True
    )


@given(TABLES, st.integers(1, 240), st.sampled_from([None, "types", "memory"]), st.booleans())
def test_lines_have_the_same_width_in_every_row_and_are_harmless(
    table: Table, width: int, sort: str | None, is_marked: bool
) -> None:
    rows = TableRows(table, TableState(sort))
    wants = [max(map(len, texts)) for texts in zip(*map(rows.texts, range(len(rows))), strict=True)]
    layout = layout_table(table, width, sort, wants)
    header = header_line(table, layout, ColumnOrder(sort) if sort else None)
    if width >= MIN_NAME_CELLS + 2 * MARGIN:
        assert line_width(header) <= width
    for line in range(len(rows)):
        painted = table_line(rows.cells(line), rows.texts(line), table, layout, is_marked=is_marked)
        assert line_width(painted) == line_width(header)
        check_text("".join(span.text for span in painted))


@given(TABLES, st.integers(40, 240), st.sampled_from([None, "types", "memory"]))
def test_no_text_is_cut_while_columns_beside_it_are_empty(table: Table, width: int, sort: str | None) -> None:
    rows = TableRows(table, TableState(sort))
    texts = map(rows.texts, range(len(rows)))
    wants = [max(map(width_of, column)) for column in zip(*texts, strict=True)] or [0] * len(COLUMNS)
    layout = layout_table(table, width, sort, wants)
    used = MARGIN + sum(shown.whole_cells + GAP_CELLS for shown in layout.columns) - GAP_CELLS
    cut = [shown for shown in layout.columns if shown.cells < wants[shown.index]]
    assert not cut or used >= width - MARGIN
    assert not cut or not any(shown.bar_cells for shown in layout.columns)


def test_columns_go_from_the_right_and_the_one_sorted_by_stays() -> None:
    table = table_of([(b"key", 1, 0.5, 3.0, ((b"hash", 1),), "")])
    assert [shown.index for shown in layout_table(table, 50).columns] == [0, 1, 2]
    assert [shown.index for shown in layout_table(table, 56, "types").columns] == [0, 4]
    assert len(layout_table(table, 200).columns) == len(COLUMNS)


def test_a_title_is_found_by_its_cells() -> None:
    table = table_of([(b"key", 1, 0.5, 3.0, ((b"hash", 1),), "")])
    layout = layout_table(table, 120)
    text = "".join(span.text for span in header_line(table, layout, None))
    for shown in layout.columns:
        assert layout.column_at(text.index(table.columns[shown.index].title)) == shown.index
    assert layout.column_at(400) is None


@given(TABLES)
def test_files_hold_every_row_and_what_they_show_is_harmless(table: Table) -> None:
    rows = list(csv.reader(io.StringIO(table_csv(table))))
    named = [name for name in rows[0] if not name.endswith(("_quoted", "_low", "_high", "_at_least"))]
    assert named == ["key", "memory_bytes", "share", "ttl_ms", "types", "note"]
    assert len(rows) == 1 + len(table.rows)
    check_text("".join(map("".join, rows)))
    assert not any(cell.startswith(("=", "+", "-", "@")) and cell != "-1" for row in rows for cell in row)
    assert len(json.loads(table_json(table))) == len(table.rows)
    lines = table_markdown(table).splitlines()
    assert len(lines) == 2 + len(table.rows)
    check_text("".join(lines))


def test_unknown_is_null_and_inexact_is_said_in_json() -> None:
    records = json.loads(table_json(TABLE))
    assert [record["memory_bytes"] for record in records] == [
        5, None, {"value": 9, "at_least": True}, {"value": 7, "low": 1, "high": 9}, None,
    ]  # fmt: skip
    unbounded = Table("t", "t", COLUMNS[1:2], ((Estimate(5, 5, inf),),))
    assert json.loads(table_json(unbounded), parse_constant=None) == [
        {"memory_bytes": {"value": 5, "low": 5, "high": None}}
    ]
    assert (records[0]["key"], records[0]["key_quoted"]) == ("a", '"a"')
    mixed = Table("t", "t", (COLUMNS[0], COLUMNS[4]), ((b"\xff", ((b"hash", 1), (b"\xfe", 2))),))
    assert list(json.loads(table_json(mixed))[0].values()) == [None, '"\\xff"', {"hash": 1, '"\\xfe"': 2}]


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
def test_a_chart_that_is_kept_is_the_one_that_would_be_drawn(panel: AnalysePanel[Any]) -> None:
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


texts = st.text(max_size=60).map(display_text)
lines = st.lists(st.builds(Span, texts, st.sampled_from(Role)), max_size=5).map(tuple)


@given(texts, st.integers(0, 40))
def test_fitted_text_takes_the_cells_it_was_given(text: str, cells: int) -> None:
    safe = display_text(text)
    assert width_of(cut(safe, cells)) <= cells
    assert width_of(cut_middle(safe, cells)) <= cells
    assert width_of(left(safe, cells)) == cells
    assert width_of(right(safe, cells)) == cells


def test_a_long_name_keeps_its_end() -> None:
    assert cut_middle(display_text("shop:user:1234567890:profile"), 16) == "shop:use…profile"


@given(lines, st.integers(0, 60))
def test_a_clipped_line_fits(line: Line, cells: int) -> None:
    assert line_width(clip(line, cells)) <= cells


@given(texts, st.integers(4, 40), st.integers(1, 6))
def test_wrapped_text_fits_and_loses_nothing_unsaid(text: str, cells: int, most: int) -> None:
    safe = display_text(text)
    found = wrap(safe, cells, most)
    assert 1 <= len(found) <= most
    assert all(width_of(line) <= cells for line in found)
    assert "".join(found) == safe or "…" in found[-1]


@given(TEXTS, st.integers(1, 40), st.integers(1, 6))
def test_no_piece_of_a_value_is_broken(text: str, cells: int, most: int) -> None:
    pieces = Display().value_text(text, limit=400)
    lines = wrap_pieces(pieces, cells, most)
    assert len(lines) <= most
    for line in lines:
        assert pieces_width(line) <= cells
        assert line_width(styled(line)) == pieces_width(line) == cell_len("".join(piece.text for piece in line))
        assert {piece for piece in line if "\\" in piece.text and len(piece.text) > 1} <= {*pieces}
    if len(lines) < most and all(width_of(piece.text) <= cells for piece in pieces):
        assert [piece for line in lines for piece in line] == pieces
    for in_middle in (False, True):
        shown = cut_pieces(pieces, cells, in_middle=in_middle)
        assert pieces_width(shown) <= cells
        assert (shown == pieces) is (pieces_width(pieces) <= cells)


def test_escapes_are_marked_and_a_backslash_is_not() -> None:
    line = styled(Display().value(b"a\\u202e\xe2\x80\xaeb\x1b"), Role.HASH)
    assert line == (
        Span(SafeText("a\\u202e"), Role.HASH),
        Span(SafeText("\\u202e"), Role.ESCAPE),
        Span(SafeText("b"), Role.HASH),
        Span(SafeText("␛"), Role.ESCAPE),
    )


bar_texts = st.text(max_size=60).map(display_text)
pieces = st.lists(
    st.builds(LinePart, st.integers(1, 4), st.tuples(bar_texts.map(Span)), st.integers(0, 30)), max_size=8
)


@given(pieces, st.integers(0, 120))
def test_pieces_stay_within_the_line(some: list[LinePart], cells: int) -> None:
    assert line_width(fitted(some, cells)) <= cells


def shown(cells: int, reason: str) -> str:
    line = fitted(
        [
            LinePart(1, (Span(literal("76 keys")),)),
            LinePart(5, (Span(literal("took 8ms")),)),
            LinePart(1, (Span(SafeText(reason), Role.WARN),), LEAST_REASON),
        ],
        cells,
    )
    return "".join(span.text for span in line)


def test_a_long_reason_is_cut_and_not_left_out() -> None:
    reason = "the server closed the connection while a reply was read"
    assert shown(80, reason) == f"76 keys · took 8ms · {reason}"
    assert shown(70, reason) == f"76 keys · {reason}"
    assert shown(45, reason) == "76 keys · the server closed the connection w…"
    assert shown(30, reason) == "76 keys · took 8ms"


@given(st.floats(-1, 2), st.integers(1, 40))
def test_a_bar_fills_its_cells_and_grows_with_the_fraction(fraction: float, cells: int) -> None:
    filled, blank = bar(fraction, cells)
    assert len(filled) + len(blank) == cells
    assert len(bar(min(fraction + 0.2, 2), cells)[0]) >= len(filled)
