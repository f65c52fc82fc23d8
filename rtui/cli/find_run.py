"""Runs the search of `rtui find`: its cost ahead, its progress bar, Ctrl-C; keys are written as they are found."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from signal import Signals
from typing import Final

import click

from rtui.analysis import humanize
from rtui.analysis.formats.result_rows import FoundKeys
from rtui.analysis.humanize import Mark
from rtui.analysis.query.plan import LARGE
from rtui.analysis.query.query import Query
from rtui.cli.connection import in_shell
from rtui.cli.run import ConnectionWatch, Interrupts, ProgressBar, connected, running
from rtui.keyspace.text.display import SafeText
from rtui.server.options import FindOptions
from rtui.server.scan.progress import ScanState
from rtui.server.search.run import LIMIT_REACHED, KeySearch
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

WRITE_S: Final = 0.1


FORECAST_S: Final = 3.0
"""The time before the first forecast: by then the speed is known, which depends on the server's load."""

START_S: Final = 1.0
"""The time in which a search is slower: COUNT grows while the cost of a key is learnt."""

OFF: Final = 1.25
"""A forecast that is off by more than this factor is renewed."""


class Forecast:
    """When a search will be over by its speed so far: said once it is known, and again where it turns out otherwise."""

    def __init__(self, run: KeySearch, now_s: float) -> None:
        self._run, self._began_s = run, now_s
        self._due_s = now_s + FORECAST_S
        self._said_s: float | None = None
        self._start: tuple[float, float] | None = None
        """The time of the first measurement, and the fraction done then."""

    def due(self, now_s: float) -> SafeText | None:
        """Return the sentence that is due; None where nothing new is known, or it is over soon."""
        progress, options, matches = self._run.progress, self._run.options, self._run.matches
        elapsed_s, fraction = now_s - self._began_s, progress.fraction
        if elapsed_s < START_S or fraction is None or progress.state is not ScanState.RUNNING:
            return None
        if self._start is None:
            self._start = now_s, fraction
        start_s, done = self._start
        if now_s < self._due_s or fraction <= done:
            return None
        self._due_s = now_s + elapsed_s
        whole_s = elapsed_s + (1 - fraction) * (now_s - start_s) / (fraction - done)
        if options.stops_at_limit and matches.listed:
            whole_s = min(whole_s, elapsed_s * options.limit / matches.listed)
        if options.budget_s is not None:
            whole_s = min(whole_s, options.budget_s)
        said_s, is_soon = self._said_s, whole_s - elapsed_s < START_S
        if is_soon or (said_s is not None and max(whole_s / said_s, said_s / whole_s) < OFF):
            return None
        self._said_s = whole_s
        pace = self._run.control.pace.value
        return SafeText(f"Takes about {humanize.seconds(round(whole_s))} at {pace} pace, by its speed so far.")


@dataclass(frozen=True, slots=True)
class Result:
    """How a search ended."""

    notes: tuple[SafeText, ...] = ()
    failure: RtuiError | None = None
    ended_by: Signals | None = None


def find(
    target: Target, query: Query, options: FindOptions, output: FoundKeys, *, log: CommandLog | None = None
) -> Result:
    """Raises ReaderGone, OutputError, and as `connected`."""
    return asyncio.run(_find(target, query, options, output, log))


async def _find(
    target: Target, query: Query, options: FindOptions, output: FoundKeys, log: CommandLog | None
) -> Result:
    async with connected(target, log) as (deployment, interrupts):
        deployment.require_replicas()
        run = KeySearch(deployment, query, options)
        await run.preparation.prepare()
        _say_cost(run)
        interrupts.stop = partial(run.control.stop, SafeText("it was interrupted"))
        watch = ConnectionWatch(deployment.home, run.control.stop)
        await _write_while_running(run, output, interrupts)
    notes = (*run.notes, *(in_shell(one) for one in query.doubts if not run.count), summary(run))
    if output.left_out:
        left_out = SafeText(f"{humanize.keys(output.left_out)} not written: the name holds a NUL. Use --format jsonl.")
        notes = (*notes, left_out)
    output.end(run.count, is_exact=run.mark is Mark.EXACT, notes=(*map(in_shell, query.hints), *notes))
    failure = run.failure
    if failure is None and watch.failure is not None:
        failure = RtuiError("The search broke off", watch.failure)
    return Result(notes, failure, interrupts.sent)


async def _write_while_running(run: KeySearch, output: FoundKeys, interrupts: Interrupts) -> None:
    loop = asyncio.get_running_loop()
    forecast = Forecast(run, loop.time())
    async with running(run.run(), "rtui search") as task:
        with ProgressBar() as bar:
            bar.is_shown = bar.is_shown and not output.is_terminal
            while not task.done():
                if bar.is_shown:
                    bar.show(run.progress, run.cost, run.control.pace, is_ending=interrupts.sent is not None)
                if run.options.order is None:
                    output.write(run.matches.drain())
                if (sentence := forecast.due(loop.time())) is not None:
                    bar.say(f"rtui: {sentence}")
                await asyncio.wait([task], timeout=WRITE_S)
    output.write(run.matches.drain())


def _say_cost(run: KeySearch) -> None:
    plan, ahead = run.preparation.plan, run.preparation.ahead
    if plan is not None and ahead is not None and (run.preparation.size or 0) >= LARGE:
        sentence = plan.sentence(replace(ahead, seconds=None))
        click.echo(f"rtui: {sentence[:1].upper()}{sentence[1:]}.", err=True)
    if run.preparation.bill is not None:
        click.echo(f"rtui: {run.preparation.bill}.", err=True)


def summary(run: KeySearch) -> SafeText:
    """Return how many keys there are, and why they may be not all: `≥ 1,204 keys; the search is incomplete, …`."""
    count, listed, limit = run.count, run.matches.listed, run.options.limit
    progress, why = run.progress, run.control.stop_reason
    if progress.state is ScanState.STOPPED and why == LIMIT_REACHED:
        more = "there are more" if count > listed else "there may be more"
        return SafeText(f"{humanize.keys(listed)} shown; {more} (--limit {limit}).")
    text = f"{humanize.keys(count, run.mark)}"
    if count > limit > 0:
        text += f"; {'' if run.options.order is None else 'the first '}{limit:,} of them are shown (--limit {limit})"
    if progress.state in {ScanState.STOPPED, ScanState.FAILED}:
        text += "; the search is incomplete" + ("" if why is None else f", since {why}")
    return SafeText(f"{text}.")
