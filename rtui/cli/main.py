"""The `rtui` command: subcommands are loaded when they are called; the default is `browse`."""

from __future__ import annotations

import gc
import importlib
import os
import re
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT
from textwrap import fill
from typing import Final, NoReturn

import click
from click.shell_completion import CompletionItem

import rtui
from rtui.cli.help import CONNECTION_LINE
from rtui.cli.output import ReaderGone, open_standard_streams
from rtui.embedded.dump_head import is_dump
from rtui.keyspace.text.help_pages import PAGES
from rtui.keyspace.text.matching import nearest_word
from rtui.server.options import RegistryFileError
from rtui.server.user.ending_signals import EndedBySignal, exit_status, heeded, raise_at_once
from rtui.server.wire.errors import ExitCode, InternalError, RtuiError

DEBUG_VARIABLE: Final = "RTUI_DEBUG"
"""If set, a bug in rtui shows its traceback."""

DEFAULT_COMMAND: Final = "browse"
GC_THRESHOLD: Final = 100_000
"""Garbage is looked for after so many new objects: at the default, 700, that took an eighth of the time until the first
rows, in which modules are imported and next to nothing becomes garbage."""

COMMANDS: Final = {
    "acl": ("allowed:acl_command", "print an ACL user with just the rights that rtui needs"),
    "browse": ("browse:command", "browse keys as a tree: what rtui TARGET does"),
    "check": ("check:command", "list problems of keys by rules, with exit codes for CI"),
    "commands": ("allowed:commands_command", "list every command that rtui may send, with its bound"),
    "diff": ("report:diff_command", "compare two reports, with thresholds for CI"),
    "doctor": ("doctor:command", "versions, terminal and rights, for a bug report"),
    "export": ("report:export_command", "write a row for each key: Parquet, CSV, JSON lines"),
    "find": ("find:command", "list the keys that match a query"),
    "fleet": ("fleet:command", "state and findings of many servers in one table"),
    "health": ("health:command", "state, findings and metrics of a server or cluster"),
    "help": ("help:command", "print a page of the help: rtui help connection"),
    "history": ("browse:history_command", "list the reports of earlier passes that were kept"),
    "mcp": ("mcp:command", "let agents read a keyspace, by the Model Context Protocol"),
    "merge": ("report:merge_command", "make one report of several files of keys"),
    "open": ("browse:open_command", "show a report or samples from a file"),
    "patterns": ("patterns:command", "learn the patterns of the keys, draft a registry"),
    "replay": ("browse:replay_command", "play a recorded session"),
    "report": ("report:command", "report on memory, big and hot keys, expiry, slots, types"),
    "settings": ("settings:command", "show and change settings and keys"),
    "sql": ("sql:command", "ask keys by SQL: one SELECT over keys, patterns, findings"),
    "slot": ("slot:command", "hash slots of keys, and the nodes that serve them"),
}
"""The subcommands: module and attribute, and what they do."""

_WORD: Final = re.compile(r"[A-Za-z-]{2,20}")
_NEARLY: Final = 0.7
"""How much alike a word and a subcommand are at least that is probably meant."""

ENGINE: Final = "rtui.server.engine"
"""The package that can't be imported where it was not built."""

_GROUP_OPTIONS: Final = frozenset({"--help", "--version"})


