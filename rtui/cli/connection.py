"""The options that say which server to ask and how to connect: as in redis-cli, by URL, profile and environment.

Arguments of the command line: whole numbers, seconds, terms, a TARGET, and errors that say how to write them.
"""

from __future__ import annotations

import functools
import getpass
import os
import re
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

import click

from rtui.embedded.dump_head import is_dump
from rtui.server.files import is_keys_file
from rtui.server.guard.command import Secret
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import (
    MAX_DB,
    MAX_PORT,
    AddressMap,
    DumpFile,
    Login,
    ReplicaPolicy,
    Sentinels,
    Target,
    Timeouts,
    Tls,
    Way,
    checked_host,
    checked_proxy,
    parse_target,
)

if TYPE_CHECKING:
    from rtui.analysis.query.query import Problem
    from rtui.keyspace.text.display import SafeText

_TERM: Final = re.compile(r"!?[A-Za-z]{1,16}(?:[<>]|:(?!//))")


class WholeNumber(click.IntRange):
    """A whole number within bounds; a usage error names them."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
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
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            least = f"above {self.min:g}" if self.min_open else f"from {self.min:g} {'on' if self.max is None else ''}"
            most = "" if self.max is None else f"to {self.max:g}"
            self.fail(f"{value!r} is not a number {f'{least}{most}'.strip()}.", param, ctx)


FILE_NAME: Final = click.Path(readable=False)
"""The type of what may be the name of a file: shells complete it as one."""


def is_term(text: str) -> bool:
    """Whether an argument is a term of the query language, such as `slot:2734`: it is never a server then."""
    if _TERM.match(text) is None:
        return False
    from rtui.analysis.query.query import HEAD  # noqa: PLC0415 - most arguments are none
    from rtui.analysis.query.terms import TERMS  # noqa: PLC0415

    head = HEAD.match(text.removeprefix("!"))
    return head is not None and head[1].lower() in TERMS


def in_shell(problem: Problem) -> SafeText:
    meant = (shlex.quote(one) if '"' in one else " ".join(map(shlex.quote, one.split(" "))) for one in problem.meant)
    return replace(problem, meant=tuple(meant)).sentence


def check_place(place: Sequence[str]) -> None:
    """Raise a usage error unless there is at most one TARGET, which is neither a term nor a command that comes late."""
    from rtui.cli.main import COMMANDS  # noqa: PLC0415 - which loads subcommands

    if len(place) > 1 and place[0] in COMMANDS:
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


URL_VARIABLE: Final = "RTUI_URL"
"""Names the server when the command line does not."""

PASSWORD_VARIABLE: Final = "REDISCLI_AUTH"  # noqa: S105 - the name of a variable
"""Holds a password, as for redis-cli."""

SENTINEL_PASSWORD_VARIABLE: Final = "RTUI_SENTINEL_AUTH"  # noqa: S105 - the name of a variable
KEY_PASSWORD_VARIABLE: Final = "RTUI_KEY_PASSWORD"  # noqa: S105 - the name of a variable
_TLS_PARTS: Final = ("cacert", "cacertdir", "cert", "key", "sni")
READ_KEYS: Final = "rtui report, check, patterns, export, diff and open read it."
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The connection options of one command line, as given."""

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
    key_askpass: bool
    sni: str | None
    insecure: bool
    cluster: bool
    only_node: bool
    replicas: str | None
    zone: str | None
    protocol: str | None
    sentinel_user: str | None
    sentinel_askpass: bool
    sentinel_tls: bool
    password_command: str | None
    credential_provider: str | None
    via: tuple[str, ...]
    address_map: tuple[str, ...]
    proxy: str | None
    timeout_s: float | None
    server_binary: str | None
    force: bool

    def __repr__(self) -> str:
        return "<connection options>"

    def target(self, environment: Mapping[str, str] = os.environ, *, takes_keys: bool = False) -> Target:
        """Return the server to connect to; prompts for the password with --askpass.

        A file of keys is one if `takes_keys`. Raises `TargetError` and `click.UsageError`.
        """
        found = self._server(environment)
        if found.keys is not None:
            if not takes_keys:
                raise TargetError("The target is no server", f"{found.label} is a file of keys.", READ_KEYS)
            return found
        if found.socket_path is not None and Path(found.socket_path).is_file():
            happened = f"{found.label} is a file, not a socket that a server listens on."
            remedy = "rtui open shows reports, and samples that rtui health has written; rtui replay plays sessions."
            raise TargetError("The target is not a server", happened, remedy)
        tls = {name: getattr(self, name) for name in _TLS_PARTS if getattr(self, name) is not None}
        if self.insecure:
            tls["insecure"] = True
        if tls or self.tls:
            if found.socket_path is not None:
                raise click.UsageError("A unix socket has no TLS.")
            found = replace(found, tls=replace(found.tls or Tls(), **tls))
        changes: dict[str, Any] = {
            name: getattr(self, name) for name in ("db", "user", "replicas", "zone") if getattr(self, name) is not None
        }
        if self.cluster and self.only_node:
            raise click.UsageError("Give -c for the whole cluster or --only-node for one node of it.")
        if self.cluster or self.only_node:
            changes |= {"cluster": self.cluster, "only_node": self.only_node}
        if self.protocol is not None:
            changes["protocol"] = int(self.protocol)
        if self.askpass:
            changes["password"] = asked_secret("--askpass", "Password", PASSWORD_VARIABLE)
        elif self.password is not None:
            changes["password"] = Secret(self.password)
        elif found.password is None and environment.get(PASSWORD_VARIABLE):
            changes["password"] = Secret(environment[PASSWORD_VARIABLE])
        changes |= {"login": self._login(found), "way": self._way(found)}
        found = replace(found, sentinels=self._sentinels(found, environment), **changes)
        key_password = self._key_password(found.tls, environment)
        return found if key_password is None else found.with_key_password(key_password)

    def _key_password(self, tls: Tls | None, environment: Mapping[str, str]) -> Secret | None:
        if self.key_askpass:
            if tls is None or tls.cert is None:
                raise click.UsageError("--key-askpass needs --cert and --key.")
            return asked_secret("--key-askpass", "Passphrase of the key", KEY_PASSWORD_VARIABLE)
        if tls is None or tls.key_password is not None:
            return None if tls is None else tls.key_password
        given = environment.get(KEY_PASSWORD_VARIABLE)
        return Secret(given) if given else None

    def _login(self, found: Target) -> Login | None:
        if self.password_command is not None and self.credential_provider is not None:
            raise click.UsageError("Give --password-command or --credential-provider.")
        if self.password_command is not None:
            return Login(command=Secret(self.password_command))
        return found.login if self.credential_provider is None else Login(provider=self.credential_provider)

    def _way(self, found: Target) -> Way:
        way = found.way
        if found.socket_path is not None and (self.via or self.address_map or self.proxy):
            raise click.UsageError("A unix socket has no way that leads to it.")
        if self.via and self.proxy:
            raise click.UsageError("Give --via or --proxy: ssh's own ProxyCommand takes a proxy, too.")
        if self.via or self.proxy:
            way = replace(
                way, via=tuple(map(checked_host, self.via)), proxy=checked_proxy(self.proxy) if self.proxy else None
            )
        if self.timeout_s is not None:
            way = replace(way, timeouts=Timeouts.within(self.timeout_s))
        return replace(way, addresses=AddressMap(self.address_map)) if self.address_map else way

    def _sentinels(self, found: Target, environment: Mapping[str, str]) -> Sentinels | None:
        """Return the Sentinels with their options; they take the certificates of the servers."""
        sentinels, changes = found.sentinels, dict[str, Any]()
        if self.sentinel_user is not None:
            changes["user"] = self.sentinel_user
        if self.sentinel_askpass:
            changes["password"] = asked_secret(
                "--sentinel-askpass", "Password of the Sentinels", SENTINEL_PASSWORD_VARIABLE
            )
        elif environment.get(SENTINEL_PASSWORD_VARIABLE) and sentinels is not None and sentinels.password is None:
            changes["password"] = Secret(environment[SENTINEL_PASSWORD_VARIABLE])
        if self.sentinel_tls:
            changes["tls"] = replace(found.tls or Tls(), sni=None)
        if changes and sentinels is None:
            raise click.UsageError("Without sentinel://host,host/service there are no Sentinels.")
        return None if sentinels is None else replace(sentinels, **changes)

    def require_no_server(self) -> None:
        """Raise a usage error where something says which server, or how to connect: with --demo it would be ignored."""
        check_place(self.place)
        given = next((one.name for one in fields(self) if getattr(self, one.name) not in (None, False, ())), None)
        if given is not None:
            named = f"--{_OPTION_OF.get(given, given).replace('_', '-')}"
            what = {"place": "A TARGET", "protocol": f"-{self.protocol}"}.get(given, named)
            raise click.UsageError(f"{what} does not go with --demo, which brings a server of its own.")

    def names_server(self, environment: Mapping[str, str] = os.environ) -> bool:
        named = (self.url, self.profile, self.host, self.port, self.socket)
        return bool(self.place or environment.get(URL_VARIABLE)) or any(one is not None for one in named)

    def _dump_or_server(self, place: str) -> Target:
        path = Path(place)
        if is_keys_file(path):
            return Target(keys=path.absolute())
        if not is_dump(path) and path.suffix != ".rdb":
            return parse_target(place)
        program = None if self.server_binary is None else Path(self.server_binary).absolute()
        return Target(dump=DumpFile(path.absolute(), program, is_forced=self.force))

    def _server(self, environment: Mapping[str, str]) -> Target:
        check_place(self.place)
        by_parts = any(part is not None for part in (self.host, self.port, self.socket))
        ways = [bool(self.place), self.url is not None, by_parts, self.profile is not None]
        if sum(ways) > 1:
            raise click.UsageError("Name the server once: by TARGET, by -u, by -h, -p and -s, or by --profile.")
        if self.place:
            return self._dump_or_server(self.place[0])
        if self.url is not None:
            if not self.url:
                raise click.UsageError("--url is empty: is a variable not set?")
            return parse_target(self.url)
        if self.profile is not None:
            from rtui.server.user.known_servers import Profiles  # noqa: PLC0415 - only those who use profiles wait for it

            return Profiles().target(self.profile)
        if self.socket is not None:
            if self.host is not None or self.port is not None:
                raise click.UsageError("Give either -s or -h and -p.")
            return Target(socket_path=str(Path(self.socket).absolute()))
        if self.host is not None:
            check_host(self.host)
        default = Target()
        url = environment.get(URL_VARIABLE)
        if by_parts or not url:
            return Target(host=self.host or default.host, port=self.port or default.port)
        try:
            return parse_target(url)
        except TargetError as error:
            raise TargetError(f"{URL_VARIABLE} can't be read", error.happened, error.remedy) from None


