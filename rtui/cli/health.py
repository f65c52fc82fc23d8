"""`rtui health`: how a server is, or all nodes of a cluster: once, every few seconds, or out of a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli.main import INTERRUPTED
from rtui.cli.options import ConnectionOptions, connection_options, log_option, registry_choice, registry_options
from rtui.registry.rules import RuleLevels, Severity
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.formats.samples import SamplesFile
    from rtui.analysis.health.sample import Sample
    from rtui.analysis.health.view import HealthView
    from rtui.server.wire.command_log import CommandLog

LEAST_WATCH_S: Final = 1.0
"""Samples at shorter intervals would cost the server more than 1 ms a second."""

FORMATS: Final = ("text", "json", "md", "prom")
"""The formats of samples."""

JSON: Final = "json"
"""The samples themselves, a line each; the other formats say what they mean, when all have come."""

UNKNOWN: Final = 3
"""Exit code where nothing is found, but not everything could be judged."""

_EPILOG: Final = """\
A sample is what the server says of itself: INFO, the slow log and its like, delays, clients and settings. It takes
less than 1 ms of the server's time a second. What the user may not ask is named in the sample; rtui acl --with health
--with settings prints a user who may.

\b
  rtui health prod:6379                                one sample of each node
  rtui health prod:6379 --watch 5 -o samples.jsonl     one every five seconds, until Ctrl-C
  rtui health samples.jsonl                            what was wrong then
  rtui health prod:6379 --format prom > rtui.prom      for a textfile collector

\b
text, md and prom say what the samples mean, once all have come: figures with what is normal,
and what is wrong, by the rules of rtui check --rules. Rates take two samples: --watch.
json is lines: a header, then an object a sample. A line has what was asked for it, by its
"sources"; what was asked earlier, such as settings, stays as it was.

\b
Exit codes
  0    each node has given a sample
  1    one could not be reached, the file could not be written, or --fail-on found something
  2    the command line makes no sense, or the file can't be read
  3    --fail-on found nothing, but not all could be judged
  130  Ctrl-C or SIGTERM, also where that ends --watch
