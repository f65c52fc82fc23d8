"""What `rtui health` works with: samples as they are taken or out of a file, earlier ones, and a report of the keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rtui.registry.rules import RuleLevels, Severity
from rtui.server.user.ending_signals import EndedBySignal, exit_status
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.findings.server_comparison import HealthComparison, HealthThreshold
    from rtui.analysis.formats.samples import SamplesFile
    from rtui.analysis.health.sample import Sample, SampleHistory
    from rtui.analysis.health.view import HealthView
    from rtui.analysis.report.document import Report
    from rtui.analysis.report.thresholds import Judgement
    from rtui.registry.registry import Registry
    from rtui.server.wire.command_log import CommandLog

LATEST: Final = "latest"
NO_REPORT: Final = "none"
"""What --report may be beside the name of a report."""

MOST_REPORT_AGE_S: Final = 86_400.0
"""A kept report that was made so long before the samples, or after them, is taken only where it is asked for."""


@dataclass
class Judged:
    """The samples of all nodes so far, and what they are judged by."""

    registry: Registry | None
    report: Report | None = None
    """Of the keys."""
    since: Sequence[HealthView] | None = None
    severity: Severity | None = None
    """From which severity of findings on the exit code is 1; None for none."""
    thresholds: Sequence[HealthThreshold] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why nodes have not answered when they were asked last, sentences by the nodes of their samples."""
    _nodes: dict[str, SampleHistory] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """Take a sample that is later than those of its node."""
        from rtui.analysis.health.sample import SampleHistory  # noqa: PLC0415 - the help must not wait for it

        self._nodes.setdefault(sample.node, SampleHistory()).add(sample)

    def views(self) -> list[HealthView]:
        """Return what is known of each node now."""
        samples = [history.samples for history in self._nodes.values()]
        return views_of(samples, self.registry, self.report)

    def comparison(self, views: Sequence[HealthView]) -> HealthComparison | None:
        """Return what has changed since the earlier samples; None where there are none."""
        from rtui.analysis.findings.server_comparison import compare_health  # noqa: PLC0415

        return None if self.since is None or not views else compare_health(self.since, views)

    def judgements(self, views: Sequence[HealthView], comparison: HealthComparison | None) -> list[Judgement]:
        """Return whether each threshold is reached."""
        from rtui.analysis.findings.server_comparison import judge_health  # noqa: PLC0415 - as above

        return judge_health(self.thresholds, views, comparison)

    def exit_code(self) -> int:
        """Return 1 where --fail-on found something, 3 where it could not be judged, else 0; say which on stderr."""
        from rtui.analysis.findings.finding import reaches  # noqa: PLC0415 - as above
        from rtui.analysis.findings.server import server_findings  # noqa: PLC0415
        from rtui.analysis.report.thresholds import Outcome  # noqa: PLC0415

        if self.severity is None and not self.thresholds:
            return 0
        views = self.views()
        judgements = self.judgements(views, self.comparison(views)) if self.thresholds else []
        code = 0
        for outcome, its_code in ((Outcome.UNKNOWN, ExitCode.UNKNOWN), (Outcome.REACHED, ExitCode.FOUND)):
            for one in judgements:
                if one.outcome is outcome:
                    click.echo(f"rtui: {outcome}: {one.expression} ({one.why})", err=True)
                    code = its_code
        if (least := self.severity) is not None:
            found = [server_findings(view) for view in views]
            if any(one.at_least(least) for one in found):
                return ExitCode.FOUND
            doubts = dict.fromkeys(one.rule for each in found for one in each.unjudged if reaches(one.severity, least))
            if doubts:
                click.echo(f"rtui: not judged: {', '.join(doubts)}", err=True)
                return code or ExitCode.UNKNOWN
        return code


def views_of(
    samples: Sequence[tuple[Sample, ...]], registry: Registry | None, report: Report | None = None
) -> list[HealthView]:
    """Return the samples of nodes with what they are judged by."""
    from rtui.analysis.health.view import HealthView  # noqa: PLC0415 - the help must not wait for it

    levels = RuleLevels() if registry is None else registry.rules
    return [HealthView(one, report, registry, levels) for one in samples]


