"""`rtui fleet`: state and findings of many servers, on a screen or once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import PASSWORD_VARIABLE, ConnectionOptions, asked_secret, check_place, connection_options
from rtui.cli.help import Command
from rtui.cli.output import METRICS, Output, failures_in
from rtui.registry.rules import Severity
from rtui.server.wire.errors import ExitCode, TargetError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.formats.fleet import FleetServer
    from rtui.registry.registry import Registry
    from rtui.server.options import RegistryChoice

FORMATS: Final = ("text", "json", "md", "html", *METRICS)
ROUND_S: Final = 1.0


def fleet_targets(
    connection: ConnectionOptions, files: Sequence[str], profiles: Sequence[str], labels: Sequence[str]
) -> list[Target]:
    """Return the servers that a command line names, each once; without any those of all profiles.

    The options of the connection apply to each TARGET and to the targets of files. `labels` are `name=value` that a
    server must have. Raises TargetError and click.UsageError.
    """
    # The help must not wait for it.
    from rtui.server.user.known_servers import Profiles, profile_targets, read_target_file, united  # noqa: PLC0415

    if connection.key_askpass or connection.sentinel_askpass:
        raise click.UsageError(
            "Of many servers only --askpass asks: use RTUI_KEY_PASSWORD, RTUI_SENTINEL_AUTH, profiles."
        )
    if connection.askpass:
        password = asked_secret("--askpass", "Password", PASSWORD_VARIABLE)
        connection = replace(connection, askpass=False, password=password.reveal())
    found = [_target(connection, place) for place in connection.place]
    alone = replace(connection, place=())
    if alone.names_server({}):
        found.append(alone.target())
    for name in files:
        found += read_target_file(name, lambda place: _target(connection, place))
    if profiles or not (found or files):
        if not profiles and not Profiles().names():
            raise click.UsageError("Name servers: TARGET …, --targets FILE, or --profiles; there is no profile.")
        found += profile_targets(profiles or ("*",))
    wanted = {one.partition("=")[::2] for one in labels}
    if any("=" not in one for one in labels):
        raise click.UsageError("--label takes NAME=VALUE.")
    return [one for one in united(found) if wanted <= {*one.labels}]


def _target(connection: ConnectionOptions, place: str) -> Target:
    check_place((place,))
    target = replace(connection, place=(place,), host=None, port=None, socket=None, url=None, profile=None).target()
    if target.dump is not None:
        raise TargetError("The target is not a server", f"{target.label} is a dump, which has no health.", "")
    return target


@click.command(
    "fleet",
    cls=Command,
    notes="""\
