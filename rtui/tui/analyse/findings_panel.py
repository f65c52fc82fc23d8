"""The Findings panel: the rules that the keyspace breaks, the worst first, checked for each newer report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from textual.dom import DOMNode
from textual.geometry import Size
from textual.worker import Worker

from rtui.analysis.findings.contents import (
    COLUMNS,
    FindingFate,
    FindingsComparison,
    compare_findings,
    compared_table,
    findings,
    findings_table,
    gone,
    with_registry,
)
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.formats.comparison import change_words
from rtui.analysis.humanize import counted
from rtui.analysis.query.behind import Behind
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import RULES, Severity
from rtui.tui.analyse.panel import HIGH_ROOM, LOW_TABLE_LINES, TABLE_LINES, AnalysePanel, PanelState, PanelTable
from rtui.tui.kit.chart_lines import inset, labelled, paragraph
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.styled_text import Line, Role, Span, gap, joined, literal, wrap

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.registry.rules import RuleLevels


@dataclass(eq=False, slots=True)
class LatestFindings:
    """The findings of one Analyse screen. Looking takes up to 100 ms, so a thread does it."""

    levels: RuleLevels | None = None
    """Severities and parameters of rules; None for the defaults."""
    registry: Registry | None = None
    found: Found | None = None
    """The findings; None until the rules have checked a first report."""
    compared: FindingsComparison | None = None
    """The comparison with the findings of an earlier report; None if there is none."""
    revision: int = 0
    """Grows with each report that the rules have checked."""
    _listed: tuple[int, dict[str, Finding]] = (-1, {})
    _report: Report | None = None
    _before: Report | None = None

    @property
    def listed(self) -> dict[str, Finding]:
        """The shown findings by their identities, in their order; last the findings that are gone."""
        if self._listed[0] != self.revision or self.found is None:
            shown = {} if self.found is None else dict(zip(self.found.identities, self.found.findings, strict=True))
            self._listed = self.revision, shown | ({} if self.compared is None else gone(self.compared))
        return self._listed[1]

    def look(
        self, screen: DOMNode, report: Report, before: Report | None, then: Callable[[], None]
    ) -> Worker[None] | None:
        """Look at a report in a worker of `screen`, which is returned, unless that was done, and call `then`.

        `before` is an earlier report to compare with.
        """
        if report is self._report and before is self._before:
            return None
        self._report, self._before = report, before

        async def look() -> None:
            self.found, self.compared = await asyncio.to_thread(self._find, report, before)
            self.revision += 1
            then()

        return screen.run_worker(look, group="findings", exclusive=True, exit_on_error=False, description="findings")

    def _find(self, report: Report, before: Report | None) -> tuple[Found, FindingsComparison | None]:
        found = with_registry(findings(report, self.levels, before), report, self.registry)
        return found, None if before is None else compare_findings(before, report, self.levels)


MOST_LINES: Final = 15
"""Lines that are said about one finding at most."""

LABEL_CELLS: Final = 9
"""Cells of the words before the lines: `why`, `do`, `query`, `command`, with two blanks after the longest."""

EVIDENCE: Final = 4
"""The rank of the lines of evidence: where room is short, some may be left out."""

QUERY: Final = "query"
"""The word before the query, which can be clicked."""

_ROLES: Final = {Severity.ERROR: Role.BAD, Severity.WARN: Role.WARN, Severity.OFF: Role.MUTED}

_UNTOLD: Final = literal("Looking for problems…")
_NONE: Final = Table("findings", "Findings", COLUMNS, ())


@dataclass(frozen=True, slots=True)
class FindingsState(PanelState):
    """The state of the panel."""

    latest: LatestFindings = field(default_factory=LatestFindings)
    revision: int = 0
    """The revision of the latest findings, so that no chart of other findings is shown."""


class FindingsPanel(AnalysePanel[FindingsState]):
    """One list of all findings; below it all about the finding under the cursor."""

    id = "findings"
    title = literal("Findings")
    key = "1"
    help = "Show problems, errors first: why they matter, what to do, and which keys are affected."
    words = "problems check lint"
    is_ranking = True
    initial = FindingsState()
    keeps_height = True
    is_chart_below = True

    def tables(self, _report: Report, state: FindingsState) -> tuple[PanelTable, ...]:
        found, compared = state.latest.found, state.latest.compared
        if found is None:
            return (PanelTable("findings", literal("what is wrong"), lambda: _NONE, empty=_UNTOLD),)
        return (
            PanelTable(
                "findings",
                SafeText(_summary(found, compared)),
                lambda: findings_table(found) if compared is None else compared_table(found, compared),
                is_comparison=True,
                empty=_nothing(found),
            ),
        )

    def chart_lines(self, space: Size) -> int:
        kept = TABLE_LINES if space.height >= HIGH_ROOM else LOW_TABLE_LINES
        return max(0, min(MOST_LINES, space.height - kept))

    def chart(self, _report: Report, state: FindingsState, size: Size) -> list[Line]:
        """Return all about the finding under the cursor; without one, which rules were judged."""
        found = state.latest.found
        if found is None:
            return []
        name = _name(state)
        if name is None:
            return inset(_rules_lines(found, size), size)
        return inset(_finding_lines(state.latest.listed[name], size, _since(state.latest.compared, name)), size)

    def charted(self, _report: Report, state: FindingsState) -> FindingsState:
        """Return the state with the revision of the findings, which are not part of the report."""
        return replace(state, revision=state.latest.revision)

    def behind_row(self, state: FindingsState, row: int) -> Behind | None:
        listed = list(state.latest.listed.values())
        return listed[row].behind if listed else None

    def behind(self, _report: Report, state: FindingsState, size: Size, _x: int, y: int) -> Behind | None:
        name = _name(state)
        if name is None:
            return None
        one = state.latest.listed[name]
        lines = _finding_lines(one, size, _since(state.latest.compared, name))
        return one.behind if y < len(lines) and lines[y][0].text.strip() == QUERY else None

    def copies(self, state: FindingsState) -> Sequence[Copy]:
        name = _name(state)
        if name is None:
            return ()
        one = state.latest.listed[name]
        return (
            Copy(literal("redis-cli command to investigate"), one.command),
            *([Copy(literal("query for the affected keys"), query)] if (query := one.query) else []),
            Copy(literal("the problem and what to do"), f"{one.title}. {one.declared.reason} {one.declared.remedy}"),
        )


def _nothing(found: Found) -> SafeText:
    return SafeText(f"No problems{found.so_far or ' found'} ({counted(len(found.judged), 'rule')})")


def _summary(found: Found, compared: FindingsComparison | None) -> str:
    """Return the number of findings of each severity, and of new and resolved ones: `2 errors, 14 warnings, 1 new`."""
    errors = len(found.at_least(Severity.ERROR))
    parts = [counted(errors, "error")] if errors else []
    if len(found.findings) > errors or not errors:
        parts.append(counted(len(found.findings) - errors, "warning"))
    changed = () if compared is None else (compared.of_fate(fate) for fate in (FindingFate.NEW, FindingFate.GONE))
    words = [f"{len(some):,} {some[0].fate}" for some in changed if some]
    return ", ".join([*parts, *words])


def _name(state: FindingsState) -> str | None:
    """Return the identity of the finding under the cursor; None without one."""
    listed = state.latest.listed
    return state.subject if isinstance(state.subject, str) and state.subject in listed else next(iter(listed), None)


def _since(compared: FindingsComparison | None, name: str) -> SafeText:
    """Return the fate of a finding since the earlier report; empty for an unchanged one."""
    change = None if compared is None else compared.changes.get(name)
    if change is None or change.fate in (FindingFate.SAME, FindingFate.UNCLEAR):
        return SafeText("")
    return SafeText(f"{change.fate} since the earlier report{change_words(change)}")


def _finding_lines(one: Finding, size: Size, since: SafeText) -> list[Line]:
    """Return title, place, reason, remedy, query and the line for redis-cli, as far as they fit."""
    width = size.width - 2
    head: Line = (
        Span(SafeText(one.severity.value), _ROLES[one.severity]),
        Span(SafeText(f" · {one.rule} · {RULES[one.rule].title}"), Role.MUTED),
    )
    compared = paragraph(since, width, Role.ACCENT) if since else []
    told = (
        (2, "why", paragraph(SafeText(one.declared.reason), width - LABEL_CELLS, Role.TEXT)),
        (1, "do", paragraph(SafeText(one.declared.remedy), width - LABEL_CELLS, Role.TEXT)),
        (1, QUERY, _verbatim(SafeText(query), width, Role.ACCENT) if (query := one.query) else []),
        (5, "", paragraph(note, width - LABEL_CELLS, Role.FAINT) if (note := one.query_note) else []),
        (3, "command", _verbatim(one.command, width, Role.ACCENT)),
    )
    sections: list[tuple[int, list[Line]]] = [
        (0, [head, *paragraph(SafeText(f"{one.title}."), width, Role.STRONG), *compared]),
        (EVIDENCE, [(gap(LABEL_CELLS), Span(line, Role.MUTED)) for line in one.evidence]),
        *((rank, labelled(word, lines, LABEL_CELLS)) for rank, word, lines in told),
    ]
    while len(sections) > 1 and sum(len(lines) for _, lines in sections) > size.height:
        rank, lines = least = max(sections, key=lambda section: section[0])
        if rank == EVIDENCE and len(lines) > 1:
            lines.pop()
        else:
            sections.remove(least)
    return [line for _, lines in sections for line in lines]


def _verbatim(text: SafeText, width: int, role: Role) -> list[Line]:
    return [(Span(line, role),) for line in wrap(text, max(1, width - LABEL_CELLS), 2)]


def _rules_lines(found: Found, size: Size) -> list[Line]:
    names = joined([SafeText(rule) for rule in found.judged], ", ")
    lines = [
        (Span(literal("Rules checked"), Role.STRONG),),
        *paragraph(names, size.width - 2, Role.MUTED),
    ]
    for why, rules in found.doubts.items():
        lines += paragraph(SafeText(f"{', '.join(rules)} could not be checked: {why}."), size.width - 2, Role.WARN)
    return lines
