"""SARIF and JUnit: what the schemas and GitHub ask of the parts that are written, and where results point to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
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


Spec = str | frozenset[Any] | list[Any]
"""What a value is: the name of an object or of a check, one of some values, or a list of such."""


@dataclass(frozen=True)
class Shape:
    """An object of SARIF: what it must have, and what it may have."""

    required: dict[str, Spec]
    optional: dict[str, Spec] = field(default_factory=dict)


TEXT = Shape({"text": "shown text"})
LEVEL = frozenset({"note", "warning", "error"})
"""Those of the schema but `none`, which GitHub does not know."""

OBJECTS: Mapping[str, Shape] = {
    "log": Shape({"$schema": "uri", "version": frozenset({"2.1.0"}), "runs": ["run"]}),
    "run": Shape(
        {"tool": "tool", "results": ["result"]},
        {
            "invocations": ["invocation"],
            "columnKind": frozenset({"utf16CodeUnits", "unicodeCodePoints"}),
            "properties": "bag",
        },
    ),
    "tool": Shape({"driver": "component"}),
    "component": Shape({"name": "text", "rules": ["rule"]}, {"version": "text"}),
    "rule": Shape(
        {"id": "text", "shortDescription": "string", "fullDescription": "string", "help": "string"},
        {"defaultConfiguration": "configuration"},
    ),
    "string": TEXT,
    "message": TEXT,
    "configuration": Shape({}, {"enabled": "boolean", "level": LEVEL}),
    "invocation": Shape(
        {"executionSuccessful": "boolean"},
        {
            "toolConfigurationNotifications": ["notification"],
            "toolExecutionNotifications": ["notification"],
            "exitCode": "index",
        },
    ),
    "notification": Shape({"message": "message"}, {"level": LEVEL, "associatedRule": "rule reference"}),
    "rule reference": Shape({"id": "text", "index": "index"}),
    "result": Shape(
        {"message": "message", "locations": ["location"], "partialFingerprints": "fingerprints"},
        {"ruleId": "text", "ruleIndex": "index", "level": LEVEL, "properties": "bag"},
    ),
    "location": Shape({"physicalLocation": "physical location"}, {"logicalLocations": ["logical location"]}),
    "physical location": Shape({"artifactLocation": "artifact", "region": "region"}),
    "artifact": Shape({"uri": "relative uri"}),
    "region": Shape({"startLine": "place", "startColumn": "place", "endLine": "place", "endColumn": "place"}),
    "logical location": Shape({"fullyQualifiedName": "text"}, {"kind": "text"}),
    "fingerprints": Shape({"primaryLocationLineHash": "text"}, {"rulePlace/v1": "text"}),
}

LONGEST_TEXT = 1_024
MOST = {"run": 20, "result": 5_000, "rule": 25_000, "location": 1}
"""Items of a list: what GitHub takes in, of results those that it shows."""

_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?#\[\]]|%[0-9A-F]{2})+")


def sarif_violations(document: Any) -> list[str]:
    """Return what is wrong with a log, by the schema and by what GitHub takes in."""
    found = list(_wrong(document, "log", "log"))
    if not found:
        for run in document["runs"]:
            names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
            found += ["two rules have one id"] if len(set(names)) < len(names) else []
            notes = [one for of in run.get("invocations", ()) for one in of.get("toolConfigurationNotifications", ())]
            references = [note["associatedRule"] for note in notes if "associatedRule" in note]
            references += [{"id": one["ruleId"], "index": one["ruleIndex"]} for one in run["results"]]
            found += [
                f"{one} is no rule" for one in references if names[one["index"] : one["index"] + 1] != [one["id"]]
            ]
            marks = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
            found += ["two results have one fingerprint"] if len(set(marks)) < len(marks) else []
    return found


def _wrong(value: Any, spec: Spec, where: str) -> Iterator[str]:
    if isinstance(spec, list):
        if not isinstance(value, list) or len(value) > MOST.get(spec[0], len(value)):
            yield f"{where} is no list of {spec[0]}"
            return
        for at, one in enumerate(value):
            yield from _wrong(one, spec[0], f"{where}[{at}]")
    elif isinstance(spec, frozenset):
        if value not in spec:
            yield f"{where} is {value!r}"
    elif spec in OBJECTS:
        yield from _wrong_object(value, OBJECTS[spec], where)
    elif not _CHECKS[spec](value):
        yield f"{where} is no {spec}: {value!r:.80}"


def _wrong_object(value: Any, shape: Shape, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is no object"
        return
    yield from (f"{where}.{name} is missing" for name in shape.required if name not in value)
    known = shape.required | shape.optional
    for name, one in value.items():
        if name in known:
            yield from _wrong(one, known[name], f"{where}.{name}")
        else:
            yield f"{where}.{name} is not known"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_uri(value: Any, *, is_relative: bool) -> bool:
    if not _is_text(value) or _REFERENCE.fullmatch(value) is None:
        return False
    parts = urlsplit(value)
    return not (parts.scheme or parts.netloc or value.startswith("/")) if is_relative else bool(parts.scheme)


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "text": _is_text,
    "shown text": lambda value: _is_text(value) and len(value) <= LONGEST_TEXT,
    "uri": lambda value: _is_uri(value, is_relative=False),
    "relative uri": lambda value: _is_uri(value, is_relative=True),
    "boolean": lambda value: isinstance(value, bool),
    "index": lambda value: _is_whole(value) and value >= 0,
    "place": lambda value: _is_whole(value) and value >= 1,
    "bag": lambda value: isinstance(value, dict) and "tags" not in value,
}


@dataclass(frozen=True)
class Tag:
    """An element of a JUnit report."""

    attributes: str = ""
    """Those that it may have; required are those with a `!`."""
    children: str = ""
    has_text: bool = False


TAGS: Mapping[str, Tag] = {
    "testsuites": Tag("name time tests failures errors", "testsuite"),
    "testsuite": Tag(
        "name! tests! failures! errors! group time skipped timestamp hostname id package file log url",
        "testsuite properties testcase system-out system-err",
    ),
    "properties": Tag("", "property"),
    "property": Tag("name! value!"),
    "testcase": Tag("name! time classname group", "skipped error failure system-out system-err"),
    "skipped": Tag("type message", has_text=True),
    "failure": Tag("type message", has_text=True),
    "error": Tag("type message", has_text=True),
    "system-out": Tag(has_text=True),
}
_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def junit_violations(root: Element) -> list[str]:
    """Return what is wrong with a report, by the schema and by what its own numbers say."""
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        tag = TAGS.get(element.tag)
        if tag is None:
            found.append(f"there is no {element.tag}")
            continue
        names = tag.attributes.split()
        required = {name[:-1] for name in names if name.endswith("!")}
        wrong = (required - set(element.attrib)) | (set(element.attrib) - {name.rstrip("!") for name in names})
        found += [f"{element.tag}: {name}" for name in sorted(wrong)]
        found += [f"{child.tag} in {element.tag}" for child in element if child.tag not in tag.children.split()]
        texts = [element.text or "", *(child.tail or "" for child in element)]
        if not tag.has_text and any(map(str.strip, texts)):
            found.append(f"{element.tag} has text")
        if _TIME.fullmatch(element.get("time", "")) is None:
            found.append(f"{element.tag} time {element.get('time')}")
        if element.tag in ("testsuites", "testsuite"):
            counted = {
                "tests": "testcase",
                "failures": "testcase/failure",
                "errors": "testcase/error",
                "skipped": "testcase/skipped",
            }
            for name, path in counted.items():
                if element.get(name, "x") not in ("x", str(len(element.findall(f".//{path}")))):
                    found.append(f"{element.tag} {name} is {element.get(name)}")
    return found
