"""Findings as a page for people, and as JSON for programs."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Final

from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.finding import Amount, Finding, Found
from rtui.analysis.formats.blocks import Findings, Page, Paragraph
from rtui.analysis.formats.changes import head_text
from rtui.analysis.report.document import Report
from rtui.registry.rules import RULES

FINDINGS_FORMAT: Final = "rtui findings"
FINDINGS_SCHEMA: Final = 1
"""Grows with every change that an older reader would misread."""


def findings_page(report: Report, found: Found) -> Page:
    """Return the findings of a report in full, most costly first."""
    return Page("rtui check", [Paragraph((head_text(report.head),)), Findings(found)])


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
