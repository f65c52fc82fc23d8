"""The Analyse screen on an analysis whose every value is set by hand, opened from the tree as users open it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from msgspec import structs
from textual.pilot import Pilot

from rtui.analysis.columns import Columns
from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport
from rtui.analysis.report.tables.table import Subject
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.analysis.session import FixedAnalysis as AnalysisFromFile
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.guard.evidence import Consent
from rtui.server.inspection.tables import InspectedBatch
from rtui.server.options import BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.target import Target
from rtui.table.aggregates import Aggregates
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.settings import SettingsFile
from tests.table.naive import add_batch
from tests.tui.browsing import until
from tests.tui.fixed_session import ASKED_AT_S, COMPLETE, FixedSession, keys, kind_of, memory_of, ttl_of
from tests.tui.palettes import PaletteApp


def app_on(
    source: FixedAnalysis,
    terminal: type[PaletteApp] | None = None,
    settings: SettingsFile | None = None,
    **options: Any,
) -> RtuiApp:
    """The whole interface with this analysis behind its tree, in a terminal of few colours if one is given.

    Without settings, the user has left the analysis at the Memory panel.
    """
    if settings is None:
        settings = SettingsFile()
        settings.choose("panel", "memory")
    session = FixedSession()
    session.analysis = source
    given = BrowseOptions(target=Target(host="10.0.0.5"), **options)
    return (
        RtuiApp(given, session, settings=settings)
        if terminal is None
        else terminal(given, session, palette=terminal.shown_in, settings=settings)
    )


class AnalyseUser:
    """A screen, its analysis, and a hand on the keyboard."""

    def __init__(self, pilot: Pilot[int], screen: AnalyseScreen, source: FixedAnalysis) -> None:
        self.pilot = pilot
        self.screen = screen
        self.source = source

    @property
    def subject(self) -> Subject:
        """What the row under the cursor is about."""
        return self.screen.view.table.body.subject

    @property
    def rows(self) -> list[str]:
        """The first cell of every row, from the top."""
        rows = self.screen.view.table.rows
        return [rows.texts(line)[0] for line in range(len(rows))]

    @property
    def text(self) -> str:
        """Everything on the screen."""
        with self.screen.app._context():
            strips = list(self.screen.app.screen._compositor.render_strips())
        return "\n".join("".join(part.text for part in strip if not part.control).rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(self.pilot, holds)

    async def until_shown(self, *texts: str) -> None:
        await self.until(lambda: all(text in self.text for text in texts))


@asynccontextmanager
async def analysing(
    source: FixedAnalysis, size: tuple[int, int] = (120, 36), **options: Any
) -> AsyncIterator[AnalyseUser]:
    app = app_on(source, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen) and app.screen.is_current)
        screen = app.screen
        assert isinstance(screen, AnalyseScreen)
        await until(pilot, lambda: screen.size.width > 0 and bool(screen.title_bar.lines))
        yield AnalyseUser(pilot, screen, source)


SERVER = ServerReport("10.0.0.5:6379", "valkey", "9.1.2", "primary", 0, no_touch="on")

READY = AnalysisStatus(SERVER)

RUNNING = AnalysisStatus(
    SERVER,
    Progress(ScanState.RUNNING, 0.43, 430_000, 86_000.0, 6.6),
    Cost(commands=1_763_000, keys=430_000, server_us=480_000, elapsed_s=5.0, is_measured=True),
    Pace.NORMAL,
)


class FixedAnalysis(AnalysisFromFile):
    """A live analysis as far as a screen can tell."""

    def __init__(
        self, report: Report | None = None, status: AnalysisStatus = READY, kept: KeptReports | None = None
    ) -> None:
        self.report = report
        self.kept = kept
        self.status = status
        self.revision = 1
        self.asked: list[str] = []
        self.control = RunControl(status.pace)
        self.control.on_change.append(self._control_changed)

    def put(self, report: Report | None, state: ScanState = ScanState.RUNNING) -> None:
        self.report = report
        self._turn(state)

    def begin(self, *, estimate: bool = False) -> None:
        self.asked.append("estimate" if estimate else "begin")
        self._turn(ScanState.RUNNING)

    def begin_again(self) -> None:
        self.asked.append("again")
        self._turn(ScanState.RUNNING)

    def choose_columns(self, columns: Columns | None) -> None:
        self.status = replace(self.status, columns=columns)
        self.revision += 1

    def _control_changed(self) -> None:
        control, was_paused = self.control, self.status.progress.state is ScanState.PAUSED
        self.status = replace(self.status, pace=control.pace)
        self.revision += 1
        if control.is_stopped:
            self.asked.append("stop")
            self._turn(ScanState.STOPPED)
        elif control.is_paused is not was_paused:
            self.asked.append("pause" if control.is_paused else "resume")
            self._turn(ScanState.PAUSED if control.is_paused else ScanState.RUNNING)

    async def start_hot_session(self, consent: Consent) -> None:
        self.asked.append("session")

    async def ask_hot(self) -> None:
        self.asked.append("hot")

    async def close(self) -> None:
        self.asked.append("close")

    def _turn(self, state: ScanState) -> None:
        self.status = replace(self.status, progress=replace(self.status.progress, state=state))
        self.revision += 1


def report_of(names: Sequence[bytes], kind: CoverageKind = CoverageKind.EXACT) -> Report:
    """The report of a pass over these keys, as far as `kind` says."""
    scope = Scope()
    found = Aggregates(Separators(), scope=scope, started_at_s=ASKED_AT_S)
    by_type: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for name in names:
        by_type[kind_of(name)].append(name)
    for key_type, some in by_type.items():
        ttls = [ttl if isinstance(ttl := ttl_of(name), int) else -1 for name in some]
        idle = [len(name) * 86_400 for name in some]
        sizes = [memory_of(name) for name in some]
        add_batch(found, InspectedBatch(key_type, some, ttls, sizes, idle), ASKED_AT_S)
    coverage = Coverage(kind, len(names), None if kind is CoverageKind.PARTIAL else 1.0, len(names))
    return Report(Head(ASKED_AT_S, ServerReport("10.0.0.5:6379"), scope, coverage), finish(found.summary()))


def analysed_session(
    status: BrowsingStatus = COMPLETE, *, age_s: float | None = 725.0, kind: CoverageKind = CoverageKind.EXACT
) -> FixedSession:
    """A session whose keys were all analysed `age_s` seconds ago; None: they still are."""
    session = FixedSession(status)
    with_report(session, report_of([name for name in keys() if name != b"gone"], kind), age_s=age_s)
    return session


def with_report(session: FixedSession, report: Report, *, age_s: float | None = None) -> None:
    """Give a session the report of an analysis."""
    session.analysis = FixedAnalysis(report, replace(READY, age_s=age_s))


def scoped(report: Report, **scope: object) -> Report:
    """The same report of another scope."""
    return structs.replace(report, head=structs.replace(report.head, scope=structs.replace(report.head.scope, **scope)))
