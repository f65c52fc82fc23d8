"""Which findings are new, gone, grown or shrunk between two reports of a keyspace; findings as tables.

Two findings are the same if their rule and their place are. Both reports are judged anew by the same severities and
parameters, so that a change comes from the keyspace and not from the rules. Rules that only one of the reports has the
figures for, such as those of a registry that the other was made without, are not compared.

A report that is partial, an estimate, or lacks figures of a rule may have missed a finding. A finding of the other
report alone may then be new, or gone, and the number of new ones is a range, see `counted`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Final

from rtui.analysis.findings.contents import findings, looked_at
from rtui.analysis.findings.finding import Amount, Finding, Found, levels_of
from rtui.analysis.report.comparison import LEAST_GROWTH
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.readings import Direction, FigureChange, Interval, Reading, reading
from rtui.analysis.report.tables.changes import change_cell, change_column
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit
from rtui.analysis.report.thresholds import ThresholdMeasure
from rtui.registry.rules import RuleLevels, Severity


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
"""A report without the finding."""

_FATES: Final = {Direction.GREW: FindingFate.GREW, Direction.SHRANK: FindingFate.SHRANK}


@dataclass(frozen=True, slots=True)
class FindingChange:
    """One finding in two reports."""

    finding: Finding
    """As the later report has it, or the earlier one if it is gone."""
    fate: FindingFate
    keys: FigureChange
    memory: FigureChange
    """Bytes."""


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
    """Safe sentences about rules that were not compared, and gaps of a report."""

    def of_fate(self, fate: FindingFate) -> list[FindingChange]:
        """Return the findings of one fate, most costly first."""
        return [one for one in self.changes.values() if one.fate is fate]

    def counted(self) -> dict[ThresholdMeasure, Interval]:
        """Return how many findings are new, grown and gone, as intervals where that is not certain."""
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
    """Compare the findings of two reports.

    `levels` are their severities and parameters; by default those of the second report, else of the first.
    """
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
    """The noun for both sides: `reports`."""
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
        [f"Rules that only one of the {after.noun} can be judged by: {', '.join(uncompared)}."] if uncompared else []
    )
    notes += _unjudged(before, after)
    return FindingsComparison(changes, uncompared, open_after, open_before, tuple(notes))


def _unjudged(before: Side, after: Side) -> Iterator[str]:
    """Yield a sentence for each reason why rules could not be judged."""
    earlier, later = before.found.doubts, after.found.doubts
    for why in dict.fromkeys((*earlier, *later)):
        was, now = ", ".join(earlier.get(why, ())), ", ".join(later.get(why, ()))
        sides = [f"{side.when}: {rules}" for side, rules in ((before, was), (after, now)) if rules]
        yield f"Not judged {f'in both {after.noun}: {was}' if was == now else '; '.join(sides)} ({why})."


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
    Column("severity", "", Unit.TEXT, 5, "How much it matters: a warning or an error"),
    Column("finding", "finding", Unit.TEXT, 0),
    Column("memory", "bytes", Unit.BYTES, 9, "Of the keys that it is about"),
    Column("keys", "keys", Unit.KEYS, 9),
    Column("rule", "rule", Unit.TEXT, 18),
)


def findings_table(found: Found) -> Table:
    """Return a row for each finding, errors first, then the most costly; its subject is its identity."""
    return Table(
        "findings",
        "What is wrong",
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
"""Findings that are gone which are listed, the most costly ones."""

_SINCE: Final = Column("since", "since", Unit.TEXT, 5, "What became of it since the earlier report")

_WORDS: Final = {
    FindingFate.NEW: "new",
    FindingFate.MAYBE_NEW: "new?",
    FindingFate.GREW: "grew",
    FindingFate.SHRANK: "less",
    FindingFate.MAYBE_GONE: "gone?",
    FindingFate.GONE: "gone",
}
"""The words of fates; none for an unchanged finding, or an unclear change."""


def gone(compared: FindingsComparison) -> dict[str, Finding]:
    """Return the most costly findings that only the earlier report has, by their identities."""
    fates = (FindingFate.GONE, FindingFate.MAYBE_GONE)
    found = [(name, one.finding) for name, one in compared.changes.items() if one.fate in fates]
    return dict(found[:MOST_GONE])


def compared_table(found: Found, compared: FindingsComparison) -> Table:
    """Return the findings with the changes of their bytes and keys, then the findings that are gone."""
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
