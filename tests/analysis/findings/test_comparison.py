"""What became of findings between two reports, and how servers then and now are compared, in numbers and words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.findings.contents import MOST_PLACES, FindingFate, FindingsComparison, compare_findings
from rtui.analysis.findings.server import ComparedLine, HealthComparison, compare_health, judge_health, parse_threshold
from rtui.analysis.formats import written
from rtui.analysis.formats.comparison import comparison_json, comparison_page, finding_listing
from rtui.analysis.formats.health import change_of
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import Sample
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.comparison import compare
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import NamingReport
from rtui.analysis.report.tables.table import Unit
from rtui.analysis.report.thresholds import FailOnError, Outcome, judge, parse_fail_on
from rtui.registry.rules import RuleLevels, Severity
from tests.analysis.findings.test_findings import listed, only, pattern, report
from tests.made_report import denied_report, estimate_report, made_report
from tests.made_sample import GIB, made_sample

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
        return structs.replace(of, head=structs.replace(of.head, coverage=structs.replace(of.head.coverage, kind=kind)))

    assert fates(compare_findings(less(BEFORE), AFTER, LOCKS))["new-lock:"] == "may be new"
    assert fates(compare_findings(BEFORE, less(AFTER), LOCKS))["gone-lock:"] == "may be gone"


def test_places_beyond_the_most_costly_are_compared_too() -> None:
    many = {f"n{number}": 5 + number for number in range(MOST_PLACES + 5)}
    found = compare_findings(locks(**many), locks(**many), LOCKS)
    assert list(fates(found).values()) == ["as before"] * (MOST_PLACES + 5)


def test_rules_that_one_report_alone_can_be_judged_by() -> None:
    named = structs.replace(AFTER, summary=structs.replace(AFTER.summary, naming=NamingReport(())))
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
    assert "… and 1 more" in written(page, "text")


FULL = {"used_memory_rss": 4 * GIB}


def view(*samples: Sample, node: str = "10.0.0.5:6379") -> HealthView:
    return HealthView(tuple(structs.replace(one, node=node) for one in samples))


def server_fates(found: HealthComparison) -> dict[str, str]:
    return {one.finding.rule: one.fate.value for node in found.nodes for one in node.findings.changes.values()}


def test_findings_are_new_gone_or_still_there() -> None:
    well, broken = view(made_sample()), view(made_sample(**FULL))
    assert server_fates(compare_health([well], [broken])) == {"memory-fragmented": "new"}
    assert server_fates(compare_health([broken], [well])) == {"memory-fragmented": "gone"}
    assert server_fates(compare_health([broken], [broken])) == {"memory-fragmented": "as before"}


def test_a_single_node_is_compared_whatever_it_is_called() -> None:
    found = compare_health([view(made_sample(**FULL), node="old:1")], [view(made_sample(**FULL), node="new:2")])
    assert server_fates(found) == {"memory-fragmented": "as before"}
    assert [one.node for one in found.nodes] == ["new:2"]


def test_nodes_that_only_one_time_has_are_named() -> None:
    then = [view(made_sample(), node=name) for name in ("a:1", "b:1")]
    now = [view(made_sample(), node=name) for name in ("b:1", "c:1")]
    found = compare_health(then, now)
    assert [one.node for one in found.nodes] == ["b:1"]
    assert found.notes == ("c:1: no earlier samples", "a:1: no current samples")
    assert found.of(now[1]) is None


def test_rules_that_look_over_time_are_compared_where_both_times_have_several_samples() -> None:
    one, several = view(made_sample()), view(made_sample(), made_sample(5), made_sample(10))
    for pair in ((one, several), (several, one)):
        (node,) = compare_health([pair[0]], [pair[1]]).nodes
        assert any("single sample" in note for note in node.notes)
        assert "hit-ratio" not in node.findings.uncompared
    (node,) = compare_health([several], [several]).nodes
    assert not node.notes


def test_rules_that_go_by_a_report_of_the_keys_are_not_compared_with_none() -> None:
    now = replace(view(made_sample()), report=made_report())
    (node,) = compare_health([view(made_sample())], [now]).nodes
    assert any("report of the keys" in note for note in node.notes)


def test_each_figure_has_then_now_and_its_change() -> None:
    (node,) = compare_health([view(made_sample(used_memory=GIB))], [view(made_sample(used_memory=2 * GIB))]).nodes
    lines = {one.line.id: one for _, lines in node.figures for one in lines}
    assert change_of(lines["used_memory"]) == "+100%"
    assert change_of(lines["maxmemory"]) == "="
    assert change_of(lines["commands"]) == "–"


@pytest.mark.parametrize(
    ("then", "now", "unit", "expected"),
    [
        (1.0, 1.0, Unit.COUNT, "="), (0, 5, Unit.COUNT, "from nothing"), (0.5, 0.25, Unit.SHARE, "-25 pt"),
        (100, 3700, Unit.TIME, "+1h"), (-4, -6, Unit.COUNT, "-2"), ("yes", "no", Unit.TEXT, "changed"),
        ("yes", "yes", Unit.TEXT, "="), (10.0, 12.5, Unit.DURATION, "+25%"),
    ],
)  # fmt: skip
def test_changes_in_words(then: float | str, now: float | str, unit: Unit, expected: str) -> None:
    assert change_of(ComparedLine(Line("x", "x", then, unit), Line("x", "x", now, unit))) == expected


def test_what_only_one_time_has_is_no_change() -> None:
    line = Line("x", "x", 1, Unit.COUNT)
    assert change_of(ComparedLine(None, line)) == change_of(ComparedLine(line, None)) == "–"


def outcome(text: str, then: HealthView | None, *now: HealthView) -> Outcome:
    comparison = None if then is None else compare_health([then], now)
    (judgement,) = judge_health([parse_threshold(text)], now, comparison)
    return judgement.outcome


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("used_memory>1GiB", Outcome.REACHED),
        ("used_memory>2147483648", Outcome.NOT_REACHED),
        ("used_memory>=2G", Outcome.REACHED),
        ("used_memory>+99%", Outcome.REACHED),
        ("used_memory>+100%", Outcome.NOT_REACHED),
        ("used_memory>=+1GiB", Outcome.REACHED),
        ("used_memory<-1%", Outcome.NOT_REACHED),
        ("connected_clients>=40", Outcome.REACHED),
        ("maxclients>9k", Outcome.REACHED),
        ("latest_fork<10ms", Outcome.REACHED),
        ("maxmemory_policy>1", Outcome.UNKNOWN),
        ("10.0.0.5:6379 used_memory>1GiB", Outcome.REACHED),
        ("10.0.0.6:6379 used_memory>1GiB", Outcome.UNKNOWN),
        ("new-findings>0", Outcome.NOT_REACHED),
    ],
)
def test_thresholds_of_servers(text: str, expected: Outcome) -> None:
    assert outcome(text, view(made_sample(used_memory=GIB)), view(made_sample(used_memory=2 * GIB))) is expected


def test_of_several_nodes_one_that_reaches_it_counts() -> None:
    nodes = [view(made_sample(used_memory=at * GIB), node=f"{at}:1") for at in (1, 2, 3)]
    assert outcome("used_memory>2500MiB", None, *nodes) is Outcome.REACHED
    assert outcome("2:1 used_memory>2500MiB", None, *nodes) is Outcome.NOT_REACHED
    assert outcome("used_memory>4GiB", None, *nodes, view(made_sample(used_memory=None), node="4:1")) is Outcome.UNKNOWN


@given(st.text(st.sampled_from("abz_-:><=+-0123456789.%ptkMGiBsumhd \\x1b"), max_size=24))
def test_any_text_is_a_threshold_or_refused(text: str) -> None:
    try:
        threshold = parse_threshold(text)
    except FailOnError:
        return
    (judgement,) = judge_health([threshold], [view(made_sample())])
    assert judgement.outcome in Outcome
    assert "\x1b" not in judgement.expression + judgement.why
