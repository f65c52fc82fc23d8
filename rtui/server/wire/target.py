"""A password as a value that can't be shown by accident."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn, final
from urllib.parse import unquote_to_bytes

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.wire.errors import TargetError

MASK: Final = "•••"
"""What stands wherever a secret would be shown."""


@final
class Secret:
    """A string that only `reveal()` gives away: repr, str and format show a mask, pickling is refused."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself; bytes that are not UTF-8 are surrogate escapes (`os.fsencode` style)."""
        return self._value

    def scrub(self, text: str) -> str:
        """`text` with every occurrence of the secret masked."""
        return text.replace(self._value, MASK) if self._value else text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is never written anywhere")


DEFAULT_HOST: Final = "127.0.0.1"
"""Where redis-cli connects when it is told nothing."""

DEFAULT_PORT: Final = 6379
"""The port of Redis and Valkey."""

MAX_PORT: Final = 65_535
"""The highest TCP port."""

MAX_DB: Final = 2_147_483_647
"""The highest index that SELECT could name; the server decides which exist."""

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys", "unix")
"""The URL schemes that name a target."""

_TLS_SCHEMES: Final = frozenset({"rediss", "valkeys"})

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://", re.ASCII)
_BRACKETED: Final = re.compile(r"\[([0-9A-Fa-f:.]+(?:%[^\]]+)?)\](?::(.*))?", re.ASCII | re.DOTALL)
_HOST: Final = re.compile(r"[^\s/?#@\[\]:\\\x00-\x20\x7f]+")
_SHAPES: Final = (
    "Write it as host, host:port, [IPv6]:port, redis://user:password@host:port/db or unix:///path/to/socket."
)

Protocol = Literal[2, 3]
"""The versions of the wire protocol."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How a TLS connection proves who it talks to, and itself; paths are PEM files."""

    cacert: str | None = None
    cacertdir: str | None = None
    cert: str | None = None
    key: str | None = None
    sni: str | None = None
    insecure: bool = False
    """Accept any certificate: the traffic is hidden from others, but not from whoever answers."""


