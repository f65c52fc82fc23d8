"""Servers then and now: which figures and findings are compared with which, in numbers and in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.findings.server import (
    ComparedLine,
    HealthComparison,
    compare_health,
    judge_health,
    parse_threshold,
)
from rtui.analysis.formats.health import change_of
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import Sample
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Unit
from rtui.analysis.report.thresholds import FailOnError, Outcome
from tests.made_report import made_report
from tests.made_sample import GIB, made_sample

FULL = {"used_memory_rss": 4 * GIB}


def view(*samples: Sample, node: str = "10.0.0.5:6379") -> HealthView:
    return HealthView(tuple(structs.replace(one, node=node) for one in samples))


def fates(found: HealthComparison) -> dict[str, str]:
    return {one.finding.rule: one.fate.value for node in found.nodes for one in node.findings.changes.values()}


def test_findings_are_new_gone_or_still_there() -> None:
    well, broken = view(made_sample()), view(made_sample(**FULL))
    assert fates(compare_health([well], [broken])) == {"memory-fragmented": "new"}
    assert fates(compare_health([broken], [well])) == {"memory-fragmented": "gone"}
    assert fates(compare_health([broken], [broken])) == {"memory-fragmented": "as before"}


def test_a_single_node_is_compared_whatever_it_is_called() -> None:
    found = compare_health([view(made_sample(**FULL), node="old:1")], [view(made_sample(**FULL), node="new:2")])
    assert fates(found) == {"memory-fragmented": "as before"}
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
        (1.0, 1.0, Unit.COUNT, "="),
        (0, 5, Unit.COUNT, "from nothing"),
        (0.5, 0.25, Unit.SHARE, "-25 pt"),
        (100, 3700, Unit.TIME, "+1h"),
        (-4, -6, Unit.COUNT, "-2"),
        ("yes", "no", Unit.TEXT, "changed"),
        ("yes", "yes", Unit.TEXT, "="),
        (10.0, 12.5, Unit.DURATION, "+25%"),
    ],
)
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
def test_thresholds(text: str, expected: Outcome) -> None:
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
