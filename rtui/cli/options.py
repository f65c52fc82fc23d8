"""The connection options, spelt as in redis-cli, and how they, a URL, a profile and the environment add up."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, get_args

import click

from rtui.cli.profiles import Profiles
from rtui.keyspace.text.glob import PatternError, check_pattern
from rtui.server.browse_options import PaceName
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import MAX_DB, MAX_PORT, Secret, Target, Tls, parse_target

URL_VARIABLE: Final = "RTUI_URL"
"""Names the server when the command line does not."""

PASSWORD_VARIABLE: Final = "REDISCLI_AUTH"  # noqa: S105 - the name of a variable
"""A password that redis-cli takes too."""

HELP: Final = """\
\b
Which server, the first of these that is there:
  TARGET or -u, or -h -p -s, or --profile; one of them only
  the URL in RTUI_URL
  127.0.0.1:6379
Options such as -n, --user, --tls or -3 then change single parts of it.

\b
Which password, the first of these that is there:
  --askpass, -a, the URL's, the profile's, REDISCLI_AUTH

Others on this machine can read command lines. Keep a password out of them with --askpass, REDISCLI_AUTH, RTUI_URL or
a profile, not with -a or in TARGET.

\b
Profiles are tables in profiles.toml in your configuration folder (~/.config/rtui on
Linux), which only you may read:
  [prod-cache]
  url = "rediss://app@10.0.0.5:6380/0"
  password = "…"
  cacert = "/etc/ssl/our-ca.pem"
"""
"""What the help says below the options."""


@dataclass(frozen=True, slots=True)
class Given:
    """The connection options of one command line, as given; `target` makes sense of them."""

    place: tuple[str, ...]
    host: str | None
    port: int | None
    socket: str | None
    db: int | None
    password: str | None
    user: str | None
    askpass: bool
    url: str | None
    profile: str | None
    tls: bool
    cacert: str | None
    cacertdir: str | None
    cert: str | None
    key: str | None
    sni: str | None
    insecure: bool
    cluster: bool
    protocol: str | None

    def __repr__(self) -> str:
        return "<connection options>"

    def target(self, environment: Mapping[str, str] = os.environ) -> Target:
        """The server meant; asks for the password when told to. Raises `TargetError` and `click.UsageError`."""
        found = self._tls(self._place(environment))
        changes: dict[str, Any] = {}
        if self.db is not None:
            changes["db"] = self.db
        if self.user is not None:
            changes["user"] = self.user
        if self.cluster:
            changes["cluster"] = True
        if self.protocol is not None:
            changes["protocol"] = int(self.protocol)
        password = self._password(found, environment)
        return replace(found, password=password, **changes)

    def _place(self, environment: Mapping[str, str]) -> Target:
        if len(self.place) > 1:
            raise click.UsageError("Give one TARGET only.")
        by_parts = any(part is not None for part in (self.host, self.port, self.socket))
        ways = [bool(self.place), self.url is not None, by_parts, self.profile is not None]
        if sum(ways) > 1:
            raise click.UsageError("Name the server once: by TARGET, by -u, by -h, -p and -s, or by --profile.")
        if self.place:
            return parse_target(self.place[0])
        if self.url is not None:
            return parse_target(self.url)
        if self.profile is not None:
            return Profiles().target(self.profile)
        if by_parts:
            return self._parts()
        url = environment.get(URL_VARIABLE)
        if url:
            return _from_variable(url)
        return Target()

    def _parts(self) -> Target:
        if self.socket is None:
            plain = Target()
            return Target(host=self.host or plain.host, port=self.port or plain.port)
        if self.host is not None or self.port is not None:
            raise click.UsageError("Give either -s or -h and -p.")
        return Target(socket_path=str(Path(self.socket).absolute()))

    def _tls(self, found: Target) -> Target:
        """TLS is on when asked for, or when something is said that only TLS has."""
        parts = ("cacert", "cacertdir", "cert", "key", "sni")
        said = {part: getattr(self, part) for part in parts if getattr(self, part) is not None}
        if self.insecure:
            said["insecure"] = True
        if not (said or self.tls):
            return found
        if found.socket_path is not None:
            raise click.UsageError("A unix socket has no TLS.")
        return replace(found, tls=replace(found.tls or Tls(), **said))

    def _password(self, found: Target, environment: Mapping[str, str]) -> Secret | None:
        if self.askpass:
            return Secret(click.prompt("Password", hide_input=True, err=True, default="", show_default=False))
        if self.password is not None:
            return Secret(self.password)
        if found.password is not None:
            return found.password
        by_environment = environment.get(PASSWORD_VARIABLE)
        return Secret(by_environment) if by_environment else None


def _from_variable(url: str) -> Target:
    try:
        return parse_target(url)
    except TargetError as error:
        raise TargetError(f"{URL_VARIABLE} can't be read", error.happened, error.remedy) from None


_OPTIONS: Final = (
    click.argument("place", metavar="[TARGET]", nargs=-1),
    click.option("-h", "--host", metavar="HOST", help="Host name or address (127.0.0.1)."),
    click.option("-p", "--port", type=click.IntRange(1, MAX_PORT), metavar="PORT", help="Port (6379)."),
    click.option("-s", "--socket", metavar="PATH", help="Unix socket, instead of host and port."),
    click.option("-n", "--db", type=click.IntRange(0, MAX_DB), metavar="DB", help="Database number (0)."),
    click.option("-u", "--url", metavar="URL", help="The server as a URL, like TARGET."),
    click.option("--profile", metavar="NAME", help="The server of this name in the profile file."),
    click.option("--user", metavar="NAME", help="User, with a password from one of the places below."),
    click.option(
        "-a", "--pass", "password", metavar="PASSWORD", help="Password; others can read it in the process list."
    ),
    click.option("--askpass", is_flag=True, help="Ask for the password on the terminal."),
    click.option("--tls", is_flag=True, help="Use TLS; the other TLS options imply it."),
    click.option("--cacert", metavar="FILE", help="Authority that signed the server's certificate (the system's)."),
    click.option("--cacertdir", metavar="DIR", help="Folder of such authorities."),
    click.option("--cert", metavar="FILE", help="Client certificate."),
    click.option("--key", metavar="FILE", help="Its key."),
    click.option("--sni", metavar="NAME", help="Server name to ask for and to check the certificate against."),
    click.option("--insecure", is_flag=True, help="Accept any certificate."),
    click.option("-c", "--cluster", is_flag=True, help="The server is part of a cluster; its own keys are shown."),
    click.option("-2", "protocol", flag_value="2", help="Speak protocol 2 (the default)."),
    click.option("-3", "protocol", flag_value="3", help="Speak protocol 3 where the server knows it."),
)


def connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command's function: it takes the options as one `Given` under the name `connection`."""
    names = [field.name for field in fields(Given)]

    @functools.wraps(function)
    def collected(**parameters: Any) -> Any:
        given = Given(**{name: parameters.pop(name) for name in names})
        return function(connection=given, **parameters)

    decorated: Callable[..., Any] = collected
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


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


_SCOPE_OPTIONS: Final = (
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
    for option in reversed(_SCOPE_OPTIONS):
        function = option(function)
    return function
