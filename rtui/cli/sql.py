"""`rtui sql`: ask keys by SQL."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, Number, WholeNumber, connection_options
from rtui.cli.help import Command
from rtui.cli.output import Output, failures_in, nothing_written
from rtui.server.user.ending_signals import exit_status
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from signal import Signals

    from rtui.analysis.formats.result_rows import StatementRows
    from rtui.server.options import AnalysisOptions
    from rtui.server.wire.command_log import CommandLog
    from rtui.table.statement import Statement

FORMATS: Final = ("text", "csv", "json", "jsonl", "md", "parquet")


@click.command(
    "sql",
    cls=Command,
    notes="""\
Tables (rtui help sql has their columns and examples):
keys      key pattern type memory_bytes ttl_ms expires_at length idle_s …
patterns  pattern keys memory_bytes max_memory_bytes without_ttl
findings  severity rule place title keys memory_bytes query
""",
    examples=(
        "rtui sql 'SELECT type, count(*) FROM keys GROUP BY type' prod:6379",
        "rtui sql 'SELECT key FROM keys WHERE ttl_ms = -1' dump.rdb -o no-ttl.csv",
    ),
    codes={0: "the result is written; it says what it lacks", 130: "Ctrl-C; the result so far is written"},
)
@partial(connection_options, arguments="STATEMENT [TARGET]")
@opt.scope_options
@opt.registry_options
@opt.result_options(*FORMATS)
@click.option("--limit", metavar="N", type=WholeNumber(1, 10_000_000), default=100_000, help="Rows at most (100,000).")
@click.option(
    "--max-seconds",
    "most_s",
    metavar="S",
    type=Number(min=0, min_open=True),
    default=60.0,
    help="Seconds that the statement may take (60).",
)
@opt.budget_option
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(connection: ConnectionOptions, *, file: Output, limit: int, most_s: float, **asked: Any) -> None:
    """Inspect every key once for the facts that one SELECT needs, and run it."""
    demo = opt.demo_choice(asked)
    if not connection.place:
        raise click.UsageError("Missing STATEMENT: rtui sql 'SELECT type, count(*) FROM keys GROUP BY type' TARGET.")
    if file.form == "parquet" and file.is_terminal:
        raise click.UsageError("Parquet is not for a terminal: name a file with -o.")
    text, *place = connection.place
    given = replace(connection, place=tuple(place))
    with failures_in(file, "sql", keeps_files=True):
        target = Target() if demo else given.target(takes_keys=True)
        statement = _statement(text)
        registry = opt.registry_choice(asked).load(target)
        opt.take_separators(asked, registry)
        asked["registry"] = registry if "findings" in statement.tables else None
        with opt.asked_server(target, demo) as server:
            sys.exit(_run(server, statement, asked, file, limit=limit, most_s=most_s))


def _statement(text: str) -> Statement:
    """Check a statement; a wrong one is printed and ends the program."""
    from rtui.cli.find import marked  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.analysis.statements import StatementFailed, read  # noqa: PLC0415

    try:
        return read(text)
    except StatementFailed as error:
        problem = error.problem
        assert problem is not None  # noqa: S101 - it was read only
        click.echo("rtui: the statement can't be run", err=True)
        is_marked = problem.span.end > problem.span.start and "\n" not in text
        click.echo(marked(text, problem) if is_marked else f"  {problem.sentence}", err=True)
        click.echo("  rtui help sql has the tables and examples.", err=True)
        sys.exit(ExitCode.USAGE)


def _run(
    target: Target, statement: Statement, asked: dict[str, Any], file: Output, *, limit: int, most_s: float
) -> int:
    from rtui.analysis.formats.result_rows import written_rows  # noqa: PLC0415 - the help must not wait for it
    from rtui.cli.run import command_log  # noqa: PLC0415
    from rtui.server.analysis.statements import columns_of  # noqa: PLC0415
    from rtui.server.analysis.table_import import use_one_heap  # noqa: PLC0415
    from rtui.server.files import rows_folder  # noqa: PLC0415
    from rtui.server.options import KEPT_ROWS, AnalysisOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    asked["pace"] = Pace(asked["pace"])
    log_file = asked.pop("log_file")
    asked |= {"columns": columns_of(statement), "keep_rows": KEPT_ROWS, "rows_folder": rows_folder()}
    if "findings" not in statement.tables:
        asked["top"] = 0  # which would be asked everything
    options = AnalysisOptions(**asked)
    with command_log(log_file) as log:
        use_one_heap()
        bounds: dict[str, Any] = {"most_rows": limit, "most_s": most_s, "is_parquet": file.form == "parquet"}
        rows, parquet, ended_by = asyncio.run(_asked(target, statement, options, log, **bounds))
    if rows is None:
        raise nothing_written(ended_by)
    if file.form == "parquet":
        file.write(parquet)
    else:
        with file.opened() as send:
            for piece in written_rows(rows, file.form, **file.text_options):
                send(piece)
    for note in rows.notes:
        click.echo(f"rtui: {note}", err=True)
    return 0 if ended_by is None else exit_status(ended_by)


async def _asked(
    target: Target, statement: Statement, options: AnalysisOptions, log: CommandLog, *, is_parquet: bool, **bounds: Any
) -> tuple[StatementRows | None, bytes, Signals | None]:
    """Return the rows, as Parquet too if that is wanted, and the signal that ended the inspection."""
    from rtui.analysis.formats.result_rows import StatementRows  # noqa: PLC0415
    from rtui.cli.run import analyse_files, run_analysis  # noqa: PLC0415
    from rtui.keyspace.text.display import SafeText  # noqa: PLC0415
    from rtui.server.analysis.statements import answer, statement_process  # noqa: PLC0415

    async with statement_process() as process:
        await process.check(statement)
        if target.keys is not None:
            result = analyse_files([target.keys], options)
        else:
            result = await run_analysis(target, options, log=log)
        report, rows = result.report, result.rows
        if report is None or (result.failure is not None and not report.head.coverage.keys):
            if result.failure is not None or result.ended_by is None:
                raise RtuiError("The analysis broke off", result.failure or "The server gave no key.")
            return None, b"", result.ended_by
        given = await answer(process, statement, report, rows, registry=options.registry, **bounds)
        table, notes = given.rows, given.notes
        if result.failure is not None:
            notes = (*notes, SafeText(f"The analysis broke off: {result.failure}"))
        found = () if is_parquet else table.rows()
        written = StatementRows(statement.text, tuple(table.columns), found, given.is_cut, notes)
        parquet = b""
        if is_parquet:
            from rtui.table.statement_tables import parquet_of  # noqa: PLC0415 - imports Polars

            parquet = parquet_of(table, {"statement": statement.text, **written.end(), "listed": table.height})
        return written, parquet, result.ended_by
