"""The rules about keys, their findings in a report, and which are new, gone, grown or shrunk between two reports.

A registry adds purposes and owners of keys, sets severities and parameters, and names figures that a report lacks. A
report that was made with the registry has counted all keys by it. One from a file may have been made without it, or
with another: the example keys of a namespace tell which patterns it has, but the numbers of keys that break a pattern's
expectations, or a naming rule, are not in it. The rules about these are not judged. Nor are references followed for a
report.

Two findings are the same if their rule and their place are. Both reports are judged anew by the same severities and
parameters, so that a change comes from the keyspace and not from the rules. Rules that only one of the reports has the
figures for, such as those of a registry that the other was made without, are not compared.

A report that is partial, an estimate, or lacks figures of a rule may have missed a finding. A finding of the other
report alone may then be new, or gone, and the number of new ones is a range, see `counted`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Final

from msgspec.structs import replace as with_fields

from rtui.analysis.findings import encodings, keys, names
from rtui.analysis.findings.finding import (
    Amount,
    Basis,
    Finder,
    Finding,
    Found,
    Unjudged,
    cost,
    judge,
    levels_of,
    purpose_text,
)
from rtui.analysis.humanize import counted
from rtui.analysis.report.comparison import LEAST_GROWTH
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import TEXT_LIMIT, ReferenceChecks
from rtui.analysis.report.readings import Direction, FigureChange, Interval, Reading, reading
from rtui.analysis.report.tables.cells import so_far
from rtui.analysis.report.tables.changes import change_cell, change_column
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit
from rtui.analysis.report.thresholds import ThresholdMeasure
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import Registry, RegistryEntry
from rtui.registry.rules import RuleLevels, Severity


def _knows(*facts: str) -> Callable[[Basis], str]:
    return lambda basis: basis.why_unknown(*facts)


FINDERS: Final[tuple[Finder[Basis], ...]] = (
    Finder(keys.CLIFF, keys.cliffs, _knows("ttl")),
    Finder(keys.MIXED, keys.mixed, _knows("ttl")),
    Finder(keys.LOCK_WITHOUT_TTL, keys.locks_without_ttl, _knows("ttl")),
    Finder(keys.LOCK_LONG, keys.long_locks, keys.long_unknown),
    Finder(keys.BIG, keys.big_keys,
        lambda basis: basis.why_unknown("type") or (basis.why_unknown("memory") if not basis.knows("length") else "")),
    Finder(names.SKEW, names.skewed_tags, names.shares_unknown),
    Finder(names.CROSS, names.scattered, applies=names.is_cluster),
    Finder(names.JAVA, names.java_names, applies=lambda basis: bool(names.java_namespaces(basis))),
    Finder(keys.GROWING, keys.growing_queues, _knows("type", "length"), lambda basis: basis.before is not None,
        lacks="there is no earlier report (--since)"),
    Finder(encodings.NULL, encodings.tiny_strings, encodings.tiny_unknown),
    Finder(encodings.AS_HASH, encodings.strings_as_hash,
        lambda basis: basis.why_unknown("type", "ttl", "memory", "length") or encodings.string_lengths_unknown(basis)),
    Finder(encodings.OVER, encodings.lengths_over, encodings.lengths_unknown, encodings.has_limited_types),
    Finder(keys.HOT, keys.expiring_hot_keys, _knows("ttl"), lambda basis: basis.report.hot.ranks_by_use,
        lacks="the server counts no accesses (needs an LFU policy or HOTKEYS)"),
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
)  # fmt: skip

MOST_PLACES: Final = 20
"""Findings of one rule that are listed, the most costly ones."""

MOST_PURPOSES: Final = 3
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
    return with_fields(
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
    return with_fields(
        found,
        findings=tuple(_explained(one, registry, entries) for one in found.findings),
        unjudged=(*found.unjudged, *unjudged),
        checked=(*found.checked, *(one.rule for one in unjudged)),
        notes=(*found.notes, *_notes(report, entries)),
    )


def _explained(one: Finding, registry: Registry, entries: dict[SafeText, RegistryEntry]) -> Finding:
    lines = tuple(line for line in _purposes(one, registry, entries) if line not in one.evidence)
    return with_fields(one, evidence=(*one.evidence, *lines)) if lines else one


def _purposes(one: Finding, registry: Registry, entries: dict[SafeText, RegistryEntry]) -> Iterator[SafeText]:
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


def _notes(report: Report, entries: dict[SafeText, RegistryEntry]) -> Iterator[SafeText]:
    made_with = report.summary.registry
    if made_with is None:
        return
    missing = len(set(entries) - {SafeText(entry.pattern) for entry in made_with.entries})
    if missing:
        are = "is" if missing == 1 else "are"
        yield SafeText(
            f"{counted(missing, 'pattern')} of the registry {are} not checked: the report is of another registry"
        )


class FindingFate(StrEnum):
    """The fate of a finding between two reports."""

    NEW = "new"
    MAYBE_NEW = "may be new"
    """The earlier report may have missed it."""
    GREW = "grew"
    """In bytes, or where these do not tell, in keys."""
    SHRANK = "shrank"
    SAME = "as before"
    """Or changed by less than 1 %."""
    UNCLEAR = "not distinguishable"
    """The intervals of both reports overlap."""
    MAYBE_GONE = "may be gone"
    """The later report may have missed it."""
    GONE = "gone"


_ALL_OF_IT: Final = Reading(0, 0.0, 0.0, is_present=False)
_FATES: Final = {Direction.GREW: FindingFate.GREW, Direction.SHRANK: FindingFate.SHRANK}


@dataclass(frozen=True, slots=True)
class FindingChange:
    """One finding in two reports."""

    finding: Finding
    """As the later report has it, or the earlier one if it is gone."""
    fate: FindingFate
    keys: FigureChange
    memory: FigureChange


@dataclass(frozen=True, slots=True)
class FindingsComparison:
    """The findings of two reports compared."""

    changes: Mapping[str, FindingChange]
    """By the identities of findings: first the later report's, then the findings that are gone."""
    uncompared: tuple[str, ...]
    """Rules whose subject only one of the reports has."""
    open_after: frozenset[Severity]
    """Of which severities there may be more findings than the later report has."""
    open_before: frozenset[Severity]
    notes: tuple[str, ...] = ()

    def of_fate(self, fate: FindingFate) -> list[FindingChange]:
        return [one for one in self.changes.values() if one.fate is fate]

    def counted(self) -> dict[ThresholdMeasure, Interval]:
        fates = Counter(one.fate for one in self.changes.values())
        errors = Counter(one.fate for one in self.changes.values() if one.finding.severity is Severity.ERROR)
        new, maybe, grown, unclear = FindingFate.NEW, FindingFate.MAYBE_NEW, FindingFate.GREW, FindingFate.UNCLEAR
        gone, maybe_gone, is_open = FindingFate.GONE, FindingFate.MAYBE_GONE, bool(self.open_after)
        return {
            ThresholdMeasure.NEW_FINDINGS: _interval(fates[new], fates[maybe], is_open=is_open),
            ThresholdMeasure.NEW_ERRORS: _interval(
                errors[new], errors[maybe], is_open=Severity.ERROR in self.open_after
            ),
            ThresholdMeasure.GROWN_FINDINGS: _interval(fates[grown], fates[unclear], is_open=is_open),
            ThresholdMeasure.GONE_FINDINGS: _interval(fates[gone], fates[maybe_gone], is_open=bool(self.open_before)),
        }


