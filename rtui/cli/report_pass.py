"""One analysis from beginning to end without a screen, with its progress on the terminal and Ctrl-C in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from rtui.analysis.report import Report
from rtui.cli.interrupts import Interrupts
from rtui.cli.patience import PATIENCE_S, Patience
from rtui.cli.progress_bar import ProgressBar
from rtui.keyspace.display import SafeText
from rtui.server.analysing import Analysing, AnalysisOptions
from rtui.server.connection import Connection
from rtui.server.progress import ScanState
from rtui.server.target import Target

INTERRUPTED: Final = "it was interrupted"
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
            analysing = Analysing(connection, options)
            interrupts.stop = partial(analysing.stop, INTERRUPTED)
            patience = Patience(connection, analysing.stop, patience_s)
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


async def _watched(analysing: Analysing, bar: ProgressBar, interrupts: Interrupts) -> None:
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
