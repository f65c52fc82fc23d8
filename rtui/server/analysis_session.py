"""An analysis on a real server, over the connection that the tree is browsed with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_run import ESTIMATE_KEYS, AnalysisOptions, AnalysisRun
from rtui.server.analysis_source import AnalysisStatus
from rtui.server.browsing_status import ServerStamp, stamp_now
from rtui.server.guard.evidence import Consent
from rtui.server.hot.hotkeys import reports_hot_keys, start_session, too_old
from rtui.server.inspection.report_head import server_report
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.tasks import start_supervised


class AnalysisSession:
    """One analysis after the other; the last report stays until the next one has figures."""

    def __init__(
        self,
        connection: Connection,
        options: Callable[[], AnalysisOptions],
        suspended: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`options` returns what to analyse whenever one begins; `suspended` suspends other work while it runs.

        `clock` gives seconds since the epoch.
        """
        self._connection = connection
        self._options = options
        self.control = RunControl(options().pace)
        self._suspended = suspended
        self._clock = clock
        self._stamp: ServerStamp | None = None
        """When the figures were asked, and of which run of the server: when it began, once complete when it ended."""
        self._analysis: AnalysisRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._revision = 0
        self._is_estimate = False
        self._failure: SafeText | None = None
        """Why an analysis has ended by an error of its own."""

    @property
    def revision(self) -> int:
        """Grows whenever something that is shown has changed."""
        now = self._analysis
        return self._revision + self._connection.revision + (self.control.revision if now is None else now.revision)

    @property
    def report(self) -> Report | None:
        """The latest figures of the analysis that began last."""
        return None if self._analysis is None else self._analysis.report

    @property
    def status(self) -> AnalysisStatus:
        """Everything but the figures, now."""
        now, now_s = self._analysis, self._clock()
        stamp = self._stamp if now is not None and now.report is not None and now.progress.state.is_over else None
        asked_at_s = None if now is None else now.hot_asked_at_s
        return AnalysisStatus(
            server=server_report(self._connection),
            progress=self._progress(),
            cost=Cost() if now is None else now.cost,
            pace=self.control.pace,
            link=self._connection.state,
            is_estimate=self._is_estimate,
            hot_since_s=0.0 if asked_at_s is None else max(0.0, now_s - asked_at_s),
            age_s=None if stamp is None else max(0.0, now_s - stamp.at_s),
            outdated=None if stamp is None else stamp.outdated(self._connection, now_s),
        )

    def begin(self, *, estimate: bool = False) -> None:
        """Inspect every key, or a sample; an analysis that runs is ended."""
        before, self._task = self._task, None
        self._revision += 1 + (self.control.revision if self._analysis is None else self._analysis.revision)
        self._is_estimate = estimate
        options = replace(self._options(), pace=self.control.pace, estimate_keys=ESTIMATE_KEYS if estimate else None)
        self._analysis = AnalysisRun(self._connection, options)
        self.control = self._analysis.control
        self._failure = None
        self._task = start_supervised(self._run(before, self._analysis), name="rtui analysis", failed=self._failed)

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
        """Whether the server itself knows which keys are hot, if it is made to."""
        return reports_hot_keys(self._connection.server)

    async def ask_hot(self) -> None:
        """Ask again which keys are hot, for the figures that are there; raises ConnectionLost."""
        if self._analysis is not None:
            await self._analysis.ask_hot()

    async def close(self) -> None:
        """End everything without sending anything more."""
        task, self._task = self._task, None
        await _cancelled(task)

    async def _run(self, before: asyncio.Task[None] | None, analysis_run: AnalysisRun) -> None:
        """Run an analysis once the one before has ended, with other work suspended."""
        await _cancelled(before)
        began = self._stamp = stamp_now(self._connection, self._clock())
        with self._suspended():
            try:
                await analysis_run.run()
                ended = stamp_now(self._connection, self._clock())
                is_whole = not self._is_estimate and self._progress().state is ScanState.DONE
                # in another run of the server a scan begins again and is all of that run, a sample does not
                self._stamp = ended if is_whole else replace(began, at_s=ended.at_s)
            finally:
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


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait until it has ended."""
    if task is not None and not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
