"""`rtui report`: report on memory, big and hot keys, expiry, slots and types."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options
from rtui.cli.help import Command
from rtui.cli.main import DEBUG_VARIABLE
from rtui.cli.output import METRICS, Output, failures_in
from rtui.server.user.ending_signals import EndedBySignal, exit_status
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.report.document import Report


def _preset(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check the name of a preset; a usage error lists all."""
    from rtui.analysis.report.thresholds import preset_names  # noqa: PLC0415 - the help must not wait for it

    if value not in preset_names():
        raise click.BadParameter(f"there is {', '.join(preset_names())}", ctx, param)
    return value


@click.command(
    "report",
    cls=Command,
    examples=("rtui report prod:6379 -o today.html", "rtui report prod:6379 --estimate 20000    seconds at any size"),
    codes={
        0: "the report was written; denied facts and a partial scan are named in it",
        130: "Ctrl-C; a partial report is written",
    },
)
@connection_options
@opt.scope_options
@opt.registry_options
@opt.result_options("text", "json", "md", "csv", "html", *METRICS)
@opt.columns_option
@click.option("--depth", metavar="N", type=WholeNumber(1, 64), help="Levels of namespaces (all).")
@click.option("--top", metavar="N", type=WholeNumber(1, 10_000), default=100, help="Keys in each list (100).")
@click.option(
    "--big",
    "preset",
    metavar="PRESET",
    default="rtui",
    callback=_preset,
    help="Preset of big-key thresholds (rtui).",
)
@click.option(
    "--estimate",
    "estimate_keys",
    metavar="N",
    type=WholeNumber(100, 10_000_000),
    help="Estimate from N random keys, with 95 % intervals.",
)
@opt.budget_option
@opt.workers_option
@opt.keep_option
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    *,
    file: Output,
    keep: bool,
    **asked: Any,
) -> None:
    """Inspect every key once and report on memory, big and hot keys, expiry, slots and types."""
    if asked["estimate_keys"] is not None and asked["workers"] > 1:
        raise click.UsageError("Give either --estimate or --workers: an estimate asks too few keys to be spread.")
    demo = opt.demo_choice(asked)
    with failures_in(file, "report", keeps_files=True):
        choice, target = opt.registry_choice(asked), Target() if demo else connection.target(takes_keys=True)
        registry = asked["registry"] = choice.load(target)
        opt.take_separators(asked, registry)
        with opt.asked_server(target, demo) as server:
            sys.exit(_report(server, asked, file, keep=keep and demo is None))


def _report(target: Target, asked: dict[str, Any], file: Output, *, keep: bool) -> int:
    """Analyse, write the report, print what it lacks on standard error, and return the exit code.

    Text for a terminal has its width, and is in ASCII if that can't do more.
    """
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
        file.write(_written(report, file))
        say_what_it_lacks(report, "report")
    if result.failure is not None:
        raise RtuiError("The analysis broke off", result.failure)
    if result.ended_by is not None and report is None:
        click.echo("rtui: interrupted before anything was inspected: nothing is written", err=True)
        raise EndedBySignal(result.ended_by)
    return 0 if result.ended_by is None else exit_status(result.ended_by)


def _written(report: Report, file: Output) -> str:
    if file.form in METRICS:
        from rtui.analysis.formats.openmetrics import report_metrics  # noqa: PLC0415 - of an extra

        return report_metrics(report, file.form)
    from rtui.analysis.formats import FORMS, write_text  # noqa: PLC0415 - the help must not wait for it

    return write_text(report, **file.text_options) if file.form == "text" else FORMS[file.form](report)


def say_what_it_lacks(report: Report, where: str) -> None:
    """Print on standard error which keys and facts are missing in what was written."""
    from rtui.analysis.report.document import ColumnState, CoverageKind  # noqa: PLC0415 - as above

    coverage = report.head.coverage
    if coverage.kind is CoverageKind.PARTIAL or coverage.reason:
        click.echo(f"rtui: the {where} is partial: {coverage.reason or 'not every key was inspected'}", err=True)
    denied = [name for name, column in report.head.columns.items() if column.state is ColumnState.DENIED]
    if denied:
        click.echo(f"rtui: denied by the server: {', '.join(denied)}; the {where} says why", err=True)


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


@click.command(
    "merge",
    cls=Command,
    examples=(
        "rtui merge node1.parquet node2.parquet -o cluster.json",
        "rtui merge monday.parquet tuesday.parquet --format md",
    ),
    codes={0: "the report is written; it says what the files lack", 4: "", 5: ""},
)
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@opt.scope_options
@opt.registry_options
@opt.result_options("text", "json", "md", "csv", "html")
@click.option("--depth", metavar="N", type=WholeNumber(1, 64), help="Levels of namespaces (all).")
@click.option("--top", metavar="N", type=WholeNumber(1, 10_000), default=100, help="Keys in each list (100).")
@click.help_option("--help")
def merge_command(paths: tuple[Path, ...], *, file: Output, **asked: Any) -> None:
    """Make one report of files that rtui export has written: of nodes, databases or days.

    Sums and lists are those of one pass over all their keys; a key in two files counts twice. A report does not hold
    what that takes: reports can't be merged.
    """
    from rtui.cli.files import report_of_keys  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.files import is_keys_file  # noqa: PLC0415

    with failures_in(file, "merge", keeps_files=True):
        for path in paths:
            if path.exists() and not is_keys_file(path):
                raise click.UsageError(f"{path} is no file of keys: rtui export -o FILE.parquet writes them.")
        asked["registry"] = registry = opt.registry_choice(asked).load(Target())
        opt.take_separators(asked, registry)
        del asked["pace"]
        report = report_of_keys(paths, **asked)
        file.write(_written(report, file))
        say_what_it_lacks(report, "report")
