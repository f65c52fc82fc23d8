"""The source of the Analyse screen: the analysis of a server while it runs, or a report opened from a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import structs

from rtui.analysis.columns import Columns
from rtui.analysis.humanize import counted, duration, share
from rtui.analysis.report.document import CoverageKind, Report, ServerReport
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import wall_clock
from rtui.server.analysis.kept_reports import KeptReports, NotKeptError
from rtui.server.analysis.run import ESTIMATE_KEYS, AnalysisRun, analysis_bill
from rtui.server.deployment.nodes import Deployment
from rtui.server.files import reason_of
from rtui.server.guard.evidence import Consent
from rtui.server.hot.hotkeys import reports_hot_keys, start_session, too_old
from rtui.server.inspection.report_head import WHOLE_CLUSTER, server_report
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import Connection, Online, State
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.identity import Outdated, ServerStamp
from rtui.server.wire.supervised_tasks import end_task, start_supervised

if TYPE_CHECKING:  # it is imported with Polars
    from rtui.table.kept_rows import PassRows

ASK_FROM_S: Final = 10.0
"""Seconds of an analysis after which a keypress does not end it without a question."""

LEFT: Final = "rtui was quit"
"""Why a report is partial that was kept when rtui ended."""


@dataclass(frozen=True, slots=True)
class AnalysisStatus:
    """An analysis at one moment: everything but its numbers."""

    server: ServerReport
    """The server of the report; before the first report only the facts known from the connection."""
    progress: Progress = field(default_factory=Progress)
    cost: Cost = field(default_factory=Cost)
    pace: Pace = Pace.GENTLE
    columns: Columns | None = None
    """Columns of the next analysis; None to choose them by the number of keys."""
    link: State = field(default_factory=Online)
    is_live: bool = True
    """Whether there is a server to query; False for a report from a file."""
    is_estimate: bool = False
    """Whether the analysis that runs, or ran last, inspects a sample only."""
    is_again: bool = False
    """Whether the running analysis is a repetition, so that the earlier figures stay and nothing is lost with it."""
    hot_since_s: float = 0.0
    """Seconds since the hot keys were read; 0 if unknown, as in a report from a file."""
    age_s: float | None = None
    """Seconds since the figures were complete, or final; None while they still come."""
    outdated: Outdated | None = None
    """Why the figures are outdated; None while they may hold."""
    notes: tuple[SafeText, ...] = ()
    is_kept: bool = False
    """Whether quitting keeps a partial report."""

    @property
    def is_under_way(self) -> bool:
        """Whether an analysis has begun and not ended, be it paused."""
        state = self.progress.state
        return self.is_live and state is not ScanState.READY and not state.is_over

    @property
    def so_far(self) -> SafeText:
        """How far the analysis is: `1,204 keys in 12m 4s, 43 % of the keyspace`."""
        fraction, took = self.progress.fraction, duration(round(self.cost.elapsed_s * 1000))
        much = "" if fraction is None or self.is_estimate else f", {share(fraction)} of the keyspace"
        return SafeText(f"{counted(self.progress.keys, 'key')} in {took}{much}")

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """A sentence on the results lost when rtui ends now; None if the analysis is short, or a repetition."""
        if not self.is_under_way or self.is_again or self.cost.elapsed_s < ASK_FROM_S:
            return None
        lost = "stops it and keeps a partial report" if self.is_kept else "discards its results"
        return SafeText(f"An analysis is running: {self.so_far}. Quitting {lost}.")


@dataclass(frozen=True, slots=True)
class Analysed:
    """The figures of an analysis and how old they are."""

    report: Report
    age_s: float | None = None
    """Seconds since the figures were complete; None while they still come."""
    outdated: Outdated | None = None
    """Why the figures are outdated; None while they may hold."""


def _analysed(report: Report, status: AnalysisStatus) -> Analysed | None:
    """Return the figures of a report, None if it has no keys."""
    return Analysed(report, status.age_s, status.outdated) if report.head.coverage.keys else None


class AnalysisSession:
    """Analyses over the connection that the tree is browsed with; each report stays until the next one has figures."""

    def __init__(
        self,
        connection: Connection,
        options: Callable[[], AnalysisOptions],
        suspended: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = wall_clock.now_s,
        kept: KeptReports | None = None,
        *,
        deployment: Deployment | None = None,
    ) -> None:
        """`options` returns the options for each analysis as it begins; `suspended` suspends other work while it runs.

        `clock` gives seconds since the epoch; each finished report is added to `kept`. All nodes of the `deployment`
        are analysed, if there is one.
        """
        self.kept = kept
        self._deployment = deployment
        self._connection = connection
        self._options = options
        self.control = RunControl(options().pace)
        self._columns = self.given_columns = options().columns
        self._suspended = suspended
        self._clock = clock
        self._stamp: ServerStamp | None = None
        """When the figures were read, and in which run of the server: at the beginning, once complete at the end."""
        self._analysis: AnalysisRun | None = None
        self._rows_of: AnalysisRun | None = None
        """The analysis whose rows are kept: that of the report."""
        self._rows_stamp: tuple[ServerStamp, frozenset[str]] | None = None
        """When it ended, in which run of the server, and the primaries then; None while it runs."""
        self._standing: Report | None = None
        """The report shown until a repeated analysis ends; None if figures are shown as they come."""
        self._task: asyncio.Task[None] | None = None
        self._revision = 0
        self._is_estimate = False
        self._failure: SafeText | None = None
        """Why an analysis has ended by an error of its own."""
        self._notes: tuple[SafeText, ...] = ()

    @property
    def revision(self) -> int:
        """Grows whenever something that is shown has changed."""
        now = self._analysis
        return self._revision + self._connection.revision + (self.control.revision if now is None else now.revision)

    @property
    def report(self) -> Report | None:
        """The latest figures of the last analysis; while it is repeated, those of the time before."""
        if self._standing is not None:
            return self._standing
        return None if self._analysis is None else self._analysis.report

    @property
    def analysed(self) -> Analysed | None:
        return None if self.report is None else _analysed(self.report, self.status)

    @property
    def status(self) -> AnalysisStatus:
        """Everything but the figures, now."""
        now, now_s, connection = self._analysis, self._clock(), self._connection
        stamp = self._stamp if now is not None and now.report is not None and now.progress.state.is_over else None
        asked_at_s = None if now is None else now.hot.asked_at_s
        server = server_report(connection)
        if self._deployment is not None and self._deployment.is_cluster:
            server = structs.replace(server, role=WHOLE_CLUSTER)
        return AnalysisStatus(
            server=server,
            progress=self._progress(),
            cost=Cost() if now is None else now.cost,
            pace=self.control.pace,
            columns=self._columns,
            link=connection.link,
            is_estimate=self._is_estimate,
            is_again=self._standing is not None,
            hot_since_s=0.0 if asked_at_s is None else max(0.0, now_s - asked_at_s),
            age_s=None if stamp is None else max(0.0, now_s - stamp.at_s),
            outdated=None if stamp is None else stamp.outdated(connection.server, connection.generation, now_s),
            notes=self._notes,
            is_kept=self.kept is not None,
        )

    @property
    def under_way(self) -> Progress | None:
        """The progress of an analysis under way, even if paused; None if there is none."""
        progress = self._progress()
        return None if progress.state is ScanState.READY or progress.state.is_over else progress

    def choose_columns(self, columns: Columns | None) -> None:
        """Ask these facts in analyses that begin from now on."""
        self._columns = columns
        self._revision += 1

    def begin_again(self) -> None:
        """Do the analysis before once more: its figures stay until the new ones are whole, which are not kept."""
        if self.report is not None and self.under_way is None:
            self._begin(estimate=self._is_estimate, standing=self.report)

    def begin(self, *, estimate: bool = False) -> None:
        self._begin(estimate=estimate)

    def _begin(self, *, estimate: bool, standing: Report | None = None) -> None:
        self._standing = standing
        before, self._task = self._task, None
        self._revision += 1 + (self.control.revision if self._analysis is None else self._analysis.revision)
        self._is_estimate = estimate
        sample = ESTIMATE_KEYS if estimate else None
        options = replace(self._options(), pace=self.control.pace, columns=self._columns, estimate_keys=sample)
        self._analysis = AnalysisRun(self._connection, options, deployment=self._deployment)
        self.control = self._analysis.control
        if standing is None:
            self._keep_rows_of(self._analysis)
        self._failure = None
        self._task = start_supervised(self._run(before, self._analysis), name="rtui analysis", failed=self._failed)

    @property
    def rows(self) -> PassRows | None:
        """The rows of the analysis behind the report; None if none are kept.

        Rows of another run of the server, or of other nodes, are dropped.
        """
        if self._rows_stamp is not None:
            (stamp, nodes), connection = self._rows_stamp, self._connection
            outdated = stamp.outdated(connection.server, connection.generation, self._clock())
            if outdated is not None or nodes != self._primaries:
                self._keep_rows_of(None)
        return None if self._rows_of is None else self._rows_of.rows

    @property
    def _primaries(self) -> frozenset[str]:
        """The ids of the primaries of the cluster; empty for one server."""
        topology = None if self._deployment is None else self._deployment.topology
        return frozenset() if topology is None else frozenset(shard.primary.id for shard in topology.shards)

    def _keep_rows_of(self, run: AnalysisRun | None) -> None:
        if self._rows_of is not None:
            self._rows_of.forget_rows()
        self._rows_of, self._rows_stamp = run, None

    @property
    def bill(self) -> SafeText | None:
        """The price of the next analysis, without a full stop; None if commands are free."""
        return analysis_bill(self._connection, replace(self._options(), columns=self._columns))

    @property
    def offers_hot_session(self) -> bool:
        """Whether the server has hot-key sessions: Redis from 8.6 on."""
        server = self._connection.server
        return server.product == "redis" and not too_old(server)

    async def start_hot_session(self, consent: Consent) -> None:
        """Start a session of the server's own; raises SessionError, or ConnectionLost."""
        await start_session(self._connection, consent)
        self._revision += 1

    @property
    def reports_hot_keys(self) -> bool:
        return reports_hot_keys(self._connection.server)

    async def ask_hot(self) -> None:
        """Ask again which keys are hot, for the figures that are there; raises ConnectionLost."""
        if self._analysis is not None:
            await self._analysis.ask_hot()

    async def close(self) -> None:
        """End everything without sending anything more; keep a partial report of an analysis that has run for long."""
        task, self._task = self._task, None
        found = None if task is None or self.status.lost_by_leaving is None else self.report
        await end_task(task)
        self._keep_rows_of(None)
        if found is not None:
            coverage = structs.replace(found.head.coverage, reason=LEFT)
            await self._keep(structs.replace(found, head=structs.replace(found.head, coverage=coverage)))

    async def _run(self, before: asyncio.Task[None] | None, analysis_run: AnalysisRun) -> None:
        """Run an analysis once the previous one has ended, with other work suspended."""
        await end_task(before)
        began = self._stamp = self._connection.stamp(self._clock())
        with self._suspended():
            try:
                await analysis_run.run(reports_meanwhile=self._standing is None)
                ended = self._connection.stamp(self._clock())
                is_whole = not self._is_estimate and self._progress().state is ScanState.DONE
                # in another run of the server a scan begins again and is all of that run, a sample does not
                self._stamp = ended if is_whole else replace(began, at_s=ended.at_s)
                if self._rows_of is analysis_run:
                    self._rows_stamp = self._stamp, self._primaries
            finally:
                self._revision += 1
        is_again, is_done = self._standing is not None, self._progress().state is ScanState.DONE
        if not is_again:
            await self._keep(analysis_run.report)
        elif is_done and self._analysis is analysis_run:
            self._keep_rows_of(analysis_run)
            self._rows_stamp = self._stamp, self._primaries
            self._standing = None
            self._revision += 1
        else:
            analysis_run.forget_rows()

    async def _keep(self, report: Report | None) -> None:
        """Keep a report that is done, in a thread; why that fails is a note."""
        self._notes = ()
        if self.kept is not None and report is not None and report.head.coverage.keys:
            try:
                await asyncio.to_thread(self.kept.keep, report)
            except (OSError, NotKeptError) as error:
                why = display_text(reason_of(error))
                self._notes = (SafeText(f"The report is not kept for later comparison: {why.removesuffix('.')}."),)
            self._revision += 1

    def _failed(self, failure: RtuiError) -> None:
        self._failure = failure.happened
        self._revision += 1

    def _progress(self) -> Progress:
        """Return the progress; an analysis that has begun counts as running even before its first reply."""
        if self._analysis is None:
            return Progress()
        progress = self._analysis.progress
        if self._failure is not None:
            return replace(progress, state=ScanState.FAILED, fraction=None, reason=self._failure)
        if progress.state is ScanState.READY:
            return replace(progress, state=ScanState.RUNNING, fraction=None)
        return progress


