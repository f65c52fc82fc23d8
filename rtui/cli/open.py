"""`rtui open`: a report, or samples of how a server was, from a file on the screen, without a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rtui.cli import options as opt
from rtui.cli.output import STANDARD_STREAM
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target


@click.command("open")
@click.argument("file", metavar="FILE")
@click.option("--since", metavar="EARLIER", help="An earlier file: show ▲▼ what has changed since, and what differs.")
@click.option("--report", "report_name", metavar="REPORT", help="Of the keys, for samples; as for rtui health.")
@opt.registry_options
@opt.appearance_options
@click.help_option("--help")
def command(
    file: str, since: str | None, report_name: str | None, ascii_only: bool, theme: str | None, **asked: Any
) -> None:
    """Show a report that `rtui report --format json` wrote, or samples of `rtui health -o samples.jsonl`.

    Every panel works, no server is asked.

    FILE and EARLIER may also be reports that rtui has kept, such as TARGET@yesterday; see rtui history. The exit code
    is 2 if one of them can't be read.

    A registry sets severities and parameters of the rules that Findings shows, and says what keys are for and whose
    they are. How many keys of a pattern are not as expected, and which names break rules, is judged while keys are
    inspected: a report has it if it was made with the registry, as by rtui report --registry. Else Findings says which
    rules are not judged.
    """
    from rtui.cli.files import earlier_samples, read_report, report_of_samples, samples_file  # noqa: PLC0415 - the help must not wait for it

    if STANDARD_STREAM in (file, since):
        raise click.UsageError("Standard input is the keyboard here: name a file.")
    look = {"ascii_only": ascii_only, "theme": theme, **opt.terminal_options()}
    if (samples := samples_file(Path(file))) is not None:
        before = None if since is None else earlier_samples(Path(since))
        registry, report = opt.registry_choice(asked).load(Target()), report_of_samples(report_name, samples)
        if not samples.nodes:
            raise click.UsageError(f"{file}: there is no sample in it.")
        opt.require_terminal("samples are shown on one")
        from rtui.server.health.session import SavedHealth  # noqa: PLC0415 - as above
        from rtui.tui.run import run_samples  # noqa: PLC0415

        health = SavedHealth(samples, Path(file).name, report=report, registry=registry, before=before)
        sys.exit(run_samples(health, BrowseOptions(registry=registry, **look)))
    if report_name is not None:
        raise click.UsageError("--report is for samples.")
    shown = read_report(file)
    earlier = None if since is None else read_report(since)
    registry = opt.registry_choice(asked).load(Target())
    opt.require_terminal("a report is shown on one")
    from rtui.tui.run import run_report  # noqa: PLC0415

    sys.exit(run_report(shown, BrowseOptions(registry=registry, **look), earlier))
