"""Findings as SARIF 2.1.0, for code scanning: rules with their documentation, a result for each finding.

A keyspace has no files, but web interfaces show results beside lines of files. So a result has two places: a logical
one, its namespace or pattern, and a physical one, which is the line of the registry that the pattern is on, or a path
that names the server and its database. That path has no scheme such as `redis://`: GitHub refuses a whole file for one.

GitHub's other limits (20 runs, 25,000 results of which 5,000 are shown, 25,000 rules, 10 MB compressed) are far above
what is written, since each rule lists its most costly places only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from rtui import __version__
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.findings.table import identities
from rtui.analysis.report.document import CoverageKind, Head, Report
from rtui.keyspace.text.display import display_text
from rtui.registry.rules import RULES, Parameter, Rule, Severity

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
    """Return one log with one run for what is found at nodes, by their names: GitHub takes no more than 20 runs.

    `failures` are sentences that say why nodes have not answered last.
    """
    checked = tuple(dict.fromkeys(rule for found in nodes.values() for rule in found.checked))
    results: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for node, found in nodes.items():
        results += _results(found, checked, SourcePlace(node_path(node)), {}, kind="server")
        notes += _notifications(found, checked, f"{node}: " if len(nodes) > 1 else "")
    invocation = _invocation([f"{node}: {why}" for node, why in failures.items()], notes)
    return _log(checked, __version__, invocation, results, {"nodes": list(nodes)})


def failure_sarif(text: str, exit_code: int) -> str:
    """Return the log of a run that has failed before it had results."""
    return _log((), __version__, {**_invocation([text], []), "exitCode": exit_code}, [], {})


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
        for one, name in zip(found.findings, identities(found), strict=True)
    ]


def server_path(head: Head) -> str:
    """Return what stands for the server and its database as if they were a file: `redis/10.0.0.5%3A6379/db0`."""
    return f"redis/{quote(head.server.label or 'server', safe='')}/db{head.server.db}"


def node_path(node: str) -> str:
    """Return what stands for a server as a whole as if it were a file: `redis/10.0.0.5%3A6379`."""
    return f"redis/{quote(node or 'server', safe='')}"


def _descriptor(rule: Rule) -> dict[str, Any]:
    """Return what SARIF calls a reporting descriptor: the documentation of a rule and its default severity."""
    parameters = [_parameter_text(name, one) for name, one in rule.parameters.items()]
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.reason},
        "help": {"text": "\n".join([rule.remedy, *parameters])},
        "defaultConfiguration": {"enabled": rule.severity is not Severity.OFF, "level": _LEVELS[rule.severity]},
    }


def _parameter_text(name: str, one: Parameter) -> str:
    return f"{name} = {json.dumps(one.default)}: {one.help}"


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
        "message": {"text": display_text(f"{one.title}. {one.remedy}", limit=MOST_CHARACTERS)},
        "locations": [place],
        # The second is the only one that GitHub looks at; it would make one of the line, which several results share.
        "partialFingerprints": {"rulePlace/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"},
        "properties": properties,
    }


def _invocation(failures: Sequence[str], notes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return whether all went well, why not, and what else could not be judged."""
    texts = [display_text(one, limit=MOST_CHARACTERS) for one in failures]
    return {
        "executionSuccessful": not failures,
        "toolExecutionNotifications": [{"level": "error", "message": {"text": text}} for text in texts],
        "toolConfigurationNotifications": list(notes),
    }


def _notifications(found: Found, checked: Sequence[str], before: str = "") -> list[dict[str, Any]]:
    """Return what could not be judged, and how much is not listed; `before` names the node."""
    notes = [(one.rule, f"{before}{one.rule} could not be judged: {one.why}.") for one in found.unjudged]
    notes += [(one.rule, f"{before}{one.places:,} more places break {one.rule}.") for one in found.unlisted]
    return [
        {
            "associatedRule": {"id": rule, "index": checked.index(rule)},
            "level": "warning",
            "message": {"text": text},
        }
        for rule, text in notes
    ]
