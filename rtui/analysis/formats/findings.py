"""Findings as a page and as JSON, for CI as SARIF 2.1.0 and JUnit; and why a command failed, in any format.

SARIF has rules with their documentation, and a result for each finding.

A keyspace has no files, but web interfaces show results beside lines of files. So a result has two places: a logical
one, its namespace or pattern, and a physical one, which is the line of the registry that the pattern is on, or a path
that names the server and its database. That path has no scheme such as `redis://`: GitHub refuses a whole file for one.

GitHub's other limits (20 runs, 25,000 results of which 5,000 are shown, 25,000 rules, 10 MB compressed) are far above
what is written, since each rule lists its most costly places only.

JUnit has a test for each rule and place. A finding that `--fail-on` makes the command fail for is a failed test; one
below that passes and says what was found. A rule that could not be judged is a skipped test, one that found nothing a
test that passed. Keys that were not inspected, and nodes that have not answered, are a test with an error: nobody may
take the rest for all there is.

A command that failed says so in formats for machines, since what reads its output must not find nothing: SARIF has a
run without results that was not successful, JUnit a test with an error, JSON an object with `error` in place of all
else, CSV a row whose `coverage` is `failed`, TOML a table `error`, which no registry may have, and the text format of
Prometheus a comment. Other formats are for people, who read standard error.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rtui import __version__
from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.finding import Amount, Finding, Found, reaches
from rtui.analysis.formats.blocks import BlockPage, Findings, Paragraph
from rtui.analysis.formats.comparison import head_text
from rtui.analysis.formats.csv_and_json import csv_text
from rtui.analysis.report.document import CoverageKind, Head, Report
from rtui.keyspace.text.display import display_text
from rtui.registry.rules import RULES, Rule, Severity

FINDINGS_FORMAT: Final = "rtui findings"
FINDINGS_SCHEMA: Final = 1
"""Grows with every change that an older reader would misread."""


def findings_page(report: Report, found: Found) -> BlockPage:
    return BlockPage("rtui check", [Paragraph((head_text(report.head),)), Findings(found)])


def findings_json(report: Report, found: Found) -> str:
    """Return one object, in ASCII. Figures are exact, or objects with `at_least`, or with an interval."""
    head = report.head
    document = {
        "format": FINDINGS_FORMAT,
        "schema": FINDINGS_SCHEMA,
        "server": head.server.label,
        "db": head.server.db,
        "made_at_epoch_s": head.made_at_s,
        "coverage": head.coverage.kind.value,
        "coverage_reason": head.coverage.reason,
        "inspected_keys": head.coverage.keys,
        "findings": [finding_record(one) for one in found.findings],
        "not_listed": [{"rule": one.rule, "severity": one.severity, "places": one.places} for one in found.unlisted],
        "not_judged": unjudged_records(found),
        "notes": list(found.notes),
        "checked": list(found.judged),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def unjudged_records(found: Found) -> list[dict[str, Any]]:
    return [{"rule": one.rule, "severity": one.severity, "why": one.why} for one in found.unjudged]


def finding_record(one: Finding) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "severity": one.severity,
        "title": one.title,
        "where": one.where,
        "keys": _figure(one.keys),
        "memory_bytes": _figure(one.memory),
        "evidence": list(one.evidence),
        "breaks": one.declared.title,
        "why": one.declared.reason,
        "remedy": one.declared.remedy,
        "basis": one.declared.basis,
        "query": one.query,
        "query_note": one.query_note,
        "command": one.command,
    }


def _figure(found: Amount | None) -> int | float | dict[str, float | None] | None:
    if found is None:
        return None
    figure = found.figure
    if isinstance(figure, Estimate):
        high = figure.high if isfinite(figure.high) else None
        return {"low": figure.low, "value": figure.value, "high": high}
    return {"at_least": figure} if found.at_least else figure


VERSION: Final = "2.1.0"
SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

MOST_CHARACTERS: Final = 1_024
"""Of a text that is shown to people; GitHub shows no more of a description."""

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARN: "warning", Severity.OFF: "warning"}
"""GitHub knows no level for rules that are off by default: `enabled` says that."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A line of a file."""

    uri: str
    """The path from the root of the repository, percent-encoded."""
    line: int = 1
    """From 1."""
    end_column: int = 1
    """The column behind the last character, from 1."""