Targets:
A server, a cluster (all of its nodes) or sentinel://HOST,HOST/* for every
service of these Sentinels. A file has a target a line, labels behind it, and
comments: 10.0.0.5:6379 team=shop zone=a  # carts. profile:NAME is a profile;
its labels are in profiles.toml: labels.team = "shop". Without any target it
is about all profiles. Rules about keys need rtui check of each server.
""",
    examples=(
        "rtui fleet 10.0.0.5 10.0.0.6 cache:6380    a screen; Enter opens a server",
        "rtui fleet --targets prod.txt --group-by team -o fleet.json",
    ),
    codes={
        0: "all answer, with no finding as severe as --fail-on",
        1: "there are such findings",
        3: "no findings, but some rules were not checked",
        4: "no findings, but some servers were unreachable",
    },
)
@(lambda function: connection_options(function, arguments="[TARGET]..."))
@click.option("--targets", "files", metavar="FILE", multiple=True, help="File of targets; - for standard input.")
@click.option("--profiles", metavar="GLOB", multiple=True, help="Profiles by name: '*', 'prod-*'.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="Only servers with this label.")
@click.option("--group-by", "group_by", metavar="NAME", help="Sums by the values of a label.")
@opt.severity_option
@opt.result_options(*FORMATS)
@opt.registry_options
@opt.log_option
@opt.appearance_options
@click.option("--demo", "is_demo", is_flag=True, help="Show a few small servers of our own.")
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    *,
    files: tuple[str, ...],
    profiles: tuple[str, ...],
    labels: tuple[str, ...],
    group_by: str | None,
    fail_on: str,
    file: Output,
    log_file: Path | None,
    is_demo: bool,
    ascii_only: bool,
    theme: str | None,
    **asked: Any,
) -> None:
    """Show state, findings and main metrics of many servers; in a pipe, or with --format, print them once."""
    if is_demo and (files or profiles or labels):
        raise click.UsageError("--demo brings servers of its own.")
    if is_demo:
        connection.require_no_server()
        from rtui.demo.load import demo_fleet  # noqa: PLC0415 - only the demo needs it
    with failures_in(file, "fleet"), demo_fleet() if is_demo else nullcontext(list[Target]()) as demo:
        choice = opt.registry_choice(asked)
        targets = demo or fleet_targets(connection, files, profiles, labels)
        if file.is_terminal and sys.stdin.isatty() and not file.is_chosen and group_by is None:
            opt.require_terminal("the screen needs one; --format text prints")
            look = {"ascii_only": ascii_only, "theme": theme, **opt.terminal_options()}
            sys.exit(_shown(targets, choice, connection.timeout_s, log_file, look))
        servers, ended = _asked(targets, choice, connection.timeout_s, log_file)
        file.write(_written(servers, file, group_by))
    sys.exit(ended or _exit_code(servers, Severity(fail_on)))


def _shown(
    targets: Sequence[Target],
    choice: RegistryChoice,
    timeout_s: float | None,
    log_file: Path | None,
    look: dict[str, Any],
) -> int:
    from rtui.cli.run import command_log  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.health.fleet import Fleet  # noqa: PLC0415
    from rtui.server.options import BrowseOptions  # noqa: PLC0415
    from rtui.tui.run import run_fleet  # noqa: PLC0415

    registry_of = registries(choice)
    options = BrowseOptions(registry_choice=choice, registry=registry_of(Target()), **look)
    with command_log(log_file) as log:
        return run_fleet(Fleet(targets, log, registry_of=registry_of, limit_s=timeout_s), options)


def registries(choice: RegistryChoice) -> Any:
    """Return the function that gives the registry of a target; each file is read once. Raises as `choice.load`."""

    @cache
    def named(name: str | None) -> Registry | None:
        return choice.load(Target(registry=name))

    return lambda target: named(target.registry)


def _asked(
    targets: Sequence[Target], choice: RegistryChoice, timeout_s: float | None, log_file: Path | None
) -> tuple[list[FleetServer], int]:
    """Return the exit code of the signal that ended it, else 0; raises EndedBySignal before any server has answered."""
    from rtui.cli.run import cancelled_by_signals, command_log  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.health.fleet import Fleet  # noqa: PLC0415
    from rtui.server.user.ending_signals import EndedBySignal  # noqa: PLC0415

    registry_of = registries(choice)
    registry_of(Target())

    async def ask() -> tuple[list[FleetServer], int]:
        fleet = Fleet(targets, log, registry_of=registry_of, limit_s=timeout_s)
        servers: list[FleetServer] = []
        try:
            with cancelled_by_signals():
                try:
                    await fleet.look()
                    await asyncio.sleep(ROUND_S)
                    await fleet.look(only_answering=True)
                finally:
                    servers += fleet.servers
                    await fleet.close()
        except EndedBySignal as ended:
            if all(one.view is None for one in servers):
                raise
            return servers, ended.exit_status
        return servers, 0

    with command_log(log_file) as log:
        return asyncio.run(ask())


def _written(servers: Sequence[FleetServer], file: Output, group_by: str | None) -> str:
    from rtui.analysis.formats import written  # noqa: PLC0415 - the help must not wait for it
    from rtui.analysis.formats.fleet import fleet_json, fleet_page  # noqa: PLC0415

    if file.form == "json":
        return fleet_json(servers)
    if file.form in METRICS:
        from rtui.analysis.formats.openmetrics import fleet_metrics  # noqa: PLC0415 - of an extra

        return fleet_metrics(servers, file.form)
    page = fleet_page(servers, group_by=group_by, is_summary=file.form == "text")
    return written(page, file.form, **{"width": 110, **file.text_options})


def _exit_code(servers: Sequence[FleetServer], least: Severity) -> int:
    from rtui.analysis.findings.finding import severe_and_unjudged  # noqa: PLC0415 - the help must not wait for it

    is_found, unjudged = severe_and_unjudged([one.found for one in servers if one.found is not None], least)
    if is_found:
        return ExitCode.FOUND
    if any(one.is_missing for one in servers):
        return ExitCode.SERVER
    if unjudged:
        click.echo(f"rtui: not checked: {', '.join(unjudged)}", err=True)
        return ExitCode.UNKNOWN
    return ExitCode.FINE
