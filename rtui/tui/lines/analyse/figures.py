"""Figures of a report in the words of charts, each with the mark that says how far it can be trusted."""

from __future__ import annotations

from rtui.analysis.estimate import Estimate
from rtui.analysis.report import CoverageKind, Figure, Report
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
    """Return a count of keys: `114,000`, `≥ 114,000`, `≈ 114k`; estimates claim few digits."""
    if figure is None:
        return fmt.NOTHING
    mark = mark_of(figure, kind)
    if mark is Mark.ABOUT or value_of(figure) >= SHORT_FROM:
        return fmt.short_count(value_of(figure), mark)
    return fmt.count(round(value_of(figure)), mark)


def size_text(figure: Figure | None, kind: CoverageKind) -> SafeText:
    """Return a sum of bytes: `260M`, `≥ 260M`, `≈ 260M`."""
    return fmt.NOTHING if figure is None else fmt.size(value_of(figure), mark_of(figure, kind))


def share_text(figure: Figure | None) -> SafeText:
    """Return a share: `38%`, `≈38%`; a share of what a broken-off pass has seen is one of that, not a lower bound."""
    if figure is None:
        return fmt.NOTHING
    return fmt.share(value_of(figure), Mark.ABOUT if isinstance(figure, Estimate) else Mark.EXACT)


def interval_text(figure: Figure) -> SafeText:
    """Return the 95 % interval of an estimated share: `70–73%`; nothing for what is exact."""
    if not isinstance(figure, Estimate):
        return SafeText("")
    low, high = round(figure.low * 100), round(figure.high * 100)
    return SafeText(f"{low}%" if low == high else f"{low}–{high}%")


def kind_of(report: Report) -> CoverageKind:
    """Return how much of the keyspace a report rests on."""
    return report.head.coverage.kind
