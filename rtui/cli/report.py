"""`rtui report`, `merge`, `export` and `diff`: reports and files of keys, made, merged and compared."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import FILE_NAME, ConnectionOptions, WholeNumber, connection_options
from rtui.cli.help import Command
from rtui.cli.main import DEBUG_VARIABLE
from rtui.cli.output import METRICS, STANDARD_STREAM, Output, OutputError, failures_in
from rtui.embedded.dump_head import is_dump
from rtui.server.files import is_keys_file
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.formats.comparison import KeyFates
    from rtui.analysis.report.document import Report
    from rtui.analysis.report.thresholds import FailOn
    from rtui.cli.run import Result
    from rtui.table.keys_file import KeysWriter


def _preset(ctx: click.Context, param: click.Parameter, value: str) -> str:
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
@opt.depth_option
@opt.top_option
@click.option(
    "--big", "preset", metavar="PRESET", default="rtui", callback=_preset, help="Preset of big-key thresholds (rtui)."
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
@opt.dask_options
@opt.keep_option
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(connection: ConnectionOptions, *, file: Output, keep: bool, **asked: Any) -> None:
    """Inspect every key once and report on memory, big and hot keys, expiry, slots and types."""
    if asked["estimate_keys"] is not None and asked["workers"] > 1:
        raise click.UsageError("Give either --estimate or --workers: an estimate asks too few keys to be spread.")
    demo, asked["dask"] = opt.demo_choice(asked), opt.dask_choice(asked)
    with failures_in(file, "report", keeps_files=True):
        choice, target = opt.registry_choice(asked), Target() if demo else connection.target(takes_keys=True)
        registry = asked["registry"] = choice.load(target)
        opt.take_separators(asked, registry)
        with opt.asked_server(target, demo, asked["dask"]) as server:
            sys.exit(_report(server, asked, file, keep=keep and demo is None))


def _report(target: Target, asked: dict[str, Any], file: Output, *, keep: bool) -> int:
    """Text for a terminal has its width, and is in ASCII if that can't do more."""
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
    return result.exit_code()


def _written(report: Report, file: Output) -> str:
    if file.form in METRICS:
        from rtui.analysis.formats.openmetrics import report_metrics  # noqa: PLC0415 - of an extra

        return report_metrics(report, file.form)
    from rtui.analysis.formats import FORMS, write_text  # noqa: PLC0415 - the help must not wait for it

    return write_text(report, **file.text_options) if file.form == "text" else FORMS[file.form](report)


def say_what_it_lacks(report: Report, where: str) -> None:
    from rtui.analysis.report.document import ColumnState, CoverageKind  # noqa: PLC0415 - as above

    coverage = report.head.coverage
    if coverage.kind is CoverageKind.PARTIAL or coverage.reason:
        click.echo(f"rtui: the {where} is partial: {coverage.reason or 'not every key was inspected'}", err=True)
    denied = [name for name, column in report.head.columns.items() if column.state is ColumnState.DENIED]
    if denied:
        click.echo(f"rtui: denied by the server: {', '.join(denied)}; the {where} says why", err=True)


def _keep(report: Report, target: Target) -> None:
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
        "rtui merge dumps/*.rdb --dask local:3 --format md",
    ),
    codes={0: "the report is written; it says what the files lack", 4: "", 5: ""},
)
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@opt.rows_options
@opt.registry_options
@opt.result_options("text", "json", "md", "csv", "html")
@opt.depth_option
@opt.top_option
@opt.dask_options
@click.help_option("--help")
def merge_command(paths: tuple[Path, ...], *, file: Output, **asked: Any) -> None:
    """Make one report of dumps and of files that rtui export has written: of nodes, databases or days.

    Sums and lists are those of one pass over all their keys; a key in two files counts twice. A report does not hold
    what that takes: reports can't be merged.
    """
    from rtui.cli.files import report_of_keys  # noqa: PLC0415 - the help must not wait for it

    asked["dask"] = opt.dask_choice(asked)
    with failures_in(file, "merge", keeps_files=True):
        for path in paths:
            if path.exists() and not (is_keys_file(path) or is_dump(path)):
                raise click.UsageError(f"{path} is no dump or file of keys: rtui export -o FILE.parquet writes them.")
        asked["registry"] = registry = opt.registry_choice(asked).load(Target())
        opt.take_separators(asked, registry)
        report = report_of_keys(paths, **asked)
        file.write(_written(report, file))
        say_what_it_lacks(report, "report")


_KEYS_FORMATS: Final = ("parquet", "csv", "jsonl")


