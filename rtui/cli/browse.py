"""`rtui browse`, `open`, `history` and `replay`: the screens of a server, a report, samples and a recorded session.

Without a subcommand `rtui [TARGET]` is `browse`: the keyspace as a tree, read-only.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rtui.cli import options as opt
from rtui.cli.connection import FILE_NAME, ConnectionOptions, Number, WholeNumber, connection_options
from rtui.cli.help import Command
from rtui.cli.output import STANDARD_STREAM, Output, OutputError
from rtui.keyspace.text.display import display_text
from rtui.keyspace.text.quantities import ValueSyntaxError, parse_size
from rtui.server.files import is_first_start
from rtui.server.options import DEFAULT_DEMO_KEYS, DEFAULT_MEMORY_BUDGET_BYTES, KEPT_ROWS, MOST_KEPT_ROWS, BrowseOptions
from rtui.server.wire.target import Target


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int:
    try:
        size = DEFAULT_MEMORY_BUDGET_BYTES if value is None else parse_size(value.strip())
    except ValueSyntaxError:
        size = 0
    if not size:
        raise click.BadParameter("write it as 512M, 2G or a number of bytes", ctx, param)
    return size


def _no_workers(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        why = "an analysis in the interface uses one process"
        raise click.UsageError(f"--workers is for rtui report, check and patterns; {why}.", ctx)


def _has_places() -> bool:
    from rtui.server.user.known_servers import Profiles, RecentServers  # noqa: PLC0415 - when it is wanted

    return bool(Profiles().names() or RecentServers().servers())


@click.command(
    "browse",
    cls=Command,
    examples=("rtui redis://app@10.0.0.5:6379/0 --registry keys.toml", "rtui --demo"),
    codes={0: "left with q"},
)
@connection_options
@opt.scope_options
@click.option(
    "--memory-budget",
    "memory_budget_bytes",
    metavar="SIZE",
    callback=_size,
    help="Memory for names, then counts alone (512M).",
)
@click.option(
    "--keep-rows",
    "keep_rows",
    metavar="N",
    type=WholeNumber(0, MOST_KEPT_ROWS),
    help=f"Analysed rows kept to answer queries ({KEPT_ROWS:,}).",
)
@click.option("--resume/--no-resume", default=True, help="Go on with an unfinished scan (on).")
@opt.columns_option
@click.option("--workers", callback=_no_workers, expose_value=False, hidden=True)
@opt.registry_options
@opt.keep_option
@opt.log_option
@opt.record_option
@opt.appearance_options
@opt.demo_options
@click.help_option("--help")
def command(connection: ConnectionOptions, **given: Any) -> None:
    """Browse a Redis or Valkey keyspace as a tree, read-only."""
    choice = opt.registry_choice(given)
    target = Target() if given["demo"] else connection.target()
    chooses_server = not given["demo"] and not connection.names_server() and _has_places()
    registry = choice.load(target)
    opt.take_separators(given, registry)
    options = BrowseOptions(
        target=target,
        chooses_server=chooses_server,
        registry_choice=choice,
        registry=registry,
        **opt.terminal_options(),
        **given,
    )
    opt.require_terminal("browsing needs one")
    options = replace(options, is_first_start=is_first_start())
    if not options.demo:
        from rtui.tui.run import run  # noqa: PLC0415 - the help must not wait for the interface

        with opt.asked_server(target, None) as server:
            if target.dump is not None:
                options = replace(options, target=server, resume=False, keep=False)
            sys.exit(run(options))
    from rtui.demo.load import demo_server  # noqa: PLC0415 - only the demo needs it

    with demo_server(options.demo_keys, day=options.demo_day) as demo:
        from rtui.tui.run import run  # noqa: PLC0415 - imported while the first keys arrive

        if options.demo_keys == DEFAULT_DEMO_KEYS:  # the number of the earlier report
            demo.keep_earlier()
        options = replace(options, target=demo.target, resume=False, reports_folder=demo.reports_folder)
        options = replace(options, is_filling=lambda: demo.is_loading)
        sys.exit(run(options))


@click.command(
    "open",
    cls=Command,
    examples=("rtui open report.json --since earlier.json", "rtui open samples.jsonl"),
    codes={4: "", 5: ""},
)
@click.argument("file", metavar="FILE", type=FILE_NAME)
@click.option("--since", metavar="EARLIER", type=FILE_NAME, help="An earlier file: show changes since.")
@click.option("--report", "report_name", metavar="REPORT", type=FILE_NAME, help="Report of the keys, for samples.")
@opt.registry_options
@opt.appearance_options
@click.help_option("--help")
def open_command(
    file: str, since: str | None, report_name: str | None, ascii_only: bool, theme: str | None, **asked: Any
) -> None:
    """Show a report (rtui report -o FILE.json), or samples (rtui health -o FILE.jsonl), on the screen.

    FILE and EARLIER may also be kept reports, such as TARGET@yesterday. Rules that need to look at keys are judged as
    far as the report was made with the registry.
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


