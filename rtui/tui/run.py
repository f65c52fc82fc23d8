"""Runs the application for the command line: to browse, to record that, or to show a report or samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from rtui.server.chance import seeded
from rtui.server.options import BrowseOptions
from rtui.server.user.known_servers import RecentServers
from rtui.tui.app import RtuiApp
from rtui.tui.connect import ConnectScreen
from rtui.tui.kit.settings import SettingsFile, settings_path
from rtui.tui.kit.themes import Palette, terminal_palette

if TYPE_CHECKING:
    from rtui.analysis.report.document import Report, ServerReport
    from rtui.server.health.session import SavedHealth


class FileApp(RtuiApp):
    """Shows a file, on the first screen of a subclass: `get_default_screen`."""

    offers_servers = False

    async def on_load(self) -> None:
        """Connect to no server."""

    async def begin(self) -> None:
        """Connect once a server was chosen."""
        if isinstance(self.screen, ConnectScreen):
            await super().begin()


class ReportApp(FileApp):
    """Shows one report; its first screen is the analysis."""

    def __init__(
        self,
        report: Report,
        options: BrowseOptions,
        before: Report | None = None,
        *,
        palette: Palette = Palette.TRUE,
        settings: SettingsFile | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        """Only the registry and the options of the look count; `before` is an earlier report to compare with.

        `clock` returns seconds since the epoch.
        """
        self._epoch_clock = clock
        super().__init__(options, palette=palette, settings=settings)
        self._report = report
        self._before = before
        self._analysis: Screen[Any] | None = None
        """The first screen."""

    @property
    def server_of_report(self) -> ServerReport | None:
        """The server of the report, while that is shown."""
        return self._report.head.server if self._session is None and self.screen is self._analysis else None

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen of the report."""
        from rtui.server.analysis.kept_reports import KeptReports  # noqa: PLC0415 - not for browsing
        from rtui.server.analysis.session import FixedAnalysis  # noqa: PLC0415
        from rtui.tui.analyse.screen import AnalyseScreen  # noqa: PLC0415

        report, server = self._report, self._report.head.server
        source = FixedAnalysis(report, KeptReports(server.label, server.db))
        registry = self.options.registry
        screen = AnalyseScreen(source, settings=self.settings, registry=registry, clock=self._epoch_clock)
        screen.view.states.compare(self._before)
        self._analysis = screen
        return screen


class SamplesApp(FileApp):
    """Shows the samples of servers; its first screen is that of the server."""

    def __init__(
        self,
        health: SavedHealth,
        options: BrowseOptions,
        *,
        palette: Palette = Palette.TRUE,
        settings: SettingsFile | None = None,
    ) -> None:
        """Only the options of the look count."""
        super().__init__(options, palette=palette, settings=settings)
        self._health = health

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen of the server."""
        from rtui.tui.server import ServerScreen  # noqa: PLC0415 - not for browsing

        return ServerScreen(self._health, self._health.label, clock=lambda: self._health.ended_at_s)


def run(options: BrowseOptions) -> int:
    """Browse until the user leaves; returns the exit code."""
    settings = SettingsFile.opened(settings_path())
    if options.record_file is not None:
        return _run_recorded(options, options.record_file, settings)
    app = RtuiApp(options, palette=terminal_palette(), settings=settings, recent=RecentServers())
    return app.run() or 0


def _run_recorded(options: BrowseOptions, path: Path, settings: SettingsFile) -> int:
    """Browse and record it; a recorded scan begins at its beginning, and is not that of the compiled engine."""
    from rtui.server.recording.recorder import Recorder  # noqa: PLC0415 - few sessions are recorded

    recorder = Recorder(path)
    options = replace(options, resume=False)
    app = RtuiApp(options, palette=terminal_palette(), settings=settings, recent=RecentServers(), recorder=recorder)
    try:
        with seeded(recorder.seed):
            return app.run() or 0
    finally:
        recorder.close()


def run_report(report: Report, options: BrowseOptions, before: Report | None = None) -> int:
    """Show a report that was saved, without a server, until the user leaves; returns the exit code.

    `before` is an earlier one to compare it with.
    """
    settings = SettingsFile.opened(settings_path())
    return ReportApp(report, options, before, palette=terminal_palette(), settings=settings).run() or 0


def run_samples(health: SavedHealth, options: BrowseOptions) -> int:
    """Show samples of servers that were saved, until the user leaves; returns the exit code."""
    settings = SettingsFile.opened(settings_path())
    return SamplesApp(health, options, palette=terminal_palette(), settings=settings).run() or 0
