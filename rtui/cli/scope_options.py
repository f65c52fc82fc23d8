"""Which keys, how their names are split and how hard the server is asked: the same options for all that scan."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, get_args

import click

from rtui.keyspace.glob import PatternError, check_pattern
from rtui.server.browse_options import PaceName


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> bytes | None:
    """Take the very bytes that were given; none at all is refused."""
    if value == "":
        raise click.BadParameter("it is empty", ctx, param)
    return None if value is None else os.fsencode(value)


def _all_bytes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[bytes, ...]:
    """Take each of several, once."""
    found = [_bytes(ctx, param, value) for value in values]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _pattern(ctx: click.Context, param: click.Parameter, value: str | None) -> bytes | None:
    """Take a glob within the bounds of what is sent."""
    raw = _bytes(ctx, param, value)
    try:
        return None if raw is None else check_pattern(raw)
    except PatternError as error:
        raise click.BadParameter(str(error), ctx, param) from None


_OPTIONS: Final = (
    click.option(
        "--separator",
        "separators",
        metavar="TEXT",
        multiple=True,
        callback=_all_bytes,
        help="What ends a segment (:); may be repeated.",
    ),
    click.option("--match", metavar="GLOB", callback=_pattern, help="Only keys that match; the server filters."),
    click.option("--type", "kind", metavar="TYPE", callback=_bytes, help="Only keys of this type."),
    click.option(
        "--pace", type=click.Choice(get_args(PaceName)), default="gentle", help="How hard the server is asked (gentle)."
    ),
)


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command's function: it takes `separators`, `match` and `kind` as bytes, and `pace` by name."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
