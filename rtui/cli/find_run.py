"""Runs the search of `rtui find`: what is said before it begins, its progress bar, what Ctrl-C does."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from functools import partial
from signal import Signals
from typing import Final

import click

from rtui.analysis import humanize
from rtui.analysis.humanize import Mark
from rtui.analysis.query.plan import LARGE
from rtui.analysis.query.query import Query
from rtui.cli.arguments import in_shell
from rtui.cli.find_output import FoundKeys
from rtui.cli.report_run import PATIENCE_S, ConnectionWatch, Interrupts, ProgressBar, say_why_it_waits
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import Deployment
from rtui.server.find import LIMIT_REACHED, FindRun
from rtui.server.options import FindOptions
from rtui.server.scan.progress import ScanState
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

WRITE_S: Final = 0.1
"""How often found keys are written."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a search ended."""

    notes: tuple[SafeText, ...] = ()
    """What is said of it, in sentences."""
    failure: RtuiError | None = None
    """Why it could not go on."""
    ended_by: Signals | None = None
    """The signal by which the user ended it."""


def find(
    target: Target,
    query: Query,
    options: FindOptions,
    output: FoundKeys,
    *,
    patience_s: float = PATIENCE_S,
    log: CommandLog | None = None,
) -> Result:
    """Connect, search, write and disconnect; what is sent is kept in `log`.

    Raises ConnectFailure, ReaderGone, OutputError, and KeyboardInterrupt after the second Ctrl-C.
    """
    return asyncio.run(run_find(target, query, options, output, patience_s=patience_s, log=log))


async def run_find(
    target: Target,
    query: Query,
    options: FindOptions,
    output: FoundKeys,
    *,
    patience_s: float,
    log: CommandLog | None = None,
) -> Result:
    """Do what `find` does within a running event loop."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    deployment = Deployment(target, log)
    run: FindRun | None = None
    say_why_it_waits(deployment.home, partial(click.echo, err=True))
    with Interrupts(task.cancel) as interrupts:
        try:
            await deployment.open()
            deployment.require_replicas()
            run = FindRun(deployment, query, options)
            await run.prepare()
            _say_cost(run)
            interrupts.stop = partial(run.control.stop, SafeText("it was interrupted"))
            watch = ConnectionWatch(deployment.home, run.control.stop, patience_s)
            await _write_while_running(run, output, interrupts)
        except asyncio.CancelledError:
            if not interrupts.is_interrupted:
                raise
            task.uncancel()
            return Result(ended_by=interrupts.sent)
        finally:
            await deployment.close()
    notes = (*run.notes, *(in_shell(one) for one in query.doubts if not run.count), summary(run))
    output.end(run.count, is_complete=run.mark is Mark.EXACT, notes=(*map(in_shell, query.hints), *notes))
    failure = run.failure
    if failure is None and watch.failure is not None:
        failure = RtuiError("The search broke off", watch.failure)
    return Result(notes, failure, interrupts.sent)


async def _write_while_running(run: FindRun, output: FoundKeys, interrupts: Interrupts) -> None:
    """Run the search, and write what it finds now and then; what is sorted at the end."""
    running = asyncio.create_task(run.run(), name="rtui search")
    try:
        with ProgressBar() as bar:
            bar.is_shown = bar.is_shown and not sys.stdout.isatty()
            while not running.done():
                if bar.is_shown:
                    bar.show(run.progress, run.cost, run.control.pace, is_ending=interrupts.is_interrupted)
                if run.options.order is None:
                    output.write(run.matches.drain())
                await asyncio.wait([running], timeout=WRITE_S)
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    output.write(run.matches.drain())


def _say_cost(run: FindRun) -> None:
    """Say on standard error what the search of a large keyspace asks, and what it costs where commands are billed."""
    plan, ahead = run.plan, run.ahead
    if plan is not None and ahead is not None and (run.preparation.size or 0) >= LARGE:
        sentence = plan.sentence(ahead, run.control.pace.value)
        click.echo(f"rtui: {sentence[:1].upper()}{sentence[1:]}.", err=True)
    if run.preparation.bill is not None:
        click.echo(f"rtui: {run.preparation.bill}.", err=True)


def summary(run: FindRun) -> SafeText:
    """Return how many keys there are, and why they may be not all: `≥ 1,204 keys; it was interrupted.`."""
    text = f"{humanize.keys(run.count, run.mark)}"
    progress = run.progress
    why = run.control.stop_reason
    if progress.state is ScanState.STOPPED and why == LIMIT_REACHED:
        text += "; there may be more, since it ended with so many"
    elif progress.state in {ScanState.STOPPED, ScanState.FAILED}:
        text += "; the search is incomplete" + ("" if why is None else f", since {why}")
    return SafeText(f"{text}.")
