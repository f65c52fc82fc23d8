"""What the Analyse screen reads: the analysis of a server while it runs, or a report that was opened from a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from rtui.analysis.humanize import counted, duration
from rtui.analysis.report.document import CostReport, CoverageKind, Report, ServerReport
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing_status import Outdated
from rtui.server.guard.evidence import Consent
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import Online, State


@dataclass(frozen=True, slots=True)
class AnalysisStatus:
    """An analysis at one moment: everything but its numbers."""

    server: ServerReport
    """Who is or was asked; before the first report only what is known from the connection."""
    progress: Progress = field(default_factory=Progress)
    cost: Cost = field(default_factory=Cost)
    pace: Pace = Pace.GENTLE
    link: State = field(default_factory=Online)
    is_live: bool = True
    """Whether a server can be asked; False for a report from a file."""
    is_estimate: bool = False
    """Whether the analysis that runs, or ran last, inspects a sample only."""
    hot_since_s: float = 0.0
    """Seconds since the server was asked for its hot keys; 0 where that is not known, as in a report from a file."""
    age_s: float | None = None
    """Seconds since the figures were complete, or as complete as they will be; None while they still come."""
    outdated: Outdated | None = None
    """Why the figures do not hold any more; None while they may."""
    notes: tuple[SafeText, ...] = ()
    """Sentences that a reader of the numbers has to know."""

    @property
    def is_under_way(self) -> bool:
        """Whether an analysis has begun and not ended, be it paused."""
        state = self.progress.state
        return self.is_live and state is not ScanState.READY and not state.is_over


ASK_FROM_S: Final = 10.0
"""An analysis that has run for so long is not ended by a key without a question."""


def lost_by_leaving(status: AnalysisStatus) -> SafeText | None:
    """Return a sentence about what an analysis loses when rtui ends now; None for nothing that took long."""
    elapsed_s, keys = status.cost.elapsed_s, status.progress.keys
    if not status.is_under_way or elapsed_s < ASK_FROM_S:
        return None
    asked = counted(keys, "key")
    return SafeText(f"An analysis is under way: {asked} in {duration(round(elapsed_s * 1000))}. Quitting loses it.")


class AnalysisSource(Protocol):
    """An analysis, or a report from a file, as the screen reads it."""

    @property
    def revision(self) -> int:
        """Grows whenever something that is shown has changed."""

    @property
    def report(self) -> Report | None:
        """The figures so far, None before there are any; another object after each change."""

    @property
    def status(self) -> AnalysisStatus:
        """Everything but the numbers, now."""

    def begin(self, *, estimate: bool = False) -> None:
        """Inspect every key, or with `estimate` a sample; an analysis that runs is ended."""

    @property
    def control(self) -> RunControl:
        """Pauses, resumes, stops and paces the analysis; each has its own."""

    @property
    def offers_hot_session(self) -> bool:
        """Whether the server can be made to find its hottest keys itself for a while."""

    async def start_hot_session(self, consent: Consent) -> None:
        """Start such a session, which ends by itself; raises RtuiError when the server refuses."""

    @property
    def reports_hot_keys(self) -> bool:
        """Whether the server itself knows which keys are hot, in a session or in windows of its own."""

    async def ask_hot(self) -> None:
        """Read again which keys are hot, for the report that is there; raises RtuiError where that fails."""

    async def close(self) -> None:
        """End everything."""


class FixedAnalysis:
    """A report from a file; there is no server to ask."""

    offers_hot_session = reports_hot_keys = False

    def __init__(self, report: Report) -> None:
        self.report: Report | None = report
        self.revision = 1
        self.status = status_of(report)
        self.control = RunControl(self.status.pace)

    def begin(self, *, estimate: bool = False) -> None:
        """Do nothing: there is no server."""

    async def start_hot_session(self, consent: Consent) -> None:
        """Do nothing: there is no server."""

    async def ask_hot(self) -> None:
        """Do nothing: there is no server."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def status_of(report: Report) -> AnalysisStatus:
    """Return the status of the analysis that a report comes from."""
    head = report.head
    is_partial = head.coverage.kind is CoverageKind.PARTIAL
    progress = Progress(
        state=ScanState.STOPPED if is_partial else ScanState.DONE,
        fraction=head.coverage.fraction,
        keys=head.coverage.counted_keys,
    )
    status = AnalysisStatus(
        head.server,
        progress,
        cost_of(head.cost),
        is_live=False,
        is_estimate=head.coverage.kind is CoverageKind.ESTIMATE,
    )
    names = {pace.value: pace for pace in Pace}
    return replace(status, pace=names.get(head.scope.pace, Pace.GENTLE))


def cost_of(cost: CostReport) -> Cost:
    """Return the cost in a report as bars show it."""
    return Cost(
        commands=cost.commands,
        bytes_in=cost.bytes_in,
        bytes_out=cost.bytes_out,
        server_us=cost.server_us,
        is_measured=cost.is_measured,
        elapsed_s=cost.elapsed_s,
    )
