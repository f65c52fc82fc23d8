"""The `rtui` command: a subcommand is the file of its name, loaded when it is called; without one it browses."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

import click

import rtui
import rtui.cli
from rtui.server.wire.errors import RtuiError, TargetError

DEBUG_VARIABLE: Final = "RTUI_DEBUG"
"""Set to anything, it makes a fault of rtui show its traceback."""

DEFAULT: Final = "browse"
"""The subcommand that runs when the first argument is none."""

FAILED: Final = 1
"""Exit code of what went wrong with a server, or with rtui."""

USAGE: Final = 2
"""Exit code of a command line, variable or profile that can't be understood, as click has it."""

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""

_NAME: Final = re.compile(r"[a-z]+")
_SUMMARY: Final = re.compile(r'"""`rtui ([a-z]+)`: (.+?)\.?"""')
_GROUP_OPTIONS: Final = frozenset({"--help", "--version"})


class Subcommands(click.Group):
    """A group whose commands are the modules beside this one that define `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all of them."""
        modules = sorted(module.name for module in pkgutil.iter_modules(rtui.cli.__path__))
        return [name for name in modules if summary(name) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the one called `cmd_name`, if there is one."""
        if not _NAME.fullmatch(cmd_name) or cmd_name == "main":
            return None
        try:
            module = importlib.import_module(f"rtui.cli.{cmd_name}")
        except ModuleNotFoundError as error:
            if error.name != f"rtui.cli.{cmd_name}":
                raise
            return None
        found = getattr(module, "command", None)
        return found if isinstance(found, click.Command) else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Browse unless the first argument says otherwise."""
        if not args or not (args[0] in _GROUP_OPTIONS or self.get_command(ctx, args[0])):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of browsing, and the subcommands."""
        browse = self.get_command(ctx, DEFAULT)
        if browse is None:
            raise click.UsageError("the browse command is missing")
        browsing = click.Context(browse, info_name=ctx.info_name, max_content_width=ctx.max_content_width)
        browse.format_usage(browsing, formatter)
        browse.format_help_text(browsing, formatter)
        self.format_commands(ctx, formatter)
        click.Command.format_options(browse, browsing, formatter)
        browse.format_epilog(browsing, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name each with its summary, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name) or "") for name in self.list_commands(ctx)])


def summary(name: str) -> str | None:
    """What a subcommand is, from the first line of its file; `None` for a file that is none."""
    first = (pkgutil.get_data("rtui.cli", f"{name}.py") or b"").partition(b"\n")[0].decode()
    found = _SUMMARY.fullmatch(first)
    return found[2] if found is not None and found[1] == name else None


@click.group(cls=Subcommands, context_settings={"max_content_width": 100})
@click.version_option(rtui.__version__, prog_name="rtui")
@click.help_option("--help")
def group() -> None:
    """Hold the subcommands together."""


def run(args: Sequence[str]) -> int:
    """Run a command line; whatever happens ends in an exit code, with what to say on standard error."""
    try:
        group.main(list(args), prog_name="rtui", standalone_mode=False)
    except SystemExit as asked:
        return asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the only place: a fault ends in one line without anything secret
        return _report(error)
    return 0


def _report(error: Exception) -> int:
    """Say what went wrong on standard error; the exit code that goes with it."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, RtuiError):
        lines = [f"rtui: {error.title}", f"  {error.happened}", f"  {error.remedy}"]
        click.echo("\n".join(line for line in lines if line.strip()), err=True)
        return USAGE if isinstance(error, TargetError) else FAILED
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    elif os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    else:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}:{where.lineno}"  # noqa: PTH119 - a name for people
        click.echo(f"rtui: a fault of rtui itself ({type(error).__name__} at {place})", err=True)
        click.echo(
            f"  With {DEBUG_VARIABLE}=1 it shows more, parts of what a server answered maybe among it.", err=True
        )
    return FAILED


def main() -> NoReturn:
    """The console script."""
    sys.exit(run(sys.argv[1:]))
