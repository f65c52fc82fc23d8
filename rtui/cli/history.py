"""`rtui history`: the reports of earlier passes that are kept, of one server or of all."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

import click

from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options
from rtui.cli.options import appearance_options, format_option, require_terminal
from rtui.keyspace.text.display import display_text
from rtui.server.options import BrowseOptions

_EPILOG: Final = """\
Each analysis that ends, on screen or by rtui report, is kept unless --no-keep is given: up to 30 reports and 64 MiB
of a server and database, of 50 of them. Beyond that the oldest go, but the first of each day goes last. The files are
JSON reports compressed with gzip, and readable by you only; they can be deleted like any others. Findings
are those that rtui check lists without a registry.

\b
  rtui history prod:6379                             list them, with the path of each
  rtui history prod:6379 --open 3                    show the third of the list
  rtui diff prod:6379@yesterday prod:6379@latest     compare two
"""


@click.command("history", epilog=_EPILOG)
@connection_options
@format_option(("text", "json"), "As what (text).")
@click.option("--open", "number", type=WholeNumber(1), metavar="N", help="Show the report of this number.")
@appearance_options
@click.help_option("--help")
def command(
    connection: ConnectionOptions, form: str | None, number: int | None, ascii_only: bool, theme: str | None
) -> None:
    """List the reports that rtui has kept, the newest first; no server is asked.

    TARGET as for browsing; without one, all servers. The exit code is 2 where --open names no report.
    """
    from rtui.cli.files import kept_json, kept_text, read_report  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.analysis.kept_reports import KeptReports, NotKeptError, all_kept  # noqa: PLC0415

    if connection.names_server() or connection.db is not None:
        target = connection.target()
        found = [KeptReports(target.label, target.db)]
    elif number is not None:
        raise click.UsageError("Name the server whose report is to be opened.")
    else:
        found = all_kept()
    now_s = time.time()
    if number is None:
        if text := (kept_json if form == "json" else kept_text)(found, now_s):
            click.echo(text)
        else:
            click.echo("No report is kept: each analysis that ends is, unless --no-keep is given.", err=True)
        for unreadable in (path for kept in found for path in kept.unreadable):
            click.echo(f"rtui: {display_text(str(unreadable))} can't be read, and can be deleted", err=True)
        return
    try:
        path = found[0].find(str(number), now_s)
    except NotKeptError as error:
        raise click.UsageError(str(error)) from None
    report = read_report(str(path))
    require_terminal("a report is shown on one")
    options = BrowseOptions(ascii_only=ascii_only, theme=theme, no_color=bool(os.environ.get("NO_COLOR")))
    from rtui.tui.run import run_report  # noqa: PLC0415

    sys.exit(run_report(report, options))
