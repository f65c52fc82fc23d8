"""Comparing what is shown with an earlier report: which there are to choose from, and the line about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.report.comparison import notes
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.tables.changes import total_change
from rtui.analysis.report.tables.contents import coverage_text
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Unit, change_text
from rtui.keyspace.text.display import SafeText, display
from rtui.server.kept_reports import KeptReport, KeptReports
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, literal

MARGIN: Final = 1

NOTHING_KEPT: Final = literal("Reports are not kept (--no-keep), so there is none to compare with.")
NO_EARLIER: Final = literal("No earlier report of this server and database is kept; each analysis that ends is.")


def age_text(at_s: float, now_s: float) -> SafeText:
    """Return how long ago something was: `12m 4s ago`."""
    return SafeText(f"{humanize.duration(round(max(0.0, now_s - at_s) * 1000))} ago")


def earlier(kept: KeptReports, shown: Report) -> list[KeptReport]:
    """Return the reports made before the one that is shown, the latest first; reads files."""
    return [one for one in kept.reports() if round(one.head.made_at_s, 3) < round(shown.head.made_at_s, 3)]


def choices(found: Sequence[KeptReport], now_s: float) -> list[SafeText]:
    """Return a line for each report: how old it is, when it was made, what it is of."""
    ages = [age_text(one.head.made_at_s, now_s) for one in found]
    width = max(map(len, ages), default=0)
    lines = []
    for one, age in zip(found, ages, strict=True):
        head, scope = one.head, one.head.scope
        keys = humanize.written_keys(one.stats.keys, COVERAGE_MARKS[head.coverage.kind])
        asked = ("match", scope.match), ("type", scope.key_type)
        filters = [f"{word} {display(raw, limit=30)}" for word, raw in asked if raw is not None]
        seen = "" if head.coverage.fraction is None else f", {humanize.share(head.coverage.fraction)} seen"
        kind = f"{head.coverage.kind.value}{seen if head.coverage.kind is CoverageKind.PARTIAL else ''}"
        told = ", ".join([kind, *filters])
        lines.append(SafeText(f"{age:{width}} · {humanize.moment(head.made_at_s)} · {keys} keys · {told}"))
    return lines


def against_line(
    before: Report | None, after: Report, now_s: float, width: int, watching: SafeText | None = None
) -> Line:
    """Return what the changes are against, when that was, how much has changed in all, and what to know about it.

    `watching` says how it is asked again and again; without an earlier report it is all there is to say.
    """
    spans: list[Span] = [gap(MARGIN)]
    if watching is not None:
        spans.append(Span(watching, Role.ACCENT))
    if before is None:
        return clip(tuple(spans), width - MARGIN)
    spans.append(Span(literal("▲▼ since " if watching is None else " · ▲▼ since "), Role.ACCENT))
    spans.append(Span(age_text(before.head.made_at_s, now_s), Role.STRONG))
    for column, unit, word in (("keys", Unit.KEYS, "keys"), ("memory", Unit.BYTES, "bytes")):
        change = total_change(before, after, column)
        if change is not None:
            spans.append(Span(SafeText(f" · {word} {change_text(change, unit)}"), Role.TEXT))
    spans.append(Span(SafeText(f" · {humanize.moment(before.head.made_at_s)} UTC"), Role.MUTED))
    said = list(notes(before, after))
    spans.append(Span(SafeText(f" · {coverage_text(before.head.coverage)}"), Role.MUTED))
    if said:
        spans.append(Span(SafeText(f" · {display_text(said[0], limit=200)}"), Role.WARN))
    return clip(tuple(spans), width - MARGIN)
