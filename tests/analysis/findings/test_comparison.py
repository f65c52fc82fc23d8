"""What became of findings between two reports, and what may have become of those that a report can have missed."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from rtui.analysis.findings.contents import MOST_PLACES, FindingFate, FindingsComparison, compare_findings
from rtui.analysis.formats import written
from rtui.analysis.formats.comparison import comparison_json, comparison_page, finding_listing
from rtui.analysis.report.comparison import compare
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import NamingReport
from rtui.analysis.report.thresholds import FailOnError, Outcome, judge, parse_fail_on
from rtui.registry.rules import RuleLevels, Severity
from tests.analysis.findings.test_findings import listed, only, pattern, report
from tests.made_report import denied_report, estimate_report, made_report

LOCKS = only("lock-without-ttl")


def locks(**lasting: int) -> Report:
    """Namespaces of locks, of which so many never expire."""
    return report(*(pattern(1_000, number, top=f"{name}-lock".encode()) for name, number in lasting.items()))


def fates(found: FindingsComparison) -> dict[str, str]:
    return {name.removeprefix("lock-without-ttl "): one.fate.value for name, one in found.changes.items()}


BEFORE = locks(gone=5, grew=5, shrank=5, same=5, fine=0)
AFTER = locks(new=7, grew=6, shrank=4, same=5, fine=0)


def test_what_became_of_findings() -> None:
    found = compare_findings(BEFORE, AFTER, LOCKS)
    assert fates(found) == {
        "new-lock:": "new",
        "grew-lock:": "grew",
        "same-lock:": "as before",
        "shrank-lock:": "shrank",
        "gone-lock:": "gone",
    }
    assert (found.uncompared, found.notes) == ((), ())


def test_a_report_compared_with_itself() -> None:
    for one in (made_report(), denied_report()):
        assert {change.fate for change in compare_findings(one, one).changes.values()} == {FindingFate.SAME}
    estimate = estimate_report()
    assert {change.fate for change in compare_findings(estimate, estimate).changes.values()} <= {
        FindingFate.SAME,
        FindingFate.UNCLEAR,
    }


@pytest.mark.parametrize("kind", [CoverageKind.PARTIAL, CoverageKind.ESTIMATE])
def test_what_a_report_may_have_missed_is_not_certain(kind: CoverageKind) -> None:
    def less(of: Report) -> Report:
        return replace(of, head=replace(of.head, coverage=replace(of.head.coverage, kind=kind)))

    assert fates(compare_findings(less(BEFORE), AFTER, LOCKS))["new-lock:"] == "may be new"
    assert fates(compare_findings(BEFORE, less(AFTER), LOCKS))["gone-lock:"] == "may be gone"


def test_places_beyond_the_most_costly_are_compared_too() -> None:
    many = {f"n{number}": 5 + number for number in range(MOST_PLACES + 5)}
    found = compare_findings(locks(**many), locks(**many), LOCKS)
    assert list(fates(found).values()) == ["as before"] * (MOST_PLACES + 5)


def test_rules_that_one_report_alone_can_be_judged_by() -> None:
    named = replace(AFTER, summary=replace(AFTER.summary, naming=NamingReport(())))
    found = compare_findings(BEFORE, named)
    assert "name-case" in found.uncompared
    assert found.notes[0].startswith("Rules that could be checked in only one of the reports: name-")
    judged = [judge(parse_fail_on(text), compare(BEFORE, named), None, found.counted()) for text in THRESHOLDS]
    assert judged[0].outcome is Outcome.REACHED
    assert judged[1].outcome is Outcome.UNKNOWN


def test_a_queue_that_grows_is_new() -> None:
    found = compare_findings(listed(1_000), listed(5_000), only("queue-growing"))
    assert [one.fate for one in found.changes.values()] == [FindingFate.NEW]


THRESHOLDS = ["new-findings>0", "new-findings>3", "new-errors>0", "grown-findings>=2", "gone-findings>0"]


@pytest.mark.parametrize(
    ("levels", "reached"),
    [
        (LOCKS, [True, False, False, False, True]),
        (RuleLevels({"lock-without-ttl": Severity.ERROR}, {}), [True, False, True, False, True]),
    ],
)
def test_thresholds(levels: RuleLevels, reached: list[bool]) -> None:
    diff, found = compare(BEFORE, AFTER), compare_findings(BEFORE, AFTER, levels)
    judged = [judge(parse_fail_on(text), diff, None, found.counted()) for text in THRESHOLDS]
    assert [one.outcome is Outcome.REACHED for one in judged] == reached
    assert Outcome.UNKNOWN not in {one.outcome for one in judged}
    assert judged[0].why == "it is 1 new"


@pytest.mark.parametrize("text", ["shop: new-findings>0", "new-findings>+1", "new-errors>5%", "grown-findings>1k"])
def test_thresholds_without_a_meaning(text: str) -> None:
    with pytest.raises(FailOnError):
        parse_fail_on(text)


def test_in_words_and_as_json() -> None:
    diff, found = compare(BEFORE, AFTER), compare_findings(BEFORE, AFTER, LOCKS)
    page = comparison_page(diff, findings=found)
    text = written(page, "text")
    assert "Findings: new (1)\nwarn  lock-without-ttl  7 locks of new-lock: have no TTL\n" in text
    assert "6 locks of grew-lock: have no TTL (keys 5 → 6, +20%; memory 500 B → 600 B, +20%)" in text
    assert "\nFindings as before: 1\n" in text
    marked = written(page, "md")
    assert "\n## Findings: gone (1)\n" in marked
    assert "| warn | lock-without-ttl | 5 locks of gone-lock: have no TTL |" in marked
    document = json.loads(comparison_json(diff, findings=found))
    by_fate = {one["fate"]: one for one in document["findings"]}
    assert by_fate["new"]["keys"]["before"]["is_present"] is False
    assert by_fate["grew"]["keys"]["growth"] == {"low": 0.2, "high": 0.2}
    assert (by_fate["gone"]["where"], document["rules_not_compared"]) == ("gone-lock:", [])
    both = report(pattern(1_000, 20), pattern(1_000, 5, top=b"a-lock"))
    listing = finding_listing(compare_findings(report(), both), 20)
    assert [row[0] for row in listing.groups[0].rows] == ["error", "warn"]
    page = comparison_page(diff, findings=compare_findings(BEFORE, locks(a=5, b=6), LOCKS), top=1)
    short = written(page, "text")
    assert "… and 1 more" in short
