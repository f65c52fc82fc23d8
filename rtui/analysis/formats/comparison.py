"""Comparisons: of two reports as a page and as JSON, and how a change is written, of a figure or of findings.

In JSON units are in the names; `null` is not known, and in `high` that nothing bounds it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final, NamedTuple

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.contents import FindingChange, FindingFate, FindingsComparison
from rtui.analysis.formats.blocks import Block, BlockPage, Facts, GroupedRows, Items, RowGroup
from rtui.analysis.humanize import Mark
from rtui.analysis.report.comparison import Comparison, Fate, NamespaceChange
from rtui.analysis.report.document import ColumnState, CoverageKind, Head
from rtui.analysis.report.readings import Bound, Direction, FigureChange, Interval, Reading
from rtui.analysis.report.tables.changes import LISTED, weight
from rtui.analysis.report.thresholds import Judgement, Outcome
from rtui.keyspace.text.display import SafeText, display, display_text, quoted
from rtui.registry.rules import Severity


def count_text(value: float, mark: Mark) -> SafeText:
    return humanize.short_count(value, mark) if mark is Mark.ABOUT else humanize.count(round(value), mark)


def both_text(
    change: FigureChange, spell: humanize.NumberFormat, states: tuple[ColumnState | None, ColumnState | None]
) -> str:
    """Return a number before and after, `1,000 → 1,200`, once where both are the same; `states` are of its columns."""
    before, after = _reading_text(change.before, spell, states[0]), _reading_text(change.after, spell, states[1])
    return before if before == after else f"{before} → {after}"


def _reading_text(found: Reading | None, spell: humanize.NumberFormat, state: ColumnState | None) -> str:
    if found is None:
        return "denied" if state is ColumnState.DENIED else humanize.NOTHING
    if not found.is_present and not found.is_exact:
        return "?" if found.high == math.inf else f"≤ {spell(found.high, Mark.EXACT)}"
    value = found.value
    if isinstance(found.figure, Estimate):
        return humanize.estimated(Estimate(found.low, value, found.high), spell)
    if found.high == math.inf:
        return spell(value, Mark.AT_LEAST)
    return spell(value, Mark.EXACT) + (" of keys seen" if found.is_of_seen else "")


def growth_text(change: FigureChange) -> str:
    growth = change.growth()
    return _change_text(change, growth and growth.in_percent(), "%")


def points_text(change: FigureChange) -> str:
    """Return the change of a share in percentage points."""
    return _change_text(change, change.points(), " pt")


def _change_text(change: FigureChange, found: Interval | None, unit: str) -> str:
    plain = {Direction.UNKNOWN: humanize.NOTHING, Direction.SAME: "=", Direction.UNCLEAR: Direction.UNCLEAR.value}
    if found is None or change.direction in plain:
        return plain.get(change.direction, humanize.NOTHING)
    if found.low == math.inf:
        return "from nothing"
    low, high = _signed(found.low), _signed(found.high)
    if found.high == math.inf:
        return f"{Mark.AT_LEAST}{low}{unit}"
    if found.low == found.high:
        return f"{low}{unit}"
    return f"{Mark.ABOUT}{low}{unit}" if low == high else f"{Mark.ABOUT}{low} … {high}{unit}"


def _signed(bound: Bound) -> str:
    number = float(bound)
    if number == math.inf:
        return "∞"
    if 0 < abs(number) < 0.05:  # it would be rounded to 0
        return "+<0.1" if number > 0 else "-<0.1"
    return f"{number:+,.1f}" if abs(number) < 10 else f"{number:+,.0f}"


def change_record(change: FigureChange) -> dict[str, Any]:
    return {
        "verdict": change.direction.value,
        "before": _reading(change.before),
        "after": _reading(change.after),
        "difference": _interval(change.difference()),
        "growth": _interval(change.growth()),
    }


def _reading(found: Reading | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"value": found.value, "low": _bound(found.low), "high": _bound(found.high), "is_present": found.is_present}


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else {"low": _bound(found.low), "high": _bound(found.high)}


def _bound(bound: Bound) -> int | float | None:
    """A JSON number, whole where it is; infinity has none."""
    number = float(bound)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def head_text(head: Head) -> str:
    server, coverage = head.server, head.coverage
    keys = humanize.keys(coverage.keys)
    rests_on = {CoverageKind.EXACT: f"{keys}, exact", CoverageKind.PARTIAL: f"≥ {keys}, partial"}
    parts = (
        f"{humanize.moment(head.made_at_s)} UTC",
        server.label,
        f"{server.product} {server.version}".strip(),
        f"db{server.db}",
        rests_on.get(coverage.kind, f"estimate from {keys}"),
    )
    return " · ".join(part for part in parts if part)


def judgement_lines(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    return tuple(
        f"{one.outcome if one.outcome is Outcome.NOT_REACHED else one.outcome.upper()}  {one.expression}  {one.why}"
        for one in judgements
    )


_FATES: Final = (
    FindingFate.NEW, FindingFate.MAYBE_NEW, FindingFate.GREW, FindingFate.SHRANK, FindingFate.MAYBE_GONE,
    FindingFate.GONE,
)  # fmt: skip


def finding_listing(found: FindingsComparison, top: int, listed: Sequence[FindingFate] = _FATES) -> GroupedRows:
    """Return findings by fate, the `top` first of each, errors first; those of other fates are counted."""
    groups = []
    for fate in listed:
        members = sorted(found.of_fate(fate), key=lambda one: one.finding.severity is not Severity.ERROR)
        if members:
            title = f"Findings: {fate.value} ({len(members):,})"
            groups.append(RowGroup(title, tuple(map(_finding_row, members[:top])), max(0, len(members) - top)))
    rest = [
        f"{fate.value}: {number:,}"
        for fate in (FindingFate.SAME, FindingFate.UNCLEAR)
        if fate not in listed and (number := len(found.of_fate(fate)))
    ]
    return GroupedRows(
        "Changes of findings",
        ("severity", "rule", "finding"),
        groups,
        rest=f"Findings {', '.join(rest)}" if rest else "",
        notes=found.notes,
    )


def _finding_row(change: FindingChange) -> tuple[str, str, str]:
    one = change.finding
    return one.severity.value, one.rule, f"{display_text(one.title, limit=300)}{change_words(change)}"


def change_words(change: FindingChange) -> str:
    """Return how much a finding has grown or shrunk: ` (keys 1,000 → 1,200, +20%)`; nothing for any other."""
    if change.fate not in (FindingFate.GREW, FindingFate.SHRANK):
        return ""
    parts = []
    for word, figure, spell in (("keys", change.keys, count_text), ("memory", change.memory, humanize.size)):
        if figure.direction in (Direction.GREW, Direction.SHRANK):
            parts.append(f"{word} {both_text(figure, spell, (None, None))}, {growth_text(figure)}")
    return f" ({'; '.join(parts)})"


def finding_records(found: FindingsComparison, top: int | None) -> dict[str, Any]:
    changes: Sequence[FindingChange] = list(found.changes.values())
    return {
        "findings": [
            {
                "rule": one.finding.rule,
                "severity": one.finding.severity.value,
                "where": one.finding.where,
                "title": one.finding.title,
                "fate": one.fate.value,
                "keys": change_record(one.keys),
                "memory_bytes": change_record(one.memory),
            }
            for one in changes[:top]
        ],
        "findings_left_off": 0 if top is None else max(0, len(changes) - top),
        "rules_not_compared": list(found.uncompared),
        "findings_notes": list(found.notes),
    }


def head_record(head: Head) -> dict[str, Any]:
    server = head.server
    return {
        "made_at_epoch_s": head.made_at_s,
        "server": server.label,
        "product": server.product,
        "version": server.version,
        "db": server.db,
        "coverage": head.coverage.kind.value,
        "inspected_keys": head.coverage.keys,
    }


DEFAULT_TOP: Final = 20


class KeyFate(StrEnum):
    """What became of a key between two files of keys."""

    CAME = "came"
    WENT = "went"
    GREW = "grew"
    LASTING = "lost their TTL"


class KeyChange(NamedTuple):
    """A key that has changed; bytes are None where they are not known."""

    database: int | None
    key: bytes
    before_bytes: int | None
    after_bytes: int | None


class KeyFates(NamedTuple):
    """The keys that two files of keys differ in."""

    counts: dict[KeyFate, int]
    bytes: dict[KeyFate, int]
    """By fate, the bytes of these keys, as far as they are known; of those that grew, by how much."""
    listed: dict[KeyFate, tuple[KeyChange, ...]]
    """The first ones of each fate, most bytes first."""
    doubts: dict[KeyFate, str]
    """Why a key may be in neither, though a file does not have it."""

    def listing(self) -> GroupedRows:
        groups = []
        for fate in KeyFate:
            if count := self.counts[fate]:
                mark = "maybe " if fate in self.doubts else ""
                rows = tuple(map(_key_row, self.listed[fate]))
                title = f"Keys: {mark}{fate} ({count:,}, {humanize.size(self.bytes[fate])})"
                groups.append(RowGroup(title, rows, count - len(rows)))
        notes = [f"Keys that {fate} are not certain: {why}." for fate, why in self.doubts.items()]
        return GroupedRows("Keys", ("key", "memory"), groups, has_numbers=True, notes=notes)

    def record(self) -> dict[str, Any]:
        return {
            fate.name.lower(): {
                "keys": self.counts[fate],
                "memory_bytes": self.bytes[fate],
                "doubt": self.doubts.get(fate),
                "first": [
                    {
                        "key_quoted": quoted(one.key),
                        "database": one.database,
                        "memory_bytes_before": one.before_bytes,
                        "memory_bytes_after": one.after_bytes,
                    }
                    for one in self.listed[fate]
                ],
            }
            for fate in KeyFate
        }


def _key_row(change: KeyChange) -> tuple[str, str]:
    sizes = [None if one is None else humanize.size(one) for one in (change.before_bytes, change.after_bytes)]
    known = [one for one in dict.fromkeys(sizes) if one is not None]
    return display(change.key, limit=80), " → ".join(known) or humanize.NOTHING


def comparison_page(
    comparison: Comparison,
    judgements: Sequence[Judgement] = (),
    *,
    findings: FindingsComparison | None = None,
    keys: KeyFates | None = None,
    depth: int | None = None,
    top: int = DEFAULT_TOP,
) -> BlockPage:
    """Return a comparison in words: namespaces down to the level `depth`, the `top` largest changes of each fate."""
    listed = [change for change in comparison.root.outlined(depth) if change.path]
    groups = [RowGroup("", (_row(comparison.root, comparison),))]
    for fate in LISTED:
        members = sorted((one for one in listed if one.fate is fate), key=weight, reverse=True)
        if members:
            title = f"{fate[0].upper()}{fate[1:]} ({len(members):,})"
            rows = tuple(_row(one, comparison) for one in members[:top])
            groups.append(RowGroup(title, rows, max(0, len(members) - top)))
    counts = {fate: sum(one.fate is fate for one in listed) for fate in (Fate.LITTLE, Fate.SAME, Fate.UNCLEAR)}
    rest = ", ".join(f"{fate}: {number:,}" for fate, number in counts.items() if number)
    columns = ("namespace", "keys", "change", "memory", "change", "no TTL", "change")
    blocks: list[Block] = [
        Facts("", (("before", head_text(comparison.before)), ("after", head_text(comparison.after)))),
        GroupedRows("Namespaces", columns, groups, has_numbers=True, rest=rest),
    ]
    notes = [*comparison.notes]
    if keys is not None:
        of_keys = keys.listing()
        blocks.append(of_keys._replace(notes=()))
        notes += of_keys.notes
    if findings is not None:
        found = finding_listing(findings, top)
        blocks.append(found._replace(notes=()))
        notes += found.notes
    return BlockPage("What changed", [*blocks, Items(notes, "Notes"), Items(judgement_lines(judgements), "Thresholds")])


def _row(change: NamespaceChange, comparison: Comparison) -> tuple[str, ...]:
    def states(column: str) -> tuple[ColumnState | None, ColumnState | None]:
        before, after = comparison.before.columns.get(column), comparison.after.columns.get(column)
        return None if before is None else before.state, None if after is None else after.state

    return (
        display_text(change.label, limit=80),
        both_text(change.keys, count_text, states("type")),
        growth_text(change.keys),
        both_text(change.memory, humanize.size, states("memory")),
        growth_text(change.memory),
        both_text(change.no_ttl, humanize.share, states("ttl")),
        points_text(change.no_ttl),
    )


COMPARISON_FORMAT: Final = "rtui diff"

COMPARISON_SCHEMA: Final = 1
"""Version of this document; it grows with every change that an older reader would misread."""


def comparison_json(
    comparison: Comparison,
    judgements: Sequence[Judgement] = (),
    *,
    findings: FindingsComparison | None = None,
    keys: KeyFates | None = None,
    depth: int | None = None,
    top: int | None = None,
) -> str:
    """Return the `top` first namespaces down to a level, depth first, in ASCII."""
    changes = list(comparison.root.walk(depth))
    document = {
        "format": COMPARISON_FORMAT,
        "schema": COMPARISON_SCHEMA,
        "before": head_record(comparison.before),
        "after": head_record(comparison.after),
        "notes": list(comparison.notes),
        "levels_compared": comparison.levels,
        "total": _record(changes[0]),
        "namespaces": [_record(change) for change in changes[1:][:top]],
        "namespaces_left_off": 0 if top is None else max(0, len(changes) - 1 - top),
        **({} if keys is None else {"keys": keys.record()}),
        **({} if findings is None else finding_records(findings, top)),
        "fail_on": [asdict(one) for one in judgements],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _record(change: NamespaceChange) -> dict[str, Any]:
    return {
        "namespace": change.label,
        "namespace_quoted": quoted(change.raw),
        "kind": change.path[-1].kind.value if change.path else "all",
        "level": len(change.path),
        "fate": change.fate.value,
        "keys": change_record(change.keys),
        "memory_bytes": change_record(change.memory),
        "no_ttl_share": change_record(change.no_ttl),
    }
