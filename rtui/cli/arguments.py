"""Arguments of the command line: whole numbers, seconds, terms, a TARGET; and errors that say how to write them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.server.wire.target import MAX_PORT

if TYPE_CHECKING:
    from rtui.analysis.query.query import Problem
    from rtui.keyspace.text.display import SafeText

_TERM: Final = re.compile(r"!?[A-Za-z]{1,16}(?:[<>]|:(?!//))")
"""The beginning of a possible term of the query language."""


class WholeNumber(click.IntRange):
    """A whole number within bounds; a usage error names them."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            bounds = (
                "" if self.min is None else f" from {self.min:,}" + (" on" if self.max is None else f" to {self.max:,}")
            )
            self.fail(f"{value!r} is not a whole number{bounds}.", param, ctx)


class Number(click.FloatRange):
    """A number within bounds, such as seconds; a usage error names them."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            least = f"above {self.min:g}" if self.min_open else f"from {self.min:g} {'on' if self.max is None else ''}"
            most = "" if self.max is None else f"to {self.max:g}"
            self.fail(f"{value!r} is not a number {f'{least}{most}'.strip()}.", param, ctx)


def is_term(text: str) -> bool:
    """Whether an argument is a term of the query language, such as `slot:2734`: it is never a server then."""
    if _TERM.match(text) is None:
        return False
    from rtui.analysis.query.query import HEAD  # noqa: PLC0415 - most arguments are none
    from rtui.analysis.query.terms import TERMS  # noqa: PLC0415

    head = HEAD.match(text.removeprefix("!"))
    return head is not None and head[1].lower() in TERMS


def in_shell(problem: Problem) -> SafeText:
    """Return the sentence about a part of a query, with the suggestion quoted for a shell."""
    meant = (shlex.quote(one) if '"' in one else " ".join(map(shlex.quote, one.split(" "))) for one in problem.meant)
    return replace(problem, meant=tuple(meant)).sentence


def check_place(place: Sequence[str]) -> None:
    """Raise a usage error unless there is at most one TARGET, which is neither a term nor a command that comes late."""
    from rtui.cli.main import command_names  # noqa: PLC0415 - which imports the subcommands

    if len(place) > 1 and place[0] in command_names():
        raise click.UsageError(f"The command comes before its options: rtui {place[0]} …")
    for text in place:
        if not text:
            raise click.UsageError("TARGET is empty: is a variable not set?")
        if is_term(text):
            name, value = re.split("[:<>]", text, maxsplit=1)
            is_port = value.isascii() and value.isdecimal() and 0 < int(value[:9]) <= MAX_PORT
            host = f" For a host of that name, write redis://{text}." if is_port and name.isalpha() else ""
            raise click.UsageError(f"{text!r} is a term of rtui find, not a server.{host}")
    if len(place) < 2:
        return
    both = f"{place[0]}:{place[1]}"
    meant = f" Did you mean {both}?" if len(place) == 2 and place[1].isascii() and place[1].isdecimal() else ""
    raise click.UsageError(f"Give one TARGET only.{meant}")


def check_host(host: str) -> None:
    """Raise a usage error for a --host that has a port or is a URL: it would be looked up as one name."""
    if not host:
        raise click.UsageError("--host is empty: is a variable not set?")
    if "://" in host:
        raise click.UsageError("--host takes the name of a host; a URL is the TARGET, or follows -u.")
    name, colon, port = host.partition(":")
    if colon and port.isascii() and port.isdecimal():
        raise click.UsageError(f"--host takes the name alone: write -h {name} -p {port}, or {host} as the TARGET.")