@dataclass(frozen=True, slots=True)
class Target:
    """One server to browse. `repr` is safe: the password is a `Secret`."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    socket_path: str | None = None
    user: str | None = None
    password: Secret | None = field(default=None, repr=False)
    db: int = 0
    tls: Tls | None = None
    cluster: bool = False
    protocol: Protocol | None = None
    name: str | None = None
    """What the user calls this server (the profile's name), if anything."""

    @property
    def label(self) -> SafeText:
        """`host:port`, `[IPv6]:port` or the socket's path: never a user or password."""
        if self.socket_path is not None:
            return display_text(self.socket_path)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return display_text(f"{host}:{self.port}")

    def redis_cli_args(self) -> tuple[str, ...]:
        """The arguments with which redis-cli reaches the same database; it asks for the password, so none is copied."""
        args = ["-s", self.socket_path] if self.socket_path is not None else ["-h", self.host, "-p", str(self.port)]
        if self.user is not None:
            args += ["--user", self.user]
        if self.password:
            args.append("--askpass")
        if self.db:
            args += ["-n", str(self.db)]
        if self.cluster:
            args.append("-c")
        if self.tls is not None:
            args += _tls_args(self.tls)
        return tuple(args)


def _tls_args(tls: Tls) -> list[str]:
    args = ["--tls"]
    for option, value in (
        ("--cacert", tls.cacert),
        ("--cacertdir", tls.cacertdir),
        ("--cert", tls.cert),
        ("--key", tls.key),
        ("--sni", tls.sni),
    ):
        if value is not None:
            args += [option, value]
    if tls.insecure:
        args.append("--insecure")
    return args


def parse_target(text: str) -> Target:
    """Read a URL or `host[:port]`; raises `TargetError`, which repeats nothing of `text`."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _wrong("It holds something that is not text.", _SHAPES) from None
    scheme = _URL.match(text)
    if scheme is not None:
        return _parse_url(scheme[1].lower(), text[scheme.end() :])
    if text.startswith("/"):
        return Target(socket_path=_checked_path(text))
    if "@" in text:
        raise _wrong(
            "It holds an @ but is not a URL.", "A user or password needs a URL: redis://user:password@host:port/db."
        )
    host, port = _host_and_port(text)
    return Target(host=host, port=port)


def _parse_url(scheme: str, rest: str) -> Target:
    if scheme not in SCHEMES:
        raise _wrong("Its scheme is none of " + ", ".join(SCHEMES) + ".", _SHAPES)
    authority, path, query = _split(rest)
    credentials, at, place = authority.rpartition("@")
    if "@" in path + query and not (scheme == "unix" and not place):
        raise _wrong(
            "There is an @ after the host, so the password seems to hold a character with a meaning in URLs.",
            "Write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25, or use REDISCLI_AUTH or --askpass.",
        )
    user, password = _credentials(credentials) if at else (None, None)
    parameters = _parameters(query)
    protocol = _protocol(parameters.get("protocol"))
    if scheme == "unix":
        if place:
            raise _wrong("A unix URL has no host.", "Three slashes begin the path: unix:///run/redis.sock.")
        socket_path = _checked_path(_decoded(path))
        db = _db(parameters.get("db", ""))
        return Target(socket_path=socket_path, user=user, password=password, db=db, protocol=protocol)
    host, port = _host_and_port(place)
    db = _db(parameters.get("db") or path.strip("/"))
    tls = Tls() if scheme in _TLS_SCHEMES else None
    return Target(host=host, port=port, user=user, password=password, db=db, tls=tls, protocol=protocol)


def _split(rest: str) -> tuple[str, str, str]:
    """Authority, path and query of what follows `scheme://`; a fragment means nothing here and stays where it is."""
    end = min((i for i in (rest.find(c) for c in "/?#") if i >= 0), default=len(rest))
    authority, rest = rest[:end], rest[end:]
    path, _, query = rest.partition("?")
    return authority, path, query


def _credentials(text: str) -> tuple[str | None, Secret | None]:
    user, colon, password = text.partition(":")
    if not colon:
        return _decoded(user) or None, None
    return _decoded(user) or None, Secret(_decoded(password)) if password else None


def _parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        if name not in {"db", "protocol"} or name in parameters:
            raise _wrong("After the ? only db=… and protocol=2 or 3 are understood, each once.", _SHAPES)
        parameters[name] = value
    return parameters


def _protocol(text: str | None) -> Protocol | None:
    if text is None:
        return None
    if text == "2":
        return 2
    if text == "3":
        return 3
    raise _wrong("The protocol is neither 2 nor 3.", _SHAPES)


def _db(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 10 or int(text) > MAX_DB:
        raise _wrong("The database is not a number from 0 on.", _SHAPES)
    return int(text)


def _host_and_port(text: str) -> tuple[str, int]:
    if not text:
        return DEFAULT_HOST, DEFAULT_PORT
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        return _decoded(bracketed[1]), _port(bracketed[2])
    if text.count(":") > 1 and re.fullmatch(r"[0-9A-Fa-f:.]+", text):
        return text, DEFAULT_PORT
    host, colon, port = text.partition(":")
    if host and _HOST.fullmatch(host) is None:
        raise _wrong("The host holds a character that no host name has.", _SHAPES)
    return host or DEFAULT_HOST, _port(port if colon else None)


def _port(text: str | None) -> int:
    if not text:
        return DEFAULT_PORT
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 0 < int(text) <= MAX_PORT:
        raise _wrong(f"The port is not a number from 1 to {MAX_PORT}.", _SHAPES)
    return int(text)


def _checked_path(path: str) -> str:
    if not path.startswith("/") or "\0" in path or path == "/":
        raise _wrong("There is no absolute path of a socket.", "Three slashes begin the path: unix:///run/redis.sock.")
    return path


def _decoded(text: str) -> str:
    """Percent-decoded; bytes that are not UTF-8 become surrogate escapes, so that they go out again as they came."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _wrong(happened: str, remedy: str) -> TargetError:
    return TargetError("The target can't be read", happened, remedy)