def compare_findings(before: Report, after: Report, levels: RuleLevels | None = None) -> FindingsComparison:
    """`levels` are by default those of the second report, else of the first."""
    if levels is None:
        levels = levels_of(after if after.summary.rules else before)
    was = findings(before, levels, most_places=None)
    now = findings(after, levels, before, most_places=None)
    of_change = set(now.checked) - looked_at(after, levels)
    first = Side("in the first report", was, "reports", _missable(before, was))
    second = Side("in the second report", now, "reports", _missable(after, now))
    shared = set(was.checked) & set(now.checked) | of_change
    return compare_found(first, second, shared, levels)


@dataclass(frozen=True, slots=True)
class Side:
    """The findings of one time."""

    when: str
    """For notes: `in the first report`."""
    found: Found
    noun: str
    missable: frozenset[str]
    """Rules that there may be more of than they find."""


def compare_found(before: Side, after: Side, shared: Collection[str], levels: RuleLevels) -> FindingsComparison:
    """Compare the findings of the rules `shared` by both sides; the others are named as not compared."""
    was, now = before.found, after.found
    earlier = dict(zip(was.identities, was.findings, strict=True))
    later = dict(zip(now.identities, now.findings, strict=True))
    changes = {}
    for name, one in later.items():
        if one.rule in shared:
            changes[name] = _change(earlier.get(name), one, is_certain=one.rule not in before.missable)
    for name, one in earlier.items():
        if one.rule in shared and name not in later:
            fate = FindingFate.MAYBE_GONE if one.rule in after.missable else FindingFate.GONE
            changes[name] = FindingChange(one, fate, *_figures(one, None))
    uncompared = tuple(rule for rule in dict.fromkeys((*was.checked, *now.checked)) if rule not in shared)
    open_after = frozenset(map(levels.severity, after.missable.union(uncompared)))
    open_before = frozenset(map(levels.severity, before.missable.union(uncompared)))
    notes = (
        [f"Rules that could be checked in only one of the {after.noun}: {', '.join(uncompared)}."] if uncompared else []
    )
    notes += _judged_by_none(before, after)
    return FindingsComparison(changes, uncompared, open_after, open_before, tuple(notes))


