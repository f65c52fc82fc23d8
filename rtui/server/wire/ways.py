"""The way to a server that can't be reached directly: through SSH hosts, a SOCKS proxy, or to another address."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from rtui.server.wire.errors import TargetError
from rtui.server.wire.secret import Secret

Address = tuple[str, int]

_Rule = tuple[re.Pattern[str], int | None, str, str | None]
"""Which hosts, at which port (None: any), and where they are: host, and port (None: the same)."""

SOCKS_PORT: Final = 1080

_HOST: Final = re.compile(r"(?!-)[^\s\x00-\x1f\x7f]{1,255}\Z")
"""What ssh takes as a host, a user before it or not; never an option."""

_SIDE: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.*]+\]|[^:=\s\[\]]+)(?::(?P<port>[0-9*x]{1,5}))?\Z")


_PROXY: Final = re.compile(
    r"socks(?P<version>5(?=h?:)|4(?=a?:))[ha]?://(?:(?P<login>[^@/\s]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:@/?#\[\]]+)(?::(?P<port>[0-9]{1,5}))?/?\Z",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class AddressMap:
    """Where servers are reached that say that they are elsewhere, such as behind NAT or at the end of tunnels.

    Each rule is `HOST[:PORT]=HOST[:PORT]`. A `*` on the left stands for any text; on the right `*` is that text, and a
    run of `x` the number that it is, with as many digits: `10.0.0.*:6379=localhost:70xx` leads 10.0.0.5 to port 7005.
    """

    rules: tuple[str, ...] = ()
    _parsed: tuple[tuple[re.Pattern[str], int | None, str, str | None], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Raises TargetError for a rule that can't be read."""
        object.__setattr__(self, "_parsed", tuple(map(_parsed_rule, self.rules)))

    def reached_at(self, address: Address) -> Address:
        """Return where a server is reached; the first rule that fits counts."""
        host, port = address
        for pattern, only_port, to_host, to_port in self._parsed:
            found = pattern.fullmatch(host)
            if found is None or only_port not in (None, port):
                continue
            star = found[1] if pattern.groups else ""
            new_port = str(port) if to_port is None else _filled(to_port, star)
            if new_port.isdecimal() and 0 < int(new_port) < 1 << 16:
                return _filled(to_host, star, digits=False), int(new_port)
        return address


@dataclass(frozen=True, slots=True)
class Way:
    """How sockets get to servers."""

    via: tuple[str, ...] = ()
    """SSH hosts, the first one first, as in `ssh HOST`."""
    addresses: AddressMap = field(default_factory=AddressMap)
    proxy: Secret | None = None
    """`socks5://user:password@host:port`: it may hold a password."""

    def __post_init__(self) -> None:
        """Raises TargetError for a proxy that can't be read."""
        if self.proxy is not None:
            socks_proxy(self.proxy)


@dataclass(frozen=True, slots=True)
class SocksProxy:
    """A proxy that connects to servers, and finds out their addresses."""

    version: int
    host: str
    port: int
    user: str | None
    password: Secret | None


def socks_proxy(url: Secret) -> SocksProxy:
    """Read `socks5://user:password@host:port`; raises TargetError, which repeats nothing of it.

    `socks5h` and `socks4a`, by which others mean that the proxy resolves names, are the same: it always does.
    """
    found = _PROXY.match(url.reveal())
    port = int(found["port"] or SOCKS_PORT) if found is not None else 0
    if found is None or not 0 < port < 1 << 16:
        raise TargetError(
            "The way can't be read",
            "The proxy is no URL such as socks5://host:1080.",
            "Write socks5://user:password@host:port or socks4://…, with @ and / in a password as %40 and %2F.",
        )
    user, colon, password = (found["login"] or "").partition(":")
    host = found["host"].strip("[]")
    secret = Secret(unquote(password)) if colon else None
    return SocksProxy(int(found["version"]), host, port, unquote(user) or None, secret)


def checked_host(host: str) -> str:
    """Return the name of an SSH host; raises TargetError for what ssh would take for an option."""
    if not _HOST.match(host):
        raise TargetError("The way can't be read", "An SSH host is no option and has no spaces.", "Write --via HOST.")
    return host


def _parsed_rule(rule: str) -> _Rule:
    left, equals, right = rule.partition("=")
    before, after = _SIDE.match(left), _SIDE.match(right)
    if not equals or before is None or after is None or left.count("*") > 1 or not (before["port"] or "1").isdecimal():
        raise TargetError(
            "The address map can't be read",
            "A rule is HOST[:PORT]=HOST[:PORT], with one * on the left at most.",
            "Such as --map '10.0.0.*:6379=localhost:70xx'.",
        )
    host = re.escape(before["host"].strip("[]")).replace(r"\*", "(.+)")
    port = None if before["port"] is None else int(before["port"])
    return re.compile(host, re.DOTALL), port, after["host"].strip("[]"), after["port"]


def _filled(text: str, star: str, *, digits: bool = True) -> str:
    """Put what the star stood for in its place."""
    text = text.replace("*", star)
    return re.sub("x+", lambda run: star.zfill(len(run[0])), text) if digits and star.isdecimal() else text