class Subcommands(click.Group):
    """A group whose commands are loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"rtui.cli.{module}"), name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `browse` unless the first argument is a subcommand, --help or --version; it also opens dumps."""
        if not args and ctx.resilient_parsing:  # the first argument is being completed: it may become a subcommand
            return super().parse_args(ctx, args)
        if args[:1] == ["open"] and any(is_dump(Path(one)) for one in args[1:]):
            args = [DEFAULT_COMMAND, *args[1:]]
        if not args or not (args[0] in _GROUP_OPTIONS or self.get_command(ctx, args[0])):
            if args:
                check_command(args[0])
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        browse = self.get_command(ctx, DEFAULT_COMMAND)
        assert browse is not None  # noqa: S101 - it is among COMMANDS
        if incomplete.startswith("-"):
            return [*found, *browse.shell_complete(click.Context(browse, parent=ctx), incomplete)]
        return found or [CompletionItem(incomplete, type="file")]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(_HEAD)
        formatter.write("\nCommands:\n")
        formatter.write("".join(f"  {name:<17}{told}\n" for name, (_, told) in COMMANDS.items()))
        pages = fill(", ".join(PAGES), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        formatter.write(f"\nPages (rtui help says what is in each):\n{pages}\n")
        formatter.write(_FOOT)


_HEAD: Final = f"""\
Usage: rtui [OPTIONS] [TARGET]
       rtui COMMAND --help | rtui help PAGE

  Browse a Redis or Valkey keyspace as a tree, read-only. TARGET is host[:port],
  a URL (redis:// rediss:// unix:// sentinel://), a socket or a dump (dump.rdb).

  {CONNECTION_LINE}

Examples:
  rtui --demo                            sample keys, without a server
  rtui redis://app@10.0.0.5:6379/0       browse; ? shows the keys
"""

_FOOT: Final = """
Options of the screen: rtui browse --help. Version: rtui --version.
"""


def check_command(word: str) -> None:
    """Raise a usage error for a first argument that nearly is a subcommand, unless a host of that name is known."""
    if _WORD.fullmatch(word) is None:
        return
    meant = {**{name: name for name in COMMANDS}, "version": "--version"}
    near = nearest_word(word.lower(), meant, least=_NEARLY)
    if near is None:
        return
    try:
        socket.getaddrinfo(word, None)
    except OSError:
        text = f"There is no command {word}, and no host of that name is known. Did you mean rtui {meant[near]}?"
        raise click.UsageError(text) from None


def engine_state() -> str:
    try:
        importlib.import_module(ENGINE)
    except ImportError:
        return "not built"
    return "compiled"


@click.group(cls=Subcommands, context_settings={"max_content_width": 100})
@click.version_option(rtui.__version__, message=f"%(prog)s, version %(version)s\nengine: {engine_state()}")
@click.help_option("--help")
def group() -> None:
    """Group the subcommands."""


def run(args: Sequence[str]) -> int:
    try:
        code = _run(args)
        sys.stdout.flush()
    except ReaderGone:
        return ExitCode.READER_GONE
    except (click.Abort, KeyboardInterrupt) as error:
        ended = error.__cause__ if isinstance(error, click.Abort) else error
        return ended.exit_status if isinstance(ended, EndedBySignal) else exit_status(SIGINT)
    except Exception as error:  # noqa: BLE001 - the only place: a bug ends in one line without anything secret
        return _print_error(error)
    return code


def _run(args: Sequence[str]) -> int:
    try:
        group.main(list(args), prog_name="rtui", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.FAULT if end.code else ExitCode.FINE
    return ExitCode.FINE


def _print_error(error: Exception) -> int:
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, ImportError) and error.name == ENGINE:
        error = RtuiError("Not installed as a whole", str(error))
    if isinstance(error, RtuiError):
        others = error.others if isinstance(error, RegistryFileError) else ()
        lines = [f"rtui: {error.title}", *(f"  {line}" for line in (error.happened, *others, error.remedy))]
        click.echo("\n".join(line for line in lines if line.strip()), err=True)
        return error.exit_code
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    else:
        click.echo(f"rtui: {InternalError(error).happened.removesuffix('.')}", err=True)
        more = "it shows more, parts of what a server answered maybe among it."
        click.echo(f"  With {DEBUG_VARIABLE}=1 {more}", err=True)
    return ExitCode.FAULT


def main() -> NoReturn:
    gc.set_threshold(GC_THRESHOLD)
    open_standard_streams()
    raise_at_once(*heeded())
    sys.exit(run(sys.argv[1:]))
