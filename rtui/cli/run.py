"""Work on a server for subcommands: connecting, signals, lost connections, the progress bar; analyses, references."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import click

from rtui.analysis import humanize
from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.formats.json import KeysHead
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import ReferenceChecks
from rtui.cli.output import nothing_written
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import Registry
from rtui.registry.rules import Severity
from rtui.server.analysis.references import ReferenceCheck, ReferenceOptions
from rtui.server.analysis.run import AnalysisRun, analysis_bill
from rtui.server.analysis.table_import import import_ahead, import_counting, use_one_heap
from rtui.server.analysis.workers import Failed, Starter
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions, DaskOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.parted_scan import PartedScan, ScanPart
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.user.ending_signals import EndedBySignal, exit_status, hang_up, heeded, raise_at_once
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection, Lost
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, RtuiError
from rtui.server.wire.target import DumpFile, Target

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from rtui.server.analysis.keys_report import SummedFile
    from rtui.table.aggregates import Collected
    from rtui.table.kept_rows import PassRows
    from rtui.table.keys_file import KeysFile

ENDING: Final = "ending; Ctrl-C again: at once"
REDRAW_S: Final = 0.1

_STATES: Final = {
    ScanState.READY: "connecting",
    ScanState.SAMPLING: "sampling",
    ScanState.RUNNING: "inspecting",
    ScanState.PAUSED: "paused",
    ScanState.WAITING: "waiting",
}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an analysis."""

    report: Report | None = None
    """None where it ended before anything was inspected."""
    failure: SafeText | None = None
    ended_by: signal.Signals | None = None
    rows: PassRows | None = None
    written: int | None = None
    """Rows that tasks have written; None without such tasks."""

    def exit_code(self) -> int:
        """Return 0, or that of the signal; raises RtuiError and EndedBySignal where there is no result of its own."""
        if self.failure is not None:
            raise RtuiError("The analysis broke off", self.failure)
        if self.report is None:
            raise nothing_written(self.ended_by)
        return 0 if self.ended_by is None else exit_status(self.ended_by)


@contextmanager
def command_log(path: Path | None) -> Iterator[CommandLog]:
    """Why entries can't be written is said once on standard error, at the end; nothing else depends on it."""
    log = CommandLog()
    if path is None:
        yield log
        return
    from rtui.server.user.log_file import CommandLogFile  # noqa: PLC0415 - few want it

    file = CommandLogFile(log, path)
    try:
        yield log
    finally:
        file.close()
        if log.failure is not None:
            click.echo(f"rtui: {log.failure}", err=True)


@asynccontextmanager
async def connected(
    target: Target, log: CommandLog | None, bar: ProgressBar | None = None
) -> AsyncIterator[tuple[Deployment, Interrupts]]:
    """Connect for a block, which the first signal cancels unless `Interrupts.stop` is replaced in it; shows the `bar`.

    Raises ConnectFailure, EndedBySignal where a signal has cancelled the block, and KeyboardInterrupt after the second
    Ctrl-C.
    """
    deployment = Deployment(target, log)
    say_why_it_waits(deployment.home, partial(click.echo, err=True) if bar is None else bar.say)
    with cancelled_by_signals() as interrupts, bar or nullcontext():
        try:
            await deployment.open()
            yield deployment, interrupts
        finally:
            await deployment.close()


def analyse(target: Target, options: AnalysisOptions, *, log: CommandLog | None = None) -> Result:
    """Connect, analyse and disconnect; commands are kept in `log`. Raises as `connected`.

    A file of keys is read instead, and with tasks a dump: raises as opening them does.
    """
    use_one_heap()
    if target.keys is not None:
        return analyse_files([target.keys], options)
    if target.dump is not None and options.dask is not None:
        return analyse_files([target.dump], options)
    return asyncio.run(run_analysis(target, options, log=log))