@click.command(
    "export",
    cls=Command,
    notes="""\
FILE is .parquet, .csv or .jsonl. FOLDER/ gets Parquet, a part for each node;
with --dask each task writes its own, also to a URL/ (s3://bucket/keys/).
Columns and queries: rtui help files.
""",
    examples=(
        "rtui export prod:6379 -o keys.parquet --pace gentle",
        "rtui export dump.rdb -o keys.csv --match 'session:*'",
    ),
    codes={0: "all keys are written", 130: "Ctrl-C; the file has the keys seen so far, and says so"},
)
@connection_options
@opt.scope_options
@click.option("-o", "--output", metavar="FILE", required=True, help="File, or FOLDER/.")
@click.option("--format", "form", type=click.Choice(_KEYS_FORMATS), help="Output format (by FILE).")
@opt.columns_option
@opt.budget_option
@opt.dask_options
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def export_command(connection: ConnectionOptions, *, output: str, form: str | None, **asked: Any) -> None:
    """Inspect every key once and write a row for each: names, types, TTLs, sizes."""
    demo = opt.demo_choice(asked)
    if output == STANDARD_STREAM:
        raise click.UsageError("Keys are written to a file: name one after -o.")
    is_folder = output.endswith("/")
    if is_folder and form not in (None, "parquet"):
        raise click.UsageError(f"A folder is of Parquet, not {form}.")
    file = Output(output, form or ("parquet" if is_folder else None), _KEYS_FORMATS, otherwise="")
    is_url = "://" in output
    dask = asked["dask"] = opt.dask_choice(asked, output if is_url else f"{Path(output).absolute()}")
    if dask is not None and not is_folder:
        raise click.UsageError("With --dask each task writes a file of its own: name FOLDER/ or URL/.")
    if is_url and dask is None:
        raise click.UsageError("Tasks write to a URL: name --dask, too.")
    if not is_folder:
        file.check()
    elif not is_url and Path(output).exists() and any(Path(output).iterdir()):
        raise click.UsageError(f"{output} is not empty: name a folder that is not there yet.")
    with failures_in(file, "export", keeps_files=True):
        target = Target() if demo else connection.target(takes_keys=True)
        if dask is not None:
            sys.exit(_export_in_tasks(target, asked, output))
        with opt.asked_server(target, demo) as server:
            sys.exit(_export(server, asked, file, is_folder=is_folder))


def _export_in_tasks(target: Target, asked: dict[str, Any], output: str) -> int:
    """Have a task for each node write its rows; say what is there, and return the exit code."""
    from rtui.cli.run import analyse  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    if target.keys is not None or target.dump is not None:
        raise click.UsageError("--dask writes a file a node of a cluster: leave it out for a file.")
    del asked["log_file"]
    if "://" not in output:
        Path(output).mkdir(mode=0o700, exist_ok=True)
    result = analyse(target, AnalysisOptions(**asked | {"pace": Pace(asked["pace"])}))
    if result.written is None and result.report is not None and result.failure is None and result.ended_by is None:
        raise click.UsageError("The server is no cluster, whose nodes tasks would export: leave --dask out.")
    if not result.written:
        return result.exit_code()
    return _told_what_is_there(result, result.written, output)


def _export(target: Target, asked: dict[str, Any], file: Output, *, is_folder: bool) -> int:
    from rtui.cli.run import analyse, command_log  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    assert file.path is not None  # noqa: S101 - not standard output
    log_file = asked.pop("log_file")
    asked["pace"] = Pace(asked["pace"])
    writers: list[KeysWriter] = []
    with (
        command_log(log_file) as log,
        _new_folder(file.path) if is_folder else file.replaced() as place,
        ExitStack() as unfinished,
    ):

        def write_to(began_at_s: float, failed: Callable[[], object]) -> KeysWriter:
            from rtui.table.keys_file import KeysWriter  # noqa: PLC0415 - imports Polars, as the pass did

            writer = KeysWriter(place, file.form, began_at_s, failed)
            writers.append(writer)
            unfinished.callback(writer.close)
            return writer

        result = analyse(target, AnalysisOptions(**asked, write_to=write_to), log=log)
        report = result.report
        if report is None or not (report.head.coverage.counted_keys or result.failure is None):
            return result.exit_code()  # it raises
        writers[-1].end(report)
        unfinished.pop_all()
    return _told_what_is_there(result, writers[-1].height, str(file.path))