@click.command(
    "history",
    cls=Command,
    examples=(
        "rtui history prod:6379 --open 3        show the third of the list",
        "rtui diff prod:6379@yesterday prod:6379@latest",
    ),
    codes={2: "usage error, or --open names no report", 4: ""},
)
@connection_options
@opt.result_options("text", "json")
@click.option("--open", "number", type=WholeNumber(1), metavar="N", help="Show the report of this number.")
@opt.appearance_options
@click.help_option("--help")
def history_command(
    connection: ConnectionOptions, file: Output, number: int | None, ascii_only: bool, theme: str | None
) -> None:
    """List the kept reports of a server, or of all, the newest first, without a server.

    Each analysis that ends is kept unless --no-keep is given: up to 30 reports and 64 MiB of a server and database, of
    50 of them. Beyond that the oldest go, the first of each day last. They are gzipped JSON, readable by you only.
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
        if text := (kept_json if file.form == "json" else kept_text)(found, now_s):
            file.write(f"{text}\n")
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
    opt.require_terminal("a report is shown on one")
    options = BrowseOptions(ascii_only=ascii_only, theme=theme, no_color=bool(os.environ.get("NO_COLOR")))
    from rtui.tui.run import run_report  # noqa: PLC0415

    sys.exit(run_report(report, options))


@click.command(
    "replay",
    cls=Command,
    examples=("rtui replay session.jsonl.gz --speed 4", "rtui replay session.jsonl.gz -o frame.svg --at 12.5"),
    codes={4: ""},
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--speed", type=Number(0.1, 100), default=1.0, metavar="N", help="N times as fast (1).")
@click.option("--step", is_flag=True, help="Begin paused; . shows the next key.")
@click.option(
    "-o",
    "--output",
    "--to",
    "picture",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the screen to FILE.svg or .txt; - for stdout.",
)
@click.option("--at", "at_s", type=Number(0), metavar="SECONDS", help="Moment of --output (the end).")
@click.help_option("--help")
def replay_command(file: Path, speed: float, step: bool, picture: Path | None, at_s: float | None) -> None:
    """Play a session that rtui --record FILE has recorded, without a server.

    Space pauses, . goes to the next key, + and - change the speed, q leaves. A recording can't write files, start
    programs or reach the clipboard, whatever its keys are.
    """
    if at_s is not None and picture is None:
        raise click.UsageError("--at says when --output is.")
    if picture is not None and str(picture) != "-" and picture.suffix not in (".svg", ".txt"):
        raise click.UsageError("The picture is .svg or .txt.")
    if picture is None:
        opt.require_terminal("a session is played on one")
    from rtui.server.analysis.table_import import import_ahead  # noqa: PLC0415 - the help must not wait for all this
    from rtui.server.recording.document import read_recording  # noqa: PLC0415
    from rtui.server.recording.player import confine  # noqa: PLC0415

    recording = read_recording(file.expanduser())
    import_ahead()  # it sets the environment, which a replay may not
    if picture is None:
        from rtui.tui.replay import run_replay  # noqa: PLC0415

        confine()
        sys.exit(run_replay(recording, speed=speed, is_paused=step))
    import asyncio  # noqa: PLC0415 - completion must not wait for it

    from rtui.tui.replay import picture_of  # noqa: PLC0415

    until_ms = float("inf") if at_s is None else 1000 * at_s
    if str(picture) == "-":
        confine()
        click.echo(asyncio.run(picture_of(recording, until_ms, is_svg=False)), nl=False)
        return
    try:
        with picture.open("w", encoding="utf-8") as out:
            confine()
            out.write(asyncio.run(picture_of(recording, until_ms, is_svg=picture.suffix == ".svg")))
    except OSError as error:
        raise OutputError(str(picture), error) from None