def analyse_files(files: Sequence[Path | DumpFile], options: AnalysisOptions) -> Result:
    """Read files of keys and dumps as one pass over them; raises as opening them does.

    With tasks, files that can't be read are named in the report.
    """
    if options.estimate_keys is not None or options.workers > 1:
        raise click.UsageError("A file is read as a whole: leave --estimate and --workers out.")
    import_counting()
    from rtui.server.analysis.keys_report import opened, report_of, report_of_sums  # noqa: PLC0415 - imports Polars
    from rtui.table.kept_rows import PassRows  # noqa: PLC0415
    from rtui.table.rows import KeptRows, free_memory  # noqa: PLC0415

    found = [opened(one) if isinstance(one, Path) else one for one in files]
    keys = [one for one in found if not isinstance(one, DumpFile)]
    if options.dask is not None or len(keys) < len(found):
        options = replace(options, began_at_s=min(map(_began_at_s, found)), columns=options.columns or ALL_COLUMNS)
        each = [part for one in found for part in ([one] if isinstance(one, DumpFile) else one.of_passes())]
        alone = [one if isinstance(one, DumpFile) else one.path for one in each]
        if options.dask is not None:
            return asyncio.run(_analyse_in_tasks(alone, options, options.dask))
        sums, *others = [collect_file(one, options) for one in alone]
        for other, _ in others:
            sums[0].merge(other)
        return Result(report_of_sums(sums[0], [one for _, one in (sums, *others)], options))
    if not options.keep_rows:
        return Result(report_of(keys, options))
    rows = KeptRows(free_memory() // 4, options.keep_rows, folder=options.rows_folder)
    report = report_of(keys, options, rows)
    rows.finish(report.head.made_at_s, is_all=report.head.coverage.kind is CoverageKind.EXACT)
    return Result(report, rows=PassRows(rows, report.head.scope))


_one_dump: Final = Lock()
"""Held while a dump is read: the time of day stands still in the whole process."""


def collect_file(
    file: Path | DumpFile, options: AnalysisOptions, parent: Starter | None = None
) -> tuple[Collected, SummedFile]:
    """Return the sums of a file of keys or a dump, with what it says of them; raises as opening it does."""
    import_counting()
    from rtui.server.analysis.keys_report import opened, sums_of  # noqa: PLC0415 - imports Polars

    if isinstance(file, Path):
        return sums_of(opened(file), options)
    from rtui.embedded.dump import opened as loaded  # noqa: PLC0415 - only dumps need it

    with _one_dump, loaded(Target(dump=file), file) as target:
        return asyncio.run(_collect_dump(target, file.path, options, parent))


async def _collect_dump(
    target: Target, path: Path, options: AnalysisOptions, parent: Starter | None
) -> tuple[Collected, SummedFile]:
    from rtui.server.analysis.keys_report import SummedFile  # noqa: PLC0415 - imports Polars

    deployment = Deployment(target)
    log = deployment.log
    try:
        async with nullcontext() if parent is None else parent.controlled(options, log) as control:
            await deployment.open()
            analysis = AnalysisRun(deployment.home, options, deployment=deployment, control=control)
            async with running(analysis.run(reports_meanwhile=False), "rtui analysis of a dump") as task:
                while parent is not None and not task.done():
                    parent.send(ScanPart(analysis.progress, analysis.cost))
                    await asyncio.wait([task], timeout=REDRAW_S)
    finally:
        await deployment.close()
    report, progress = analysis.report, analysis.progress
    if report is None or progress.state is ScanState.FAILED:
        raise RtuiError("The analysis broke off", progress.reason or "The server gave no reason.")
    rest = report.head, report.hot, report.keysizes, report.cluster
    rows = report.head.coverage.counted_keys
    return analysis.collected, SummedFile(path, rows, KeysHead("rtui keys", 1, rows, options.began_at_s or 0.0, *rest))


async def _analyse_in_tasks(files: Sequence[Path | DumpFile], options: AnalysisOptions, dask: DaskOptions) -> Result:
    from rtui.server.analysis.keys_report import report_of_sums  # noqa: PLC0415 - imports Polars
    from rtui.server.analysis.scale import connected as connected_tasks  # noqa: PLC0415 - few use it
    from rtui.server.analysis.scale import gathered  # noqa: PLC0415

    control, bar = RunControl(options.pace), ProgressBar()
    scan = PartedScan(control, [1] * len(files))
    calls = [(collect_file, (one, replace(options, dask=None))) for one in files]
    with Interrupts(partial(control.stop, SafeText("it was interrupted"))) as interrupts, bar:
        async with connected_tasks(dask) as client:
            scan.begin()
            async with running(gathered(client, calls, control, scan.parts.__setitem__), "rtui tasks") as work:
                while bar.is_shown and not work.done():
                    bar.show(scan.progress, scan.cost, options.pace, is_ending=interrupts.sent is not None)
                    await asyncio.wait([work], timeout=REDRAW_S)
            sums, found = work.result()
    done = {number: one for number, one in found.items() if not isinstance(one, Failed)}
    missing = [
        SafeText(f"{_path_of(file).name} was not read: {found[number].happened.removesuffix('.')}")
        for number, file in enumerate(files)
        if number not in done
    ]
    if sums is None:
        raise RtuiError("Nothing was read", f"{display_text(missing[0], limit=300)}.")
    report = report_of_sums(sums, [done[number] for number in sorted(done)], options, missing)
    return Result(report, ended_by=interrupts.sent)


def _began_at_s(file: KeysFile | DumpFile) -> float:
    """Return when the pass over a file of keys began, or a dump was made; raises DumpError."""
    if not isinstance(file, DumpFile):
        return file.began_at_s
    from rtui.embedded.dump_head import DumpHead  # noqa: PLC0415 - only dumps need it

    return DumpHead.read(file.path).made_at_s or file.path.stat().st_mtime


def _path_of(file: Path | DumpFile) -> Path:
    return file if isinstance(file, Path) else file.path


async def run_analysis(target: Target, options: AnalysisOptions, *, log: CommandLog | None = None) -> Result:
    asyncio.get_running_loop().run_in_executor(None, import_ahead)
    bar = ProgressBar()
    try:
        async with connected(target, log, bar) as (deployment, interrupts):
            connection = deployment.home
            deployment.require_replicas()
            analysis = AnalysisRun(connection, options, deployment=deployment)
            bill = analysis_bill(connection, options)
            if bill is not None:
                click.echo(f"rtui: {bill}.", err=True)
            interrupts.stop = partial(analysis.control.stop, SafeText("it was interrupted"))
            watch = ConnectionWatch(connection, analysis.control.stop)
            async with running(analysis.run(reports_meanwhile=False), "rtui analysis") as task:
                while bar.is_shown and not task.done():
                    progress, cost, pace = analysis.progress, analysis.cost, analysis.control.pace
                    bar.show(progress, cost, pace, is_ending=interrupts.sent is not None)
                    await asyncio.wait([task], timeout=REDRAW_S)
    except EndedBySignal as ended:
        return Result(ended_by=ended.signal)
    failure = watch.failure
    if analysis.progress.state is ScanState.FAILED:
        failure = analysis.progress.reason or SafeText("The server gave no reason.")
    return Result(analysis.report, failure, interrupts.sent, analysis.rows, analysis.written)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any], name: str) -> AsyncIterator[asyncio.Task[Any]]:
    """Run work beside a block and wait for its end; a block that fails cancels it."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Follow: TypeAlias = Callable[["Target", "CommandLog | None"], ReferenceChecks]
"""Follows references on a server and keeps commands in a log; raises as `connected`."""


def follow_references(registry: Registry, pace: Pace, match: bytes | None, *, are_all: bool) -> Follow | None:
    """Return the function that follows a registry's references; None without references, or if their rules are off."""
    rules = registry.rules
    is_off = all(rules.severity(rule) is Severity.OFF for rule in ("reference-dangling", "reference-twin"))
    if is_off or not any(entry.references for entry in registry.entries):
        return None
    wanted = rules.parameter("reference-dangling", "keys")
    options = ReferenceOptions(None if are_all or isinstance(wanted, tuple) else int(wanted), match, pace)
    return lambda target, log: asyncio.run(_follow(registry, options, target, log))