def _told_what_is_there(result: Result, rows: int, where: str) -> int:
    """Say on standard error what an export has written and lacks, and return the exit code."""
    from rtui.analysis import humanize  # noqa: PLC0415 - the help must not wait for it

    assert result.report is not None  # noqa: S101 - it has written something
    click.echo(f"rtui: {humanize.keys(rows)} in {where}", err=True)
    say_what_it_lacks(result.report, "file")
    return result.exit_code()


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Give a folder that takes the place of the empty one or of none after the block; raises OutputError."""
    try:
        part = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent))
        try:
            yield part
            part.rename(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise OutputError(str(path), error, "Name a folder that is empty or not there yet.") from None


def _thresholds(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[FailOn, ...]:
    from rtui.analysis.report.thresholds import FailOnError, parse_fail_on  # noqa: PLC0415
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    found = []
    for value in values:
        try:
            found.append(parse_fail_on(value))
        except FailOnError as error:
            raise click.BadParameter(f"{display_text(value, limit=80)}: {error}", ctx, param) from None
    return tuple(found)


@click.command(
    "diff",
    cls=Command,
    notes="""\
A and B:
JSON reports (- for stdin), dumps (dump.rdb), or kept reports: TARGET@latest,
TARGET@yesterday, TARGET@2026-11-22 (UTC), TARGET@3 (its number in rtui
history).
""",
    examples=(
        "rtui diff prod:6379@yesterday prod:6379@latest",
        "rtui diff monday.rdb tuesday.rdb --fail-on 'memory>+20%'",
    ),
    codes={
        0: "no threshold is reached",
        1: "a threshold is reached",
        3: "none is reached, but not all could be judged",
        4: "",
    },
)
@click.argument("before", metavar="A", type=FILE_NAME)
@click.argument("after", metavar="B", type=FILE_NAME)
@click.option("--server-binary", "program", metavar="PATH", type=Path, help="The server that loads dumps.")
@opt.depth_option
@opt.result_options("text", "json", "md")
@click.option(
    "--fail-on",
    "thresholds",
    metavar="EXPR",
    multiple=True,
    callback=_thresholds,
    help="Threshold (rtui help thresholds).",
)
@click.option("--top", metavar="N", type=WholeNumber(1, 10_000), help="Rows of each kind (20; in JSON all).")
@opt.registry_options
@click.help_option("--help")
def diff_command(
    before: str,
    after: str,
    *,
    program: Path | None,
    depth: int | None,
    file: Output,
    thresholds: tuple[FailOn, ...],
    top: int | None,
    **asked: Any,
) -> None:
    """Compare two reports or dumps: keys, memory and share without TTL of namespaces, and findings.

    Two files of keys are compared key by key, too.
    """
    from rtui.analysis.findings.contents import compare_findings  # noqa: PLC0415
    from rtui.analysis.formats import written  # noqa: PLC0415
    from rtui.analysis.formats.comparison import DEFAULT_TOP, comparison_json, comparison_page  # noqa: PLC0415
    from rtui.analysis.report.comparison import compare  # noqa: PLC0415 - the help must not wait for it
    from rtui.analysis.report.thresholds import Outcome, judge  # noqa: PLC0415
    from rtui.cli.files import read_report  # noqa: PLC0415

    if before == after == STANDARD_STREAM:
        raise click.UsageError("Only one of the reports can come from standard input.")
    are_keys = all(one != STANDARD_STREAM and is_keys_file(Path(one)) for one in (before, after))
    with failures_in(file, "diff"):
        registry = opt.registry_choice(asked).load(Target())
        reports = read_report(before, program), read_report(after, program)
        keys = _compared_keys(Path(before), Path(after), top or DEFAULT_TOP) if are_keys else None
        diff, findings = compare(*reports), compare_findings(*reports, None if registry is None else registry.rules)
        judgements = [judge(threshold, diff, depth, findings.counted()) for threshold in thresholds]
        if file.form == "json":
            text = comparison_json(diff, judgements, findings=findings, keys=keys, depth=depth, top=top)
        else:
            page = comparison_page(diff, judgements, findings=findings, keys=keys, depth=depth, top=top or DEFAULT_TOP)
            text = written(page, file.form)
        file.write(text)
    for outcome, code in ((Outcome.REACHED, ExitCode.FOUND), (Outcome.UNKNOWN, ExitCode.UNKNOWN)):
        found = [one for one in judgements if one.outcome is outcome]
        for one in found:
            click.echo(f"rtui: {outcome}: {one.expression} ({one.why})", err=True)
        if found:
            sys.exit(code)


def _compared_keys(before: Path, after: Path, top: int) -> KeyFates:
    from rtui.server.analysis.keys_report import UnreadableKeysError, opened  # noqa: PLC0415 - imports Polars
    from rtui.table.keys_file import KeysFileError, compare_keys  # noqa: PLC0415

    try:
        return compare_keys(opened(before), opened(after), top)
    except KeysFileError as error:  # both were read already, so they have changed meanwhile
        raise UnreadableKeysError(after, error) from None
