"""`rtui open`: a report from a file on the screen, without a server."""

from __future__ import annotations

import sys

import click

from rtui.cli.options import appearance_options, require_terminal, terminal_options
from rtui.server.options import BrowseOptions


@click.command("open")
@click.argument("file", metavar="FILE")
@appearance_options
@click.help_option("--help")
def command(file: str, ascii_only: bool, theme: str | None) -> None:
    """Show a report that `rtui report --format json` wrote; every panel works, no server is asked.

    FILE may also be a report that rtui has kept, such as TARGET@yesterday; see rtui history. The exit code is 2 if
    FILE can't be read.
    """
    from rtui.cli.report_file import STANDARD_STREAM, read_report  # noqa: PLC0415 - the help must not wait for it

    if file == STANDARD_STREAM:
        raise click.UsageError("Standard input is the keyboard here: name a file.")
    report = read_report(file)
    require_terminal("a report is shown on one")
    options = BrowseOptions(ascii_only=ascii_only, theme=theme, **terminal_options())
    from rtui.tui.run import run_report  # noqa: PLC0415

    sys.exit(run_report(report, options))
