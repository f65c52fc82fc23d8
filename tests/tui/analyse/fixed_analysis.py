"""An analysis whose every value is set by hand: it says what it is told to, and keeps what was asked of it."""

from __future__ import annotations

from dataclasses import replace

from rtui.analysis.columns import Columns
from rtui.analysis.report.document import Report, ServerReport
from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.analysis.session import FixedAnalysis as AnalysisFromFile
from rtui.server.guard.evidence import Consent
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl

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
        """Have another report."""
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