async def take_samples(
    target: Target,
    add: Callable[[Sample], object],
    fail: Callable[[Mapping[str, str]], object],
    *,
    every_s: float | None = None,
    rounds: int = 1,
    log: CommandLog | None = None,
    after_each: Callable[[], object] = lambda: None,
) -> int:
    """Take so many samples of each node, a second apart, or with `every_s` until a signal; return the exit code.

    Why a node has given none is said on standard error, once, and `fail` gets all such nodes with the reasons.
    `after_each` is called when all nodes have been asked.
    Raises ConnectFailure, and RtuiError and EndedBySignal where no node has given any.
    """
    from rtui.cli.report_run import Interrupts, say_why_it_waits  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.deployment.nodes import Deployment  # noqa: PLC0415
    from rtui.server.health.watch import LEAST_EVERY_S, HealthWatch  # noqa: PLC0415

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    deployment, failures = Deployment(target, log), dict[str, str]()
    watch = HealthWatch(deployment, every_s=every_s or LEAST_EVERY_S)
    watch.on_sample.append(add)

    def say_failures() -> None:
        nonlocal failures
        before, failures = failures, {node.label: node.failure for node in watch.nodes if node.failure is not None}
        for node, why in failures.items():
            if before.get(node) != why:
                click.echo(f"rtui: {why if why.startswith(node) else f'{node}: {why}'}", err=True)
        fail(failures)

    say_why_it_waits(deployment.home, partial(click.echo, err=True))
    with Interrupts(task.cancel) as interrupts:
        try:
            await deployment.open()
            while True:
                await watch.look()
                say_failures()
                after_each()
                rounds -= 1
                if every_s is None and rounds <= 0:
                    lost = [node.failure for node in watch.nodes if node.failure is not None]
                    if lost and not any(node.samples for node in watch.nodes):
                        raise RtuiError("No node has given a sample", lost[0])
                    return ExitCode.SERVER if lost else ExitCode.FINE
                await watch.pause()
        except asyncio.CancelledError:
            if interrupts.sent is None:
                raise
            task.uncancel()
            if not any(node.samples for node in watch.nodes):
                raise EndedBySignal(interrupts.sent) from None
            return exit_status(interrupts.sent)
        finally:
            await deployment.close()


def samples_file(path: Path) -> SamplesFile | None:
    """Read a file of samples; None for what is no file, or one of another kind. Raises click.UsageError."""
    from rtui.analysis.formats.samples import SamplesFormatError, is_samples, read_samples  # noqa: PLC0415 - as above

    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            if not is_samples(file.read(64)):
                return None
            file.seek(0)
            found = read_samples(file)
    except (OSError, SamplesFormatError) as error:
        raise click.UsageError(f"{path}: {error}.") from None
    if found.unread:
        click.echo(f"rtui: {path}: line {found.unread:,} can't be read; what comes before is there", err=True)
    if found.left_out:
        click.echo(f"rtui: {path}: {found.left_out:,} samples between others are left out", err=True)
    return found


def earlier_samples(path: Path) -> SamplesFile:
    """Read the file that now is compared with. Raises click.UsageError where it holds no sample."""
    found = samples_file(path)
    if found is None or not found.nodes:
        raise click.UsageError(f"--since {path}: it has no samples; rtui health -o FILE writes some.")
    return found


def in_order(found: SamplesFile) -> Iterator[Sample]:
    """Yield the samples of all nodes in the order of their times."""
    yield from sorted((one for samples in found.nodes.values() for one in samples), key=lambda one: one.at_ms)


def keys_report(name: str | None, label: str, db: int, at_s: float | None = None) -> Report | None:
    """Return the report of the keys that --report names: a file, a kept report, `latest`, or `none`.

    Without a name it is the latest one that is kept of this server and database, if it was made within a day of the
    samples (`at_s`, now if None). Raises UnreadableReportError, TargetError, and click.UsageError where none is kept.
    """
    from rtui.analysis.formats.json import ReportFormatError  # noqa: PLC0415 - as above
    from rtui.cli.report_file import read_report  # noqa: PLC0415
    from rtui.server.analysis.kept_reports import KeptReports, read_kept  # noqa: PLC0415

    if name == NO_REPORT:
        return None
    if name not in (None, LATEST):
        return read_report(name)
    wanted_s = time.time() if at_s is None else at_s
    for file in KeptReports(label, db).files():
        if name == LATEST or abs(file.made_at_s - wanted_s) <= MOST_REPORT_AGE_S:
            try:
                return read_kept(file)
            except (OSError, ReportFormatError):
                continue
    if name == LATEST:
        raise click.UsageError(f"No report of {label} db{db} is kept; rtui report makes one.")
    return None


def report_of_samples(name: str | None, opened: SamplesFile) -> Report | None:
    """Return the report of the keys of the server that samples in a file are of; raises as `keys_report`."""
    latest_ms = max((samples[-1].at_ms for samples in opened.nodes.values()), default=opened.header.began_ms)
    return keys_report(name, opened.header.server, 0, latest_ms / 1000)
