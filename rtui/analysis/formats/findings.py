"""Findings as text for a terminal or a log, as JSON for programs, and as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.finding import Amount, Finding, Found
from rtui.analysis.formats.comparison import head_text
from rtui.analysis.formats.markdown import code, escaped
from rtui.analysis.report.document import Report
from rtui.registry.rules import RULES, Family, Severity

FINDINGS_FORMAT: Final = "rtui findings"
FINDINGS_SCHEMA: Final = 1
"""Grows with every change that an older reader would misread."""


def findings_text(report: Report, found: Found) -> str:
    """Return the findings in paragraphs, most costly first."""
    return "\n".join([head_text(report.head), "", *text_lines(found), ""])


def text_lines(found: Found) -> Iterator[str]:
    """Yield the findings in paragraphs, then how much was found and by which rules."""
    for one in found.findings:
        yield f"{one.severity}  {one.rule}  {_bytes(one)}".rstrip()
        yield f"  {one.title}"
        for line in one.evidence:
            yield f"    {line}"
        yield f"  why    {one.why}"
        yield f"  do     {one.remedy}"
        if _is_of_server(one):
            yield f"  how    {one.basis}"
        if query := one.query:
            yield f"  query  {query}"
        if note := one.query_note:
            yield f"         ({note})"
        yield f"  look   {one.command}"
        yield ""
    yield from _ending(found)


def _ending(found: Found) -> Iterator[str]:
    """Yield the lines that say how much was found, and by which rules."""
    for rest in found.unlisted:
        yield f"not listed: {humanize.counted(rest.places, 'more place')} of {rest.rule}, all less costly"
    for why, rules in found.doubts.items():
        yield f"not judged: {', '.join(rules)} ({why})"
    for note in found.notes:
        yield f"note: {note}"
    by = f"{humanize.counted(len(found.judged), 'rule')}: {', '.join(found.judged)}" if found.judged else "no rule"
    yield f"{summary(found)}{found.so_far} by {by}."


def summary(found: Found) -> str:
    """Return how much is found: `1 error and 2 warnings`."""
    counts = Counter(one.severity for one in found.findings)
    errors = humanize.counted(counts[Severity.ERROR], "error")
    return f"{errors} and {humanize.counted(counts[Severity.WARN], 'warning')}"


def _is_of_server(one: Finding) -> bool:
    """Whether its thresholds are about a server: those have a source that is worth a line."""
    return RULES[one.rule].family is Family.SERVER


def _bytes(one: Finding) -> str:
    return "" if one.memory is None else one.memory.size()


def findings_markdown(report: Report, found: Found) -> str:
    """Return a table of the findings and a section for each."""
    return "\n".join(["# rtui check", "", escaped(head_text(report.head)), "", *markdown_lines(found), ""])


def markdown_lines(found: Found, level: str = "##") -> list[str]:
    """Return the table, a section of this level for each, then how much was found and by which rules."""
    lines: list[str] = []
    if found.findings:
        lines += ["| severity | rule | finding | bytes |", "|---|---|---|--:|"]
        lines += [f"| {one.severity} | {one.rule} | {escaped(one.title)} | {_bytes(one)} |" for one in found.findings]
        lines.append("")
    for one in found.findings:
        lines += [f"{level} {one.rule}: {escaped(one.where)}", "", f"{escaped(one.title)}.", ""]
        lines += [f"- {escaped(line)}" for line in one.evidence]
        lines += [f"- Why: {escaped(one.why)}", f"- Do: {escaped(one.remedy)}"]
        lines += [f"- How: {escaped(one.basis)}"] if _is_of_server(one) else []
        lines += [f"- Query: {code(query)}"] if (query := one.query) else []
        lines += [f"- Look: {code(one.command)}", ""]
    return [*lines, *(escaped(line) for line in _ending(found))]


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
    """Return the rules that could not be judged."""
    return [{"rule": one.rule, "severity": one.severity, "why": one.why} for one in found.unjudged]


def finding_record(one: Finding) -> dict[str, Any]:
    """Return all about a finding as values of JSON."""
    return {
        "rule": one.rule,
        "severity": one.severity,
        "title": one.title,
        "where": one.where,
        "keys": _figure(one.keys),
        "memory_bytes": _figure(one.memory),
        "evidence": list(one.evidence),
        "breaks": RULES[one.rule].title,
        "why": one.why,
        "remedy": one.remedy,
        "basis": one.basis,
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
