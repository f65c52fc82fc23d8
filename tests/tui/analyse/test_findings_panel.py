"""The Findings panel: what it lists and says, where its rows lead, what is copied, and what it says of nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from textual.geometry import Size

from rtui.analysis.findings.contents import COLUMNS, findings, findings_table
from rtui.analysis.findings.finding import Found
from rtui.analysis.formats import written
from rtui.analysis.formats.findings import findings_page
from rtui.analysis.report.document import Coverage, CoverageKind, Report
from rtui.analysis.report.tables.cells import so_far
from rtui.registry.rules import RULES, RuleLevels, Severity
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.findings_panel import FindingsPanel, FindingsState, LatestFindings
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.command import RULES_PAGE, HelpSubject
from rtui.tui.kit.settings import SettingsFile
from tests.analysis.findings.test_comparison import AFTER, BEFORE, LOCKS
from tests.made_report import MADE_AT_S, denied_report, empty_report, estimate_report, made_report, partial_report
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis
from tests.tui.analyse.test_behind_rows import Followed

PANEL = FindingsPanel()
SMALL = Size(80, 10)
QUIET = RuleLevels(dict.fromkeys(RULES, Severity.OFF))


def state_of(report: Report, levels: RuleLevels | None = None, **chosen: Any) -> FindingsState:
    return FindingsState(latest=LatestFindings(found=findings(report, levels)), **chosen)


def texts(report: Report, state: FindingsState, size: Size = SMALL) -> list[str]:
    return ["".join(span.text for span in line) for line in PANEL.chart(report, state, size)]


def found_in(report: Report) -> Found:
    found = state_of(report).latest.found
    assert found is not None
    return found


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
        await user.press("slash", *"all others do", "enter")
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
        await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
        await user.press("enter")
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
    assert quiet.latest.found is not None
    lines = texts(denied_report(), quiet)
    assert bool(quiet.latest.found.findings) or any("key-big could not be checked" in line for line in lines)


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
    twice = Found((*found.findings, *found.findings), (), (), found.checked)
    names = twice.identities
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
