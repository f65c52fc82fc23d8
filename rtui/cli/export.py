"""`rtui export`: a row for each key, into a file of Parquet, CSV or lines of JSON, or a folder of Parquet."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, Signals
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, connection_options
from rtui.cli.help import Command
from rtui.cli.output import STANDARD_STREAM, Output, OutputError, failures_in
from rtui.cli.report import say_what_it_lacks
from rtui.server.user.ending_signals import EndedBySignal, exit_status
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.table.keys_file import KeysWriter

FORMATS: Final = ("parquet", "csv", "jsonl")


@click.command(
    "export",
    cls=Command,
    notes="""\
FILE is .parquet, .csv or .jsonl. FOLDER/ gets Parquet, a part for each node.
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
@click.option("--format", "form", type=click.Choice(FORMATS), help="Output format (by FILE).")
@opt.columns_option
@opt.budget_option
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(connection: ConnectionOptions, *, output: str, form: str | None, **asked: Any) -> None:
    """Inspect every key once and write a row for each: names, types, TTLs, sizes."""
    demo = opt.demo_choice(asked)
    if output == STANDARD_STREAM:
        raise click.UsageError("Keys are written to a file: name one after -o.")
    is_folder = output.endswith("/")
    if is_folder and form not in (None, "parquet"):
        raise click.UsageError(f"A folder is of Parquet, not {form}.")
    file = Output(output, form or ("parquet" if is_folder else None), FORMATS, otherwise="")
    if not is_folder:
        file.check()
    elif Path(output).exists() and any(Path(output).iterdir()):
        raise click.UsageError(f"{output} is not empty: name a folder that is not there yet.")
    with failures_in(file, "export", keeps_files=True):
        target = Target() if demo else connection.target(takes_keys=True)
        with opt.asked_server(target, demo) as server:
            sys.exit(_export(server, asked, file, is_folder=is_folder))


def _export(target: Target, asked: dict[str, Any], file: Output, *, is_folder: bool) -> int:
    """Analyse and write the rows as they come; say what is there, and return the exit code."""
    from rtui.analysis import humanize  # noqa: PLC0415 - the help must not wait for it
    from rtui.cli.run import analyse, command_log  # noqa: PLC0415
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    assert file.path is not None  # noqa: S101 - not standard output
    log_file = asked.pop("log_file")
    asked["pace"] = Pace(asked["pace"])
    writers: list[KeysWriter] = []
    with command_log(log_file) as log, _new_folder(file.path) if is_folder else file.replaced() as place:

        def write_to(began_at_s: float, failed: Callable[[], object]) -> KeysWriter:
            from rtui.table.keys_file import KeysWriter  # noqa: PLC0415 - imports Polars, as the pass did

            writers.append(KeysWriter(place, file.form, began_at_s, failed))
            return writers[-1]

        try:
            result = analyse(target, AnalysisOptions(**asked, write_to=write_to), log=log)
            report = result.report
            if report is None or not (report.head.coverage.counted_keys or result.failure is None):
                _nothing_written(result.failure, result.ended_by)
            writers[-1].end(report)
        except BaseException:
            for writer in writers:
                writer.close()
            raise
    click.echo(f"rtui: {humanize.keys(writers[-1].height)} in {file.path}", err=True)
    say_what_it_lacks(report, "file")
    if result.failure is not None:
        raise RtuiError("The analysis broke off", result.failure)
    return 0 if result.ended_by is None else exit_status(result.ended_by)


def _nothing_written(failure: str | None, ended_by: Signals | None) -> NoReturn:
    if failure is not None:
        raise RtuiError("The analysis broke off", failure)
    click.echo("rtui: interrupted before anything was inspected: nothing is written", err=True)
    raise EndedBySignal(ended_by or SIGINT)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Give a folder, which takes the place of the one at the path, if that is empty, after the block.

    Raises OutputError; after an exception there is nothing.
    """
    try:
        part = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent))
        try:
            yield part
            part.rename(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise OutputError(str(path), error, "Name a folder that is empty or not there yet.") from None
