"""What has changed on the screen of an analysis: since an earlier report, or again and again while it is watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from rtui.analysis.formats.json import ReportFormatError
from rtui.analysis.report.document import Report
from rtui.server.analysis_session import AnalysisStatus
from rtui.server.hot.report import HOT_EVERY_S
from rtui.server.kept_reports import KeptReports, read_kept
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.tui.analyse.beginning import BeginningScreen
from rtui.tui.analyse.comparing import NO_EARLIER, NOTHING_KEPT, choices, earlier
from rtui.tui.analyse.findings_panel import FindingsPanel
from rtui.tui.analyse.latest_findings import LatestFindings
from rtui.tui.analyse.panel_view import PanelView
from rtui.tui.analyse.panel_watch import PanelWatch
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import literal


class ComparingScreen(BeginningScreen):
    """The part of the screen that compares the figures with others."""

    view: PanelView
    findings: LatestFindings
    clock: Callable[[], float]
    """Returns seconds since the epoch."""
    _watch: PanelWatch | None = None
    """Asks the same again and again; None while nothing is watched."""

    def show_bars(self) -> None:
        """Show the title, the progress, the tabs, what is compared with, and the commands."""
        raise NotImplementedError

    def action_watch(self) -> None:
        """Ask the same again and again, and show what has changed each time; or end that."""
        status, report = self.source.status, self.report
        if self._watch is not None:
            self._end_watch()
        elif self.view.panel.shows_hot_keys and self.source.reports_hot_keys:
            text = f"The hot keys are asked every {HOT_EVERY_S:g} s while they are shown."
            self.notify(text, markup=False, timeout=5)
        elif report is None or status.is_under_way:
            self.notify("There are no complete figures to be asked again yet.", markup=False, timeout=4)
        else:
            self._watch = PanelWatch(report, status.cost.server_us / 1e6, self._loop_s)
        self.show_soon()

    @property
    def _loop_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _end_watch(self) -> None:
        """Watch no more; what it was compared with goes, unless the user chose that."""
        watch, self._watch = self._watch, None
        if watch is not None and watch.before is not None and self.view.states.baseline is watch.before:
            self._compare_with(None)
        self.view.table.flash(is_on=False)

    def go_on_watching(self, status: AnalysisStatus) -> None:
        """Take the report of a pass that has ended, and begin the next one when it is due."""
        watch, report = self._watch, self.report
        if watch is None or status.is_under_way:
            return
        if status.progress.state is not ScanState.DONE or report is None:
            self._end_watch()
            return
        if watch.settle(self._loop_s):
            self.view.table.flash(is_on=False)
        before = watch.before
        if watch.learn(report, status.cost.server_us / 1e6, self._loop_s):
            if self.view.states.baseline is before:
                self._compare_with(watch.before)
            self.view.table.flash(is_on=True)
        elif watch.is_due(self._loop_s) and isinstance(status.link, Online):
            self.source.begin_again()

    def action_compare(self) -> None:
        """Choose an earlier report to show the changes since, or show them no more."""
        if self._watch is not None:
            self._end_watch()
        if self.view.states.baseline is not None:
            self._compare_with(None)
        elif self.report is None or self.source.kept is None:
            self.notify("There is nothing to compare yet." if self.report is None else NOTHING_KEPT, markup=False)
        else:
            work = self._choose_earlier(self.source.kept, self.report)
            self.run_worker(work, group="earlier", exclusive=True, exit_on_error=False, description="earlier reports")

    async def _choose_earlier(self, kept: KeptReports, shown: Report) -> None:
        """List the earlier reports, and compare with the one that is chosen."""
        found = await asyncio.to_thread(earlier, kept, shown)
        if not found:
            self.notify(NO_EARLIER, markup=False, timeout=5)
            return
        texts = await asyncio.to_thread(choices, found, self.clock())
        chosen = await self.app.push_screen_wait(ChoiceScreen(literal("What has changed since"), texts))
        if chosen is not None:
            try:
                self._compare_with(await asyncio.to_thread(read_kept, found[chosen].file))
            except (OSError, ReportFormatError) as error:
                self.notify(display_text(str(error), limit=200), title="Not read", severity="error", markup=False)

    def _compare_with(self, baseline: Report | None) -> None:
        self.view.compare(baseline)
        if self.report is not None:
            self.look_for_findings(self.report)
        self.show_bars()
        self.show_again()

    def look_for_findings(self, report: Report) -> None:
        """Look for findings in a thread while their panel is shown."""
        if self.view.panel.id == FindingsPanel.id:
            again = partial(self.view.show_again, FindingsPanel.id)
            self.findings.look(self, report, self.view.states.baseline, again)
