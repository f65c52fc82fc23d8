"""`rtui commands` and `rtui acl`: everything that rtui may send to a server, and a user who may send just that."""

from __future__ import annotations

import json
import re
import shlex
from io import StringIO
from itertools import groupby
from typing import Final

import click

from rtui.cli.help import Command
from rtui.cli.options import result_options
from rtui.cli.output import Output
from rtui.server.guard.acl import (
    OLDEST,
    ON_REQUEST_GROUPS,
    OPTIONAL_GROUPS,
    AclError,
    Release,
    acl_line,
    parse_release,
    sentinel_acl_line,
)
from rtui.server.guard.closed_list import SETTINGS, TABLE
from rtui.server.guard.command import MAX_BULK_KEY_BYTES
from rtui.server.guard.spec import FIRST_VALKEY, KEY, MAX_REQUEST_BYTES, CommandGroup, Spec, Version, format_bytes

TOUCHES = "†"
"""Marks commands that count as a use of the key."""

CONSENT = "§"
"""Marks commands that change something in the server."""

BULK = "‡"
"""Marks commands that may be sent for many keys at once."""


def _version(version: Version | None) -> str | None:
    return None if version is None else ".".join(map(str, version))


def _record(spec: Spec) -> dict[str, object]:
    return {
        "command": spec.name,
        "usage": spec.usage,
        "group": spec.group.value,
        "bounds": list(spec.bounds),
        "cost": spec.cost,
        "why": spec.why,
        "acl": spec.acl_rule,
        "since_redis": _version(spec.since),
        "since_valkey": _version(spec.since_valkey),
        "touches": spec.touches,
        "counts": spec.counts,
        "optional": not spec.is_required,
        "bulk": spec.in_bulk,
        "consent": spec.needs_consent,
        "evidence": None if spec.evidence is None else spec.evidence.words,
        "settings": list(SETTINGS) if spec.group is CommandGroup.SETTINGS else None,
    }


