"""Ctrl-C and SIGTERM while something runs that can end in order: the first asks it to, the second leaves at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Self

from rtui.analysis.report.document import Report
from rtui.cli.progress_bar import ProgressBar
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_run import AnalysisOptions, AnalysisRun
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Connection, Lost
from rtui.server.wire.errors import ConnectFailure
from rtui.server.wire.target import Target

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""What is taken for the wish to end."""


class Interrupts:
    """A context manager within a running event loop.

    The first signal calls `stop`; from then on, and after the block, both signals raise KeyboardInterrupt, so that
    whatever has to be cleaned up is.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.stop = stop
        """Asks what runs to end soon; may be replaced by what fits the moment."""
        self.is_asked = False
        """Whether there was a signal."""

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for one in SIGNALS:
            self._loop.add_signal_handler(one, self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def _first(self) -> None:
        self.is_asked = True
        self._let_go()
        self.stop()

    def _let_go(self) -> None:
        for one in SIGNALS:
            self._loop.remove_signal_handler(one)
            signal.signal(one, signal.default_int_handler)


PATIENCE_S: Final = 60.0
"""A server that is restarted or fails over is back by then; one that loads its data set is waited for in any case."""


class Patience:
    """Watches a connection within a running event loop, and gives up when it stays lost."""

    def __init__(self, connection: Connection, give_up: Callable[[SafeText], object], patience_s: float) -> None:
        """`give_up` is called with why, a sentence without a full stop."""
        self.failure: SafeText | None = None
        """Why it was given up, a sentence."""
        self._connection = connection
        self._give_up = give_up
        self._patience_s = patience_s
        self._timer: asyncio.TimerHandle | None = None
        connection.on_change.append(self._changed)

    def _changed(self) -> None:
        if not isinstance(self._connection.state, Lost):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience_s, self._over)

    def _over(self) -> None:
        self._timer = None
        state = self._connection.state
        reason = state.reason if isinstance(state, Lost) else None
        if isinstance(reason, ConnectFailure) and reason.kind.is_temporary:
            self._changed()
            return
        why = f"the connection was lost and did not come back within {self._patience_s:g} s"
        said = f" {reason.happened}" if reason else ""
        self.failure = SafeText(f"T{why[1:]}.{said}")
        self._give_up(SafeText(why))


INTERRUPTED: Final = SafeText("it was interrupted")
"""Why a report is partial after Ctrl-C."""

REDRAW_S: Final = 0.1
"""How often the progress is drawn."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of an analysis."""

    report: Report | None = None
    """None where it ended before anything was inspected."""
    failure: SafeText | None = None
    """Why it could not go on; a sentence."""
    is_interrupted: bool = False
    """Whether the user ended it."""


def analyse(target: Target, options: AnalysisOptions, *, patience_s: float = PATIENCE_S) -> Ended:
    """Connect, analyse and hang up. Raises ConnectFailure, and KeyboardInterrupt for the second Ctrl-C."""
    return asyncio.run(analysed(target, options, patience_s=patience_s))


async def analysed(target: Target, options: AnalysisOptions, *, patience_s: float) -> Ended:
    """The same within a running event loop."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    connection = Connection(target)
    with Interrupts(task.cancel) as interrupts, ProgressBar() as bar:
        try:
            await connection.open()
            analysing = AnalysisRun(connection, options)
            interrupts.stop = partial(analysing.control.stop, INTERRUPTED)
            patience = Patience(connection, analysing.control.stop, patience_s)
            await _watched(analysing, bar, interrupts)
        except asyncio.CancelledError:
            if not interrupts.is_asked:
                raise
            task.uncancel()
            return Ended(is_interrupted=True)
        finally:
            await connection.close()
    progress = analysing.progress
    failure = patience.failure
    if progress.state is ScanState.FAILED:
        failure = progress.reason or SafeText("The server gave no reason.")
    return Ended(analysing.report, failure, interrupts.is_asked)


async def _watched(analysing: AnalysisRun, bar: ProgressBar, interrupts: Interrupts) -> None:
    """Run it to its end and redraw the bar meanwhile."""
    if not bar.is_shown:
        await analysing.run()
        return
    running = asyncio.create_task(analysing.run(), name="rtui analysis")
    try:
        while not running.done():
            bar.show(analysing, is_ending=interrupts.is_asked)
            await asyncio.wait([running], timeout=REDRAW_S)
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
