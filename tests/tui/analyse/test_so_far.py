"""Sentences about what was not found: where not all keys were seen, they say how many were."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rtui.analysis.findings.contents import findings
from rtui.analysis.formats import written
from rtui.analysis.formats.findings import findings_page
from rtui.analysis.report.document import Coverage, CoverageKind, Report
from rtui.analysis.report.tables.cells import so_far
from rtui.tui.analyse.findings_panel import FindingsPanel, FindingsState, LatestFindings
from rtui.tui.analyse.report_panel import PANELS
from tests.made_report import made_report

COVERAGES = {
    "exact": (Coverage(CoverageKind.EXACT, 1_000, 1.0, 1_000), ""),
    "partial": (Coverage(CoverageKind.PARTIAL, 490, 0.49, 1_000), " so far (49% of the keys seen)"),
    "nearly all": (Coverage(CoverageKind.PARTIAL, 999, 0.9999, 1_000), " so far (99% of the keys seen)"),
    "no share": (Coverage(CoverageKind.PARTIAL, 1), " so far (1 key seen)"),
    "estimate": (Coverage(CoverageKind.ESTIMATE, 4_000, None, 10**6), " in a sample of 4,000 keys"),
}

NEUTRAL = ("Looking for", "Nothing to list", "The server keeps no", "Nothing wrong")
"""How sentences begin that say nothing of keys, or are tried apart."""


def of_coverage(name: str) -> Report:
    report = made_report()
    return replace(report, head=replace(report.head, coverage=COVERAGES[name][0]))


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
    found = replace(findings(report), findings=())
    (table,) = FindingsPanel().tables(report, FindingsState(latest=LatestFindings(found=found)))
    assert f"Nothing wrong{ending}" in table.empty if ending else "Nothing wrong was found by" in table.empty
    for form in ("text", "md"):
        assert f"0 errors and 0 warnings{ending} by" in written(findings_page(report, found), form).replace("\\", "")