def findings_sarif(report: Report, found: Found, places: Mapping[str, SourcePlace] | None = None) -> str:
    """Return one log with one run, in ASCII; `places` are where registered patterns are written, by their text."""
    lines, head = places or {}, report.head
    server = SourcePlace(server_path(head))
    results = _results(found, found.checked, server, lines)
    properties = {"server": head.server.label, "db": head.server.db}
    failures = []
    if head.coverage.kind is CoverageKind.PARTIAL:
        failures = [f"The report is partial: {head.coverage.reason or 'not every key was inspected'}."]
    invocation = _invocation(failures, _notifications(found, found.checked))
    return _log(found.checked, head.rtui_version, invocation, results, properties)


def servers_sarif(nodes: Mapping[str, Found], failures: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return one run for all nodes: GitHub takes no more than 20. `failures` say why nodes have not answered last."""
    checked = tuple(dict.fromkeys(rule for found in nodes.values() for rule in found.checked))
    results: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for node, found in nodes.items():
        results += _results(found, checked, SourcePlace(f"redis/{quote(node or 'server', safe='')}"), {}, kind="server")
        notes += _notifications(found, checked, f"{node}: " if len(nodes) > 1 else "")
    invocation = _invocation([f"{node}: {why}" for node, why in failures.items()], notes)
    return _log(checked, __version__, invocation, results, {"nodes": list(nodes)})


def _log(
    checked: Sequence[str],
    version: str,
    invocation: dict[str, Any],
    results: list[dict[str, Any]],
    properties: dict[str, Any],
) -> str:
    driver = {"name": "rtui", "rules": [_descriptor(RULES[rule]) for rule in checked]}
    if version:
        driver["version"] = version
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": properties,
    }
    log = {"$schema": SCHEMA, "version": VERSION, "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _results(
    found: Found, checked: Sequence[str], server: SourcePlace, lines: Mapping[str, SourcePlace], kind: str = "namespace"
) -> list[dict[str, Any]]:
    return [
        _result(one, name, checked, lines.get(one.pattern, server), kind)
        for one, name in zip(found.findings, found.identities, strict=True)
    ]


def server_path(head: Head) -> str:
    """Return the server and its database as the path of a file: `redis/10.0.0.5%3A6379/db0`."""
    return f"redis/{quote(head.server.label or 'server', safe='')}/db{head.server.db}"


def _descriptor(rule: Rule) -> dict[str, Any]:
    parameters = [f"{name} = {json.dumps(one.default)}: {one.help}" for name, one in rule.parameters.items()]
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.reason},
        "help": {"text": "\n".join([rule.remedy, *parameters])},
        "defaultConfiguration": {"enabled": rule.severity is not Severity.OFF, "level": _LEVELS[rule.severity]},
    }


def _result(one: Finding, name: str, checked: Sequence[str], at: SourcePlace, kind: str) -> dict[str, Any]:
    region = {"startLine": at.line, "startColumn": 1, "endLine": at.line, "endColumn": at.end_column}
    place: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": at.uri}, "region": region},
        "logicalLocations": [{"fullyQualifiedName": str(one.where) or '""', "kind": kind}],
    }
    mark = sha256(name.encode()).hexdigest()
    properties: dict[str, Any] = {
        "query": one.query,
        "command": str(one.command),
        "evidence": list(map(str, one.evidence)),
    }
    if one.keys is not None:
        properties["keys"] = one.keys.value
    if one.memory is not None:
        properties["memoryBytes"] = one.memory.value
    return {
        "ruleId": one.rule,
        "ruleIndex": checked.index(one.rule),
        "level": _LEVELS[one.severity],
        "message": {"text": display_text(f"{one.title}. {one.declared.remedy}", limit=MOST_CHARACTERS)},
        "locations": [place],
        # The second is the only one that GitHub looks at; it would make one of the line, which several results share.
        "partialFingerprints": {"rulePlace/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"},
        "properties": properties,
    }


def _invocation(failures: Sequence[str], notes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    texts = [display_text(one, limit=MOST_CHARACTERS) for one in failures]
    return {
        "executionSuccessful": not failures,
        "toolExecutionNotifications": [{"level": "error", "message": {"text": text}} for text in texts],
        "toolConfigurationNotifications": list(notes),
    }


def _notifications(found: Found, checked: Sequence[str], before: str = "") -> list[dict[str, Any]]:
    """Return the rules that could not be judged, and the number of unlisted places; `before` names the node."""
    notes = [(one.rule, f"{before}{one.rule} could not be checked: {one.why}.") for one in found.unjudged]
    notes += [(one.rule, f"{before}{one.places:,} more places violate {one.rule}.") for one in found.unlisted]
    return [
        {"associatedRule": {"id": rule, "index": checked.index(rule)}, "level": "warning", "message": {"text": text}}
        for rule, text in notes
    ]


_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, not even escaped."""


def findings_junit(report: Report, found: Found, fail_on: Severity) -> str:
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
    """Return a suite for each node, by its name, with the time in seconds; `failures` say why others did not answer."""
    suites = [
        _suite(f"rtui health {node}", {"node": node}, found, fail_on, made_at_s=made_at_s)
        for node, (made_at_s, found) in nodes.items()
    ]
    for node, why in failures.items():
        suite = Element("testsuite", name=_text(f"rtui health {node}"), package="rtui")
        _error_case(suite, "rtui.answers", "The node answers", why)
        suites.append(_counted(suite, 0.0, max((at_s for at_s, _ in nodes.values()), default=0.0)))
    return _document("rtui health", suites)


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
        case = SubElement(suite, "testcase", classname=f"rtui.{one.rule}", name=_text(one.where), time="0")
        text = _text("\n".join(_lines(one)))
        if reaches(one.severity, fail_on):
            failure = SubElement(case, "failure", type=one.severity.value, message=_text(one.title))
            failure.text = text
        else:
            SubElement(case, "system-out").text = f"{one.severity}: {text}"
    _quiet_cases(suite, found, unfinished)
    return _counted(suite, elapsed_s, made_at_s)


def _counted(suite: Element, elapsed_s: float, made_at_s: float) -> Element:
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


def _lines(one: Finding) -> Iterator[str]:
    yield one.title
    yield from one.evidence
    yield from (f"{what}: {text}" for what, text in one.explained[:2])
    if query := one.query:
        yield f"query: {query}"
    yield f"command: {one.command}"


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


_FORMATS: Final = {"check": "rtui findings"}
_CSV_NAMES: Final = {"find": ("key", "key_quoted")}


def failure_text(form: str, command: str, title: str, happened: str, exit_code: int) -> str:
    """Return the document; empty for formats that are for people. Texts have to be safe."""
    why = f"{title}: {happened}"
    error = {"title": title, "happened": happened, "exit_code": exit_code}
    text = ""
    match form:
        case "sarif":
            text = _log((), __version__, {**_invocation([why], []), "exitCode": exit_code}, [], {})
        case "junit":
            suite = Element("testsuite", name=f"rtui {command}", package="rtui")
            _error_case(suite, "rtui", f"rtui {command}", title, happened)
            text = _document(f"rtui {command}", [_counted(suite, 0.0, time.time())])
        case "csv":
            names = _CSV_NAMES.get(command, ())
            text = csv_text([(*names, "coverage", "notes"), (*[""] * len(names), "failed", why)])
        case "prom":
            text = f"# rtui {command} has failed. {why}\n"
        case "openmetrics":  # which has no comments
            text = "# EOF\n"
        case "toml":
            text = "".join(["[error]\n", *(f"{name} = {json.dumps(value)}\n" for name, value in error.items())])
        case "json":
            document = {"format": _FORMATS.get(command, f"rtui {command}"), "rtui": __version__, "error": error}
            text = json.dumps(document, indent=2) + "\n"
    return text