def _judged_by_none(before: Side, after: Side) -> Iterator[str]:
    earlier, later = before.found.doubts, after.found.doubts
    for why in dict.fromkeys((*earlier, *later)):
        was, now = ", ".join(earlier.get(why, ())), ", ".join(later.get(why, ()))
        sides = [f"{side.when}: {rules}" for side, rules in ((before, was), (after, now)) if rules]
        yield f"Not checked {f'in both {after.noun}: {was}' if was == now else '; '.join(sides)} ({why})."


def _missable(report: Report, found: Found) -> frozenset[str]:
    """Return the rules that may find more in the keyspace than they do in a report of it."""
    if report.head.coverage.kind is not CoverageKind.EXACT:
        return frozenset(found.checked)
    return frozenset(one.rule for one in found.unjudged)


def _change(before: Finding | None, after: Finding, *, is_certain: bool) -> FindingChange:
    keys, memory = _figures(before, after)
    if before is None:
        return FindingChange(after, FindingFate.NEW if is_certain else FindingFate.MAYBE_NEW, keys, memory)
    directions = {keys.direction, memory.direction}
    fate = FindingFate.UNCLEAR if Direction.UNCLEAR in directions else FindingFate.SAME
    for change in (memory, keys):
        growth = change.growth()
        if growth is not None and change.direction in _FATES and max(growth.high, -growth.low) >= LEAST_GROWTH:
            fate = _FATES[change.direction]
            break
    return FindingChange(after, fate, keys, memory)


def _figures(before: Finding | None, after: Finding | None) -> tuple[FigureChange, FigureChange]:
    keys = FigureChange(*(_ALL_OF_IT if one is None else _reading(one.keys) for one in (before, after)))
    memory = FigureChange(*(_ALL_OF_IT if one is None else _reading(one.memory) for one in (before, after)))
    return keys, memory


def _reading(found: Amount | None) -> Reading | None:
    return None if found is None else reading(found.figure, at_least=found.at_least)


def _interval(certain: int, possible: int, *, is_open: bool) -> Interval:
    return Interval(Fraction(certain), math.inf if is_open else Fraction(certain + possible))


COLUMNS = (
    Column("severity", "", Unit.TEXT, 5, "Severity: warn or error"),
    Column("finding", "finding", Unit.TEXT, 0),
    Column("memory", "memory", Unit.BYTES, 9, "Memory of the affected keys"),
    Column("keys", "keys", Unit.KEYS, 9),
    Column("rule", "rule", Unit.TEXT, 18),
)


def findings_table(found: Found) -> Table:
    return Table(
        "findings",
        "Findings",
        COLUMNS,
        tuple(map(_row, found.findings)),
        found.identities,
        note=found.remarks,
        tells_by_subject=True,
    )


def _row(one: Finding) -> Row:
    memory, keys = (None if figure is None else figure.cell for figure in (one.memory, one.keys))
    return one.severity.value, one.title, memory, keys, one.rule


MOST_GONE: Final = 20
_SINCE: Final = Column("since", "since", Unit.TEXT, 5, "Change since the earlier report")

_WORDS: Final = {
    FindingFate.NEW: "new",
    FindingFate.MAYBE_NEW: "new?",
    FindingFate.GREW: "grew",
    FindingFate.SHRANK: "less",
    FindingFate.MAYBE_GONE: "gone?",
    FindingFate.GONE: "gone",
}


def gone(compared: FindingsComparison) -> dict[str, Finding]:
    fates = (FindingFate.GONE, FindingFate.MAYBE_GONE)
    found = [(name, one.finding) for name, one in compared.changes.items() if one.fate in fates]
    return dict(found[:MOST_GONE])


def compared_table(found: Found, compared: FindingsComparison) -> Table:
    table, changes = findings_table(found), compared.changes
    names = found.identities
    rows = [_compared_row(row, changes.get(name)) for row, name in zip(table.rows, names, strict=True)]
    went = gone(compared)
    rows += [_gone_row(changes[name]) for name in went]
    columns = []
    for column in COLUMNS:
        columns.append(column)
        if column.id == "severity":
            columns.append(_SINCE)
        elif column.id in ("memory", "keys"):
            columns.append(change_column(column))
    return replace(table, columns=tuple(columns), rows=tuple(rows), subjects=(*names, *went))


def _compared_row(row: Row, change: FindingChange | None) -> Row:
    severity, title, memory, keys, rule = row
    if change is None:
        return severity, "", title, memory, None, keys, None, rule
    word = _WORDS.get(change.fate, "")
    return severity, word, title, memory, change_cell(change.memory), keys, change_cell(change.keys), rule


def _gone_row(change: FindingChange) -> Row:
    one, is_certain = change.finding, change.fate is FindingFate.GONE
    now: Cell = 0 if is_certain else None
    changed: list[Cell] = [change_cell(figure) if is_certain else None for figure in (change.memory, change.keys)]
    return one.severity.value, _WORDS[change.fate], one.title, now, changed[0], now, changed[1], one.rule