def _table_text(specs: list[Spec], *, is_styled: bool) -> str:
    from rich.console import Console  # noqa: PLC0415 - only here, so that JSON starts fast
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold")
    table.add_column("command and bounds", ratio=11)
    table.add_column("at worst", ratio=9)
    table.add_column("why it is safe", ratio=9)
    for group, members in groupby(specs, key=lambda spec: spec.group):
        table.add_row(Text(group.value.upper(), style="underline"))
        for spec in members:
            first = Text(spec.usage.replace("|", " | "), style="bold")
            for mark, applies in ((TOUCHES, spec.touches), (BULK, spec.in_bulk), (CONSENT, spec.needs_consent)):
                first.append(f" {mark}" if applies else "", "not bold")
            details = [bound for bound in spec.bounds if bound not in KEY.bounds]
            if spec.evidence is not None:
                details.append(f"only when known: {spec.evidence.words}")
            if spec.since is None:
                details.append(f"since Valkey {_version(spec.since_valkey)}")
            elif spec.since >= OLDEST["redis"]:
                valkey = "" if spec.since_valkey in (None, FIRST_VALKEY) else f", Valkey {_version(spec.since_valkey)}"
                details.append(f"since Redis {_version(spec.since)}{valkey}")
            for detail in details:
                first.append(f"\n{detail}", style="not bold dim")
            table.add_row(first, Text(spec.cost), Text(spec.why))
    settings = f"a setting is one of {', '.join(SETTINGS)}"
    notes = [
        f"{TOUCHES} counts as a use of the key unless CLIENT NO-TOUCH is on (Redis 7.2, Valkey)",
        f"{BULK} may be sent for many keys in one write, each key ≤ {format_bytes(MAX_BULK_KEY_BYTES)}",
        f"{CONSENT} changes something in the server, and is sent only after the user has agreed to it",
        *([settings] if any(spec.group is CommandGroup.SETTINGS for spec in specs) else []),
        f"every {', '.join(KEY.bounds)}, every request ≤ {format_bytes(MAX_REQUEST_BYTES)}",
    ]
    console = Console(file=None if is_styled else StringIO(), highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        console.print(table, *notes, sep="\n")
    return captured.get()


@click.command(
    "commands",
    cls=Command,
    examples=("rtui commands --group keyspace", "rtui commands -o commands.json"),
    codes={2: "usage error", 4: ""},
)
@result_options("text", "json", is_older=True)
@click.option(
    "--group",
    "groups",
    multiple=True,
    type=click.Choice([group.value for group in CommandGroup], case_sensitive=False),
    help="Only this group; may be repeated.",
)
@click.help_option("--help")
def commands_command(*, file: Output, groups: tuple[str, ...]) -> None:
    """Print the closed list of commands that rtui may send.

    Nothing else can be sent: every request is built from this list, and the bounds are checked each time.
    """
    wanted = set(map(CommandGroup, groups)) or set(CommandGroup)
    order = list(CommandGroup).index
    specs = sorted((spec for spec in TABLE if spec.group in wanted), key=lambda spec: order(spec.group))
    if file.form == "json":
        text = json.dumps([_record(spec) for spec in specs], ensure_ascii=False, indent=2) + "\n"
    else:
        text = _table_text(specs, is_styled=file.is_standard)
    file.write(text)


DEFAULT_RELEASE = "redis-7.2"
"""The default server: newer ones and every Valkey accept its line, too."""

_NODE: Final = re.compile(r"[0-9A-Za-z._:\[\]-]+:[0-9]{1,5}", re.ASCII)
_WORDS: Final = re.compile(r"\([^)]*\)|\S+")


def _choice(groups: list[CommandGroup]) -> click.Choice[str]:
    return click.Choice([group.value for group in groups], case_sensitive=False)


def _release(ctx: click.Context, param: click.Parameter, value: str | None) -> Release | None:
    try:
        return parse_release(value) if value is not None else None
    except AclError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _any_node(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and (not _NODE.fullmatch(value) or value.startswith("-")):
        raise click.BadParameter("it is not HOST:PORT", ctx, param)
    return value


@click.command(
    "acl",
    cls=Command,
    examples=(
        "rtui acl --for redis-8.0 --with health --with settings",
        "rtui acl --cluster --on-every-node 10.0.0.5:6379 | sh",
    ),
    codes={2: "usage error", 4: ""},
)
@click.option(
    "--for",
    "release",
    callback=_release,
    metavar="SERVER",
    help=f"Product and version, such as valkey-9.1 ({DEFAULT_RELEASE}).",
)
@click.option("--user", default="rtui", metavar="NAME", help="Name of the user (rtui).")
@click.option("--hash", "sha256", metavar="SHA256", help="SHA-256 of the password in hex.")
@click.option("--cluster", is_flag=True, help="Allow what nodes of a cluster are asked.")
@click.option(
    "--on-every-node", "node", metavar="HOST:PORT", callback=_any_node, help="Print a redis-cli command for all nodes."
)
@click.option("--sentinel", is_flag=True, help="The user of a Sentinel instead.")
@click.option(
    "--with",
    "also",
    multiple=True,
    type=_choice(
        [group for group in OPTIONAL_GROUPS if group in ON_REQUEST_GROUPS and group is not CommandGroup.CLUSTER]
    ),
    help="Allow more; may be repeated.",
)
@click.option(
    "--without",
    multiple=True,
    type=_choice([group for group in OPTIONAL_GROUPS if group not in ON_REQUEST_GROUPS]),
    help="Leave out commands; may be repeated.",
)
@result_options()
@click.help_option("--help")
def acl_command(
    release: Release | None,
    user: str,
    sha256: str | None,
    *,
    file: Output,
    cluster: bool,
    node: str | None,
    sentinel: bool,
    also: tuple[str, ...],
    without: tuple[str, ...],
) -> None:
    """Print the ACL SETUSER line of a user with just the rights that rtui needs.

    Type it into redis-cli, or put what follows ACL SETUSER behind the word user into the ACL file. Nodes of a cluster
    do not share users: create it on each, replicas included.
    """
    if release is None:
        release = parse_release(DEFAULT_RELEASE)
        click.echo(f"for {DEFAULT_RELEASE} and later and for every Valkey; name another server with --for", err=True)
    is_cluster = cluster or node is not None
    groups = {CommandGroup(name) for name in also} | ({CommandGroup.CLUSTER} if is_cluster else set())
    if sentinel and (groups or without):
        raise click.UsageError(
            "A Sentinel has none of what --cluster, --on-every-node, --with and --without are about."
        )
    try:
        if sentinel:
            line = sentinel_acl_line(release, user=user, sha256=sha256)
        else:
            line = acl_line(release, user=user, sha256=sha256, groups=groups, without=list(map(CommandGroup, without)))
    except AclError as error:
        raise click.UsageError(str(error)) from None
    if cluster and node is None:
        click.echo("for every node of the cluster, replicas included: --on-every-node prints one command", err=True)
    file.write(f"{line if node is None else _call_of(node, line)}\n")


def _call_of(node: str, line: str) -> str:
    """Return the shell command that sends a line to all nodes, for which redis-cli takes no argument with a hyphen.

    After `reset`, which forbids all commands, `nocommands` stands for `-@all`.
    """
    words = ["nocommands" if word == "-@all" else word for word in _WORDS.findall(line)]
    return " ".join(["redis-cli --cluster call", shlex.quote(node), *map(shlex.quote, words)])
