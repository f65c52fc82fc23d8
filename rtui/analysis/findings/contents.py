"""The rules about keys, and their findings in a report.

A registry adds purposes and owners of keys, sets severities and parameters, and names figures that a report lacks. A
report that was made with the registry has counted all keys by it. One from a file may have been made without it, or
with another: the example keys of a namespace tell which patterns it has, but the numbers of keys that break a pattern's
expectations, or a naming rule, are not in it. The rules about these are not judged. Nor are references followed for a
report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from rtui.analysis.findings import encodings, expiring, keys, names
from rtui.analysis.findings.finding import Basis, Finder, Finding, Found, Unjudged, cost, judge, levels_of, purpose_text
from rtui.analysis.humanize import counted
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import TEXT_LIMIT, ReferenceChecks
from rtui.analysis.report.tables.cells import so_far
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import Entry, Registry
from rtui.registry.rules import RuleLevels, Severity


def _knows(*facts: str) -> Callable[[Basis], str]:
    """Return the function that says why the first unknown one of these columns is unknown."""
    return lambda basis: basis.why_unknown(*facts)


FINDERS: Final[tuple[Finder[Basis], ...]] = (
    Finder(expiring.CLIFF, expiring.cliffs, _knows("ttl")),
    Finder(expiring.MIXED, expiring.mixed, _knows("ttl")),
    Finder(expiring.LOCK_WITHOUT_TTL, expiring.locks_without_ttl, _knows("ttl")),
    Finder(expiring.LOCK_LONG, expiring.long_locks, expiring.long_unknown),
    Finder(
        keys.BIG,
        keys.big_keys,  # memory or length suffices
        lambda basis: basis.why_unknown("type") or (basis.why_unknown("memory") if not basis.knows("length") else ""),
    ),
    Finder(names.SKEW, names.skewed_tags, names.shares_unknown),
    Finder(names.CROSS, names.scattered, applies=names.is_cluster),
    Finder(names.JAVA, names.java_names, applies=lambda basis: bool(names.java_namespaces(basis))),
    Finder(
        keys.GROWING,
        keys.growing_queues,
        _knows("type", "length"),
        lambda basis: basis.before is not None,
        lacks="there is no earlier report to compare with (--since)",
    ),
    Finder(encodings.NULL, encodings.tiny_strings, encodings.tiny_unknown),
    Finder(
        encodings.AS_HASH,
        encodings.strings_as_hash,
        lambda basis: basis.why_unknown("type", "ttl", "memory", "length") or encodings.string_lengths_unknown(basis),
    ),
    Finder(encodings.OVER, encodings.lengths_over, encodings.lengths_unknown, encodings.has_limited_types),
    Finder(
        keys.HOT,
        keys.expiring_hot_keys,
        _knows("ttl"),
        lambda basis: basis.report.hot.ranks_by_use,
        lacks="the server counts no accesses (an LFU policy or HOTKEYS)",
    ),
    Finder(keys.IDLE, keys.idle_keys, keys.idle_unknown),
    *(
        Finder(rule, partial(names.broken, rule), partial(names.expected_unknown, rule), part="registry")
        for rule in names.EXPECTATIONS
    ),
    Finder(names.UNREGISTERED, names.unregistered, part="registry"),
    Finder(names.UNUSED, names.unused, names.patterns_unseen, part="registry"),
    Finder(names.DEPRECATED, names.deprecated, part="registry"),
    *(
        Finder(rule, partial(names.against, rule), partial(names.name_rule_off, rule), part="naming")
        for rule in names.NAMES
    ),
    Finder(keys.DANGLING, keys.dangling, keys.references_left, lambda basis: basis.references is not None),
    Finder(keys.TWIN, keys.twins, keys.references_left, lambda basis: basis.references is not None),
)

MOST_PLACES: Final = 20
"""Findings of one rule that are listed, the most costly ones."""

MOST_PURPOSES: Final = 3
"""Most patterns named in one finding."""

_TEXT: Final = 120


def findings(
    report: Report,
    levels: RuleLevels | None = None,
    before: Report | None = None,
    references: ReferenceChecks | None = None,
    *,
    most_places: int | None = MOST_PLACES,
) -> Found:
    """Return the findings of a report by the rules that are on, and the rules it has too few figures for.

    `before` is an earlier report of the same keyspace, for rules about changes; `references` are the results of
    following the registry's references. `levels` are by default those that the report was made with. Of each rule the
    `most_places` most costly findings are listed, None for all.
    """
    basis = Basis(report, levels_of(report) if levels is None else levels, before, references)
    found = judge(_with_parts(report), basis, basis.levels, in_doubt=True, most_places=most_places)
    return replace(
        found,
        findings=tuple(sorted(found.findings, key=lambda one: (one.severity is not Severity.ERROR, cost(one)))),
        notes=tuple(_goes_by(basis)) if keys.BIG in found.checked else (),
        so_far=SafeText(so_far(report.head.coverage)),
    )


def _with_parts(report: Report) -> Iterator[Finder[Basis]]:
    return (one for one in FINDERS if not one.part or getattr(report.summary, one.part) is not None)


def looked_at(report: Report, levels: RuleLevels) -> frozenset[str]:
    """Return the rules whose subject a report has, without rules that are off."""
    basis = Basis(report, levels)
    return frozenset(
        one.rule for one in _with_parts(report) if one.applies(basis) and levels.severity(one.rule) is not Severity.OFF
    )


def _goes_by(basis: Basis) -> Iterator[SafeText]:
    """Yield the measure of the rule about big keys, if the other one is unknown."""
    for known, other in (("memory", "length"), ("length", "memory")):
        if basis.knows(known) and (why := basis.why_unknown(other)):
            yield SafeText(f"{keys.BIG} goes by {known}: {why}")


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
    part_missing = "the report was made without a registry" if report.summary.registry is None else names.RULE_WAS_OFF
    followed = {keys.DANGLING: bool(references), keys.TWIN: any(one.twin is not None for one in references)}
    for finder in FINDERS:
        severity, is_set = registry.rules.severity(finder.rule), registry.rules.is_set(finder.rule)
        if severity is Severity.OFF or finder.rule in found.checked:
            continue
        if finder.part and (registry.entries or (is_set and finder.part == "naming")):
            if getattr(report.summary, finder.part) is None:
                yield Unjudged(finder.rule, severity, SafeText(part_missing))
        elif followed.get(finder.rule):
            yield Unjudged(
                finder.rule, severity, SafeText("references were not followed; rtui check follows them on the server")
            )
        elif finder.lacks and is_set:
            yield Unjudged(finder.rule, severity, SafeText(finder.lacks))


def _notes(report: Report, entries: dict[SafeText, Entry]) -> Iterator[SafeText]:
    """Yield a note if the report was made with another registry."""
    made_with = report.summary.registry
    if made_with is None:
        return
    missing = len(set(entries) - {SafeText(entry.pattern) for entry in made_with.entries})
    if missing:
        are = "is" if missing == 1 else "are"
        yield SafeText(
            f"{counted(missing, 'pattern')} of the registry {are} not judged: the report was made with another registry"
        )