class FixedAnalysis:
    """A report from a file, as an analysis that is over; there is no server to ask."""

    offers_hot_session = reports_hot_keys = False
    given_columns = None
    bill: SafeText | None = None

    def __init__(self, report: Report, kept: KeptReports | None = None) -> None:
        """`kept` are the reports of the same server."""
        self.kept = kept
        head, kind = report.head, report.head.coverage.kind
        state = ScanState.STOPPED if kind is CoverageKind.PARTIAL else ScanState.DONE
        paces = {pace.value: pace for pace in Pace}
        self.report: Report | None = report
        self.revision = 1
        self.status = AnalysisStatus(
            head.server,
            Progress(state=state, fraction=head.coverage.fraction, keys=head.coverage.counted_keys),
            Cost(**structs.asdict(head.cost)),
            pace=paces.get(head.scope.pace, Pace.GENTLE),
            is_live=False,
            is_estimate=kind is CoverageKind.ESTIMATE,
        )
        self.control = RunControl(self.status.pace)

    @property
    def analysed(self) -> Analysed | None:
        return None if self.report is None else _analysed(self.report, self.status)

    def choose_columns(self, columns: Columns | None) -> None:
        """Do nothing: there is no server."""

    def begin(self, *, estimate: bool = False) -> None:
        """Do nothing: there is no server."""

    def begin_again(self) -> None:
        """Do nothing: there is no server."""

    async def start_hot_session(self, consent: Consent) -> None:
        """Do nothing: there is no server."""

    async def ask_hot(self) -> None:
        """Do nothing: there is no server."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""


AnalysisSource: TypeAlias = AnalysisSession | FixedAnalysis
