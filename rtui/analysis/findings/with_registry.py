"""What a registry adds to findings: what the keys are for and whose they are, and what a report does not tell.

A report that was made with the registry has counted all keys by it. One from a file may have been made without it, or
with another. Of such a report a registry still sets severities and parameters of rules, and the example keys of a
namespace tell which patterns it has. How many keys break what is expected of a pattern, or have a name against a rule,
is not in it: the rules about that are not judged. Nor are references followed for a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from rtui.analysis.findings.contents import FINDERS, RULE_WAS_OFF
from rtui.analysis.findings.finding import Finding, Found, Unjudged
from rtui.analysis.findings.keys import DANGLING, TWIN
from rtui.analysis.findings.places import purpose_text
from rtui.analysis.humanize import counted
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import TEXT_LIMIT
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import Entry, Registry
from rtui.registry.rules import Severity

MOST_PURPOSES: Final = 3
"""Patterns that are told of one finding."""

_TEXT: Final = 120
_WITHOUT: Final = SafeText("the report was made without a registry")
_OFF: Final = SafeText(RULE_WAS_OFF)
_NOT_FOLLOWED: Final = SafeText("references were not followed; rtui check follows them on the server")


def with_registry(found: Found, report: Report, registry: Registry | None) -> Found:
    """Return findings with purposes and owners, and the rules that the report does not suffice for."""
    if registry is None:
        return found
    unjudged = list(_unjudged(found, report, registry))
    if not (registry.entries or unjudged):
        return found
    entries = {display_text(entry.pattern.text, limit=TEXT_LIMIT): entry for entry in reversed(registry.entries)}
    return replace(
        found,
        findings=tuple(_explained(one, registry, entries) for one in found.findings),
        unjudged=(*found.unjudged, *unjudged),
        checked=(*found.checked, *(one.rule for one in unjudged)),
        notes=(*found.notes, *_notes(report, entries)),
    )


def _explained(one: Finding, registry: Registry, entries: dict[SafeText, Entry]) -> Finding:
    lines = tuple(line for line in _purposes(one, registry, entries) if line not in one.evidence)
    return replace(one, evidence=(*one.evidence, *lines)) if lines else one


def _purposes(one: Finding, registry: Registry, entries: dict[SafeText, Entry]) -> Iterator[SafeText]:
    if one.pattern:
        entry = entries.get(SafeText(one.pattern))
        if entry is not None and (text := purpose_text(entry.purpose, entry.owner)):
            yield text
        return
    found = dict.fromkeys(registry.matcher.match_page(list(one.example_keys)))
    known = [registry.entries[index] for index in found if index >= 0]
    for entry in [entry for entry in known if entry.purpose or entry.owner][:MOST_PURPOSES]:
        pattern = display_text(entry.pattern.text, limit=_TEXT)
        yield SafeText(f"{pattern}: {purpose_text(entry.purpose, entry.owner)}")


def _unjudged(found: Found, report: Report, registry: Registry) -> Iterator[Unjudged]:
    """Yield the rules about parts that the report does not have, and about references that nobody followed."""
    references = [reference for entry in registry.entries for reference in entry.references]
    followed = {DANGLING: bool(references), TWIN: any(one.twin is not None for one in references)}
    for finder in FINDERS:
        severity, is_set = registry.rules.severity(finder.rule), registry.rules.is_set(finder.rule)
        if severity is Severity.OFF or finder.rule in found.checked:
            continue
        if finder.part and (registry.entries or (is_set and finder.part == "naming")):
            if getattr(report.summary, finder.part) is None:
                yield Unjudged(finder.rule, severity, _WITHOUT if report.summary.registry is None else _OFF)
        elif followed.get(finder.rule):
            yield Unjudged(finder.rule, severity, _NOT_FOLLOWED)
        elif finder.lacks and is_set:
            yield Unjudged(finder.rule, severity, SafeText(finder.lacks))


def _notes(report: Report, entries: dict[SafeText, Entry]) -> Iterator[SafeText]:
    """Yield what is to know where the report was made with another registry."""
    made_with = report.summary.registry
    if made_with is None:
        return
    missing = len(set(entries) - {SafeText(entry.pattern) for entry in made_with.entries})
    if missing:
        are = "is" if missing == 1 else "are"
        yield SafeText(
            f"{counted(missing, 'pattern')} of the registry {are} not judged: the report was made with another registry"
        )
