"""`rtui report`: what the keyspace holds, in one gentle pass, as a text, a page or data."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options
from rtui.cli.main import DEBUG_VARIABLE
from rtui.cli.output import Output, failures_in
from rtui.server.user.ending_signals import EndedBySignal, exit_status
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.report.document import Report

FORMATS: Final = ("text", "json", "md", "csv", "html")
"""The formats of a report."""

_EPILOG: Final = """\
\b
Columns
  The facts are type (always asked), ttl, memory, idle (or the access counter), length
  and encoding; those that are not named are not asked. idle/8 and length/8 ask one key
  in eight: what rests on them is marked ≈ and has its 95 % interval. Of the others those
  that may be among the longest are asked their length, so the lists of the longest keys
  are complete, or say what they may lack. encoding/16 asks one key of a type in 16.

\b
Exit codes
  0    the report is written; also when --budget-seconds ran out (the report is then
       marked partial and says why) and when the user may not ask everything (the
       report and standard error say what was denied)
  2    the command line makes no sense
  4    the server could not be reached or refused, or its connection was lost for good;
       what had been inspected until then is written, marked partial
  5    the output can't be written
  130  Ctrl-C: what had been inspected is written, marked partial; a second one leaves at
       once and writes nothing; 143, 129 and 131: SIGTERM, SIGHUP and SIGQUIT, likewise

A file is replaced when the report is whole, never before. A new one is readable by you only, one that is there keeps
its permissions. Progress is shown on standard error if that is a terminal; standard output carries the report only.
"""


def _preset(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check the name of a preset; a usage error lists all."""
    from rtui.analysis.report.thresholds import preset_names  # noqa: PLC0415 - the help must not wait for it

    if value not in preset_names():
        raise click.BadParameter(f"there is {', '.join(preset_names())}", ctx, param)
    return value


@click.command("report", epilog=_EPILOG)
@connection_options
@opt.scope_options
@opt.registry_options
@opt.format_option(FORMATS)
@opt.output_option
@opt.columns_option
@click.option("--depth", metavar="N", type=WholeNumber(1, 64), help="Levels of namespaces (all).")
@click.option("--top", metavar="N", type=WholeNumber(1, 10_000), default=100, help="Keys in each list (100).")
@click.option(
    "--big",
    "preset",
    metavar="PRESET",
    default="rtui",
    callback=_preset,
    help="Above which size a key is big: rtui, or the name of who set the thresholds (rtui).",
)
@click.option(
    "--estimate",
    "estimate_keys",
    metavar="N",
    type=WholeNumber(100, 10_000_000),
    help="Ask N keys from random places instead of all, in seconds; every figure has its 95 % interval.",
)
@opt.budget_option
@opt.workers_option
@opt.keep_option
@opt.log_option
@opt.demo_options("Report on sample keyspaces on an embedded server.")
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    form: str | None,
    output: str,
    *,
    keep: bool,
    **asked: Any,
) -> None:
    """Inspect every key once and report on memory, big and hot keys, expiry, slots and types.

    TARGET as for browsing: host[:port], a URL, or the path of a unix socket.
    """
    if asked["estimate_keys"] is not None and asked["workers"] > 1:
        raise click.UsageError("Give either --estimate or --workers: an estimate asks too few keys to be spread.")
    file, demo = Output(output), opt.demo_choice(asked)
    form = file.form(form, FORMATS)
    file.check()
    with failures_in(file, form if file.is_standard else "", "report"):
        choice, target = opt.registry_choice(asked), Target() if demo else connection.target()
        registry = asked["registry"] = choice.load(target)
        opt.take_separators(asked, registry)
        with opt.asked_server(target, demo) as server:
            sys.exit(_report(server, asked, file, form, keep=keep and demo is None))


def _report(target: Target, asked: dict[str, Any], file: Output, form: str, *, keep: bool) -> int:
    """Analyse, write the report, print what it lacks on standard error, and return the exit code.

    Text for a terminal has its width, and is in ASCII if that can't do more.
    """
    from rtui.analysis.formats import FORMS, write_text  # noqa: PLC0415
    from rtui.analysis.report.document import ColumnState, CoverageKind  # noqa: PLC0415
    from rtui.cli.run import analyse, command_log  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415
    from rtui.server.wire.supervised_tasks import LOG  # noqa: PLC0415

    if os.environ.get(DEBUG_VARIABLE):
        LOG.addHandler(logging.StreamHandler())
    asked["pace"] = Pace(asked["pace"])
    with command_log(asked.pop("log_file")) as log:
        result = analyse(target, AnalysisOptions(**asked), log=log)
    report = result.report
    if report is not None and report.head.coverage.keys and keep:
        _keep(report, target)
    if report is not None and (report.head.coverage.keys or result.failure is None):
        file.write(write_text(report, **file.text_options) if form == "text" else FORMS[form](report))
        coverage = report.head.coverage
        if coverage.kind is CoverageKind.PARTIAL or coverage.reason:
            click.echo(f"rtui: the report is partial: {coverage.reason or 'not every key was inspected'}", err=True)
        denied = [name for name, column in report.head.columns.items() if column.state is ColumnState.DENIED]
        if denied:
            click.echo(f"rtui: denied by the server: {', '.join(denied)}; the report says why", err=True)
    if result.failure is not None:
        raise RtuiError("The analysis broke off", result.failure)
    if result.ended_by is not None and report is None:
        click.echo("rtui: interrupted before anything was inspected: nothing is written", err=True)
        raise EndedBySignal(result.ended_by)
    return 0 if result.ended_by is None else exit_status(result.ended_by)


def _keep(report: Report, target: Target) -> None:
    """Keep the report for later comparison; why that fails is said on standard error."""
    from rtui.server.analysis.kept_reports import KeptReports, NotKeptError  # noqa: PLC0415 - as above
    from rtui.server.files import remove_saved_analyses  # noqa: PLC0415 - the help must not wait for it

    remove_saved_analyses()
    try:
        KeptReports(target.label, target.db).keep(report)
    except OSError as error:
        click.echo(f"rtui: the report is not kept for later comparison: {error.strerror or error}", err=True)
    except NotKeptError as error:
        click.echo(f"rtui: {error}", err=True)
