"""The work of `rtui health`: taking samples, judging them, and writing them in a format."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from rtui.analysis import formats
from rtui.analysis.findings.finding import severe_and_unjudged
from rtui.analysis.findings.server import (
    HealthComparison,
    HealthThreshold,
    compare_health,
    judge_health,
    server_findings,
)
from rtui.analysis.formats.findings import servers_junit, servers_sarif
from rtui.analysis.formats.health import ALL, health_json, health_page
from rtui.analysis.formats.samples import Masker, SamplesFile, SamplesHeader, header_line, sample_line
from rtui.analysis.formats.text import DEFAULT_WIDTH
from rtui.analysis.health.sample import Sample, SampleHistory
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import Report
from rtui.analysis.report.thresholds import Judgement, Outcome
from rtui.cli.output import METRICS, Output, OutputError
from rtui.cli.run import connected
from rtui.registry.registry import Registry
from rtui.registry.rules import Severity
from rtui.server.health.watch import LEAST_EVERY_S, HealthWatch
from rtui.server.user.ending_signals import EndedBySignal
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

ROUNDS: Final = 2
"""The samples of a single look: rates need two."""

SUMMARY_WIDTH: Final = 80
"""Characters of a line of the summary, where no terminal has another width."""


@dataclass
class Judged:
    """The samples of all nodes so far, with registry, report and thresholds to judge them by."""

    registry: Registry | None
    report: Report | None = None
    since: Sequence[HealthView] | None = None
    severity: Severity | None = None
    """From which severity of findings on the exit code is 1; None for none."""
    thresholds: Sequence[HealthThreshold] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    _nodes: dict[str, SampleHistory] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        self._nodes.setdefault(sample.node, SampleHistory()).add(sample)

    def views(self) -> list[HealthView]:
        samples = [history.samples for history in self._nodes.values()]
        return views_of(samples, self.registry, self.report)

    def comparison(self, views: Sequence[HealthView]) -> HealthComparison | None:
        return None if self.since is None or not views else compare_health(self.since, views)

    def judgements(self, views: Sequence[HealthView], comparison: HealthComparison | None) -> list[Judgement]:
        return judge_health(self.thresholds, views, comparison)

    def exit_code(self) -> int:
        """Return 1 where --fail-on found something, 3 where it could not be judged, else 0; say which on stderr."""
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
        if self.severity is not None:
            is_found, unjudged = severe_and_unjudged([server_findings(view) for view in views], self.severity)
            if is_found:
                return ExitCode.FOUND
            if unjudged:
                click.echo(f"rtui: not checked: {', '.join(unjudged)}", err=True)
                return code or ExitCode.UNKNOWN
        return code


def views_of(
    samples: Sequence[tuple[Sample, ...]], registry: Registry | None, report: Report | None = None
) -> list[HealthView]:
    return [HealthView.of(one, report, registry) for one in samples]


def written(file: Output, judged: Judged, sections: Sequence[str]) -> str:
    """Return an empty text before the first sample; text is a summary, unless it is of `sections`."""
    form = file.form
    views = judged.views()
    if not views:
        return ""
    if form in METRICS:
        from rtui.analysis.formats.openmetrics import health_metrics  # noqa: PLC0415 - of an extra

        return health_metrics(views, judged.failures, form)
    if form == "sarif":
        return servers_sarif({view.latest.node: server_findings(view) for view in views}, judged.failures)
    if form == "junit":
        found = {view.latest.node: (view.latest.at_ms / 1000, server_findings(view)) for view in views}
        return servers_junit(found, judged.severity or Severity.ERROR, judged.failures)
    comparison = judged.comparison(views)
    asked = views, comparison, judged.judgements(views, comparison), judged.failures
    if form == "json":
        return health_json(*asked)
    is_summary = form == "text" and not sections
    page = health_page(*asked, in_browser=form == "html", sections=sections if sections or is_summary else (ALL,))
    return formats.written(page, form, **{"width": SUMMARY_WIDTH if is_summary else DEFAULT_WIDTH, **file.text_options})


@contextmanager
def lines_to(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Give the function that writes a line at once, to standard output or to a new private file."""
    if path is None:

        def to_output(line: str) -> None:
            sys.stdout.write(line)
            sys.stdout.flush()

        yield to_output
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{path} is there already: name a new file.") from None
    except OSError as error:
        raise OutputError(str(path), error) from None
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:

        def to_file(line: str) -> None:
            try:
                file.write(line)
                file.flush()
            except OSError as error:
                raise OutputError(str(path), error, "What was written before is there.") from None

        yield to_file


class HealthRun:
    """Takes samples to be judged, and writes them if the format is lines."""

    def __init__(
        self, judged: Judged, write: Callable[[str], object] | None = None, *, is_masked: bool = False
    ) -> None:
        self._judged, self._write = judged, write
        self._change = Masker().masked if is_masked else None
        self._header: SamplesHeader | None = None
        self._has_samples = False

    def _add(self, sample: Sample) -> None:
        sample = sample if self._change is None else self._change(sample)
        self._has_samples = True
        if self._write is not None and self._header is not None:
            self._write(sample_line(sample, self._header))
        self._judged.add(sample)

    def _begin(self, header: SamplesHeader) -> None:
        self._header = header = replace(header, masked=header.masked or self._change is not None)
        if self._write is not None:
            self._write(header_line(header))

    def read(self, opened: SamplesFile) -> int:
        self._begin(opened.header)
        for sample in sorted((one for samples in opened.nodes.values() for one in samples), key=lambda one: one.at_ms):
            self._add(sample)
        return 0

    def watch(
        self,
        target: Target,
        every_s: float | None,
        log: CommandLog,
        after_each: Callable[[], object] = lambda: None,
        *,
        rounds: int = ROUNDS,
    ) -> int:
        """Take `rounds` samples of each node, a second apart, or with `every_s` until a signal; return the exit code.

        Why a node has given none is said on standard error, once. `after_each` is called when all nodes have been
        asked. Raises as `connected`, and RtuiError and EndedBySignal where no node has given any.
        """
        self._begin(SamplesHeader(began_ms=round(time.time() * 1000), server=target.label))
        return asyncio.run(self._watch(target, every_s, log, after_each, rounds))

    async def _watch(
        self, target: Target, every_s: float | None, log: CommandLog, after_each: Callable[[], object], rounds: int
    ) -> int:
        judged = self._judged
        try:
            async with connected(target, log) as (deployment, _):
                watch = HealthWatch(deployment, every_s=every_s or LEAST_EVERY_S)
                watch.on_sample.append(self._add)
                while True:
                    await watch.look()
                    before = judged.failures
                    judged.failures = {one.label: one.failure for one in watch.nodes if one.failure is not None}
                    for node, why in judged.failures.items():
                        if before.get(node) != why:
                            click.echo(f"rtui: {why if why.startswith(node) else f'{node}: {why}'}", err=True)
                    after_each()
                    rounds -= 1
                    if every_s is None and rounds <= 0:
                        if judged.failures and not self._has_samples:
                            raise RtuiError("No node has given a sample", next(iter(judged.failures.values())))
                        return ExitCode.SERVER if judged.failures else ExitCode.FINE
                    await watch.pause()
        except EndedBySignal as ended:
            if self._has_samples:
                return ended.exit_status
            raise
