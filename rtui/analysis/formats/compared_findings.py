"""What became of findings between two reports, in words and as JSON: a part of `rtui diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.findings.comparison import FindingChange, FindingFate, FindingsComparison
from rtui.analysis.formats.change_texts import both_text, change_record, count_text, growth_text
from rtui.analysis.formats.markdown import escaped, markdown_row
from rtui.analysis.report.readings import Direction
from rtui.keyspace.text.display import display_text
from rtui.registry.rules import Severity

LISTED: Final = (
    FindingFate.NEW, FindingFate.MAYBE_NEW, FindingFate.GREW, FindingFate.SHRANK, FindingFate.MAYBE_GONE,
    FindingFate.GONE,
)  # fmt: skip
"""What a finding must have done to be listed; the others are counted."""

_HEADINGS: Final = ("severity", "rule", "finding")


@dataclass(frozen=True, slots=True)
class FindingSection:
    """Findings of one fate, errors first, then most costly first."""

    title: str
    rows: tuple[tuple[str, str, str], ...]
    """Severity, rule, and the finding with how much it has changed."""
    left_off: int = 0
    """Rows that are not shown."""


@dataclass(frozen=True, slots=True)
class FindingLines:
    """Compared findings in words, all of them safe to show."""

    sections: tuple[FindingSection, ...] = ()
    rest: str = ""
    """How many findings are in no section; may be empty."""
    notes: tuple[str, ...] = ()


def finding_lines(found: FindingsComparison, top: int, listed: Sequence[FindingFate] = LISTED) -> FindingLines:
    """Return compared findings as texts, the `top` first of each fate; those of other fates are counted."""
    sections = []
    for fate in listed:
        members = sorted(found.of_fate(fate), key=lambda one: one.finding.severity is not Severity.ERROR)
        if members:
            title = f"Findings: {fate.value} ({len(members):,})"
            sections.append(FindingSection(title, tuple(map(_row, members[:top])), max(0, len(members) - top)))
    rest = [
        f"{fate.value}: {number:,}"
        for fate in (FindingFate.SAME, FindingFate.UNCLEAR)
        if fate not in listed and (number := len(found.of_fate(fate)))
    ]
    return FindingLines(tuple(sections), f"Findings {', '.join(rest)}" if rest else "", found.notes)


def _row(change: FindingChange) -> tuple[str, str, str]:
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


def finding_text(found: FindingLines) -> list[str]:
    """Return the lines of a text, each section after an empty line."""
    rows = [row for section in found.sections for row in section.rows]
    widths = [max((len(row[at]) for row in rows), default=0) for at in (0, 1)]
    lines: list[str] = []
    for section in found.sections:
        lines += ["", section.title]
        lines += [f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in section.rows]
        lines += _left_off(section)
    return [*lines, *(["", found.rest] if found.rest else [])]


def finding_markdown(found: FindingLines, level: str = "##") -> list[str]:
    """Return the lines of Markdown, its headings of this level; names of keys can't become markup."""
    lines: list[str] = []
    for section in found.sections:
        lines += ["", f"{level} {section.title}", "", markdown_row(_HEADINGS), markdown_row([":--"] * 3)]
        lines += [markdown_row([escaped(cell) for cell in row]) for row in section.rows]
        left = _left_off(section)
        lines += ["", *left] if left else []
    return [*lines, *(["", escaped(found.rest)] if found.rest else [])]


def _left_off(section: FindingSection) -> list[str]:
    return [f"… and {section.left_off:,} more"] if section.left_off else []


def finding_records(found: FindingsComparison, top: int | None) -> dict[str, Any]:
    """Return the members of the JSON document that are about findings; `top` keeps the first so many only."""
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
