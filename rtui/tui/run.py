"""Runs the application for the command line: to browse, to record that, to show many servers, a report or samples."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack

from textual import on
from textual.binding import Binding, BindingType
from textual.screen import Screen

from rtui.server.options import BrowseOptions
from rtui.server.user.known_servers import RecentServers
from rtui.server.wall_clock import seeded
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, start_supervised
from rtui.tui.app import RtuiApp
from rtui.tui.connect import ConnectScreen
from rtui.tui.kit.command_screen import ServerLeft
from rtui.tui.kit.settings import SettingsFile, settings_path
from rtui.tui.kit.themes import Palette, terminal_palette

if TYPE_CHECKING:
    from rtui.analysis.report.document import Report, ServerReport
    from rtui.server.health.fleet import Fleet
    from rtui.server.health.session import SavedHealth
    from rtui.tui.fleet import FleetScreen, FleetStates


class OfUser(TypedDict, total=False):
    """The colours of the user's terminal, and the files of settings and of recent servers; none by default."""

    palette: Palette
    settings: SettingsFile | None
    recent: RecentServers | None


class FileApp(RtuiApp):
    """Shows a file, on the first screen of a subclass: `get_default_screen`."""

    offers_servers = False
    begins_connected = False

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
        clock: Callable[[], float] = time,
        **of_user: Unpack[OfUser],
    ) -> None:
        """Only the registry and the options of the look count; `before` is an earlier report to compare with.

        `clock` returns seconds since the epoch.
        """
        self._epoch_clock = clock
        super().__init__(options, **of_user)
        self._report = report
        self._before = before
        self._analysis: Screen[Any] | None = None
        """The first screen."""

    @property
    def server_of_report(self) -> ServerReport | None:
        return self._report.head.server if self._session is None and self.screen is self._analysis else None

    def get_default_screen(self) -> Screen[Any]:
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

    def __init__(self, health: SavedHealth, options: BrowseOptions, **of_user: Unpack[OfUser]) -> None:
        """Only the options of the look count."""
        super().__init__(options, **of_user)
        self._health = health

    def get_default_screen(self) -> Screen[Any]:
        from rtui.tui.server import ServerScreen  # noqa: PLC0415 - not for browsing

        return ServerScreen(self._health, self._health.label, clock=lambda: self._health.ended_at_s)


class FleetApp(FileApp):
    """Shows many servers; Enter opens one of them, and Escape in its tree leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave_server", show=False)]
    leads_back = True

    def __init__(self, fleet: Fleet, options: BrowseOptions, **of_user: Unpack[OfUser]) -> None:
        """Only the registry and the options of the look count."""
        super().__init__(options, **of_user)
        self.fleet = fleet
        self._fleet_states: FleetStates | None = None
        self._polling: asyncio.Task[None] | None = None
        self._wants_health = False
        """Whether the server that is being connected to was chosen for its health."""

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen of the servers, which are asked from now on, whatever is shown."""
        self._polling = start_supervised(self.fleet.run(), name="rtui fleet", failed=self._failed)
        return self._fleet_screen()

    def _fleet_screen(self) -> Screen[Any]:
        from rtui.tui.fleet import FleetScreen, FleetStates  # noqa: PLC0415 - not for browsing

        self._fleet_states = self._fleet_states or FleetStates()
        return FleetScreen(self.fleet, self._fleet_states)

    def _failed(self, error: RtuiError) -> None:
        self.notify(error.happened, title=error.title, severity="error", markup=False)

    async def _leave(self, code: int = 0) -> None:
        await end_task(self._polling)
        await self.fleet.close()
        await super()._leave(code)

    def on_fleet_screen_chosen(self, message: FleetScreen.Chosen) -> None:
        self._wants_health = message.wants_health
        self.connect_to(message.target)

    def _show_wanted_keys(self) -> None:
        super()._show_wanted_keys()
        if self._wants_health:
            self._wants_health = False
            self.navigation.server()

    def action_server(self) -> None:
        from rtui.tui.fleet import FleetScreen  # noqa: PLC0415 - not for browsing

        if isinstance(self.screen, FleetScreen):
            self.screen.action_open(wants_health=True)
        else:
            super().action_server()

    @on(ServerLeft)
    def _server_left(self) -> None:
        session = self._session
        is_kept = session is not None and session.lost_by_leaving is not None and self._left.has_room
        work = self.leave_for(self._fleet_screen(), False if is_kept else None)
        self.run_worker(work, group="connect", exclusive=True, description="fleet")

    def action_leave_server(self) -> None:
        """Go back from a server that is being connected to, or can't be."""
        if isinstance(self.screen, ConnectScreen):
            self.post_message(ServerLeft())


def _of_user(recent: RecentServers | None = None) -> OfUser:
    return {"palette": terminal_palette(), "settings": SettingsFile.opened(settings_path()), "recent": recent}


def _exit_code(app: RtuiApp) -> int:
    """Run an application; one that fails has a return code of Textual's, and returns nothing."""
    return app.run() or app.return_code or 0


def run(options: BrowseOptions) -> int:
    """Browse until the user leaves; returns the exit code."""
    if options.record_file is not None:
        return _run_recorded(options, options.record_file)
    return _exit_code(RtuiApp(options, **_of_user(RecentServers())))


def _run_recorded(options: BrowseOptions, path: Path) -> int:
    """Browse and record it; a recorded scan begins at its beginning, and is not that of the compiled engine."""
    from rtui.server.recording.recorder import Recorder  # noqa: PLC0415 - few sessions are recorded

    recorder = Recorder(path)
    app = RtuiApp(replace(options, resume=False), recorder=recorder, **_of_user(RecentServers()))
    try:
        with seeded(recorder.seed):
            return _exit_code(app)
    finally:
        recorder.close()


def run_report(report: Report, options: BrowseOptions, before: Report | None = None) -> int:
    """Show a report that was saved, without a server, until the user leaves; returns the exit code.

    `before` is an earlier one to compare it with.
    """
    return _exit_code(ReportApp(report, options, before, **_of_user()))


def run_fleet(fleet: Fleet, options: BrowseOptions) -> int:
    return _exit_code(FleetApp(fleet, options, **_of_user(RecentServers())))


def run_samples(health: SavedHealth, options: BrowseOptions) -> int:
    return _exit_code(SamplesApp(health, options, **_of_user()))
