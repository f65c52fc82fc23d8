"""`rtui acl`: the ACL line of a user that may do what rtui does, and nothing else."""

from __future__ import annotations

import re
import shlex
from typing import Final

import click

from rtui.server.guard.acl import (
    ON_REQUEST_GROUPS,
    OPTIONAL_GROUPS,
    AclError,
    Release,
    acl_line,
    parse_release,
    sentinel_acl_line,
)
from rtui.server.guard.spec import CommandGroup

DEFAULT_RELEASE = "redis-7.2"
"""The default server: newer ones and every Valkey accept its line, too."""

_NODE: Final = re.compile(r"[0-9A-Za-z._:\[\]-]+:[0-9]{1,5}", re.ASCII)
_WORDS: Final = re.compile(r"\([^)]*\)|\S+")
"""The arguments of a line; a selector in brackets is one."""


def _choice(groups: list[CommandGroup]) -> click.Choice[str]:
    return click.Choice([group.value for group in groups], case_sensitive=False)


def _release(ctx: click.Context, param: click.Parameter, value: str | None) -> Release | None:
    """Parse a server's product and version; a usage error names the valid ones."""
    try:
        return parse_release(value) if value is not None else None
    except AclError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _any_node(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the address of a node; raises a usage error."""
    if value is not None and (not _NODE.fullmatch(value) or value.startswith("-")):
        raise click.BadParameter("it is not HOST:PORT", ctx, param)
    return value


@click.command("acl")
@click.option(
    "--for",
    "release",
    callback=_release,
    metavar="SERVER",
    help=f"Product and version, such as redis-6.2, redis-8.10 or valkey-9.1.  [default: {DEFAULT_RELEASE}]",
)
@click.option("--user", default="rtui", show_default=True, metavar="NAME", help="Name of the user.")
@click.option("--hash", "sha256", metavar="SHA256", help="SHA-256 of the password in hex, instead of a placeholder.")
@click.option("--cluster", is_flag=True, help="Allow what a node of a cluster is asked.")
@click.option(
    "--on-every-node",
    "node",
    metavar="HOST:PORT",
    callback=_any_node,
    help="Print the redis-cli command that gives the line to every node of the cluster to which this one belongs.",
)
@click.option("--sentinel", is_flag=True, help="The user of a Sentinel instead, with the commands that Sentinels have.")
@click.option(
    "--with",
    "also",
    multiple=True,
    type=_choice(
        [group for group in OPTIONAL_GROUPS if group in ON_REQUEST_GROUPS and group is not CommandGroup.CLUSTER]
    ),
    help="Allow the commands of a module (a server without it rejects the line), reading settings, starting hot-key "
    "sessions, health (the slow log and its like, delays, the list of clients), or checking the names of renamed "
    "commands. May be repeated.",
)
@click.option(
    "--without",
    multiple=True,
    type=_choice([group for group in OPTIONAL_GROUPS if group not in ON_REQUEST_GROUPS]),
    help="Leave a group of commands out; what needs it says so. May be repeated.",
)
def command(
    release: Release | None,
    user: str,
    sha256: str | None,
    *,
    cluster: bool,
    node: str | None,
    sentinel: bool,
    also: tuple[str, ...],
    without: tuple[str, ...],
) -> None:
    """Print the ACL SETUSER line of the minimal user.

    Give it to redis-cli on its prompt, or put what follows ACL SETUSER behind the word user into the ACL file. Each
    server accepts only commands that it knows: name the version with --for.

    The nodes of a cluster do not tell each other their users: create it on each of them, replicas included, since any
    may be asked, and one that is added later lacks it.
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
    click.echo(line if node is None else _call_of(node, line))


def _call_of(node: str, line: str) -> str:
    """Return the shell command that sends a line to all nodes, for which redis-cli takes no argument with a hyphen.

    After `reset`, which forbids all commands, `nocommands` stands for `-@all`.
    """
    words = ["nocommands" if word == "-@all" else word for word in _WORDS.findall(line)]
    return " ".join(["redis-cli --cluster call", shlex.quote(node), *map(shlex.quote, words)])
