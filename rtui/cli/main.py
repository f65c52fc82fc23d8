"""The `rtui` command: each subcommand is the module of its name, loaded when it is called; the default is `browse`."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import socket
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from signal import SIGINT
from typing import Final, NoReturn

import click

import rtui
import rtui.cli
from rtui.cli.output import ReaderGone, open_standard_streams
from rtui.embedded.dump_head import is_dump
from rtui.keyspace.text.matching import nearest_word
from rtui.server.options import RegistryFileError
from rtui.server.user.ending_signals import EndedBySignal, exit_status, heeded, raise_at_once
from rtui.server.wire.errors import ExitCode, InternalError, RtuiError

DEBUG_VARIABLE: Final = "RTUI_DEBUG"
"""If set, a bug in rtui shows its traceback."""

DEFAULT_COMMAND: Final = "browse"
"""The subcommand that runs when the first argument is not one."""

GC_THRESHOLD: Final = 100_000
"""Garbage is looked for after so many new objects: at the default, 700, that took an eighth of the time until the first
rows, in which modules are imported and next to nothing becomes garbage."""

_SUMMARY: Final = re.compile(r'"""`rtui ([a-z]+)`: (.+?)\.?"""')
_WORD: Final = re.compile(r"[A-Za-z-]{2,20}")
"""A word that may be meant as a subcommand."""

_NEARLY: Final = 0.7
"""How much alike a word and a subcommand are at least that is probably meant."""

ENGINE: Final = "rtui.server.engine"
"""The package that can't be imported where it was not built."""

_GROUP_OPTIONS: Final = frozenset({"--help", "--version"})


class Subcommands(click.Group):
    """A group whose commands are the modules in this folder that begin with the command's name and summary."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return list(command_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the subcommand of this name; return None if there is none."""
        if cmd_name not in command_names():
            return None
        command: click.Command = importlib.import_module(f"rtui.cli.{cmd_name}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `browse` unless the first argument is a subcommand, --help or --version; it also opens dumps."""
        if args[:1] == ["open"] and any(is_dump(Path(one)) for one in args[1:]):
            args = [DEFAULT_COMMAND, *args[1:]]
        if not args or not (args[0] in _GROUP_OPTIONS or self.get_command(ctx, args[0])):
            if args:
                check_command(args[0])
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of `browse`, and the subcommands."""
        browse = self.get_command(ctx, DEFAULT_COMMAND)
        if browse is None:
            raise click.UsageError("the browse command is missing")
        browsing = click.Context(browse, info_name=ctx.info_name, max_content_width=ctx.max_content_width)
        browse.format_usage(browsing, formatter)
        browse.format_help_text(browsing, formatter)
        self.format_commands(ctx, formatter)
        click.Command.format_options(browse, browsing, formatter)
        browse.format_epilog(browsing, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and summary of each subcommand, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name) or "") for name in self.list_commands(ctx)])


@cache
def command_names() -> tuple[str, ...]:
    """Return the names of all subcommands."""
    modules = sorted(module.name for module in pkgutil.iter_modules(rtui.cli.__path__))
    return tuple(name for name in modules if summary(name) is not None)


def check_command(word: str) -> None:
    """Raise a usage error for a first argument that nearly is a subcommand, unless a host of that name is known."""
    if _WORD.fullmatch(word) is None:
        return
    meant = {**{name: name for name in command_names()}, "help": "--help", "version": "--version"}
    near = nearest_word(word.lower(), meant, least=_NEARLY)
    if near is None:
        return
    try:
        socket.getaddrinfo(word, None)
    except OSError:
        text = f"There is no command {word}, and no host of that name is known. Did you mean rtui {meant[near]}?"
        raise click.UsageError(text) from None


@cache
def summary(name: str) -> str | None:
    """Return the summary of a subcommand from the first line of its module; None for other modules."""
    first = (pkgutil.get_data("rtui.cli", f"{name}.py") or b"").partition(b"\n")[0].decode()
    found = _SUMMARY.fullmatch(first)
    return found[2] if found is not None and found[1] == name else None


def engine_state() -> str:
    """Return whether the engine was built."""
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
    """Run a command line and return its exit code; errors are printed on standard error."""
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
    """Print an error on standard error; return its exit code."""
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
    """The console script."""
    gc.set_threshold(GC_THRESHOLD)
    open_standard_streams()
    raise_at_once(*heeded())
    sys.exit(run(sys.argv[1:]))
