"""Findings as a JUnit report, which CI systems show as tests: one test for each rule and place.

A finding that `--fail-on` makes the command fail for is a failed test; one below that passes and says what was found.
A rule that could not be judged is a skipped test, one that found nothing a test that passed. Keys that were not
inspected, and nodes that have not answered, are a test with an error: nobody may take the rest for all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rtui.analysis.findings.finding import Finding, Found, reaches
from rtui.analysis.report.document import CoverageKind, Report
from rtui.registry.rules import RULES, Severity

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot have, not even escaped."""


def findings_junit(report: Report, found: Found, fail_on: Severity) -> str:
    """Return the document, in ASCII; findings of the severity `fail_on` and above are failures."""
    head = report.head
    properties = {"server": head.server.label, "db": head.server.db, "coverage": head.coverage.kind.value}
    reason = head.coverage.reason or "not every key was inspected"
    suite = _suite(
        "rtui check",
        properties,
        found,
        fail_on,
        made_at_s=head.made_at_s,
        elapsed_s=head.cost.elapsed_s,
        unfinished=f"the report is partial: {reason}" if head.coverage.kind is CoverageKind.PARTIAL else "",
    )
    return _document("rtui check", [suite])


def servers_junit(
    nodes: Mapping[str, tuple[float, Found]], fail_on: Severity, failures: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the document of what is found at nodes, a suite for each; by their names, with the time in seconds.

    `failures` are sentences that say why nodes have not answered last.
    """
    suites = [
        _suite(f"rtui health {node}", {"node": node}, found, fail_on, made_at_s=made_at_s)
        for node, (made_at_s, found) in nodes.items()
    ]
    for node, why in failures.items():
        suite = Element("testsuite", name=_text(f"rtui health {node}"), package="rtui")
        _error_case(suite, "rtui.answers", "The node answers", why)
        suites.append(_counted(suite, 0.0, max((at_s for at_s, _ in nodes.values()), default=0.0)))
    return _document("rtui health", suites)


def failure_junit(command: str, title: str, happened: str, at_s: float) -> str:
    """Return the document of a command that has failed before it had findings, as a test with an error."""
    suite = Element("testsuite", name=f"rtui {command}", package="rtui")
    _error_case(suite, "rtui", f"rtui {command}", title, happened)
    return _document(f"rtui {command}", [_counted(suite, 0.0, at_s)])


def _suite(
    title: str,
    properties: Mapping[str, object],
    found: Found,
    fail_on: Severity,
    *,
    made_at_s: float,
    elapsed_s: float = 0.0,
    unfinished: str = "",
) -> Element:
    suite = Element("testsuite", name=_text(title), package="rtui")
    listed = SubElement(suite, "properties")
    for name, value in properties.items():
        SubElement(listed, "property", name=name, value=_text(str(value)))
    if unfinished:
        _error_case(suite, "rtui.coverage", "Every key is inspected", unfinished)
    for one in found.findings:
        _finding_case(suite, one, is_failure=reaches(one.severity, fail_on))
    _quiet_cases(suite, found, unfinished)
    return _counted(suite, elapsed_s, made_at_s)


def _counted(suite: Element, elapsed_s: float, made_at_s: float) -> Element:
    """Set the numbers of tests, and when they were made."""
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for name, number in counts.items():
        suite.set(name, str(number))
    suite.set("time", f"{elapsed_s:.3f}")
    suite.set("timestamp", datetime.fromtimestamp(made_at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return suite


def _document(title: str, suites: Sequence[Element]) -> str:
    root = Element("testsuites", name=title)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    indent(root)
    written: bytes = tostring(root, "us-ascii")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written.decode()}\n'


def _error_case(suite: Element, classname: str, name: str, message: str, more: str = "") -> None:
    case = SubElement(suite, "testcase", classname=classname, name=_text(name), time="0")
    SubElement(case, "error", type="error", message=_text(message)).text = _text(more or message)


def _finding_case(suite: Element, one: Finding, *, is_failure: bool) -> None:
    case = SubElement(suite, "testcase", classname=f"rtui.{one.rule}", name=_text(one.where), time="0")
    text = _text("\n".join(_lines(one)))
    if is_failure:
        failure = SubElement(case, "failure", type=one.severity.value, message=_text(one.title))
        failure.text = text
    else:
        SubElement(case, "system-out").text = f"{one.severity}: {text}"


def _lines(one: Finding) -> Iterator[str]:
    yield one.title
    yield from one.evidence
    yield f"why: {one.why}"
    yield f"do: {one.remedy}"
    if query := one.query:
        yield f"query: {query}"
    yield f"look: {one.command}"


def _quiet_cases(suite: Element, found: Found, unfinished: str) -> None:
    """Add the rules that found nothing, or could not be judged, of a part of the keys none."""
    reasons = {one.rule: str(one.why) for one in found.unjudged}
    broken = {one.rule for one in found.findings}
    for rule in found.checked:
        if rule in broken and rule not in reasons:
            continue
        case = SubElement(suite, "testcase", classname=f"rtui.{rule}", name=RULES[rule].title, time="0")
        if reason := reasons.get(rule, unfinished):
            SubElement(case, "skipped", message=_text(reason))


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
