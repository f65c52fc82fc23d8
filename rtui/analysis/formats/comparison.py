"""A comparison in words, as aligned text for a terminal or the log of a build, and as Markdown; and as JSON.

In JSON units are in the names; `null` is not known, and in `high` that nothing bounds it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.markdown import code, escaped, markdown_row
from rtui.analysis.humanize import Mark
from rtui.analysis.report.comparison import Comparison, Fate, NamespaceChange
from rtui.analysis.report.document import ColumnState, CoverageKind, Head
from rtui.analysis.report.readings import Bound, Direction, FigureChange, Interval, Reading
from rtui.analysis.report.thresholds import Judgement, Outcome
from rtui.keyspace.text.display import SafeText, display_text, quoted


def count_text(value: float, mark: Mark) -> SafeText:
    """Return a number of keys."""
    return humanize.short_count(value, mark) if mark is Mark.ABOUT else humanize.count(round(value), mark)


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
    return spell(value, Mark.EXACT) + (" of those seen" if found.is_of_seen else "")


def growth_text(change: FigureChange) -> str:
    """Return the growth in percent."""
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


DEFAULT_TOP: Final = 20

HEADINGS: Final = ("namespace", "keys", "change", "memory", "change", "no TTL", "change")
"""Of the rows; all but the first are numbers."""

SECTIONS: Final = (Fate.CAME, Fate.WENT, Fate.GREW, Fate.SHRANK, Fate.SHIFTED)
"""The fates that are listed, in this order; the others are counted."""


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


def comparison_lines(
    comparison: Comparison, judgements: Sequence[Judgement] = (), *, depth: int | None = None, top: int = DEFAULT_TOP
) -> ComparisonLines:
    """Return a comparison as texts: namespaces down to the level `depth`, the `top` largest changes of each fate."""
    listed = [change for change in comparison.root.outlined(depth) if change.path]
    sections = []
    for fate in SECTIONS:
        members = sorted((one for one in listed if one.fate is fate), key=_weight, reverse=True)
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
        judgements=tuple(
            f"{one.outcome if one.outcome is Outcome.NOT_REACHED else one.outcome.upper()}  {one.expression}  {one.why}"
            for one in judgements
        ),
    )


def _weight(change: NamespaceChange) -> list[float]:
    """Return the least change that is certain, in bytes, keys and no-TTL share."""
    found = (change.memory.difference(), change.keys.difference(), change.no_ttl.difference())
    return [0.0 if one is None else float(max(one.low, -one.high, 0)) for one in found]


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
    for group in ((found.rest,) if found.rest else (), found.notes, found.judgements):
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
    for title, group in (("Notes", found.notes), ("Thresholds", found.judgements)):
        if group:
            lines += ["", f"## {title}", "", *(f"- {escaped(line)}" for line in group)]
    return "\n".join(lines) + "\n"


COMPARISON_FORMAT: Final = "rtui diff"
"""What the file says it is."""

COMPARISON_SCHEMA: Final = 1
"""Version of this document; it grows with every change that an older reader would misread."""


def comparison_json(
    comparison: Comparison, judgements: Sequence[Judgement] = (), *, depth: int | None = None, top: int | None = None
) -> str:
    """Return all namespaces down to a level, depth first, in ASCII; `top` keeps the first so many only."""
    changes = list(comparison.root.walk(depth))
    document = {
        "format": COMPARISON_FORMAT,
        "schema": COMPARISON_SCHEMA,
        "before": _head(comparison.before),
        "after": _head(comparison.after),
        "notes": list(comparison.notes),
        "levels_compared": comparison.levels,
        "total": _record(changes[0]),
        "namespaces": [_record(change) for change in changes[1:][:top]],
        "namespaces_left_off": 0 if top is None else max(0, len(changes) - 1 - top),
        "fail_on": [asdict(one) for one in judgements],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _head(head: Head) -> dict[str, Any]:
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
        "keys": _change(change.keys),
        "memory_bytes": _change(change.memory),
        "no_ttl_share": _change(change.no_ttl),
    }


def _change(change: FigureChange) -> dict[str, Any]:
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
