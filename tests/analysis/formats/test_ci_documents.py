"""SARIF and JUnit: what the schemas and GitHub ask of the parts that are written, and where results point to."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from xml.etree.ElementTree import Element, SubElement, fromstring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.findings.contents import FINDERS, MOST_PLACES, findings
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.formats.findings import SourcePlace, findings_junit, findings_sarif, server_path
from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import SafeText, display
from rtui.registry.rules import RULES, RuleLevels, Severity
from tests.analysis.formats.ci_documents import LONGEST_TEXT, MOST, junit_violations, sarif_violations
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report

REPORTS = [made_report(), estimate_report(), partial_report(), denied_report(), empty_report()]
ALL_ON = RuleLevels({finder.rule: Severity.WARN for finder in FINDERS}, {})


def sarif(report: Report, found: Found | None = None, places: dict[str, SourcePlace] | None = None) -> Any:
    return json.loads(findings_sarif(report, found or findings(report, ALL_ON), places))


def junit(report: Report, found: Found | None = None, fail_on: Severity = Severity.ERROR) -> Element:
    return fromstring(findings_junit(report, found or findings(report, ALL_ON), fail_on))  # noqa: S314 - of our own


@pytest.mark.parametrize("report", REPORTS, ids=["exact", "estimate", "partial", "denied", "empty"])
def test_what_is_written_is_as_the_schemas_say(report: Report) -> None:
    assert sarif_violations(sarif(report)) == []
    for fail_on in (Severity.WARN, Severity.ERROR):
        assert junit_violations(junit(report, fail_on=fail_on)) == []


@given(st.text(st.characters(codec="utf-8"), max_size=8) | st.binary(max_size=8))
@settings(max_examples=30)
def test_any_name_can_be_written(name: str | bytes) -> None:
    raw = name.encode() if isinstance(name, str) else name
    made = made_report()
    cliff = replace(made.summary.expiry.cliffs[0], path=(raw,), label=display(raw))
    summary = replace(made.summary, expiry=replace(made.summary.expiry, cliffs=(cliff,)))
    server = replace(made.head.server, label=str(display(raw)))
    report = replace(made, summary=summary, head=replace(made.head, server=server))
    assert sarif_violations(sarif(report)) == []
    assert junit_violations(junit(report)) == []


def of_pattern(pattern: str = "", title: str = "1 key is wrong") -> Finding:
    found: Finding = replace(findings(made_report()).findings[0], pattern=pattern, title=SafeText(title))
    return found


def test_a_result_points_to_the_line_of_its_pattern_or_to_the_server() -> None:
    rule = of_pattern().rule
    found = Found((of_pattern("app:session:<id>"), of_pattern("app:other"), of_pattern()), (), (), (rule,))
    log = sarif(made_report(), found, {"app:session:<id>": SourcePlace("keys/rtui.toml", 12, 30)})
    assert sarif_violations(log) == []
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    region = {"startLine": 12, "startColumn": 1, "endLine": 12, "endColumn": 30}
    assert places[0] == {"artifactLocation": {"uri": "keys/rtui.toml"}, "region": region}
    assert places[1] == places[2]
    assert places[1]["artifactLocation"]["uri"] == server_path(made_report().head) == "redis/10.0.0.5%3A6379/db0"


def test_what_is_shown_of_any_rule_is_short_enough() -> None:
    rules = tuple(RULES)
    log = sarif(made_report(), Found((of_pattern(title="x" * 5_000),), (), (), rules))
    assert sarif_violations(log) == []
    (result,) = log["runs"][0]["results"]
    assert len(result["message"]["text"]) <= LONGEST_TEXT
    assert len(FINDERS) * MOST_PLACES <= MOST["result"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run["results"][0]["locations"].clear() or run["results"][0].pop("locations"),
        lambda run: run["results"][0]["message"].update(text=""),
        lambda run: run["results"][0]["message"].update(text="x" * 1_025),
        lambda run: run["results"][0].update(level="none"),
        lambda run: run["results"][0].update(ruleIndex=1 + run["results"][0]["ruleIndex"]),
        lambda run: run["results"][0].update(surprise=1),
        lambda run: run["results"].append(run["results"][0]),
        lambda run: run["tool"]["driver"]["rules"][0].pop("help"),
        lambda run: place(run)["artifactLocation"].update(uri="redis://prod:6379/0"),
        lambda run: place(run)["artifactLocation"].update(uri="two words"),
        lambda run: place(run)["region"].update(startLine=0),
        lambda run: run["invocations"][0].pop("executionSuccessful"),
    ],
)
def test_violations_of_sarif_are_seen(spoil: Callable[[Any], None]) -> None:
    log = deepcopy(sarif(made_report()))
    spoil(log["runs"][0])
    assert sarif_violations(log) != []


def place(run: Any) -> Any:
    return run["results"][0]["locations"][0]["physicalLocation"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda root: root[0].attrib.pop("name"),
        lambda root: root[0].set("failures", "77"),
        lambda root: root[0].set("surprise", "1"),
        lambda root: root[0].set("time", "1s"),
        lambda root: SubElement(root[0][1], "evidence"),
        lambda root: setattr(root[0], "text", "words"),
        lambda root: root[0][1].attrib.pop("name"),
    ],
)
def test_violations_of_junit_are_seen(spoil: Callable[[Element], object]) -> None:
    root = junit(made_report())
    spoil(root)
    assert junit_violations(root) != []
