from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from rtui.analysis.report.document import Node, NodeKind, Stats
from rtui.analysis.report.tables.cells import plain, weight_of
from rtui.analysis.report.tables.table import path_of
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse import memory_panel as memory
from rtui.tui.analyse.memory_panel import (
    Look,
    MemoryPanel,
    MemoryState,
    block_at,
    icicle_lines,
    icicle_rows,
    row_heights,
)
from rtui.tui.kit.styled_text import Role, line_width
from tests.made_report import denied_report, made_report
from tests.tui.visiting import check_text

NAMES = st.one_of(
    st.sampled_from([b"a", b"shop", b"{id}", b"\x1b[31m", "日本".encode(), b"\xff\xfe", b""]), st.binary()
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
