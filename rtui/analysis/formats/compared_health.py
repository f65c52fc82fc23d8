"""What has changed in servers, in words and as JSON: figures then, now and by how much, and what became of findings."""

from __future__ import annotations

from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.comparison import FindingFate
from rtui.analysis.findings.server_comparison import ComparedLine, NodeComparison
from rtui.analysis.formats.change_texts import growth_text, points_text
from rtui.analysis.formats.compared_findings import FindingLines, finding_lines, finding_records
from rtui.analysis.health.panel import Line, value_text
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.readings import Direction
from rtui.analysis.report.tables.table import Cell, Unit
from rtui.keyspace.text.display import SafeText

MOST_FINDINGS: Final = 100
"""Findings of one fate that are listed."""

FATES: Final = (
    FindingFate.NEW, FindingFate.MAYBE_NEW, FindingFate.GREW, FindingFate.SHRANK, FindingFate.SAME,
    FindingFate.UNCLEAR, FindingFate.MAYBE_GONE, FindingFate.GONE,
)  # fmt: skip
"""All of them: servers have few findings, so those that are still there are listed, too."""


def cell_of(line: Line | None) -> Cell:
    """Return the value of a figure as a cell of a table of texts."""
    if line is None or isinstance(line.value, Unknown):
        return None if line is None else line.value
    return value_text(line)


def change_of(one: ComparedLine) -> SafeText:
    """Return by how much a figure has changed: `+25%`, `=`, `+1h`; a dash where that is not known."""
    then, now = one.then, one.now
    if then is None or now is None or isinstance(then.value, Unknown) or isinstance(now.value, Unknown):
        return SafeText(humanize.NOTHING)
    if not isinstance(then.value, int | float) or not isinstance(now.value, int | float):
        return SafeText("changed" if one.is_other else "=")
    change = one.change
    if change.direction is Direction.SAME:
        return SafeText("=")
    difference = now.value - then.value
    if one.line.unit is Unit.TIME:
        return SafeText(f"{'+' if difference > 0 else '-'}{humanize.duration(round(abs(difference) * 1000))}")
    if then.value < 0:
        return SafeText(f"{'+' if difference > 0 else '-'}{value_text(now, abs(difference))}")
    return SafeText(points_text(change) if one.line.unit is Unit.SHARE else growth_text(change))


def when_text(view: HealthView) -> SafeText:
    """Return of when samples are, and how many: `2026-09-21 14:13:20 UTC (62 samples in 5m)`."""
    last, first = view.latest.at_ms, view.samples[0].at_ms
    count = humanize.counted(len(view.samples), "sample")
    over = f" in {humanize.duration(last - first)}" if last > first else ""
    return SafeText(f"{humanize.moment(last / 1000)} UTC ({count}{over})")


def compared_findings(compared: NodeComparison) -> FindingLines:
    """Return what became of the findings of a node; its notes are what could not be compared."""
    found = finding_lines(compared.findings, MOST_FINDINGS, FATES)
    notes = (*(f"{note[:1].upper()}{note[1:]}." for note in compared.notes), *found.notes)
    return FindingLines(found.sections, found.rest, notes)


def compared_record(compared: NodeComparison) -> dict[str, Any]:
    """Return what JSON says of a node beside its figures: what it is compared with, and what became of findings."""
    then = compared.then
    return {
        "then_epoch_s": then.latest.at_ms / 1000,
        "then_began_epoch_s": then.samples[0].at_ms / 1000,
        "then_samples": len(then.samples),
        "notes": list(compared.notes),
        **finding_records(compared.findings, None),
    }
