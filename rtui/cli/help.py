"""`rtui help`: what commands have in common: connecting, terms, formats, exit codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, Final

import click

from rtui.keyspace.text.help_pages import PAGES, page_text
from rtui.keyspace.text.matching import did_you_mean

_USUAL_CODES: Final = {
    0: "done",
    2: "usage error, or a file can't be read",
    4: "server unreachable or refusing, or connection lost for good",
    5: "output can't be written",
}

CONNECTION_LINE: Final = "Connection: -h -p -s -n -u -a --askpass --user --tls …: rtui help connection"

_WIDEST_OPTION: Final = 24
"""Characters of an option beside its text; that of a longer one stands below it."""

_UNLISTED: Final = frozenset({"demo_keys", "demo_day", "has_no_registry", "help", "dask_ca", "dask_cert", "dask_key"})
"""Options that stand with another one's help, or on its page."""


class Command(click.Command):
    """A command whose help fits on a screen: its own options, then notes, examples and exit codes."""

    def __init__(
        self,
        *given: Any,
        notes: str = "",
        examples: Sequence[str] = (),
        codes: Mapping[int, str] | None = None,
        **more: Any,
    ) -> None:
        """`notes` are lines below a heading, which is the first; `codes` say more of exit codes, empty for none."""
        super().__init__(*given, **more)
        self._notes, self.examples, self._codes = notes, examples, {} if codes is None else codes

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its own options, and a line for those of the connection, which have no help of their own."""
        declared = [one for one in self.get_params(ctx) if isinstance(one, click.Option) and not one.hidden]
        connects = any(one.help is None for one in declared)
        rows = [_row(one, ctx) for one in declared if one.help is not None and one.name not in _UNLISTED]
        if rows or connects:
            with formatter.section("Options"):
                if rows:
                    formatter.write_dl(rows, col_max=_WIDEST_OPTION)
                if connects:
                    formatter.write(f"  {CONNECTION_LINE}\n")
        codes = {code: text for code, text in sorted({**_USUAL_CODES, **self._codes}.items()) if text}
        written = "\n".join(f"{code:<5}{text}" for code, text in codes.items())
        title, _, notes = self._notes.partition("\n")
        for heading, text in ((title, notes), ("Examples:", "\n".join(self.examples)), ("Exit codes:", written)):
            if text:
                lines = (f"  {line}".rstrip() for line in text.strip("\n").split("\n"))
                formatter.write("\n".join(["", heading, *lines, ""]))


def _row(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Return names and help of an option; alternatives that don't fit beside its name stand in the help."""
    names = ", ".join(option.opts) + "".join(f" / {one}" for one in option.secondary_opts)
    text = option.help or ""
    if option.is_flag or option.is_bool_flag:
        return names, text
    metavar = option.make_metavar(ctx)
    if isinstance(option.type, click.Choice) and len(f"{names} {metavar}") > _WIDEST_OPTION:
        text, metavar = (
            f"{text.removesuffix('.')}: {', '.join(option.type.choices)}.",
            option.opts[-1].lstrip("-").upper(),
        )
    return f"{names} {metavar}", text


def _named_so(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    group = ctx.find_root().command
    commands = group.list_commands(ctx) if isinstance(group, click.Group) else []
    return [name for name in (*PAGES, *commands) if name.startswith(incomplete)]


@click.command(
    "help",
    cls=Command,
    examples=("rtui help connection", "rtui help find    as rtui find --help"),
    codes={4: "", 5: ""},
)
@click.argument("page", required=False, shell_complete=_named_so)
@click.help_option("--help")
@click.pass_context
def command(ctx: click.Context, page: str | None) -> None:
    """Print a page of the help; without PAGE, the list of pages."""
    group = ctx.find_root().command
    assert isinstance(group, click.Group)  # noqa: S101 - it is a subcommand

    width = min(100, get_terminal_size().columns)
    if page is None:
        click.echo("".join(f"{name:<17}{told}\n" for name, told in PAGES.items()))
        click.echo("rtui help PAGE prints one of them, rtui --help lists the commands.")
        return
    if page in PAGES:
        click.echo(page_text(page, width), nl=False)
    elif (asked := group.get_command(ctx, page)) is not None:
        click.echo(asked.get_help(click.Context(asked, info_name=f"rtui {page}", max_content_width=100)))
    else:
        near = did_you_mean(page, (*PAGES, *group.list_commands(ctx)))
        raise click.UsageError(f"There is no page {page!r}.{near} There is {', '.join(PAGES)}.")
