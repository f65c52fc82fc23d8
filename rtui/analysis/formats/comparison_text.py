"""A comparison in words, as aligned text for a terminal or the log of a build, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.markdown import code, escaped, table_line
from rtui.analysis.humanize import Mark
from rtui.analysis.report.change import Bound, Change, Direction, Interval, Reading
from rtui.analysis.report.comparison import Comparison, Fate, NamespaceChange
from rtui.analysis.report.document import ColumnState, CoverageKind, Head
from rtui.analysis.report.thresholds import Judgement, Outcome
from rtui.keyspace.text.display import SafeText, display_text

ARROW: Final = " → "

LEAST_PERCENT: Final = 0.05
"""Smaller changes would be rounded to 0."""


def count(value: float, mark: Mark) -> SafeText:
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
    change: Change, spell: humanize.NumberFormat, states: tuple[ColumnState | None, ColumnState | None]
) -> str:
    """Return a number before and after, `1,000 → 1,200`, once where both are the same; `states` are of its columns."""
    before, after = (
        _reading_text(one, spell, state) for one, state in zip((change.before, change.after), states, strict=True)
    )
    return before if before == after else before + ARROW + after


def _reading_text(found: Reading | None, spell: humanize.NumberFormat, state: ColumnState | None) -> str:
    if found is None:
        return "denied" if state is ColumnState.DENIED else humanize.NOTHING
    if not found.is_present and not found.is_exact:
        return "?" if found.high == math.inf else f"≤ {spell(found.high, Mark.EXACT)}"
    value = found.value
    if found.is_estimate:
        return humanize.estimated(Estimate(found.low, value, found.high), spell)
    if found.high == math.inf:
        return spell(value, Mark.AT_LEAST)
    return spell(value, Mark.EXACT) + (" of those seen" if found.is_of_seen else "")


def growth_text(change: Change) -> str:
    """Return the growth in percent."""
    growth = change.growth()
    return _change_text(change, growth and Interval(100 * growth.low, 100 * growth.high), "%")


def points_text(change: Change) -> str:
    """Return the change of a share in percentage points."""
    return _change_text(change, change.points(), " pt")


def _change_text(change: Change, found: Interval | None, unit: str) -> str:
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
    if 0 < abs(number) < LEAST_PERCENT:
        return "+<0.1" if number > 0 else "-<0.1"
    return f"{number:+,.1f}" if abs(number) < 10 else f"{number:+,.0f}"


DEFAULT_TOP: Final = 20
"""Rows of a section by default."""

HEADINGS: Final = ("namespace", "keys", "change", "memory", "change", "no TTL", "change")
"""Of the rows; all but the first are numbers."""

NAME_LIMIT: Final = 80
"""Characters of a namespace; of a longer one the middle is left out."""

SECTIONS: Final = (Fate.CAME, Fate.WENT, Fate.GREW, Fate.SHRANK, Fate.SHIFTED)
"""The fates that are listed, in this order; the others are counted."""

_OUTCOMES: Final = {
    Outcome.REACHED: "REACHED",
    Outcome.NOT_REACHED: "not reached",
    Outcome.UNKNOWN: "CAN'T BE JUDGED",
}


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
        members = sorted((one for one in listed if one.fate is fate), key=weight, reverse=True)
        if members:
            title = f"{fate[0].upper()}{fate[1:]} ({len(members):,})"
            rows = tuple(_row(one, comparison) for one in members[:top])
            sections.append(FateSection(title, rows, max(0, len(members) - top)))
    return ComparisonLines(
        before=head_text(comparison.before),
        after=head_text(comparison.after),
        total=_row(comparison.root, comparison),
        sections=tuple(sections),
        rest=_rest(listed),
        notes=comparison.notes,
        judgements=tuple(f"{_OUTCOMES[one.outcome]}  {one.expression}  {one.why}" for one in judgements),
    )


def weight(change: NamespaceChange) -> tuple[float, float, float]:
    """Return the least change that is certain, in bytes, keys and no-TTL share."""
    return _distance(change.memory), _distance(change.keys), _distance(change.no_ttl)


def _distance(change: Change) -> float:
    found = change.difference()
    return 0.0 if found is None else float(max(found.low, -found.high, 0))


def _rest(listed: Sequence[NamespaceChange]) -> str:
    counts = {fate: sum(one.fate is fate for one in listed) for fate in (Fate.LITTLE, Fate.SAME, Fate.UNCLEAR)}
    return ", ".join(f"{fate}: {number:,}" for fate, number in counts.items() if number)


def _row(change: NamespaceChange, comparison: Comparison) -> tuple[str, ...]:
    def states(column: str) -> tuple[ColumnState | None, ColumnState | None]:
        return _state(comparison.before, column), _state(comparison.after, column)

    return (
        display_text(change.label, limit=NAME_LIMIT),
        both_text(change.keys, count, states("type")),
        growth_text(change.keys),
        both_text(change.memory, humanize.size, states("memory")),
        growth_text(change.memory),
        both_text(change.no_ttl, humanize.share, states("ttl")),
        points_text(change.no_ttl),
    )


def _state(head: Head, column: str) -> ColumnState | None:
    found = head.columns.get(column)
    return None if found is None else found.state


def comparison_text(lines: ComparisonLines) -> str:
    """Return the comparison in aligned columns; ends with a newline."""
    return "\n".join(_text_lines(lines)) + "\n"


def _text_lines(lines: ComparisonLines) -> Iterator[str]:
    yield f"before  {lines.before}"
    yield f"after   {lines.after}"
    rows = [HEADINGS, lines.total, *(row for section in lines.sections for row in section.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    yield ""
    yield _aligned(HEADINGS, widths)
    yield _aligned(lines.total, widths)
    for section in lines.sections:
        yield ""
        yield section.title
        for row in section.rows:
            yield _aligned(row, widths)
        if section.left_off:
            yield f"… and {section.left_off:,} more"
    for group in ((lines.rest,) if lines.rest else (), lines.notes, lines.judgements):
        if group:
            yield ""
            yield from group


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Names from the left, numbers from the right."""
    first, *others = zip(row, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
    return "  ".join(cells).rstrip()


def comparison_markdown(lines: ComparisonLines) -> str:
    """Return the comparison as tables; names of keys can't become markup. Ends with a newline."""
    return "\n".join(_markdown_lines(lines)) + "\n"


def _markdown_lines(lines: ComparisonLines) -> Iterator[str]:
    yield "# What changed"
    yield ""
    yield f"- before: {escaped(lines.before)}"
    yield f"- after: {escaped(lines.after)}"
    yield ""
    yield from _markdown_table([lines.total])
    for section in lines.sections:
        yield ""
        yield f"## {section.title}"
        yield ""
        yield from _markdown_table(section.rows)
        if section.left_off:
            yield ""
            yield f"… and {section.left_off:,} more"
    if lines.rest:
        yield ""
        yield escaped(lines.rest)
    for title, group in (("Notes", lines.notes), ("Thresholds", lines.judgements)):
        if group:
            yield ""
            yield f"## {title}"
            yield ""
            yield from (f"- {escaped(line)}" for line in group)


def _markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield table_line(HEADINGS)
    yield table_line([":--", *["--:"] * (len(HEADINGS) - 1)])
    for row in rows:
        yield table_line([code(row[0]), *map(escaped, row[1:])])