_OPTION_OF: Final = {"password": "pass", "address_map": "map", "timeout_s": "timeout"}


def asked_secret(option: str, what: str, variable: str) -> Secret:
    """Ask for a secret on the terminal; `variable` of the environment may hold it instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return Secret(click.prompt(what, hide_input=True, err=True, default="", show_default=False))
        except getpass.GetPassWarning:  # nothing was asked: what is typed could be seen
            raise click.UsageError(f"{option}: there is no terminal to ask on; use {variable} or a profile.") from None


def grouped(*declared: Decorator) -> Decorator:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(declared):
            function = option(function)
        return function

    return decorated


_connection_options: Final = grouped(
    click.option("-h", "--host"),
    click.option("-p", "--port", type=WholeNumber(1, MAX_PORT)),
    click.option("-s", "--socket", type=FILE_NAME),
    click.option("-n", "--db", type=WholeNumber(0, MAX_DB)),
    click.option("-u", "--url"),
    click.option("--profile"),
    click.option("--user"),
    click.option("-a", "--pass", "password"),
    click.option("--askpass", is_flag=True),
    click.option("--tls", is_flag=True),
    click.option("--cacert", type=FILE_NAME),
    click.option("--cacertdir", type=FILE_NAME),
    click.option("--cert", type=FILE_NAME),
    click.option("--key", type=FILE_NAME),
    click.option("--key-askpass", is_flag=True),
    click.option("--sni"),
    click.option("--insecure", is_flag=True),
    click.option("-c", "--cluster", is_flag=True),
    click.option("--replicas", type=click.Choice(get_args(ReplicaPolicy))),
    click.option("--zone"),
    click.option("--only-node", is_flag=True),
    click.option("--sentinel-user"),
    click.option("--sentinel-askpass", is_flag=True),
    click.option("--sentinel-tls", is_flag=True),
    click.option("--password-command"),
    click.option("--credential-provider"),
    click.option("--via", multiple=True),
    click.option("--map", "address_map", multiple=True),
    click.option("--proxy"),
    click.option("--timeout", "timeout_s", type=Number(min=0, min_open=True)),
    click.option("--server-binary", type=FILE_NAME),
    click.option("--force", is_flag=True),
    click.option("-2", "protocol", flag_value="2"),
    click.option("-3", "protocol", flag_value="3"),
)
"""The options of the connection; their meanings are on the page `connection` of the help."""


TARGET: Final = "[TARGET]"


def connection_options(function: Callable[..., Any], *, arguments: str | None = TARGET) -> Callable[..., Any]:
    """Give a command its options as `connection`; without `arguments` the server is named by options only."""
    names = [field.name for field in fields(ConnectionOptions)]

    @functools.wraps(function)
    def collected(**parameters: Any) -> Any:
        parameters.setdefault("place", ())
        options = ConnectionOptions(**{name: parameters.pop(name) for name in names})
        if parameters.get("demo") and arguments == TARGET:
            options.require_no_server()
        return function(connection=options, **parameters)

    decorated = _connection_options(collected)
    return (
        decorated
        if arguments is None
        else click.argument("place", metavar=arguments, nargs=-1, type=FILE_NAME)(decorated)
    )