"""


@click.command("health", epilog=_EPILOG)
@connection_options
@click.option(
    "--watch",
    "every_s",
    type=click.FloatRange(min=LEAST_WATCH_S),
    metavar="S",
    help="Ask every S seconds until Ctrl-C; a larger cluster takes longer.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="As what (text; with -o json).")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a new file.")
@click.option(
    "--fail-on",
    "fail_on",
    type=click.Choice(("error", "warn")),
    help="From which severity of findings on the exit code is 1 (never).",
)
@registry_options
@click.option("--mask", "is_masked", is_flag=True, help="Leave ids and addresses of clients out.")
@log_option
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    *,
    every_s: float | None,
    form: str | None,
    output: Path | None,
    fail_on: str | None,
    is_masked: bool,
    log_file: Path | None,
    **asked: Any,
) -> None:
    """Say how a server is: memory, load, slow commands, persistence, replication, clients, settings.

    TARGET as for browsing, or a file that this command has written.
    """
    from rtui.analysis.formats.samples import Header, Masker, header_line, sample_line  # noqa: PLC0415
    from rtui.analysis.health.history import SampleHistory  # noqa: PLC0415
    from rtui.analysis.health.view import HealthView  # noqa: PLC0415
    from rtui.cli.command_log import command_log  # noqa: PLC0415 - the help must not wait for all this

    masker = Masker() if is_masked else None
    form = form or ("text" if output is None else JSON)
    nodes: dict[str, SampleHistory] = {}
    opened = None if len(connection.place) != 1 else samples_file(Path(connection.place[0]))
    if opened is not None and every_s is not None:
        raise click.UsageError("A file can't be watched.")
    target = connection.target() if opened is None else None
    registry = registry_choice(asked).load(target or Target())
    levels = RuleLevels() if registry is None else registry.rules
    with ExitStack() as stack:
        write = stack.enter_context(_lines_to(output))

        def add(sample: Sample) -> None:
            sample = sample if masker is None else masker.masked(sample)
            if form == JSON:
                write(sample_line(sample))
            if form != JSON or fail_on is not None:
                nodes.setdefault(sample.node, SampleHistory()).add(sample)

        code = 0
        if target is None:
            assert opened is not None  # noqa: S101 - one of them there is
            if form == JSON:
                write(header_line(opened.header))
            for sample in _in_order(opened):
                add(sample)
        else:
            log = stack.enter_context(command_log(log_file))
            if form == JSON:
                header = Header(began_ms=round(time.time() * 1000), server=target.label, masked=is_masked)
                write(header_line(header))
            code = asyncio.run(take_samples(target, add, every_s=every_s, log=log))
        views = [HealthView(history.samples, registry=registry, levels=levels) for history in nodes.values()]
        if views and form != JSON:
            write(_written(form, views))
    sys.exit(code or (0 if fail_on is None else exit_code(views, Severity(fail_on))))


def _written(form: str, views: Sequence[HealthView]) -> str:
    """Return what samples mean, in one of the formats that say it."""
    from rtui.analysis.formats.health import health_markdown, health_text  # noqa: PLC0415 - as above
    from rtui.analysis.formats.prometheus import health_prometheus  # noqa: PLC0415

    return {"text": health_text, "md": health_markdown, "prom": health_prometheus}[form](views)


def exit_code(views: Sequence[HealthView], fail_on: Severity) -> int:
    """Return 1 where rules of this severity or above find something, 3 where one could not be judged, else 0."""
    from rtui.analysis.findings.finding import reaches  # noqa: PLC0415 - as above
    from rtui.analysis.findings.server import server_findings  # noqa: PLC0415

    found = [server_findings(view) for view in views]
    if any(one.at_least(fail_on) for one in found):
        return 1
    return UNKNOWN if any(reaches(one.severity, fail_on) for each in found for one in each.unjudged) else 0


async def take_samples(
    target: Target, add: Callable[[Sample], object], *, every_s: float | None = None, log: CommandLog | None = None
) -> int:
    """Take a sample of each node, or with `every_s` go on until a signal; return the exit code.

    Why a node has given none is said on standard error, once. Raises ConnectFailure.
    """
    from rtui.cli.report_run import Interrupts  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.deployment.nodes import Deployment  # noqa: PLC0415
    from rtui.server.health.watch import EVERY_S, HealthWatch  # noqa: PLC0415

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    deployment, said = Deployment(target, log), dict[str, str]()

    def say_failures() -> None:
        for node in watch.nodes:
            if node.failure is not None and said.get(node.label) != node.failure:
                click.echo(f"rtui: {node.label}: {node.failure}", err=True)
            said[node.label] = node.failure or ""

    with Interrupts(task.cancel) as interrupts:
        try:
            await deployment.open()
            watch = HealthWatch(deployment, every_s=every_s or EVERY_S)
            watch.on_sample.append(add)
            while True:
                await watch.look()
                say_failures()
                if every_s is None:
                    return int(any(node.failure is not None for node in watch.nodes))
                await watch.pause()
        except asyncio.CancelledError:
            if not interrupts.is_interrupted:
                raise
            task.uncancel()
            return INTERRUPTED
        finally:
            await deployment.close()


def samples_file(path: Path) -> SamplesFile | None:
    """Read a file of samples; None for what is no file, or one of another kind. Raises click.UsageError."""
    from rtui.analysis.formats.samples import SamplesFormatError, is_samples, read_samples  # noqa: PLC0415

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


def _in_order(found: SamplesFile) -> Iterator[Sample]:
    """Yield the samples of all nodes in the order of their times."""
    yield from sorted((one for samples in found.nodes.values() for one in samples), key=lambda one: one.at_ms)


@contextmanager
def _lines_to(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Give what writes a line at once, to standard output or to a new file that only its owner may read."""
    from rtui.cli.report_file import OutputError  # noqa: PLC0415 - the help must not wait for it

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
