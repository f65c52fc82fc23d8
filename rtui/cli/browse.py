"""`rtui browse`: the keyspace as a tree, read-only; what `rtui [TARGET]` does."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options
from rtui.cli.help import Command
from rtui.server.files import is_first_start
from rtui.server.options import DEFAULT_DEMO_KEYS, DEFAULT_MEMORY_BUDGET_BYTES, KEPT_ROWS, MOST_KEPT_ROWS, BrowseOptions
from rtui.server.wire.target import Target

_SIZE: Final = re.compile(r"([0-9]{1,12})\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int:
    """Read 512M, 2G or a number of bytes."""
    if value is None:
        return DEFAULT_MEMORY_BUDGET_BYTES
    found = _SIZE.fullmatch(value.strip())
    if found is None or not int(found[1]):
        raise click.BadParameter("write it as 512M, 2G or a number of bytes", ctx, param)
    return int(found[1]) << _UNITS[found[2].lower()]


def _no_workers(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Refuse an option of commands that have no screen."""
    if value is not None:
        why = "an analysis in the interface uses one process"
        raise click.UsageError(f"--workers is for rtui report, check and patterns; {why}.", ctx)


def _has_places() -> bool:
    """Return whether there is a profile or a recent server to choose from."""
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
