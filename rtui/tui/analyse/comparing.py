"""The changes in an analysis: since an earlier report, or while the same pass is repeated.

A pass over all keys takes the server's time, so the next one comes when the last one was no more than `WATCH_SHARE` of
the time since it began. A pass that took 100 ms of the server is repeated every 10 s, one that took 5 s every 8 min;
while it runs it keeps its pace. Figures stay as they are until all of the new ones are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.json import ReportFormatError
from rtui.analysis.report.comparison import notes
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.tables.changes import total_change
from rtui.analysis.report.tables.contents import coverage_text
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Unit, change_text
from rtui.keyspace.text.display import SafeText, display
from rtui.server.analysis.kept_reports import KeptReport, KeptReports, read_kept
from rtui.server.analysis.session import AnalysisSource, AnalysisStatus
from rtui.server.hot.report import HOT_EVERY_S
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.tui.analyse.findings_panel import FindingsPanel, LatestFindings
from rtui.tui.analyse.report_panel import ReportPanel
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.layout import MARGIN, display_text
from rtui.tui.kit.panel_screen import PanelScreen
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, literal

NOTHING_KEPT: Final = literal("No earlier report to compare with: reports are not kept (--no-keep).")
NO_EARLIER: Final = literal("No earlier report of this server and database yet; each completed analysis is kept.")


def age_text(at_s: float, now_s: float) -> SafeText:
    """Return how long ago something was: `12m 4s ago`."""
    return SafeText(f"{humanize.duration(round(max(0.0, now_s - at_s) * 1000))} ago")


def earlier(kept: KeptReports, shown: Report) -> list[KeptReport]:
    """Return the reports made before the shown one, the latest first; reads files."""
    return [one for one in kept.reports() if round(one.head.made_at_s, 3) < round(shown.head.made_at_s, 3)]


def choices(found: Sequence[KeptReport], now_s: float) -> list[SafeText]:
    """Return a line for each report: its age, its time, its keys and its coverage."""
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
    """Return the earlier report's age, time and coverage, the change of all keys and bytes, and the first note.

    `watching` names the interval of repetitions; without an earlier report it is the whole line.
    """
    spans: list[Span] = [gap(MARGIN)]
    if watching is not None:
        spans.append(Span(watching, Role.ACCENT))
    if before is None:
        return clip(tuple(spans), width - MARGIN)
    spans.append(Span(literal("▲▼ since " if watching is None else " · ▲▼ since "), Role.ACCENT))
    spans.append(Span(age_text(before.head.made_at_s, now_s), Role.STRONG))
    for column, unit, word in (("keys", Unit.KEYS, "keys"), ("memory", Unit.BYTES, "memory")):
        change = total_change(before, after, column)
        if change is not None:
            spans.append(Span(SafeText(f" · {word} {change_text(change, unit)}"), Role.TEXT))
    spans.append(Span(SafeText(f" · {humanize.moment(before.head.made_at_s)} UTC"), Role.MUTED))
    said = list(notes(before, after))
    spans.append(Span(SafeText(f" · {coverage_text(before.head.coverage)}"), Role.MUTED))
    if said:
        spans.append(Span(SafeText(f" · {display_text(said[0], limit=200)}"), Role.WARN))
    return clip(tuple(spans), width - MARGIN)


WATCH_SHARE: Final = 0.01
"""Of the server's time that is taken for watching."""

LEAST_S: Final = 10.0
"""The least time between the beginnings of two passes."""

FLASH_S: Final = 0.9
"""Rows that have changed are marked for so long."""


class PanelWatch:
    """When the next pass is due, and the report before. Times are seconds of the event loop's clock."""

    def __init__(self, report: Report, server_s: float, now_s: float) -> None:
        """`report` is the shown one; its pass took `server_s` of the server's time."""
        self.report = report
        self.before: Report | None = None
        """The report before, None until there is a second one."""
        self.every_s = 0.0
        self._due_s = now_s
        self._marked_s: float | None = None
        self._wait(server_s, now_s)

    def _wait(self, server_s: float, now_s: float) -> None:
        self.every_s = max(LEAST_S, server_s / WATCH_SHARE)
        self._due_s = now_s + self.every_s

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def learn(self, report: Report, server_s: float, now_s: float) -> bool:
        """Add the report of an ended pass; return whether it is a new one."""
        if report is self.report:
            return False
        self.before, self.report, self._marked_s = self.report, report, now_s
        self._wait(server_s, now_s)
        return True

    def settle(self, now_s: float) -> bool:
        """Return True once changes have been marked for `FLASH_S`."""
        if self._marked_s is None or now_s - self._marked_s < FLASH_S:
            return False
        self._marked_s = None
        return True

    def text(self, now_s: float) -> SafeText:
        """Return how often it is asked, when next, and how fast the number of keys and bytes changes."""
        rates = [] if self.before is None else _rates(self.before, self.report)
        wait = humanize.duration(round(self.every_s * 1000))
        left = humanize.duration(round(max(0.0, self._due_s - now_s) * 1000))
        return SafeText(" · ".join([f"watching every {wait}, next in {left}", *rates]))


