"""The interface over a report that was saved: every panel, and no server."""

from __future__ import annotations

from textual.app import App

from rtui.analysis.report.document import Report
from rtui.server.analysis_source import FixedAnalysis
from rtui.server.browse_options import BrowseOptions
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp, terminal_palette
from rtui.tui.kit.themes import Palette


class ReportApp(RtuiApp):
    """Shows one report; its first screen is the analysis, under which there is nothing to go back to."""

    def __init__(
        self,
        report: Report,
        options: BrowseOptions,
        *,
        start_panel: str | None = None,
        palette: Palette = Palette.TRUE,
    ) -> None:
        super().__init__(options, palette=palette)
        self._source = FixedAnalysis(report)
        self._start_panel = start_panel

    async def begin(self) -> None:
        """Show the report, instead of connecting."""
        await self.push_screen(AnalyseScreen(self._source, start_panel=self._start_panel))


def run(report: Report, options: BrowseOptions) -> int:
    """Show a report until the user leaves; returns the exit code. Of the options only those of the look count."""
    app: App[int] = ReportApp(report, options, palette=terminal_palette())
    return app.run() or 0