async def _follow(
    registry: Registry, options: ReferenceOptions, target: Target, log: CommandLog | None
) -> ReferenceChecks:
    async with connected(target, log) as (deployment, interrupts):
        deployment.require_replicas()
        check = ReferenceCheck(deployment, registry, options)
        ConnectionWatch(deployment.home, check.control.stop)
        interrupts.stop = partial(check.control.stop, SafeText("it was interrupted"))
        await check.run()
        if interrupts.sent is not None:
            click.echo("rtui: interrupted: nothing is judged", err=True)
            raise EndedBySignal(interrupts.sent)
    return check.found


class Interrupts:
    """Handles the signals that end rtui in a running event loop; a context manager.

    The first one calls `stop`, the second one cancels the task, so that cleanup runs, and the block ends with
    KeyboardInterrupt. A third one is raised wherever the program is, and so are all after the block. A second SIGHUP is
    ignored: a terminal that hangs up sends two.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.stop = stop
        """Requests an orderly end; may be replaced."""
        self.sent: signal.Signals | None = None
        self.is_urgent = False

    def __enter__(self) -> Self:
        self._loop, self._task, self._handled = asyncio.get_running_loop(), asyncio.current_task(), heeded()
        for one in self._handled:
            self._loop.add_signal_handler(one, self._interrupted, one)
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        for one in self._handled:
            self._loop.remove_signal_handler(one)
        raise_at_once(*self._handled)
        if self.sent is signal.SIGHUP:
            hang_up()
        if self.is_urgent and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise KeyboardInterrupt from None

    def _interrupted(self, sent: signal.Signals) -> None:
        if self.sent is None:
            self.sent = sent
            if sent is signal.SIGHUP:
                hang_up()
            self.stop()
        elif self.is_urgent:
            raise EndedBySignal(sent)
        elif self._task is not None:
            self.is_urgent = True
            self._task.cancel()


@contextmanager
def cancelled_by_signals() -> Iterator[Interrupts]:
    """Have the first signal cancel a block, unless `Interrupts.stop` is replaced in it.

    Raises EndedBySignal where a signal has cancelled it, and KeyboardInterrupt after the second one.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    with Interrupts(task.cancel) as interrupts:
        try:
            yield interrupts
        except asyncio.CancelledError:
            if interrupts.sent is None or interrupts.is_urgent:
                raise
            task.uncancel()
            raise EndedBySignal(interrupts.sent) from None


