"""The Findings panel, and the icicle of memory by namespace."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from textual.geometry import Size

from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.contents import COLUMNS, findings, findings_table
from rtui.analysis.findings.finding import Found
from rtui.analysis.formats import written
from rtui.analysis.formats.findings import findings_page
from rtui.analysis.report.document import (
    ColumnReport,
    ColumnState,
    Coverage,
    CoverageKind,
    Node,
    NodeKind,
    Report,
    Stats,
)
from rtui.analysis.report.tables.cells import plain, so_far, weight_of
from rtui.analysis.report.tables.table import path_of
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import RULES, RuleLevels, Severity
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse import memory_panel as memory
from rtui.tui.analyse.findings_panel import FindingsPanel, FindingsState, LatestFindings
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
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.kit.command import RULES_PAGE, HelpSubject
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import HEAT, Line, Role, line_width
from tests.analysis.findings.test_comparison import AFTER, BEFORE, LOCKS
from tests.conftest import known
from tests.made_report import MADE_AT_S, denied_report, empty_report, estimate_report, made_report, partial_report
from tests.tui.analyse.analysing import FixedAnalysis, analysing
from tests.tui.analyse.test_behind_rows import Followed
from tests.tui.visiting import check_text

PANEL = FindingsPanel()
SMALL = Size(80, 10)
QUIET = RuleLevels(dict.fromkeys(RULES, Severity.OFF))


def state_of(report: Report, levels: RuleLevels | None = None, **chosen: Any) -> FindingsState:
    return FindingsState(latest=LatestFindings(found=findings(report, levels)), **chosen)


def texts(report: Report, state: FindingsState, size: Size = SMALL) -> list[str]:
    return ["".join(span.text for span in line) for line in PANEL.chart(report, state, size)]


def found_in(report: Report) -> Found:
    return known(state_of(report).latest.found)


async def test_the_first_panel() -> None:
    source = FixedAnalysis(made_report())
    async with analysing(source, settings=SettingsFile()) as user:
        await user.until_shown("[1 Findings]", "1 error, 11 warnings", "114,000 keys of shop:session expire")
        await user.until_shown("1,200 locks of lock: have no TTL", "in:lock: ttl:none")
        await user.press("down")
        await user.until_shown("random time to the TTL", "in:shop:session: expires:2026-09-21T14:31:20..14:33:20")
        await user.press("end")
        await user.until_shown("36,600 locks of lock: have more than 10m left", "and renew it")
        assert user.screen.help_subject == HelpSubject(RULES_PAGE, "lock-long")
        before = user.subject
        source.put(partial_report(), ScanState.RUNNING)
        user.screen.flush()
        await user.until_shown("≥ 36,600 locks")
        assert user.subject == before
        await user.press("slash", *"TTL, only", "enter")
        await user.until(lambda: len(user.rows) == 1)
        await user.press("y")
        await user.until(
            lambda: "redis-cli --scan --pattern 'shop:cache:product:detail:*'" in user.screen.app.clipboard
        )
        await user.press("escape", "tab", "shift+tab")
        await user.until_shown("1 error, 11 warnings")
        source.put(empty_report(), ScanState.DONE)
        user.screen.flush()
        await user.until_shown("is empty")


@pytest.mark.parametrize("key", ["enter", "K", "click"])
async def test_a_row_leads_to_its_keys(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with analysing(FixedAnalysis(made_report()), settings=SettingsFile()) as user:
        await user.until_shown("expiry-cliff")
        followed = Followed(user.screen, monkeypatch)
        if key == "click":
            line = next(at for at, text in enumerate(texts(made_report(), user.screen.view.state, Size(120, 14)))
                        if text.strip().startswith("query"))  # fmt: skip
            await user.pilot.click("#chart", offset=(20, line))
        else:
            await user.press("down", key)
        wanted = "in:lock: ttl:none" if key == "click" else "in:shop:session: expires:2026-09-21T14:31:20..14:33:20"
        await user.until(lambda: followed.found == [wanted])


async def test_severities_of_the_registry() -> None:
    async with analysing(FixedAnalysis(made_report()), settings=SettingsFile()) as user:
        user.screen.findings.levels = QUIET
        user.screen.findings._report = None
        user.screen._shown = None
        user.screen.flush()
        await user.until_shown("No problems found (0 rules")


async def test_since_an_earlier_report(tmp_path: Path) -> None:
    kept = KeptReports("10.0.0.5:6379", 0, tmp_path)
    kept.keep(structs.replace(BEFORE, head=structs.replace(BEFORE.head, made_at_s=MADE_AT_S - 60)))
    async with analysing(FixedAnalysis(AFTER, kept=kept), settings=SettingsFile()) as user:
        user.screen.findings.levels = LOCKS
        user.screen.clock = lambda: MADE_AT_S + 60
        await user.press("D")
        await user.until_shown("4 warnings, 1 new, 1 gone", "new since the earlier report")
        rows = [user.screen.view.table.rows.cells(line)[:4] for line in range(5)]
        assert [row[1] for row in rows] == ["new", "grew", "", "less", "gone"]
        assert [row[3] for row in rows] == [700, 600, 500, 400, 0]
        await user.press("down")
        await user.until_shown("grew since the earlier report (keys 5 → 6, +20%; memory 500 B → 600 B, +20%)")
        await user.press("end")
        await user.until_shown("gone since the earlier report", "in:gone-lock: ttl:none")
        assert user.screen.view.panel.behind_row(user.screen.view.state, 4) is not None
        await user.press("D")
        await user.until(lambda: "gone" not in user.text)
        assert [column.id for column in user.screen.view.table.rows.table.columns] == [column.id for column in COLUMNS]


def test_nothing_is_wrong() -> None:
    state = state_of(empty_report())
    (table,) = PANEL.tables(empty_report(), state)
    assert len(table.make().rows) == 0
    assert table.empty == f"No problems found ({len(found_in(empty_report()).checked)} rules)"
    assert "expiry-cliff, ttl-mixed" in texts(empty_report(), state)[1]


def test_before_rules_have_looked() -> None:
    (table,) = PANEL.tables(made_report(), FindingsState())
    assert (len(table.make().rows), table.empty) == (0, "Looking for problems…")
    assert texts(made_report(), FindingsState()) == []
    assert PANEL.behind_row(FindingsState(), 0) is None
    assert not PANEL.copies(FindingsState())


def test_what_could_not_be_judged_is_said() -> None:
    table = findings_table(found_in(denied_report()))
    assert table.note.startswith("not checked: key-big, strings-as-hash, because memory is denied: NOPERM")
    levels = RuleLevels(dict.fromkeys(RULES, Severity.OFF) | {"key-big": Severity.WARN})
    quiet = state_of(denied_report(), levels)
    lines = texts(denied_report(), quiet)
    assert bool(known(quiet.latest.found).findings) or any("key-big could not be checked" in line for line in lines)


@pytest.mark.parametrize("make", [made_report, partial_report, estimate_report, denied_report])
@pytest.mark.parametrize("size", [Size(80, 10), Size(120, 15), Size(200, 15), Size(30, 4), Size(200, 1)], ids=str)
def test_what_is_said_fits(make: Any, size: Size) -> None:
    report = make()
    found = found_in(report)
    for name in found.identities:
        lines = texts(report, state_of(report, subject=name), size)
        assert 0 < len(lines) <= size.height
        assert all(len(line) <= size.width for line in lines)
        if size.height >= 10:
            assert {line.split()[0] for line in lines} >= {"why", "do", "query", "command"}


def test_each_finding_has_a_name_of_its_own() -> None:
    found = found_in(made_report())
    names = Found((*found.findings, *found.findings), (), (), found.checked).identities
    assert len(set(names)) == len(names)
    assert names[: len(found.findings)] == found.identities


@given(st.integers(0, 9), st.integers(0, 200), st.integers(0, 30))
def test_any_place_of_the_detail_can_be_clicked(row: int, x: int, y: int) -> None:
    report = made_report()
    state = state_of(report)
    state = replace(state, subject=found_in(report).identities[row])
    lines = texts(report, state, Size(120, 14))
    is_query = y < len(lines) and lines[y].strip().startswith("query")
    assert (PANEL.behind(report, state, Size(120, 14), x, y) is not None) is is_query


COVERAGES = {
    "exact": (Coverage(CoverageKind.EXACT, 1_000, 1.0, 1_000), ""),
    "partial": (Coverage(CoverageKind.PARTIAL, 490, 0.49, 1_000), " so far (49% of the keys seen)"),
    "nearly all": (Coverage(CoverageKind.PARTIAL, 999, 0.9999, 1_000), " so far (99% of the keys seen)"),
    "no share": (Coverage(CoverageKind.PARTIAL, 1), " so far (1 key seen)"),
    "estimate": (Coverage(CoverageKind.ESTIMATE, 4_000, None, 10**6), " in a sample of 4,000 keys"),
}

NEUTRAL = ("Looking for", "Nothing to list", "The server keeps no", "No problems")
"""How sentences begin that say nothing of keys, or are tried apart."""


def of_coverage(name: str) -> Report:
    report = made_report()
    return structs.replace(report, head=structs.replace(report.head, coverage=COVERAGES[name][0]))


@pytest.mark.parametrize("name", COVERAGES)
def test_empty_lists_say_how_many_keys_were_seen(name: str) -> None:
    report, ending = of_coverage(name), COVERAGES[name][1]
    assert so_far(report.head.coverage) == ending
    told = []
    for panel in PANELS:
        for table in panel.tables(report, panel.initial):
            if not table.empty.startswith(NEUTRAL):
                told.append(table.empty)
                assert table.empty.endswith(ending)
                assert ("so far" in table.empty) == ("so far" in ending)
    assert len(told) >= 5


@pytest.mark.parametrize("name", COVERAGES)
def test_nothing_wrong_is_no_more_than_that_so_far(name: str) -> None:
    report, ending = of_coverage(name), COVERAGES[name][1]
    found = structs.replace(findings(report), findings=())
    (table,) = FindingsPanel().tables(report, FindingsState(latest=LatestFindings(found=found)))
    assert f"No problems{ending}" in table.empty if ending else "No problems found" in table.empty
    for form in ("text", "md"):
        assert f"0 errors and 0 warnings{ending} by" in written(findings_page(report, found), form).replace("\\", "")


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
    assert look(structs.replace(one, types=((b"set", 8), (b"hash", 2)))) == (Role.FILL_SET, "set 80%")
    assert look(structs.replace(one, types=((b"\x1b[31m", 10),))) == (Role.FILL_OTHER, "␛[31m")


def test_counters_stand_for_idle_times_where_the_server_keeps_them() -> None:
    made = made_report()
    root = structs.replace(
        made.summary.root, stats=structs.replace(made.summary.root.stats, idle=None, frequency=(5, 5))
    )
    report = structs.replace(made, summary=structs.replace(made.summary, root=root))
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
    report = structs.replace(made, head=structs.replace(made.head, columns={"ttl": ColumnReport(state, "so it is")}))
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
