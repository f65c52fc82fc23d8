"""Figures of a report in the words of charts, each with the mark that says how far it can be trusted."""

from __future__ import annotations

from math import isinf

from rtui.analysis.estimate import Estimate
from rtui.analysis.report import CoverageKind, Figure, Report
from rtui.analysis.tables.cells import highest, lowest
from rtui.keyspace.display import SafeText
from rtui.tui import format as fmt
from rtui.tui.format import Mark

SHORT_FROM = 1_000_000
"""Counts from here on are shortened where they stand beside a bar."""


def value_of(figure: Figure) -> float:
    """Return the figure itself, for an estimate the middle of its interval."""
    return figure.value if isinstance(figure, Estimate) else float(figure)


def mark_of(figure: Figure, kind: CoverageKind) -> Mark:
    """Say how far a count or a sum can be trusted."""
    if isinstance(figure, Estimate):
        return Mark.ABOUT
    return {
        CoverageKind.EXACT: Mark.EXACT,
        CoverageKind.PARTIAL: Mark.AT_LEAST,
        CoverageKind.ESTIMATE: Mark.ABOUT,
    }[kind]


def keys_text(figure: Figure | None, kind: CoverageKind) -> SafeText:
    """Return a count of keys: `114,000`, `≥ 114,000`, `≈ 114k (112–116k)`; estimates claim few digits."""
    if figure is None:
        return fmt.NOTHING
    if isinstance(figure, Estimate):
        return fmt.estimated(figure, fmt.short_count)
    mark = mark_of(figure, kind)
    if mark is Mark.ABOUT or value_of(figure) >= SHORT_FROM:
        return fmt.short_count(value_of(figure), mark)
    return fmt.count(round(value_of(figure)), mark)


def size_text(figure: Figure | None, kind: CoverageKind) -> SafeText:
    """Return a sum of bytes: `260 MiB`, `≥ 260 MiB`, `≈ 260 MiB (240–330 MiB)`."""
    if isinstance(figure, Estimate):
        return fmt.estimated(figure, fmt.size)
    return fmt.NOTHING if figure is None else fmt.size(figure, mark_of(figure, kind))


def share_text(figure: Figure | None) -> SafeText:
    """Return a share: `38%`, `≈38% (33–44%)`; one of what a broken-off pass has seen is no lower bound."""
    if figure is None:
        return fmt.NOTHING
    return fmt.estimated(figure, fmt.share) if isinstance(figure, Estimate) else fmt.share(figure)


def without(whole: Figure, part: Figure) -> Figure:
    """Return what is left of a number of keys."""
    if not isinstance(whole, Estimate) and not isinstance(part, Estimate):
        return max(0, whole - part)
    low, high = lowest(whole) - highest(part), highest(whole) - lowest(part)
    return Estimate(max(0.0, low), max(0.0, value_of(whole) - value_of(part)), max(0.0, high))


def share_within(part: Figure, whole: Figure) -> Figure:
    """Return a part of something as a share of it, by the ends of both where they are estimates."""
    value = min(1.0, value_of(part) / max(1.0, value_of(whole)))
    if not isinstance(whole, Estimate) and not isinstance(part, Estimate):
        return value
    low = 0.0 if isinf(highest(whole)) else lowest(part) / max(1.0, highest(whole))
    high = 1.0 if isinf(highest(part)) else highest(part) / max(1.0, lowest(whole))
    return Estimate(min(low, value), value, min(1.0, max(high, value)))


def kind_of(report: Report) -> CoverageKind:
    """Return how much of the keyspace a report rests on."""
    return report.head.coverage.kind
