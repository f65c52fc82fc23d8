"""`rtui health`: state, findings and metrics of a server or cluster."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import FILE_NAME, ConnectionOptions, Number, connection_options
from rtui.cli.help import Command
from rtui.cli.output import METRICS, Output, failures_in
from rtui.registry.rules import Severity
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.findings.server import HealthThreshold

LINES: Final = "jsonl"
"""The samples themselves, a line each; the other formats interpret them."""

FORMATS: Final = ("text", "json", LINES, "md", "html", *METRICS, "sarif", "junit")

LEAST_WATCH_S: Final = 1.0
"""Samples at shorter intervals would cost the server more than 1 ms a second."""

SECTIONS: Final = (
    *("findings", "memory", "load", "slow", "persistence", "replication", "clients", "configuration", "all"),
)
"""The parts of the text; without one it is a summary."""


def _fail_on(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[Severity | None, tuple[HealthThreshold, ...]]:
    from rtui.analysis.findings.server import parse_threshold  # noqa: PLC0415 - the help must not wait
    from rtui.analysis.report.thresholds import FailOnError  # noqa: PLC0415
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    severities = [one for one in (Severity.WARN, Severity.ERROR) if one.value in values]
    thresholds = []
    for value in values:
        if value in list(severities):
            continue
        try:
            thresholds.append(parse_threshold(value))
        except FailOnError as error:
            raise click.BadParameter(f"{display_text(value, limit=80)}: {error}", ctx, param) from None
    return (severities[0] if severities else None), tuple(thresholds)


@click.command(
    "health",
    cls=Command,
    notes="""\
Samples and reports:
TARGET may also be a file of samples (-o samples.jsonl). Rules about a server
and its keys go by --report, else by the latest report that was kept, if it
was made within a day of the samples.
""",
    examples=(
        "rtui health prod:6379 --section memory",
        "rtui health prod:6379 --watch 5 -o samples.jsonl     until Ctrl-C",
    ),
    codes={
        0: "each node has given a sample",
        1: "--fail-on found something",
        3: "it found nothing, but not all could be judged",
    },
)
@connection_options
@click.option(
    "--watch", "every_s", type=Number(min=LEAST_WATCH_S), metavar="S", help="Take samples every S seconds until Ctrl-C."
)
@opt.result_options(*FORMATS, otherwise=LINES)
@click.option(
    "--section",
    "sections",
    metavar="NAME",
    type=click.Choice(SECTIONS),
    multiple=True,
    help="A part in full: findings, memory, load … or all.",
)
@click.option(
    "--report",
    "report_name",
    metavar="REPORT",
    type=FILE_NAME,
    help="Report of the keys: FILE, TARGET@3, latest, none.",
)
@click.option("--since", type=click.Path(path_type=Path), metavar="SAMPLES", help="Compare with earlier samples.")
@click.option(
    "--fail-on",
    "fail_on",
    metavar="WHAT",
    multiple=True,
    callback=_fail_on,
    help="error, warn, or a threshold (rtui help thresholds).",
)
@opt.registry_options
@click.option("--mask", "is_masked", is_flag=True, help="Leave out ids and addresses of clients.")
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    *,
    every_s: float | None,
    file: Output,
    sections: tuple[str, ...],
    report_name: str | None,
    since: Path | None,
    fail_on: tuple[Severity | None, tuple[HealthThreshold, ...]],
    is_masked: bool,
    log_file: Path | None,
    **asked: Any,
) -> None:
    """Print state, findings and main metrics of a server, or of all nodes of a cluster."""
    from rtui.cli import files  # noqa: PLC0415 - the help must not wait for all this
    from rtui.cli.health_run import ROUNDS, HealthRun, Judged, lines_to, views_of, written  # noqa: PLC0415
    from rtui.cli.run import command_log  # noqa: PLC0415

    severity, thresholds = fail_on
    if sections and file.form not in ("text", "md"):
        raise click.UsageError(f"--section is for text and md; {file.form} has all of them.")
    if since is None and any(one.needs_earlier for one in thresholds):
        raise click.UsageError("Changes, and new or gone findings, need earlier samples: --since.")
    demo = opt.demo_choice(asked)
    opened = None if len(connection.place) != 1 else files.samples_file(Path(connection.place[0]))
    if opened is not None and every_s is not None:
        raise click.UsageError("A file can't be watched.")
    target = (Target() if demo else connection.target()) if opened is None else None
    if target is not None and target.dump is not None:
        raise click.UsageError("A dump has keys, but no server whose health could be judged: rtui check is for keys.")
    judged = Judged(opt.registry_choice(asked).load(target or Target()), severity=severity, thresholds=thresholds)
    if since is not None:
        judged.since = views_of(list(files.earlier_samples(since).nodes.values()), judged.registry)
    if opened is not None:
        judged.report = files.report_of_samples(report_name, opened)
    elif target is not None:
        judged.report = files.keys_report(report_name, "demo" if demo else target.label, target.db)
    with ExitStack() as stack:
        stack.enter_context(failures_in(file, "health"))
        write = None
        if file.form == LINES:
            write = stack.enter_context(lines_to(file.path))
        run = HealthRun(judged, write, is_masked=is_masked)

        def write_whole() -> None:
            if file.form != LINES:
                file.write(written(file, judged, sections))

        if target is None:
            assert opened is not None  # noqa: S101 - one of them there is
            code = run.read(opened)
        else:
            after_each = write_whole if every_s is not None and not file.is_standard else lambda: None
            rounds = 1 if file.form == LINES else ROUNDS
            with opt.asked_server(target, demo) as server, command_log(log_file) as log:
                code = run.watch(server, every_s, log, after_each, rounds=rounds)
        write_whole()
    judgement = judged.exit_code()
    is_judged = judgement == ExitCode.FOUND and code == ExitCode.SERVER
    sys.exit(judgement if is_judged else code or judgement)