def _rates(before: Report, after: Report) -> list[str]:
    """Return the rates of the totals that have changed between two reports: `keys +12/s`."""
    apart_s = after.head.made_at_s - before.head.made_at_s
    found = []
    for column in ("keys", "memory"):
        change = total_change(before, after, column)
        if apart_s <= 0 or isinstance(change, bool) or not isinstance(change, int | float | Estimate):
            continue
        difference = change.value if isinstance(change, Estimate) else change
        if not difference:
            continue
        sign, per_s = "+" if difference > 0 else "-", abs(difference) / apart_s
        text = f"{humanize.size(per_s)}/s" if column == "memory" else humanize.rate(per_s * 60)
        found.append(f"{column} {sign}{text}")
    return found


class ScreenComparison:
    """Compares the report of an Analyse screen with an earlier one, and watches: repeats the analysis."""

    def __init__(
        self,
        screen: PanelScreen[Any],
        view: ReportPanel,
        source: AnalysisSource,
        findings: LatestFindings,
        clock: Callable[[], float],
    ) -> None:
        """`clock` returns seconds since the epoch."""
        self._screen, self._view, self._source = screen, view, source
        self._findings, self._clock = findings, clock
        self.watch: PanelWatch | None = None
        """Asks the same again and again; None while nothing is watched."""

    def line(self) -> Callable[[int], Line] | None:
        """Return the line about comparing and watching, for any width; None if the screen does neither."""
        before, shown = self._view.states.baseline, self._view.report
        watching = None if self.watch is None else self.watch.text(self._loop_s)
        if shown is None or (before is None and watching is None):
            return None
        return lambda width: against_line(before, shown, self._clock(), width, watching)

    def toggle_watch(self) -> None:
        """Start repeating the analysis, showing the changes each time; or stop that."""
        screen, status, report = self._screen, self._source.status, self._view.report
        if self.watch is not None:
            self._end_watch()
        elif self._view.panel.shows_hot_keys and self._source.reports_hot_keys:
            text = f"Hot keys are refreshed every {HOT_EVERY_S:g} s while they are shown."
            screen.notify(text, markup=False, timeout=5)
        elif report is None or status.is_under_way:
            screen.notify("There is no complete analysis to repeat yet.", markup=False, timeout=4)
        else:
            self.watch = PanelWatch(report, status.cost.server_us / 1e6, self._loop_s)

    @property
    def _loop_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _end_watch(self) -> None:
        """Watch no more; compare no more, unless the user chose the earlier report."""
        watch, self.watch = self.watch, None
        if watch is not None and watch.before is not None and self._view.states.baseline is watch.before:
            self._compare_with(None)
        self._view.table.flash(is_on=False)

    def go_on_watching(self, status: AnalysisStatus) -> None:
        """Add the report of an ended pass, and begin the next one when it is due."""
        watch, report = self.watch, self._view.report
        if watch is None or status.is_under_way:
            return
        if status.progress.state is not ScanState.DONE or report is None:
            self._end_watch()
            return
        if watch.settle(self._loop_s):
            self._view.table.flash(is_on=False)
        before = watch.before
        if watch.learn(report, status.cost.server_us / 1e6, self._loop_s):
            if self._view.states.baseline is before:
                self._compare_with(watch.before)
            self._view.table.flash(is_on=True)
        elif watch.is_due(self._loop_s) and isinstance(status.link, Online):
            self._source.begin_again()

    def toggle(self) -> None:
        """Choose an earlier report to show the changes since, or show them no more."""
        screen, report, kept = self._screen, self._view.report, self._source.kept
        if self.watch is not None:
            self._end_watch()
        if self._view.states.baseline is not None:
            self._compare_with(None)
        elif report is None or kept is None:
            screen.notify("There is nothing to compare yet." if report is None else NOTHING_KEPT, markup=False)
        else:
            work = self._choose_earlier(kept, report)
            screen.run_worker(work, group="earlier", exclusive=True, exit_on_error=False, description="earlier reports")

    async def _choose_earlier(self, kept: KeptReports, shown: Report) -> None:
        screen, found = self._screen, await asyncio.to_thread(earlier, kept, shown)
        if not found:
            screen.notify(NO_EARLIER, markup=False, timeout=5)
            return
        chosen: int | None = 0
        if len(found) > 1:
            texts = await asyncio.to_thread(choices, found, self._clock())
            chosen = await screen.app.push_screen_wait(ChoiceScreen(literal("Compare with"), texts))
        if chosen is not None:
            try:
                self._compare_with(await asyncio.to_thread(read_kept, found[chosen].file))
            except (OSError, ReportFormatError) as error:
                screen.notify(display_text(str(error), limit=200), title="Not read", severity="error", markup=False)

    def _compare_with(self, baseline: Report | None) -> None:
        self._view.compare(baseline)
        if self._view.report is not None:
            self.look_for_findings(self._view.report)
        self._screen.show_again()

    def look_for_findings(self, report: Report) -> None:
        """Look for findings in a thread while their panel is shown."""
        if self._view.panel.id == FindingsPanel.id:
            again = partial(self._view.show_again, FindingsPanel.id)
            self._findings.look(self._screen, report, self._view.states.baseline, again)
