"""A comparison in words, as aligned text for a terminal or the log of a build, and as Markdown; and as JSON.

In JSON units are in the names; `null` is not known, and in `high` that nothing bounds it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.findings.comparison import FindingsComparison
from rtui.analysis.formats.change_texts import both_text, change_record, count_text, growth_text, points_text
from rtui.analysis.formats.compared_findings import (
    FindingLines,
    finding_lines,
    finding_markdown,
    finding_records,
    finding_text,
)
from rtui.analysis.formats.markdown import code, escaped, markdown_row
from rtui.analysis.report.comparison import Comparison, Fate, NamespaceChange
from rtui.analysis.report.document import ColumnState, CoverageKind, Head
from rtui.analysis.report.tables.changes import LISTED, weight
from rtui.analysis.report.thresholds import Judgement, Outcome
from rtui.keyspace.text.display import display_text, quoted


def head_text(head: Head) -> str:
    """Return the time, the server and the coverage of a report."""
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


DEFAULT_TOP: Final = 20

HEADINGS: Final = ("namespace", "keys", "change", "memory", "change", "no TTL", "change")
"""Of the rows; all but the first are numbers."""


@dataclass(frozen=True, slots=True)
class FateSection:
    """Namespaces of one fate, the largest change first."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    left_off: int = 0
    """Rows that are not shown."""


@dataclass(frozen=True, slots=True)
class ComparisonLines:
    """A comparison in words, all of them safe to show."""

    before: str
    """The head of the first report in a line."""
    after: str
    total: tuple[str, ...]
    """The row of the whole keyspace."""
    sections: tuple[FateSection, ...]
    rest: str
    """How many namespaces are in no section; may be empty."""
    notes: tuple[str, ...]
    judgements: tuple[str, ...]
    """A line a threshold."""
    findings: FindingLines


def comparison_lines(
    comparison: Comparison,
    judgements: Sequence[Judgement] = (),
    *,
    findings: FindingsComparison | None = None,
    depth: int | None = None,
    top: int = DEFAULT_TOP,
) -> ComparisonLines:
    """Return a comparison as texts: namespaces down to the level `depth`, the `top` largest changes of each fate."""
    listed = [change for change in comparison.root.outlined(depth) if change.path]
    sections = []
    for fate in LISTED:
        members = sorted((one for one in listed if one.fate is fate), key=weight, reverse=True)
        if members:
            title = f"{fate[0].upper()}{fate[1:]} ({len(members):,})"
            rows = tuple(_row(one, comparison) for one in members[:top])
            sections.append(FateSection(title, rows, max(0, len(members) - top)))
    counts = {fate: sum(one.fate is fate for one in listed) for fate in (Fate.LITTLE, Fate.SAME, Fate.UNCLEAR)}
    return ComparisonLines(
        before=head_text(comparison.before),
        after=head_text(comparison.after),
        total=_row(comparison.root, comparison),
        sections=tuple(sections),
        rest=", ".join(f"{fate}: {number:,}" for fate, number in counts.items() if number),
        notes=comparison.notes,
        judgements=judgement_lines(judgements),
        findings=FindingLines() if findings is None else finding_lines(findings, top),
    )


def judgement_lines(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """Return a line for each threshold; what is reached, or can't be judged, in capitals."""
    return tuple(
        f"{one.outcome if one.outcome is Outcome.NOT_REACHED else one.outcome.upper()}  {one.expression}  {one.why}"
        for one in judgements
    )


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


def comparison_text(found: ComparisonLines) -> str:
    """Return the comparison in aligned columns, names from the left, numbers from the right; ends with a newline."""
    rows = [HEADINGS, found.total, *(row for section in found.sections for row in section.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def aligned(row: Sequence[str]) -> str:
        numbers = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *numbers]).rstrip()

    lines = [f"before  {found.before}", f"after   {found.after}", "", aligned(HEADINGS), aligned(found.total)]
    for section in found.sections:
        lines += ["", section.title, *map(aligned, section.rows)]
        if section.left_off:
            lines.append(f"… and {section.left_off:,} more")
    lines += ["", found.rest] if found.rest else []
    lines += finding_text(found.findings)
    for group in ((*found.notes, *found.findings.notes), found.judgements):
        lines += ["", *group] if group else []
    return "\n".join(lines) + "\n"


def comparison_markdown(found: ComparisonLines) -> str:
    """Return the comparison as tables; names of keys can't become markup. Ends with a newline."""

    def table(rows: Sequence[Sequence[str]]) -> list[str]:
        head = [markdown_row(HEADINGS), markdown_row([":--", *["--:"] * (len(HEADINGS) - 1)])]
        return [*head, *(markdown_row([code(row[0]), *map(escaped, row[1:])]) for row in rows)]

    lines = ["# What changed", "", f"- before: {escaped(found.before)}", f"- after: {escaped(found.after)}", ""]
    lines += table([found.total])
    for section in found.sections:
        lines += ["", f"## {section.title}", "", *table(section.rows)]
        if section.left_off:
            lines += ["", f"… and {section.left_off:,} more"]
    if found.rest:
        lines += ["", escaped(found.rest)]
    lines += finding_markdown(found.findings)
    for title, group in (("Notes", (*found.notes, *found.findings.notes)), ("Thresholds", found.judgements)):
        if group:
            lines += ["", f"## {title}", "", *(f"- {escaped(line)}" for line in group)]
    return "\n".join(lines) + "\n"


COMPARISON_FORMAT: Final = "rtui diff"
"""What the file says it is."""

COMPARISON_SCHEMA: Final = 1
"""Version of this document; it grows with every change that an older reader would misread."""


def comparison_json(
    comparison: Comparison,
    judgements: Sequence[Judgement] = (),
    *,
    findings: FindingsComparison | None = None,
    depth: int | None = None,
    top: int | None = None,
) -> str:
    """Return all namespaces down to a level, depth first, in ASCII; `top` keeps the first so many only."""
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
        **({} if findings is None else finding_records(findings, top)),
        "fail_on": [asdict(one) for one in judgements],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def head_record(head: Head) -> dict[str, Any]:
    """Return what JSON says of a report: time, server, coverage."""
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
