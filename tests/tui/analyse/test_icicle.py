"""The icicle of memory by namespace, and what its colours mean."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.geometry import Size

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import ColumnReport, ColumnState, Node, NodeKind, Report, Stats
from rtui.analysis.report.tables.cells import plain, weight_of
from rtui.analysis.report.tables.table import path_of
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse import memory_panel as memory
from rtui.tui.analyse.memory_panel import (
    NO_COLOUR,
    Colouring,
    Look,
    MemoryPanel,
    MemoryState,
    block_at,
    icicle_lines,
    icicle_rows,
    legend,
    look_of,
    row_heights,
)
from rtui.tui.kit.styled_text import HEAT, Line, Role, line_width
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis
from tests.tui.visiting import check_text

NAMES = st.one_of(
    st.sampled_from([b"a", b"shop", b"<id>", b"\x1b[31m", "日本".encode(), b"\xff\xfe", b""]), st.binary()
)


def node(name: bytes, children: tuple[Node, ...], keys: int) -> Node:
    total = keys if not children else sum(int(plain(child.stats.keys)) for child in children)
    return Node(name, b":" if children else b"", NodeKind.LITERAL, Stats(keys=total, share_keys=0.0), children)


LEAVES = st.builds(lambda name, keys: node(name, (), keys), NAMES, st.integers(0, 10**9))
TREES = st.recursive(
    LEAVES, lambda below: st.builds(lambda name, kids: node(name, tuple(kids), 0), NAMES, st.lists(below, max_size=5))
)


def weigh(of: Node) -> float:
    return plain(of.stats.keys)


@given(TREES, st.integers(1, 200), st.integers(1, 12))
def test_tiles_lie_under_what_holds_them_and_never_over_each_other(root: Node, width: int, levels: int) -> None:
    rows = icicle_rows((root,), width, levels, weigh)
    assert 1 <= len(rows) <= levels
    for above, row in pairwise(rows):
        ends = [0]
        for block in row:
            assert ends[-1] <= block.start < block.end
            ends.append(block.end)
            parent = next(one for one in above if one.start <= block.start and block.end <= one.end)
            assert block.nodes[: len(parent.nodes)] == parent.nodes


@given(TREES, st.integers(1, 200), st.integers(1, 12))
def test_lines_fill_the_area_exactly_and_are_harmless(root: Node, width: int, height: int) -> None:
    rows = icicle_rows((root,), width, height, weigh)
    heights = row_heights(len(rows), height)
    assert sum(heights) <= height
    look = Look(Role.HEAT_2, SafeText("20% no TTL"))
    lines = icicle_lines(
        rows, Size(width, height), lambda _node: look, lambda _node: SafeText("1.2G"), selected=rows[-1][0].path
    )
    assert len(lines) == sum(heights)
    for line in lines:
        assert line_width(line) == width
        check_text("".join(span.text for span in line))


@given(TREES, st.integers(1, 80), st.integers(1, 8))
def test_every_cell_of_a_tile_finds_it(root: Node, width: int, height: int) -> None:
    rows = icicle_rows((root,), width, height, weigh)
    heights = row_heights(len(rows), height)
    top = 0
    for row, lines in zip(rows, heights, strict=True):
        for block in row:
            assert block_at(rows, height, block.start, top) is block
            assert block_at(rows, height, block.end - 1, top + lines - 1) is block
        top += lines
    assert block_at(rows, height, 0, top) is None


def test_width_is_bytes_to_the_cell() -> None:
    report = made_report()
    rows = icicle_rows((report.summary.root,), 174, 2, weight_of(report))
    assert [block.end - block.start for block in rows[1]][:2] == [137, 18]


def test_width_is_keys_where_bytes_are_not_known() -> None:
    report = denied_report()
    rows = icicle_rows((report.summary.root,), 100, 2, weight_of(report))
    assert [block.end - block.start for block in rows[1]] == [75, 4, 15, 5, 1]


def test_a_namespace_with_nothing_beside_it_is_one_tile() -> None:
    report = made_report()
    rows = icicle_rows((report.summary.root,), 120, 6, weight_of(report))
    assert [block.levels for block in rows[2]] == [3, 2, 4]


def test_what_is_zoomed_into_and_gone_in_the_next_report_is_no_harm() -> None:
    report = made_report()
    gone = MemoryState(path=path_of((report.summary.root, node(b"gone", (), 1))))
    assert memory.zoomed_nodes(report, gone) == (report.summary.root,)
    assert MemoryPanel().chart(report, gone, Size(80, 6))
    assert MemoryPanel().tables(report, gone)[0].make().rows
    assert MemoryPanel().zoomed_out(report, gone) is None


REPORTS = [made_report(), denied_report(), estimate_report(), partial_report(), empty_report()]


def said(line: Line) -> str:
    return "".join(span.text for span in line).strip()


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_never_has_a_lower_colour(one: float, other: float) -> None:
    look = look_of(made_report(), Colouring.NO_TTL)
    low, high = (
        HEAT.index(look(Stats(keys=1, share_keys=1.0, no_ttl_share=share)).role) for share in sorted((one, other))
    )
    assert low <= high


@pytest.mark.parametrize(
    ("share", "level", "meaning"),
    [(0.0, 0, "0% no TTL"), (0.004, 0, "<1% no TTL"), (0.01, 1, "1% no TTL"), (0.1, 2, "10% no TTL"),
     (0.5, 3, "50% no TTL"), (0.9, 4, "90% no TTL"), (1.0, 4, "100% no TTL"),
     (Estimate(0.4, 0.5, 0.6), 3, "≈50% no TTL")],
)  # fmt: skip
def test_the_share_without_ttl(share: float, level: int, meaning: str) -> None:
    look = look_of(made_report(), Colouring.NO_TTL)(Stats(keys=10, share_keys=1.0, no_ttl_share=share))
    assert look == (HEAT[level], meaning)


def test_what_was_not_asked_has_no_colour() -> None:
    bare = Stats(keys=10, share_keys=1.0)
    for colouring in Colouring:
        assert look_of(made_report(), colouring)(bare) is NO_COLOUR


def test_the_type_of_most_keys() -> None:
    look = look_of(made_report(), Colouring.TYPE)
    one = Stats(keys=10, share_keys=1.0, types=((b"hash", 10),))
    assert look(one) == (Role.FILL_HASH, "hash")
    assert look(replace(one, types=((b"set", 8), (b"hash", 2)))) == (Role.FILL_SET, "set 80%")
    assert look(replace(one, types=((b"\x1b[31m", 10),))) == (Role.FILL_OTHER, "␛[31m")


def test_counters_stand_for_idle_times_where_the_server_keeps_them() -> None:
    made = made_report()
    root = replace(made.summary.root, stats=replace(made.summary.root.stats, idle=None, frequency=(5, 5)))
    report = replace(made, summary=replace(made.summary, root=root))
    assert look_of(report, Colouring.IDLE)(root.stats).meaning.endswith("freq 0")
    assert "cold keys (freq 0)" in said(legend(report, Colouring.IDLE, 120))


@pytest.mark.parametrize("colouring", Colouring)
@pytest.mark.parametrize("report", REPORTS, ids=["made", "denied", "estimate", "partial", "empty"])
@pytest.mark.parametrize("width", [10, 40, 78, 198])
def test_the_legend_fits_and_says_something(report: Report, colouring: Colouring, width: int) -> None:
    line = legend(report, colouring, width)
    assert 0 < line_width(line) <= width
    assert said(line)
    check_text(said(line))


@pytest.mark.parametrize(
    ("state", "text"),
    [(ColumnState.DENIED, "denied"), (ColumnState.NOT_ASKED, "not asked"), (ColumnState.UNSUPPORTED, "not available")],
)
def test_why_there_is_no_colour(state: ColumnState, text: str) -> None:
    made = empty_report()
    report = replace(made, head=replace(made.head, columns={"ttl": ColumnReport(state, "so it is")}))
    assert said(legend(report, Colouring.NO_TTL, 120)) == f"no colour: TTL {text} (so it is)"


def test_a_low_chart_leaves_the_meaning_out() -> None:
    assert len(MemoryPanel().chart(made_report(), MemoryState(), Size(80, 3))) <= 3
    assert "keys without TTL" in said(MemoryPanel().chart(made_report(), MemoryState(), Size(80, 8))[-1])


async def test_a_key_switches_what_the_colours_mean() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.until_shown("keys without TTL", "34% no TTL")
        await user.press("v")
        await user.until_shown("keys idle for more than 30 days", "30% idle > 30d")
        await user.press("v")
        await user.until_shown("type of most keys", "string 67%")
        await user.press("v")
        await user.until_shown("keys without TTL")