def say_why_it_waits(connection: Connection, say: Callable[[str], object]) -> None:
    """Have it said, once for each reason, why a first connection is not made yet, such as that the server loads."""
    said = set[FailureKind]()

    def changed() -> None:
        reason = connection.state.reason if isinstance(connection.state, Lost) else None
        if connection.generation or not isinstance(reason, ConnectFailure) or reason.kind in said:
            return
        said.add(reason.kind)
        if reason.kind.is_temporary:
            say(f"rtui: waiting. {reason.happened}")

    connection.on_change.append(changed)


class ConnectionWatch:
    """Watches a connection within a running event loop, and gives up when the server has answered nothing for long."""

    def __init__(self, connection: Connection, give_up: Callable[[SafeText], object]) -> None:
        self.failure: SafeText | None = None
        self._connection = connection
        self._give_up = give_up
        self._timeouts = connection.target.way.timeouts
        self._timer: asyncio.TimerHandle | None = None
        connection.on_change.append(self._changed)

    def _changed(self) -> None:
        if not isinstance(self._connection.state, Lost):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            lost = self._connection.state.reason
            was_silent = isinstance(lost, ConnectionLost) and lost.kind is FailureKind.TIMEOUT
            left_s = self._timeouts.lost_s - (self._timeouts.reply_s if was_silent else 0.0)
            self._timer = asyncio.get_running_loop().call_later(left_s, self._timed_out)

    def _timed_out(self) -> None:
        self._timer = None
        state = self._connection.state
        reason = state.reason if isinstance(state, Lost) else None
        if isinstance(reason, ConnectFailure) and reason.kind.is_temporary:
            self._changed()
            return
        why = f"the connection was lost and did not come back within {self._timeouts.lost_s:g} s"
        self.failure = SafeText(f"T{why[1:]}.{f' {reason.happened}' if reason else ''}")
        self._give_up(SafeText(why))


class ProgressBar:
    """A line on the terminal behind standard error that is erased at the end; a context manager."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty()
        self._bar: RichProgress | None = None

    def __enter__(self) -> Self:
        if not self.is_shown:
            return self
        from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
        from rich.progress import BarColumn, TextColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}", markup=False),
            console=Console(stderr=True, highlight=False, emoji=False),
            auto_refresh=False,
            transient=True,
            expand=True,
        )
        self._bar.add_task(_STATES[ScanState.READY], total=None, figures="")
        self._bar.start()
        self._bar.refresh()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            with suppress(OSError):  # the terminal may have hung up
                self._bar.stop()

    def say(self, text: str) -> None:
        if self._bar is None:
            click.echo(text, err=True)
        else:
            self._bar.console.print(text, markup=False)

    def show(self, progress: Progress, cost: Cost, pace: Pace, *, is_ending: bool = False) -> None:
        if self._bar is not None:
            with suppress(OSError):  # likewise
                self._bar.update(
                    self._bar.task_ids[0],
                    description=ENDING if is_ending else state_text(progress),
                    total=None if progress.fraction is None else 1.0,
                    completed=progress.fraction or 0.0,
                    figures=figures_text(progress, cost, pace),
                    refresh=True,
                )


def state_text(progress: Progress) -> str:
    state = _STATES.get(progress.state, "finishing")
    if progress.state is ScanState.WAITING and progress.reason:
        return f"{state}: {display_text(progress.reason, limit=48)}"
    return state


def figures_text(progress: Progress, cost: Cost, pace: Pace) -> str:
    """Return progress, speed, time left, pace and load: `78% · 786k keys · 41k/s · 12s left · gentle · server 9%`."""
    parts = [f"{humanize.short_count(progress.keys)} {humanize.noun(progress.keys, 'key')}"]
    if progress.fraction is not None:
        parts.insert(0, f"{progress.fraction:.0%}")
    if progress.state is ScanState.RUNNING:
        parts.append(f"{humanize.short_count(progress.keys_per_s)}/s")
        if progress.eta_s is not None:
            parts.append(f"{humanize.seconds(round(progress.eta_s))} left")
    parts.append(pace.value)
    if cost.elapsed_s > 0:
        parts.append(f"server {humanize.share(cost.server_share, Mark.EXACT if cost.is_measured else Mark.ABOUT)}")
    return " · ".join(parts)
