"""A comparison of two reports as a page for people, and as JSON.

In JSON units are in the names; `null` is not known, and in `high` that nothing bounds it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.findings.comparison import FindingsComparison
from rtui.analysis.formats.blocks import Block, Facts, Group, Items, Listing, Page
from rtui.analysis.formats.changes import (
    both_text,
    change_record,
    count_text,
    finding_listing,
    finding_records,
    growth_text,
    head_record,
    head_text,
    judgement_lines,
    points_text,
)
from rtui.analysis.report.comparison import Comparison, Fate, NamespaceChange
from rtui.analysis.report.document import ColumnState
from rtui.analysis.report.tables.changes import LISTED, weight
from rtui.analysis.report.thresholds import Judgement
from rtui.keyspace.text.display import display_text, quoted

DEFAULT_TOP: Final = 20


def comparison_page(
    comparison: Comparison,
    judgements: Sequence[Judgement] = (),
    *,
    findings: FindingsComparison | None = None,
    depth: int | None = None,
    top: int = DEFAULT_TOP,
) -> Page:
    """Return a comparison in words: namespaces down to the level `depth`, the `top` largest changes of each fate."""
    listed = [change for change in comparison.root.outlined(depth) if change.path]
    groups = [Group("", (_row(comparison.root, comparison),))]
    for fate in LISTED:
        members = sorted((one for one in listed if one.fate is fate), key=weight, reverse=True)
        if members:
            title = f"{fate[0].upper()}{fate[1:]} ({len(members):,})"
            rows = tuple(_row(one, comparison) for one in members[:top])
            groups.append(Group(title, rows, max(0, len(members) - top)))
    counts = {fate: sum(one.fate is fate for one in listed) for fate in (Fate.LITTLE, Fate.SAME, Fate.UNCLEAR)}
    rest = ", ".join(f"{fate}: {number:,}" for fate, number in counts.items() if number)
    columns = ("namespace", "keys", "change", "memory", "change", "no TTL", "change")
    blocks: list[Block] = [
        Facts("", (("before", head_text(comparison.before)), ("after", head_text(comparison.after)))),
        Listing("Namespaces", columns, groups, has_numbers=True, rest=rest),
    ]
    notes = [*comparison.notes]
    if findings is not None:
        found = finding_listing(findings, top)
        blocks.append(found._replace(notes=()))
        notes += found.notes
    return Page("What changed", [*blocks, Items(notes, "Notes"), Items(judgement_lines(judgements), "Thresholds")])


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
