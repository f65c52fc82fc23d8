"""`rtui open`: a report from a file on the screen, without a server."""

from __future__ import annotations

import sys
from typing import Any

import click

from rtui.cli.options import (
    appearance_options,
    registry_choice,
    registry_options,
    require_terminal,
    terminal_options,
)
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target


@click.command("open")
@click.argument("file", metavar="FILE")
@click.option("--since", metavar="EARLIER", help="Another report: show ▲▼ what has changed since, and what differs.")
@registry_options
@appearance_options
@click.help_option("--help")
def command(file: str, since: str | None, ascii_only: bool, theme: str | None, **asked: Any) -> None:
    """Show a report that `rtui report --format json` wrote; every panel works, no server is asked.

    FILE and EARLIER may also be reports that rtui has kept, such as TARGET@yesterday; see rtui history. The exit code
    is 2 if one of them can't be read.

    A registry sets severities and parameters of the rules that Findings shows, and says what keys are for and whose
    they are. How many keys of a pattern are not as expected, and which names break rules, is judged while keys are
    inspected: a report has it if it was made with the registry, as by rtui report --registry. Else Findings says which
    rules are not judged.
    """
    from rtui.cli.report_file import STANDARD_STREAM, read_report  # noqa: PLC0415 - the help must not wait for it

    if STANDARD_STREAM in (file, since):
        raise click.UsageError("Standard input is the keyboard here: name a file.")
    report = read_report(file)
    before = None if since is None else read_report(since)
    registry = registry_choice(asked).load(Target())
    require_terminal("a report is shown on one")
    options = BrowseOptions(registry=registry, ascii_only=ascii_only, theme=theme, **terminal_options())
    from rtui.tui.run import run_report  # noqa: PLC0415

    sys.exit(run_report(report, options, before))
